/* SPDX-License-Identifier: Apache-2.0 */
/* serve_grammar.h - what an answer must look like: OpenAI's response_format, vLLM's structured_outputs and guided_*, llama.cpp's grammar
 * and json_schema. */
#ifndef HN_SERVE_GRAMMAR_H
#define HN_SERVE_GRAMMAR_H

#include "server/serve_call.h"
#include "server/protocols/serve_fields.h"

/* What an answer has to look like, before it is a grammar. */
typedef struct serve_form {
    bool given;
    hunch_grammar_kind kind;
    const char *field; /* for messages */
    serve_bytes text;
} serve_form;
/* A schema, or the text of one, that a field has. */
bool serve_form_schema(serve_form *f, const char *field, const json_t *schema, serve_error *err);
/* What a field `strict` beside it says: false, and what of it cannot be enforced is left out, and the answer says what. True. */
bool serve_form_strict(serve_form *f, const json_t *strict);
bool serve_form_object(serve_form *f, const char *field, serve_error *err); /* any JSON object */

/* Opens the grammar of the form, or that fields of the view ask for, if any; the call's prompts are made. False after an error. */
bool serve_grammar_read(serve_call *c, const serve_view *v, serve_form *f, serve_error *err);
/* Whether a body, of any protocol, may ask for one. */
bool serve_grammar_given(const json_t *body);

#endif
