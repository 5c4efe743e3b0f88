/* SPDX-License-Identifier: Apache-2.0 */
/* rows_of_texts_test.c - the rows of a round go to the texts that have something to propose: beside texts with nothing a long draft is
 * verified whole, and a full engine still drafts. No text changes by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fixture.h"

enum { MOST = 64, TOKENS = 40, COPY = 30 };
static hunch_token prompts[MOST][6];
static hunch_request requests[MOST];
static answer plain[MOST];
static hunch_model *model;

typedef struct rounds {
    int n, most_rows, most_accepted;
} rounds;

static void note_round(void *user, const hunch_round_report *r) {
    rounds *k = user;
    k->n++;
    if (r->rows > k->most_rows) k->most_rows = r->rows;
    if (r->accepted > k->most_accepted) k->most_accepted = r->accepted;
}

static int setup(void **state) {
    (void)state;
    model = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(model, NULL, 8, 64, HUNCH_KV_DEFAULT, 64, 128);
    for (int i = 0; i < MOST; i++) {
        const hunch_token prompt[] = {1, 403, 407, 261, 378, 300 + i};
        memcpy(prompts[i], prompt, sizeof prompt);
        hunch_request_defaults(&requests[i], model);
        requests[i].prompt = prompts[i];
        requests[i].n_prompt = 6;
        requests[i].max_tokens = TOKENS;
        requests[i].ignore_eos = true;
        requests[i].sampling.temperature = 0;
    }
    run_requests(e, requests, MOST, false, plain);
    hunch_engine_close(&e);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < MOST; i++) answer_free(&plain[i]);
    hunch_model_close(&model);
    return 0;
}

/* n texts, every `each`-th of which has its own answer as a prediction. */
static void run_predicted(int n, int each, rounds *seen) {
    hunch_request r[MOST];
    answer got[MOST] = {{0}};
    char spec[60];
    snprintf(spec, sizeof spec, "prediction,depth=%d", COPY);
    hunch_engine *e = open_engine(model, spec, n, 64, HUNCH_KV_DEFAULT, 64, 128);
    for (int i = 0; i < n; i++) {
        r[i] = requests[i];
        r[i].on_round = note_round;
        r[i].on_round_user = &seen[i];
        if (i % each) continue;
        r[i].prediction = plain[i].token;
        r[i].n_prediction = plain[i].n;
    }
    run_requests(e, r, n, false, got);
    for (int i = 0; i < n; i++) {
        assert_same(&plain[i], &got[i], spec);
        answer_free(&got[i]);
    }
    hunch_engine_close(&e);
}

/* A tree is verified in one pass, and so are the roots of the others: 46 rows. */
static void test_one_copy_beside_fifteen(void **state) {
    (void)state;
    rounds seen[MOST] = {{0}};
    run_predicted(16, 16, seen);
    assert_int_equal(seen[0].most_rows, COPY + 1);
    assert_int_equal(seen[0].most_accepted, COPY);
    assert_true(seen[0].n <= 3);
    for (int i = 1; i < 16; i++) assert_int_equal(seen[i].most_rows, 1);
}

/* When all have a copy they share the rows. */
static void test_sixteen_copies(void **state) {
    (void)state;
    rounds seen[MOST] = {{0}};
    run_predicted(16, 1, seen);
    for (int i = 0; i < 16; i++)
        if (seen[i].most_accepted < 2 || seen[i].n >= TOKENS / 2) fail_msg("text %d: %d rounds", i, seen[i].n);
}

/* With 64 texts the roots alone fill a pass: drafts are verified in a second one. */
static void test_a_full_engine_drafts(void **state) {
    (void)state;
    rounds one[MOST] = {{0}}, all[MOST] = {{0}};
    run_predicted(64, 64, one);
    assert_int_equal(one[0].most_accepted, COPY);
    run_predicted(64, 1, all);
    for (int i = 0; i < 64; i++)
        if (all[i].most_accepted < 1 || all[i].n > TOKENS * 2 / 3) fail_msg("text %d: %d rounds", i, all[i].n);
}

/* ---- drafters that pay for each row -------------------------------------------------------------------------------------------- */

static const hn_drafter_ops *inner;
static long proposed, rows_of_round, most_rows;

static int propose(hn_drafter *d, hn_propose *p, int n, int level) {
    proposed += n;
    return inner->propose(d, p, n, level);
}

static void note_rows(void *user, const hunch_round_report *r) {
    (void)user;
    if (r->rows > 0) rows_of_round += r->rows;
}

/* Levels of a draft model that could not be kept are not drafted: of sixteen texts with up to 20 levels each at most a level more than the
 * pass takes, and the trees fit into it. */
static void test_levels_that_cannot_be_kept(void **state) {
    (void)state;
    char spec[600];
    hn_drafter_ops ops;
    hunch_session *s[16];
    snprintf(spec, sizeof spec, "model:%s,depth=20", data_path("models/stories260K/stories260K.f16.gguf"));
    hunch_engine *e = open_engine(model, spec, 16, 64, HUNCH_KV_DEFAULT, 64, 128);
    inner = e->drafter[0].ops;
    ops = *inner;
    ops.propose = propose;
    e->drafter[0].ops = &ops;
    for (int i = 0; i < 16; i++) {
        hunch_request r = requests[i];
        r.on_round = note_rows;
        must(hunch_session_open(&s[i], e, &r, err));
    }
    while (hunch_engine_running(e) > 0) {
        proposed = rows_of_round = 0;
        must(hunch_engine_round(e, err));
        if (rows_of_round > HN_TREE_ROWS) fail_msg("%ld rows", rows_of_round);
        if (proposed > 16 * 8) fail_msg("%ld levels of sixteen texts", proposed);
        if (rows_of_round > most_rows) most_rows = rows_of_round;
    }
    assert_true(most_rows > HN_TREE_ROWS - 16);
    for (int i = 0; i < 16; i++) {
        answer a = {0};
        keep_answer(&a, s[i]);
        assert_same(&plain[i], &a, spec);
        answer_free(&a);
        hunch_session_close(&s[i]);
    }
    e->drafter[0].ops = inner;
    hunch_engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_copy_beside_fifteen), cmocka_unit_test(test_sixteen_copies),
                                       cmocka_unit_test(test_a_full_engine_drafts), cmocka_unit_test(test_levels_that_cannot_be_kept)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
