/* SPDX-License-Identifier: Apache-2.0 */
/* tool_lines.h - lines of standard input for a conversation: waits for input or Ctrl-C, whichever comes first. */
#ifndef HN_TOOL_LINES_H
#define HN_TOOL_LINES_H

#include "app/tool_output.h"

typedef struct tool_lines {
    char *buffer;
    size_t begin, end, cap; /* bytes [begin, end) were read but not yet returned */
    bool ended;
} tool_lines;

typedef enum tool_line { TOOL_LINE, TOOL_LINE_END, TOOL_LINE_INTERRUPTED } tool_line;

/* The next line without its line break (\n, or \r and \n), zero-terminated, valid until the next call; the last line needs no break. A read
 * error counts as the end. */
tool_line tool_lines_next(tool_lines *l, char **line, size_t *len);
void tool_lines_fini(tool_lines *l);

#endif
