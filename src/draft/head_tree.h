/* SPDX-License-Identifier: Apache-2.0 */
/* head_tree.h - which tokens of a draft head become a tree: EAGLE-2's tree of the likeliest paths (2406.16858, 4), and trees of
 * a fixed shape. Pure bookkeeping: no passes, no logits. */
#ifndef HN_HEAD_TREE_H
#define HN_HEAD_TREE_H
#include "base/status.h"
#include "draft/tree.h"

/* ---- the likeliest paths ---- */

/* A token behind a path, in the order of being made: the root's best, then level by level those of each frontier node. */
typedef struct hn_beam_node {
    int32_t token;
    int parent;   /* an earlier one, -1: the root */
    float p;      /* softmax(logits) of the token behind its path */
    float score;  /* sum of log p along the path */
    int kept, output; /* the user's: of the pass that asked for its successors */
} hn_beam_node;

typedef struct hn_beam {
    int width;              /* frontier nodes a level, and children of each */
    int n, cap;
    hn_beam_node *node;     /* [cap] */
    int n_frontier, first;  /* nodes whose successors are to be asked for; the first node of the newest level */
    int *frontier;          /* [width] */
} hn_beam;

hunch_status hn_beam_open(hn_beam *b, int width, int levels, hunch_error *err);
void hn_beam_close(hn_beam *b); /* zeroed is fine */
void hn_beam_start(hn_beam *b);
/* The children of a frontier node (-1: the root), best first; n <= width. Called in the order of the frontier. */
void hn_beam_add(hn_beam *b, int parent, const int32_t *token, const float *p, int n);
/* After all of a level: the best of it, by score, ties to the earlier one, are the next frontier. */
void hn_beam_advance(hn_beam *b);
/* The `total` nodes of best score, ties to the earlier one, so that no node comes without its parent: list[i], rising.
 * Returns how many. */
int hn_beam_best(const hn_beam *b, int total, int *list);

/* ---- fixed shapes ---- */

typedef struct hn_shape_node {
    int16_t parent; /* an earlier one, -1: the root */
    int16_t rank;   /* which of its parent's candidates, 0: the best */
    int16_t depth;  /* from 1 */
} hn_shape_node;

typedef struct hn_shape {
    int n, depth;
    int widest; /* most candidates of a node: the highest rank and 1 */
    int most_expanded; /* most nodes of a level that have children */
    hn_shape_node node[HN_TREE_ROWS - 1]; /* by depth, then by path */
} hn_shape;

/* By name (mc_sim_7b_63, ...), or a JSON file: {"paths": [[0], [1], [0, 0], ...]}, or the list alone. HUNCH_USAGE: neither.
 * HUNCH_REFUSED: a path without its beginning, one that is there twice, more than HN_TREE_ROWS - 1, ranks out of range. */
bool hn_shape_is_published(const char *name);
hunch_status hn_shape_read(hn_shape *s, const char *name, hunch_error *err);
#endif
