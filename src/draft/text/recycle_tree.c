/* SPDX-License-Identifier: Apache-2.0 */
/* recycle_tree.c - see recycle_tree.h. */
#include "draft/text/recycle_tree.h"

#include <math.h>

/* ---- rates ---------------------------------------------------------------------------------------------------------------- */

static const float KEEP = 1 - 1.0f / 1024;  /* a token */
static const double PRIOR_WEIGHT = 8;       /* tokens that the prior counts, or a depth against the next one */

static int class_of(int depth) {
    return depth < HN_RECYCLE_DEPTHS ? depth - 1 : HN_RECYCLE_DEPTHS - 1;
}

void hn_recycle_learn(hn_recycle_rates *r, int depth, int rank) {
    const int d = class_of(depth);
    r->tried[d] = r->tried[d] * KEEP + 1;
    for (int i = 0; i < HN_RECYCLE_K; i++) r->hit[d][i] = r->hit[d][i] * KEEP + (i == rank ? 1 : 0);
}

/* Before anything is measured the ranks fall as such lists do; a depth is shrunk towards the one before it. */
float hn_recycle_rate(const hn_recycle_rates *r, int depth, int rank) {
    double rate = 0.4 / pow(rank + 1, 1.5);
    for (int d = 0; d <= class_of(depth); d++)
        rate = ((double)r->hit[d][rank] + PRIOR_WEIGHT * rate) / ((double)r->tried[d] + PRIOR_WEIGHT);
    return (float)rate;
}

/* ---- trees ---------------------------------------------------------------------------------------------------------------- */

/* The published tree has 80 nodes: of each its number of children, whose ranks are 0, 1, .., in order of depth and ranks, the root first.
 * Of its levels of 8, 21, 25, 15, 8 and 3 nodes HN_NODES_MAX, in this order, are the first three and nine nodes of the fourth. */
static const uint8_t paper_children[] = {8, /* root */
                                         8, 4, 3, 2, 1, 1, 1, 1, /* 0 to 7 */
                                         8, 3, 2, 1, 1, 1, 1, 1, 2, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, /* 0.0 to 7.0 */
                                         5, 2, 1, 1}; /* 0.0.0 to 0.0.3 */
enum { PAPER_DEPTH = 4 };

int hn_recycle_paper_depth(void) {
    return PAPER_DEPTH;
}

/* The token of a rank after a node, or after the root (node -1); -1: none. */
static int32_t next_of(const hn_recycle *x, const hn_draft_nodes *n, int32_t root, int node, int rank) {
    const int32_t *row = hn_recycle_row(x, node < 0 ? root : n->token[node]);
    return row && rank < x->k ? row[rank] : -1;
}

static void paper_tree(const hn_recycle *x, const hn_recycle_rates *r, const hn_recycle_shape *s, int32_t root, hn_draft_nodes *out) {
    int16_t node[HN_TREE_ROWS] = {-1}; /* of each of the tree's, the root first: -1 the root, -2: left out */
    int8_t depth[HN_TREE_ROWS] = {0};
    int made = 1;
    for (int parent = 0; parent < (int)sizeof paper_children && made <= s->nodes; parent++)
        for (int rank = 0; rank < paper_children[parent] && made <= s->nodes; rank++, made++) {
            const int32_t token = node[parent] > -2 && rank < s->width ? next_of(x, out, root, node[parent], rank) : -1;
            depth[made] = (int8_t)(depth[parent] + 1);
            node[made] = -2;
            if (token < 0) continue;
            node[made] = (int16_t)hn_draft_nodes_push(out, node[parent], token, hn_recycle_rate(r, depth[made], rank));
        }
}

/* A node or the root, while its children are taken in order of rank. */
typedef struct open_node {
    int node, depth, next; /* depth of its children; rank of the next one */
    double p;              /* of its path */
} open_node;

/* The likeliest nodes first: by the product of their rates. */
static void best_tree(const hn_recycle *x, const hn_recycle_rates *r, const hn_recycle_shape *s, int32_t root, hn_draft_nodes *out) {
    float rate[HN_RECYCLE_DEPTHS][HN_RECYCLE_K];
    open_node open[HN_TREE_ROWS] = {{-1, 1, 0, 1}};
    int n = 1;
    for (int d = 0; d < HN_RECYCLE_DEPTHS; d++)
        for (int k = 0; k < x->k; k++) rate[d][k] = hn_recycle_rate(r, d + 1, k);
    while (out->n < s->nodes) {
        double most = 0;
        int at = -1;
        for (int i = 0; i < n; i++) {
            const double p = open[i].next < s->width ? open[i].p * (double)rate[class_of(open[i].depth)][open[i].next] : 0;
            if (p > most && next_of(x, out, root, open[i].node, open[i].next) >= 0) most = p, at = i;
        }
        if (at < 0) return;
        open_node *from = &open[at];
        const int32_t token = next_of(x, out, root, from->node, from->next);
        const int made = hn_draft_nodes_push(out, from->node, token, rate[class_of(from->depth)][from->next++]);
        if (from->depth < s->depth) open[n++] = (open_node){made, from->depth + 1, 0, most};
    }
}

void hn_recycle_tree(const hn_recycle *x, const hn_recycle_rates *r, const hn_recycle_shape *s, int32_t root, hn_draft_nodes *out) {
    hn_recycle_shape fits = *s;
    if (fits.width > x->k) fits.width = x->k;
    (s->paper ? paper_tree : best_tree)(x, r, &fits, root, out);
}
