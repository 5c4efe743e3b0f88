/* SPDX-License-Identifier: Apache-2.0 */
/* shared_rows.c - rows that texts share through the prefix index: when a text's own rows are entered, and who waits for another's. */
#include <assert.h>

#include "engine/engine.h"

static void publish(hunch_session *s, void (*enter)(hn_cache *c, int seq, const int32_t *text, const int *valid)) {
    hunch_engine *e = s->engine;
    int valid[HN_MAX_MODELS] = {0};
    if (!e->reuse || s->id < 0) return;
    valid[0] = hn_cache_committed(e->cache, s->id, 0);
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_drafter *d = &e->drafter[i];
        valid[i + 1] = d->ops->valid_rows && d->needs.n_groups ? d->ops->valid_rows(d, s->id) : 0;
    }
    enter(e->cache, s->id, s->text.token, valid);
}

void hn_session_publish(hunch_session *s) {
    publish(s, hn_cache_publish);
}

void hn_session_publish_end(hunch_session *s) {
    publish(s, hn_cache_publish_end);
}

void hn_flush_pending(hunch_engine *e, hunch_session *const *s, int n) {
    int *seq = e->list.flush, m = 0;
    assert(n <= e->parallel);
    for (int i = 0; e->reuse && i < n; i++)
        if (s[i]->stats.finish != HUNCH_FINISH_FAILED && s[i]->stats.finish != HUNCH_FINISH_GRAMMAR &&
            s[i]->stats.finish != HUNCH_FINISH_CANCELLED)
            seq[m++] = s[i]->id;
    for (int i = 0; m > 0 && i < e->n_drafters; i++)
        if (e->drafter[i].ops->flush_pending) e->drafter[i].ops->flush_pending(&e->drafter[i], seq, m);
    hn_note_failures(e);
}

/* The tokens that both texts begin with, if they may share their rows. */
static size_t same_tokens(const hunch_session *a, const hunch_session *b, size_t most) {
    size_t n = 0;
    if (a->request.salt != b->request.salt) return 0;
    while (n < most && a->text.token[n] == b->text.token[n]) n++;
    return n;
}

/* Whether some drafter has rows to compute before these, which it could share. */
static bool rows_missing(const hunch_engine *e, const hunch_session *s, size_t rows) {
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_drafter *d = &e->drafter[i];
        if (d->ops->flush_pending && d->ops->valid_rows && d->needs.n_groups && (size_t)d->ops->valid_rows(d, s->id) < rows) return true;
    }
    return false;
}

void hn_flush_alike(const hunch_session *s) {
    hunch_engine *e = s->engine;
    hunch_session **alike = e->list.alike;
    const size_t page = (size_t)hn_cache_step(e->cache);
    int n = 0;
    for (int i = 0; i < e->parallel; i++) {
        hunch_session *p = e->session[i];
        if (!p) continue;
        const size_t both = s->text.n < p->text.n ? s->text.n : p->text.n, shared = same_tokens(s, p, both) / page * page;
        if (shared > 0 && rows_missing(e, p, shared)) alike[n++] = p;
    }
    if (n > 0) hn_flush_pending(e, alike, n);
    for (int i = 0; i < n; i++) hn_session_publish(alike[i]);
}

bool hn_shared_rows_pending(const hunch_engine *e, const hunch_session *s) {
    const size_t page = (size_t)hn_cache_step(e->cache);
    if (!e->reuse || hn_prompt_shared_rows(s) < s->text.n_prompt) return false;
    for (int i = 0; i < e->parallel; i++) {
        const hunch_session *p = e->session[i];
        if (!p || p->stats.paused) continue;
        const size_t done = (size_t)hn_cache_committed(e->cache, i, 0), goal = hn_prefill_rows(p);
        if (done >= goal) continue;
        const size_t same = same_tokens(s, p, s->text.n - 1 < goal ? s->text.n - 1 : goal);
        if (same / page * page > done / page * page) return true;
    }
    return false;
}
