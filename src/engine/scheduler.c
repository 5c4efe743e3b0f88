/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - which sessions have a place: by priority, then by age, and none waits for ever; when pages run out a paused session, else
 * the youngest of the lowest priority is preempted and its rows are computed again later (by contract C2 with the same text). */
#include "base/least.h"
#include "engine/prefixes.h"
#include "engine/scheduling.h"

/* ---- admission --------------------------------------------------------------------------------------------------------- */

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

/* Who gives its pages to others first: of two sessions one that is paused, else that of lower priority, else the younger. */
static bool yields_to(const hunch_session *a, const hunch_session *b) {
    const int x = hn_session_rank(a), y = hn_session_rank(b);
    if (a->stats.paused != b->stats.paused) return a->stats.paused;
    return x != y ? x < y : a->admission > b->admission;
}

/* What preempted texts will continue from is evicted after all idle pages. So is what others would continue from; the session that
 * yields last is not preempted. */
static void keep_for_preempted(hunch_engine *e) {
    const hunch_session *last = NULL;
    for (const hunch_session *s = e->queue; s; s = s->next)
        if (s->stats.preempted > 0 && !s->stats.paused && e->reuse)
            hn_cache_touch(e->cache, s->request.salt, s->text.token, (int)s->text.n - 1);
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i] && (!last || yields_to(last, e->session[i]))) last = e->session[i];
    if (last) hn_cache_release_states(e->cache, last->id);
}

enum { MOST_OVERTAKEN = 7 }; /* then it is the turn of the one that waited longest */

static hunch_session *waited_longest(const hunch_engine *e) {
    hunch_session *oldest = NULL;
    for (hunch_session *s = e->queue; s; s = s->next)
        if (!s->stats.paused && (!oldest || s->opened < oldest->opened)) oldest = s;
    return oldest;
}

/* A paused session that has a place, or NULL. */
static hunch_session *paused_placed(const hunch_engine *e) {
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i] && e->session[i]->stats.paused) return e->session[i];
    return NULL;
}

/* Makes a place and pages for the text, if paused sessions have them. */
static bool make_place(hunch_engine *e, const hunch_session *s) {
    while (free_place(e) == e->parallel || (anyone_placed(e) && !hn_has_room(e, s))) {
        hunch_session *paused = paused_placed(e);
        if (!paused) return false;
        hn_session_preempt(paused);
    }
    return true;
}

typedef enum outcome {
    PLACED,  /* or failed: it waits no longer */
    PASSED,  /* it waits for rows that another text is computing, or is paused: those after it need not */
    NO_ROOM  /* for it, so for none after it */
} outcome;

static outcome place(hunch_engine *e, hunch_session *s) {
    hunch_error why = {0};
    if (free_place(e) == e->parallel && !paused_placed(e)) return NO_ROOM;
    if (s->stats.paused || hn_shared_rows_pending(e, s)) return PASSED;
    if (!make_place(e, s)) return NO_ROOM;
    const int id = free_place(e);
    const bool longest = s == waited_longest(e);
    s->in_turn |= longest && e->passed_over >= MOST_OVERTAKEN;
    e->passed_over = longest ? 0 : e->passed_over + 1;
    hn_queue_remove(s);
    if (hn_session_place(s, id, &why)) hn_session_fail(s, &why);
    return PLACED;
}

void hn_admit(hunch_engine *e) {
    bool passed = false; /* the oldest */
    keep_for_preempted(e);
    for (hunch_session *s = e->queue, *next; s; s = next) {
        hunch_session *oldest = !passed && e->passed_over >= MOST_OVERTAKEN ? waited_longest(e) : s;
        if (oldest && oldest != s) {
            const outcome o = place(e, oldest);
            if (o == NO_ROOM) return;
            passed = o == PASSED;
        }
        next = s->next;
        if (place(e, s) == NO_ROOM) return;
    }
}

static void expire(hunch_session *s, double now) {
    if (s->request.deadline == 0 || now < s->request.deadline || !hn_session_running(s)) return;
    hn_session_finish(s, HUNCH_FINISH_DEADLINE);
    hn_session_release(s);
}

void hn_expire(hunch_engine *e) {
    const double now = hn_now();
    for (hunch_session *s = e->queue, *next; s; s = next) {
        next = s->next;
        expire(s, now);
    }
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i]) expire(e->session[i], now);
}

void hn_fail_all(hunch_engine *e, const hunch_error *why) {
    while (e->queue) {
        hunch_session *s = e->queue;
        hn_session_fail(s, why);
        hn_session_release(s);
    }
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i]) {
            hunch_session *s = e->session[i];
            hn_session_fail(s, why);
            hn_session_release(s);
        }
}

/* ---- preemption -------------------------------------------------------------------------------------------------------- */

static hunch_session *first_to_yield(const hunch_engine *e, const hunch_session *but) {
    hunch_session *y = NULL;
    for (int i = 0; i < e->parallel; i++)
        if (e->session[i] && e->session[i] != but && (!y || yields_to(e->session[i], y))) y = e->session[i];
    return y;
}

hunch_status hn_reserve(hunch_engine *e, int seq, int rows, hunch_error *err) {
    for (hunch_status st; (st = hn_cache_reserve(e->cache, seq, 0, rows, err)) != HUNCH_OK;) {
        hunch_session *y = st == HUNCH_NO_MEMORY ? first_to_yield(e, NULL) : NULL;
        if (!y) return st;
        hn_session_preempt(y);
    }
    return HUNCH_OK;
}

bool hn_make_room(hunch_session *s) {
    hunch_error why = {0};
    for (hunch_status st; (st = hn_cache_reserve(s->engine->cache, s->id, 0, s->round.n_rows, &why)) != HUNCH_OK;) {
        hunch_session *y = st == HUNCH_NO_MEMORY ? first_to_yield(s->engine, s) : NULL;
        if (!y) { /* the only one, and still too few pages; or no matter of pages */
            hn_session_fail(s, &why);
            hn_session_release(s);
            return false;
        }
        if (s->id < s->engine->parallel && yields_to(s, y)) {
            hn_session_preempt(s);
            return false;
        }
        hn_session_preempt(y);
    }
    return true;
}
