/* SPDX-License-Identifier: Apache-2.0 */
/* growth.h - what the next level of a drafter's trees is like, known before it is drafted: behind a row of a depth that is reached, how
 * likely the target's token is the first, the second, ... of the candidates that the level puts there.
 *
 * acceptance.h says how far to believe one candidate that is there, promise.h what a whole tree brings. A drafter that branches and is
 * paid for by the level needs the step between them: each row of the newest level times these rates is what one more level would add.
 * They are means over the rows of past trees, each counted as far as it was likely to be reached, of those too that had no successors: so
 * a shape that goes on behind few of its rows is known as one. Kept once for all texts and once for each; a text leans on all, a depth on
 * the one before it.
 */
#ifndef HN_GROWTH_H
#define HN_GROWTH_H
#include "plan/acceptance.h"

enum { HN_GROWTH_DEPTHS = 16, HN_GROWTH_RANKS = 16 };

typedef struct hn_growth_level {
    float reached;                  /* rows that it could stand behind, by their probability; fading */
    float of_rank[HN_GROWTH_RANKS]; /* of those, how many times the candidate of each rank is expected to be right */
} hn_growth_level;
typedef struct hn_growth {
    hn_growth_level of[HN_ACCEPT_DRAFTERS][HN_GROWTH_DEPTHS];
} hn_growth;

/* The level of such a depth (from 1) in one round: sums over its tree, not fading. */
void hn_growth_learn(hn_growth *all, hn_growth *own, int drafter, int depth, const hn_growth_level *round);
/* Fills rate[HN_GROWTH_RANKS], falling; returns how many are above 0. 0: nothing is known of the first levels, or nothing grows there. */
int hn_growth_at(const hn_growth *all, const hn_growth *own, int drafter, int depth, double *rate);
#endif
