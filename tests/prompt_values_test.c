/* SPDX-License-Identifier: Apache-2.0 */
/* prompt_values_test.c - log-probabilities of a prompt and its pooled state: the same bits whatever the chunks, the drafters, the texts
 * beside it, what the prefix index has of it, and however often it was preempted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/session.h"
#include "fixture.h"
#include "format/source.h"
#include "preempt_for_tests.h"

enum { CONTEXT = 256, PAGE = 16, N_TOP = 3, LONGEST = 150 };
#define STORIES "models/stories260K/stories260K.f32.gguf"
static char self_draft[600];

static int setup(void **state) {
    (void)state;
    snprintf(self_draft, sizeof self_draft, "model:%s,depth=4", data_path("models/stories260K/stories260K.f16.gguf"));
    return 0;
}

static hunch_token token_at(size_t i, int vocab) {
    return i == 0 ? 1 : (hunch_token)(3 + (i * i * 7 + i) % (size_t)(vocab - 3));
}

typedef struct values {
    int vocab, hidden;
    hunch_token text[LONGEST];
    float logprob[LONGEST];
    hunch_logprob top[LONGEST][N_TOP];
    float *last; /* [LONGEST][hidden] the pooled states of prompts of 1, 2, .. tokens */
} values;

static void note_row(void *user, size_t position, const float *logits, int vocab) {
    values *v = user;
    if (position + 1 == LONGEST) return;
    v->logprob[position + 1] = (float)hn_logprob(logits, vocab, v->text[position + 1]);
    hn_logprob_top(logits, vocab, v->top[position + 1], N_TOP);
}

static hunch_engine *open_pooling(hunch_model *m, const char *draft, int parallel, int chunk, int pool_rows) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = parallel;
    o.context = CONTEXT;
    o.page_rows = PAGE;
    o.chunk = chunk;
    o.pool_rows = pool_rows;
    o.pooling = true;
    return open_engine_with(m, draft, o);
}

static hunch_request ask(const hunch_model *m, const values *v, size_t n) {
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = v->text;
    r.n_prompt = n;
    r.max_tokens = 100;
    r.ignore_eos = true;
    r.top_logprobs = N_TOP;
    r.prompt_logprobs = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    return r;
}

/* The values by hunch_evaluate, and pooled states one prompt at a time. */
static void values_make(values *v, hunch_model *m) {
    hunch_model_info info;
    hunch_engine *e = open_pooling(m, NULL, 1, 64, 0);
    hunch_model_get_info(m, &info);
    v->vocab = info.vocab;
    v->hidden = info.hidden;
    for (size_t i = 0; i < LONGEST; i++) v->text[i] = token_at(i, v->vocab);
    must(hunch_evaluate(e, v->text, LONGEST, note_row, v, err));
    v->last = malloc(sizeof *v->last * LONGEST * (size_t)v->hidden);
    for (size_t n = 1; n <= LONGEST; n++) {
        hunch_request r = ask(m, v, n);
        hunch_session *s = NULL;
        hunch_session_state st;
        r.prompt_only = true;
        r.pooling = HUNCH_POOL_LAST;
        must(hunch_session_open(&s, e, &r, err));
        hunch_session_get(s, &st);
        assert_null(st.pooled);
        must(hunch_engine_run(e, err));
        hunch_session_get(s, &st);
        assert_int_equal(st.n_tokens, 0);
        assert_int_equal(st.finish, HUNCH_FINISH_LENGTH);
        assert_int_equal(st.n_pooled, v->hidden);
        memcpy(v->last + (n - 1) * (size_t)v->hidden, st.pooled, sizeof *st.pooled * (size_t)v->hidden);
        hunch_session_close(&s);
    }
    hunch_engine_close(&e);
}

static void check_state(const values *v, const hunch_request *r, const hunch_session_state *st) {
    const size_t n = r->n_prompt, hidden = (size_t)v->hidden;
    assert_true(isnan(st->prompt_logprobs[0]) && st->prompt_top_logprobs[0].token == -1);
    assert_memory_equal(st->prompt_logprobs + 1, v->logprob + 1, (n - 1) * sizeof *v->logprob);
    assert_memory_equal(st->prompt_top_logprobs + N_TOP, v->top[1], (n - 1) * sizeof v->top[1]);
    if (r->pooling == HUNCH_POOL_NONE) {
        assert_null(st->pooled);
        return;
    }
    for (size_t i = 0; i < hidden; i++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++) sum += (double)v->last[k * hidden + i];
        assert_true(st->pooled[i] == (r->pooling == HUNCH_POOL_MEAN ? (float)(sum / (double)n) : v->last[(n - 1) * hidden + i]));
    }
}

/* Several at once beside texts that ask for none of it, with their answers. Returns how often one was preempted. */
static uint64_t check_together(hunch_model *m, const values *v, hunch_engine *e, int parallel) {
    enum { N = 9 };
    static const size_t length[N] = {1, 2, 17, 64, 65, LONGEST, 100, LONGEST, 33};
    static const char *const salt[N] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    hunch_session *s[N];
    hunch_request r[N];
    uint64_t preempted = 0;
    answer plain[N] = {{0}}, got[N] = {{0}};
    hunch_engine *bare = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, PAGE, CONTEXT);
    for (int i = 0; i < N; i++) {
        hunch_request without = ask(m, v, length[i]);
        without.prompt_logprobs = false;
        run_requests(bare, &without, 1, false, &plain[i]);
        r[i] = i == 3 || i == 7 ? without : ask(m, v, length[i]);
        if (i != 3 && i != 7) r[i].pooling = (hunch_pooling)(i % 3);
        r[i].salt = salt[i]; /* or they would share most of their pages */
        must(hunch_session_open(&s[i], e, &r[i], err));
    }
    for (int round = 1; hunch_engine_running(e) > 0; round++) {
        must(hunch_engine_round(e, err));
        if (round % 5 == 0) preempt_youngest(e);
    }
    for (int i = 0; i < N; i++) {
        hunch_session_state st;
        hunch_session_get(s[i], &st);
        keep_answer(&got[i], s[i]);
        assert_same(&plain[i], &got[i], "beside log-probabilities of prompts");
        if (r[i].prompt_logprobs) {
            assert_true(st.n_restored == 0 || st.preempted > 0); /* of its own */
            check_state(v, &r[i], &st);
        } else {
            assert_null(st.prompt_logprobs);
        }
        preempted += st.preempted;
        answer_free(&got[i]);
        answer_free(&plain[i]);
        hunch_session_close(&s[i]);
    }
    assert_true(parallel > 1 || preempted == 0);
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&bare);
    return preempted;
}

/* Returns how often a text was preempted. */
static uint64_t check_model(const char *path, const char *const *drafts, int n_drafts) {
    static const int chunks[] = {7, 64, 200};
    hunch_model *m = open_model(data_path(path), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    values v = {0};
    uint64_t preempted = 0;
    values_make(&v, m);
    for (int d = 0; d < n_drafts; d++)
        for (size_t c = (size_t)d % (size_t)test_every(1, 2); c < sizeof chunks / sizeof *chunks; c += (size_t)test_every(1, 2))
            for (int parallel = 1; parallel <= 9; parallel += light() ? 8 : 4) {
                hunch_engine *e = open_pooling(m, drafts[d], parallel, chunks[c], c < 2 ? CONTEXT : 0);
                for (int turn = 0; turn < 2; turn++) preempted += check_together(m, &v, e, parallel); /* the second has an index */
                hunch_engine_close(&e);
            }
    free(v.last);
    hunch_model_close(&m);
    return preempted;
}

static void test_values(void **state) {
    (void)state;
    const char *const drafts[] = {NULL, "forced,accept=0.7,depth=4", self_draft, "auto"};
    assert_true(check_model(STORIES, drafts, light() ? 2 : 4) > 0);
}

static void test_values_of_other_families(void **state) {
    (void)state;
    static const char *const models[] = {"goldens/qwen3_5-dense", "goldens/qwen3_moe-fine", "goldens/mistral-sliding"};
    const char *const drafts[] = {NULL, "ngram"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i += light() ? 2 : 1) check_model(models[i], drafts, light() ? 1 : 2);
}

/* The state is what the output matrix reads: its products with the rows of that matrix are the logits. */
static void test_state_is_the_last(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_F32);
    hunch_engine *e = open_pooling(m, NULL, 1, 64, 0);
    hn_source *src = NULL;
    hunch_session *s = NULL;
    hunch_session_state st;
    values v = {.vocab = 512};
    answer a = {0};
    for (size_t i = 0; i < LONGEST; i++) v.text[i] = token_at(i, v.vocab);
    hunch_request r = ask(m, &v, 40);
    r.max_tokens = 1;
    r.pooling = HUNCH_POOL_LAST;
    r.on_logits = keep_logits;
    r.on_logits_user = &a;
    must(hunch_session_open(&s, e, &r, err));
    must(hunch_engine_run(e, err));
    hunch_session_get(s, &st);
    must(hn_source_open(&src, data_path(STORIES), err));
    const hn_tensor *t = hn_source_find(src, "token_embd.weight");
    assert_non_null(t);
    float *row = malloc(sizeof *row * (size_t)st.n_pooled);
    for (int id = 0; id < v.vocab; id++) {
        double logit = 0;
        must(hn_source_read(src, t, (size_t)(id * st.n_pooled) * sizeof *row, (size_t)st.n_pooled * sizeof *row, row, err));
        for (int i = 0; i < st.n_pooled; i++) logit += (double)row[i] * (double)st.pooled[i];
        assert_true(fabs(logit - (double)a.logits[id]) < 1e-3);
    }
    free(row);
    answer_free(&a);
    hn_source_close(&src);
    hunch_session_close(&s);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

static void test_refusals(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path(STORIES), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, PAGE, CONTEXT);
    hunch_session *s = NULL;
    hunch_error why = {0};
    values v = {.text = {1, 2, 3}};
    hunch_request r = ask(m, &v, 3);
    r.pooling = HUNCH_POOL_MEAN;
    assert_int_equal(hunch_session_open(&s, e, &r, &why), HUNCH_USAGE);
    assert_non_null(strstr(why.message, "opened without hunch_engine_options.pooling"));
    memset(&r.pooling, 0x11, sizeof r.pooling); /* as from another language */
    assert_int_equal(hunch_session_open(&s, e, &r, &why), HUNCH_USAGE);
    assert_non_null(strstr(why.message, "pooling is"));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_values_of_other_families),
        cmocka_unit_test(test_state_is_the_last),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
