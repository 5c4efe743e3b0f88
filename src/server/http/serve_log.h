/* SPDX-License-Identifier: Apache-2.0 */
/* serve_log.h - one line a request on standard error; texts of clients only if they were asked for. A thread of
 * its own writes the lines, and the server's own messages, so that a reader of standard error who stops reading stops nobody else: what
 * does not fit into the queue is lost, and counted. */
#ifndef HN_SERVE_LOG_H
#define HN_SERVE_LOG_H

#include "server/serve_server.h"

typedef struct serve_log_entry {
    const char *method, *path, *id; /* of the request */
    const char *client;             /* its address */
    const char *key;                /* the name of its key; NULL: none is needed, or none was known */
    const char *reason;             /* of a refusal; NULL: none */
    const char *ended;              /* who ended it before all was sent: "client hung up"; NULL: nobody */
    int http;                       /* status; 0: none was sent */
    double seconds;
    serve_call *call; /* NULL, or the one that was answered */
} serve_log_entry;

/* fd: where lines go. NULL: no thread. */
serve_log *serve_log_new(int fd);
/* Waits for the lines that are queued, for a second at most; later ones are nobody's. */
void serve_log_end(serve_log *log);
void serve_log_free(serve_log *log);
void serve_log_line(serve_log *log, const char *line, size_t n); /* with its line break; any thread; it does not wait for the reader */
void serve_log_request(serve_log *log, const serve_settings *s, const serve_log_entry *e); /* the same */

#endif
