/* SPDX-License-Identifier: Apache-2.0 */
/* serve_protocol.h - how a protocol says what a call gave, and what is wrong. Every route names its protocol; what a request asks for
 * becomes a call in one way for all of them (serve_request.h), and is answered from the same texts, tokens and states. */
#ifndef HN_SERVE_PROTOCOL_H
#define HN_SERVE_PROTOCOL_H

#include "server/serve_call.h"
#include "server/protocols/serve_error.h"

struct serve_server;

typedef struct serve_protocol {
    const char *stream_type; /* the media type of its streams */
    const char *id_header;   /* a header of its own that has the request's id, beside X-Request-Id; NULL: none */
    const char *comment;     /* what a stream sends that was silent for long; NULL: nothing */
    json_t *(*error)(const serve_error *e, const char *id);                       /* the body of a refusal */
    /* By the call's reader, of what it has taken: */
    json_t *(*whole)(const struct serve_server *s, serve_call *c);                /* every choice is done */
    void (*next)(const struct serve_server *s, serve_call *c, serve_choice *one, serve_bytes *out); /* what is new of it */
    void (*end)(const struct serve_server *s, serve_call *c, serve_bytes *out);   /* of a stream whose choices have ended */
    void (*failed)(const struct serve_server *s, serve_call *c, const serve_error *e, serve_bytes *out); /* an error within a stream */
} serve_protocol;

extern const serve_protocol serve_openai; /* chat and text completions (serve_answer.h) */
extern const serve_protocol serve_vectors; /* embeddings */
extern const serve_protocol serve_anthropic;
extern const serve_protocol serve_llama;
extern const serve_protocol serve_ollama;
extern const serve_protocol serve_ollama_vectors;
extern const serve_protocol serve_responses_protocol;

/* Of a path that a request names, whether there is such a route or not. */
const serve_protocol *serve_protocol_of(const char *path);

typedef enum serve_more { SERVE_BYTES, SERVE_NOTHING_YET, SERVE_LAST, SERVE_GONE } serve_more;
/* Adds the events of everything that was taken and is new. After SERVE_LAST the stream ends. */
serve_more serve_stream_next(const serve_protocol *p, const struct serve_server *s, serve_call *c, serve_bytes *out);
/* Takes what is new and adds its events, which are made without the lock; with none, `sleep` is called under it: whoever adds something
 * wakes the reader. SERVE_GONE: nobody waits for the call any more. */
serve_more serve_stream_read(const serve_protocol *p, const struct serve_server *s, serve_call *c, serve_bytes *out,
                             void (*sleep)(void *user), void *user);
/* An event of a stream, "data: {json}" and an empty line; name: "event: name" before it, NULL: without. Takes the value. */
void serve_event_add(serve_bytes *out, const char *name, json_t *value);
/* The same as a line of JSON. */
void serve_line_add(serve_bytes *out, json_t *value);

#endif
