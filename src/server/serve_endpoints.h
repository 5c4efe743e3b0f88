/* SPDX-License-Identifier: Apache-2.0 */
/* serve_endpoints.h - endpoints that have files of their own: of texts and tokens (serve_texts.c), of vectors
 * (serve_embeddings.c), of other protocols (serve_anthropic.c). */
#ifndef HN_SERVE_ENDPOINTS_H
#define HN_SERVE_ENDPOINTS_H

#include "server/serve_server.h"

bool serve_tokenize(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_detokenize(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_apply_template(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_tokenizer_info(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_embeddings(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_messages(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_count_tokens(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_responses(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_responses_count(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_responses_kept(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
/* What a response repeats of its request (serve_call.asked): new. */
json_t *serve_responses_asked(const serve_server *s, const serve_call *c, const json_t *body);
bool serve_props(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);

#endif
