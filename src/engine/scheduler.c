/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - which sessions have a place. First come, first served; when pages run out the youngest session is preempted and its
 * rows are computed again later (by contract C2 with the same text). */
#include <assert.h>

#include "engine/engine.h"

/* ---- the queue ------------------------------------------------------------------------------------------------------- */

void hn_queue_push(hunch_session *s, bool front) {
    hunch_session **at = &s->engine->queue;
    while (!front && *at) at = &(*at)->next;
    s->next = *at;
    *at = s;
    s->stats.waiting = true;
}

static void queue_remove(hunch_session *s) {
    hunch_session **at = &s->engine->queue;
    while (*at && *at != s) at = &(*at)->next;
    if (*at) *at = s->next;
    s->next = NULL;
    s->stats.waiting = false;
}

/* ---- a place ----------------------------------------------------------------------------------------------------------- */

static hunch_status begin_drafters(hunch_session *s, hunch_error *err) {
    hunch_engine *e = s->engine;
    hn_begin b = {.seq = s->id,
                  .seed = s->sampler.params.seed,
                  .text = {s->text, (int)s->n_text, (int)s->n_prompt},
                  .oracle = s->oracle,
                  .n_oracle = s->n_oracle,
                  .prediction = s->prediction,
                  .n_prediction = s->n_prediction};
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

void hn_session_publish(hunch_session *s) {
    hunch_engine *e = s->engine;
    int valid[HN_MAX_MODELS] = {0};
    if (!e->reuse || s->id < 0) return;
    valid[0] = hn_cache_committed(e->cache, s->id, 0);
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_drafter *d = &e->drafter[i];
        valid[i + 1] = d->ops->valid_rows && d->needs.n_groups ? d->ops->valid_rows(d, s->id) : 0;
    }
    hn_cache_publish(e->cache, s->id, s->text, valid);
}

/* Computes the pending rows of drafters, so that a text that continues this one finds them. */
static void catch_up(hunch_session *s) {
    hunch_engine *e = s->engine;
    const hunch_finish how = s->stats.finish;
    if (!e->reuse || how == HUNCH_FINISH_FAILED || how == HUNCH_FINISH_CANCELLED) return;
    for (int i = 0; i < e->n_drafters; i++)
        if (e->drafter[i].ops->catch_up) e->drafter[i].ops->catch_up(&e->drafter[i], s->id);
    hn_note_failures(e);
}

static size_t same_tokens(const hunch_session *a, const hunch_session *b, size_t most) {
    size_t n = 0;
    while (n < most && a->text[n] == b->text[n]) n++;
    return n;
}

/* The same for texts that begin like this one, which is about to restore rows. */
static void flush_alike(const hunch_session *s) {
    hunch_engine *e = s->engine;
    const size_t page = (size_t)hn_cache_step(e->cache);
    for (int i = 0; i < e->parallel; i++) {
        hunch_session *p = e->session[i];
        if (!p || s->n_text < page || p->n_text < page || same_tokens(s, p, page) < page) continue;
        catch_up(p);
        hn_session_publish(p);
    }
}

hunch_status hn_session_place(hunch_session *s, int id, hunch_error *err) {
    hunch_engine *e = s->engine;
    hunch_status st = HUNCH_OK;
    s->id = id;
    hn_cache_seq_begin(e->cache, id);
    if (e->reuse) {
        flush_alike(s);
        /* The row that decides the first token must be computed. A text that resumes needs none: a draft head without layers, which has
         * lost the newest state with the place, waits for the next round's pass, and that emits a token as well, unlike a pass that
         * computes only the last row again. */
        const size_t most = s->n_text > s->n_prompt ? s->n_text - 1 : s->n_prompt - 1;
        const size_t rows = (size_t)hn_cache_restore(e->cache, id, s->text, (int)most);
        const size_t prompt = rows < s->n_prompt ? rows : s->n_prompt;
        s->stats.n_restored += hn_session_emitted(s) ? 0 : prompt;
        if (prompt > s->stats.n_prefilled) s->stats.n_prefilled = prompt;
    }
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
    if (s->stats.waiting) queue_remove(s);
    if (s->id < 0) return;
    catch_up(s);
    hn_session_publish(s);
    for (int i = 0; i < e->n_drafters; i++)
        if (e->drafter[i].ops->end) e->drafter[i].ops->end(&e->drafter[i], s->id);
    hn_cache_seq_end(e->cache, s->id);
    if (s->id < e->parallel) e->session[s->id] = NULL;
    s->id = -1;
}

/* ---- admission and preemption ------------------------------------------------------------------------------------------ */

static int free_place(const hunch_engine *e) {
    int id = 0;
    while (id < e->parallel && e->session[id]) id++;
    return id;
}

static bool anyone_placed(const hunch_engine *e) {
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i]) return true;
    return false;
}

/* Whether a placed session is about to compute rows that this one shares. Then it waits for them: answers to one prompt, or prompts
 * with one system message, are computed once. */
static bool shared_rows_pending(const hunch_engine *e, const hunch_session *s) {
    const size_t page = (size_t)hn_cache_step(e->cache);
    if (!e->reuse) return false;
    for (int i = 0; i < e->parallel; i++) {
        const hunch_session *p = e->session[i];
        if (!p) continue;
        const size_t done = (size_t)hn_cache_committed(e->cache, i, 0), goal = hn_prefill_rows(p);
        if (done >= goal) continue;
        const size_t same = same_tokens(s, p, s->n_text - 1 < goal ? s->n_text - 1 : goal);
        if (same / page * page > done / page * page) return true;
    }
    return false;
}

/* What preempted texts will continue from is evicted after all idle pages. So is what others would continue from; the oldest
 * session is not preempted. */
static void keep_for_preempted(hunch_engine *e) {
    const hunch_session *oldest = NULL;
    for (const hunch_session *s = e->queue; s; s = s->next)
        if (s->stats.preempted > 0 && e->reuse) hn_cache_touch(e->cache, s->text, (int)s->n_text - 1);
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i] && (!oldest || e->session[i]->admission < oldest->admission)) oldest = e->session[i];
    if (oldest) hn_cache_release_states(e->cache, oldest->id);
}

void hn_admit(hunch_engine *e) {
    keep_for_preempted(e);
    for (hunch_session *s = e->queue, *next; s; s = next) {
        const int id = free_place(e);
        hunch_error why = {0};
        next = s->next;
        if (id == e->parallel) return;
        if (shared_rows_pending(e, s)) continue; /* those after it need not wait */
        if (anyone_placed(e) && hn_cache_free_pages(e->cache) < hn_cache_pages_for(e->cache, (int)s->n_text))
            return;
        queue_remove(s);
        if (hn_session_place(s, id, &why)) hn_session_fail(s, &why);
    }
}

static hunch_session *youngest(const hunch_engine *e, const hunch_session *but) {
    hunch_session *y = NULL;
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i] && e->session[i] != but && (!y || e->session[i]->admission > y->admission)) y = e->session[i];
    return y;
}

static void preempt(hunch_session *s) {
    hn_session_release(s);
    s->stats.preempted++;
    hn_queue_push(s, true);
}

bool hn_make_room(hunch_session *s) {
    hunch_error why = {0};
    for (hunch_status st; (st = hn_cache_reserve(s->engine->cache, s->id, 0, s->n_rows, &why)) != HUNCH_OK;) {
        hunch_session *y = st == HUNCH_NO_MEMORY ? youngest(s->engine, s) : NULL;
        if (!y) { /* the only one, and still too few pages; or no matter of pages */
            hn_session_fail(s, &why);
            hn_session_release(s);
            return false;
        }
        if (s->id < s->engine->parallel && y->admission < s->admission) {
            preempt(s);
            return false;
        }
        preempt(y);
    }
    return true;
}
