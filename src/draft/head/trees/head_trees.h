/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees.h - chains and trees of a draft head: which tokens of its rows become candidates. For every head, whatever its passes
 * are (head_passes.h): one that continues from its own output, a level a pass, or one whose root gives all levels.
 *
 * A chain is a tree of fixed shape like any other. Level k of a fixed shape is computed when propose is called for it; a tree of the
 * likeliest paths is computed as a whole at level 0, because its nodes are known only at the end, and so is every tree of a head whose
 * root gives all levels: there all nodes of a level have the same logits.
 *
 * In the order of use: read (the spec), open (tables), needs, best; then rounds. */
#ifndef HN_HEAD_TREES_H
#define HN_HEAD_TREES_H
#include "draft/head/head_round.h"

/* Reads which tree is requested: depth, width and topk are known afterwards. HUNCH_USAGE names the spec. */
hunch_status hn_head_trees_read(hn_head_trees *t, const hn_spec *spec, const hn_head_options *o, hunch_error *err);
/* Tables for n_seqs sequences, rows of a head with that many levels in the root's pass (1: one), vocab: the target's. */
hunch_status hn_head_trees_open(hn_head_trees *t, const hn_spec *spec, hn_head_passes *head, int levels_at_once, int n_seqs,
                                int vocab, hunch_error *err);
/* HUNCH_USAGE: a tree or chain of more levels was requested. */
hunch_status hn_head_trees_check(const hn_head_trees *t, const hn_spec *spec, int levels, hunch_error *err);
/* Before open: the head drafts no deeper. */
void hn_head_trees_limit(hn_head_trees *t, int levels);
size_t hn_head_tree_bytes(const hn_head_trees *t); /* of a sequence */
void hn_head_trees_close(hn_head_trees *t); /* zeroed is fine */
void hn_head_trees_needs(const hn_head_trees *t, hn_needs *needs);
/* How many best tokens of a row are needed, for a head that drafts `outputs` tokens. */
int hn_head_trees_best(hn_head_trees *t, int outputs);

/* For key `force`; without it these do nothing. */
hunch_status hn_head_trees_begin(hn_head_trees *t, const hn_begin *b, hunch_error *err);
void hn_head_trees_end(hn_head_trees *t, int seq);

int hn_head_trees_propose(hn_head_trees *t, hn_drafter *d, hn_propose *p, int n, int level);
#endif
