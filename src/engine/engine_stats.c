/* SPDX-License-Identifier: Apache-2.0 */
/* engine_stats.c - the numbers of an engine: what it is doing, and counters over all its sessions. */
#include "base/mem.h"
#include "engine/statistics.h"

hunch_status hn_stats_open(hunch_engine *e, hunch_error *err) {
    const size_t n = (size_t)e->n_drafters;
    if (n == 0) return HUNCH_OK;
    e->drafter_stats = hn_zalloc(n, sizeof *e->drafter_stats);
    return e->drafter_stats ? HUNCH_OK : hn_fail_memory(err, "statistics of drafters", n * sizeof *e->drafter_stats);
}

void hn_stats_drafted(hunch_session *s) {
    const hn_round_drafts *r = &s->round.drafts;
    hunch_engine *e = s->engine;
    s->stats.drafted += (uint64_t)r->n;
    s->stats.depth_drafted += (uint64_t)r->depth;
    e->stats.drafts += r->n > 0;
    e->stats.drafted += (uint64_t)r->n;
    for (int d = 0; d < e->n_drafters; d++) e->drafter_stats[d].draft_s += r->drafter[d].share_s;
    for (int k = 0; k < r->n; k++) {
        hunch_drafter_stats *d = &e->drafter_stats[r->draft[k].drafter];
        d->drafted++;
        d->drafted_per_position[r->draft[k].depth - 1]++;
    }
}

void hn_stats_accepted(hunch_session *s, int drafter, int depth) {
    hunch_engine *e = s->engine;
    s->stats.accepted++;
    s->stats.accepted_per_position[depth - 1]++;
    e->stats.accepted++;
    e->stats.accepted_per_position[depth - 1]++;
    e->drafter_stats[drafter].accepted++;
    e->drafter_stats[drafter].accepted_per_position[depth - 1]++;
}

void hunch_engine_get_stats(const hunch_engine *e, hunch_engine_stats *out) {
    if (!out) return;
    *out = (hunch_engine_stats){0};
    if (!e) return;
    *out = e->stats;
    for (int i = 0; i < e->parallel; i++) out->running += e->session[i] && hn_session_running(e->session[i]);
    for (const hunch_session *s = e->queue; s; s = s->next) out->waiting++;
    out->pages = hn_cache_all_pages(e->cache);
    out->pages_idle = hn_cache_idle_pages(e->cache);
    out->pages_free = hn_cache_free_pages(e->cache) - out->pages_idle;
    out->pages_used = out->pages - out->pages_idle - out->pages_free;
    out->page_bytes = hn_cache_page_bytes(e->cache);
    out->n_drafters = e->n_drafters;
    out->drafter = e->drafter_stats;
    for (int i = 0; i < e->n_drafters; i++) {
        const hn_drafter *d = &e->drafter[i];
        if (d->ops->pass_s) e->drafter_stats[i].pass_s = d->ops->pass_s(d);
    }
}
