/* SPDX-License-Identifier: Apache-2.0 */
/* tool_foreign.h - flags and commands of other programs, with their names in hunch, for suggestions to users of those
 * programs. */
#ifndef HN_TOOL_FOREIGN_H
#define HN_TOOL_FOREIGN_H

typedef struct tool_foreign {
    const char *name, *ours; /* ours NULL: there is no equivalent, and note has an alternative */
    const char *note;
} tool_foreign;

/* NULL: unknown name. */
const tool_foreign *tool_foreign_flag(const char *name);
const tool_foreign *tool_foreign_command(const char *name);

#endif
