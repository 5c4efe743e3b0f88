/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees_private.h - the kinds of trees that head_trees.c chooses from, one in each file: each proposes a level, or all. */
#ifndef HN_HEAD_TREES_PRIVATE_H
#define HN_HEAD_TREES_PRIVATE_H
#include "draft/head/head_round.h"

int hn_head_propose_fixed(hn_head_round *c, int n);
int hn_head_propose_likely(hn_head_round *c, int n); /* dynamic, opt */
int hn_head_propose_best(hn_head_round *c, int n);
int hn_head_propose_pruned(hn_head_round *c, int n);
/* The trie is opened with the options, the tables later. Errors as hn_head_trees_read. */
hunch_status hn_head_pruned_read(hn_head_trees *t, const hn_spec *spec, const hn_head_options *o, hunch_error *err);
hunch_status hn_head_pruned_open(hn_head_trees *t, hunch_error *err);
void hn_head_pruned_close(hn_head_trees *t);
#endif
