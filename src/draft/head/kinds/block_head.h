/* SPDX-License-Identifier: Apache-2.0 */
/* block_head.h - common to heads with DFlash's rows (DFlash, DSpark, JetSpec): the states of the target that they read, the length of a
 * block, what its rows attend to. */
#ifndef HN_BLOCK_HEAD_H
#define HN_BLOCK_HEAD_H
#include "draft/head/head_drafter.h"

/* A kind of such heads: its name in files, and what holds if a file does not specify it. */
typedef struct hn_block_form {
    const char *name;
    bool root_drafts;
    bool own_cap; /* it has a cap of its own on its logits */
    bool windows_ahead; /* rows of layers with a window see later rows of the block */
} hn_block_form;

/* Key taps: LAYER:LAYER:..., states that enter these layers. Describes the head as hn_head_describe does. */
hunch_status hn_block_describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                               const hn_block_form *kind, hn_head_taps *taps, hunch_error *err);
/* How many states of its model the head reads by a folder's config.json; 0: not specified. */
size_t hn_block_states(const hn_source *src);
/* The states that a head of n layers reads of a model of `layers` >= 5 if its file does not list them: the outputs of n layers, spread
 * evenly between the second and the last but two. */
void hn_block_spread(int layers, int n, int *boundary);
#endif
