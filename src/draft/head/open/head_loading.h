/* SPDX-License-Identifier: Apache-2.0 */
/* head_loading.h - a draft head's model, from its files: described by its kind, checked against the target, loaded. */
#ifndef HN_HEAD_LOADING_H
#define HN_HEAD_LOADING_H
#include "draft/head/head_drafter.h"
#include "draft/head/open/head_options.h"

/* All keys of the spec must have been read, except those that the kind's `describe` reads. *ids: the target's token of each output, to be
 * freed by the caller (hn_free); NULL: the same. On failure there is nothing to close. */
hunch_status hn_head_loading_run(hn_model *m, hn_source *src, hn_spec *spec, const hn_head_options *o, const hn_target_info *target,
                                 hn_head_taps *taps, int32_t **ids, hunch_error *err);
#endif
