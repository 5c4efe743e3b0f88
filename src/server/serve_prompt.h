/* SPDX-License-Identifier: Apache-2.0 */
/* serve_prompt.h - prompts as token ids: conversations by the chat template, texts, lists of ids. */
#ifndef HN_SERVE_PROMPT_H
#define HN_SERVE_PROMPT_H

#include "server/serve_wanted.h"

/* A conversation as its template's text, and which pieces of it the template wrote: names of control tokens in the others are text. */
typedef struct serve_rendered {
    char *text;
    size_t len;
    hunch_piece *pieces; /* NULL: there is no template */
    size_t n_pieces;
} serve_rendered;
void serve_rendered_free(serve_rendered *r); /* zeroed is fine */
/* A conversation, to be freed with serve_rendered_free. add: the beginning of the answer follows. */
bool serve_prompt_render(serve_server *s, hunch_model *m, const serve_view *v, const serve_wanted *w, bool add, serve_rendered *to,
                         serve_error *err);
/* Its ids, to be freed with hunch_free; of more than `most` *ids is NULL, and *n what there are at least. */
bool serve_rendered_tokenize(hunch_model *m, const serve_view *v, const serve_rendered *r, size_t most, hunch_token **ids, size_t *n,
                             serve_error *err);
/* One prompt of a conversation. */
bool serve_prompt_chat(serve_server *s, serve_call *c, hunch_model *m, const serve_view *v, const serve_wanted *w, serve_error *err);
/* "prompt": a text, a list of texts, ids, or a list of lists of ids. */
bool serve_prompt_completion(serve_server *s, serve_call *c, hunch_model *m, const serve_view *v, serve_error *err);
/* The field `name`, a text or a list of text parts, as one text: new. NULL after an error, or, without one, if it is missing. */
json_t *serve_prompt_content(const serve_view *v, const char *name, serve_error *err);
/* A text as ids, flags as of hunch_tokenize, freed with hunch_free; of more than `most` *ids is NULL, and *n what there are at least.
 * field: for errors. */
bool serve_prompt_tokenize(hunch_model *m, const serve_view *v, const char *text, size_t len, int flags, const char *field, size_t most,
                           hunch_token **ids, size_t *n, serve_error *err);

#endif
