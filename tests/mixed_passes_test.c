/* SPDX-License-Identifier: Apache-2.0 */
/* mixed_passes_test.c - prompts that are read while other texts are answered: how many rows of which prompt a round takes, that every
 * text still gets a token in every round, and that all of them are those of texts alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/round.h"
#include "fixture.h"

enum {
    TALKING = 3,
    PROMPTS = 2,
    TEXTS = TALKING + PROMPTS,
    TOKENS = 300,
    SHORT = 12,
    LONG = 300,
    VOCAB = 100,
    CONTEXT = 400
};

static hunch_token prompt[TEXTS][LONG];
static const int length[TEXTS] = {SHORT, SHORT + 3, SHORT + 1, LONG, LONG - 40};

/* The texts begin differently: none waits for another's rows. */
static hunch_request request(const hunch_model *m, int i) {
    hunch_request r;
    uint64_t seed = 900 + (uint64_t)i;
    hunch_request_defaults(&r, m);
    for (int k = 0; k < length[i]; k++) prompt[i][k] = (hunch_token)(hn_splitmix(&seed) % VOCAB);
    prompt[i][0] = i;
    r.prompt = prompt[i];
    r.n_prompt = (size_t)length[i];
    r.max_tokens = i < TALKING ? TOKENS : 8;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = i % 2 ? 0.8 : 0, .top_p = 1, .seed = 5};
    return r;
}

static hunch_engine *open_paused(hunch_model *m, const char *draft, double max_pause) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = TEXTS;
    o.context = CONTEXT;
    o.page_rows = 16;
    o.max_pause = max_pause;
    return open_engine_with(m, draft, o);
}

static void expect(hunch_model *m, answer want[TEXTS]) {
    hunch_engine *e = open_paused(m, NULL, 0);
    for (int i = 0; i < TEXTS; i++) {
        const hunch_request r = request(m, i);
        run_requests(e, &r, 1, false, &want[i]);
        hunch_engine_forget(e);
    }
    hunch_engine_close(&e);
}

static size_t prefilled(const hunch_session *s) {
    hunch_session_state st;
    hunch_session_get(s, &st);
    return st.n_prefilled;
}

/* The prompts arrive while the others talk; each round reads `rows` rows of prompts until both are read, half of them of the older one, the
 * others of the one that has less left; fewer at ends of chunks, where a recurrent model keeps states. */
static void check_rounds(hunch_model *m, const char *draft, double max_pause, size_t rows, const answer want[TEXTS]) {
    hunch_engine *e = open_paused(m, draft, max_pause);
    hunch_session *s[TEXTS];
    hunch_request r[TEXTS];
    size_t read = 0, older = 0;
    for (int i = 0; i < TEXTS; i++) r[i] = request(m, i);
    for (int i = 0; i < TALKING; i++) must(hunch_session_open(&s[i], e, &r[i], err));
    must(hunch_engine_round(e, err)); /* their prompts */
    for (int i = TALKING; i < TEXTS; i++) must(hunch_session_open(&s[i], e, &r[i], err));
    for (size_t first, all; read < LONG + LONG - 40; read = all) {
        size_t tokens[TALKING];
        for (int i = 0; i < TALKING; i++) tokens[i] = hn_session_emitted(s[i]);
        must(hunch_engine_round(e, err));
        for (int i = 0; i < TALKING; i++) assert_true(hn_session_emitted(s[i]) > tokens[i]);
        first = prefilled(s[TALKING]);
        all = first + prefilled(s[TALKING + 1]);
        if (read + rows <= LONG + LONG - 40 && !hn_model_is_recurrent(e->model->target.run))
            assert_int_equal(all - read, rows);
        assert_in_range(all - read, 1, rows);
        assert_true(first == LONG || first > older);
        if (!hn_model_is_recurrent(e->model->target.run)) {
            assert_true(first == LONG || first - older >= rows / 2);
            assert_true(all - first == LONG - 40 || all - read > first - older ||
                        LONG - older < LONG - 40 - (read - older));
        }
        older = first;
    }
    must(hunch_engine_run(e, err));
    for (int i = 0; i < TEXTS; i++) {
        answer got = {0};
        keep_answer(&got, s[i]);
        assert_same(&want[i], &got, draft ? draft : "plain");
        answer_free(&got);
        hunch_session_close(&s[i]);
    }
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
}

static void rounds_run(hunch_engine *e, int n) {
    for (int i = 0; i < n; i++) must(hunch_engine_round(e, err));
}

/* A round reads 8 rows: of a long prompt that is there first, and of short ones that arrive later, 4 of which are read at once, those of
 * higher priority first. */
static void test_short_beside_long(void **state) {
    (void)state;
    hunch_model *m = open_model(data_path("goldens/llama-gqa"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_paused(m, NULL, 1e-9);
    hunch_session *s[4];
    hunch_request r[4] = {request(m, 0), request(m, TALKING), request(m, 1), request(m, 2)};
    r[2].n_prompt = r[3].n_prompt = 8;
    r[3].priority = 1;
    must(hunch_session_open(&s[0], e, &r[0], err));
    must(hunch_engine_round(e, err));
    for (int i = 1; i < 4; i++) must(hunch_session_open(&s[i], e, &r[i], err));
    rounds_run(e, 2);
    assert_int_equal(prefilled(s[1]), 8);
    assert_int_equal(prefilled(s[2]), 0);
    assert_int_equal(prefilled(s[3]), 8);
    rounds_run(e, 2);
    assert_int_equal(prefilled(s[1]), 16);
    assert_int_equal(prefilled(s[2]), 8);
    rounds_run(e, 2);
    assert_int_equal(prefilled(s[1]), 32);
    assert_true(hn_session_emitted(s[2]) > 0 && hn_session_emitted(s[3]) > 0);
    for (int i = 0; i < 4; i++) hunch_session_close(&s[i]);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* What rounds with prompts may take: what the user says, else about two plain rounds, never more than 0.1 s and never no prompt. */
static void test_pause(void **state) {
    (void)state;
    static const struct {
        double max_pause, plain_s, row_s;
        int beside, rows;
    } cases[] = {{0, 0, 0, 0, 128},       {0, 0, 0, 1, 16},         {0, .02, .001, 2, 30},    {0, .02, .001, 4, 50},
                 {0, .045, .001, 2, 55},  {0, .09, .0001, 2, 100},  {0, .2, .001, 2, 16},     {.15, .02, .001, 2, 128},
                 {.05, .02, .001, 2, 30}, {1e-9, .02, .001, 2, 8},  {.03, .02, .001, 2, 10}};
    hunch_engine e = {.chunk = 128, .plain_rows = 2};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        e.max_pause = cases[i].max_pause;
        e.plain_s = cases[i].plain_s;
        e.row_s = cases[i].row_s;
        const int less = cases[i].rows > 8 && cases[i].rows != 16; /* rounded */
        assert_in_range(hn_prompt_budget(&e, cases[i].beside), cases[i].rows - less, cases[i].rows);
    }
}

static void check_model(const char *path, const char *const drafts[], size_t all) {
    answer want[TEXTS] = {{0}};
    hunch_model *m = open_model(data_path(path), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    expect(m, want);
    for (int d = 0; d < 2; d++) {
        check_rounds(m, drafts[d], 1e-9, 8, want);
        check_rounds(m, drafts[d], 1000, all, want);
    }
    for (int i = 0; i < TEXTS; i++) answer_free(&want[i]);
    hunch_model_close(&m);
}

static void test_dense(void **state) {
    (void)state;
    static const char *const drafts[] = {NULL, "ngram,min=1,depth=4"};
    check_model("goldens/llama-gqa", drafts, 128);
}

static void test_hybrid(void **state) {
    (void)state;
    static const char *const drafts[] = {NULL, "suffix"};
    check_model("goldens/qwen3_5-dense", drafts, 64);
}

static void test_windows(void **state) {
    (void)state;
    static const char *const drafts[] = {NULL, "forced,accept=0.6,depth=5,tree=random,seed=2"};
    check_model("goldens/gemma3_text-local", drafts, 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_short_beside_long), cmocka_unit_test(test_pause), cmocka_unit_test(test_dense),
                                       cmocka_unit_test(test_hybrid), cmocka_unit_test(test_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
