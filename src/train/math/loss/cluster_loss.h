/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_loss.h - the loss of an output whose tokens are in clusters of equal size: of a row only the tokens of the clusters with the best
 * scores have logits, as when it drafts (docs/heads.md, "Clusters of tokens"). */
#ifndef HN_CLUSTER_LOSS_H
#define HN_CLUSTER_LOSS_H
#include "train/math/workers.h"

enum { HN_MOST_CLUSTERS = 4096 };

typedef struct hn_token_clusters {
    int count, used;  /* 0: none; clusters with logits of a row, of equal scores the first */
    const int *order; /* [vocab] the tokens, cluster after cluster */
} hn_token_clusters;

/* As hn_loss_soft. The loss of a row is the sum of two cross entropies: of the distribution summed over each cluster with the softmax of
 * the scores [rows][count], and of the distribution's part in the row's clusters with the softmax of their logits. The choice of
 * clusters counts as a constant: logits of other tokens have the gradient 0. dlogits and dscores may be the matrices of logits and
 * scores. */
double hn_loss_clusters(hn_workers *t, hn_mat logits, hn_mat scores, const hn_token_clusters *c, hn_mat dist, const int *dist_row,
                        const hn_real *weight, hn_mat dlogits, hn_mat dscores, hn_real *losses);
#endif
