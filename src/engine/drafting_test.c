/* SPDX-License-Identifier: Apache-2.0 */
/* drafting_test.c - the engine measures every drafter's time and counts it as a cost: one that is slow and wrong is called only now
 * and then. The waits take as long as hundreds of passes of the tiny model, so even on a busy machine they cannot be confused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "draft/tree.h"
#include "fixture.h"

enum { TOKENS = 120 };
static const double WAIT = 0.004; /* seconds of a call, as in the specs below */

typedef struct rounds {
    int n, slow; /* all rounds, and those in which the slow drafter was called */
    double draft_s, draft_pass_s; /* of all; no round has more of the second */
    int shown;   /* rounds in which it was reported as considered */
    int index;   /* of the slow drafter */
} rounds;

static void count_round(void *user, const hunch_round_report *r) {
    rounds *k = user;
    bool shown = false;
    k->n++;
    k->draft_s += r->draft_s;
    k->draft_pass_s += r->draft_pass_s;
    assert_true(r->draft_pass_s >= 0 && r->draft_pass_s <= r->draft_s);
    k->slow += r->draft_s > 0.9 * WAIT / 4; /* at most four sessions share a call's time */
    for (int i = 0; i < r->n_considered; i++) shown |= r->considered[i].drafter == k->index;
    k->shown += shown;
}

static rounds run(const char *draft, int index, int sessions) {
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, draft, sessions, 64, HUNCH_KV_DEFAULT, 64, 256);
    const hunch_token prompt[] = {1, 403, 407, 261, 378};
    hunch_session *s[4];
    rounds k = {.index = index};
    for (int i = 0; i < sessions; i++) {
        hunch_request r;
        hunch_request_defaults(&r, m);
        r.prompt = prompt;
        r.n_prompt = sizeof prompt / sizeof *prompt - (size_t)i;
        r.max_tokens = TOKENS;
        r.ignore_eos = true;
        r.sampling.temperature = 0;
        r.on_round = count_round;
        r.on_round_user = &k;
        must(hunch_session_open(&s[i], e, &r, err));
    }
    while (hunch_engine_running(e) > 0) must(hunch_engine_round(e, err));
    for (int i = 0; i < sessions; i++) hunch_session_close(&s[i]);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    return k;
}

static void test_slow_and_wrong_is_seldom_called(void **state) {
    (void)state;
    const rounds k = run("auto+forced,accept=0,depth=8,cost_us=4000", 3, 1);
    assert_true(k.n > TOKENS / 4);
    if (k.slow == 0 || k.slow > k.n / 10) fail_msg("asked in %d of %d rounds", k.slow, k.n);
    if (k.shown < k.n / 2) fail_msg("shown in %d of %d rounds", k.shown, k.n);
}

static void test_slow_and_wrong_for_several(void **state) {
    (void)state;
    const rounds k = run("auto+forced,accept=0.1,depth=8,cost_us=4000", 3, 4);
    assert_true(k.n > TOKENS / 4);
    if (k.slow == 0 || k.slow > k.n / 10) fail_msg("asked in %d of %d rounds", k.slow, k.n);
}

/* Passes of a draft model take most of its time and of drafting's; a drafter without passes has no pass time, whatever time it takes. */
static void test_passes_of_drafters(void **state) {
    (void)state;
    char draft[600];
    snprintf(draft, sizeof draft, "model:%s,depth=4", data_path("models/stories260K/stories260K.f16.gguf"));
    const rounds with = run(draft, 0, 2), without = run("forced,accept=1,depth=4,cost_us=500", 0, 2);
    assert_true(with.draft_pass_s > with.draft_s / 4);
    assert_true(without.draft_s > 0 && without.draft_pass_s == 0);
}

/* Of sixteen texts one has a certain copy of thirty tokens, the others have nothing: the copy is verified whole. With copies for all each
 * gets its part of the rows. */
static void test_rows_go_to_those_who_propose(void **state) {
    (void)state;
    enum { TEXTS = 16, COPY = 30, PART = (HN_TREE_ROWS - TEXTS) / TEXTS };
    hunch_model *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    const hunch_token prompt[] = {1, 403, 407, 261, 378};
    hunch_token copy[COPY + 1];
    for (int copies = 0; copies <= TEXTS; copies += copies ? TEXTS - 1 : 1) { /* none, one, all */
        hunch_engine *e = open_engine(m, "prediction,depth=30", TEXTS, 64, HUNCH_KV_DEFAULT, 64, 256);
        hunch_session *s[TEXTS];
        hunch_request r;
        hunch_request_defaults(&r, m);
        r.prompt = prompt;
        r.n_prompt = sizeof prompt / sizeof *prompt;
        r.max_tokens = COPY + 2;
        r.ignore_eos = true;
        r.sampling.temperature = 0;
        for (int i = 0; i < TEXTS; i++) {
            r.prediction = i < copies ? copy : NULL;
            r.n_prediction = i < copies ? COPY + 1 : 0;
            must(hunch_session_open(&s[i], e, &r, err));
        }
        must(hunch_engine_run(e, err));
        for (int i = 0; i < TEXTS; i++) {
            hunch_session_state st;
            hunch_session_get(s[i], &st);
            if (copies == 0) memcpy(copy, st.tokens, sizeof copy);
            if (i < copies) assert_int_equal(st.accepted_per_position[COPY - 1], copies == 1);
            if (i < copies) assert_true(st.accepted_per_position[PART - 1] > 0);
            hunch_session_close(&s[i]);
        }
        hunch_engine_close(&e);
    }
    hunch_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes_of_drafters), cmocka_unit_test(test_rows_go_to_those_who_propose),
                                       cmocka_unit_test(test_slow_and_wrong_is_seldom_called),
                                       cmocka_unit_test(test_slow_and_wrong_for_several)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
