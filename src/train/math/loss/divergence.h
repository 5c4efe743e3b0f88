/* SPDX-License-Identifier: Apache-2.0 */
/* divergence.h - the divergence of a drafter's distribution q from the target's distribution p, by the measures of DistillSpec
 * (2310.08461), and its gradient:
 *
 *     forward KL   Σ p log(p / q)                      favours a drafter that covers all tokens of the target
 *     reverse KL   Σ q log(q / p)                      favours one that avoids tokens unlikely for the target
 *     JSD          KL(p | m) / 2 + KL(q | m) / 2       m = (p + q) / 2
 *     TVD          Σ |p - q| / 2                       1 - the share of accepted drafts
 *
 * Rows, weights and room are those of loss.h. */
#ifndef HN_DIVERGENCE_H
#define HN_DIVERGENCE_H
#include "train/math/workers.h"

typedef enum hn_divergence { HN_KL_FORWARD, HN_KL_REVERSE, HN_JSD, HN_TVD } hn_divergence;

/* By its name on the command line: forward, reverse, jsd, tvd. false: there is none. */
const char *hn_divergence_name(hn_divergence kind);
bool hn_divergence_named(const char *name, hn_divergence *out);
/* dist [..][vocabulary]: row dist_row[r] is that of row r, NULL: row r. dlogits may be the logits. */
double hn_loss_divergence(hn_workers *t, hn_divergence d, hn_mat logits, hn_mat dist, const int *dist_row,
                          const hn_real *weight, hn_mat dlogits, hn_real *losses);
#endif
