/* SPDX-License-Identifier: Apache-2.0 */
/* head_form.h - finds the form of a draft head's files: how they name its tensors. */
#ifndef HN_DRAFT_HEAD_FORM_H
#define HN_DRAFT_HEAD_FORM_H
#include "model/head/head.h"

/* By tensors alone: a form of a kind, or one that kinds share. */
hn_head_names hn_head_find_names(hn_source *src);
#endif
