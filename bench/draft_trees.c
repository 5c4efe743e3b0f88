/* SPDX-License-Identifier: Apache-2.0 */
/* draft_trees.c - how long a tree of 63 nodes is built, beside the passes of a head and the reading of its logits: microseconds, the
 * best and the median of several turns of one thread's processor time, so that what else runs hardly counts.
 *
 *     cmake --build build --target draft_trees && build/draft_trees
 *
 *   best     the likeliest paths of 5 levels of 16 tokens, best first, and put into the draft tree
 *   dynamic  EAGLE-2's of 5 levels, 10 that go on, 10 successors each: growth, the best 63, the draft tree
 *   opt      OPT-Tree's of the same width
 *   fitted, sequoia   once, when a head opens: 63 nodes of 5 depths of 16 ranks */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "draft/shape/head_tree.h"
#include "quantile.h"

enum { LEVELS = 5, RANKS = 16, WIDTH = 10, NODES = HN_TREE_ROWS - 1, TURNS = 31, TIMES = 200 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct data {
    float p[LEVELS * WIDTH + 1][RANKS], log_p[LEVELS][RANKS]; /* of nodes, or of levels */
    int32_t token[RANKS];
    hn_rank_rates rates;
    hn_beam beam;
    hn_tree tree;
} data;

static void make(data *d) {
    uint64_t seed = 1;
    for (int i = 0; i <= LEVELS * WIDTH; i++) {
        float left = 1;
        for (int r = 0; r < RANKS; r++) {
            const float part = (float)(hn_splitmix(&seed) >> 40) * 0x1p-24f;
            d->p[i][r] = fminf(left * (0.2f + 0.6f * part), r ? d->p[i][r - 1] : 1);
            left -= d->p[i][r];
            if (i < LEVELS) d->log_p[i][r] = logf(d->p[i][r]);
            d->token[r] = 100 * r;
        }
    }
    d->rates.depths = LEVELS;
    d->rates.ranks = RANKS;
    for (int l = 0; l < LEVELS; l++)
        for (int r = 0; r < RANKS; r++) d->rates.rate[l][r] = (double)d->p[l][r];
}

static void run_best(data *d) {
    hn_tree_level level[LEVELS];
    hn_best_tree t;
    int16_t row[NODES];
    for (int l = 0; l < LEVELS; l++) level[l] = (hn_tree_level){RANKS, d->log_p[l]};
    hn_best_tree_make(&t, level, LEVELS, NODES, -INFINITY);
    hn_tree_reset(&d->tree, 1, HN_TREE_ROWS);
    for (int i = 0; i < t.n; i++)
        row[i] = (int16_t)hn_tree_add(&d->tree, t.node[i].parent < 0 ? 0 : row[t.node[i].parent],
                                      1000 * t.node[i].depth + d->token[t.node[i].rank], 0, d->p[t.node[i].depth - 1][t.node[i].rank]);
}

static void grow(data *d, bool opt) {
    double expected = 0;
    int next = 1, list[HN_TREE_ROWS];
    int16_t row[WIDTH + (LEVELS - 1) * WIDTH * WIDTH];
    hn_beam *b = &d->beam;
    hn_beam_start(b);
    hn_beam_add(b, -1, d->token, d->p[0], WIDTH);
    for (int l = 1; l < LEVELS; l++) {
        if (opt) hn_opt_advance(b, NODES, 0, &expected);
        else hn_beam_advance(b);
        for (int i = 0; i < b->n_frontier; i++) hn_beam_add(b, b->frontier[i], d->token, d->p[next++], WIDTH);
    }
    const int n = hn_beam_best(b, NODES, list);
    hn_tree_reset(&d->tree, 1, HN_TREE_ROWS);
    for (int i = 0; i < n; i++) {
        const hn_beam_node *k = &b->node[list[i]];
        row[list[i]] = (int16_t)hn_tree_add(&d->tree, k->parent < 0 ? 0 : row[k->parent], k->token, 0, k->p);
    }
}

static void run_dynamic(data *d) {
    grow(d, false);
}

static void run_opt(data *d) {
    grow(d, true);
}

static void run_fitted(data *d) {
    hn_shape s;
    (void)hn_shape_fitted(&s, &d->rates, LEVELS, NODES, NULL);
    d->tree.n_rows = s.n + 1;
}

static void run_sequoia(data *d) {
    hn_shape s;
    (void)hn_shape_sequoia(&s, &d->rates, LEVELS, NODES, NULL, NULL);
    d->tree.n_rows = s.n + 1;
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(data *d);
    } each[] = {{"best", run_best}, {"dynamic", run_dynamic}, {"opt", run_opt}, {"fitted", run_fitted}, {"sequoia", run_sequoia}};
    data *d = calloc(1, sizeof *d);
    if (!d || hn_beam_open(&d->beam, WIDTH, LEVELS, NULL)) return 1;
    make(d);
    printf("%-8s %6s %8s %8s\n", "tree", "nodes", "best us", "median");
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        double us[TURNS];
        for (int t = 0; t < TURNS; t++) {
            const double start = now();
            for (int k = 0; k < TIMES; k++) each[i].run(d);
            us[t] = (now() - start) * 1e6 / TIMES;
        }
        printf("%-8s %6d %8.1f %8.1f\n", each[i].name, d->tree.n_rows - 1, quantile(us, TURNS, 0), median(us, TURNS));
    }
    hn_beam_close(&d->beam);
    free(d);
    return 0;
}
