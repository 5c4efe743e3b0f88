/* SPDX-License-Identifier: Apache-2.0 */
/* tool_row_keys.h - settings of a row: keys that are equivalent to flags, with the names of OpenAI's and vLLM's
 * requests; and the unknown keys. */
#ifndef HN_TOOL_ROW_KEYS_H
#define HN_TOOL_ROW_KEYS_H

#include "cli/tool_prompts.h"

/* Checks and stores the settings of a row; messages begin with `where`. */
int tool_row_keys_take(tool_prompts *p, tool_prompt *to, json_t *row, const char *where);
/* One line about the unknown keys of a file, if it has any. */
void tool_row_keys_note(const tool_prompts *p, const char *path);
/* Overrides a request by the ids, prediction and settings of a prompt. Its pointers are borrowed from p. */
void tool_row_request(hunch_request *r, const tool_prompt *p);
/* Which drafters may propose, by the row's list of names or that of the flags. HUNCH_USAGE: the engine has none of a name. */
hunch_status tool_row_drafters(hunch_request *r, const hunch_engine *e, const tool_options *o, const tool_prompt *p, hunch_error *err);

#endif
