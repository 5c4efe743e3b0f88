/* SPDX-License-Identifier: Apache-2.0 */
/* attention_back.h - causal attention of several texts, and of the unrolled steps of EAGLE-3's training-time test.
 *
 * Rows of all texts are packed, one text after another; no row sees another text. Step 0 is plain causal attention. In
 * step j a head has drafted j tokens after row r and sees the keys of step 0 of the rows up to and including r, and of
 * each step 1 to j only the key of row r, its own chain (SafeAILab's trainer; 2503.01840):
 *
 *     step 2   keys of step 0   step 1    step 2
 *     row 0    x . . .          x . . .   x . . .
 *     row 1    x x . .          . x . .   . x . .
 *     row 2    x x x .          . . x .   . . x .
 *
 * Head h reads key head h / (heads / kv_heads); weights are softmax(q k / sqrt(head_dim)). Forwards only the logarithm
 * of each row's sum is kept, not the weights; backwards they are computed again. All of it is in f32, also with
 * products of bf16. */
#ifndef HN_ATTENTION_BACK_H
#define HN_ATTENTION_BACK_H
#include "train/math/workers.h"

enum { HN_MOST_STEPS = 16 };

typedef struct hn_attention {
    int heads, kv_heads, head_dim;
    int texts;
    const int *start;                          /* [texts + 1]: text i is rows [start[i], start[i + 1]), none empty */
    int step;                                  /* 0 to HN_MOST_STEPS - 1 */
    hn_mat q;                                  /* [rows][heads * head_dim] of this step, rotated */
    hn_mat k[HN_MOST_STEPS], v[HN_MOST_STEPS]; /* [rows][kv_heads * head_dim] of the steps 0 to step */
} hn_attention;

/* Gradients of the matrices of hn_attention. */
typedef struct hn_attention_gradients {
    hn_mat q;
    hn_mat k[HN_MOST_STEPS], v[HN_MOST_STEPS];
} hn_attention_gradients;

/* Scratch numbers of each worker (hn_workers_open) for texts of at most `rows` rows. */
size_t hn_attention_scratch(int rows);

/* y [rows][heads * head_dim], log_sums [rows][heads]. */
void hn_attend(hn_workers *t, const hn_attention *a, hn_mat y, hn_real *log_sums);
/* Writes the gradient of q, adds to those of keys and values. */
void hn_attend_back(hn_workers *t, const hn_attention *a, hn_mat y, const hn_real *log_sums, hn_mat dy,
                    const hn_attention_gradients *d);
#endif
