/* SPDX-License-Identifier: Apache-2.0 */
/* head_rows.h - the interface of a draft head to the code that makes trees of its logits (head_trees.h): the rows of roots and of drafted
 * tokens are evaluated, and read one after another. The passes, caches and stores for that are internal to the head;
 * head_passes.h is one, for heads with rows in the cache. */
#ifndef HN_HEAD_ROWS_H
#define HN_HEAD_ROWS_H
#include <stdint.h>

/* A drafted token, or a root, whose successors are requested. */
typedef struct hn_head_node {
    int seq;
    int32_t token;
    int masks;  /* of a root: levels after its own that are requested from the same pass; 0: of a head that gives one level */
    int kept;   /* out: internal to the head; in: that of the child's parent; -1: the root */
    int output; /* the same */
    const int32_t *path; /* of a drafted token of a head that continues by blocks: the tokens of one, the node's own last */
} hn_head_node;

/* Called for each node while its row's logits can be read, and then for each level after a root that was computed with it, the first
 * of which is mask 1: its logits are those of every node of that depth. For a head that continues by blocks also after drafted tokens:
 * those of nodes of that depth after it. */
typedef void (*hn_head_take)(void *ctx, int node, int mask, int row);

typedef struct hn_head_row_ops {
    /* The roots of sequences (nodes in any order, each of another sequence; text_n[i] tokens committed). take is not called for a node
     * whose sequence cannot be drafted for. */
    void (*roots)(void *head, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx);
    /* A level of drafted tokens, those of a sequence side by side, at most hn_head_trees.width of each. NULL: all levels are computed
     * with the root. */
    void (*level)(void *head, hn_head_node *node, int n, hn_head_take take, void *ctx);
    /* For the row that take was called for: logits in the target's vocabulary, -inf outside a reduced one, until the next call. */
    const float *(*logits)(void *head, int row);
    /* Its best tokens, value descending, ties to the lower id of the head's; rows with fewer numbers end in -1. */
    const int32_t *(*best)(void *head, int row, const float **value);
    double (*sum)(void *head, int row); /* over all of its logits the sum of e^(logit - the best one) */
    double (*confidence)(void *head, int row); /* confidence that its best token is accepted, NAN: none; NULL: never any */
} hn_head_row_ops;
#endif
