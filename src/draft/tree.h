/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - the draft tree of one sequence and one round: separate rows and candidates.
 *
 *   rows        distinct paths, which the pass evaluates. Row 0 is the root (the last token, not yet in the cache);
 *               parents come before children. A chain has one child a row; plain decoding is the root alone.
 *   candidates  at each row an ordered list of proposals for the next token. Equal paths share a row, never a
 *               candidate: two drafters that propose the same token make two candidates and one row.
 *
 * In a round that waits once (hn_backend.one_wait) a draft head's tokens are known when the target's pass is over: until then they are
 * HN_TOKEN_LATER, and rows of one path may be several.
 * Fixed size: no allocation after start.
 */
#ifndef HN_TREE_H
#define HN_TREE_H
#include <stdbool.h>
#include <stdint.h>

#include "draft/certainty.h"
#include "draft/proposal_dist.h"
#include "grammar/matcher.h"
#include "model/pass.h"

enum { HN_TREE_ROWS = 64, HN_TREE_CANDIDATES = 256, HN_TOKEN_LATER = INT32_MIN };

typedef struct hn_candidate {
    int32_t token;
    int16_t drafter;   /* index in the engine */
    int16_t row;       /* the row that this token continues */
    int16_t child;     /* the row of this token; always valid: a candidate that got no row is not added */
    int16_t next;      /* next candidate of the same row in order of addition, -1 at the end */
    int32_t number;    /* how many candidates this drafter had drawn in this round before (contract C3) */
    float estimate;    /* probability that this candidate is accepted, given that its row is reached */
    float p;           /* the probability by its drafter's logits with which it was added; the estimate may be changed later */
    hn_certainty certainty; /* of its drafter's model at the row */
    /* The distribution it was drawn from, or NULL: one-hot, not drawn. Candidates of one row by one drafter share q. Owned by the
     * drafter until its next propose of level 0 for this sequence. */
    const hn_proposal_dist *q;
    bool without; /* drawn without replacement: earlier drawn siblings of the drafter were excluded */
    bool stays;   /* what the target says after it is of use whether it is accepted or not: its row is not cut from the tree */
} hn_candidate;

typedef struct hn_tree {
    int n_rows, n_candidates;
    int max_rows;                     /* limit of this round, root included: 1..HN_TREE_ROWS */
    int32_t token[HN_TREE_ROWS];
    hn_token_source source[HN_TREE_ROWS]; /* of rows whose token is known later */
    int16_t parent[HN_TREE_ROWS];     /* -1 for the root */
    int16_t depth[HN_TREE_ROWS];      /* root 0 */
    int16_t first[HN_TREE_ROWS];      /* first candidate of the row, -1: none */
    int16_t last[HN_TREE_ROWS];
    hn_candidate candidate[HN_TREE_CANDIDATES];
    hn_matcher *grammar;              /* that the text obeys; NULL: it is free */
    int32_t state[HN_TREE_ROWS];      /* in the grammar, after the row's token */
} hn_tree;

/* max_rows is clamped to 1..HN_TREE_ROWS. The tree is free. */
void hn_tree_reset(hn_tree *t, int32_t root, int max_rows);
/* The text obeys a grammar, whose state after the root is this. Of a tree of the root alone. */
void hn_tree_constrain(hn_tree *t, hn_matcher *grammar, int32_t state);
/* Adds a candidate for the token after `row`; makes its row or shares the existing one of this path.
 * Returns the child row, or -1 if the grammar forbids the token, or a new row or candidate would not fit (nothing changes). */
int hn_tree_add(hn_tree *t, int row, int32_t token, int drafter, float estimate);
/* The same for a token drawn from q. Room must be checked before drawing: a drawn candidate must not be left out because of
 * its token (verification.md 11). A q that the sampler made has no token that the grammar forbids. */
int hn_tree_add_drawn(hn_tree *t, int row, int32_t token, int drafter, float estimate, const hn_proposal_dist *q,
                      bool without);
/* A token that is known later, of a tree without a grammar: always a row of its own. -1: it does not fit. */
int hn_tree_add_later(hn_tree *t, int row, hn_token_source source, int drafter, float estimate);
/* The rows' tokens are known: token[n_rows]. path[n]: the accepted one; a candidate of another row that has its path is one of it now. */
void hn_tree_fill(hn_tree *t, const int32_t *token, const int16_t *path, int n);
/* Sets that of the newest candidates, from number `from` on. */
void hn_tree_set_certainty(hn_tree *t, int from, hn_certainty certainty);
/* The number of the drafter's next candidate, by which its proposal noise is keyed (contract C3). */
int32_t hn_tree_next_number(const hn_tree *t, int drafter);
/* Keeps the rows with keep[row] and the candidates that lead to them; a kept row's parent must be kept (the root always
 * is). Rows and candidates are compacted in order; numbers stay. map[row] (may be NULL): the new row, -1: removed. */
void hn_tree_keep(hn_tree *t, const bool *keep, int16_t map[HN_TREE_ROWS]);
/* Restores an earlier state with this many rows and candidates, none of which was removed: drops what was added since. */
void hn_tree_rewind(hn_tree *t, int n_rows, int n_candidates);
/* The row that continues `row` with token, or -1. */
int hn_tree_child(const hn_tree *t, int row, int32_t token);
/* Whether it is one path. */
bool hn_tree_is_chain(const hn_tree *t);
int hn_tree_depth(const hn_tree *t); /* of the deepest row */
/* Debug walker: parents first, depths, lists and tokens consistent, sibling rows distinct. */
bool hn_tree_valid(const hn_tree *t);
#endif
