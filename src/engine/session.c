/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - one text under generation: the request, the emitted tokens, and where exactly it ends.
 *
 * Tokens are emitted one at a time even if a round accepted several, so that end-of-sequence, stop strings and limits cut inside an
 * accepted block where plain decoding would have stopped. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "engine/repeats.h"

void hunch_request_defaults(hunch_request *r, const hunch_model *m) {
    if (!r) return;
    memset(r, 0, sizeof *r);
    r->sampling = m ? m->target.arch.sampling : (hunch_sampling){.top_p = 1};
}

hunch_status hn_check_tokens(const hunch_engine *e, const char *what, const hunch_token *t, size_t n, hunch_error *err) {
    const int vocab = e->model->target.arch.vocab;
    for (size_t i = 0; i < n; i++)
        if (t[i] < 0 || t[i] >= vocab)
            return hn_fail(err, HUNCH_USAGE, "%stoken %zu is %d, expected 0 to %d", what, i, t[i], vocab - 1);
    return HUNCH_OK;
}

static hunch_status check_request(const hunch_engine *e, const hunch_request *r, hunch_error *err) {
    enum { MOST_PREDICTED = 1 << 24 };
    if (!r->prompt || r->n_prompt == 0)
        return hn_fail(err, HUNCH_USAGE, "prompt is empty: expected at least one token");
    if (r->n_prompt > (size_t)e->context) return hn_fail_context(e, "prompt", r->n_prompt, err);
    if (r->loop_tokens < 0) return hn_fail(err, HUNCH_USAGE, "loop_tokens is %d, expected 0 or more", r->loop_tokens);
    if (r->top_logprobs < 0 || r->top_logprobs > HUNCH_MOST_TOP_LOGPROBS)
        return hn_fail(err, HUNCH_USAGE, "top_logprobs is %d, expected 0 to %d", r->top_logprobs, HUNCH_MOST_TOP_LOGPROBS);
    if (r->n_prediction > MOST_PREDICTED)
        return hn_fail(err, HUNCH_USAGE, "prediction of %zu tokens, expected at most %d", r->n_prediction,
                       MOST_PREDICTED);
    hunch_status st = hn_check_tokens(e, "prompt ", r->prompt, r->n_prompt, err);
    if (!st) st = hn_check_tokens(e, "prediction ", r->prediction, r->prediction ? r->n_prediction : 0, err);
    if (st) return st;
    if (r->n_stop < 0 || (r->n_stop > 0 && !e->model->tokenizer))
        return hn_fail(err, HUNCH_USAGE, "stop strings need a tokenizer, and this model has none");
    for (int i = 0; i < r->n_stop; i++) {
        if (!r->stop || !r->stop[i] || !*r->stop[i]) return hn_fail(err, HUNCH_USAGE, "stop string %d is empty", i);
        const size_t n = strlen(r->stop[i]), bad = hn_utf8_check(r->stop[i], n);
        if (bad < n) return hn_fail(err, HUNCH_USAGE, "stop string %d is not UTF-8: byte %zu", i, bad);
    }
    return hn_sampling_check(&r->sampling, e->model->target.arch.vocab, err);
}

static hunch_status copy_stops(hunch_session *s, const hunch_request *r, hunch_error *err) {
    if (r->n_stop == 0) return HUNCH_OK;
    s->stop = hn_zalloc((size_t)r->n_stop, sizeof *s->stop);
    if (!s->stop) return hn_fail_memory(err, "stop strings", (size_t)r->n_stop * sizeof *s->stop);
    for (; s->n_stop < r->n_stop; s->n_stop++) {
        const char *t = r->stop[s->n_stop];
        if (!(s->stop[s->n_stop] = hn_strdup(t))) return hn_fail_memory(err, "stop string", strlen(t));
        if (strlen(t) > s->longest_stop) s->longest_stop = strlen(t);
    }
    return HUNCH_OK;
}

/* DRY's breakers: the tokens whose bytes contain one of the strings. */
static hunch_status find_breakers(hunch_session *s, const hunch_sampling *p, hunch_error *err) {
    static const char *const usual[] = {"\n", ":", "\"", "*"};
    const hn_tokenizer *t = s->engine->model->tokenizer;
    const int vocab = s->engine->model->target.arch.vocab;
    const char *const *strings = p->dry_breakers ? p->dry_breakers : usual;
    const int n = p->dry_breakers ? p->n_dry_breakers : (int)(sizeof usual / sizeof *usual);
    if (!hn_sampler_wants_breakers(&s->sampler)) return HUNCH_OK;
    if (!t && p->dry_breakers) return hn_fail(err, HUNCH_USAGE, "DRY breakers need a tokenizer, and this model has none");
    uint8_t *bits = hn_zalloc((size_t)(vocab + 7) / 8, 1);
    if (!bits) return hn_fail_memory(err, "DRY breakers", (size_t)vocab / 8);
    for (int id = 0; t && id < vocab; id++) {
        size_t len = 0;
        const char *piece = hn_tokenizer_piece(t, id, &len);
        for (int i = 0; piece && i < n; i++)
            if (memmem(piece, len, strings[i], strlen(strings[i]))) bits[id / 8] |= (uint8_t)(1u << (id % 8));
    }
    hunch_status st = hn_sampler_breakers(&s->sampler, bits, err);
    hn_free(bits);
    return st;
}

static hunch_status copy_tokens(int32_t **out, const hunch_token *t, size_t n, const char *what, hunch_error *err) {
    if (!t || n == 0) return HUNCH_OK;
    *out = hn_alloc(n * sizeof **out);
    if (!*out) return hn_fail_memory(err, what, n * sizeof **out);
    memcpy(*out, t, n * sizeof **out);
    return HUNCH_OK;
}

static hunch_status copy_request(hunch_session *s, const hunch_request *r, hunch_error *err) {
    hunch_engine *e = s->engine;
    s->ignore_eos = r->ignore_eos;
    s->loop_tokens = (size_t)r->loop_tokens;
    s->logprobs = r->logprobs || r->top_logprobs > 0;
    s->n_top = r->top_logprobs < e->model->target.arch.vocab ? r->top_logprobs : e->model->target.arch.vocab;
    s->on_logits = r->on_logits;
    s->on_logits_user = r->on_logits_user;
    s->on_round = r->on_round;
    s->on_round_user = r->on_round_user;
    s->on_output = r->on_output;
    s->on_output_user = r->on_output_user;
    s->n_prompt = s->n_text = r->n_prompt;
    /* The context holds the text; a prompt that fills it still gets the one token that its last row decides. */
    s->max_new = r->n_prompt < (size_t)e->context ? (size_t)e->context - r->n_prompt : 1;
    if (r->max_tokens > 0 && (size_t)r->max_tokens < s->max_new) s->max_new = (size_t)r->max_tokens;
    if (!hn_grow((void **)&s->text, &s->cap_text, s->n_prompt + 1, sizeof *s->text))
        return hn_fail_memory(err, "prompt", s->n_prompt * sizeof *s->text);
    memcpy(s->text, r->prompt, s->n_prompt * sizeof *s->text);
    hunch_status st = copy_tokens(&s->prediction, r->prediction, r->n_prediction, "prediction", err);
    s->n_prediction = s->prediction ? (int)r->n_prediction : 0;
    if (!st) st = hn_rule_choose(e->verify, &e->lossy, &r->sampling, &s->rule, err);
    if (!st) st = hn_sampler_init(&s->sampler, &r->sampling, e->model->target.arch.vocab, err);
    if (!st) st = find_breakers(s, &r->sampling, err);
    if (!st) st = copy_stops(s, r, err);
    return st;
}

/* Records in the statistics how the text is verified. */
static void record_rule(hunch_session *s) {
    static const hunch_verify of_rule[] = {[HN_RULE_GREEDY] = HUNCH_VERIFY_GREEDY,
                                           [HN_RULE_MATCH] = HUNCH_VERIFY_MATCH,
                                           [HN_RULE_RATIO] = HUNCH_VERIFY_RATIO,
                                           [HN_RULE_BLOCK] = HUNCH_VERIFY_BLOCK,
                                           [HN_RULE_TRAVERSAL] = HUNCH_VERIFY_TRAVERSAL};
    if (s->rule >= HN_RULE_LENIENCE)
        s->stats.lossy = s->engine->lossy;
    else
        s->stats.verify = of_rule[s->rule];
}

hunch_status hn_session_create(hunch_session **out, hunch_engine *e, const hunch_request *r, hunch_error *err) {
    *out = NULL;
    hunch_status st = check_request(e, r, err);
    if (st) return st;
    hunch_session *s = hn_zalloc(1, sizeof *s);
    if (!s) return hn_fail_memory(err, "session", sizeof *s);
    s->engine = e;
    s->id = -1;
    s->depth_cap = HUNCH_MAX_DEPTH;
    s->accept_cap = -1;
    hn_detok_init(&s->detok);
    s->detok.started = true; /* the text continues the prompt: a leading space belongs to it */
    st = copy_request(s, r, err);
    if (st) {
        hn_session_destroy(s);
        return st;
    }
    record_rule(s);
    *out = s;
    return HUNCH_OK;
}

void hn_session_destroy(hunch_session *s) {
    hn_sampler_fini(&s->sampler);
    for (int i = 0; i < s->n_stop; i++) hn_free(s->stop[i]);
    hn_free(s->stop);
    hn_free(s->text);
    hn_free(s->drafter_of);
    hn_free(s->logprob);
    hn_free(s->top);
    hn_free(s->oracle);
    hn_free(s->prediction);
    hn_free(s->out);
    hn_free(s);
}

/* ---- emitting ------------------------------------------------------------------------------------------------------- */

/* First occurrence of a stop string in the text, or -1. Only the new end can have one. */
static long find_stop(const hunch_session *s, size_t old_len) {
    size_t from = old_len > s->longest_stop ? old_len - s->longest_stop : 0;
    long best = -1;
    for (int i = 0; i < s->n_stop; i++) {
        const char *hit =
            s->out_len > from ? memmem(s->out + from, s->out_len - from, s->stop[i], strlen(s->stop[i])) : NULL;
        if (hit && (best < 0 || hit - s->out < best)) best = hit - s->out;
    }
    return best;
}

/* How much may be shown: all but the longest end that is the beginning of a stop string. */
static size_t shown_length(const hunch_session *s) {
    size_t hold = 0;
    for (int i = 0; i < s->n_stop; i++) {
        const size_t n = strlen(s->stop[i]);
        for (size_t k = n - 1 < s->out_len ? n - 1 : s->out_len; k > hold; k--)
            if (!memcmp(s->out + s->out_len - k, s->stop[i], k)) {
                hold = k;
                break;
            }
    }
    return s->out_len - hold;
}

static hunch_status emit_text(hunch_session *s, int32_t token, bool *stopped, hunch_error *err) {
    const size_t old_len = s->out_len;
    hunch_status st =
        hn_detok_push(&s->detok, s->engine->model->tokenizer, token, &s->out, &s->out_len, &s->out_cap, err);
    if (st) return st;
    const long cut = find_stop(s, old_len);
    if (cut >= 0) {
        s->out_len = (size_t)cut;
        s->out[s->out_len] = '\0';
        *stopped = true;
    }
    s->shown = *stopped ? s->out_len : shown_length(s);
    return HUNCH_OK;
}

/* Reserves memory for one more token. */
static hunch_status emit_reserve(hunch_session *s, size_t n, hunch_error *err) {
    const size_t n_top = (size_t)s->n_top;
    if (!hn_grow((void **)&s->text, &s->cap_text, s->n_text + 1, sizeof *s->text) ||
        !hn_grow((void **)&s->drafter_of, &s->cap_drafter_of, n + 1, sizeof *s->drafter_of) ||
        (s->logprobs && !hn_grow((void **)&s->logprob, &s->cap_logprob, n + 1, sizeof *s->logprob)) ||
        (n_top && !hn_grow((void **)&s->top, &s->cap_top, (n + 1) * n_top, sizeof *s->top)))
        return hn_fail_memory(err, "text", (s->n_text + 1) * (sizeof *s->text + n_top * sizeof *s->top));
    return HUNCH_OK;
}

hunch_status hn_session_emit(hunch_session *s, int32_t token, int drafter, const float *logits, bool *ended,
                             hunch_error *err) {
    const hn_tokenizer *t = s->engine->model->tokenizer;
    const size_t n = hn_session_emitted(s);
    const int vocab = s->engine->model->target.arch.vocab;
    hunch_status st = emit_reserve(s, n, err);
    if (st) return st;
    s->text[s->n_text++] = token;
    s->drafter_of[n] = (int16_t)drafter;
    if (s->logprobs) s->logprob[n] = (float)hn_logprob(logits, vocab, token);
    if (s->n_top) hn_logprob_top(logits, vocab, s->top + n * (size_t)s->n_top, s->n_top);
    if (s->on_logits) s->on_logits(s->on_logits_user, n, logits, vocab);
    bool stopped = t && !s->ignore_eos && hn_tokenizer_is_end(t, token);
    if (t && !stopped) {
        st = emit_text(s, token, &stopped, err);
        if (st) return st;
    }
    if (stopped)
        hn_session_finish(s, HUNCH_FINISH_STOP);
    else if (s->loop_tokens && hn_repeats(s->text + s->n_prompt, n + 1, s->loop_tokens, HN_LOOP_TIMES))
        hn_session_finish(s, HUNCH_FINISH_LOOP);
    else if (n + 1 >= s->max_new)
        hn_session_finish(s, HUNCH_FINISH_LENGTH);
    *ended = !hn_session_running(s);
    return HUNCH_OK;
}

void hn_session_finish(hunch_session *s, hunch_finish how) {
    hunch_error ignored; /* without memory the flush loses only a replacement character */
    if (!hn_session_running(s)) return;
    if (s->engine->model->tokenizer && how != HUNCH_FINISH_STOP)
        (void)hn_detok_end(&s->detok, &s->out, &s->out_len, &s->out_cap, &ignored);
    s->shown = s->out_len;
    s->stats.finish = how;
}

void hn_session_fail(hunch_session *s, const hunch_error *err) {
    s->stats.error = *err;
    hn_session_finish(s, HUNCH_FINISH_FAILED);
}

/* ---- the public calls ------------------------------------------------------------------------------------------------ */

void hunch_session_cancel(hunch_session *s) {
    if (!s) return;
    hn_stream_end(s);
    hn_session_finish(s, HUNCH_FINISH_CANCELLED);
    hn_session_release(s);
}

void hunch_session_get(const hunch_session *s, hunch_session_state *state) {
    if (!state) return;
    *state = (hunch_session_state){0};
    if (!s) return;
    *state = s->stats;
    state->n_prompt = s->n_prompt;
    state->tokens = s->text + s->n_prompt;
    state->drafter_of = s->drafter_of;
    state->logprobs = s->logprob;
    state->top_logprobs = s->top;
    state->n_top_logprobs = s->n_top;
    state->n_tokens = hn_session_emitted(s);
    state->text = s->engine->model->tokenizer ? (s->out ? s->out : "") : NULL;
    state->text_len = s->shown;
}
