/* SPDX-License-Identifier: Apache-2.0 */
/* serve_server.h - the whole server: its settings, and what the endpoints share. */
#ifndef HN_SERVE_SERVER_H
#define HN_SERVE_SERVER_H

#include "server/serve_engine.h"
#include "server/http/serve_keys.h"
#include "server/serve_metrics.h"
#include "server/protocols/serve_protocol.h"

typedef struct serve_log serve_log;

typedef struct serve_settings {
    const char *host;
    int port; /* 0: the system picks one */
    const char *model_name;          /* its id in answers */
    const char *const *names;        /* [n_names] those that requests may have, model_name first */
    int n_names;
    const struct serve_callers *callers; /* which pages may call, and by which names (serve_head.h) */
    const char *proxy;               /* the address of one before it, which is trusted to name clients; NULL: none */
    const char *template_text;       /* of chats; NULL: the model's own */
    const char *tool_format;         /* of calls in answers; NULL: by the template's marks */
    int parallel, queue, connections;
    int connections_per_address;     /* 0: any number */
    int stall_s;                     /* a client that neither reads nor sends for so long is dropped */
    size_t most_body;                /* bytes */
    bool log_json, log_text, quiet;
} serve_settings;

typedef struct serve_server {
    const serve_settings *settings;
    serve_engine *engine;
    serve_metrics *metrics;
    serve_keys *keys;                /* NULL: none are needed */
    serve_log *log;                  /* serve_log.h */
    time_t started;
    json_t *drafters;                /* names of those that are open; NULL until the engine is */
    json_t *about;                   /* the model's file (serve_about.h); NULL until the engine is, or unknown */
} serve_server;

/* What an endpoint is asked. */
typedef struct serve_http_request {
    json_t *body;         /* an object; NULL: the method has none */
    const char *rest;     /* of the path, behind the route's */
    const char *id;       /* of the request */
    const char *priority; /* the header x-priority; NULL: none */
    uint64_t tenant;      /* of its API key; 0: there are none */
    const char *client;   /* who asks: one name for each key, or, without keys, for each address */
    double received_s;
} serve_http_request;

/* What it answers: one of a value, a text, or a call that is answered when its sessions are done. */
typedef struct serve_reply {
    json_t *json;
    serve_bytes text;
    serve_call *call;
    int http; /* 0: 200 */
} serve_reply;

typedef struct serve_route {
    const char *method, *path; /* a path that ends in / may go on */
    bool open;                 /* needs no key */
    bool (*answer)(serve_server *s, const serve_http_request *q, serve_reply *r, serve_error *err);
    const serve_protocol *protocol;
} serve_route;

/* Whether the model is served under a name. */
bool serve_is_served(const serve_settings *s, const char *name);

/* The endpoint; NULL, with *err, if there is none. */
const serve_route *serve_route_find(const char *method, const char *path, serve_error *err);

/* The model, for an endpoint that needs it. NULL, with *err: it is still being loaded. */
hunch_model *serve_model(serve_server *s, serve_error *err);

#endif
