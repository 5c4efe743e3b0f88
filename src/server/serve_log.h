/* SPDX-License-Identifier: Apache-2.0 */
/* serve_log.h - one line a request on standard error; texts of clients only if they were asked for. Any thread. */
#ifndef HN_SERVE_LOG_H
#define HN_SERVE_LOG_H

#include "server/serve_server.h"

/* call: NULL, or the one that was answered. completed: the client got everything. */
void serve_log_request(const serve_settings *s, const char *method, const char *path, const char *id, int http, double seconds,
                       bool completed, serve_call *call);

#endif
