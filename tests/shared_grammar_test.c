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

static hunch_grammar *choice_open(const hunch_model *m, int number) {
    char text[64];
    hunch_grammar *g = NULL;
    snprintf(text, sizeof text, "(choice|number) %d(a|b){1,50}", number);
    must(hunch_grammar_open(&g, m, HUNCH_GRAMMAR_REGEX, text, strlen(text), HUNCH_GRAMMAR_AT_ONCE, err));
    return g;
}

static uint64_t kept_bytes(const hunch_engine *e) {
    hunch_memory m;
    hunch_engine_get_memory(e, &m);
    return m.part[HUNCH_MEMORY_GRAMMARS].taken;
}

/* A model keeps as many grammars as its budget holds, those that were used last; one that was dropped is compiled again. Those that are
 * open count, and while they exceed the budget no other is made. */
static void test_budget(void **state) {
    (void)state;
    enum { MANY = 200 };
    hunch_model_options o;
    hunch_model *m = NULL;
    hunch_model_options_defaults(&o);
    o.threads = 1;
    o.grammar_bytes = 1 << 20;
    must(hunch_model_open(&m, data_path("models/stories260K/stories260K.f32.gguf"), &o, err));
    hunch_engine *e = open_engine(m, NULL, 1, 16, HUNCH_KV_DEFAULT, 16, 64);
    hunch_memory memory;
    hunch_engine_get_memory(e, &memory);
    assert_int_equal(memory.part[HUNCH_MEMORY_GRAMMARS].planned, o.grammar_bytes);
    hunch_grammar *first = choice_open(m, 0), *again = choice_open(m, 0), *held[MANY];
    assert_ptr_equal(first, again);
    hunch_grammar_close(&again);
    const uint64_t one = kept_bytes(e);
    assert_true(one > 0 && one < o.grammar_bytes);
    for (int i = 1; i < MANY; i++) { /* the first is asked for now and then, and stays */
        held[i] = choice_open(m, i);
        assert_true(kept_bytes(e) <= o.grammar_bytes);
        hunch_grammar_close(&held[i]);
        if (i % 4) continue;
        again = choice_open(m, 0);
        assert_ptr_equal(first, again);
        hunch_grammar_close(&again);
    }
    const uint64_t full = kept_bytes(e);
    assert_true(full > o.grammar_bytes - 2 * one && full <= o.grammar_bytes);
    again = choice_open(m, MANY - 1); /* which is kept */
    assert_int_equal(kept_bytes(e), full);
    hunch_grammar_close(&again);
    hunch_grammar_close(&first);

    int n = 0;
    hunch_error why = {0};
    hunch_status st = HUNCH_OK;
    for (; n < MANY && !st; n += !st) {
        held[n] = NULL;
        char text[64];
        snprintf(text, sizeof text, "held %d(a|b){1,50}", n);
        st = hunch_grammar_open(&held[n], m, HUNCH_GRAMMAR_REGEX, text, strlen(text), HUNCH_GRAMMAR_AT_ONCE, &why);
        assert_true(kept_bytes(e) <= o.grammar_bytes + 2 * one);
    }
    assert_int_equal(st, HUNCH_NO_MEMORY);
    assert_non_null(strstr(why.message, "take 1 MiB, which may be 1"));
    assert_true(n > 2 && kept_bytes(e) > o.grammar_bytes);
    const hunch_grammar *kept = held[0];
    must(hunch_grammar_open(&again, m, HUNCH_GRAMMAR_REGEX, "held 0(a|b){1,50}", 17, HUNCH_GRAMMAR_AT_ONCE, err));
    assert_ptr_equal(again, kept); /* one that is open is none more */
    hunch_grammar_close(&again);
    for (int i = 0; i < n; i++) hunch_grammar_close(&held[i]);
    again = choice_open(m, MANY);
    assert_true(kept_bytes(e) <= o.grammar_bytes);
    hunch_grammar_close(&again);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* What an engine plans is the model's to give: another one is offered less, and all of it again when it is closed. */
static void test_account(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "ngram", 4, 16, HUNCH_KV_DEFAULT, 16, 512), *other;
    hunch_memory one, both, after;
    hunch_engine_get_memory(e, &one);
    uint64_t planned = 0, taken = 0;
    for (int i = 0; i < HUNCH_MEMORY_PARTS; i++) {
        assert_non_null(hunch_memory_part_name(i));
        planned += one.part[i].planned;
        taken += one.part[i].taken;
    }
    assert_null(hunch_memory_part_name(HUNCH_MEMORY_PARTS));
    assert_true(planned == one.planned && taken == one.taken);
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    assert_true(one.part[HUNCH_MEMORY_WEIGHTS].taken >= info.memory_bytes && one.part[HUNCH_MEMORY_BUFFERS].taken > 0);
    assert_true(one.part[HUNCH_MEMORY_PAGES].planned > 0 && one.part[HUNCH_MEMORY_PAGES].taken == 0);
    assert_true(one.part[HUNCH_MEMORY_SAMPLERS].planned >= (uint64_t)32 * (uint64_t)info.vocab);
    other = open_engine(m, NULL, 4, 16, HUNCH_KV_DEFAULT, 16, 512);
    hunch_engine_get_memory(e, &both);
    assert_int_equal(both.part[HUNCH_MEMORY_PAGES].planned, 2 * one.part[HUNCH_MEMORY_PAGES].planned);
    static const hunch_token prompt[] = {1, 403, 407};
    hunch_session *s;
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = prompt;
    r.n_prompt = 3;
    r.max_tokens = 40;
    must(hunch_session_open(&s, other, &r, err));
    must(hunch_engine_round(other, err));
    hunch_engine_get_memory(other, &after);
    assert_true(after.part[HUNCH_MEMORY_PAGES].taken > 0 && after.part[HUNCH_MEMORY_SAMPLERS].taken > 0);
    hunch_session_close(&s);
    hunch_engine_close(&other);
    hunch_engine_get_memory(e, &after);
    assert_memory_equal(&after, &one, sizeof one);
    assert_true(hunch_model_memory_left(m) > 0);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_share_a_grammar), cmocka_unit_test(test_budget),
                                       cmocka_unit_test(test_account)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
