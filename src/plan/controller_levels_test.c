/* SPDX-License-Identifier: Apache-2.0 */
/* controller_levels_test.c - `auto` over branching trees that are grown level by level, one pass each, in simulated time: the numbers of
 * levels drafted and of nodes verified come near the best fixed pair on every machine, for any costs of the first level and the others;
 * plain decoding where they are worth nothing. The time of the decisions themselves is in no test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "draft/shape/head_tree.h"
#include "fixture.h"
#include "plan/simulation_for_tests.h"

enum { WRONG = 1 << 28, LEVELS = 6, RANKS = 6, WIDTH = 6, NODES = HN_TREE_ROWS - 1,
       CAP = 1 + WIDTH + (LEVELS - 1) * WIDTH * RANKS };

/* A head. After a token it is confident or not: with equal probability at the root, then as after its parent in 7 of 10 cases. Where it is
 * confident its best token has probability `best`, else a third of that. */
typedef struct head {
    double best, first, further; /* passes of one row that a level costs: the first of a round, and others */
    bool worthless;
} head;

typedef struct grown {
    hn_beam beam;
    bool confident[CAP], right[CAP]; /* of each node; right: it is on the target's path */
    bool root_confident;
    int32_t token[CAP];
    int rows, candidates; /* of the tree before this drafter */
} grown;

static bool confidence_after(machine *m, bool confident) {
    return machine_uniform(m) < 0.7 ? confident : !confident;
}

static void expand(machine *m, const head *h, grown *g, int drafter, int at, int depth, int32_t right_token) {
    float p[RANKS];
    int32_t token[RANKS];
    const bool confident = at < 0 ? g->root_confident : g->confident[at], live = (at < 0 || g->right[at]) && !h->worthless;
    double left = 1, u = machine_uniform(m);
    const int first = g->beam.n;
    for (int r = 0; r < RANKS; r++) {
        p[r] = (float)(r == 0 ? (confident ? h->best : h->best / 3) : fmin(left * 0.4, (double)p[r - 1]));
        left -= (double)p[r];
        const bool right = live && u >= 0 && u < (double)p[r];
        u -= (double)p[r];
        g->right[first + r] = right;
        g->confident[first + r] = confidence_after(m, confident);
        token[r] = right ? right_token : WRONG + drafter + DRAFTERS * (first + r + CAP * depth);
    }
    hn_beam_add(&g->beam, at, token, p, RANKS);
}

static void grow_root(machine *m, const head *h, grown *g, int drafter, bool confident, int32_t right_token) {
    g->root_confident = confident;
    hn_beam_start(&g->beam);
    expand(m, h, g, drafter, -1, 0, right_token);
}

static void grow_level(machine *m, const head *h, grown *g, int drafter, int depth, int32_t right_token) {
    int list[WIDTH];
    hn_beam_advance(&g->beam);
    const int n = g->beam.n_frontier;
    memcpy(list, g->beam.frontier, (size_t)n * sizeof *list);
    for (int i = 0; i < n; i++) expand(m, h, g, drafter, list[i], depth, right_token);
}

/* Makes the tree as if this level were the last; returns how many of its nodes are from this level. */
static int put(world *w, const grown *g, int drafter, int newest) {
    int list[HN_TREE_ROWS], added = 0;
    int16_t row[CAP];
    hn_tree *t = &w->tree[0];
    hn_tree_rewind(t, g->rows, g->candidates);
    const int n = hn_beam_best(&g->beam, t->max_rows - t->n_rows, list);
    for (int i = 0; i < n; i++) {
        const hn_beam_node *k = &g->beam.node[list[i]];
        row[list[i]] = (int16_t)hn_tree_add(t, k->parent < 0 ? 0 : row[k->parent], k->token, drafter, k->p);
        added += list[i] >= newest;
    }
    return added;
}

static grown grows[2];

static void call_levels(world *w, const head *h, int d, bool confident) {
    grown *g = &grows[d];
    g->rows = w->tree[0].n_rows;
    g->candidates = w->tree[0].n_candidates;
    for (int level = 0; level < LEVELS && hn_controller_go_on(w->c, w->plan, 1, d, level, false); level++) {
        const int newest = level > 0 ? g->beam.n : 0;
        if (level == 0) grow_root(&w->m, h, g, d, confident, truth(w, 0, 1));
        else grow_level(&w->m, h, g, d, level, truth(w, 0, level + 1));
        const int added = put(w, g, d, newest);
        took(w, d, level, added, level == 0 ? h->first : h->further);
        w->levels++;
        if (added == 0) return;
    }
}

/* Sum of its paths' probabilities, if all candidates are from one head. */
static double expected_of(const world *w) {
    const hn_tree *t = &w->tree[0];
    double sum = 1, path[HN_TREE_ROWS] = {1};
    for (int k = 0; k < t->n_candidates; k++) {
        const hn_candidate *a = &t->candidate[k];
        sum += path[a->child] = path[a->row] * (double)a->p;
    }
    return sum;
}

static void round_of(world *w, const head *h, int n) {
    int d;
    trees_reset(w);
    const bool confident = machine_uniform(&w->m) < 0.5;
    while ((d = hn_controller_choose(w->c, w->plan, 1, false)) >= 0) {
        call_levels(w, &h[d], d, confident);
        w->called[d]++;
    }
    hn_controller_prune(w->c, w->plan, 1, false);
    const double exact = n == 1 && !h->worthless ? expected_of(w) : 0, before = w->tokens;
    verify(w);
    if (exact > 0) w->tokens = before + exact;
}

static double levels_run(world *w, const head *h, int n, int rounds) {
    w->tokens = w->seconds = w->drafted = w->levels = 0;
    memset(w->called, 0, sizeof w->called);
    for (int i = 0; i < rounds; i++) round_of(w, h, n);
    return w->tokens / w->seconds;
}

static world *open_levels(enum machine_kind kind, int n, uint64_t seed) {
    simulated d[2] = {even(0, LEVELS), even(0, LEVELS)};
    for (int i = 0; i < 2; i++) {
        d[i].width = RANKS; /* tokens are counted as they come */
        d[i].kind = HN_COST_PER_LEVEL;
    }
    world *w = world_open(kind, 0.04, 1, d, n);
    for (int i = 0; i < n; i++) hn_controller_limit(w->c, i, LEVELS);
    w->m.random += seed << 32;
    return w;
}

/* Of all pairs of a number of levels and a number of nodes, and of plain decoding. */
static double best_fixed_tree(const world *w, const head *h, int *levels, int *nodes) {
    enum { SAMPLES = 4000 };
    static double sum[LEVELS + 1][NODES + 1];
    machine m = machine_make(BANDWIDTH, 0, 7);
    double best = plain(w);
    grown *g = &grows[0];
    memset(sum, 0, sizeof sum);
    *levels = *nodes = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int l = 1; l <= LEVELS; l++) {
            double top[NODES];
            int n = 0, list[HN_TREE_ROWS];
            if (l == 1) grow_root(&m, h, g, 0, machine_uniform(&m) < 0.5, 1);
            else grow_level(&m, h, g, 0, l - 1, 1);
            n = hn_beam_best(&g->beam, NODES, list);
            for (int k = 0; k < n; k++) { /* the likeliest first */
                const double p = exp((double)g->beam.node[list[k]].score);
                int at = k;
                for (; at > 0 && top[at - 1] < p; at--) top[at] = top[at - 1];
                top[at] = p;
            }
            double tokens = 1;
            for (int k = 0; k < NODES; k++) sum[l][k + 1] += (tokens += k < n ? top[k] : 0) / SAMPLES;
        }
    for (int l = 1; l <= LEVELS; l++)
        for (int k = 1; k <= NODES; k++) {
            const double v = sum[l][k] / (machine_relative(&w->m, k + 1, w->context) + (h->first + (l - 1) * h->further) * one_row(w));
            if (v <= best) continue;
            best = v;
            *levels = l;
            *nodes = k;
        }
    return best;
}

static void test_near_the_best_tree(void **state) {
    (void)state;
    static const double rates[] = {0.3, 0.6, 0.8, 0.95}, first[] = {0.03, 0.1, 0.3, 0.1}, further[] = {0.03, 0.1, 0.1, 0.4};
    int different = 0, last = -1;
    const int every = test_every(4, 4);
    for (int kind = 0; kind < MACHINES; kind++)
        for (int i = kind % every; i < 16; i += every) {
            const head h = {rates[i % 4], first[i / 4], further[i / 4], false};
            double part = 0, to_plain = 0, best = 0;
            int levels = 0, nodes = 0;
            for (uint64_t seed = 0; seed < 3; seed++) {
                world *w = open_levels((enum machine_kind)kind, 1, seed);
                if (seed == 0) best = best_fixed_tree(w, &h, &levels, &nodes);
                levels_run(w, &h, 1, 300);
                const double got = levels_run(w, &h, 1, light() ? 300 : 2000);
                part += got / best / 3;
                to_plain += got / plain(w) / 3;
                world_close(w);
            }
            different += 64 * levels + nodes != last;
            last = 64 * levels + nodes;
            must_reach(part, light() ? 0.94 : 0.97, "levels, part of the best", kind, h.best + h.further);
            must_reach(to_plain, light() ? 0.95 : 0.97, "levels, to plain", kind, h.best + h.further);
        }
    assert_true(different > 20 / every);
}

/* High estimates, all wrong. */
static void test_worthless(void **state) {
    (void)state;
    static const double rates[] = {0.2, 0.6, 0.95}, steps[] = {0.03, 0.2, 1};
    for (int kind = 0; kind < MACHINES; kind++)
        for (int i = kind % test_every(1, 3); i < 9; i += test_every(1, 3)) {
            const head h = {rates[i % 3], steps[i / 3], steps[i / 3], true};
            world *w = open_levels((enum machine_kind)kind, 1, 1);
            levels_run(w, &h, 1, 100);
            must_reach(levels_run(w, &h, 1, light() ? 300 : 1000), 0.97 * plain(w), "worthless levels", kind, h.best + h.first);
            world_close(w);
        }
}

/* In rounds of low confidence drafting ends early: more tokens than a tree of any fixed size gives, and never all levels. */
static void test_stops_when_unsure(void **state) {
    (void)state;
    const head h = {0.9, 0.2, 0.2, false};
    int levels, nodes;
    world *w = open_levels(BANDWIDTH, 1, 5);
    const double best = best_fixed_tree(w, &h, &levels, &nodes);
    levels_run(w, &h, 1, 300);
    must_reach(levels_run(w, &h, 1, 1500), 1.04 * best, "levels as they pay", BANDWIDTH, h.best);
    assert_true(w->levels > 1500 && w->levels < 1500 * (LEVELS - 1));
    world_close(w);
}

/* The first level is expensive and the others cost nothing, or the reverse: the number of levels fits. */
static void test_first_and_further(void **state) {
    (void)state;
    const head deep = {0.9, 0.3, 0.01, false}, flat = {0.7, 0.05, 0.6, false};
    world *w = open_levels(BANDWIDTH, 1, 6);
    levels_run(w, &deep, 1, 300);
    levels_run(w, &deep, 1, 500);
    assert_true(w->levels > 500 * 3);
    world_close(w);
    w = open_levels(BANDWIDTH, 1, 6);
    levels_run(w, &flat, 1, 300);
    levels_run(w, &flat, 1, 500);
    assert_true(w->levels > 500 * 0.9 && w->levels < 500 * 1.05);
    world_close(w);
}

/* The best token of a level alone would not pay for an expensive first level; the second and third do. No level is requested that a
 * drafter does not have. */
static void test_width_and_limit(void **state) {
    (void)state;
    const head wide = {0.95, 0.8, 0.02, false};
    world *w = open_levels(BANDWIDTH, 1, 7);
    hn_controller_limit(w->c, 0, 2);
    levels_run(w, &wide, 1, 300);
    levels_run(w, &wide, 1, 300);
    assert_true(w->called[0] > 250 && w->levels > w->called[0] && w->levels <= 2 * w->called[0]);
    world_close(w);
}

/* Many levels pay for a first one that takes more than a pass, because the others cost next to nothing: the first trial
 * measures that, and what trials save is given back to them. Two, if it has no more, do not pay, and no more are expected of it. */
static void test_dear_first(void **state) {
    (void)state;
    static const double first[] = {0.9, 1, 1.3};
    for (int i = 0; i < 3; i++)
        for (uint64_t seed = 8; seed < 11; seed++) {
            const head deep = {0.95, first[i], 0.01, false};
            world *w = open_levels(BANDWIDTH, 1, seed);
            levels_run(w, &deep, 1, 600);
            must_reach(levels_run(w, &deep, 1, 300), 1.25 * plain(w), "an expensive first level", BANDWIDTH, deep.first);
            assert_true(w->called[0] > 270);
            world_close(w);
        }
    const head dear = {0.95, 1.6, 0.01, false};
    world *w = open_levels(BANDWIDTH, 1, 8);
    hn_controller_limit(w->c, 0, 2);
    levels_run(w, &dear, 1, 300);
    must_reach(levels_run(w, &dear, 1, 300), 0.97 * plain(w), "two levels", BANDWIDTH, dear.first);
    assert_true(w->called[0] < 60);
    world_close(w);
}

/* Two heads that grow by levels: a worthless one beside a good one costs little, in either order. */
static void test_two_heads(void **state) {
    (void)state;
    const head good = {0.8, 0.1, 0.1, false}, bad = {0.9, 0.1, 0.1, true}, pairs[2][2] = {{good, bad}, {bad, good}};
    for (int kind = 0; kind < EXPENSIVE; kind++) {
        world *w = open_levels((enum machine_kind)kind, 1, 3);
        levels_run(w, &good, 1, 300);
        const double alone = levels_run(w, &good, 1, 1500);
        world_close(w);
        for (int i = 0; i < 2; i++) {
            w = open_levels((enum machine_kind)kind, 2, 3);
            levels_run(w, pairs[i], 2, 400);
            must_reach(levels_run(w, pairs[i], 2, 1500), 0.94 * alone, "beside a worthless one", kind, i);
            assert_true(w->called[1 - i] < 300 && w->called[i] > 1200);
            world_close(w);
        }
    }
}

/* A head that is used in every round does not prevent trials of another, which has become good. */
static void test_found_beside_another(void **state) {
    (void)state;
    head two[2] = {{0.5, 0.2, 0.2, false}, {0.95, 0.05, 0.05, true}};
    world *w = open_levels(BANDWIDTH, 2, 4);
    levels_run(w, two, 2, 600);
    assert_true(w->called[0] > 500 && w->called[1] < 60);
    two[1].worthless = false;
    levels_run(w, two, 2, 600);
    levels_run(w, two, 2, 300);
    assert_true(w->called[1] > 270);
    world_close(w);
}

int main(void) {
    for (int i = 0; i < 2; i++)
        if (hn_beam_open(&grows[i].beam, WIDTH, LEVELS, NULL)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_the_best_tree), cmocka_unit_test(test_worthless),
        cmocka_unit_test(test_stops_when_unsure),   cmocka_unit_test(test_first_and_further),
        cmocka_unit_test(test_width_and_limit),    cmocka_unit_test(test_dear_first),
        cmocka_unit_test(test_two_heads),
        cmocka_unit_test(test_found_beside_another),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < 2; i++) hn_beam_close(&grows[i].beam);
    return failed;
}
