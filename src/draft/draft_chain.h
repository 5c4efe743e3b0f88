/* SPDX-License-Identifier: Apache-2.0 */
/* draft_chain.h - the one chain that a model-free drafter makes in a round, added to the tree level by level, and how much of it was
 * accepted.
 *
 * The whole chain is made at a round's first level; at a level for which the tree has no room the chain ends.
 */
#ifndef HN_DRAFT_CHAIN_H
#define HN_DRAFT_CHAIN_H
#include "draft/drafter.h"

enum { HN_CHAIN_MAX = HN_TREE_ROWS - 1 };

typedef struct hn_draft_chain {
    int32_t token[HN_CHAIN_MAX];
    float estimate[HN_CHAIN_MAX];
    int len;
    int text_n; /* length of the committed text it was made for */
    int tip;    /* row that the next level continues */
} hn_draft_chain;

void hn_draft_chain_start(hn_draft_chain *c, int text_n);                   /* empty */
bool hn_draft_chain_push(hn_draft_chain *c, int32_t token, float estimate); /* false: full */

/* The estimate after n tokens that agreed, by the rule of succession: (n + 1) / (n + 2). */
float hn_draft_chain_estimate(int agreed);

/* Adds level `level` of the chain to the tree; returns how many candidates were added, 0 or 1. */
int hn_draft_chain_propose(hn_draft_chain *c, hn_propose *p, int drafter, int level);

/* How many of the chain's tokens were the target's; *verified: how many of them were still in the tree. If all verified tokens were
 * right, nothing is known of the rest. */
int hn_draft_chain_agreed(const hn_draft_chain *c, const hn_observe *o, int *verified);
#endif
