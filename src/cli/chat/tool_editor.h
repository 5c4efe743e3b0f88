/* SPDX-License-Identifier: Apache-2.0 */
/* tool_editor.h - lines typed at a terminal: edited with libedit's keys, with a history on the arrow keys, and pasted text in one piece.
 * tool_editor_plain.c replaces it if hunch is built without libedit. */
#ifndef HN_TOOL_EDITOR_H
#define HN_TOOL_EDITOR_H

#include "cli/chat/tool_lines.h"

typedef struct tool_editor tool_editor;

/* Call after tool_tty_begin. names: words that Tab completes at the beginning of a line, ending with NULL; borrowed. history: typed text is
 * saved for later sessions (tool_history.h). NULL: lines cannot be edited here, tool_lines reads them. */
tool_editor *tool_editor_open(bool styled, const char *const *names, bool history);
void tool_editor_close(tool_editor **e); /* accepts NULL; restores the terminal */

/* The next line without its end, zero-terminated, valid until the next call; a paste may have put line breaks into it. Zero bytes are
 * dropped. TOOL_LINE_INTERRUPTED: the text typed before tool_interrupted was set. mark: '>' or '.', the prompt. */
tool_line tool_editor_next(tool_editor *e, char mark, char **line, size_t *len);
/* Between these calls, which accept NULL, a message is answered: Ctrl-C is a signal, and one that was typed since the last line is
 * raised by the first of them. Other keys are kept for the next line. */
void tool_editor_pause(tool_editor *e);
void tool_editor_resume(tool_editor *e);
/* Adds a text to the history and its file. */
void tool_editor_remember(tool_editor *e, const char *text, size_t len);

#endif
