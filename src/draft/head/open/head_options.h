/* SPDX-License-Identifier: Apache-2.0 */
/* head_options.h - the options of a draft head's SPEC, as head_drafter.h lists them. */
#ifndef HN_HEAD_OPTIONS_H
#define HN_HEAD_OPTIONS_H
#include "draft/drafter.h"
#include "draft/head/head_force.h"
#include "draft/token_ranks.h"

enum { HN_MOST_TOPK = 16 };

/* The value of `tree` (head_tree.h); HN_TREE_FIXED: a name or a file. */
typedef enum hn_tree_form {
    HN_TREE_CHAIN,
    HN_TREE_DYNAMIC,
    HN_TREE_OPT,
    HN_TREE_BEST,
    HN_TREE_EXPANDED,
    HN_TREE_PRUNED,
    HN_TREE_FITTED,
    HN_TREE_SEQUOIA,
    HN_TREE_FIXED
} hn_tree_form;

typedef struct hn_head_options {
    long depth, topk, total; /* topk, total: 0 if the tree has none */
    bool depth_given;         /* by the spec or --depth: else a head that was trained for a number of levels at once drafts those */
    hn_tree_form form;
    const char *tree;        /* NULL: not given; this and the other pointers point into the spec */
    const char *trie;        /* of tree pruned; NULL: none */
    const hn_tokenizer *tokenizer; /* the target's; NULL: none */
    const char *ranks;       /* of a fitted tree and Sequoia's: a file of counts */
    double gain;             /* of OPT-Tree's */
    bool convert;            /* matrices of floats are packed as `weights` */
    hn_dtype weights, kv;
    double min_p;            /* of a drafted token's path */
    bool min_p_given;         /* by the spec, or auto decides: else that of the head's file */
    double min_confidence;   /* of a head that estimates its confidence in a place */
    bool picks_best;         /* under sampling, if the rule needs no distribution */
    hn_forced_rates force;
    hn_token_selection tokens;    /* n 0: all that the head drafts */
} hn_head_options;

/* HUNCH_USAGE. */
hunch_status hn_head_options_read(hn_head_options *o, hn_spec *spec, const hn_target_info *target, hunch_error *err);
#endif
