/* SPDX-License-Identifier: Apache-2.0 */
/* serve_sessions.c - see serve_sessions.h. */
#include "server/serve_sessions.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "server/serve_answer.h"
#include "server/http/serve_socket.h"

enum { SILENT_SECONDS = 10 }; /* after which a stream sends a comment */
#define LEAST_SECONDS 1e-6   /* of a deadline that has passed: 0 would be none */

struct serve_sessions {
    hunch_engine *engine;
    serve_metrics *metrics;
    int parallel;
    int open, paused;  /* sessions */
    serve_place *place; /* [parallel] */
    serve_call *first; /* calls that have choices which are not done, in the order in which they were taken */
};

serve_sessions *serve_sessions_new(hunch_engine *e, int parallel, serve_metrics *m) {
    serve_sessions *s = serve_alloc(1, sizeof *s);
    *s = (serve_sessions){.engine = e, .parallel = parallel, .metrics = m};
    s->place = serve_alloc((size_t)parallel, sizeof *s->place);
    return s;
}

/* Twice as many as run at once: the rest wait in the engine, so that a free place is taken within the same round. Paused ones leave their
 * places to others. */
bool serve_sessions_room(const serve_sessions *s) { return s->open - s->paused < 2 * s->parallel; }

const serve_place *serve_sessions_places(const serve_sessions *s) { return s->place; }

int serve_sessions_open(const serve_sessions *s) { return s->open + (s->first != NULL); }

/* ---- output -------------------------------------------------------------------------------------------------- */

/* Log-probabilities of the n tokens that are new. */
static bool logprobs_take(serve_choice *c, const hunch_session_state *st, size_t n) {
    serve_made *m = &c->made;
    const size_t had = c->n_made - n, at = m->n_tokens - n, top = (size_t)st->n_top_logprobs;
    if (!st->logprobs) return true;
    if (!hn_grow((void **)&m->logprobs, &m->cap_logprobs, m->n_tokens, sizeof *m->logprobs)) return false;
    memcpy(m->logprobs + at, st->logprobs + had, n * sizeof *m->logprobs);
    m->n_top = st->n_top_logprobs;
    if (!top) return true;
    if (!hn_grow((void **)&m->top, &m->cap_top, m->n_tokens * top, sizeof *m->top)) return false;
    memcpy(m->top + at * top, st->top_logprobs + had * top, n * top * sizeof *m->top);
    return true;
}

/* Those of the prompt, once it is read. */
static bool prompt_take(serve_choice *c, const hunch_session_state *st) {
    const size_t n = c->prompt->n, top = n * (size_t)st->n_top_logprobs;
    serve_made *m = &c->made;
    if (!st->prompt_logprobs || c->prompt_made || st->n_prefilled < n) return true;
    m->n_top = st->n_top_logprobs;
    m->prompt_logprobs = hn_alloc(n * sizeof *m->prompt_logprobs);
    m->prompt_top = top ? hn_alloc(top * sizeof *m->prompt_top) : NULL;
    if (!m->prompt_logprobs || (top && !m->prompt_top)) return false;
    memcpy(m->prompt_logprobs, st->prompt_logprobs, n * sizeof *m->prompt_logprobs);
    if (top) memcpy(m->prompt_top, st->prompt_top_logprobs, top * sizeof *m->prompt_top);
    return c->prompt_made = true;
}

static bool pooled_take(serve_choice *c, const hunch_session_state *st) {
    serve_made *m = &c->made;
    if (!st->pooled || c->pooled_made) return true;
    m->pooled = hn_alloc((size_t)st->n_pooled * sizeof *m->pooled);
    if (!m->pooled) return false;
    m->n_pooled = st->n_pooled;
    memcpy(m->pooled, st->pooled, (size_t)st->n_pooled * sizeof *m->pooled);
    return c->pooled_made = true;
}

static bool tokens_take(serve_choice *c, const hunch_output *out) {
    const double now = hn_now();
    hunch_session_state st;
    if (out->n_tokens == 0) return true;
    serve_made *m = &c->made;
    if (!hn_grow((void **)&m->tokens, &m->cap_tokens, m->n_tokens + out->n_tokens, sizeof *m->tokens)) return false;
    memcpy(m->tokens + m->n_tokens, out->tokens, out->n_tokens * sizeof *m->tokens);
    m->n_tokens += out->n_tokens;
    c->n_made += out->n_tokens;
    if (!c->first_s) c->first_s = now;
    c->last_s = now;
    if (!c->call->request.logprobs) return true;
    hunch_session_get(out->session, &st);
    return prompt_take(c, &st) && logprobs_take(c, &st, out->n_tokens);
}

static bool on_output(void *user, const hunch_output *out) {
    serve_choice *c = user;
    serve_call *call = c->call;
    pthread_mutex_lock(&call->lock);
    const double before = c->last_s;
    const bool kept = serve_bytes_add(&c->made.text, out->text, out->text_len) && tokens_take(c, out);
    if (!kept) hn_fail(&c->no_memory, HUNCH_NO_MEMORY, "no memory for the answer");
    const bool go_on = kept && !call->gone;
    call->news = call->untaken = true;
    if (before && c->last_s > before) serve_metrics_pause(call->metrics, c->last_s - before);
    pthread_mutex_unlock(&call->lock);
    return go_on;
}

static int drafted_depth(const hunch_round_report *report) {
    int deepest = 0;
    for (int i = 0; i < report->rows - 1; i++) deepest = report->node[i].depth > deepest ? report->node[i].depth : deepest;
    return deepest;
}

/* Whether the prediction has the token behind what it had last, or behind the same token: what it says is the client's, whoever else
 * proposed it. */
static bool is_predicted(serve_choice *c, hunch_token before, hunch_token token) {
    const hunch_token *all = c->call->request.prediction;
    const size_t n = c->call->request.n_prediction;
    size_t at = c->predicted_at;
    if (!(at < n && all[at] == token))
        for (at = 1; at < n && !(all[at - 1] == before && all[at] == token); at++) {}
    if (at >= n) return false;
    c->predicted_at = at + 1;
    return true;
}

/* Counts what of a prediction was verified and accepted, and rounds by how deep their drafts were and how many were accepted. */
static void on_round(void *user, const hunch_round_report *report) {
    serve_choice *c = user;
    uint64_t predicted = 0, right = 0;
    const int depth = c->call->with_metrics ? drafted_depth(report) : 0;
    for (int i = 0; i < report->rows - 1; i++) predicted += report->node[i].drafter == c->call->predicting;
    hunch_token before = report->root;
    for (int i = 0; c->call->predicting >= 0 && i < report->accepted; i++) {
        const hunch_draft_node *node = &report->node[report->path[i]];
        const bool own = node->drafter == c->call->predicting, said = is_predicted(c, before, node->token);
        right += own || said;
        predicted += said && !own;
        before = node->token;
    }
    pthread_mutex_lock(&c->call->lock);
    c->made_predicted += predicted;
    c->made_right += right;
    if (c->call->with_metrics && !c->by_length) c->by_length = serve_alloc(HUNCH_MAX_DEPTH + 1, sizeof *c->by_length);
    if (c->by_length) c->by_length[depth][report->accepted]++;
    pthread_mutex_unlock(&c->call->lock);
}

/* A choice is over; under the lock of its call. */
static void choice_end(serve_choice *c, const hunch_session_state *st) {
    c->end = *st;
    c->end.tokens = NULL;
    c->end.drafter_of = NULL;
    c->end.text = NULL;
    c->end.logprobs = NULL;
    c->end.top_logprobs = NULL;
    c->end.prompt_logprobs = NULL;
    c->end.prompt_top_logprobs = NULL;
    c->end.pooled = NULL;
    c->over = true;
    c->call->news = c->call->untaken = true;
    c->call->left--;
}

static void choice_fail(serve_choice *c, const hunch_error *err) {
    choice_end(c, &(hunch_session_state){.finish = HUNCH_FINISH_FAILED, .error = *err});
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

static void choice_open(serve_sessions *s, serve_choice *c) {
    serve_call *call = c->call;
    hunch_request r = call->request;
    hunch_error err = {0};
    r.prompt = c->prompt->ids;
    r.n_prompt = c->prompt->n;
    r.sampling.seed = c->seed;
    r.on_output = on_output;
    r.on_output_user = c;
    r.on_round = call->predicting >= 0 || call->with_metrics ? on_round : NULL;
    r.on_round_user = c;
    if (r.deadline_s > 0) { /* it counts from the arrival */
        const double left = call->received_s + r.deadline_s - hn_now();
        r.deadline_s = left > LEAST_SECONDS ? left : LEAST_SECONDS;
    }
    const hunch_status st = hunch_session_open(&c->session, s->engine, &r, &err);
    pthread_mutex_lock(&call->lock);
    if (!call->opened_s) call->opened_s = hn_now();
    if (st) choice_fail(c, &err);
    pthread_mutex_unlock(&call->lock);
    s->open += st == HUNCH_OK;
}

static void call_fill(serve_sessions *s, serve_call *c) {
    while (!c->paused && c->n_opened < c->n_choices && serve_sessions_room(s)) choice_open(s, &c->choices[c->n_opened++]);
}

void serve_sessions_take(serve_sessions *s, serve_call *c) {
    serve_call **at = &s->first;
    while (*at) at = &(*at)->next;
    *at = c;
    c->next = NULL;
    c->spoke_s = hn_now();
    c->metrics = s->metrics;
    call_fill(s, c);
}

/* ---- the end of calls ---------------------------------------------------------------------------------------- */

static void choice_pause(serve_sessions *s, serve_choice *c, bool paused) {
    if (!c->session || c->paused == paused) return;
    hunch_session_pause(c->session, paused);
    c->paused = paused;
    s->paused += paused ? 1 : -1;
}

static void session_end(serve_sessions *s, serve_choice *c) {
    if (!c->session) return;
    choice_pause(s, c, false);
    hunch_session_close(&c->session);
    s->open--;
}

/* What of a call is not done ends now, with this state. */
static void call_end(serve_sessions *s, serve_call *c, const hunch_session_state *st) {
    for (int i = 0; i < c->n_choices; i++) session_end(s, &c->choices[i]);
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->n_choices; i++)
        if (!c->choices[i].over) choice_end(&c->choices[i], st);
    serve_metrics_call(s->metrics, c);
    serve_call_wake(c);
    pthread_mutex_unlock(&c->lock);
    serve_call_release(c);
}

static void call_cancel(serve_sessions *s, serve_call *c) {
    pthread_mutex_lock(&c->lock);
    c->gone = true;
    pthread_mutex_unlock(&c->lock);
    call_end(s, c, &(hunch_session_state){.finish = HUNCH_FINISH_CANCELLED});
}

void serve_sessions_refuse(serve_sessions *s, serve_call *c) { call_cancel(s, c); }

void serve_sessions_fail(serve_sessions *s, const hunch_error *err) {
    for (serve_call *c; (c = s->first);) {
        s->first = c->next;
        call_end(s, c, &(hunch_session_state){.finish = HUNCH_FINISH_FAILED, .error = *err});
    }
}

void serve_sessions_free(serve_sessions *s) {
    if (!s) return;
    for (serve_call *c; (c = s->first);) {
        s->first = c->next;
        call_cancel(s, c);
    }
    hn_free(s->place);
    hn_free(s);
}

/* ---- between rounds ------------------------------------------------------------------------------------------ */

bool serve_sessions_look(serve_call *c) {
    const double now = hn_now();
    pthread_mutex_lock(&c->lock);
    if (!c->gone && serve_socket_closed(c->fd)) c->gone = true;
    if (!c->spoke_s) c->spoke_s = c->received_s;
    if (c->stream && now - c->spoke_s > SILENT_SECONDS) {
        c->comment = true;
        c->spoke_s = now;
        serve_call_wake(c);
    }
    const bool gone = c->gone;
    pthread_mutex_unlock(&c->lock);
    return gone;
}

/* A stream whose reader is slow is paused when much waits for it, until that is taken. */
static void call_pace(serve_sessions *s, serve_call *c) {
    pthread_mutex_lock(&c->lock);
    const size_t unsent = c->stream ? serve_call_unsent(c) : 0;
    c->paused = unsent > (c->paused ? 0 : (size_t)c->n_choices * SERVE_MOST_UNSENT);
    for (int i = 0; i < c->n_opened; i++) choice_pause(s, &c->choices[i], c->paused);
    pthread_mutex_unlock(&c->lock);
}

void serve_sessions_sweep(serve_sessions *s) {
    for (serve_call **at = &s->first; *at;) {
        serve_call *c = *at;
        if (serve_sessions_look(c)) {
            *at = c->next;
            call_cancel(s, c);
            continue;
        }
        call_pace(s, c);
        call_fill(s, c);
        at = &c->next;
    }
    serve_metrics_paused(s->metrics, s->paused);
}

static void place_note(serve_sessions *s, const serve_choice *c, const hunch_session_state *st) {
    if (st->place < 0 || st->place >= s->parallel) return;
    serve_place *p = &s->place[st->place];
    *p = (serve_place){.taken = true, .n_prompt = st->n_prompt, .n_read = st->n_prefilled, .n_tokens = st->n_tokens,
                       .most = c->call->request.max_tokens};
    memcpy(p->id, c->call->id, sizeof p->id);
    memcpy(p->client, c->call->client, sizeof p->client);
}

/* Whether the choice has ended. */
static bool choice_report(serve_sessions *s, serve_choice *c) {
    hunch_session_state st;
    if (!c->session) return false;
    hunch_session_get(c->session, &st);
    if (st.finish == HUNCH_RUNNING) return place_note(s, c, &st), false;
    pthread_mutex_lock(&c->call->lock);
    if (st.finish == HUNCH_FINISH_CANCELLED && c->no_memory.status) { /* on_output had none */
        st.finish = HUNCH_FINISH_FAILED;
        st.error = c->no_memory;
    } else if (!prompt_take(c, &st) || !pooled_take(c, &st)) {
        st.finish = HUNCH_FINISH_FAILED;
        hn_fail(&st.error, HUNCH_NO_MEMORY, "no memory for the answer");
    }
    choice_end(c, &st);
    pthread_mutex_unlock(&c->call->lock);
    session_end(s, c);
    return true;
}

void serve_sessions_report(serve_sessions *s) {
    serve_metrics_engine(s->metrics, s->engine);
    for (int i = 0; i < s->parallel; i++) s->place[i].taken = false;
    for (serve_call **at = &s->first; *at;) {
        serve_call *c = *at;
        for (int i = 0; i < c->n_opened; i++) choice_report(s, &c->choices[i]);
        pthread_mutex_lock(&c->lock);
        const bool over = c->left == 0;
        if (c->news) c->spoke_s = hn_now();
        if (c->stream && c->news && !over) serve_call_wake(c);
        c->news = false;
        pthread_mutex_unlock(&c->lock);
        if (!over) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        call_end(s, c, &(hunch_session_state){0});
    }
}
