/* SPDX-License-Identifier: Apache-2.0 */
/* block_plan.h - chooses the rows of a batch after which heads of blocks are trained to draft, and the depths: at random, since all
 * would be many times the batch.
 *
 *     chains   masks after a row; of the rows with labels, a share keep^d (at least `least`) has d masks or more: P-EAGLE's
 *              sampling of depths (2602.01469)
 *     anchors  as many rows as fit have a whole block each; its rows beyond the end of the text have no loss (DFlash, DART)
 *
 * The label of draft k after row i is that of row i + k. The choice depends only on the seed. */
#ifndef HN_BLOCK_PLAN_H
#define HN_BLOCK_PLAN_H
#include <stdint.h>

#include "train/math/layers/block_attention.h"

typedef struct hn_block_plan {
    int most_rows;       /* of texts in a batch */
    int drafts;          /* learned drafts of a row, including the one without a mask */
    int block;           /* rows of an anchor's block; 0: chains, of 1 to drafts - 1 masks */
    double keep, least;  /* for chains */
    hn_text_block *of;   /* [most_rows] blocks, in the order of their rows */
    int *root;           /* [most_rows]: the row of the batch before each */
    int *first;          /* [most_rows + 1], by text: hn_block_attention's `of` */
    int *chosen, *depth; /* [most_rows] */
    int blocks, rows;    /* of the current batch */
} hn_block_plan;

/* The most rows of all blocks; for anchors twice those of the texts. */
int hn_block_plan_most(const hn_block_plan *p);
/* start [texts + 1], weight [start[texts]]: of the batch. */
void hn_block_plan_choose(hn_block_plan *p, int texts, const int *start, const hn_real *weight, uint64_t seed);
#endif
