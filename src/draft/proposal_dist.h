/* SPDX-License-Identifier: Apache-2.0 */
/* proposal_dist.h - the distribution that a drafted token was drawn from, as a candidate carries it: weights of the ids that the
 * drafter could draw. A drafter of a reduced vocabulary, or one that keeps its likeliest tokens, lists no others; ids that are
 * not listed have weight 0. Used by verify/residual.c.
 */
#ifndef HN_PROPOSAL_DIST_H
#define HN_PROPOSAL_DIST_H
#include <stdint.h>

typedef struct hn_proposal_dist {
    int n;
    const int32_t *id;   /* [n] ascending, each once, in the target's vocabulary; NULL: id i is i */
    const float *weight; /* [n] >= 0, of any positive sum */
} hn_proposal_dist;

int hn_proposal_find(const hn_proposal_dist *q, int32_t token); /* its index in the distribution, -1: not listed */
float hn_proposal_weight(const hn_proposal_dist *q, int32_t token);
double hn_proposal_probability(const hn_proposal_dist *q, int32_t token);

/* Both walk a distribution from low tokens to high: *from is 0 at first, then set by them. They return a pointer to the weights
 * themselves, or to room. */
/* Of tokens first .. first + n - 1. */
const float *hn_proposal_range(const hn_proposal_dist *q, int *from, int32_t first, int n, float *room);
/* Of these ascending tokens, n > 0. */
const float *hn_proposal_of(const hn_proposal_dist *q, int *from, const int32_t *token, int n, float *room);
#endif
