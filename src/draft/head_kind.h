/* SPDX-License-Identifier: Apache-2.0 */
/* head_kind.h - which kind of drafter a folder or file is for, by what lies in it. */
#ifndef HN_HEAD_KIND_H
#define HN_HEAD_KIND_H
#include "format/source.h"

/* The kind's name ("eagle3"; "model" for a whole language model), of those that exist, also such as have no drafter here, or as the
 * folder has it. Valid while src is open. NULL: nothing that is known. */
const char *hn_head_kind(hn_source *src);
#endif
