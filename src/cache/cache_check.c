/* SPDX-License-Identifier: Apache-2.0 */
/* cache_check.c - a consistency check of a cache, which tests call after each step. */
#include "base/mem.h"
#include "cache/cache_private.h"

/* A table has the pages of the committed rows, or of those that the next row sees, and no more than were planned; earlier
 * entries are empty. Counts its pages in `seen`. */
static bool table_valid(const hn_cache *c, const hn_seq *s, int g, hn_page_use *seen) {
    const int rows = s->committed[c->group[g].model_id], page_rows = c->group[g].page_rows;
    if (hn_pages_of(c, g, rows) > s->n_pages[g] || s->published[g] * page_rows > rows) return false;
    if (s->first[g] > hn_first_page(c, g, rows) || s->n_pages[g] > c->stride[g]) return false;
    if (!c->group[g].like && s->n_pages[g] - s->first[g] > hn_cache_pages_at_most(c, g, c->rows)) return false;
    for (int p = 0; s->next[g] && s->next[g][0] != HN_NO_PAGE && p < hn_pages_of(c, g, 1); p++)
        seen[s->next[g][p]].tables++;
    for (int p = 0; p < s->n_saved[g]; p++) seen[s->saved[g][p]].tables++;
    if (s->n_saved[g] > 0 && !s->saved_node[c->group[g].model_id]) return false;
    for (int p = 0; p < s->n_pages[g]; p++) {
        if ((s->pages[g][p] == HN_NO_PAGE) != (p < s->first[g])) return false;
        if (p >= s->first[g]) seen[s->pages[g][p]].tables++;
    }
    return true;
}

/* Checks the tables, and that indexed pages of a sequence are those of its path. */
static bool tables_valid(const hn_cache *c, hn_page_use *seen) {
    for (int i = 0; i < c->max_seqs; i++) {
        const hn_seq *s = &c->seq[i];
        for (int g = 0; g < c->n_groups; g++)
            if (!table_valid(c, s, g, seen)) return false;
        if (s->published[0] != (s->node ? s->node->depth + 1 : 0)) return false;
        for (const hn_prefix_node *b = s->node; b; b = b->parent)
            if (b->depth >= s->first[0] && b->page[0] != s->pages[0][b->depth]) return false;
        if (!s->live && s->n_pages[0]) return false;
    }
    return true;
}

/* Counts the pages that views hold. */
static bool views_valid(const hn_cache *c, hn_page_use *seen) {
    for (const hn_cache_view *v = c->views; v; v = v->next)
        for (int g = 0; g < c->n_groups; g++) {
            if (v->n_pages[g] > 0 && !v->pages[g]) return false;
            for (int p = 0; p < v->n_pages[g]; p++)
                if (v->pages[g][p] != HN_NO_PAGE) seen[v->pages[g][p]].tables++;
        }
    return true;
}

/* A node without the target's page is one of window groups, and has children, users or other pages. */
static bool index_valid(const hn_cache *c, hn_page_use *seen) {
    int users = 0;
    for (const hn_prefix_node *b = c->prefix.oldest; b; b = b->newer) {
        int pages = 0;
        for (int i = 0; i < c->prefix.n_slots; i++) {
            if (b->page[i] != HN_NO_PAGE) seen[b->page[i]].nodes++;
            pages += b->page[i] != HN_NO_PAGE;
        }
        if (b->page[0] == HN_NO_PAGE && !c->group[0].window) return false;
        if (!pages && !b->children && !b->users) return false;
        users += b->users;
    }
    for (int i = 0; i < c->max_seqs; i++) users -= c->seq[i].node != NULL;
    return users == 0 && hn_prefix_valid(&c->prefix);
}

/* Units count the pages in use that have bytes in them, and are warm then. */
static bool units_valid(const hn_cache *c) {
    int warm = 0, spare = 0;
    for (int i = 0; i < c->n_units; i++) {
        const size_t from = c->unit_bytes * (size_t)i, to = from + c->unit_bytes;
        int in_use = 0;
        for (size_t p = from / c->page_bytes; p < (size_t)c->n_pages && p * c->page_bytes < to; p++)
            in_use += c->use[p].tables > 0 || c->use[p].nodes > 0;
        if (in_use != c->unit[i].in_use || (in_use && !c->unit[i].warm)) return false;
        warm += c->unit[i].warm;
        spare += c->unit[i].warm && !in_use;
    }
    return warm == c->n_warm && spare == c->n_spare;
}

bool hn_cache_valid(const hn_cache *c) {
    hn_page_use *seen = hn_zalloc((size_t)c->n_pages, sizeof *seen);
    bool ok = seen && tables_valid(c, seen) && views_valid(c, seen) && index_valid(c, seen);
    int idle = 0, used = 0, listed = 0;
    for (int g = 0; ok && g < c->n_groups; g++) /* lists of idle pages, in order of time, each at its node */
        for (int32_t p = c->idle[g].oldest, older = HN_NO_PAGE; ok && p != HN_NO_PAGE; older = p, p = c->use[p].newer, listed++) {
            const hn_page_use *u = &c->use[p];
            ok = seen[p].nodes && !seen[p].tables && u->older == older && u->node->page[u->slot] == p && listed < c->n_pages;
            ok = ok && u->slot >= c->first_slot[g] && u->slot < c->first_slot[g + 1];
            ok = ok && (older == HN_NO_PAGE || c->use[older].idle_since <= u->idle_since);
        }
    for (int p = 0; ok && p < c->n_pages; p++) {
        ok = seen[p].tables == c->use[p].tables && seen[p].nodes == c->use[p].nodes;
        idle += seen[p].nodes && !seen[p].tables;
        used += seen[p].tables > 0;
    }
    for (int i = 1; ok && i < c->n_free; i++) ok = c->free[(i - 1) / 2] < c->free[i];
    for (int i = 0; ok && i < c->n_free; i++) /* marked, so that a page that is free twice is detected */
        ok = !seen[c->free[i]].nodes++ && !seen[c->free[i]].tables;
    ok = ok && units_valid(c);
    hn_free(seen);
    return ok && idle == c->n_idle && listed == idle && c->n_free + idle + used == c->n_pages;
}
