/* SPDX-License-Identifier: Apache-2.0 */
/* block_attention.h - attention of blocks that are drafted after rows of texts, as in P-EAGLE, DART and DFlash (2602.01469,
 * 2601.19278, 2602.06036).
 *
 * Texts are packed as in attention_back.h, and so are the rows of blocks, text by text. A block's rows see the first `sees`
 * rows of its text, and of their own block either all rows (ahead) or those up to themselves; no block sees another one:
 *
 *     block after row 1, causal    text rows    own rows
 *     own row 0                     x x . .      x .
 *     own row 1                     x x . .      x x
 *
 * Heads and kept values are those of attention_back.h. */
#ifndef HN_BLOCK_ATTENTION_H
#define HN_BLOCK_ATTENTION_H
#include "train/math/layers/attention_back.h"

enum { HN_MOST_BLOCK = HN_MOST_STEPS }; /* rows of a block */

typedef struct hn_text_block {
    int first, rows; /* rows [first, first + rows) of those of all blocks; rows 1 to HN_MOST_BLOCK */
    int sees;        /* rows of its text, 1 to all of them */
} hn_text_block;

typedef struct hn_block_attention {
    int heads, kv_heads, head_dim;
    int texts;
    const int *start; /* [texts + 1]: text i is rows [start[i], start[i + 1]) of k and v */
    const int
        *of; /* [texts + 1]: its blocks are block[of[i] .. of[i + 1] - 1], whose rows are consecutive; may be none */
    const hn_text_block *block;
    bool ahead;
    hn_mat q, own_k, own_v; /* [rows of blocks] */
    hn_mat k, v;            /* [rows of texts] */
} hn_block_attention;

typedef struct hn_block_gradients {
    hn_mat q, own_k, own_v, k, v;
} hn_block_gradients;

/* y [rows of blocks][heads * head_dim], log_sums [rows of blocks][heads]. Scratch of the workers: hn_attention_scratch of the longest
 * text. */
void hn_block_attend(hn_workers *t, const hn_block_attention *a, hn_mat y, hn_real *log_sums);
/* Writes the gradient of q, adds to those of keys and values. */
void hn_block_attend_back(hn_workers *t, const hn_block_attention *a, hn_mat y, const hn_real *log_sums, hn_mat dy,
                          const hn_block_gradients *d);
#endif
