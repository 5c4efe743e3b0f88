/* SPDX-License-Identifier: Apache-2.0 */
/* head_to_gguf.h - a draft head's folder or file of weights as one GGUF file. */
#ifndef HN_HEAD_TO_GGUF_H
#define HN_HEAD_TO_GGUF_H
#include "format/source.h"

/* Whether a source of this kind (head_kind.h) is a draft head. */
bool hn_head_is(const char *kind);
/* target: the path of the model that it drafts for, against which it is checked; NULL: the file has all that is needed. Errors:
 * HUNCH_USAGE (a target is needed, and why; a GGUF file), else as hn_convert_with, and HUNCH_REFUSED if it does not fit.
 * type: of its matrices, one of hn_convert_type's; HN_WEIGHT_TYPES: as stored. */
hunch_status hn_head_to_gguf(hn_source *src, const char *kind, const char *target, hn_dtype type, const char *out_path,
                             hunch_progress progress, void *user, hunch_error *err);
#endif
