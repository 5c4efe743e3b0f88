/* SPDX-License-Identifier: Apache-2.0 */
/* tool_calls.h - calls of tools in answers: --tools and the key "tools" of rows, --tool-choice, --tool-format. */
#ifndef HN_TOOL_CALLS_H
#define HN_TOOL_CALLS_H

#include "cli/tool_render.h"

/* What a prompt's answer may call: its own tools, else those of --tools; *out NULL: nothing, or no format is known. Lets the request's
 * answer have calls, and holds it to them, or keeps it from them; an answer that obeys a form already may call, but cannot be made to.
 * stops: for the request's, with the token that ends an answer behind its calls. */
hunch_status tool_calls_open(hunch_tools **out, hunch_request *r, hunch_token stops[HUNCH_MOST_STOPS], const tool_template *t,
                             const tool_prompt *p, const hunch_model *m, const tool_options *o, hunch_error *err);
/* Adds "answer", "thinking", "tool_calls", and "broken_calls" if there are any. */
void tool_calls_json(json_t *out, const hunch_tools *tools, bool thinks, const char *text, size_t len);
/* An answer as a message of a conversation, with its calls; NULL: it has none. thinking: the template wants thinking in a field of this
 * name, and no content beside calls then; NULL: in one that it may ignore. */
json_t *tool_calls_message(const hunch_tools *tools, bool thinks, const char *text, size_t len, const char *thinking);

#endif
