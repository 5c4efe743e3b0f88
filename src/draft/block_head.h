/* SPDX-License-Identifier: Apache-2.0 */
/* block_head.h - what heads have in common whose rows are DFlash's (DFlash, DSpark): which states of the target they read, how long a
 * block is, what its rows see. */
#ifndef HN_BLOCK_HEAD_H
#define HN_BLOCK_HEAD_H
#include "draft/head_drafter.h"

/* Key taps: LAYER:LAYER:..., states that enter these layers. Described as a hn_head_describe describes; the kind is the caller's to
 * check. root_drafts: what holds where a file does not say it. */
hunch_status hn_block_describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                               bool root_drafts, hn_head_taps *taps, hunch_error *err);
/* How many states of its model a folder's config.json says that the head reads; 0: it does not. */
int hn_block_states(const hn_source *src);
#endif
