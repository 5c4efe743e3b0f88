/* SPDX-License-Identifier: Apache-2.0 */
/* head_kind.h - finds which kind of drafter a folder or file is for, by its contents. */
#ifndef HN_HEAD_KIND_H
#define HN_HEAD_KIND_H
#include "format/source.h"

/* *kind: its name ("eagle3"; "model" for a whole language model), of the known kinds, including those without a drafter here, or the name
 * that the folder has. Valid while src is open. NULL: unknown. HUNCH_REFUSED, naming both: a folder has tensors that only one kind has, of
 * two kinds. */
hunch_status hn_head_kind(hn_source *src, const char **kind, hunch_error *err);
/* For the `is` of a kind's hn_head_facts: whether a tensor's name begins so, "model." before it or not; whether there is a layer with
 * attention. */
bool hn_head_has_begin(hn_source *src, const char *begin);
bool hn_head_has_layer(hn_source *src);
#endif
