/* SPDX-License-Identifier: Apache-2.0 */
/* recycle_tree.h - from a matrix of next tokens to a tree: child r of a node is the token of rank r after the node's own.
 *
 * The estimates are measured: how often the target's token was that of rank r, by the depth of the node (all tokens that were emitted in
 * rounds with a draft count, whatever the tree had).
 */
#ifndef HN_RECYCLE_TREE_H
#define HN_RECYCLE_TREE_H
#include "draft/draft_nodes.h"
#include "draft/text/recycle_matrix.h"

enum { HN_RECYCLE_DEPTHS = 4 }; /* of rates: 1, 2, 3, deeper */

typedef struct hn_recycle_rates {
    float tried[HN_RECYCLE_DEPTHS], hit[HN_RECYCLE_DEPTHS][HN_RECYCLE_K];
} hn_recycle_rates;

/* A token of this depth, 1 or more, was emitted after one with this row: rank, -1 if it is not there. */
void hn_recycle_learn(hn_recycle_rates *r, int depth, int rank);
/* How often the token of a rank is right at a depth. */
float hn_recycle_rate(const hn_recycle_rates *r, int depth, int rank);

typedef struct hn_recycle_shape {
    bool paper; /* the published tree, else the likeliest nodes */
    int nodes;  /* at most, 1..HN_NODES_MAX */
    int depth;  /* levels at most; of the published tree all that it has */
    int width;  /* ranks at most */
} hn_recycle_shape;

/* Levels of the published tree, as far as HN_NODES_MAX nodes reach. */
int hn_recycle_paper_depth(void);
/* Adds the tree after the root's token. Nodes of rows that are not known are left out, and what would come after them. */
void hn_recycle_tree(const hn_recycle *x, const hn_recycle_rates *r, const hn_recycle_shape *s, int32_t root, hn_draft_nodes *out);
#endif
