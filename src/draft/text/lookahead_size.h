/* SPDX-License-Identifier: Apache-2.0 */
/* lookahead_size.h - which window lookahead decoding (arXiv 2402.02057) should have on a machine, by what rows cost there: tokens a pass
 * grow with the logarithm of the rows, so the best size depends on how nearly free a further row is. */
#ifndef HN_LOOKAHEAD_SIZE_H
#define HN_LOOKAHEAD_SIZE_H
#include <stdbool.h>

typedef struct hn_lookahead_size {
    int window, ngram, guess; /* the drafter's options */
    double rows, tokens;      /* of a pass, on average: rows besides the root, tokens emitted */
    double speed_up;          /* over a pass of one row */
} hn_lookahead_size;

/* The size with the largest expected speed-up, which may be below 1. seconds[r]: of a pass of r rows, r = 0..most, rising, seconds[1] > 0.
 * Sizes of more rows than that are left out; false: all are. */
bool hn_lookahead_best_size(const double *seconds, int most, hn_lookahead_size *out);
#endif
