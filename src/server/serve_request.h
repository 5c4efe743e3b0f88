/* SPDX-License-Identifier: Apache-2.0 */
/* serve_request.h - from the bodies of /v1/chat/completions and /v1/completions to a call. docs/server.md lists the fields. */
#ifndef HN_SERVE_REQUEST_H
#define HN_SERVE_REQUEST_H

#include "server/serve_server.h"

/* A call with its prompts and choices, ready to be submitted; NULL after an error. */
serve_call *serve_request_read(serve_server *s, const serve_asked *q, bool chat, serve_error *err);

/* Whether "model" of a body is the one that is here, or missing. */
bool serve_request_model(const serve_server *s, const json_t *body, serve_error *err);

#endif
