/* SPDX-License-Identifier: Apache-2.0 */
/* controller_tree_test.c - `auto` over trees of a head that drafts all levels at once, in simulated time: the number of nodes that it
 * verifies comes near the best fixed number on every machine, and plain decoding where they are worth nothing. Trees of two heads are
 * merged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "draft/shape/head_tree.h"
#include "fixture.h"
#include "plan/simulation_for_tests.h"

enum { LEVELS = 5, RANKS = 8, NODES = HN_TREE_ROWS - 1 };

/* A head: in half of its rounds its best token has probability `best`, else a third of that, and the other tokens follow. */
typedef struct head {
    double best, round; /* round: passes of one row that calling it costs */
    bool worthless;     /* none of its tokens is ever right, whatever its estimates */
} head;

typedef struct head_levels {
    double p[LEVELS][RANKS];
    float log_p[LEVELS][RANKS];
    int right[LEVELS]; /* the rank of the target's token; RANKS: none */
} head_levels;

static void levels_draw(machine *m, const head *h, head_levels *l) {
    const double first = machine_uniform(m) < 0.5 ? h->best : h->best / 3;
    for (int d = 0; d < LEVELS; d++) {
        double left = 1, u = machine_uniform(m);
        l->right[d] = RANKS;
        for (int r = 0; r < RANKS; r++) {
            l->p[d][r] = r == 0 ? first : fmin(left * 0.4, l->p[d][r - 1]);
            left -= l->p[d][r];
            l->log_p[d][r] = (float)log(l->p[d][r]);
            if (l->right[d] == RANKS && u < l->p[d][r] && !h->worthless) l->right[d] = r;
            u -= l->p[d][r];
        }
    }
}

static void tree_of(const head_levels *l, int total, hn_best_tree *t) {
    hn_tree_level level[LEVELS];
    for (int d = 0; d < LEVELS; d++) level[d] = (hn_tree_level){RANKS, l->log_p[d]};
    hn_best_tree_make(t, level, LEVELS, total, -INFINITY);
}

/* The tokens of two heads at a node are the same where both are right. */
static int32_t token_of(const world *w, const head_levels *l, int drafter, int depth, int rank) {
    return l->right[depth] == rank ? truth(w, 0, depth + 1) : -1 - drafter - DRAFTERS * (depth + LEVELS * rank);
}

static int propose_tree(world *w, const head_levels *l, int drafter) {
    hn_best_tree t;
    int16_t row[NODES];
    int added = 0;
    tree_of(l, NODES, &t);
    for (int i = 0; i < t.n; i++) {
        const hn_shape_node n = t.node[i];
        const int parent = n.parent < 0 ? 0 : row[n.parent], depth = n.depth - 1;
        row[i] = -1;
        if (parent < 0) continue;
        row[i] = (int16_t)hn_tree_add(&w->tree[0], parent, token_of(w, l, drafter, depth, n.rank), drafter, (float)l->p[depth][n.rank]);
        added += row[i] >= 0;
    }
    return added;
}

/* Expected tokens of the tree as it is verified: the sum of its paths' probabilities, by one head. */
static double expected_of(const world *w, const head_levels *l) {
    const hn_tree *t = &w->tree[0];
    double sum = 1, path[HN_TREE_ROWS] = {1};
    for (int r = 1; r < t->n_rows; r++) {
        double p = 0;
        for (int k = 0; k < RANKS; k++)
            if (t->token[r] == token_of(w, l, 0, t->depth[r] - 1, k)) p = l->p[t->depth[r] - 1][k];
        sum += path[r] = path[t->parent[r]] * p;
    }
    return sum;
}

static void round_of_trees(world *w, const head *h, int n) {
    head_levels l[2];
    int d;
    trees_reset(w);
    for (int i = 0; i < n; i++) levels_draw(&w->m, &h[i], &l[i]);
    if (n == 2 && !h[1].worthless) l[1] = l[0]; /* it knows as much of the text */
    while ((d = hn_controller_choose(w->c, w->plan, 1, false)) >= 0) {
        const int added = propose_tree(w, &l[d], d);
        took(w, d, 0, added, h[d].round);
        w->called[d]++;
    }
    hn_controller_prune(w->c, w->plan, 1, false);
    const double exact = n == 1 && !h->worthless ? expected_of(w, &l[0]) : 0, before = w->tokens;
    verify(w);
    if (exact > 0) w->tokens = before + exact;
}

static double trees_run(world *w, const head *h, int n, int rounds) {
    w->tokens = w->seconds = w->drafted = 0;
    memset(w->called, 0, sizeof w->called);
    for (int i = 0; i < rounds; i++) round_of_trees(w, h, n);
    return w->tokens / w->seconds;
}

static world *open_heads(enum machine_kind kind, int n, uint64_t seed) {
    simulated d[2] = {even(0, LEVELS), even(0, LEVELS)};
    d[0].width = d[1].width = RANKS; /* tokens are counted as they come */
    world *w = world_open(kind, 0.04, 1, d, n);
    w->m.random += seed << 32;
    return w;
}

/* Of all trees of a fixed number of nodes, and of none. */
static double best_fixed_tree(const world *w, const head *h, int *nodes) {
    enum { SAMPLES = 10000 };
    machine m = machine_make(BANDWIDTH, 0, 7);
    double sum[NODES + 1] = {0}, best = plain(w);
    *nodes = 0;
    for (int i = 0; i < SAMPLES; i++) {
        head_levels l;
        hn_best_tree t;
        levels_draw(&m, h, &l);
        tree_of(&l, NODES, &t);
        double tokens = 1;
        for (int k = 0; k < NODES; k++) sum[k + 1] += (tokens += exp((double)t.score[k])) / SAMPLES;
    }
    for (int k = 1; k <= NODES; k++) {
        const double v = sum[k] / (machine_relative(&w->m, k + 1, w->context) + h->round * one_row(w));
        if (v <= best) continue;
        best = v;
        *nodes = k;
    }
    return best;
}

static void test_near_the_best_tree(void **state) {
    (void)state;
    static const double rates[] = {0.15, 0.4, 0.65, 0.9}, rounds[] = {0.02, 0.1, 0.4};
    int different = 0, last = -1;
    const int every = test_every(2, 2);
    for (int kind = 0; kind < MACHINES; kind++)
        for (int i = kind % every; i < 12; i += every) {
            const head h = {rates[i % 4], rounds[i / 4], false};
            double part = 0, to_plain = 0, best = 0;
            int nodes = 0;
            for (uint64_t seed = 0; seed < 3; seed++) {
                world *w = open_heads((enum machine_kind)kind, 1, seed);
                if (seed == 0) best = best_fixed_tree(w, &h, &nodes);
                trees_run(w, &h, 1, 300);
                const double got = trees_run(w, &h, 1, light() ? 400 : 2500);
                part += got / best / 3;
                to_plain += got / plain(w) / 3;
                world_close(w);
            }
            different += nodes != last;
            last = nodes;
            must_reach(part, light() ? 0.94 : 0.97, "a tree, part of the best", kind, h.best + h.round);
            must_reach(to_plain, light() ? 0.95 : 0.97, "a tree, to plain", kind, h.best + h.round);
        }
    assert_true(different > 10 / every); /* the best number differs from case to case */
}

/* High estimates, all wrong. */
static void test_worthless_trees(void **state) {
    (void)state;
    static const double rates[] = {0.2, 0.6, 0.95}, rounds[] = {0.02, 0.2, 1};
    for (int kind = 0; kind < MACHINES; kind++)
        for (int i = 0; i < 9; i++) {
            const head h = {rates[i % 3], rounds[i / 3], true};
            world *w = open_heads((enum machine_kind)kind, 1, 1);
            trees_run(w, &h, 1, 100);
            must_reach(trees_run(w, &h, 1, light() ? 300 : 1000), 0.97 * plain(w), "a worthless tree", kind, h.best + h.round);
            world_close(w);
        }
}

/* Two heads that are right together: a tree of both is no worse than the better one's. A worthless one beside a good one costs little. */
static void test_two_heads(void **state) {
    (void)state;
    const head pair[2] = {{0.7, 0.05, false}, {0.7, 0.05, false}}, bad[2] = {{0.7, 0.05, false}, {0.9, 0.05, true}};
    for (int kind = 0; kind < EXPENSIVE; kind++) {
        world *w = open_heads((enum machine_kind)kind, 1, 3);
        trees_run(w, pair, 1, 300);
        const double alone = trees_run(w, pair, 1, 1500);
        world_close(w);
        w = open_heads((enum machine_kind)kind, 2, 3);
        trees_run(w, bad, 2, 300);
        must_reach(trees_run(w, bad, 2, 1500), 0.94 * alone, "beside a worthless one", kind, 0.7);
        world_close(w);
        w = open_heads((enum machine_kind)kind, 2, 3);
        trees_run(w, pair, 2, 300);
        must_reach(trees_run(w, pair, 2, 1500), 0.94 * alone, "beside one as good", kind, 0.7);
        world_close(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_near_the_best_tree), cmocka_unit_test(test_worthless_trees),
                                       cmocka_unit_test(test_two_heads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
