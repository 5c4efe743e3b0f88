/* SPDX-License-Identifier: Apache-2.0 */
/* draft_nodes.h - the nodes of a tree that a drafter makes at a round's first level, added to the round's tree level by level: what
 * draft_chain.h is for chains. Parents come before children, and what is worth more before what is worth less, since beyond the budget
 * a node is added only if its row exists already.
 */
#ifndef HN_DRAFT_NODES_H
#define HN_DRAFT_NODES_H
#include "draft/drafter.h"

enum { HN_NODES_MAX = HN_TREE_ROWS - 1 };

typedef struct hn_draft_nodes {
    int n;
    int text_n; /* length of the committed text they were made for; 0: no round */
    int budget; /* how many, from the first, may take new rows */
    int32_t token[HN_NODES_MAX];
    int16_t parent[HN_NODES_MAX]; /* an earlier one, -1: the root */
    int16_t row[HN_NODES_MAX];    /* in the round's tree; -1: not added */
    float estimate[HN_NODES_MAX]; /* given its parent */
    bool stays[HN_NODES_MAX];     /* hn_candidate */
} hn_draft_nodes;

void hn_draft_nodes_start(hn_draft_nodes *x, const hn_propose *p); /* empty, for the round that p begins */
/* Adds a node that need not stay; its number, -1: full. */
int hn_draft_nodes_push(hn_draft_nodes *x, int parent, int32_t token, float estimate);
/* Adds level `level` to the tree; returns how many candidates were added. */
int hn_draft_nodes_propose(hn_draft_nodes *x, hn_propose *p, int drafter, int level);
#endif
