/* SPDX-License-Identifier: Apache-2.0 */
/* tree_growth.h - the expected next level of a drafter's trees, known before it is drafted: how likely the target's token is the first, the
 * second, ... of the candidates that the level adds after a row of a given depth that is reached.
 *
 * acceptance.h has the rate of one existing candidate, drafter_gain.h the gain of a whole tree. A drafter that branches and is decided on
 * level by level needs the step between them: each row of the newest level times these rates is what one more level would add. They are
 * means over the rows of past trees, weighted by the probability that the row is reached, including rows without successors, so that
 * shapes that extend only few of their rows are represented. Kept once for all texts and once for each; a text's rates are shrunk towards
 * those of all texts, those of a depth towards the depth before it.
 */
#ifndef HN_TREE_GROWTH_H
#define HN_TREE_GROWTH_H
#include "plan/acceptance.h"

enum { HN_TREE_GROWTH_DEPTHS = 16, HN_TREE_GROWTH_RANKS = 16 };

typedef struct hn_tree_growth_level {
    float reached;                  /* rows that it could extend, by their probability; decaying */
    float of_rank[HN_TREE_GROWTH_RANKS]; /* of those, how many times the candidate of each rank is expected to be right */
} hn_tree_growth_level;
typedef struct hn_tree_growth {
    hn_tree_growth_level of[HN_ACCEPT_DRAFTERS][HN_TREE_GROWTH_DEPTHS];
} hn_tree_growth;

/* Records the level of a depth (from 1) in one round: sums over its tree, not decayed. */
void hn_tree_growth_learn(hn_tree_growth *all, hn_tree_growth *own, int drafter, int depth, const hn_tree_growth_level *round);
/* Fills rate[HN_TREE_GROWTH_RANKS], descending; returns how many are above 0. 0: the first levels are unknown, or add nothing there. */
int hn_tree_growth_at(const hn_tree_growth *all, const hn_tree_growth *own, int drafter, int depth, double *rate);
#endif
