/* SPDX-License-Identifier: Apache-2.0 */
/* prompt_rows.c - what a request may ask of its prompt's rows: log-probabilities of the tokens after them, and a pooled state. They are
 * taken as passes compute the rows, in order, each once: a text that was preempted goes on after those that it has. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "engine/prefixes.h"

static bool asks(const hunch_session *s) {
    return s->request.prompt_logprobs || s->request.pooling != HUNCH_POOL_NONE;
}

hunch_status hn_prompt_values_open(hunch_session *s, const hunch_request *r, hunch_error *err) {
    hn_session_text *t = &s->text;
    const size_t n = t->n_prompt, n_top = (size_t)s->request.n_top, hidden = (size_t)s->engine->model->target.arch.hidden;
    s->request.prompt_logprobs = r->prompt_logprobs;
    s->request.prompt_only = r->prompt_only;
    s->request.pooling = r->pooling;
    if (r->prompt_logprobs) {
        t->prompt_logprob = hn_zalloc(n, sizeof *t->prompt_logprob);
        if (n_top) t->prompt_top = hn_zalloc(n, n_top * sizeof *t->prompt_top);
        if (!t->prompt_logprob || (n_top && !t->prompt_top))
            return hn_fail_memory(err, "log-probabilities of a prompt", n * (sizeof *t->prompt_logprob + n_top * sizeof *t->prompt_top));
        for (size_t i = 0; i < n; i++) t->prompt_logprob[i] = NAN;
        for (size_t i = 0; i < n * n_top; i++) t->prompt_top[i] = (hunch_logprob){-1, NAN};
    }
    if (r->pooling == HUNCH_POOL_NONE) return HUNCH_OK;
    t->pooled = hn_zalloc(hidden, sizeof *t->pooled);
    t->pooled_out = hn_zalloc(hidden, sizeof *t->pooled_out);
    return t->pooled && t->pooled_out ? HUNCH_OK : hn_fail_memory(err, "a pooled state", hidden * sizeof *t->pooled);
}

void hn_prompt_values_fini(hn_session_text *t) {
    hn_free(t->prompt_logprob);
    hn_free(t->prompt_top);
    hn_free(t->pooled);
    hn_free(t->pooled_out);
}

size_t hn_prompt_shared_rows(const hunch_session *s) {
    return asks(s) && s->text.n_read < s->text.n_prompt ? s->text.n_read : SIZE_MAX;
}

bool hn_prompt_wants_logits(const hunch_session *s, size_t row) {
    return s->request.prompt_logprobs && row >= s->text.n_read && row + 1 < s->text.n_prompt;
}

bool hn_prompt_wants_state(const hunch_session *s, size_t row) {
    return s->request.pooling != HUNCH_POOL_NONE && row >= s->text.n_read && row < s->text.n_prompt;
}

/* Of the token after the row. */
static void take_logprobs(hunch_session *s, size_t row, const float *logits) {
    const size_t n_top = (size_t)s->request.n_top;
    const int vocab = s->engine->model->target.arch.vocab;
    hn_session_text *t = &s->text;
    t->prompt_logprob[row + 1] = (float)hn_logprob(logits, vocab, t->token[row + 1]);
    if (n_top) hn_logprob_top(logits, vocab, t->prompt_top + (row + 1) * n_top, (int)n_top);
}

static void take_state(hunch_session *s, const float *state) {
    const int hidden = s->engine->model->target.arch.hidden;
    const bool mean = s->request.pooling == HUNCH_POOL_MEAN;
    for (int i = 0; i < hidden; i++) s->text.pooled[i] = (mean ? s->text.pooled[i] : 0) + (double)state[i];
}

static void pool(hunch_session *s) {
    const double rows = s->request.pooling == HUNCH_POOL_MEAN ? (double)s->text.n_prompt : 1;
    for (int i = 0; i < s->engine->model->target.arch.hidden; i++) s->text.pooled_out[i] = (float)(s->text.pooled[i] / rows);
}

void hn_prompt_rows_read(hunch_session *s) {
    hn_session_text *t = &s->text;
    if (!asks(s)) return;
    for (int i = 0; i < s->round.n_rows && t->n_read < t->n_prompt; i++) {
        const size_t row = (size_t)(s->round.first_committed + i);
        if (row != t->n_read) continue; /* computed again */
        if (hn_prompt_wants_logits(s, row)) take_logprobs(s, row, hn_pass_logits(s->engine->runner, s->round.first_row + i));
        if (hn_prompt_wants_state(s, row)) take_state(s, hn_pass_feature(s->engine->runner, HN_FEATURE_POST_NORM, s->round.first_row + i));
        t->n_read++;
    }
    if (t->pooled && t->n_read == t->n_prompt) pool(s);
}
