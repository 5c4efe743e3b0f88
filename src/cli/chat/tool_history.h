/* SPDX-License-Identifier: Apache-2.0 */
/* tool_history.h - the history of typed texts, kept between conversations: $XDG_STATE_HOME/hunch/chat_history (default ~/.local/state), one
 * JSON string per line, readable by its owner alone. If the file cannot be read or written there is no history, and nothing fails. */
#ifndef HN_TOOL_HISTORY_H
#define HN_TOOL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tool_history {
    char *path; /* NULL: nothing is saved */
} tool_history;

enum { TOOL_MOST_HISTORY = 1000 }; /* texts; the file is cut to this number when it has more than twice as many */

/* Passes the texts of the file to take, oldest first. A line that is not a JSON string is skipped. */
void tool_history_open(tool_history *r, void (*take)(void *user, const char *text), void *user);
/* Adds one text, of valid UTF-8. After a first failure, which is reported, nothing more is written. */
void tool_history_add(tool_history *r, const char *text, size_t len);
void tool_history_close(tool_history *r);

#endif
