/* SPDX-License-Identifier: Apache-2.0 */
/* find_heads.h - finds the draft heads beside a model, by their names alone:
 *
 *   NAME.gguf                       NAME.head.gguf in the same folder (of a split model NAME-00001-of-00003.gguf as well)
 *   a folder                        head.gguf in it, then heads/NAME.gguf in the order of their names
 */
#ifndef HN_FIND_HEADS_H
#define HN_FIND_HEADS_H
#include "base/name_list.h"

/* Appends their paths. Errors: HUNCH_NO_MEMORY; hn_name_list_fini must be called also then. */
hunch_status hn_find_heads(const char *model, hn_name_list *out, hunch_error *err);
#endif
