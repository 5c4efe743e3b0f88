/* SPDX-License-Identifier: Apache-2.0 */
/* shared_rows.c - rows that texts share through the prefix index: when a text's own rows are entered, and who waits for another's. */
#include <assert.h>

#include "base/mem.h"
#include "engine/drafting.h"
#include "engine/prefixes.h"
#include "engine/scheduling.h"

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

/* From `n` on: the tokens that both texts begin with, if they may share their rows. */
static size_t same_tokens(const hunch_session *a, const hunch_session *b, size_t n, size_t most) {
    if (a->request.salt != b->request.salt) return 0;
    while (n < most && a->text.token[n] == b->text.token[n]) n++;
    return n;
}

/* What a session that waits has in common with the one at a place, as far as it was looked for. */
typedef struct hn_same_tokens {
    uint64_t opened; /* of that session; 0: none was looked at */
    size_t n;
    bool differs; /* behind these */
} hn_same_tokens;

/* The same for a session that waits, which asks again every round: texts of both only grow, so it goes on where it stopped. */
static size_t same_as_before(hunch_session *s, const hunch_session *p, size_t most) {
    if (!s->same) s->same = hn_zalloc((size_t)s->engine->parallel, sizeof *s->same);
    if (!s->same) return same_tokens(s, p, 0, most);
    hn_same_tokens *pair = &s->same[p->id];
    if (pair->opened != p->opened) *pair = (hn_same_tokens){.opened = p->opened};
    if (!pair->differs && pair->n < most) {
        pair->n = same_tokens(s, p, pair->n, most);
        pair->differs = pair->n < most;
    }
    return pair->n < most ? pair->n : most;
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
        const size_t both = s->text.n < p->text.n ? s->text.n : p->text.n, shared = same_tokens(s, p, 0, both) / page * page;
        if (shared > 0 && rows_missing(e, p, shared)) alike[n++] = p;
    }
    if (n > 0) hn_flush_pending(e, alike, n);
    for (int i = 0; i < n; i++) hn_session_publish(alike[i]);
}

bool hn_shared_rows_pending(const hunch_engine *e, hunch_session *s) {
    const size_t page = (size_t)hn_cache_step(e->cache);
    if (!e->reuse || hn_prompt_shared_rows(s) < s->text.n_prompt) return false;
    for (int i = 0; i < e->parallel; i++) {
        const hunch_session *p = e->session[i];
        if (!p || p->stats.paused) continue;
        const size_t done = (size_t)hn_cache_committed(e->cache, i, 0), goal = hn_prefill_rows(p);
        if (done >= goal) continue;
        const size_t same = same_as_before(s, p, s->text.n - 1 < goal ? s->text.n - 1 : goal);
        if (same / page * page > done / page * page) return true;
    }
    return false;
}
