/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees_private.h - what the files of head_trees.h share. */
#ifndef HN_HEAD_TREES_PRIVATE_H
#define HN_HEAD_TREES_PRIVATE_H
#include "draft/head_force.h"
#include "draft/head_trees.h"

enum { HN_ROOT = -1, HN_NONE = -1 };

/* A node of a fixed shape in this round. */
typedef struct hn_drafted {
    int32_t token;
    int16_t row;      /* of the tree; HN_NONE: none */
    bool spine;       /* force: all tokens up to here were replaced on purpose */
    float path;       /* probability of the tokens up to here by the head's softmax */
    int kept, output; /* of its pass */
} hn_drafted;

/* The likeliest tokens of a level, common to all nodes of a depth. */
typedef struct hn_level_tokens {
    int n;
    int32_t token[HN_MOST_TOPK];
    float p[HN_MOST_TOPK], log_p[HN_MOST_TOPK];
} hn_level_tokens;

typedef struct hn_head_seq_tree {
    hn_drafted root, node[HN_TREE_ROWS - 1];
    const hn_shape *shape; /* of this round */
    hn_beam beam;          /* of dynamic and opt */
    double expected;       /* of opt: tokens of the best tree so far */
    int rows, candidates;  /* of dynamic and opt: those of the round's tree before */
    int newest;            /* the same: the first beam node of the newest level */
    hn_level_tokens *level;  /* [depth], of best */
    int n_levels;
    int spine;             /* force: beam node, HN_ROOT, or HN_NONE - 1; of best: 0 while all tokens are replaced on purpose */
    hn_head_oracle oracle; /* force */
} hn_head_seq_tree;

typedef struct hn_head_round {
    hn_drafter *d;
    hn_head_trees *t;
    hn_propose *p;
    int level, added;
    double confidence; /* of the row that is being read: the head's confidence that its draft is accepted; NAN: none */
    int base; /* the level of the nodes that are being evaluated; `level` is that of the row, with a block or masks further down */
} hn_head_round;

/* The tokens of a row that follow the request's own noise, or the best ones; p: softmax at temperature 1, or what `force` makes of it.
 * Returns how many. */
int hn_head_choose(hn_head_round *c, const hn_propose *p, int row, const hn_history *h, int n, int32_t *token, float *prob);
/* Key `force`: hn_head_oracle_force, after the tokens are chosen. */
int hn_head_force(const hn_head_round *c, const hn_propose *p, hn_head_seq_tree *s, int32_t *token, int n);
/* For the row that is being read; sets c->confidence. False: the head's confidence is too low for anything to be drafted there. That is
 * known before a token is chosen, so it does not depend on the draw. */
bool hn_head_row_confident(hn_head_round *c, const hn_propose *p, int row);
/* Sets the estimate of the best token's candidate, which was added last: the head's own confidence is better than its softmax. */
void hn_head_set_estimate(const hn_head_round *c, hn_tree *t);
/* The levels after a root's own that are requested, for a tree of this many levels. */
int hn_head_masks(const hn_head_trees *t, const hn_propose *p, int levels);

int hn_head_propose_fixed(hn_head_round *c, int n);
int hn_head_propose_likely(hn_head_round *c, int n); /* dynamic, opt */
int hn_head_propose_best(hn_head_round *c, int n);
int hn_head_propose_pruned(hn_head_round *c, int n);
/* The trie is opened with the options, the tables later. Errors as hn_head_trees_read. */
hunch_status hn_head_pruned_read(hn_head_trees *t, const hn_spec *spec, const hn_head_options *o, hunch_error *err);
hunch_status hn_head_pruned_open(hn_head_trees *t, hunch_error *err);
void hn_head_pruned_close(hn_head_trees *t);
#endif
