/* SPDX-License-Identifier: Apache-2.0 */
/* serve_http.c - see serve_http.h. A connection that waits for the engine is suspended: no thread waits with it, and the engine's thread
 * wakes it (serve_call.h). While it is suspended libmicrohttpd does not look at its socket; the engine's thread does, between rounds. */
#include "server/http/serve_http.h"

#include <malloc.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_fields.h"
#include "server/serve_grammar.h"
#include "server/http/serve_guests.h"
#include "server/http/serve_address.h"
#include "server/http/serve_head.h"
#include "server/http/serve_log.h"
#include "server/serve_sessions.h"
#include "server/http/serve_socket.h"
#include "server/http/serve_work.h"

enum {
    THREADS = 2,
    CONNECTION_MEMORY = 32 << 10,
    PIECE = 16 << 10,
    LARGE_BODY = 1 << 20, /* bytes, whose memory is given back to the system at once */
    SHORT_BODY = 64 << 10,
    LARGE_ANSWER = 4096   /* values, the writing of which is not for threads of sockets */
};
/* Folded lines, lines that end in LF alone and the like are refused by libmicrohttpd from 1.0 on; older ones do not show them to us, and
 * what they refuse when they are told to be strict is refused here, with one head, where theirs has two. */
#if MHD_VERSION >= 0x00097701
#define STRICT MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
#else
#define STRICT
#endif
static const size_t most_bodies = (size_t)256 << 20; /* bytes of all requests that are not read yet */

struct serve_http {
    serve_server *server;
    struct MHD_Daemon *daemon;
    serve_guests *guests;
    serve_work *work;
    atomic_int busy;
    atomic_size_t bodies;
};

/* What becomes of a request: its body comes, threads for work read it, its call runs, they write the answer if that is large. */
typedef enum stage { COMES, IS_READ, RUNS, IS_WRITTEN } stage;

/* A request under way. */
typedef struct exchange {
    serve_http *h;
    struct MHD_Connection *connection;
    const serve_route *route;
    const serve_protocol *protocol;
    serve_guest *guest; /* its connection */
    char method[12], path[320], id[72]; /* path: /v1/models/ and the longest name */
    uint64_t tenant; /* of its API key */
    char client[SERVE_CLIENT]; /* who asks: the key, else the address */
    char why[300];   /* of a refusal, for the log */
    const char *forwarded; /* the last X-Forwarded-For; NULL: none */
    double begun_s;
    serve_bytes body;
    size_t dropped;     /* bytes of the body that were not kept */
    serve_error refused; /* before the body; its status is 0: it was not */
    serve_call *call;    /* submitted; NULL: none */
    stage stage;
    serve_task task;     /* while threads for work have it the connection sleeps, and nobody else touches this */
    serve_http_request asked;
    serve_reply reply;   /* what they made of it */
    serve_error error;   /* or why they did not; its status is 0: they did */
    char *text;          /* what they wrote; NULL: nothing */
    const char *cut;     /* why the server dropped it before its body was there; NULL: it did not */
    bool large; /* its body was */
    bool streaming, last, preflight;
    serve_bytes events; /* of a stream, [sent, n) is not sent yet */
    size_t sent;
    int http;
} exchange;

/* ---- answers ------------------------------------------------------------------------------------------------- */

static const char *header(exchange *x, const char *name) {
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* Headers that a page may send. Packages of clients in browsers add names with every version (X-Stainless-...), and the page is one that
 * may call, so what its browser asks for is allowed if it is a list of names. */
static const char *headers_allowed(exchange *x) {
    static const char usual[] =
        "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Anthropic-Beta, "
        "Anthropic-Dangerous-Direct-Browser-Access, OpenAI-Beta, OpenAI-Organization, OpenAI-Project, "
        "Idempotency-Key, X-Request-Id, X-Priority";
    static const char listed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_, ";
    const char *asked = header(x, "Access-Control-Request-Headers");
    return asked && *asked && strspn(asked, listed) == strlen(asked) ? asked : usual;
}

/* CORS: pages of the origins that --cors names may read answers. */
static void cors_add(exchange *x, struct MHD_Response *r) {
    const char *allowed = serve_callers_allowed(x->h->server->settings->callers, header(x, "Origin"));
    MHD_add_response_header(r, "Vary", "Origin");
    if (!allowed) return;
    MHD_add_response_header(r, "Access-Control-Allow-Origin", allowed);
    MHD_add_response_header(r, "Access-Control-Expose-Headers",
                            "X-Request-Id, Request-Id, Retry-After, X-Should-Retry, X-Hunch-Ignored");
    if (!x->preflight) return;
    MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    MHD_add_response_header(r, "Access-Control-Allow-Headers", headers_allowed(x));
    if (header(x, "Access-Control-Request-Private-Network"))
        MHD_add_response_header(r, "Access-Control-Allow-Private-Network", "true");
    MHD_add_response_header(r, "Access-Control-Max-Age", "86400");
}

static enum MHD_Result respond(exchange *x, int http, struct MHD_Response *r, const char *type) {
    x->http = http;
    if (!r) return MHD_NO;
    if (type) MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "X-Request-Id", x->id);
    const char *ignored = x->call ? hunch_grammar_ignored(x->call->request.grammar) : NULL;
    if (ignored) MHD_add_response_header(r, "X-Hunch-Ignored", ignored);
    if (x->protocol->id_header) MHD_add_response_header(r, x->protocol->id_header, x->id);
    cors_add(x, r);
    const enum MHD_Result ok = MHD_queue_response(x->connection, (unsigned)http, r);
    MHD_destroy_response(r);
    return ok;
}

static char *json_text(json_t *value) {
    char *text = serve_json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
    return text;
}

/* Takes the text. */
static struct MHD_Response *text_response(char *text) {
    return text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL; /* hn_free is free */
}

static enum MHD_Result respond_error(exchange *x, const serve_error *err) {
    char number[16];
    struct MHD_Response *r = text_response(json_text(x->protocol->error(err, x->id)));
    serve_metrics_refused(x->h->server->metrics, err->http);
    snprintf(x->why, sizeof x->why, "%.299s", err->message);
    snprintf(number, sizeof number, "%d", err->retry_after);
    if (r && err->retry_after) MHD_add_response_header(r, "Retry-After", number);
    if (r && err->allow) MHD_add_response_header(r, "Allow", err->allow);
    if (r && err->http == 500) MHD_add_response_header(r, "X-Should-Retry", "false"); /* it would fail again */
    if (r && err->http == 401) MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    return respond(x, err->http, r, "application/json");
}

static enum MHD_Result respond_text(exchange *x, serve_bytes *text) {
    struct MHD_Response *r = MHD_create_response_from_buffer(text->n, text->n ? text->at : "", MHD_RESPMEM_MUST_COPY);
    serve_bytes_free(text);
    return respond(x, 200, r, "text/plain; version=0.0.4; charset=utf-8");
}

/* ---- calls --------------------------------------------------------------------------------------------------- */

/* Under the call's lock, from the engine's thread. */
static void wake(void *user) {
    exchange *x = user;
    MHD_resume_connection(x->connection);
}

static int socket_of(const exchange *x) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/* The address that asks: behind a proxy that is trusted, the last one that it names; as we write it, whatever stands around it. */
static const char *client_of(exchange *x, char to[INET6_ADDRSTRLEN + 1]) {
    const char *named = serve_guest_is_proxy(x->h->guests, x->guest) ? x->forwarded : NULL, *last = named ? strrchr(named, ',') : NULL;
    if (last) named = last + 1;
    const serve_address a = named ? serve_address_read(named + strspn(named, " \t")) : (serve_address){0};
    serve_address_text(&a, to);
    return to[0] ? to : serve_guest_address(x->guest);
}

/* Under the call's lock. */
static void fall_asleep(void *user) {
    exchange *x = user;
    x->call->asleep = true;
    MHD_suspend_connection(x->connection);
}

/* The reader of a stream: gives what is there, or suspends the connection. */
static ssize_t stream_read(void *user, uint64_t at, char *buf, size_t max) {
    exchange *x = user;
    (void)at;
    if (x->sent == x->events.n) {
        x->sent = x->events.n = 0;
        if (x->last) return MHD_CONTENT_READER_END_OF_STREAM;
        const serve_more more = serve_stream_read(x->protocol, x->h->server, x->call, &x->events, fall_asleep, x);
        if (more == SERVE_GONE) return MHD_CONTENT_READER_END_WITH_ERROR;
        x->last = more == SERVE_LAST;
    }
    size_t n = x->events.n - x->sent;
    if (n > max) n = max;
    if (n) memcpy(buf, x->events.at + x->sent, n);
    x->sent += n;
    return (ssize_t)n;
}

static enum MHD_Result respond_stream(exchange *x) {
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, stream_read, x, NULL);
    x->streaming = true;
    if (r) MHD_add_response_header(r, "Cache-Control", "no-cache");
    if (r) MHD_add_response_header(r, "X-Accel-Buffering", "no");
    return respond(x, 200, r, x->protocol->stream_type);
}

static const char *client_name(exchange *x) {
    char address[INET6_ADDRSTRLEN + 1];
    if (*x->client) return x->client;
    if (x->tenant) snprintf(x->client, sizeof x->client, "key %016llx", (unsigned long long)x->tenant);
    else snprintf(x->client, sizeof x->client, "%s", client_of(x, address));
    return x->client;
}

/* Leaves the rest to threads for work. False: the queue of its client is full. */
static bool work_add(exchange *x, void (*run)(void *user, bool dropped), bool is_long) {
    x->task = (serve_task){.run = run, .user = x, .is_long = is_long};
    return serve_work_add(x->h->work, client_name(x), &x->task);
}

/* The same, and the connection sleeps until they are done. */
static bool hand_over(exchange *x, void (*run)(void *user, bool dropped), bool is_long) {
    MHD_suspend_connection(x->connection);
    if (work_add(x, run, is_long)) return true;
    MHD_resume_connection(x->connection);
    return false;
}

/* Values of an answer that is over, roughly. Under the lock. */
static size_t answer_size(const serve_call *c) {
    size_t sum = 0;
    for (int i = 0; i < c->n_choices; i++) {
        const serve_choice *one = &c->choices[i];
        const size_t prompt = c->echo || c->token_ids ? one->prompt->n : 0;
        sum += (one->made.n_tokens + prompt) * (1 + (size_t)c->request.top_logprobs) + (size_t)one->made.n_pooled;
    }
    return sum;
}

/* Makes the text of an answer that is over. */
static void answer_write(void *user, bool dropped) {
    exchange *x = user;
    serve_call *c = x->call;
    pthread_mutex_lock(&c->lock);
    serve_call_collect(c);
    pthread_mutex_unlock(&c->lock);
    serve_call_absorb(c);
    x->error = (serve_error){0};
    if (!dropped && !serve_answer_failed(c, &x->error)) x->text = json_text(x->protocol->whole(x->h->server, c));
    x->stage = IS_WRITTEN;
}

/* Behind a long task, on its thread: JSON and grammars take many times the bytes of their texts, in pieces that would stay here. */
static void memory_return(serve_work *w, bool large) {
#ifdef __GLIBC__
    if (large || serve_work_rests(w)) malloc_trim(0);
#else
    (void)w, (void)large;
#endif
}

static void answer_write_apart(void *user, bool dropped) {
    exchange *x = user;
    answer_write(x, dropped);
    serve_work *w = x->h->work;
    MHD_resume_connection(x->connection);
    memory_return(w, false);
}

/* The whole answer if it is there, else the connection sleeps until it is. */
static enum MHD_Result respond_whole(exchange *x) {
    serve_call *c = x->call;
    pthread_mutex_lock(&c->lock);
    const bool gone = c->gone, over = c->left == 0;
    const size_t size = over ? answer_size(c) : 0;
    if (!gone && !over) fall_asleep(x);
    pthread_mutex_unlock(&c->lock);
    if (gone) return MHD_NO;
    if (!over) return MHD_YES;
    if (x->stage != IS_WRITTEN) {
        if (size > LARGE_ANSWER && hand_over(x, answer_write_apart, true)) return MHD_YES;
        answer_write(x, false);
    }
    if (x->error.http) return respond_error(x, &x->error);
    struct MHD_Response *r = text_response(x->text);
    x->text = NULL;
    return respond(x, 200, r, "application/json");
}

static enum MHD_Result call_begin(exchange *x, serve_call *c) {
    serve_error err = {0};
    c->fd = socket_of(x);
    c->wake = wake;
    c->wake_user = x;
    if (!serve_engine_submit(x->h->server->engine, c, &err)) {
        serve_call_release(c);
        return respond_error(x, &err);
    }
    x->call = c;
    x->stage = RUNS;
    return c->stream ? respond_stream(x) : respond_whole(x);
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

/* A browser that asks whether a page may call, of an origin that may. */
static bool is_preflight(exchange *x) {
    return strcmp(x->method, "OPTIONS") == 0 &&
           serve_callers_allowed(x->h->server->settings->callers, header(x, "Origin"));
}

static void body_drop(exchange *x) {
    atomic_fetch_sub(&x->h->bodies, x->body.n);
    serve_bytes_free(&x->body);
}

/* The body's bytes are not kept for the time that its answer takes. */
static bool body_read(exchange *x) {
    x->asked.body = serve_body_parse(x->body.at, x->body.n, &x->error);
    x->large |= x->body.n > LARGE_BODY;
    body_drop(x);
    return x->asked.body != NULL;
}

/* Asks the route. */
static void request_ask(exchange *x) {
    serve_error err = {0}; /* may have been set by what was tried first, and has no meaning then */
    if (!x->route->answer(x->h->server, &x->asked, &x->reply, &err)) x->error = err;
    else if (x->reply.json) x->text = json_text(x->reply.json);
    x->reply.json = NULL;
    json_decref(x->asked.body);
    x->asked.body = NULL;
    x->stage = IS_READ;
}

static void request_drop(exchange *x) {
    serve_fail(&x->error, 503, NULL, "the request is not read: the server is shutting down, or its client has gone");
    x->error.retry_after = 1;
    json_decref(x->asked.body);
    x->asked.body = NULL;
    x->stage = IS_READ;
}

/* A task. What a client that has gone asks is nobody's. A short body may have a grammar that is long to compile. */
static void request_read(void *user, bool dropped) {
    exchange *x = user;
    if (dropped || serve_socket_closed(socket_of(x))) request_drop(x);
    else if (x->asked.body || body_read(x)) {
        if (!x->task.is_long && serve_grammar_given(x->asked.body) && work_add(x, request_read, true)) return;
        request_ask(x);
    } else x->stage = IS_READ;
    serve_work *w = x->h->work;
    const bool is_long = x->task.is_long, large = x->large;
    MHD_resume_connection(x->connection); /* x may be gone behind this */
    if (is_long) memory_return(w, large);
}

/* Once it is read. */
static enum MHD_Result respond_read(exchange *x) {
    if (x->error.http) return respond_error(x, &x->error);
    if (x->reply.call) {
        serve_call *c = x->reply.call;
        x->reply.call = NULL;
        return call_begin(x, c);
    }
    if (!x->text) return respond_text(x, &x->reply.text);
    struct MHD_Response *r = text_response(x->text);
    x->text = NULL;
    return respond(x, 200, r, "application/json");
}

static enum MHD_Result answer(exchange *x) {
    if (x->call) return respond_whole(x); /* it was woken */
    if (x->stage == IS_READ) return respond_read(x);
    if (x->preflight) return respond(x, 204, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT), NULL);
    if (x->refused.http) return respond_error(x, &x->refused);
    const size_t n = strlen(x->route->path);
    x->asked = (serve_http_request){.id = x->id, .received_s = x->begun_s, .priority = header(x, "X-Priority"), .tenant = x->tenant,
                             .client = client_name(x), .rest = strlen(x->path) > n ? x->path + n : ""};
    if (strcmp(x->route->method, "POST") != 0) return request_ask(x), respond_read(x);
    if (hand_over(x, request_read, x->body.n > SHORT_BODY)) return MHD_YES;
    serve_error err = {0};
    body_drop(x);
    serve_fail(&err, 503, NULL, "%d requests of this client wait to be read already", x->h->server->settings->queue);
    err.retry_after = 1;
    return respond_error(x, &err);
}

/* The client's id of the request if it is a plain word, else one of our own. */
static void id_choose(exchange *x) {
    const char *given = header(x, "X-Request-Id");
    const size_t n = given ? strlen(given) : 0;
    unsigned char random[12];
    if (n && n < sizeof x->id - 8 &&
        strspn(given, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n) {
        memcpy(x->id, given, n + 1);
        return;
    }
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) memset(random, 0, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) snprintf(x->id + 2 * i, 3, "%02x", random[i]);
}

static bool too_large(const exchange *x, serve_error *err) {
    return serve_fail(err, 413, NULL, "the body is larger than %zu bytes", x->h->server->settings->most_body);
}

static enum MHD_Result line_note(void *user, enum MHD_ValueKind kind, const char *name, size_t n_name,
                                 const char *value, size_t n_value) {
    (void)kind;
    serve_head_line(user, name, n_name, value ? value : "", n_value);
    return MHD_YES;
}

/* What can be refused before the body is read. */
static bool admit(exchange *x, const serve_head *head, serve_error *err) {
    const serve_server *s = x->h->server;
    if (!serve_callers_admit(s->settings->callers, head, err)) return false;
    if ((x->preflight = is_preflight(x))) return true;
    const char *method = strcmp(x->method, "HEAD") == 0 ? "GET" : x->method;
    x->tenant = s->keys ? serve_keys_fit(s->keys, header(x, "Authorization"), header(x, "X-Api-Key")) : 0;
    if (!(x->route = serve_route_find(method, x->path, err))) return false;
    if (s->keys && !x->route->open && !x->tenant)
        return serve_fail_code(err, 401, "invalid_api_key", NULL,
                               "expected the header Authorization: Bearer KEY, or X-Api-Key: KEY, with a key that is known here");
    const char *coding = header(x, "Content-Encoding");
    if (coding && *coding && strcasecmp(coding, "identity") != 0)
        return serve_fail(err, 415, NULL, "the body is encoded as %.60s: expected it as it is", coding);
    return true;
}

static exchange *begin(serve_http *h, struct MHD_Connection *connection, const char *url, const char *method) {
    exchange *x = serve_alloc(1, sizeof *x);
    x->h = h;
    x->connection = connection;
    x->begun_s = hn_now();
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->guest = info ? info->socket_context : NULL;
    snprintf(x->method, sizeof x->method, "%s", method);
    snprintf(x->path, sizeof x->path, "%s", url);
    x->protocol = serve_protocol_of(x->path);
    id_choose(x);
    atomic_fetch_add(&h->busy, 1);
    return x;
}

/* Keeps a piece of the body. Of a refused request it is read and dropped, since an answer can be sent only then; a client that sends on
 * without end is cut off. */
static bool body_take(exchange *x, const char *data, size_t n) {
    serve_http *h = x->h;
    const size_t most = h->server->settings->most_body;
    if (hn_now() - x->begun_s > h->server->settings->stall_s) return x->cut = "dropped: its body came too slowly", false;
    if (!x->refused.http && x->body.n + n > most) too_large(x, &x->refused);
    if (x->refused.http) return x->cut = (x->dropped += n) > 4 * most ? "dropped: its body was refused and did not end" : NULL, !x->cut;
    if (atomic_fetch_add(&h->bodies, n) + n <= most_bodies && serve_bytes_add(&x->body, data, n)) return true;
    atomic_fetch_sub(&h->bodies, n);
    body_drop(x);
    serve_fail(&x->refused, 503, NULL, "the bodies of requests that are not read yet hold more than %zu MiB", most_bodies >> 20);
    x->refused.retry_after = 1;
    return true;
}

static enum MHD_Result access_handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                                     const char *http_version, const char *data, size_t *n, void **state) {
    exchange *x = *state;
    if (!x) {
        serve_head head = {0};
        *state = x = begin(cls, connection, url, method);
        serve_guest_headed(x->h->guests, x->guest);
        MHD_get_connection_values_n(connection, MHD_HEADER_KIND, line_note, &head);
        x->forwarded = head.forwarded;
        /* An answer that is given now closes the connection: where its next byte is what the head does not tell, or too far. */
        if (!serve_head_clear(&head, strcmp(http_version, MHD_HTTP_VERSION_1_0) == 0, &x->refused))
            return respond_error(x, &x->refused);
        if (head.lengths && strtoull(head.length, NULL, 10) > x->h->server->settings->most_body) {
            too_large(x, &x->refused);
            return respond_error(x, &x->refused);
        }
        admit(x, &head, &x->refused);
        return MHD_YES;
    }
    if (*n) {
        const bool ok = body_take(x, data, *n);
        *n = 0;
        return ok ? MHD_YES : MHD_NO;
    }
    serve_guest_asked(x->h->guests, x->guest);
    return answer(x);
}

/* A connection begins or ends. */
static void noted(void *cls, struct MHD_Connection *connection, void **context,
                  enum MHD_ConnectionNotificationCode code) {
    serve_http *h = cls;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        serve_guest_go(h->guests, *context);
        return;
    }
    /* What newer versions give is good until the next question. */
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const int fd = info ? info->connect_fd : -1;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    *context = fd >= 0 && info ? serve_guest_come(h->guests, fd, info->client_addr) : NULL;
}

static enum MHD_Result accept_policy(void *cls, const struct sockaddr *from, socklen_t size) {
    serve_http *h = cls;
    (void)size;
    return serve_guests_admit(h->guests, from) ? MHD_YES : MHD_NO;
}

static void log_it(exchange *x, enum MHD_RequestTerminationCode code) {
    char address[INET6_ADDRSTRLEN + 1];
    const char *ended = code == MHD_REQUEST_TERMINATED_COMPLETED_OK       ? NULL
                        : x->cut                                          ? x->cut
                        : code == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED  ? "dropped for its silence"
                        : code == MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN  ? "the server ended"
                                                                          : "client hung up";
    const serve_log_entry e = {.method = x->method, .path = x->path, .id = x->id, .client = client_of(x, address),
                               .key = x->tenant ? serve_keys_name(x->h->server->keys, x->tenant) : NULL,
                               .reason = x->http >= 400 || x->http == 0 ? x->why[0] ? x->why : NULL : NULL, .ended = ended, .http = x->http,
                               .seconds = hn_now() - x->begun_s, .call = x->call};
    serve_log_request(x->h->server->log, x->h->server->settings, &e);
}

static void completed(void *cls, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code) {
    serve_http *h = cls;
    exchange *x = *state;
    (void)connection;
    if (!x) return;
    if (x->call) serve_engine_abandon(h->server->engine, x->call);
    log_it(x, code);
    serve_guest_waits(h->guests, x->guest);
    body_drop(x);
    serve_call_release(x->call);
    serve_call_release(x->reply.call);
    serve_bytes_free(&x->reply.text);
    hn_free(x->text);
    serve_bytes_free(&x->events);
    hn_free(x);
    *state = NULL;
    atomic_fetch_sub(&h->busy, 1);
}

/* ---- the daemon ---------------------------------------------------------------------------------------------- */

int serve_http_busy(serve_http *h) { return atomic_load(&h->busy); }

void serve_http_stop(serve_http *h) {
    serve_work_stop(h->work); /* no connection sleeps for it when the daemon ends */
    MHD_stop_daemon(h->daemon);
    serve_work_free(h->work);
    serve_guests_free(h->guests);
    hn_free(h);
}

static void http_free(serve_http *h) {
    serve_guests_free(h->guests);
    if (h->work) serve_work_stop(h->work);
    serve_work_free(h->work);
    hn_free(h);
}

hunch_status serve_http_start(serve_http **out, serve_server *server, char *url, hunch_error *err) {
    const serve_settings *s = server->settings;
    int fd;
    const hunch_status st = serve_socket_open(&fd, s, url, err);
    if (st) return st;
    serve_http *h = serve_alloc(1, sizeof *h);
    h->server = server;
    h->guests = serve_guests_new(s->stall_s, s->connections_per_address, s->proxy);
    h->work = serve_work_new(serve_work_threads(), s->queue);
    if (h->guests && h->work)
        h->daemon = MHD_start_daemon(
            MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, accept_policy, h, access_handle, h,
            STRICT MHD_OPTION_NOTIFY_CONNECTION, noted, h, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE,
            (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT, serve_socket_most(s->connections), MHD_OPTION_CONNECTION_TIMEOUT,
            (unsigned)s->stall_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
            MHD_OPTION_NOTIFY_COMPLETED, completed, h, MHD_OPTION_END);
    if (h->daemon) return *out = h, HUNCH_OK;
    close(fd);
    http_free(h);
    return hn_fail(err, HUNCH_FAILED, "the server's threads cannot be started");
}
