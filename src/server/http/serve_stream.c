/* SPDX-License-Identifier: Apache-2.0 */
/* serve_stream.c - streams of all protocols (serve_protocol.h): what is new of each choice, then the end. */
#include "base/mem.h"
#include "server/serve_answer.h"
#include "server/protocols/serve_protocol.h"
#include "server/serve_server.h"

void serve_line_add(serve_bytes *out, json_t *value) {
    char *text = serve_json_dump(value, JSON_COMPACT);
    serve_bytes_put(out, text ? text : "null"); /* a value that could not be packed */
    serve_bytes_put(out, "\n");
    hn_free(text);
    json_decref(value);
}

void serve_event_add(serve_bytes *out, const char *name, json_t *value) {
    if (name) {
        serve_bytes_put(out, "event: ");
        serve_bytes_put(out, name);
        serve_bytes_put(out, "\n");
    }
    serve_bytes_put(out, "data: ");
    serve_line_add(out, value);
    serve_bytes_put(out, "\n");
}

serve_more serve_stream_next(const serve_protocol *p, const serve_server *s, serve_call *c, serve_bytes *out) {
    serve_error err;
    const size_t had = out->n;
    if (serve_answer_failed(c, &err)) return p->failed(s, c, &err, out), SERVE_LAST;
    for (int i = 0; i < c->n_choices; i++)
        if (!c->choices[i].ended) p->next(s, c, &c->choices[i], out);
    if (serve_call_over(c)) return p->end(s, c, out), SERVE_LAST;
    if (out->n == had && c->say_comment && p->comment) serve_bytes_put(out, p->comment);
    c->say_comment = false;
    return out->n > had ? SERVE_BYTES : SERVE_NOTHING_YET;
}

serve_more serve_stream_read(const serve_protocol *p, const serve_server *s, serve_call *c, serve_bytes *out,
                             void (*sleep)(void *user), void *user) {
    for (;;) {
        pthread_mutex_lock(&c->lock);
        const bool gone = c->gone, paused = c->paused;
        if (!gone) serve_call_collect(c);
        pthread_mutex_unlock(&c->lock);
        if (gone) return SERVE_GONE;
        if (paused) serve_engine_look(s->engine);
        serve_call_absorb(c);
        const serve_more more = serve_stream_next(p, s, c, out);
        if (more != SERVE_NOTHING_YET) return more;
        pthread_mutex_lock(&c->lock);
        const bool nothing = !c->gone && !c->untaken && !c->comment;
        if (nothing) sleep(user);
        pthread_mutex_unlock(&c->lock);
        if (nothing) return more;
    }
}
