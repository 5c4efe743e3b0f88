/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - on_output: at the end of a round every session's new output since the last call is delivered.
 *
 * Callbacks run when the round is over and every session is in a consistent state, so they may open, cancel and close sessions; the
 * list of sessions with on_output is doubly linked and has a cursor, which is moved on when the session at it leaves the list. */
#include "engine/session.h"

void hn_stream_begin(hunch_session *s) {
    hunch_engine *e = s->engine;
    if (!s->request.on_output) return;
    s->stream.listed = true;
    s->stream.before = e->last_stream;
    *(e->last_stream ? &e->last_stream->stream.after : &e->streams) = s;
    e->last_stream = s;
}

void hn_stream_end(hunch_session *s) {
    if (!s->stream.listed) return; /* not in the list: the engine may have been closed */
    hunch_engine *e = s->engine;
    hunch_session *before = s->stream.before, *after = s->stream.after;
    *(before ? &before->stream.after : &e->streams) = after;
    *(after ? &after->stream.before : &e->last_stream) = before;
    s->stream.before = s->stream.after = NULL;
    s->stream.listed = false;
    if (e->callback_session == s) e->callback_session = NULL;
    if (e->callback_next == s) e->callback_next = after;
}

static bool has_output(const hunch_session *s) {
    return hn_session_emitted(s) > s->stream.tokens || s->text.shown > s->stream.text || !hn_session_running(s);
}

/* After the callback the session may be closed: then e->callback_session is NULL. */
static void deliver(hunch_session *s) {
    hunch_engine *e = s->engine;
    const size_t tokens = hn_session_emitted(s), text = s->text.shown;
    const hunch_output o = {.session = s,
                            .text = s->text.out ? s->text.out + s->stream.text : "",
                            .text_len = text - s->stream.text,
                            .tokens = s->text.token + s->text.n_prompt + s->stream.tokens,
                            .drafter_of = s->text.drafter_of ? s->text.drafter_of + s->stream.tokens : NULL,
                            .n_tokens = tokens - s->stream.tokens,
                            .finish = s->stats.finish};
    s->stream.tokens = tokens;
    s->stream.text = text;
    const bool go_on = s->request.on_output(s->request.on_output_user, &o);
    if (!e->callback_session) return; /* closed or cancelled inside */
    if (o.finish != HUNCH_RUNNING)
        hn_stream_end(s);
    else if (!go_on)
        hunch_session_cancel(s);
}

void hn_stream_deliver(hunch_engine *e) {
    bool any;
    e->in_output_callback = true;
    do { /* a session that is opened by a callback may make an earlier one fail */
        any = false;
        for (hunch_session *s = e->streams; s; s = e->callback_next) {
            e->callback_session = s;
            e->callback_next = s->stream.after;
            if (!has_output(s)) continue;
            any = true;
            deliver(s);
        }
    } while (any);
    e->callback_session = e->callback_next = NULL;
    e->in_output_callback = false;
}
