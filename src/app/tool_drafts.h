/* SPDX-License-Identifier: Apache-2.0 */
/* tool_drafts.h - the SPECs of drafters, for help and completion: the library's kinds and the words that the engine replaces by them. */
#ifndef HN_TOOL_DRAFTS_H
#define HN_TOOL_DRAFTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/program_files.h"

typedef struct tool_draft_kind {
    const char *name;
    const char *path, *help; /* as in hn_drafter_help */
    const hn_drafter_key *keys;
} tool_draft_kind;

extern const char tool_drafts_text[]; /* text common to all */
bool tool_draft_kind_at(int i, tool_draft_kind *k); /* the i-th; false: there are no more */
bool tool_draft_kind_find(const char *name, size_t len, tool_draft_kind *k); /* false: there is none */
/* A key that every draft head has: the first one of all that is the same but for its values. NULL: it is of few kinds. */
const hn_drafter_key *tool_draft_key_shared(const hn_drafter_key *key);

#endif
