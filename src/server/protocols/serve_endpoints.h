/* SPDX-License-Identifier: Apache-2.0 */
/* serve_endpoints.h - endpoints that have files of their own: OpenAI's (serve_openai.c), of texts and tokens (serve_texts.c), of vectors
 * (serve_embeddings.c), and those of other protocols. */
#ifndef HN_SERVE_ENDPOINTS_H
#define HN_SERVE_ENDPOINTS_H

#include "server/serve_server.h"

bool serve_chat(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_completion(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_tokenize(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_detokenize(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_apply_template(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_tokenizer_info(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_embeddings(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_messages(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_count_tokens(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_responses(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_responses_count(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_responses_kept(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
/* What a response repeats of its request (serve_call.asked): new. */
json_t *serve_responses_asked(const serve_server *s, const serve_call *c, const json_t *body);
bool serve_ollama_generate(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_ollama_chat(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_ollama_embed(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_ollama_embeddings(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_ollama_tags(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_ollama_running(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_ollama_show(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_ollama_version(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_llama_completion(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
json_t *serve_llama_settings(const hunch_request *r); /* by llama.cpp's names: new */
bool serve_slots(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
bool serve_props(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);

#endif
