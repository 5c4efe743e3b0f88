/* SPDX-License-Identifier: Apache-2.0 */
/* serve_tools.h - calls of tools in chats: what a body offers and asks for, and calls in answers and streams. */
#ifndef HN_SERVE_TOOLS_H
#define HN_SERVE_TOOLS_H

#include "server/serve_wanted.h"

/* What is wanted of tools: c->tools, NULL if an answer is text alone. */
bool serve_tools_read(const serve_server *s, serve_call *c, const hunch_model *m, const serve_view *v, const serve_wanted *w,
                      serve_error *err);
/* Holds the answer to its calls' format and schemas, once its prompt is made; a form that another field asks for comes first. */
bool serve_tools_hold(serve_call *c, const serve_view *v, const serve_wanted *w, serve_error *err);
/* The answer's reader of calls; false: no memory. */
bool serve_tools_begin(serve_choice *one);
/* Whether calls are complete, and none was cut: then that is why the answer ended. */
bool serve_tools_called(const serve_choice *one);
/* A call's id, which the model may have written itself: what of it is not UTF-8 becomes U+FFFD. */
json_t *serve_call_id_json(const char *id);
/* A call as OpenAI has it, with its arguments as text. */
json_t *serve_tools_call_json(const hunch_call *call);

#endif
