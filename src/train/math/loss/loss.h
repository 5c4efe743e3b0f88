/* SPDX-License-Identifier: Apache-2.0 */
/* loss.h - the losses of training, each with its gradient.
 *
 * Every loss is a sum over rows: weight[r] times the loss of row r. Rows of weight 0 are skipped (a mask is weights of
 * 0 and 1; a mean is weights that add up to 1); their gradient is zero. The gradient is written, and may be the matrix
 * of the logits. Sums over rows are in double, in the order of the rows. */
#ifndef HN_LOSS_H
#define HN_LOSS_H
#include "train/math/workers.h"

/* Cross entropy, -log q(id), q the softmax of the row's logits. losses [rows]: room, each row's loss without its
 * weight. */
double hn_loss_hard(hn_workers *t, hn_mat logits, const int *ids, const hn_real *weight, hn_mat dlogits, hn_real *losses);
/* -Σ p log q, p being row dist_row[r] of distribution [..][vocabulary] (dist_row NULL: row r); kl: minus the entropy of p, so that
 * the minimum is 0. The gradient is the same. */
double hn_loss_soft(hn_workers *t, hn_mat logits, hn_mat dist, const int *dist_row, bool kl, const hn_real *weight,
                    hn_mat dlogits, hn_real *losses);
/* Mean over a row's columns of Smooth-L1: d^2 / 2 where |d| < 1, else |d| - 1/2, d = x - target. */
double hn_loss_smooth_l1(hn_workers *t, hn_mat x, hn_mat target, const hn_real *weight, hn_mat dx, hn_real *losses);

/* The target's distributions over a drafter's vocabulary: the softmax of its logits of the tokens kept[j] (kept NULL: all).
 * inside [rows], may be NULL: 1 if the likeliest of all tokens is kept, else 0; covered [rows], may be NULL: the kept
 * share of the whole distribution. `dist` must not be the matrix of the logits. */
void hn_target_dist(hn_workers *t, hn_mat logits, const int *kept, hn_mat dist, hn_real *inside, hn_real *covered);
#endif
