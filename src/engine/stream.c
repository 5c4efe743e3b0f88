/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - on_output: at the end of a round every session's new output since the last call is delivered.
 *
 * Callbacks run when the round is over and every session is in a consistent state, so they may open, cancel and close sessions; the
 * list of sessions with on_output is doubly linked and has a cursor, which is moved on when the session at it leaves the list. */
#include "engine/engine.h"

void hn_stream_begin(hunch_session *s) {
    hunch_engine *e = s->engine;
    if (!s->on_output) return;
    s->streams = true;
    s->stream_before = e->last_stream;
    *(e->last_stream ? &e->last_stream->stream_after : &e->streams) = s;
    e->last_stream = s;
}

void hn_stream_end(hunch_session *s) {
    if (!s->streams) return; /* not in the list: the engine may have been closed */
    hunch_engine *e = s->engine;
    hunch_session *before = s->stream_before, *after = s->stream_after;
    *(before ? &before->stream_after : &e->streams) = after;
    *(after ? &after->stream_before : &e->last_stream) = before;
    s->stream_before = s->stream_after = NULL;
    s->streams = false;
    if (e->callback_session == s) e->callback_session = NULL;
    if (e->callback_next == s) e->callback_next = after;
}

static bool has_output(const hunch_session *s) {
    return hn_session_emitted(s) > s->output_tokens || s->shown > s->output_text || !hn_session_running(s);
}

/* After the callback the session may be closed: then e->callback_session is NULL. */
static void deliver(hunch_session *s) {
    hunch_engine *e = s->engine;
    const size_t tokens = hn_session_emitted(s), text = s->shown;
    const hunch_output o = {.session = s,
                            .text = s->out ? s->out + s->output_text : "",
                            .text_len = text - s->output_text,
                            .tokens = s->text + s->n_prompt + s->output_tokens,
                            .drafter_of = s->drafter_of ? s->drafter_of + s->output_tokens : NULL,
                            .n_tokens = tokens - s->output_tokens,
                            .finish = s->stats.finish};
    s->output_tokens = tokens;
    s->output_text = text;
    const bool go_on = s->on_output(s->on_output_user, &o);
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
            e->callback_next = s->stream_after;
            if (!has_output(s)) continue;
            any = true;
            deliver(s);
        }
    } while (any);
    e->callback_session = e->callback_next = NULL;
    e->in_output_callback = false;
}
