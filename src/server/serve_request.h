/* SPDX-License-Identifier: Apache-2.0 */
/* serve_request.h - from what a request wants, in every protocol, to a call. docs/server.md lists the fields. */
#ifndef HN_SERVE_REQUEST_H
#define HN_SERVE_REQUEST_H

#include "server/serve_wanted.h"

/* A call with its prompts and choices, ready to be submitted; NULL after an error. */
serve_call *serve_request_read(serve_server *s, const serve_http_request *q, const serve_view *v, serve_wanted *w, bool chat,
                               serve_error *err);
/* The tokens of a chat's prompt, however many. */
bool serve_request_count(serve_server *s, const serve_view *v, const serve_wanted *w, size_t *n, serve_error *err);

/* Whether "model" is the one that is here, or missing. */
bool serve_request_model(const serve_server *s, const serve_view *v, serve_error *err);

#endif
