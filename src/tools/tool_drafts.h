/* SPDX-License-Identifier: Apache-2.0 */
/* tool_drafts.h - the SPECs of drafters, for help and completion. tests/command_help_test.c compares the table with what the library
 * accepts, kind by kind and key by key. */
#ifndef HN_TOOL_DRAFTS_H
#define HN_TOOL_DRAFTS_H

#include <stddef.h>

typedef struct tool_draft_key {
    const char *name, *value; /* value: its range, or words with | between them; FILE and NAME stand for any */
    const char *help;
} tool_draft_key;

typedef struct tool_draft_kind {
    const char *name;
    const char *path; /* "[:FILE]", ":MODEL", ":HEAD"; NULL: no path */
    const char *help;
    tool_draft_key keys[24]; /* to a NULL name */
} tool_draft_kind;

extern const tool_draft_kind tool_draft_kinds[]; /* to a NULL name */
extern const char tool_drafts_text[];            /* text common to all */
/* A key that every draft head has: the first one of the table that is the same but for its values. NULL: it is of few kinds. */
const tool_draft_key *tool_draft_key_shared(const tool_draft_key *key);
const tool_draft_kind *tool_draft_kind_find(const char *name, size_t len); /* NULL: there is none */

#endif
