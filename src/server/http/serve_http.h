/* SPDX-License-Identifier: Apache-2.0 */
/* serve_http.h - the connections: libmicrohttpd's threads take requests and send answers; what takes long between is done by threads for
 * work (serve_work.h). The only file of the project that opens a socket is serve_socket.c. */
#ifndef HN_SERVE_HTTP_H
#define HN_SERVE_HTTP_H

#include "server/serve_server.h"

typedef struct serve_http serve_http;

/* Listens. *url: "http://127.0.0.1:8080", of at most 300 bytes. */
hunch_status serve_http_start(serve_http **out, serve_server *s, char *url, hunch_error *err);
int serve_http_busy(serve_http *h); /* requests that are not answered completely */
/* After the engine's thread has ended: nothing wakes a connection any more. */
void serve_http_stop(serve_http *h);

#endif
