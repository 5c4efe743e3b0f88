/* SPDX-License-Identifier: Apache-2.0 */
/* tool_rows.h - prompts that are JSON: objects with "prompt", "messages" or "tokens", and bare arrays of messages. One
 * per line, or one in the whole file, over any number of lines. Other keys of a row: tool_row_keys.h. */
#ifndef HN_TOOL_ROWS_H
#define HN_TOOL_ROWS_H

#include "cli/tool_prompts.h"

/* Prompts of a file that holds rows: 0, or the exit code after a message. -1: it is a text. */
int tool_rows_read(tool_prompts *p, const char *text, size_t len, const char *path);
/* Whether a file of this name and beginning holds rows. */
bool tool_rows_begin(const char *path, const char *text);
bool tool_row_id_fits(const json_t *id); /* a text or a whole number of any size */
/* Checks a conversation: a list of objects, not empty. Contents that are lists of parts become texts, in place. */
int tool_messages_check(json_t *messages, const char *where);
/* Checks a list of tools in OpenAI's format: 0, or HUNCH_USAGE after a message that begins with `where`. */
int tool_tools_check(const json_t *tools, const char *where);

#endif
