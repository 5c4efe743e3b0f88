/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - the life of a session: open, wait, a place, preempted, cancelled, closed. Which session has a place when is decided in
 * scheduler.c, what is emitted in emit.c, what was asked for in request.c. */
#include "base/mem.h"
#include "engine/drafting.h"
#include "engine/pass_costs.h"
#include "engine/prefixes.h"
#include "engine/scheduling.h"

/* ---- open ------------------------------------------------------------------------------------------------------------- */

hunch_status hn_session_create(hunch_session **out, hunch_engine *e, const hunch_request *r, hunch_error *err) {
    *out = NULL;
    hunch_status st = hn_request_check(e, r, err);
    if (st) return st;
    hunch_session *s = hn_zalloc(1, sizeof *s);
    if (!s) return hn_fail_memory(err, "session", sizeof *s);
    s->engine = e;
    s->id = -1;
    hn_detok_init(&s->text.detok);
    s->stats.stop_string = s->stats.stop_token = -1;
    s->text.detok.special = r->special_text;
    s->text.detok.started = true; /* the text continues the prompt: a leading space belongs to it */
    st = hn_request_copy(s, r, err);
    if (st) {
        hn_session_destroy(s);
        return st;
    }
    *out = s;
    return HUNCH_OK;
}

void hn_session_destroy(hunch_session *s) {
    hn_sampler_fini(&s->sampler);
    hn_request_fini(&s->request);
    hn_free(s->text.token);
    hn_free(s->text.drafter_of);
    hn_free(s->text.logprob);
    hn_free(s->text.top);
    hn_free(s->text.out);
    hn_prompt_values_fini(&s->text);
    hn_free(s->same);
    hn_free(s);
}

hunch_status hunch_session_open(hunch_session **out, hunch_engine *e, const hunch_request *r, hunch_error *err) {
    if (out) *out = NULL;
    const hn_argument needed[] = {{"out", out}, {"e", e}, {"r", r}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    hunch_session *s = NULL;
    st = hn_engine_check_idle(e, err);
    if (!st) st = hn_session_create(&s, e, r, err);
    if (st) return st;
    hn_internal_end(e); /* its pages may be needed */
    st = hn_oracle_text(e, r, &s->request.oracle, &s->request.n_oracle, err);
    if (st) {
        hn_session_destroy(s);
        return st;
    }
    s->opened = ++e->opened;
    s->opened_at = hn_now();
    hn_queue_push(s, false);
    hn_admit(e);
    if (s->stats.finish == HUNCH_FINISH_FAILED) { /* it got a place, but a drafter could not begin */
        st = hn_fail(err, s->stats.error.status, "%s", s->stats.error.message);
        hn_session_destroy(s);
        return st;
    }
    hn_stream_begin(s);
    *out = s;
    return HUNCH_OK;
}

/* ---- wait -------------------------------------------------------------------------------------------------------------- */

void hn_queue_push(hunch_session *s, bool front) {
    hunch_session **at = &s->engine->queue;
    const int rank = hn_session_rank(s);
    while (*at && (hn_session_rank(*at) > rank || (!front && hn_session_rank(*at) == rank))) at = &(*at)->next;
    s->next = *at;
    *at = s;
    s->stats.waiting = true;
}

void hn_queue_remove(hunch_session *s) {
    hunch_session **at = &s->engine->queue;
    while (*at && *at != s) at = &(*at)->next;
    if (*at) *at = s->next;
    s->next = NULL;
    s->stats.waiting = false;
    hn_free(s->same);
    s->same = NULL;
}

/* ---- a place ----------------------------------------------------------------------------------------------------------- */

static hunch_status begin_drafters(hunch_session *s, hunch_error *err) {
    hunch_engine *e = s->engine;
    hn_begin b = {.seq = s->id,
                  .seed = s->sampler.params.seed,
                  .salt = s->request.salt,
                  .text = {s->text.token, (int)s->text.n, (int)s->text.n_prompt},
                  .oracle = s->request.oracle,
                  .n_oracle = s->request.n_oracle,
                  .prediction = s->request.prediction,
                  .n_prediction = s->request.n_prediction};
    for (int i = 0; i < e->n_drafters; i++) {
        hn_drafter *d = &e->drafter[i];
        b.rows_restored = hn_cache_committed(e->cache, s->id, i + 1);
        hunch_status st = d->ops->begin ? d->ops->begin(d, &b, 1, err) : HUNCH_OK;
        if (st) {
            while (--i >= 0)
                if (e->drafter[i].ops->end) e->drafter[i].ops->end(&e->drafter[i], s->id);
            return st;
        }
    }
    return HUNCH_OK;
}

/* A first place, or another after it was preempted. */
static void count_place(hunch_session *s) {
    hunch_engine *e = s->engine;
    const int restored = hn_cache_committed(e->cache, s->id, 0);
    if (s->stats.preempted > 0) {
        e->stats.recomputed += restored < s->lost_rows ? (uint64_t)(s->lost_rows - restored) : 0;
        return;
    }
    s->stats.wait_s = hn_now() - s->opened_at;
    e->stats.prompt_tokens += s->text.n_prompt;
    e->stats.prefix_queries += e->reuse ? s->text.n_prompt : 0;
    e->stats.prefix_hits += (uint64_t)restored;
}

hunch_status hn_session_place(hunch_session *s, int id, hunch_error *err) {
    hunch_engine *e = s->engine;
    hunch_status st = hn_request_sampler(s, err);
    if (st) return st;
    s->id = id;
    hn_cache_seq_begin(e->cache, id);
    hn_cache_seq_salt(e->cache, id, s->request.salt);
    if (e->reuse) {
        hn_flush_alike(s);
        /* The row that decides the first token must be computed. A text that resumes needs none: a draft head without layers, which has
         * lost the newest state with the place, waits for the next round's pass, and that emits a token as well, unlike a pass that
         * computes only the last row again. */
        const size_t most = s->text.n > s->text.n_prompt ? s->text.n - 1 : s->text.n_prompt - 1, may = hn_prompt_shared_rows(s);
        const size_t rows = (size_t)hn_cache_restore(e->cache, id, s->text.token, (int)(most < may ? most : may));
        const size_t prompt = rows < s->text.n_prompt ? rows : s->text.n_prompt;
        s->stats.n_restored += hn_session_emitted(s) ? 0 : prompt;
        if (prompt > s->stats.n_prefilled) s->stats.n_prefilled = prompt;
    }
    count_place(s);
    st = begin_drafters(s, err);
    if (st) {
        hn_cache_seq_end(e->cache, id);
        s->id = -1;
        return st;
    }
    if (e->controller) hn_controller_begin(e->controller, id);
    if (id < e->parallel) e->session[id] = s;
    s->admission = ++e->admissions;
    return HUNCH_OK;
}

void hn_session_release(hunch_session *s) {
    hunch_engine *e = s->engine;
    if (s->stats.waiting) hn_queue_remove(s);
    if (s->id < 0) return;
    hn_flush_pending(e, &s, 1);
    hn_session_publish_end(s);
    for (int i = 0; i < e->n_drafters; i++)
        if (e->drafter[i].ops->end) e->drafter[i].ops->end(&e->drafter[i], s->id);
    hn_cache_seq_end(e->cache, s->id);
    if (s->id < e->parallel) e->session[s->id] = NULL;
    s->id = -1;
    if (!hn_session_running(s)) hn_sampler_fini(&s->sampler);
}

void hn_session_preempt(hunch_session *s) {
    s->lost_rows = hn_cache_committed(s->engine->cache, s->id, 0);
    hn_session_release(s);
    s->stats.preempted++;
    s->engine->stats.preemptions++;
    hn_queue_push(s, true);
}

/* ---- the end ----------------------------------------------------------------------------------------------------------- */

void hunch_session_cancel(hunch_session *s) {
    if (!s) return;
    if (s->held) {
        if (s->deferred == HN_DEFERRED_NONE) s->deferred = HN_DEFERRED_CANCEL;
        return;
    }
    hn_stream_end(s);
    hn_session_finish(s, HUNCH_FINISH_CANCELLED);
    hn_session_release(s);
}

void hunch_session_pause(hunch_session *s, bool paused) {
    if (s && hn_session_running(s)) s->stats.paused = paused;
}

void hunch_session_close(hunch_session **sp) {
    hunch_session *s = sp ? *sp : NULL;
    if (!s) return;
    *sp = NULL;
    if (s->held) {
        s->deferred = HN_DEFERRED_CLOSE;
        return;
    }
    hn_stream_end(s);
    hn_session_release(s);
    hn_session_destroy(s);
}

void hn_session_let_go(hunch_session *s) {
    const hn_session_deferred deferred = s->deferred;
    s->held = false;
    s->deferred = HN_DEFERRED_NONE;
    if (deferred == HN_DEFERRED_CANCEL) hunch_session_cancel(s);
    if (deferred == HN_DEFERRED_CLOSE) hunch_session_close(&s);
}

void hunch_session_get(const hunch_session *s, hunch_session_state *state) {
    if (!state) return;
    *state = (hunch_session_state){0};
    if (!s) return;
    *state = s->stats;
    if (s->stats.waiting && s->stats.preempted == 0) state->wait_s = hn_now() - s->opened_at;
    state->place = s->id;
    state->n_prompt = s->text.n_prompt;
    state->tokens = s->text.token + s->text.n_prompt;
    state->drafter_of = s->text.drafter_of;
    state->logprobs = s->text.logprob;
    state->top_logprobs = s->text.top;
    state->n_top_logprobs = s->request.n_top;
    state->prompt_logprobs = s->text.prompt_logprob;
    state->prompt_top_logprobs = s->text.prompt_top;
    state->pooled = s->text.n_read == s->text.n_prompt ? s->text.pooled_out : NULL;
    state->n_pooled = s->text.pooled ? s->engine->model->target.arch.hidden : 0;
    state->n_tokens = hn_session_emitted(s);
    state->text = s->engine->model->tokenizer ? (s->text.out ? s->text.out : "") : NULL;
    state->text_len = s->text.shown;
}
