/* SPDX-License-Identifier: Apache-2.0 */
/* tree_growth.c - the means of tree_growth.h. */
#include "plan/tree_growth.h"

#include <assert.h>

static const float KEEP_ALL = 1 - 1.0f / 256, KEEP_OWN = 1 - 1.0f / 32; /* a round in which the level was drafted */
static const double DEPTH_WEIGHT = 1; /* rows that the previous depth counts against those of a depth, over all texts */
static const double TEXT_WEIGHT = 8;  /* rows that all texts count against those of a text */
static const double LEAST = 1e-4;     /* smaller rates are ignored */

static void add(hn_tree_growth_level *to, const hn_tree_growth_level *round, float keep) {
    to->reached = to->reached * keep + round->reached;
    for (int r = 0; r < HN_TREE_GROWTH_RANKS; r++) {
        to->of_rank[r] = to->of_rank[r] * keep + round->of_rank[r];
        if (to->of_rank[r] < 1e-12f) to->of_rank[r] = 0; /* never down to denormal numbers */
    }
}

void hn_tree_growth_learn(hn_tree_growth *all, hn_tree_growth *own, int drafter, int depth, const hn_tree_growth_level *round) {
    assert(drafter >= 0 && drafter < HN_ACCEPT_DRAFTERS && depth >= 1);
    if (depth > HN_TREE_GROWTH_DEPTHS || !(round->reached > 0)) return;
    add(&all->of[drafter][depth - 1], round, KEEP_ALL);
    add(&own->of[drafter][depth - 1], round, KEEP_OWN);
}

static double shrunk(const hn_tree_growth_level *l, int rank, double towards, double belief) {
    return ((double)l->of_rank[rank] + belief * towards) / ((double)l->reached + belief);
}

int hn_tree_growth_at(const hn_tree_growth *all, const hn_tree_growth *own, int drafter, int depth, double *rate) {
    assert(drafter >= 0 && drafter < HN_ACCEPT_DRAFTERS && depth >= 1);
    const hn_tree_growth_level *a = all->of[drafter], *o = own->of[drafter];
    if (!(a[0].reached > 0)) return 0;
    const int last = depth < HN_TREE_GROWTH_DEPTHS ? depth - 1 : HN_TREE_GROWTH_DEPTHS - 1;
    int n = 0;
    for (int r = 0; r < HN_TREE_GROWTH_RANKS; r++) {
        double one = (double)a[0].of_rank[r] / (double)a[0].reached;
        for (int d = 1; d <= last; d++) one = shrunk(&a[d], r, one, DEPTH_WEIGHT);
        one = shrunk(&o[last], r, one, TEXT_WEIGHT);
        rate[r] = r > 0 && one > rate[r - 1] ? rate[r - 1] : one;
        if (rate[r] >= LEAST) n = r + 1;
    }
    return n;
}
