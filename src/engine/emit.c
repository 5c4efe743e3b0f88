/* SPDX-License-Identifier: Apache-2.0 */
/* emit.c - the text of a session: the emitted tokens, and where exactly it ends.
 *
 * Tokens are emitted one at a time even if a round accepted several, so that end-of-sequence, stop strings and limits cut inside an
 * accepted block where plain decoding would have stopped. */
#include <string.h>

#include "base/mem.h"
#include "engine/scheduling.h"
#include "engine/repeats.h"
#include "sample/constraint.h"

/* First occurrence of a stop string (*which) that ends in the text's new end, or -1. */
static long find_stop(const hn_session_text *t, const hn_session_request *r, size_t old_len, int *which) {
    long best = -1;
    for (int i = 0; i < r->n_stop; i++) {
        const size_t n = strlen(r->stop[i]), from = old_len >= n ? old_len - n + 1 : 0;
        const char *hit = t->out_len > from ? memmem(t->out + from, t->out_len - from, r->stop[i], n) : NULL;
        if (!hit || (best >= 0 && hit - t->out >= best)) continue;
        best = hit - t->out;
        *which = i;
    }
    return best;
}

/* How much may be shown: all but the longest end that is the beginning of a stop string. */
static size_t shown_length(const hn_session_text *t, const hn_session_request *r) {
    size_t hold = 0;
    for (int i = 0; i < r->n_stop; i++) {
        const size_t n = strlen(r->stop[i]);
        for (size_t k = n - 1 < t->out_len ? n - 1 : t->out_len; k > hold; k--)
            if (!memcmp(t->out + t->out_len - k, r->stop[i], k)) {
                hold = k;
                break;
            }
    }
    return t->out_len - hold;
}

/* may_end: the text has its least number of tokens. */
static hunch_status emit_text(hunch_session *s, int32_t token, bool may_end, bool *stopped, hunch_error *err) {
    hn_session_text *t = &s->text;
    const size_t old_len = t->out_len;
    hunch_status st = hn_detok_push(&t->detok, s->engine->model->tokenizer, token, &t->out, &t->out_len, &t->out_cap, err);
    if (st) return st;
    const long cut = may_end ? find_stop(t, &s->request, old_len, &s->stats.stop_string) : -1;
    if (cut >= 0) {
        t->out_len = (size_t)cut;
        t->out[t->out_len] = '\0';
        *stopped = true;
    }
    t->shown = *stopped ? t->out_len : shown_length(t, &s->request);
    return HUNCH_OK;
}

/* Reserves memory for one more token. */
static hunch_status emit_reserve(hn_session_text *t, const hn_session_request *r, size_t n, hunch_error *err) {
    const size_t n_top = (size_t)r->n_top;
    if (!hn_grow((void **)&t->token, &t->cap, t->n + 1, sizeof *t->token) ||
        !hn_grow((void **)&t->drafter_of, &t->cap_drafter_of, n + 1, sizeof *t->drafter_of) ||
        (r->logprobs && !hn_grow((void **)&t->logprob, &t->cap_logprob, n + 1, sizeof *t->logprob)) ||
        (n_top && !hn_grow((void **)&t->top, &t->cap_top, (n + 1) * n_top, sizeof *t->top)))
        return hn_fail_memory(err, "text", (t->n + 1) * (sizeof *t->token + n_top * sizeof *t->top));
    return HUNCH_OK;
}

/* Whether nothing may follow by the text's grammar, in a vocabulary without a token that ends texts. */
static bool is_complete(hunch_session *s) {
    const hn_session_text *t = &s->text;
    if (!s->request.grammar || hn_grammar_has_end(s->request.grammar)) return false;
    const hn_history h = {t->token, (int)t->n, (int)t->n_prompt, NULL, 0};
    return hn_sampler_is_complete(&s->sampler, &h);
}

hunch_status hn_session_emit(hunch_session *s, int32_t token, int drafter, const float *logits, bool *ended,
                             hunch_error *err) {
    const hn_tokenizer *tokenizer = s->engine->model->tokenizer;
    const hn_session_request *r = &s->request;
    hn_session_text *t = &s->text;
    const size_t n = hn_session_emitted(s);
    const int vocab = s->engine->model->target.arch.vocab;
    hunch_status st = emit_reserve(t, r, n, err);
    if (st) return st;
    t->token[t->n++] = token;
    s->engine->stats.tokens++;
    t->drafter_of[n] = (int16_t)drafter;
    if (r->logprobs) t->logprob[n] = (float)hn_logprob(logits, vocab, token);
    if (r->n_top) hn_logprob_top(logits, vocab, t->top + n * (size_t)r->n_top, r->n_top);
    if (r->on_logits) r->on_logits(r->on_logits_user, n, logits, vocab);
    const bool may_end = n >= r->min_new;
    bool stopped = (may_end || r->grammar) && hn_request_ends(s, token); /* a grammar allows an end where nothing else may follow */
    if (stopped) s->stats.stop_token = token;
    if (tokenizer && !stopped) {
        st = emit_text(s, token, may_end, &stopped, err);
        if (st) return st;
    }
    if (stopped || is_complete(s))
        hn_session_finish(s, HUNCH_FINISH_STOP);
    else if (may_end && r->loop_tokens && hn_repeats(t->token + t->n_prompt, n + 1, r->loop_tokens, HN_LOOP_TIMES))
        hn_session_finish(s, HUNCH_FINISH_LOOP);
    else if (n + 1 >= r->max_new)
        hn_session_finish(s, HUNCH_FINISH_LENGTH);
    *ended = !hn_session_running(s);
    return HUNCH_OK;
}

void hn_session_finish(hunch_session *s, hunch_finish how) {
    hunch_error ignored; /* without memory the flush loses only a replacement character */
    hn_session_text *t = &s->text;
    if (!hn_session_running(s)) return;
    if (s->engine->model->tokenizer && how != HUNCH_FINISH_STOP)
        (void)hn_detok_end(&t->detok, &t->out, &t->out_len, &t->out_cap, &ignored);
    t->shown = t->out_len;
    s->stats.finish = how;
    s->engine->stats.finished[how]++;
    hn_room_learn(&s->engine->lengths, hn_session_emitted(s), how);
}

void hn_session_fail(hunch_session *s, const hunch_error *err) {
    s->stats.error = *err;
    hn_session_finish(s, HUNCH_FINISH_FAILED);
}
