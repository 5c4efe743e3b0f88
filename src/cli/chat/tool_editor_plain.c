/* SPDX-License-Identifier: Apache-2.0 */
/* tool_editor_plain.c - see tool_editor.h: replaces tool_editor.c if hunch is built without libedit. */
#include "cli/chat/tool_editor.h"

tool_editor *tool_editor_open(bool styled, const char *const *names, bool history) {
    (void)styled, (void)names, (void)history;
    return NULL;
}

void tool_editor_close(tool_editor **e) {
    (void)e;
}

tool_line tool_editor_next(tool_editor *e, char mark, char **line, size_t *len) {
    (void)e, (void)mark, (void)line, (void)len;
    return TOOL_LINE_END;
}

void tool_editor_remember(tool_editor *e, const char *text, size_t len) {
    (void)e, (void)text, (void)len;
}

void tool_editor_pause(tool_editor *e) {
    (void)e;
}

void tool_editor_resume(tool_editor *e) {
    (void)e;
}
