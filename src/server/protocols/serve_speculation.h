/* SPDX-License-Identifier: Apache-2.0 */
/* serve_speculation.h - who may draft for a request: "speculation", and "prediction", the text that its answer is expected to resemble. */
#ifndef HN_SERVE_SPECULATION_H
#define HN_SERVE_SPECULATION_H

#include "server/protocols/serve_fields.h"
#include "server/serve_server.h"

/* "speculation": {"draft": "auto" | "none" | [names]}, beside "depth" and "rows", which are parameters (serve_parameters.h), and
 * "prediction": {"type": "content", "content": TEXT}. */
bool serve_speculation_read(const serve_server *s, serve_call *c, hunch_model *m, const serve_view *v, serve_error *err);

#endif
