/* SPDX-License-Identifier: Apache-2.0 */
/* controller_select_test.c - drafters that cost time: one that is slow, wrong or both is called seldom or never, and one that is
 * worth its time is called. In simulated time. A round's cost is given in passes of one row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "plan/simulation_for_tests.h"

static simulated slow(double a, int depth, double round) {
    simulated d = even(a, depth);
    d.round = round;
    return d;
}

/* ---- one ---- */

/* Its own estimates do not matter. The very first calls have to be made, one of which costs four passes. */
static void test_slow_and_wrong(void **state) {
    (void)state;
    static const double rounds[] = {0.02, 0.1, 0.3, 0.45, 1, 4.3};
    static const float estimates[] = {0.01f, 0.3f, 0.7f, 0.95f};
    for (int kind = 0; kind < CONTEXT; kind++)
        for (int i = 0; i < 24; i++) {
            simulated d = slow(0, DEPTH, rounds[i / 4]);
            d.estimate = estimates[i % 4];
            world *w = world_open((enum machine_kind)kind, 0.04, 1, &d, 1);
            const double first = d.round > 4 ? 0.88 : machine_experts(&w->m) > 0 ? 0.92 : 0.945; /* each row uses more experts */
            must_reach(rounds_run(w, 100), first * plain(w), "wrong, at first", kind, d.round);
            must_reach(rounds_run(w, light() ? 300 : 1000), 0.98 * plain(w), "wrong", kind, d.round);
            for (int text = 0; text < 10; text++) { /* short ones: each begins with the estimates of all texts */
                hn_controller_begin(w->c, 0);
                must_reach(rounds_run(w, 50), (d.round > 4 ? 0.88 : 0.965) * plain(w), "wrong, a short text", kind,
                           d.round);
            }
            world_close(w);
        }
}

static void test_slow_and_right(void **state) {
    (void)state;
    static const double rounds[] = {0.02, 0.1, 0.3, 0.45}, rates[] = {0.3, 0.5, 0.7, 0.9, 0.97};
    for (int kind = 0; kind < CONTEXT; kind++)
        for (int i = 0; i < 20; i++) {
            const simulated d = slow(rates[i % 5], DEPTH, rounds[i / 5]);
            double part = 0, to_plain = 0;
            for (uint64_t seed = 0; seed < 4; seed++) {
                world *w = world_open((enum machine_kind)kind, 0.04, 1, &d, 1);
                int depth;
                const double best = best_fixed(w, &d, &depth);
                w->m.random += seed << 32;
                rounds_run(w, 300);
                const double got = rounds_run(w, light() ? 400 : 1000);
                part += got / best / 4;
                to_plain += got / plain(w) / 4;
                world_close(w);
            }
            must_reach(part, 0.9, "slow, part of the best", kind, rates[i % 5] + d.round);
            must_reach(to_plain, 0.96, "slow, to plain", kind, rates[i % 5] + d.round);
        }
}

/* It takes no time, but its rows are verified whenever it is called: where they cost and bring nothing it is called seldom, and where they
 * pay always. */
static void test_rows_that_stay(void **state) {
    (void)state;
    for (int right = 0; right < 2; right++) {
        simulated d = even(right ? 0.9 : 0.02, 6);
        d.stays = true;
        world *w = world_open(COMPUTING, 0.03, 1, &d, 1);
        rounds_run(w, 100);
        const double got = rounds_run(w, 400);
        if (right)
            assert_true(w->called[0] > 350 && got > 1.2 * plain(w));
        else
            assert_true(w->called[0] < 60 && got > 0.95 * plain(w));
        world_close(w);
    }
}

/* Four candidates a row: the expected gain of the first of them alone would not pay. */
static void test_trees_gain_more_than_chains(void **state) {
    (void)state;
    simulated d = slow(0.9, 3, 0.7);
    d.width = 4;
    d.estimate = 0.9f;
    world *w = world_open(BANDWIDTH, 0.03, 1, &d, 1);
    const double first = 0.9 * share(0, 4);
    assert_true((1 + first + first * first + first * first * first) / (machine_relative(&w->m, 4, 100) + d.round) <
                plain(w));
    rounds_run(w, 300);
    must_reach(rounds_run(w, 1000), 1.02 * plain(w), "a tree", BANDWIDTH, 0.9);
    world_close(w);
}

/* Good and bad in the middle of a text. Trials find the good one again, more often if they cost less. */
static void test_turns_good(void **state) {
    (void)state;
    static const double rounds[] = {0.02, 0.1, 0.3, 0.45, 1};
    static const int within[] = {100, 150, 300, 500, 900};
    for (int kind = 0; kind < EXPENSIVE; kind++)
        for (int i = 0; i < 5; i++) {
            const simulated d = slow(0, DEPTH, rounds[i]);
            world *w = world_open((enum machine_kind)kind, 0.04, 1, &d, 1);
            int depth;
            must_reach(rounds_run(w, 500), 0.98 * plain(w), "bad", kind, d.round);
            set_rate(w, 0, 0.93);
            const double best = best_fixed(w, &w->d[0], &depth);
            rounds_run(w, within[i]);
            must_reach(rounds_run(w, 100), 0.9 * best, "turned good", kind, d.round);
            set_rate(w, 0, 0);
            rounds_run(w, 60);
            must_reach(rounds_run(w, 300), 0.96 * plain(w), "turned bad", kind, d.round);
            world_close(w);
        }
}

/* ---- its time ---- */

/* The first call touches cold memory, or reads the prompt: that does not count as its price. */
static void test_first_call_is_slow(void **state) {
    (void)state;
    simulated d = slow(0.8, DEPTH, 0.002);
    d.first = 0.6;
    world *w = world_open(BANDWIDTH, 0.04, 1, &d, 1);
    int depth;
    rounds_run(w, 5);
    must_reach(rounds_run(w, 300), 0.94 * best_fixed(w, &d, &depth), "cold", BANDWIDTH, 0.8);
    assert_int_equal(w->called[0], 300);
    world_close(w);
}

/* Nothing in most rounds and much in every fourth: that is not a cheap drafter. Nor is one that has become expensive. */
static void test_time_that_varies(void **state) {
    (void)state;
    simulated d = slow(0, DEPTH, 2);
    d.every = 4;
    world *w = world_open(BANDWIDTH, 0.04, 1, &d, 1);
    rounds_run(w, 100);
    must_reach(rounds_run(w, 1000), 0.975 * plain(w), "every fourth", BANDWIDTH, 0);
    world_close(w);
    d = slow(0, DEPTH, 0);
    w = world_open(BANDWIDTH, 0.04, 1, &d, 1);
    rounds_run(w, 300);
    assert_int_equal(w->called[0], 300);
    w->d[0].round = 1;
    rounds_run(w, 40);
    must_reach(rounds_run(w, 500), 0.975 * plain(w), "became dear", BANDWIDTH, 0);
    world_close(w);
}

/* A drafter of negligible time is called in every round, even if it is useless, and still after one slow call. */
static void test_cheap_is_always_called(void **state) {
    (void)state;
    simulated d[3] = {slow(0, 4, 0.002), slow(0, 4, 0.001), slow(0, 4, 0.5)};
    world *w = world_open(BANDWIDTH, 0.04, 1, d, 3);
    rounds_run(w, 10);
    for (int i = 0; i < 10; i++) {
        rounds_run(w, 100);
        assert_int_equal(w->called[0], 100);
        assert_int_equal(w->called[1], 100);
        assert_true(w->called[2] < 10);
        w->d[0].round = 5;
        rounds_run(w, 1);
        w->d[0].round = 0.002;
    }
    world_close(w);
}

/* After forgetting, a good drafter is found again, at once if trying it is not expensive. */
static void test_forget(void **state) {
    (void)state;
    const simulated d = slow(0.9, 8, 0.4);
    world *w = world_open(BANDWIDTH, 0.04, 1, &d, 1);
    int depth;
    const double best = best_fixed(w, &d, &depth);
    rounds_run(w, 300);
    for (int i = 0; i < 5; i++) {
        hn_controller_forget(w->c);
        rounds_run(w, 10);
        must_reach(rounds_run(w, 100), 0.9 * best, "after it was forgotten", BANDWIDTH, 0.9);
    }
    world_close(w);
}

/* ---- several drafters ---- */

static void test_two_slow_ones(void **state) {
    (void)state;
    for (int kind = 0; kind < EXPENSIVE; kind++) {
        simulated d[2] = {slow(0.9, 8, 0.3), slow(0, 8, 0.3)};
        int depth;
        d[1].estimate = 0.95f;
        world *w = world_open((enum machine_kind)kind, 0.04, 1, d, 2);
        double best = best_fixed(w, &d[0], &depth);
        rounds_run(w, 300);
        must_reach(rounds_run(w, 2000), 0.95 * best, "right and wrong", kind, 0.9);
        assert_true(w->called[1] < 100);
        world_close(w);
        d[1] = slow(0.9, 8, 0.6); /* the same results in twice the time */
        w = world_open((enum machine_kind)kind, 0.04, 1, d, 2);
        best = best_fixed(w, &d[0], &depth);
        rounds_run(w, 300);
        must_reach(rounds_run(w, 2000), 0.93 * best, "both right", kind, 0.9);
        world_close(w);
        d[0] = slow(0, 8, 0.5);
        d[1] = slow(0, 8, 1.5);
        w = world_open((enum machine_kind)kind, 0.04, 1, d, 2);
        rounds_run(w, 100);
        must_reach(rounds_run(w, 2000), 0.98 * plain(w), "both wrong", kind, 0);
        world_close(w);
    }
}

/* A drafter that costs nothing and is always right makes a slow one unnecessary; beside one that is seldom right it is called. */
static void test_beside_a_cheap_one(void **state) {
    (void)state;
    simulated d[2] = {slow(0.95, DEPTH, 0.001), slow(0.95, DEPTH, 0.4)};
    world *w = world_open(BANDWIDTH, 0.04, 1, d, 2);
    rounds_run(w, 300);
    rounds_run(w, 1000);
    assert_true(w->called[1] < 100);
    set_rate(w, 0, 0.1);
    rounds_run(w, 600);
    rounds_run(w, 500);
    assert_true(w->called[1] > 450);
    world_close(w);
}

/* A slow one of each kind, both useless; then the one that is decided on level by level becomes good. */
static void test_beside_one_that_steps(void **state) {
    (void)state;
    simulated d[2] = {slow(0, 8, 0.5), even(0, 8)};
    d[1].kind = HN_COST_PER_LEVEL;
    d[1].step = 0.2;
    world *w = world_open(BANDWIDTH, 0.04, 1, d, 2);
    rounds_run(w, 100);
    must_reach(rounds_run(w, 2000), 0.98 * plain(w), "both wrong", BANDWIDTH, 0);
    hn_controller_begin(w->c, 0);
    set_rate(w, 1, 0.9);
    rounds_run(w, 500);
    int depth;
    must_reach(rounds_run(w, 1000), 0.93 * best_fixed(w, &w->d[1], &depth), "one right", BANDWIDTH, 0.9);
    world_close(w);
}

/* All levels come out of one call, and fewer cost less: as many are drafted as are of use, and more again if the text becomes easier. */
static void test_fewer_levels(void **state) {
    (void)state;
    static const double rates[] = {0.3, 0.6, 0.95, 0.5};
    simulated d = even(rates[0], DEPTH);
    d.round = 0.05;
    d.step = 0.05;
    d.shorter = true;
    world *w = world_open(BANDWIDTH, 0.04, 1, &d, 1);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        int depth = 0;
        set_rate(w, 0, rates[i]);
        rounds_run(w, 400);
        const double got = rounds_run(w, 1000), each = w->levels / w->called[0];
        must_reach(got, 0.88 * best_fixed(w, &w->d[0], &depth), "levels that pay", BANDWIDTH, rates[i]);
        if (rates[i] < 0.7 && !(each < 0.6 * DEPTH)) fail_msg("a %g: %g levels a call, %d pay", rates[i], each, depth);
        if (rates[i] > 0.9 && !(each > 0.8 * depth)) fail_msg("a %g: %g levels a call, %d pay", rates[i], each, depth);
    }
    world_close(w);
}

/* ---- several sequences ---- */

static double best_even(const world *w, const simulated *d) {
    double best = 0;
    for (int k = 0; k <= d->depth; k++)
        best =
            fmax(best, SEQS * expected(d, 0, k) / (machine_relative(&w->m, SEQS * (k + 1), 100) + (k ? d->round : 0)));
    return best;
}

static void test_slow_for_several(void **state) {
    (void)state;
    static const double rounds[] = {0.1, 0.45, 1, 4.3};
    for (int kind = 0; kind < CONTEXT; kind++)
        for (int i = 0; i < 8; i++) {
            const simulated d = slow(i % 2 ? 0.85 : 0, 6, rounds[i / 2]);
            world *w = world_open((enum machine_kind)kind, 0.04, SEQS, &d, 1);
            rounds_run(w, 300);
            const double got = rounds_run(w, 1000);
            must_reach(got, 0.975 * plain(w), "four, to plain", kind, d.round);
            if (d.round < 4) must_reach(got, 0.9 * best_even(w, &d), "four", kind, d.round);
            world_close(w);
        }
}

/* ---- reading before drafting ---- */

/* A draft model that is of no use: it reads the first text and no more. */
static void test_reading_is_paid_for(void **state) {
    (void)state;
    simulated d = even(0, 8);
    d.kind = HN_COST_PER_LEVEL;
    d.step = 0.2;
    d.read = 0.05; /* 10 passes for a prompt */
    world *w = world_open(BANDWIDTH, 0.04, 1, &d, 1);
    w->unread[0] = 200;
    rounds_run(w, 100);
    for (int text = 0; text < 10; text++) {
        hn_controller_begin(w->c, 0);
        w->unread[0] = 200;
        must_reach(rounds_run(w, 60), 0.97 * plain(w), "a text that it had to read", BANDWIDTH, 0);
    }
    set_rate(w, 0, 0.9); /* and once it becomes good it reads again, when the account pays for one prompt */
    for (int text = 0; text < 50; text++) {
        hn_controller_begin(w->c, 0);
        w->unread[0] = 200;
        rounds_run(w, 60);
    }
    int depth;
    must_reach(rounds_run(w, 500), 0.93 * best_fixed(w, &w->d[0], &depth), "good now", BANDWIDTH, 0.9);
    world_close(w);
}

/* ---- by history, and the report ---- */

/* By history no drawn candidate decides which other drafters are called. */
static void test_by_history_is_blind(void **state) {
    (void)state;
    int called[2] = {0};
    for (int k = 0; k < 2; k++) {
        simulated d[2] = {slow(0.7, 6, 0.1), slow(0.6, 6, 0.15)};
        d[0].drawn = d[1].drawn = true;
        world *w = world_open(BANDWIDTH, 0, 1, d, 2);
        w->by_history = true;
        rounds_run(w, 100);
        w->d[0].estimate = k ? 0.999f : 0.001f;
        rounds_run(w, 1);
        called[k] = w->called[0] + 10 * w->called[1];
        world_close(w);
    }
    assert_int_equal(called[0], called[1]);
    assert_true(called[0] > 0);
}

static void test_shown_whether_called_or_not(void **state) {
    (void)state;
    simulated d[2] = {slow(0, 4, 0.001), slow(0, 6, 0.5)};
    world *w = world_open(BANDWIDTH, 0.02, 1, d, 2);
    rounds_run(w, 200);
    int shown = 0;
    for (int r = 0; r < 100; r++) {
        const hunch_choice *list;
        int chosen;
        hunch_reason reason;
        call_all(w);
        hn_controller_prune(w->c, w->plan, 1, false);
        const int n = hn_controller_considered(w->c, 0, &list, &chosen, &reason);
        for (int k = 0; k < n; k++) {
            if (list[k].drafter != 1) continue;
            shown++;
            assert_true(list[k].rows >= 1 && list[k].expected >= 1 && list[k].expected < 1.5);
            assert_true(list[k].seconds > 1.3 * list[0].seconds);
        }
        verify(w);
    }
    assert_true(shown > 90);
    world_close(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_and_wrong),
        cmocka_unit_test(test_slow_and_right),
        cmocka_unit_test(test_rows_that_stay),
        cmocka_unit_test(test_trees_gain_more_than_chains),
        cmocka_unit_test(test_turns_good),
        cmocka_unit_test(test_first_call_is_slow),
        cmocka_unit_test(test_time_that_varies),
        cmocka_unit_test(test_cheap_is_always_called),
        cmocka_unit_test(test_forget),
        cmocka_unit_test(test_two_slow_ones),
        cmocka_unit_test(test_beside_a_cheap_one),
        cmocka_unit_test(test_beside_one_that_steps),
        cmocka_unit_test(test_fewer_levels),
        cmocka_unit_test(test_slow_for_several),
        cmocka_unit_test(test_reading_is_paid_for),
        cmocka_unit_test(test_by_history_is_blind),
        cmocka_unit_test(test_shown_whether_called_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
