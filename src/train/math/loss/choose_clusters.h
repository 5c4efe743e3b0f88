/* SPDX-License-Identifier: Apache-2.0 */
/* choose_clusters.h - which tokens are in a cluster together, all clusters of equal size, before training. */
#ifndef HN_CHOOSE_CLUSTERS_H
#define HN_CHOOSE_CLUSTERS_H
#include "train/math/workers.h"

typedef enum hn_cluster_start {
    HN_CLUSTERS_KMEANS,    /* similar rows of the output matrix: balanced spherical k-means */
    HN_CLUSTERS_RANDOM,
    HN_CLUSTERS_FREQUENCY, /* the most frequent tokens in the first cluster, the next in the second */
} hn_cluster_start;

const char *hn_cluster_start_name(hn_cluster_start start);
bool hn_cluster_start_named(const char *name, hn_cluster_start *out);

/* order [rows.rows]: the rows, cluster after cluster, ascending in each; rows.rows is a multiple of `clusters`. first [rows.rows]: the rows
 * by frequency, for that start. The same for the same seed, whatever the number of workers. HUNCH_NO_MEMORY. */
hunch_status hn_clusters_choose(hn_workers *t, hn_cluster_start start, hn_mat rows, int clusters, const int *first, uint64_t seed,
                                int *order, hunch_error *err);
/* The mean of each cluster's rows: [clusters][rows.cols], its product with a state is that of the cluster's mean logit. */
void hn_clusters_means(hn_mat rows, const int *order, hn_mat means);
#endif
