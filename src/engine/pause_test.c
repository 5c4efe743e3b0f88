/* SPDX-License-Identifier: Apache-2.0 */
/* pause_test.c - paused sessions: they take no part in rounds, give place and pages to others, and go on with the text that they would
 * have had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/pass_costs.h"
#include "fixture.h"

enum { TEXTS = 4, TOKENS = 60 };

static hunch_model *model;
static hunch_token prompt[TEXTS][80];
static answer plain[TEXTS];

static hunch_request request(int i) {
    hunch_request r;
    hunch_request_defaults(&r, model);
    r.prompt = prompt[i];
    r.n_prompt = 80;
    r.max_tokens = TOKENS;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.temperature = 0.9, .top_p = 1, .seed = 7 + (uint64_t)i};
    return r;
}

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", test_threads(), HUNCH_PRECISION_NATIVE);
    for (int i = 0; i < TEXTS; i++)
        for (int k = 0; k < 80; k++) prompt[i][k] = k < 40 ? 1 + k % 11 * 17 : 3 + (k * (i + 5)) % 500; /* they share a page's rows */
    hunch_engine *e = open_engine(model, NULL, 1, 64, HUNCH_KV_DEFAULT, 16, 256);
    for (int i = 0; i < TEXTS; i++) {
        hunch_request r = request(i);
        run_requests(e, &r, 1, false, &plain[i]);
    }
    hunch_engine_close(&e);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < TEXTS; i++) answer_free(&plain[i]);
    hunch_model_close(&model);
    return 0;
}

static hunch_session *open_text(hunch_engine *e, int i) {
    hunch_session *s = NULL;
    const hunch_request r = request(i);
    must(hunch_session_open(&s, e, &r, err));
    return s;
}

static hunch_session_state state_of(const hunch_session *s) {
    hunch_session_state st;
    hunch_session_get(s, &st);
    return st;
}

static void expect_plain(const hunch_session *s, int i) {
    const hunch_session_state st = state_of(s);
    assert_int_equal(st.finish, HUNCH_FINISH_LENGTH);
    assert_int_equal(st.n_tokens, plain[i].n);
    assert_memory_equal(st.tokens, plain[i].token, plain[i].n * sizeof *st.tokens);
}

/* Places are enough: it keeps its own, with its rows. */
static void test_place_kept(void **state) {
    (void)state;
    hunch_engine *e = open_engine(model, "ngram+forced,accept=.6,depth=3", 2, 16, HUNCH_KV_DEFAULT, 16, 256);
    for (int rounds = 1; rounds < 12; rounds += 3) { /* within the prompt, and after it */
        hunch_session *a = open_text(e, 0), *b = open_text(e, 1);
        for (int i = 0; i < rounds; i++) must(hunch_engine_round(e, err));
        hunch_session_pause(a, true);
        const size_t had = state_of(a).n_tokens;
        assert_true(state_of(a).paused);
        assert_int_equal(hunch_engine_running(e), 1);
        must(hunch_engine_run(e, err));
        expect_plain(b, 1);
        assert_int_equal(state_of(a).n_tokens, had);
        must(hunch_engine_round(e, err)); /* of nothing */
        assert_int_equal(state_of(a).preempted, 0);
        assert_int_equal(hunch_engine_running(e), 0);
        hunch_session_pause(a, false);
        must(hunch_engine_run(e, err));
        expect_plain(a, 0);
        hunch_session_pause(a, true); /* it is over: nothing happens */
        assert_false(state_of(a).paused);
        hunch_session_close(&a);
        hunch_session_close(&b);
    }
    assert_true(hn_cache_valid(e->cache));
    hunch_engine_close(&e);
}

/* One place: who comes gets it, the paused text and the next ones wait and go on. One that shares its prompt does not wait for its rows. */
static void test_place_given(void **state) {
    (void)state;
    for (int again = 0; again < 2; again++) {
        hunch_engine *e = open_engine(model, again ? "suffix" : NULL, 1, 16, HUNCH_KV_DEFAULT, 16, 256);
        hunch_session *s[TEXTS];
        s[0] = open_text(e, 0);
        for (int i = 0; i < (again ? 3 : 9); i++) must(hunch_engine_round(e, err));
        hunch_session_pause(s[0], true);
        for (int i = 1; i < TEXTS; i++) s[i] = open_text(e, i);
        hunch_session_pause(s[2], true); /* before it ever had a place */
        assert_int_equal(hunch_engine_running(e), 2);
        must(hunch_engine_run(e, err));
        expect_plain(s[1], 1);
        expect_plain(s[3], 3);
        assert_int_equal(state_of(s[0]).preempted, 1);
        assert_int_equal(state_of(s[2]).n_tokens, 0);
        hunch_session_pause(s[0], false);
        must(hunch_engine_run(e, err));
        expect_plain(s[0], 0);
        assert_int_equal(state_of(s[2]).finish, HUNCH_RUNNING);
        hunch_session_cancel(s[2]);
        assert_int_equal(state_of(s[2]).finish, HUNCH_FINISH_CANCELLED);
        for (int i = 0; i < TEXTS; i++) hunch_session_close(&s[i]);
        assert_true(hn_cache_valid(e->cache));
        hunch_engine_close(&e);
    }
}

/* Pages for fewer texts than places: the paused one loses its own, though it is the oldest. */
static void test_pages_given(void **state) {
    (void)state;
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.parallel = TEXTS;
    o.chunk = 32;
    o.page_rows = 16;
    o.context = 160;
    o.pool_rows = 160;
    hunch_engine *e = open_engine_with(model, NULL, o);
    hunch_session *s[TEXTS];
    const int seq = hn_internal_seq(e); /* has some pages, too */
    hn_cache_seq_begin(e->cache, seq);
    must(hn_cache_reserve(e->cache, seq, 0, 64, err));
    hn_cache_commit(e->cache, seq, 0, NULL, 64);
    s[0] = open_text(e, 0);
    for (int i = 0; i < 50; i++) must(hunch_engine_round(e, err));
    hunch_session_pause(s[0], true);
    for (int i = 1; i < TEXTS; i++) s[i] = open_text(e, i);
    must(hunch_engine_run(e, err));
    assert_int_equal(state_of(s[0]).preempted, 1);
    hunch_session_pause(s[0], false);
    must(hunch_engine_run(e, err));
    hn_cache_seq_end(e->cache, seq);
    for (int i = 0; i < TEXTS; i++) expect_plain(s[i], i);
    for (int i = 0; i < TEXTS; i++) hunch_session_close(&s[i]);
    hunch_engine_close(&e);
}

/* A paused session still ends by its deadline. */
static void test_deadline(void **state) {
    (void)state;
    hunch_engine *e = open_engine(model, NULL, 1, 16, HUNCH_KV_DEFAULT, 16, 256);
    hunch_session *s = NULL;
    hunch_request r = request(0);
    r.deadline_s = 0.05;
    must(hunch_session_open(&s, e, &r, err));
    hunch_session_pause(s, true);
    while (state_of(s).finish == HUNCH_RUNNING) must(hunch_engine_round(e, err));
    assert_int_equal(state_of(s).finish, HUNCH_FINISH_DEADLINE);
    hunch_session_close(&s);
    hunch_engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_place_kept), cmocka_unit_test(test_place_given),
                                       cmocka_unit_test(test_pages_given), cmocka_unit_test(test_deadline)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
