/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_head.h - what heads have in common whose rows are EAGLE-3's (EAGLE-3, P-EAGLE): which states of the target they
 * read, fc, the norms before it, the first layer's pair. */
#ifndef HN_EAGLE3_HEAD_H
#define HN_EAGLE3_HEAD_H
#include "draft/head_drafter.h"

/* Key taps: LOW:MID:HIGH. Described as a head_describe describes; the kind is the caller's to check. */
hunch_status hn_eagle3_describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                                const hn_target_info *target, hn_head_taps *taps, hunch_error *err);
/* A folder's list of the layers that are read; NULL: it has none. */
const json_t *hn_eagle3_list(const hn_source *src);
#endif
