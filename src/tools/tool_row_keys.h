/* SPDX-License-Identifier: Apache-2.0 */
/* tool_row_keys.h - what a row says of its own answer: keys that mean what a flag means, under the names that OpenAI's
 * and vLLM's requests have for them; and which keys nobody knows. */
#ifndef HN_TOOL_ROW_KEYS_H
#define HN_TOOL_ROW_KEYS_H

#include "tool_prompts.h"

/* Checks and keeps the settings of a row; `where` begins messages. */
int tool_row_keys_take(tool_prompts *p, tool_prompt *to, json_t *row, const char *where);
/* One line about the unknown keys of a file, if it has any. */
void tool_row_keys_note(const tool_prompts *p, const char *path);
/* Ids, prediction and settings of a prompt, over what the request says. What it points to belongs to p. */
void tool_row_request(hunch_request *r, const tool_prompt *p);

#endif
