/* SPDX-License-Identifier: Apache-2.0 */
/* serve_endpoints.h - endpoints that have files of their own: of texts and tokens (serve_texts.c). */
#ifndef HN_SERVE_ENDPOINTS_H
#define HN_SERVE_ENDPOINTS_H

#include "server/serve_server.h"

bool serve_tokenize(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_detokenize(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_apply_template(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_tokenizer_info(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_embeddings(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);
bool serve_props(serve_server *s, const serve_asked *q, serve_reply *r, serve_error *err);

#endif
