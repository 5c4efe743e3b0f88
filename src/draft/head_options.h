/* SPDX-License-Identifier: Apache-2.0 */
/* head_options.h - the options of a draft head's SPEC, as head_drafter.h lists them. */
#ifndef HN_HEAD_OPTIONS_H
#define HN_HEAD_OPTIONS_H
#include "draft/drafter.h"
#include "draft/token_ranks.h"

enum { HN_MOST_TOPK = 16 };

typedef struct hn_head_options {
    long depth, topk, total; /* topk, total: 0 where the tree is not dynamic */
    bool depth_said;         /* by the spec or --depth: else a head that was trained for so many levels at once drafts those */
    const char *tree;        /* NULL: a chain; as the others that point, the spec's */
    const char *trie;        /* of tree pruned; NULL: none */
    const hn_tokenizer *tokenizer; /* the target's; NULL: none */
    bool convert;            /* matrices of floats are packed as `weights` */
    hn_dtype weights, kv;
    double min_p;            /* of a drafted token's path */
    double force;            /* NAN: not asked for */
    hn_token_wish tokens;    /* n 0: whatever the head drafts */
} hn_head_options;

/* HUNCH_USAGE. */
hunch_status hn_head_options_read(hn_head_options *o, hn_spec *spec, const hn_target_info *target, hunch_error *err);
#endif
