/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_head.h - common to heads with EAGLE-3's rows (EAGLE-3, P-EAGLE): the states of the target that they read, fc, the norms
 * before it, the first layer's pair. */
#ifndef HN_EAGLE3_HEAD_H
#define HN_EAGLE3_HEAD_H
#include "draft/head/head_drafter.h"

/* Key taps: LOW:MID:HIGH. Describes the head as hn_head_describe does, but does not check its kind. */
hunch_status hn_eagle3_describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                                const hn_target_info *target, hn_head_taps *taps, hunch_error *err);
/* How many layers a folder lists as read; 0: it has no list. */
size_t hn_eagle3_states(const hn_source *src);
#endif
