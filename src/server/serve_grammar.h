/* SPDX-License-Identifier: Apache-2.0 */
/* serve_grammar.h - what an answer must look like: OpenAI's response_format, vLLM's structured_outputs and guided_*, llama.cpp's grammar
 * and json_schema. */
#ifndef HN_SERVE_GRAMMAR_H
#define HN_SERVE_GRAMMAR_H

#include "server/serve_call.h"
#include "server/serve_error.h"

/* Opens the grammar that the body asks for, if any; the call's prompts are made. False after an error. */
bool serve_grammar_read(serve_call *c, const json_t *body, serve_error *err);
/* Whether a body, of any protocol, may ask for one. */
bool serve_grammar_given(const json_t *body);

#endif
