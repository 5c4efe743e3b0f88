/* SPDX-License-Identifier: Apache-2.0 */
/* divergence.h - how far a drafter's law q is from the target's law p, by the measures of DistillSpec (2310.08461), and the gradient:
 *
 *     forward KL   Σ p log(p / q)                      a drafter that says all that the target may say
 *     reverse KL   Σ q log(q / p)                      one that says nothing that the target would not
 *     JSD          KL(p | m) / 2 + KL(q | m) / 2       m = (p + q) / 2
 *     TVD          Σ |p - q| / 2                       one less the share of drafts that is accepted
 *
 * Rows, weights and room are loss.h's. */
#ifndef HN_DIVERGENCE_H
#define HN_DIVERGENCE_H
#include "train/team.h"

typedef enum hn_divergence { HN_KL_FORWARD, HN_KL_REVERSE, HN_JSD, HN_TVD } hn_divergence;

/* By its name on the command line: forward, reverse, jsd, tvd. false: there is none. */
bool hn_divergence_named(const char *name, hn_divergence *out);
/* law [..][vocabulary]: of row r its row law_row[r], NULL: r. dlogits may lie where the logits lie. */
double hn_loss_divergence(hn_team *t, hn_divergence d, hn_mat logits, hn_mat law, const int *law_row,
                          const hn_real *weight, hn_mat dlogits, hn_real *losses);
#endif
