/* SPDX-License-Identifier: Apache-2.0 */
/* tool_recall.h - what was typed in earlier conversations: $XDG_STATE_HOME/hunch/chat_history (~/.local/state where that is not
 * set), a JSON string a line, for its owner alone. Where the file cannot be read or written there is no history, and nothing fails. */
#ifndef HN_TOOL_RECALL_H
#define HN_TOOL_RECALL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tool_recall {
    char *path; /* NULL: nothing is kept */
} tool_recall;

enum { TOOL_MOST_RECALLED = 1000 }; /* texts; the file is cut to so many when it has twice as many */

/* Gives what the file has, oldest first. A line that is no text is left out. */
void tool_recall_open(tool_recall *r, void (*take)(void *user, const char *text), void *user);
/* Adds one text, of valid UTF-8. The first failure is said, and is the last attempt. */
void tool_recall_add(tool_recall *r, const char *text, size_t len);
void tool_recall_close(tool_recall *r);

#endif
