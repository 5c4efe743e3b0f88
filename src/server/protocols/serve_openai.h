/* SPDX-License-Identifier: Apache-2.0 */
/* serve_openai.h - a conversation as chat completions have it, for the endpoints that only render one, too; and what other protocols
 * have, too. */
#ifndef HN_SERVE_OPENAI_H
#define HN_SERVE_OPENAI_H

#include "server/serve_wanted.h"

/* "messages", "tools", "tool_choice" and what belongs to them. */
bool serve_openai_chat(serve_wanted *w, const serve_view *v, serve_error *err);
/* "tools": functions, each in an object "function". */
bool serve_openai_tools(serve_wanted *w, const serve_view *v, serve_error *err);
/* "tool_choice", once the tools are read: "auto", "none", "required", an object that names a function, in an object "function" or not, or
 * "allowed_tools", likewise. */
bool serve_choice_read(serve_wanted *w, const serve_view *v, serve_error *err);

#endif
