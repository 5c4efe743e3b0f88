/* SPDX-License-Identifier: Apache-2.0 */
/* serve_prompt.h - prompts as token ids: conversations by the chat template, texts, lists of ids. */
#ifndef HN_SERVE_PROMPT_H
#define HN_SERVE_PROMPT_H

#include "server/serve_server.h"

/* The conversation of a body as its template's text, which is to be freed with hunch_free. add: the beginning of the answer follows. */
bool serve_prompt_render(serve_server *s, hunch_model *m, const json_t *body, bool add, char **text, size_t *len, serve_error *err);
/* "messages", with "tools" and variables of the template: one prompt. */
bool serve_prompt_chat(serve_server *s, serve_call *c, hunch_model *m, const json_t *body, serve_error *err);
/* "prompt": a text, a list of texts, ids, or a list of lists of ids. */
bool serve_prompt_completion(serve_call *c, hunch_model *m, const json_t *body, serve_error *err);
/* A text, or a list of text parts, as one text: new. NULL: it is neither. */
json_t *serve_prompt_content(const json_t *content);
/* A text as ids, flags as of hunch_tokenize; freed with hunch_free. field: for errors. */
bool serve_prompt_tokenize(hunch_model *m, const char *text, size_t len, int flags, const char *field, hunch_token **ids, size_t *n,
                           serve_error *err);

#endif
