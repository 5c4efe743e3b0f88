/* SPDX-License-Identifier: Apache-2.0 */
/* block_plan.h - behind which rows of a batch heads that draft blocks learn to draft, and how far: chosen at random, since all would be
 * many times the batch.
 *
 *     chains   a row of masks behind a row; of the rows behind which something can be learned, a share keep^d (at least `least`) has d
 *              masks or more: P-EAGLE's sampling of depths (2602.01469)
 *     anchors  as many rows as fit have a whole block each, those beyond the end of the text without a loss (DFlash, DART)
 *
 * A draft k behind row i is held against what is known of row i + k. The same for the same seed. */
#ifndef HN_BLOCK_PLAN_H
#define HN_BLOCK_PLAN_H
#include <stdint.h>

#include "train/block_attention.h"

typedef struct hn_block_plan {
    int most_rows;       /* of texts in a batch */
    int drafts;          /* in a row that are learned, the one without a mask too */
    int block;           /* rows of an anchor's block; 0: chains, of 1 to drafts - 1 masks */
    double keep, least;  /* of chains */
    hn_text_block *of;   /* [most_rows] blocks, in the order of their rows */
    int *root;           /* [most_rows]: the row of the batch that each stands behind */
    int *first;          /* [most_rows + 1], by text: hn_block_attention's `of` */
    int *chosen, *depth; /* [most_rows] */
    int blocks, rows;    /* of the batch at hand */
} hn_block_plan;

/* Rows of all blocks at most; of anchors twice those of the texts. */
int hn_block_plan_most(const hn_block_plan *p);
/* start [texts + 1], weight [start[texts]]: those of the batch. */
void hn_block_plan_choose(hn_block_plan *p, int texts, const int *start, const hn_real *weight, uint64_t seed);
#endif
