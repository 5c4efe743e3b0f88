/* SPDX-License-Identifier: Apache-2.0 */
/* shared_rows.c - rows that texts share through the prefix index: when a text's own rows are entered, and who waits for another's. */
#include "engine/engine.h"

void hn_session_publish(hunch_session *s) {
    hunch_engine *e = s->engine;
    int valid[HN_MAX_MODELS] = {0};
    if (!e->reuse || s->id < 0) return;
    valid[0] = hn_cache_committed(e->cache, s->id, 0);
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_drafter *d = &e->drafter[i];
        valid[i + 1] = d->ops->valid_rows && d->needs.n_groups ? d->ops->valid_rows(d, s->id) : 0;
    }
    hn_cache_publish(e->cache, s->id, s->text.token, valid);
}

void hn_session_catch_up(hunch_session *s) {
    hunch_engine *e = s->engine;
    const hunch_finish how = s->stats.finish;
    if (!e->reuse || how == HUNCH_FINISH_FAILED || how == HUNCH_FINISH_CANCELLED) return;
    for (int i = 0; i < e->n_drafters; i++)
        if (e->drafter[i].ops->catch_up) e->drafter[i].ops->catch_up(&e->drafter[i], s->id);
    hn_note_failures(e);
}

static size_t same_tokens(const hunch_session *a, const hunch_session *b, size_t most) {
    size_t n = 0;
    while (n < most && a->text.token[n] == b->text.token[n]) n++;
    return n;
}

void hn_catch_up_alike(const hunch_session *s) {
    hunch_engine *e = s->engine;
    const size_t page = (size_t)hn_cache_step(e->cache);
    for (int i = 0; i < e->parallel; i++) {
        hunch_session *p = e->session[i];
        if (!p || s->text.n < page || p->text.n < page || same_tokens(s, p, page) < page) continue;
        hn_session_catch_up(p);
        hn_session_publish(p);
    }
}

bool hn_shared_rows_pending(const hunch_engine *e, const hunch_session *s) {
    const size_t page = (size_t)hn_cache_step(e->cache);
    if (!e->reuse) return false;
    for (int i = 0; i < e->parallel; i++) {
        const hunch_session *p = e->session[i];
        if (!p) continue;
        const size_t done = (size_t)hn_cache_committed(e->cache, i, 0), goal = hn_prefill_rows(p);
        if (done >= goal) continue;
        const size_t same = same_tokens(s, p, s->text.n - 1 < goal ? s->text.n - 1 : goal);
        if (same / page * page > done / page * page) return true;
    }
    return false;
}
