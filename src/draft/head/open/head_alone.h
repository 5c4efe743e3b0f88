/* SPDX-License-Identifier: Apache-2.0 */
/* head_alone.h - a draft head described as its drafter's describe (head_drafter.h) does, without an open target: to convert it, or to list
 * what its files hold. */
#ifndef HN_HEAD_ALONE_H
#define HN_HEAD_ALONE_H
#include "draft/head/head_drafter.h"

typedef struct hn_head_alone {
    hn_arch arch, target; /* the target as far as it is known */
    hn_head_names names;
    hn_head_taps taps;
    bool states; /* it reads those of layers, not the last one */
} hn_head_alone;

/* target: the path of the model that it drafts for, against which it is checked; NULL: the head's file has all that is needed. Errors:
 * HUNCH_USAGE: a target is needed, and why; HUNCH_REFUSED: no drafter of that kind, or it does not fit; those of reading the files. The
 * caller ends it with hn_head_alone_fini, also after an error. */
hunch_status hn_head_describe_alone(hn_head_alone *h, hn_source *src, const char *kind, const char *target, hunch_error *err);
void hn_head_alone_fini(hn_head_alone *h);

/* How a GGUF names the tensors of a head of that kind with this description. */
const hn_head_form *hn_head_form_in_gguf(const char *kind, const hn_arch *a);
#endif
