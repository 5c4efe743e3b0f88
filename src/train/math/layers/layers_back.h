/* SPDX-License-Identifier: Apache-2.0 */
/* layers_back.h - the operations of layers, forwards and backwards: linear, RMS norm, embedding, rotation, SwiGLU, sums.
 *
 * Forward calls write their outputs; backward calls take the gradient of the output and the forward call's inputs, write
 * the gradient of the input (`add`: add to it), and always add to gradients of weights, so that batches can be summed. A
 * gradient whose matrix has p NULL is not computed. Rows are tokens; matrices are [rows][cols] as in real.h, vectors
 * plain pointers; inputs are not changed. All workers of the workers are used; bits do not depend on their number. */
#ifndef HN_LAYERS_BACK_H
#define HN_LAYERS_BACK_H
#include "train/math/workers.h"

/* y [rows][out] = x [rows][in] w [out][in] transposed + bias [out] (NULL: none). */
void hn_linear(hn_workers *t, hn_mat x, hn_mat w, const hn_real *bias, hn_mat y);
void hn_linear_back(hn_workers *t, hn_mat dy, hn_mat x, hn_mat w, hn_mat dx, bool add, hn_mat dw, hn_real *dbias);

/* y = x * gain / sqrt(mean of squares + eps). inverse [rows]: 1 / that root, for the backward call. y may be part of a
 * wider matrix: two inputs that are normed and then joined are two calls for two halves of the columns. */
void hn_rms_norm(hn_workers *t, hn_mat x, const hn_real *gain, hn_real eps, hn_mat y, hn_real *inverse);
/* dgain [cols], may be NULL. dx may be dy itself. */
void hn_rms_norm_back(hn_workers *t, hn_mat dy, hn_mat x, const hn_real *gain, const hn_real *inverse, hn_mat dx, bool add,
                      hn_real *dgain);

/* y's row r = row ids[r] of table, for every row of y. */
void hn_embed(hn_workers *t, hn_mat table, const int *ids, hn_mat y);
/* dtable's row ids[r] += row r of dy. */
void hn_embed_back(hn_workers *t, hn_mat dy, const int *ids, hn_mat dtable);

/* Rotates each head of a row of x by its position (position[r] + later) in place: pairs (i, i + head_dim / 2) by the
 * angle position * theta^(-2 i / head_dim). hn_rotate_back rotates the gradient back. */
void hn_rotate(hn_workers *t, hn_mat x, int head_dim, double theta, const int *position, int later);
void hn_rotate_back(hn_workers *t, hn_mat dx, int head_dim, double theta, const int *position, int later);

/* y = silu(gate) * up, silu(x) = x / (1 + e^-x). */
void hn_swiglu(hn_workers *t, hn_mat gate, hn_mat up, hn_mat y);
/* dgate may be gate and dup may be up: they are read first. */
void hn_swiglu_back(hn_workers *t, hn_mat dy, hn_mat gate, hn_mat up, hn_mat dgate, hn_mat dup);

/* y = a + b: residuals, and sums of two gradients. y may be a or b. */
void hn_sum(hn_workers *t, hn_mat a, hn_mat b, hn_mat y);
#endif
