/* SPDX-License-Identifier: Apache-2.0 */
/* controller_test.c - `auto` on simulated texts and machines, all in simulated time: the selection is the best one of all
 * selections; it stays; near the best fixed choice in the long run, never below plain decoding by more than the cost of trials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/fault.h"
#include "fixture.h"
#include "plan/simulation_for_tests.h"

/* ---- the long run ---- */

enum { SEEDS = 6 };

static void near_the_best(enum machine_kind kind, double a, int rounds, double least) {
    const simulated d = even(a, DEPTH);
    double mean = 0, to_plain = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world *w = world_open(kind, 0.05, 1, &d, 1);
        w->m.random += seed << 32;
        int depth = 0;
        const double best = best_fixed(w, &d, &depth);
        rounds_run(w, 200);
        const double got = rounds_run(w, rounds);
        mean += got / best / SEEDS;
        to_plain += got / plain(w) / SEEDS;
        const bool clearly = depth == 0 && expected(&d, 0, 1) / machine_relative(&w->m, 2, 100) < 0.95;
        if (clearly && !light() && w->drafted > 0.3 * rounds)
            fail_msg("machine %d, a %g: %g rows drafted", kind, a, w->drafted);
        world_close(w);
    }
    must_reach(mean, least, "part of the best", kind, a);
    must_reach(to_plain, light() ? 0.95 : 0.98, "to plain", kind, a);
}

/* README: "Where nothing can be guessed `auto` falls back to plain decoding; where much can be, it comes near the best
 * fixed depth." */
static void test_near_the_best_fixed_depth(void **state) {
    (void)state;
    static const double rates[] = {0, 0.05, 0.15, 0.4, 0.6, 0.8, 0.88, 0.97};
    for (int kind = 0; kind < CONTEXT; kind++)
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
            near_the_best((enum machine_kind)kind, rates[i], light() ? 200 : 1000, light() ? 0.94 : 0.97);
}

/* Of a mixture of experts whose rows choose alike: many rows use fewer experts than two of them suggest. */
static void test_near_the_best_where_rows_choose_alike(void **state) {
    (void)state;
    static const double rates[] = {0.4, 0.7, 0.8, 0.9};
    for (int kind = FINE128; kind <= FINE256; kind++)
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
            const simulated d = even(rates[i], DEPTH);
            double mean = 0;
            for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                int depth;
                world *w = world_open((enum machine_kind)kind, 0.05, 1, &d, 1);
                w->m.random += seed << 32;
                w->m.alike = 0.4;
                const double best = best_fixed(w, &d, &depth);
                rounds_run(w, 100);
                mean += rounds_run(w, 300) / best / SEEDS;
                world_close(w);
            }
            must_reach(mean, 0.96, "part of the best", kind, rates[i]);
        }
}

/* Speed that jumps by tens of percent every few hundred passes. */
static void test_a_machine_that_drifts(void **state) {
    (void)state;
    for (int kind = 0; kind < CONTEXT; kind++) {
        const simulated d = even(0.7, DEPTH);
        world *w = world_open((enum machine_kind)kind, 0.05, 1, &d, 1);
        int depth;
        double tokens = 0, seconds = 0;
        const double best = best_fixed(w, &d, &depth);
        for (int i = 0; i < 20; i++) {
            w->m.speed = 0.006 + 0.008 * machine_uniform(&w->m);
            rounds_run(w, 150);
            tokens += w->tokens;
            seconds += w->seconds;
        }
        must_reach(tokens / seconds, 0.93 * best, "drift", kind, 0.7);
        world_close(w);
    }
}

/* Rows become more expensive as the context grows. */
static void test_context_grows(void **state) {
    (void)state;
    const simulated d = even(0.7, DEPTH);
    world *w = world_open(CONTEXT, 0.03, 1, &d, 1);
    double ideal = 0, tokens = 0, seconds = 0;
    for (int i = 0; i < 300; i++) {
        int depth;
        w->context = 50 + 40 * i;
        rounds_run(w, 10);
        tokens += w->tokens;
        seconds += w->seconds;
        ideal += w->tokens / best_fixed(w, &d, &depth);
    }
    must_reach(tokens / seconds, 0.95 * tokens / ideal, "context", CONTEXT, 0.7);
    world_close(w);
}

/* A drafter that turns bad in the middle of a text, and good again. */
static void test_turns_bad_and_good(void **state) {
    (void)state;
    for (int kind = 0; kind < CONTEXT; kind++) {
        const simulated d = even(0.9, DEPTH);
        world *w = world_open((enum machine_kind)kind, 0.04, 1, &d, 1);
        int depth;
        const double best = best_fixed(w, &d, &depth);
        rounds_run(w, 300);
        set_rate(w, 0, 0);
        must_reach(rounds_run(w, 400), 0.94 * plain(w), "turned bad", kind, 0);
        must_reach(rounds_run(w, 1000), 0.99 * plain(w), "stays bad", kind, 0);
        set_rate(w, 0, 0.9);
        rounds_run(w, 100);
        must_reach(rounds_run(w, 300), 0.93 * best, "good again", kind, 0.9);
        world_close(w);
    }
}

/* A cold start into a short text where every draft is wrong, of two drafters with high estimates (contract C5). */
/* README: "Where nothing can be guessed `auto` falls back to plain decoding; where much can be, it comes near the best
 * fixed depth." */
static void test_nothing_can_be_guessed(void **state) {
    (void)state;
    for (int kind = 0; kind < CONTEXT; kind++) {
        simulated d[2] = {even(0, DEPTH), even(0, 4)};
        d[0].estimate = 0.9f;
        world *w = world_open((enum machine_kind)kind, 0.05, 1, d, 2);
        must_reach(rounds_run(w, 200), 0.975 * plain(w), "wrong", kind, 0);
        hn_controller_begin(w->c, 0);
        must_reach(rounds_run(w, 200), 0.99 * plain(w), "wrong, second text", kind, 0);
        world_close(w);
    }
}

/* ---- the best choice, and that it stays ---- */

static void test_does_not_oscillate(void **state) {
    (void)state;
    static const double rates[] = {0.1, 0.5, 0.9};
    for (int kind = 0; kind < CONTEXT; kind++)
        for (int i = 0; i < 3; i++) {
            const simulated d = even(rates[i], 8);
            world *w = world_open((enum machine_kind)kind, 0.03, 1, &d, 1);
            int depth, same = 0, seen[DEPTH + 1] = {0};
            double mean = 0;
            const double best = best_fixed(w, &d, &depth);
            rounds_run(w, 600);
            for (int r = 0; r < 400; r++) {
                rounds_run(w, 1);
                const int rows = w->tree[0].n_rows;
                seen[rows - 1]++;
                mean += expected(&d, 0, rows - 1) / machine_relative(&w->m, rows, 100) / best / 400;
            }
            for (int k = 0; k <= DEPTH; k++) same = seen[k] > same ? seen[k] : same;
            if (mean < 0.97 || same < 120)
                fail_msg("machine %d, a %g: choices worth %g of the best (depth %d), one depth in %d of 400 rounds",
                         kind, rates[i], mean, depth, same);
            world_close(w);
        }
}

/* However good drafts are, the time of plain decoding is measured now and then. */
static void test_plain_is_seen_again(void **state) {
    (void)state;
    const simulated d = even(0.7, 8);
    world *w = world_open(TILES, 0.03, 1, &d, 1);
    int plain_rounds = 0;
    rounds_run(w, 200);
    for (int r = 0; r < 2000; r++) {
        rounds_run(w, 1);
        plain_rounds += w->tree[0].n_rows == 1;
    }
    assert_in_range(plain_rounds, 4, 20); /* of 2000, at a gain of 130 % */
    world_close(w);
}

/* ---- several sequences ---- */

static double best_depths(const world *w, const simulated *d) {
    double best = 0;
    int k[SEQS] = {0};
    for (int code = 0; code < 7 * 7 * 7 * 7; code++) {
        double e = 0;
        int rows = SEQS, rest = code;
        for (int i = 0; i < SEQS; i++, rest /= 7) {
            k[i] = rest % 7;
            rows += k[i];
            e += expected(d, i, k[i]);
        }
        best = fmax(best, e / machine_relative(&w->m, rows, w->context));
    }
    return best;
}

static void test_rows_go_where_they_pay(void **state) {
    (void)state;
    static const double rates[SEQS] = {0.9, 0.6, 0.2, 0};
    for (int kind = 0; kind < CONTEXT; kind++) {
        simulated d = even(0, 6);
        for (int i = 0; i < SEQS; i++)
            for (int k = 1; k <= DEPTH; k++) d.a[i][k] = rates[i];
        world *w = world_open((enum machine_kind)kind, 0.04, SEQS, &d, 1);
        rounds_run(w, 300);
        const double got = rounds_run(w, light() ? 300 : 2000);
        must_reach(got, (light() ? 0.92 : 0.945) * best_depths(w, &d), "four sequences", kind, 0.9);
        world_close(w);
    }
}

/* ---- drafters that step ---- */

static void test_stepping_drafter(void **state) {
    (void)state;
    static const double rates[] = {0, 0.3, 0.6, 0.8, 0.95}, steps[] = {0.05, 0.2, 0.6};
    for (int kind = 0; kind < CONTEXT; kind++)
        for (int i = 0; i < 15; i += light() ? 4 : 1) {
            simulated d = even(rates[i % 5], DEPTH);
            d.kind = HN_COST_PER_LEVEL;
            d.step = steps[i / 5];
            world *w = world_open((enum machine_kind)kind, 0.04, 1, &d, 1);
            int depth;
            const double best = best_fixed(w, &d, &depth);
            rounds_run(w, 300);
            const double got = rounds_run(w, 2000);
            must_reach(got, 0.94 * best, "stepping", kind, rates[i % 5] + d.step);
            must_reach(got, 0.975 * plain(w), "stepping, plain", kind, rates[i % 5] + d.step);
            world_close(w);
        }
}

/* A stepping drafter that is useless costs its allowance, in the first text too, and is found again when it helps. */
static void test_allowance(void **state) {
    (void)state;
    simulated d = even(0, DEPTH);
    d.kind = HN_COST_PER_LEVEL;
    d.step = 0.3;
    world *w = world_open(BANDWIDTH, 0.04, 1, &d, 1);
    rounds_run(w, 100);
    must_reach(rounds_run(w, 3000), 0.985 * plain(w), "useless", BANDWIDTH, 0);
    assert_true(w->levels > 10); /* it was tried */
    hn_controller_begin(w->c, 0);
    set_rate(w, 0, 0.9);
    int depth;
    rounds_run(w, 300);
    must_reach(rounds_run(w, 1000), 0.95 * best_fixed(w, &w->d[0], &depth), "useful now", BANDWIDTH, 0.9);
    world_close(w);
}

/* A drafter whose estimates tell when it guesses does better than any fixed depth: it is stopped there. */
static void test_estimates_stop_a_stepping_drafter(void **state) {
    (void)state;
    simulated d = even(0.7, DEPTH);
    d.kind = HN_COST_PER_LEVEL;
    d.knows = true;
    d.step = 0.25;
    world *w = world_open(BANDWIDTH, 0.03, 1, &d, 1);
    int depth;
    simulated mean = even(0.7 / 2 + 0.25, DEPTH);
    mean.kind = HN_COST_PER_LEVEL;
    mean.step = d.step;
    const double best = best_fixed(w, &mean, &depth);
    rounds_run(w, 300);
    must_reach(rounds_run(w, light() ? 1000 : 6000), (light() ? 0.98 : 1.015) * best, "knows", BANDWIDTH, 0.7);
    world_close(w);
}

static void test_stepping_for_several(void **state) {
    (void)state;
    for (int kind = 0; kind < CONTEXT; kind++) {
        simulated d = even(0.85, 8);
        d.kind = HN_COST_PER_LEVEL;
        d.step = 0.05;
        world *w = world_open((enum machine_kind)kind, 0.03, SEQS, &d, 1);
        double best = 0;
        for (int k = 0; k <= 8; k++)
            best = fmax(best,
                        SEQS * expected(&d, 0, k) / (machine_relative(&w->m, SEQS * (k + 1), 100) + SEQS * k * d.step));
        rounds_run(w, 300);
        must_reach(rounds_run(w, 1000), 0.95 * best, "stepping for four", kind, 0.85);
        world_close(w);
    }
}

/* A drafter that never proposes anything is given up, whatever it costs. */
static void test_silent_drafter(void **state) {
    (void)state;
    simulated d = even(0, DEPTH);
    d.kind = HN_COST_PER_LEVEL;
    d.silent = true;
    world *w = world_open(BANDWIDTH, 0.03, 1, &d, 1);
    int chosen = 0;
    for (int r = 0; r < 500; r++) {
        trees_reset(w);
        const int called = hn_controller_choose(w->c, w->plan, 1, false);
        if (called >= 0) hn_controller_took(w->c, called, 1, 0, 0, 0.3 * machine_pass(&w->m, 1, 100));
        chosen += called >= 0;
        hn_controller_prune(w->c, w->plan, 1, false);
        verify(w);
    }
    assert_true(chosen > 0 && chosen < 20);
    world_close(w);
}

/* Catching up after a pause is charged too, and its cost is known before the next one. */
static void test_allowance_counts_catching_up(void **state) {
    (void)state;
    simulated d = even(0, DEPTH);
    d.kind = HN_COST_PER_LEVEL;
    d.step = 0.1;
    d.read = 0.005;
    world *w = world_open(BANDWIDTH, 0, 1, &d, 1);
    rounds_run(w, 50);
    double spent = 0;
    for (int r = 0; r < 2000; r++) {
        w->unread[0] = 100; /* half a pass */
        trees_reset(w);
        const int chosen = hn_controller_choose(w->c, w->plan, 1, false);
        if (chosen >= 0 && hn_controller_go_on(w->c, w->plan, 1, chosen, 0, false)) {
            propose(w, 0, chosen, 0);
            hn_controller_took(w->c, chosen, 1, 0, 1, 0.6 * machine_pass(&w->m, 1, 100));
            spent += 0.6;
        }
        hn_controller_prune(w->c, w->plan, 1, false);
        verify(w);
    }
    assert_true(spent > 5 && spent < 0.012 * 2000 + 1);
    world_close(w);
}

/* A drafter that costs nothing and is always right makes a stepping drafter unnecessary. */
static void test_free_drafts_first(void **state) {
    (void)state;
    simulated d[2] = {even(0.95, DEPTH), even(0.95, DEPTH)};
    d[1].kind = HN_COST_PER_LEVEL;
    d[1].step = 0.2;
    world *w = world_open(BANDWIDTH, 0.04, 1, d, 2);
    rounds_run(w, 300);
    rounds_run(w, 1000);
    assert_true(w->levels < 100);
    set_rate(w, 0, 0.1);
    rounds_run(w, 300);
    rounds_run(w, 500);
    assert_true(w->levels > 1000);
    world_close(w);
}

/* ---- by history ---- */

static void test_drawn_candidates_stay(void **state) {
    (void)state;
    simulated d[2] = {even(0, 4), even(0.5, DEPTH)}; /* the first is one-hot, useless, may go */
    d[1].kind = HN_COST_PER_LEVEL;
    d[1].step = 0.01;
    world *w = world_open(TILES, 0.02, 2, d, 2);
    w->by_history = true;
    int drawn = 0;
    for (int r = 0; r < 300; r++) {
        int before = 0, after = 0;
        call_all(w);
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < w->tree[i].n_candidates; k++) before += w->tree[i].candidate[k].q != NULL;
        hn_controller_prune(w->c, w->plan, 2, true);
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < w->tree[i].n_candidates; k++) after += w->tree[i].candidate[k].q != NULL;
        assert_int_equal(before, after);
        drawn += after;
        verify(w);
        if (r > 200) assert_true(w->tree[0].n_candidates < 4 + 12);
    }
    assert_true(drawn > 100);
    world_close(w);
}

/* By history no drawn candidate decides: other estimates, the same decisions. */
static void test_by_history_is_blind(void **state) {
    (void)state;
    int levels[2] = {0};
    for (int k = 0; k < 2; k++) {
        simulated d = even(0.8, DEPTH);
        d.kind = HN_COST_PER_LEVEL;
        d.step = 0.1;
        world *w = world_open(BANDWIDTH, 0, 1, &d, 1);
        w->by_history = true;
        rounds_run(w, 50);
        w->d[0].estimate = k ? 0.999f : 0.001f;
        rounds_run(w, 1);
        levels[k] = (int)w->levels;
        world_close(w);
    }
    assert_int_equal(levels[0], levels[1]);
    assert_true(levels[0] > 1);
}

/* ---- the selection is the best one ---- */

typedef struct shape {
    double reach[HN_TREE_ROWS];
    hn_tree tree;
} shape;

static void random_tree(shape *t, machine *m, int rows) {
    hn_tree_reset(&t->tree, 0, HN_TREE_ROWS);
    t->reach[0] = 1;
    for (int r = 1; r < rows; r++) {
        const int parent = (int)(r * machine_uniform(m));
        const float e = (float)(0.05 + 0.9 * machine_uniform(m));
        const int row = hn_tree_add(&t->tree, parent, r, 0, e);
        t->reach[row] = t->reach[parent] * (double)e;
        if (machine_uniform(m) < 0.2) hn_tree_add(&t->tree, parent, r, 1, 0.5f * e); /* the likelier candidate counts */
    }
}

/* All connected choices of rows of three small trees. best[k]: the largest sum of k rows. */
static void exhaust(const shape *t, int n, int rows, double *best) {
    const int bits = n * (rows - 1);
    for (int code = 0; code < 1 << bits; code++) {
        double sum = 0;
        int count = 0;
        bool connected = true;
        for (int b = 0; b < bits && connected; b++) {
            if (!(code >> b & 1)) continue;
            const int i = b / (rows - 1), row = 1 + b % (rows - 1), parent = t[i].tree.parent[row];
            connected = parent == 0 || code >> (i * (rows - 1) + parent - 1) & 1;
            sum += t[i].reach[row];
            count++;
        }
        if (connected) best[count] = fmax(best[count], sum);
    }
}

static void test_equals_exhaustive_search(void **state) {
    (void)state;
    machine m = machine_make(TILES, 0, 7);
    for (int test = 0; test < (light() ? 30 : 200); test++) {
        enum { MOST = 16 };
        const hn_draft_cost kinds[2] = {HN_COST_PER_ROUND};
        const int n = 1 + test % 3, rows = n == 1 ? 9 : n == 2 ? 6 : 5; /* at most 12 drafted */
        hn_controller *c;
        shape t[3];
        hn_plan_seq s[3];
        double best[MOST + 1] = {0}, value = 0, gain = 0;
        int kept = 0;
        m.kind = (enum machine_kind)(test % CONTEXT);
        must(hn_controller_open(&c, kinds, 2, 3, err));
        for (int k = 0; k < 400; k++)
            for (int r = 1; r <= 16; r++) record_pass(hn_controller_cost(c), r, 0, machine_pass(&m, r, 0));
        for (int i = 0; i < n; i++) {
            random_tree(&t[i], &m, rows);
            s[i] = (hn_plan_seq){i, 0, &t[i].tree, 10, 0, 0};
        }
        exhaust(t, n, rows, best);
        hn_controller_start(c, s, n, &(hn_plan_round){.rows = HN_TREE_ROWS, .behind = (const int[2]){0}});
        shape before[3];
        memcpy(before, t, sizeof t);
        hn_controller_prune(c, s, n, false);
        for (int i = 0; i < n; i++)
            for (int r = 1; r < t[i].tree.n_rows; r++) {
                gain += before[i].reach[t[i].tree.token[r]]; /* tokens are the old rows */
                kept++;
            }
        for (int k = 0; k <= n * (rows - 1); k++) value = fmax(value, (n + best[k]) / machine_relative(&m, n + k, 0));
        assert_true(fabs(gain - best[kept]) < 1e-5); /* the best of that many rows */
        if ((n + gain) / machine_relative(&m, n + kept, 0) < 0.98 * value)
            fail_msg("test %d: %d rows give %g, the best choice %g", test, kept,
                     (n + gain) / machine_relative(&m, n + kept, 0), value);
        hn_controller_close(&c);
    }
}

/* ---- what was considered ---- */

static void test_considered(void **state) {
    (void)state;
    simulated d[3] = {even(0.8, 6), even(0.3, 3), even(0.5, 5)};
    d[2].kind = HN_COST_PER_LEVEL;
    d[2].step = 0.4;
    world *w = world_open(BANDWIDTH, 0.02, 2, d, 3);
    const hunch_choice *list;
    int chosen, mixed = 0;
    hunch_reason reason;
    assert_int_equal(hn_controller_considered(w->c, 0, &list, &chosen, &reason), 0);
    for (int r = 0; r < 300; r++) {
        call_all(w);
        hn_controller_prune(w->c, w->plan, 2, false);
        for (int i = 0; i < 2; i++) {
            const int n = hn_controller_considered(w->c, i, &list, &chosen, &reason);
            assert_true(n >= 1 && chosen >= 0 && chosen < n);
            assert_true(list[0].drafter == -1 && list[0].rows == 0 && list[0].expected == 1);
            assert_int_equal(list[chosen].rows, w->tree[i].n_rows - 1);
            assert_int_equal(list[chosen].depth, hn_tree_depth(&w->tree[i]));
            mixed += list[chosen].drafter == -2;
            for (int k = 0; k < n; k++) {
                assert_true(isfinite(list[k].seconds) && list[k].seconds > 0 && list[k].drafter >= -2 &&
                            list[k].drafter < 3);
                assert_true(list[k].expected >= 1 && list[k].expected <= 1 + list[k].rows);
                assert_true(list[k].seconds >= list[0].seconds * 0.9);
            }
        }
        verify(w);
    }
    assert_true(mixed > 10);
    assert_int_equal(hn_controller_considered(w->c, 2, &list, &chosen, &reason), 0);
    world_close(w);
}

/* ---- learning from what was cut off ---- */

static void test_what_is_cut_off_teaches(void **state) {
    (void)state;
    simulated d = even(0, 3);
    world *w = world_open(EXPENSIVE, 0.02, 1, &d, 1); /* 0.9 of a pass a row: nothing of estimate 0.7 is verified */
    rounds_run(w, 50);
    assert_true(w->drafted == 0);
    set_rate(w, 0, 1);
    rounds_run(w, 150);
    assert_true(w->drafted > 0); /* the cut candidates were learned from */
    world_close(w);
}

static void test_nothing_known_nothing_cut(void **state) {
    (void)state;
    const hn_draft_cost kinds[1] = {HN_COST_PER_LEVEL};
    hn_controller *c;
    hn_tree t;
    hn_plan_seq s = {0, 10, &t, 5, 0, 0};
    const hunch_choice *list;
    int chosen;
    hunch_reason reason;
    must(hn_controller_open(&c, kinds, 1, 1, err));
    hn_tree_reset(&t, 5, 8);
    hn_tree_add(&t, 0, 6, 0, 0.001f);
    hn_controller_start(c, &s, 1, &(hn_plan_round){.rows = HN_TREE_ROWS, .behind = (const int[1]){0}});
    assert_int_equal(hn_controller_choose(c, &s, 1, false), -1);
    hn_controller_prune(c, &s, 1, false);
    assert_int_equal(t.n_rows, 2);
    assert_int_equal(hn_controller_considered(c, 0, &list, &chosen, &reason), 0);
    hn_controller_close(&c);
    hn_controller_close(&c);
}

static void test_open_fails(void **state) {
    (void)state;
    const hn_draft_cost kinds[HN_ACCEPT_DRAFTERS + 1] = {HN_COST_PER_ROUND};
    hunch_error e = {0};
    hn_controller *c;
    assert_int_equal(hn_controller_open(&c, kinds, HN_ACCEPT_DRAFTERS + 1, 2, &e), HUNCH_USAGE);
    assert_null(c);
    hn_fault_arm(HN_FAULT_ALLOC, INT64_MAX, false);
    must(hn_controller_open(&c, kinds, 2, 2, err));
    const int n = (int)hn_fault_count(HN_FAULT_ALLOC);
    hn_controller_close(&c);
    assert_true(n >= 2);
    for (int i = 0; i < n; i++) {
        hn_fault_arm(HN_FAULT_ALLOC, i, false);
        assert_int_equal(hn_controller_open(&c, kinds, 2, 2, &e), HUNCH_NO_MEMORY);
        assert_null(c);
    }
    hn_fault_arm(HN_FAULT_ALLOC, -1, false);
}

/* Estimates are dropped, costs stay. */
static void test_forget(void **state) {
    (void)state;
    simulated d = even(0, 6);
    world *w = world_open(BANDWIDTH, 0.02, 1, &d, 1);
    rounds_run(w, 200);
    const double cost = pass_cost(hn_controller_cost(w->c), 8, 100);
    rounds_run(w, 1);
    assert_true(w->drafted == 0);
    hn_controller_forget(w->c);
    assert_true(fabs(pass_cost(hn_controller_cost(w->c), 8, 100) / cost - 1) < 0.1);
    rounds_run(w, 1);
    assert_true(w->drafted > 0);
    world_close(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_the_best_fixed_depth),
        cmocka_unit_test(test_near_the_best_where_rows_choose_alike),
        cmocka_unit_test(test_a_machine_that_drifts),
        cmocka_unit_test(test_context_grows),
        cmocka_unit_test(test_turns_bad_and_good),
        cmocka_unit_test(test_nothing_can_be_guessed),
        cmocka_unit_test(test_does_not_oscillate),
        cmocka_unit_test(test_plain_is_seen_again),
        cmocka_unit_test(test_rows_go_where_they_pay),
        cmocka_unit_test(test_stepping_drafter),
        cmocka_unit_test(test_allowance),
        cmocka_unit_test(test_estimates_stop_a_stepping_drafter),
        cmocka_unit_test(test_stepping_for_several),
        cmocka_unit_test(test_silent_drafter),
        cmocka_unit_test(test_allowance_counts_catching_up),
        cmocka_unit_test(test_free_drafts_first),
        cmocka_unit_test(test_drawn_candidates_stay),
        cmocka_unit_test(test_by_history_is_blind),
        cmocka_unit_test(test_equals_exhaustive_search),
        cmocka_unit_test(test_considered),
        cmocka_unit_test(test_what_is_cut_off_teaches),
        cmocka_unit_test(test_nothing_known_nothing_cut),
        cmocka_unit_test(test_open_fails),
        cmocka_unit_test(test_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
