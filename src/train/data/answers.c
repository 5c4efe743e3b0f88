/* SPDX-License-Identifier: Apache-2.0 */
/* answers.c - see answers.h. */
#include "train/data/answers.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/session.h"

typedef struct line {
    const hn_answers *a;
    hunch_engine *engine;
} line;

typedef struct place {
    size_t job, seen; /* seen: tokens of the turn that do not end it */
    bool done;
    hunch_session *session;
    hunch_token *prompt;
    size_t n_prompt;
    hn_answer said[HN_MOST_TURNS];
    int turns;
} place;

static void place_clear(place *p) {
    hunch_session_close(&p->session);
    hn_free(p->prompt);
    for (int i = 0; i < p->turns; i++) {
        hn_free(p->said[i].ids);
        hn_free(p->said[i].text);
    }
    *p = (place){0};
}

/* Opens the next turn of the place's job, or marks the job as done. */
static hunch_status place_open(const line *l, place *p, hunch_error *err) {
    hunch_request r;
    hunch_request_defaults(&r, l->a->model);
    r.sampling = (hunch_sampling){.top_p = 1};
    r.max_tokens = l->a->how->max_tokens;
    p->prompt = NULL;
    p->seen = 0;
    p->done = p->turns == HN_MOST_TURNS;
    if (p->done) return HUNCH_OK;
    hunch_status st = l->a->ask(l->a->user, p->job, p->said, p->turns, &p->prompt, &p->n_prompt, &r, err);
    if (st) return st;
    /* a prompt without room for an answer ends the conversation */
    p->done = !p->prompt || p->n_prompt + 16 > (size_t)hunch_engine_context(l->engine);
    if (p->done) return HUNCH_OK;
    r.prompt = p->prompt;
    r.n_prompt = p->n_prompt;
    return hunch_session_open(&p->session, l->engine, &r, err);
}

/* Cuts a speaker's answer where the model would end; *text is the caller's. The speaker may have neither the model's
 * end tokens nor its tokenizer. */
static hunch_status cut_answer(const line *l, const hunch_session_state *s, size_t *n, char **text, hunch_error *err) {
    const hn_tokenizer *t = l->a->model->tokenizer;
    char *made = NULL;
    size_t len = s->text_len;
    hunch_status st = HUNCH_OK;
    *n = s->n_tokens;
    if (t && l->a->speaker != l->a->model) {
        for (size_t i = 0; i < *n; i++)
            if (hn_tokenizer_is_end(t, s->tokens[i])) *n = i + 1;
        st = hunch_detokenize(l->a->model, s->tokens, *n, &made, &len, err);
        if (st) return st;
    }
    *text = hn_strndup(made ? made : s->text ? s->text : "", made || s->text ? len : 0);
    hunch_free(made);
    return *text ? HUNCH_OK : hn_fail_memory(err, "an answer", len);
}

static hunch_status place_collect(const line *l, place *p, const hunch_session_state *s, hunch_error *err) {
    hn_answer *said = &p->said[p->turns];
    size_t n;
    char *text = NULL;
    hunch_status st = cut_answer(l, s, &n, &text, err);
    *said = (hn_answer){.ids = st ? NULL : hn_alloc((p->n_prompt + n) * sizeof *said->ids),
                        .n = p->n_prompt + n,
                        .own = p->n_prompt,
                        .text = text};
    p->turns++;
    if (st) return st;
    if (!said->ids) return hn_fail_memory(err, "an answer", said->n * sizeof *said->ids);
    memcpy(said->ids, p->prompt, p->n_prompt * sizeof *said->ids);
    memcpy(said->ids + p->n_prompt, s->tokens, n * sizeof *said->ids);
    hn_free(p->prompt);
    p->prompt = NULL;
    hunch_session_close(&p->session);
    return place_open(l, p, err);
}

/* Whether the turn is over: by the engine, or because a speaker said an end token of the model, which may not be its own. */
static bool is_over(const line *l, place *p, const hunch_session_state *s) {
    const hn_tokenizer *t = l->a->speaker != l->a->model ? l->a->model->tokenizer : NULL;
    if (s->finish != HUNCH_RUNNING) return true;
    for (; t && p->seen < s->n_tokens; p->seen++)
        if (hn_tokenizer_is_end(t, s->tokens[p->seen])) return true;
    return false;
}

static hunch_status places_collect(const line *l, place *places, int n, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < n; i++) {
        hunch_session_state s;
        if (!places[i].session) continue;
        hunch_session_get(places[i].session, &s);
        if (!is_over(l, &places[i], &s)) continue;
        st = s.finish == HUNCH_FINISH_FAILED ? hn_fail(err, s.error.status, "%s", s.error.message)
                                             : place_collect(l, &places[i], &s, err);
    }
    return st;
}

static hunch_status line_run(const line *l, size_t first, size_t n, hunch_error *err) {
    const int width = 2 * l->a->how->parallel; /* early results wait for the first */
    place *places = hn_zalloc((size_t)width, sizeof *places);
    size_t asked = first, taken = first;
    const double start = hn_now();
    uint64_t tokens = 0;
    hunch_status st = places ? HUNCH_OK : hn_fail_memory(err, "answers", (size_t)width * sizeof *places);
    while (!st && taken < n) {
        for (; !st && asked < n && asked < taken + (size_t)width; asked++) {
            place *p = &places[asked % (size_t)width];
            *p = (place){.job = asked};
            st = place_open(l, p, err);
        }
        if (!st && hunch_engine_running(l->engine)) st = hunch_engine_round(l->engine, err);
        if (!st) st = places_collect(l, places, width, err);
        for (place *p; !st && taken < asked && (p = &places[taken % (size_t)width])->done; taken++) {
            st = l->a->take(l->a->user, p->job, p->said, p->turns, err);
            for (int i = 0; i < p->turns; i++) tokens += p->said[i].n;
            place_clear(p);
            if (l->a->how->progress) l->a->how->progress(l->a->how->user, taken + 1, n, tokens, hn_now() - start);
        }
        if (!st && l->a->how->stop && *l->a->how->stop)
            st = hn_fail(err, HUNCH_CANCELLED, "interrupted: %zu of %zu rows were done", taken, n);
    }
    for (int i = 0; places && i < width; i++) place_clear(&places[i]);
    hn_free(places);
    return st;
}

hunch_status hn_answers_make(const hn_answers *a, size_t first, size_t n, hunch_error *err) {
    line l = {.a = a};
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    o.drafts = &a->drafts;
    o.n_drafts = 1;
    o.context = a->how->context;
    o.parallel = a->how->parallel;
    hunch_status st = hunch_engine_open(&l.engine, a->speaker, &o, err);
    if (!st) st = line_run(&l, first, n, err);
    hunch_engine_close(&l.engine);
    return st;
}
