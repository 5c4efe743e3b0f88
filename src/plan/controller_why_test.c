/* SPDX-License-Identifier: Apache-2.0 */
/* controller_why_test.c - what is said of a round's choice: where another alternative has better numbers there is a reason, and each reason
 * is true of the rounds that have it. In simulated time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "plan/controller_private.h"
#include "plan/simulation_for_tests.h"

enum { REASONS = HUNCH_REASON_UNCERTAIN + 1 };

typedef struct said {
    const hunch_choice *list;
    int n, chosen, best; /* best: by its numbers */
    hunch_reason reason;
} said;

static double speed(const hunch_choice *c) {
    return c->expected / c->seconds;
}

static said said_of(const world *w, int text) {
    said x = {0};
    x.n = hn_controller_considered(w->c, text, &x.list, &x.chosen, &x.reason);
    x.best = x.chosen;
    for (int k = 0; k < x.n; k++)
        if (speed(&x.list[k]) > speed(&x.list[x.best])) x.best = k;
    return x;
}

static bool any_called(const world *w, hn_plan_why why) {
    for (int d = 0; d < w->n_drafters; d++)
        if (w->c->drafter[d].why == why) return true;
    return false;
}

static void must_be_true(const world *w, said x) {
    const hunch_choice *chosen = &x.list[x.chosen], *best = &x.list[x.best];
    switch (x.reason) {
    case HUNCH_REASON_TRIED: assert_true(any_called(w, HN_CALLED_TRIED) && (w->n_seqs > 1 || chosen->rows > 0)); break;
    case HUNCH_REASON_DRAFTED: assert_true(any_called(w, HN_CALLED_WORTH) || any_called(w, HN_CALLED_TRIED)); break;
    case HUNCH_REASON_DRAWN: assert_true(w->by_history); break;
    case HUNCH_REASON_MEASURED: assert_true(chosen->rows == 0 && w->c->since_plain == 0); break;
    case HUNCH_REASON_TEXTS: assert_true(w->n_seqs > 1); break;
    case HUNCH_REASON_NEAR: assert_true(w->n_seqs > 1 || speed(best) < 1.04 * speed(chosen)); break;
    case HUNCH_REASON_UNCERTAIN: {
        bool uncertain = false;
        for (int r = 1; r <= HN_COST_ROWS; r++) uncertain |= w->c->optimistic[r] < 0.99 * w->c->seconds[r];
        assert_true(uncertain);
        break;
    }
    case HUNCH_REASON_NUMBERS: fail_msg("no reason");
    }
}

static void rounds_read(world *w, int rounds, int count[REASONS]) {
    for (int r = 0; r < rounds; r++) {
        if (r % 60 == 0)
            for (int i = 0; i < w->n_seqs; i++) hn_controller_begin(w->c, i);
        call_all(w);
        hn_controller_prune(w->c, w->plan, w->n_seqs, w->by_history);
        for (int i = 0; i < w->n_seqs; i++) {
            const said x = said_of(w, i);
            assert_true(x.n > 0);
            count[x.reason]++;
            if (x.best == x.chosen)
                assert_int_equal(x.reason, HUNCH_REASON_NUMBERS);
            else
                must_be_true(w, x);
        }
        verify(w);
    }
}

static void test_each_choice_is_the_best_or_has_a_reason(void **state) {
    (void)state;
    int count[REASONS] = {0};
    simulated d[DRAFTERS] = {even(0.5, 6), even(0.6, 4), even(0.8, 8)};
    d[0].knows = true;
    d[1].round = 0.2;
    d[1].knows = true;
    d[1].drawn = true;
    d[2].kind = HN_COST_PER_LEVEL;
    d[2].step = 0.35;
    d[2].first = 3;
    for (int kind = 0; kind < MACHINES; kind++)
        for (int n = 1; n <= 3; n++)
            for (int by_history = 0; by_history < 2; by_history++) {
                world *w = world_open((enum machine_kind)kind, 0.05, n, d, DRAFTERS);
                w->by_history = by_history;
                rounds_read(w, 200, count);
                world_close(w);
            }
    for (int reason = 0; reason < REASONS; reason++)
        if (count[reason] == 0) fail_msg("no round has reason %d", reason);
}

/* A drafter that costs half a pass, and is always wrong, beside one that is free and often right: whenever it is called it was tried, and
 * the free one alone would have been better. */
static void test_a_trial_is_named(void **state) {
    (void)state;
    simulated d[2] = {even(0.8, 4), even(0, 4)};
    d[1].round = 0.5;
    world *w = world_open(BANDWIDTH, 0.02, 1, d, 2);
    int tried = 0;
    for (int r = 0; r < 600; r++) {
        const int before = w->calls[1];
        call_all(w);
        hn_controller_prune(w->c, w->plan, 1, false);
        const said x = said_of(w, 0);
        if (r > 100 && w->calls[1] > before && x.list[x.chosen].rows > 0) {
            assert_int_equal(x.reason, HUNCH_REASON_TRIED);
            tried++;
        }
        verify(w);
    }
    assert_true(tried >= 3);
    world_close(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_choice_is_the_best_or_has_a_reason),
        cmocka_unit_test(test_a_trial_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
