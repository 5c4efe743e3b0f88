/* SPDX-License-Identifier: Apache-2.0 */
/* shared_grammar_test.c - engines in several threads whose texts obey one grammar, whose states and masks they share: each text is that of
 * an engine alone. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

enum { THREADS = 2, TEXTS = 6, MOST = 40 };
static const char schema[] = "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"pattern\": \"a+b\"}, \"n\": "
                             "{\"type\": \"integer\"}}, \"required\": [\"name\"]}";

typedef struct work {
    hunch_model *m;
    hunch_grammar *grammar;
    hunch_token tokens[TEXTS][MOST];
    size_t n[TEXTS];
    bool failed;
} work;

/* Without cmocka's checks, which are the main thread's. */
static void *texts_run(void *of) {
    static const hunch_token prompt[] = {1, 403, 407};
    work *w = of;
    const char *draft = "ngram";
    hunch_engine_options o;
    hunch_engine *e = NULL;
    hunch_engine_options_defaults(&o);
    o.drafts = &draft;
    o.n_drafts = 1;
    o.context = 128;
    w->failed = hunch_engine_open(&e, w->m, &o, NULL) != HUNCH_OK;
    for (int i = 0; i < TEXTS && !w->failed; i++) {
        hunch_session *s = NULL;
        hunch_session_state st;
        hunch_request r;
        hunch_request_defaults(&r, w->m);
        r.prompt = prompt;
        r.n_prompt = 3;
        r.max_tokens = MOST;
        r.grammar = w->grammar;
        r.sampling = (hunch_sampling){.temperature = 1, .top_p = 1, .seed = (uint64_t)i};
        w->failed = hunch_session_open(&s, e, &r, NULL) || hunch_engine_run(e, NULL);
        if (w->failed) break;
        hunch_session_get(s, &st);
        w->failed = st.finish == HUNCH_FINISH_FAILED;
        w->n[i] = st.n_tokens;
        memcpy(w->tokens[i], st.tokens, st.n_tokens * sizeof *st.tokens);
        hunch_session_close(&s);
    }
    hunch_engine_close(&e);
    return NULL;
}

static void test_threads_share_a_grammar(void **state) {
    (void)state;
    static work alone, together[THREADS];
    hunch_grammar *g = NULL, *own = NULL;
    pthread_t thread[THREADS];
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    must(hunch_grammar_open(&g, m, HUNCH_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, HUNCH_GRAMMAR_AT_ONCE, err));
    for (int i = 0; i < THREADS; i++) {
        together[i] = (work){.m = m, .grammar = g};
        assert_int_equal(pthread_create(&thread[i], NULL, texts_run, &together[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    hunch_grammar_close(&g);
    must(hunch_grammar_open(&own, m, HUNCH_GRAMMAR_JSON_SCHEMA, schema, sizeof schema - 1, HUNCH_GRAMMAR_AT_ONCE, err));
    alone = (work){.m = m, .grammar = own};
    texts_run(&alone);
    assert_false(alone.failed);
    for (int i = 0; i < THREADS; i++) {
        assert_false(together[i].failed);
        assert_memory_equal(together[i].n, alone.n, sizeof alone.n);
        assert_memory_equal(together[i].tokens, alone.tokens, sizeof alone.tokens);
    }
    hunch_grammar_close(&own);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_share_a_grammar)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
