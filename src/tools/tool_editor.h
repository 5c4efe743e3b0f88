/* SPDX-License-Identifier: Apache-2.0 */
/* tool_editor.h - lines that are typed at a terminal: edited with libedit's keys, with what was typed earlier behind the arrows, and
 * pasted text whole. tool_editor_plain.c is in its place where hunch was built without libedit. */
#ifndef HN_TOOL_EDITOR_H
#define HN_TOOL_EDITOR_H

#include "tool_lines.h"

typedef struct tool_editor tool_editor;

/* Behind tool_tty_begin. names: words that Tab completes where a line begins with them, to a NULL; they must stay. history: what is typed is kept for the
 * next time (tool_recall.h). NULL: lines cannot be edited here, tool_lines reads them. */
tool_editor *tool_editor_open(bool styled, const char *const *names, bool history);
void tool_editor_close(tool_editor **e); /* takes NULL; the terminal is as it was before */

/* The next line without its end, zero-terminated, valid until the next call; a paste may have put line breaks into it. Zero bytes
 * are dropped. TOOL_LINE_INTERRUPTED: what had been typed when tool_interrupted was set. mark: '>' or '.', the prompt. */
tool_line tool_editor_next(tool_editor *e, char mark, char **line, size_t *len);
/* Puts a text behind the arrows, and into the file of history. */
void tool_editor_remember(tool_editor *e, const char *text, size_t len);

#endif
