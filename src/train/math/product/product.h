/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - the matrix products of training: forward y = x Wᵀ, backward dx = dy W and dW += dyᵀ x.
 *
 * One algorithm (Goto's): slices of the sum with a fixed depth, in ascending order; both operands of a slice are packed
 * into strips of the width of the kernel's tile, then tiles are computed in registers and added to C. An output is the
 * sum of its slices in order, so its bits depend on the level and on the form of products, not on the number of workers
 * or on other rows and columns. With products of bf16 the operands are rounded to bf16 as they are packed, and added in
 * f32. */
#ifndef HN_PRODUCT_H
#define HN_PRODUCT_H
#include "train/math/workers.h"

typedef enum hn_form {
    HN_ABT, /* c [m][n] = a [m][k] * b [n][k] transposed */
    HN_AB,  /* c [m][n] = a [m][k] * b [k][n] */
    HN_ATB  /* c [m][n] = a [k][m] transposed * b [k][n] */
} hn_form;

/* add: adds to c, else overwrites it. All workers of the workers are used. */
void hn_product(hn_workers *t, hn_form form, hn_mat a, hn_mat b, hn_mat c, bool add);
/* The same in f32 by one worker, from inside a piece of work of hn_workers_split: for the many small products of
 * attention. */
void hn_product_alone(hn_workers *t, int rank, hn_form form, hn_mat a, hn_mat b, hn_mat c, bool add);
#endif
