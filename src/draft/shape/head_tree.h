/* SPDX-License-Identifier: Apache-2.0 */
/* head_tree.h - which tokens of a draft head become a tree. Pure functions and bookkeeping: no passes, no logits. One file each:
 *
 *   head_tree.c     level by level, from the likeliest nodes of each: EAGLE-2's tree (2406.16858, 4)
 *   tree_opt.c      level by level, as long as one is worth it: OPT-Tree (2406.17276)
 *   tree_best.c     best first through levels that do not depend on each other: DDTree's
 *   tree_shape.c    fixed shapes: the published ones; tree_file.c: those of a file
 *   tree_fitted.c   the fixed shape that fits measured rates, by greedy search, as Medusa's were made (2401.10774)
 *   tree_sequoia.c  the same by Sequoia's dynamic programme (2402.12374)
 *   tree_rates.c    measured rates, from a file
 *
 * Each function says which of equal choices it takes; none makes a path twice, or one without its beginning. */
#ifndef HN_HEAD_TREE_H
#define HN_HEAD_TREE_H
#include "base/status.h"
#include "draft/tree.h"

/* ---- the likeliest paths ---- */

/* A token after a path, in the order of creation: the root's best, then level by level those of each frontier node. */
typedef struct hn_beam_node {
    int32_t token;
    int parent;   /* an earlier one, -1: the root */
    float p;      /* softmax(logits) of the token after its path */
    float score;  /* sum of log p along the path */
    int kept, output; /* the user's: of the pass that evaluated it */
    float confidence; /* the user's too: confidence that the best of its successors is accepted; 0: none */
    hn_certainty certainty; /* the user's too: of the row that gave it */
} hn_beam_node;

typedef struct hn_beam {
    int width;              /* frontier nodes a level, and children of each */
    int n, cap;
    hn_beam_node *node;     /* [cap] */
    int n_frontier, first;  /* nodes to expand; the first node of the newest level */
    int *frontier;          /* [width] */
} hn_beam;

hunch_status hn_beam_open(hn_beam *b, int width, int levels, hunch_error *err);
void hn_beam_close(hn_beam *b); /* zeroed is fine */
void hn_beam_start(hn_beam *b);
/* The children of a frontier node (-1: the root), best first; n <= width. Called in the order of the frontier. */
void hn_beam_add(hn_beam *b, int parent, const int32_t *token, const float *p, int n);
/* After all nodes of a level: the best of them, by score, ties to the earlier one, are the next frontier. */
void hn_beam_advance(hn_beam *b);
/* The `total` nodes of best score, ties to the earlier one, so that no node comes without its parent: list[i], ascending.
 * Returns how many. */
int hn_beam_best(const hn_beam *b, int total, int *list);

/* ---- as long as it is worth it ---- */

/* OPT-Tree's next step after a level was added: its nodes that are among the `total` likeliest of all so far are the next
 * frontier, at most `width`, best first. None (n_frontier 0) if that level added no more than `gain`: the increase of the expected
 * tokens of the best tree, the sum of its paths' probabilities. *expected: that sum, before and after; 0 at the start. */
void hn_opt_advance(hn_beam *b, int total, double gain, double *expected);

/* ---- fixed shapes, and levels that do not depend on each other ---- */

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

/* Sorts nodes whose parents are anywhere before them into the order of hn_shape, and measures them. */
void hn_shape_finish(hn_shape *s);

typedef struct hn_tree_path {
    int n;
    int16_t rank[HN_TREE_ROWS - 1]; /* from the root on */
} hn_tree_path;

/* A shape of n paths, which are sorted. HUNCH_REFUSED: one without its beginning, or twice. name: for errors. */
hunch_status hn_shape_make(hn_shape *s, hn_tree_path *all, int n, const char *name, hunch_error *err);
/* By name (mc_sim_7b_63, ...), or a JSON file (tree_file.c). HUNCH_USAGE: neither. HUNCH_REFUSED: not a tree, as of hn_shape_make, or
 * with a cycle; more than HN_TREE_ROWS - 1 nodes; ranks beyond 63. */
bool hn_shape_is_published(const char *name);
hunch_status hn_shape_read(hn_shape *s, const char *name, hunch_error *err);
hunch_status hn_shape_read_file(hn_shape *s, const char *file, hunch_error *err);

typedef struct hn_tree_level {
    int n;
    const float *log_p; /* [n] of each rank, descending */
} hn_tree_level;

typedef struct hn_best_tree {
    int n;
    hn_shape_node node[HN_TREE_ROWS - 1]; /* likeliest path first; of equally likely ones the shorter, of those the one of lower ranks, from
                                           * the root on */
    float score[HN_TREE_ROWS - 1];        /* log p, summed along the path */
} hn_best_tree;

/* The `total` (at most HN_TREE_ROWS - 1) likeliest paths of ranks through the levels, none of them less likely than `least` (a log),
 * nor of probability 0. */
void hn_best_tree_make(hn_best_tree *t, const hn_tree_level *level, int levels, int total, float least);
/* JetSpec's tree (2606.18394): the likeliest node that has no successors yet gets those of all ranks, in this order, until there are
 * `total`. node: in the order in which they were added. */
void hn_expanded_tree_make(hn_best_tree *t, const hn_tree_level *level, int levels, int total, float least);

/* ---- shapes that fit measured rates ---- */

/* How often the candidate of each rank after a node of depth 0, 1, ... was the right one, given that the node was reached. */
typedef struct hn_rank_rates {
    int depths, ranks;
    double rate[HN_TREE_ROWS - 1][HN_TREE_ROWS];
} hn_rank_rates;

/* "ranks" of `hunch compare --json` (docs/formats.md): the object itself, or that of the first method that has one. pooled: of each rank
 * over all depths, as in Sequoia. HUNCH_USAGE: no such file. HUNCH_REFUSED: not JSON, no "ranks", numbers that cannot be counts. */
hunch_status hn_rank_rates_read(hn_rank_rates *r, const char *path, bool pooled, hunch_error *err);
/* The `total` nodes with the greatest products of rates, at most `depth` deep; fewer if no others were ever right. */
hunch_status hn_shape_fitted(hn_shape *s, const hn_rank_rates *rates, int depth, int total, hunch_error *err);
/* The same by dynamic programming; *tokens (may be NULL): expected tokens of a round, with the target's own token. */
hunch_status hn_shape_sequoia(hn_shape *s, const hn_rank_rates *rates, int depth, int total, double *tokens, hunch_error *err);
#endif
