/* SPDX-License-Identifier: Apache-2.0 */
/* loss.h - what training makes small, and its gradient at once.
 *
 * Every loss is a sum over rows: weight[r] times the loss of row r. Rows of weight 0 cost nothing and are not looked at
 * (a mask is weights of 0 and 1; a mean is weights that add up to 1); their gradient is zero. The gradient is written,
 * and may lie where the logits lie. Sums over rows are taken in double, in the order of the rows. */
#ifndef HN_LOSS_H
#define HN_LOSS_H
#include "train/team.h"

/* Cross entropy, -log q(id), q the softmax of the row's logits. losses [rows]: room, each row's loss without its
 * weight. */
double hn_loss_hard(hn_team *t, hn_mat logits, const int *ids, const hn_real *weight, hn_mat dlogits, hn_real *losses);
/* -Σ p log q, p being row law_row[r] of law [..][vocabulary] (law_row NULL: row r); kl: less the entropy of p, so that the
 * best is 0. The gradient is the same. */
double hn_loss_soft(hn_team *t, hn_mat logits, hn_mat law, const int *law_row, bool kl, const hn_real *weight,
                    hn_mat dlogits, hn_real *losses);
/* Mean over a row's columns of Smooth-L1: d^2 / 2 where |d| < 1, else |d| - 1/2, d = x - target. */
double hn_loss_smooth_l1(hn_team *t, hn_mat x, hn_mat target, const hn_real *weight, hn_mat dx, hn_real *losses);

/* The target's laws over a drafter's vocabulary: of its logits over the whole one, those of the tokens kept[j], as a
 * law of their own (kept NULL: all of them). inside [rows], NULL: not wanted: 1 where the likeliest token of all is
 * kept, else 0; covered [rows], NULL: not wanted: how much of the whole law is kept. law may not lie where the logits
 * lie. */
void hn_law_kept(hn_team *t, hn_mat logits, const int *kept, hn_mat law, hn_real *inside, hn_real *covered);
#endif
