/* SPDX-License-Identifier: Apache-2.0 */
/* tool_foreign.h - what flags and commands of other programs are called here, for those who come from them. */
#ifndef HN_TOOL_FOREIGN_H
#define HN_TOOL_FOREIGN_H

typedef struct tool_foreign {
    const char *name, *ours; /* ours NULL: there is nothing like it, and note says what there is */
    const char *note;
} tool_foreign;

/* NULL: not one that is known. */
const tool_foreign *tool_foreign_flag(const char *name);
const tool_foreign *tool_foreign_command(const char *name);

#endif
