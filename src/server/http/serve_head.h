/* SPDX-License-Identifier: Apache-2.0 */
/* serve_head.h - the head of a request: what makes it ambiguous, and from which pages and under which names the server may be called.
 *
 * Two programs that read one head differently let a request pass the first that the second did not see (request smuggling), so a head
 * that can be read in two ways is refused. A page in a browser names itself in Origin, which it cannot forge; a page whose name was
 * pointed at this machine (DNS rebinding) names itself in Host. No HTTP is parsed here: the lines come from serve_http.c. */
#ifndef HN_SERVE_HEAD_H
#define HN_SERVE_HEAD_H

#include <stddef.h>

#include "server/protocols/serve_error.h"

/* Lines of a head that decide; zeroed before the first. Texts are the caller's. */
typedef struct serve_head {
    size_t hosts, origins, lengths, codings; /* how often each was there */
    const char *host, *origin, *length, *coding;
    const char *forwarded;    /* the last X-Forwarded-For, which is the proxy's; NULL: none */
    bool odd_name, odd_value; /* a name that is no token; a control character in a value */
} serve_head;

/* A line: neither text needs a NUL behind it to be judged, but values that are kept have one. */
void serve_head_line(serve_head *h, const char *name, size_t n_name, const char *value, size_t n_value);
/* False: 400, and nothing that follows it on the connection can be trusted. old: HTTP/1.0, which needs no Host. */
bool serve_head_clear(const serve_head *h, bool old, serve_error *err);

/* Whom --cors and --host-name allow; and whether the name in Host matters at all. */
typedef struct serve_callers serve_callers;

/* cors: lists of origins as browsers write them, "https://app.example.org", "null" or "*", with commas between them; names: names in Host
 * beside those that are always this machine's. private: only loopback listens and no key is needed, so the name in Host is looked at.
 * HUNCH_USAGE: one of these is none. */
hunch_status serve_callers_new(serve_callers **out, const char *const *cors, int n_cors, const char *const *names,
                               int n_names, bool private, hunch_error *err);
void serve_callers_free(serve_callers *c);
/* Whether the head's Host and Origin may call: 403 otherwise. */
bool serve_callers_admit(const serve_callers *c, const serve_head *h, serve_error *err);
/* Whether pages of other origins may read answers: what Access-Control-Allow-Origin says, "*" or the origin; NULL: nothing. */
const char *serve_callers_allowed(const serve_callers *c, const char *origin);

#endif
