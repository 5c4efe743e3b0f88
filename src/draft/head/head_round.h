/* SPDX-License-Identifier: Apache-2.0 */
/* head_round.h - the state of a draft head's trees and of one round, and which tokens of a row are chosen: what all kinds of trees
 * (head_trees_private.h) are made with. It knows none of them. */
#ifndef HN_HEAD_ROUND_H
#define HN_HEAD_ROUND_H
#include "draft/draft_dist.h"
#include "draft/head/head_force.h"
#include "draft/head/open/head_options.h"
#include "draft/head/head_passes.h"
#include "draft/shape/head_tree.h"

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
    hn_drafted root;
    union {
        hn_drafted node[HN_TREE_ROWS - 1];    /* of a fixed shape */
        hn_certainty certainty[HN_TREE_ROWS]; /* by level, of best and pruned */
    };
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

typedef struct hn_head_trees {
    hn_head_passes *head;  /* whose rows they are made of */
    bool at_once;          /* the root gives all levels */
    bool laid_out;         /* the root's pass has places of all levels, which later ones continue from. Set before open */
    int block;             /* levels that a root and each expanded token give; 0, 1: one. Set before open */
    int32_t *path;         /* [n_seqs * width][block] */
    hn_tree_form form;
    bool likely;           /* the likeliest paths: dynamic, opt, best, pruned */
    bool forced, dist, is_tree;
    int depth, topk, total;
    double gain;
    int width;             /* most nodes of a level that are expanded */
    hn_forced_rates force;
    double min_p, min_confidence;
    bool picks_best;       /* under sampling, if the rule needs no distribution: the likeliest; else drawn with the request's noise */
    hn_shape chain, shape;
    bool one_wait;         /* the backend's (hn_backend.one_wait). Set before read */
    bool ahead;            /* of this round: its tokens are known later, and its trees have the shape */
    hn_shape later;        /* that they have then */
    int n_seqs, vocab;
    hn_draft_dists dists;
    hn_head_seq_tree *seq; /* [n_seqs] */
    hn_head_node *node;    /* [n_seqs * width] of a level */
    int *of;               /* [n_seqs * width] which proposal each is of */
    int *place;            /* the same: node of the shape or of the beam */
    int *text_n, *added;   /* [n_seqs] of a pass: tokens of each root's text; of each proposal candidates, and */
    bool *ready;           /* whether it takes rows */
    float *drawn;          /* [workers][vocab] logits without the tokens drawn so far */
    int16_t *row;          /* of trees grown by levels: row of each node of a beam */
    struct hn_head_pruned *grams; /* of a pruned tree (head_trees_pruned.c); else NULL */
} hn_head_trees;

typedef struct hn_head_round hn_head_round;
struct hn_head_round {
    hn_drafter *d;
    hn_head_trees *t;
    hn_propose *p;
    int level, added;
    hn_certainty certainty; /* of the row that is being read, as far as it was asked for */
    double confidence; /* of the row that is being read: the head's confidence that its draft is accepted; NAN: none */
    int base; /* the level of the nodes that are being evaluated; `level` is that of the row, with a block or masks further down */
    int worker;
    /* Takes a row of node i of the level (hn_head_row): changes what belongs to the node's text and this worker alone. */
    void (*take)(hn_head_round *c, int i, int mask, int row);
    /* Allocates what take would. False: no memory. NULL: it allocates nothing. */
    bool (*reserve)(hn_head_round *c, int i, int mask);
};

/* The tokens of a row that follow the request's own noise, or the best ones; p: softmax at temperature 1, or what `force` makes of it.
 * Returns how many. */
int hn_head_choose(hn_head_round *c, const hn_propose *p, int row, const hn_history *h, int n, int32_t *token, float *prob);
/* Key `force`: hn_head_oracle_force, after the tokens are chosen. */
int hn_head_force(const hn_head_round *c, const hn_propose *p, hn_head_seq_tree *s, int32_t *token, int n);
/* For the row that is being read; sets c->confidence and c->certainty. False: the head's confidence is too low for anything to be drafted
 * there. That is known before a token is chosen, so it does not depend on the draw. */
bool hn_head_row_confident(hn_head_round *c, const hn_propose *p, int row);
/* The same of a level whose row all its nodes share: kept for its candidates; and given to the one that was added last. */
void hn_head_level_certainty(const hn_head_round *c, const hn_propose *p, int level, int row);
void hn_head_set_level_certainty(const hn_head_round *c, const hn_propose *p);
/* Sets the estimate of the best token's candidate, which was added last: the head's own confidence is better than its softmax. */
void hn_head_set_estimate(const hn_head_round *c, hn_tree *t);
/* Runs the roots of all proposals that have room, with as many levels as their pass gives. */
void hn_head_run_roots(hn_head_round *c, int n);
/* For hn_head_roots and hn_head_level, the round being ctx: has every row taken; if tokens are drawn from whole rows of several texts, by
 * all workers, each text's rows in order by one of them. */
void hn_head_take_rows(void *round, const hn_head_row *read, int n);
/* The estimate of a token that is known later, by its rank: that of a head that fits its target. What heads are worth is learned by it. */
static inline float hn_head_later_estimate(int rank) {
    float p = 0.6f;
    for (int k = 0; k < rank && k < 8; k++) p *= 0.25f;
    return p;
}
/* The levels after a root's own that are requested, for a tree of this many levels. */
int hn_head_masks(const hn_head_trees *t, const hn_propose *p, int levels);
#endif
