/* SPDX-License-Identifier: Apache-2.0 */
/* head_rows.h - what a draft head gives to those who make trees of its logits (head_trees.h): the rows of roots and of drafted
 * tokens are evaluated, and read one after another. Which passes, caches and stores that takes is the head's own affair;
 * head_passes.h is one, for heads with rows in the cache. */
#ifndef HN_HEAD_ROWS_H
#define HN_HEAD_ROWS_H
#include <stdint.h>

/* A drafted token, or a root, whose successors are wanted. */
typedef struct hn_head_node {
    int seq;
    int32_t token;
    int masks;  /* of a root: levels behind its own that are wanted of the same pass; 0: of a head that gives one level */
    int kept;   /* out: the head's own, handed back as that of a child's parent before; -1: the root */
    int output; /* out: the same */
    const int32_t *path; /* of a drafted token of a head that goes on by blocks: the tokens of one, the node's own last */
} hn_head_node;

/* Called for each node while its row's logits can be read, and then for each level behind a root that came with it, the first
 * of which is mask 1: its logits are those of every node of that depth. Of a head that goes on by blocks behind drafted tokens too: those of
 * nodes of that depth behind it. */
typedef void (*hn_head_take)(void *ctx, int node, int mask, int row);

typedef struct hn_head_row_ops {
    /* The roots of sequences (nodes in any order, each of another sequence; text_n[i] tokens committed). A node whose sequence
     * cannot be drafted for is not taken. */
    void (*roots)(void *head, hn_head_node *node, const int *text_n, int n, hn_head_take take, void *ctx);
    /* A level of drafted tokens, those of a sequence side by side, at most the width that hn_head_trees_read said of each. NULL: all levels
     * come with the root. */
    void (*level)(void *head, hn_head_node *node, int n, hn_head_take take, void *ctx);
    /* Of a row that is being taken: logits in the target's vocabulary, -inf outside a reduced one, until the next call. */
    const float *(*logits)(void *head, int row);
    /* Its best tokens, value descending, ties to the lower id of the head's; rows with fewer numbers end in -1. */
    const int32_t *(*best)(void *head, int row, const float **value);
    double (*sum)(void *head, int row); /* over all of its logits the sum of e^(logit - the best one) */
    double (*sure)(void *head, int row); /* how likely it takes its best token to be accepted, NAN: it does not say; NULL: never */
} hn_head_row_ops;
#endif
