/* SPDX-License-Identifier: Apache-2.0 */
/* cache_view.c - views (cache.h): tables of readers that have no rows of their own. The pages of a table are those of a sequence at a
 * time, each of them taken once more. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "cache/cache_private.h"

hunch_status hn_cache_view_open(hn_cache *c, unsigned of, hn_cache_view **out, hunch_error *err) {
    hn_cache_view *v = *out = hn_zalloc(1, sizeof *v);
    hunch_status st = v ? HUNCH_OK : hn_fail_memory(err, "a view", sizeof *v);
    if (st) return st;
    v->next = c->views;
    c->views = v;
    for (int g = 0; !st && g < c->n_groups; g++) {
        if (!(of >> g & 1)) continue;
        const size_t n = (size_t)c->stride[g];
        v->pages[g] = hn_zalloc(n, sizeof *v->pages[g]);
        if (!v->pages[g]) st = hn_fail_memory(err, "a view", n * sizeof *v->pages[g]);
    }
    if (st) hn_cache_view_close(c, out);
    return st;
}

void hn_cache_view_close(hn_cache *c, hn_cache_view **vp) {
    hn_cache_view *v = *vp, **at = &c->views;
    *vp = NULL;
    if (!v) return;
    hn_cache_view_release(c, v);
    while (*at != v) at = &(*at)->next;
    *at = v->next;
    for (int g = 0; g < c->n_groups; g++) hn_free(v->pages[g]);
    hn_free(v);
}

void hn_cache_view_take(hn_cache *c, hn_cache_view *v, int seq, int rows) {
    const hn_seq *s = &c->seq[seq];
    hn_cache_view_release(c, v);
    v->rows = rows;
    for (int g = 0; g < c->n_groups; g++) {
        if (!v->pages[g]) continue;
        v->n_pages[g] = hn_pages_of(c, g, rows);
        assert(s->live && c->group[g].kind == HN_CACHE_KV && v->n_pages[g] <= s->n_pages[g]);
        memcpy(v->pages[g], s->pages[g], (size_t)v->n_pages[g] * sizeof *v->pages[g]);
        for (int p = s->first[g]; p < v->n_pages[g]; p++) hn_page_take(c, v->pages[g][p]);
    }
}

void hn_cache_view_release(hn_cache *c, hn_cache_view *v) {
    v->rows = 0;
    for (int g = 0; g < c->n_groups; g++) {
        for (int p = 0; p < v->n_pages[g]; p++)
            if (v->pages[g][p] != HN_NO_PAGE) hn_page_release(c, v->pages[g][p]);
        v->n_pages[g] = 0;
    }
}

int hn_cache_view_rows(const hn_cache_view *v) {
    return v->rows;
}

const int32_t *hn_cache_view_pages(const hn_cache_view *v, int group, int *n_pages) {
    *n_pages = v->n_pages[group];
    return v->pages[group];
}
