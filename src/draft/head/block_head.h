/* SPDX-License-Identifier: Apache-2.0 */
/* block_head.h - common to heads with DFlash's rows (DFlash, DSpark): the states of the target that they read, the length of a block, what
 * its rows attend to. */
#ifndef HN_BLOCK_HEAD_H
#define HN_BLOCK_HEAD_H
#include "draft/head/head_drafter.h"

/* Key taps: LAYER:LAYER:..., states that enter these layers. Describes the head as hn_head_describe does, but does not check its kind.
 * root_drafts: the default if the file does not specify it. */
hunch_status hn_block_describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                               bool root_drafts, hn_head_taps *taps, hunch_error *err);
/* How many states of its model the head reads by a folder's config.json; 0: not specified. */
size_t hn_block_states(const hn_source *src);
/* The states that a head of n layers reads of a model of `layers` >= 5 if its file does not list them: the outputs of n layers, spread
 * evenly between the second and the last but two. */
void hn_block_spread(int layers, int n, int *boundary);
#endif
