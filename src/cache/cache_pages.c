/* SPDX-License-Identifier: Apache-2.0 */
/* cache_pages.c - the pages of the pool: their geometry, who uses each (cache_private.h), and the nodes of the index that they are in. The
 * lowest of the cache's files: it knows neither states nor which pages a text needs. */
#include <assert.h>

#include "cache/cache_private.h"
#include "ops/kv.h"

/* ---- geometry --------------------------------------------------------------------------------------------------- */

/* The most pages that a sequence of `rows` rows and a pass after them needs: for all these rows, or for those that a window
 * group keeps, wherever in a page its window begins. */
int64_t hn_cache_pages_at_most(const hn_cache *c, int group, int64_t rows) {
    const hn_cache_group *d = &c->group[group];
    if (d->kind == HN_CACHE_STATE) return 2 * hn_pages_of(c, group, 1); /* one that is read, one that is written */
    if (d->like) rows = d->page_rows - 1; /* those of a page that is copied */
    const int64_t page_rows = d->page_rows, all = (rows + d->tentative + page_rows - 1) / page_rows;
    const int64_t kept = (int64_t)d->window - 1 + d->back + d->tentative,
                  most = (kept + 2 * (page_rows - 1)) / page_rows;
    return d->window && most < all ? most : all;
}

size_t hn_cache_bytes(const hn_cache *c) {
    return c->page_bytes * (size_t)c->n_pages;
}

int hn_cache_all_pages(const hn_cache *c) {
    return c->n_pages;
}

int hn_cache_idle_pages(const hn_cache *c) {
    return c->n_idle;
}

int hn_cache_free_pages(const hn_cache *c) {
    return c->n_free + c->n_idle;
}

int hn_cache_own_pages(const hn_cache *c, int seq) {
    const hn_seq *s = &c->seq[seq];
    int pages = 0;
    for (int g = 0; g < c->n_groups; g++)
        for (int i = s->first[g]; i < s->n_pages[g]; i++) pages += c->use[s->pages[g][i]].tables == 1;
    return pages;
}

int hn_cache_pages_for(const hn_cache *c, int rows) {
    int64_t pages = 0;
    for (int g = 0; g < c->n_groups; g++) pages += hn_cache_pages_at_most(c, g, rows);
    return pages < c->n_pages ? (int)pages : c->n_pages;
}

hn_kv hn_cache_kv(const hn_cache *c, int group, int layer) {
    const hn_cache_group *g = &c->group[group];
    const size_t keys = (size_t)g->kv_heads * hn_kv_bytes(g->type, g->head_dim, g->page_rows);
    const size_t values = g->v_in_k ? 0 : (size_t)g->kv_heads * hn_kv_bytes(g->type, hn_group_v_dim(g), g->page_rows);
    const size_t at = (keys + values) * (size_t)layer;
    return (hn_kv){.type = g->type,
                   .pool = {c->pool, 0},
                   .page_bytes = c->page_bytes,
                   .k_off = at,
                   .v_off = at + keys,
                   .page_rows = g->page_rows,
                   .kv_heads = g->kv_heads,
                   .head_dim = g->head_dim,
                   .v_dim = hn_group_v_dim(g),
                   .v_in_k = g->v_in_k > 0};
}

hn_plain_rows hn_cache_rows(const hn_cache *c, int group) {
    assert(c->group[group].kind == HN_CACHE_ROWS);
    return (hn_plain_rows){{c->pool, 0}, c->page_bytes, c->group[group].row_bytes, c->group[group].page_rows};
}

hn_plain_units hn_cache_units(const hn_cache *c, int group, int layer) {
    const hn_cache_group *g = &c->group[group];
    const int first = g->units / g->layers * layer;
    return (hn_plain_units){g->unit_bytes, g->row_bytes, g->unit_bytes * (size_t)first, first, g->page_rows};
}

size_t hn_cache_page_bytes(const hn_cache *c) {
    return c->page_bytes;
}

hn_buf hn_cache_pool(const hn_cache *c) {
    return (hn_buf){c->pool, 0};
}

int hn_cache_page_units(const hn_cache *c, int group) {
    return (int)(c->page_bytes / c->group[group].unit_bytes);
}

int hn_cache_model_id(const hn_cache *c, int group) {
    return c->group[group].model_id;
}

hn_cache_kind hn_cache_kind_of(const hn_cache *c, int group) {
    return c->group[group].kind;
}

int hn_cache_table_stride(const hn_cache *c, int group) {
    return c->stride[group];
}

/* ---- uses ------------------------------------------------------------------------------------------------------- */

/* The page's first unit, and its last. */
static int unit_of(const hn_cache *c, int32_t page) { return (int)(c->page_bytes * (size_t)page / c->unit_bytes); }
static int last_unit_of(const hn_cache *c, int32_t page) { return (int)((c->page_bytes * ((size_t)page + 1) - 1) / c->unit_bytes); }

size_t hn_units_bytes(const hn_cache *c, int units) { return hn_least_size(c->unit_bytes * (size_t)units, hn_cache_bytes(c)); }

size_t hn_cache_touched(const hn_cache *c) {
    if (c->n_warm == 0) return 0; /* the cache of a rank that is told what to do has no units */
    const size_t missing = c->unit[c->n_units - 1].warm ? c->unit_bytes * (size_t)c->n_units - hn_cache_bytes(c) : 0;
    return c->unit_bytes * (size_t)c->n_warm - missing;
}

static void unit_change(hn_cache *c, int i, bool warm) {
    const size_t before = hn_cache_touched(c);
    c->unit[i].warm = warm;
    c->n_warm += warm ? 1 : -1;
    hn_account_add(c->backend->account, HN_ACCOUNT_PAGES, 0, (int64_t)hn_cache_touched(c) - (int64_t)before);
}

void hn_page_free(hn_cache *c, int32_t page) {
    assert(c->use[page].tables == 0 && c->use[page].nodes == 0);
    int at = c->n_free++;
    for (; at > 0 && c->free[(at - 1) / 2] > page; at = (at - 1) / 2) c->free[at] = c->free[(at - 1) / 2];
    c->free[at] = page;
    for (int i = unit_of(c, page); i <= last_unit_of(c, page); i++)
        if (--c->unit[i].in_use == 0) c->n_spare++;
}

int32_t hn_page_pop(hn_cache *c) {
    const int32_t page = c->free[0], last = c->free[--c->n_free];
    for (int at = 0, next = 1;; at = next, next = 2 * at + 1) {
        if (next + 1 < c->n_free && c->free[next + 1] < c->free[next]) next++;
        c->free[at] = next < c->n_free && c->free[next] < last ? c->free[next] : last;
        if (c->free[at] == last) break;
    }
    for (int i = unit_of(c, page); i <= last_unit_of(c, page); i++) {
        if (c->unit[i].in_use++ > 0) continue;
        if (c->unit[i].warm) c->n_spare--;
        else unit_change(c, i, true);
    }
    return page;
}

bool hn_next_page_warm(const hn_cache *c) {
    bool warm = c->n_free > 0;
    for (int i = warm ? unit_of(c, c->free[0]) : 0; warm && i <= last_unit_of(c, c->free[0]); i++) warm = c->unit[i].warm;
    return warm;
}

bool hn_pages_cool(hn_cache *c) {
    if (!c->backend->release) return false;
    bool moves = false;
    for (int g = 0; g < c->n_groups; g++) moves |= c->n_moves[g] > 0;
    if (moves) return false; /* which may read pages that are free by now: the next time will do */
    for (int i = c->n_units - 1; c->n_spare > c->margin; i--) {
        if (!c->unit[i].warm || c->unit[i].in_use > 0) continue;
        const size_t from = c->unit_bytes * (size_t)i;
        c->backend->release(c->backend, (hn_buf){c->pool, from}, hn_least_size(c->unit_bytes, hn_cache_bytes(c) - from));
        unit_change(c, i, false);
        c->n_spare--;
    }
    return true;
}

static int group_of_slot(const hn_cache *c, int slot) {
    int g = 0;
    while (slot >= c->first_slot[g + 1]) g++;
    return g;
}

static void unlink_idle(hn_cache *c, int32_t page) {
    hn_page_use *u = &c->use[page];
    hn_idle_pages *list = &c->idle[group_of_slot(c, u->slot)];
    *(u->newer != HN_NO_PAGE ? &c->use[u->newer].older : &list->newest) = u->older;
    *(u->older != HN_NO_PAGE ? &c->use[u->older].newer : &list->oldest) = u->newer;
    c->n_idle--;
}

/* In its place by time, which nearly always is that of the newest. */
static void link_idle(hn_cache *c, int32_t page) {
    hn_page_use *u = &c->use[page];
    hn_idle_pages *list = &c->idle[group_of_slot(c, u->slot)];
    int32_t older = list->newest, newer = HN_NO_PAGE;
    for (; older != HN_NO_PAGE && c->use[older].idle_since > u->idle_since; older = c->use[older].older) newer = older;
    u->newer = newer;
    u->older = older;
    *(newer != HN_NO_PAGE ? &c->use[newer].older : &list->newest) = page;
    *(older != HN_NO_PAGE ? &c->use[older].newer : &list->oldest) = page;
    c->n_idle++;
}

void hn_page_idle_since(hn_cache *c, int32_t page, uint64_t since) {
    hn_page_use *u = &c->use[page];
    const bool idle = u->tables == 0 && u->nodes > 0;
    if (idle) unlink_idle(c, page);
    u->idle_since = since;
    if (idle) link_idle(c, page);
}

void hn_page_enter(hn_cache *c, int32_t page, hn_prefix_node *b, int slot) {
    hn_page_use *u = &c->use[page];
    assert(u->tables > 0 && b->page[slot] == HN_NO_PAGE);
    b->page[slot] = page;
    if (u->nodes++ > 0) return;
    u->node = b;
    u->slot = slot;
}

void hn_page_take(hn_cache *c, int32_t page) {
    if (c->use[page].tables == 0) unlink_idle(c, page);
    c->use[page].tables++;
}

void hn_page_release(hn_cache *c, int32_t page) {
    assert(c->use[page].tables > 0);
    if (--c->use[page].tables) return;
    if (c->use[page].nodes) {
        c->use[page].idle_since = ++c->prefix.clock;
        link_idle(c, page);
    } else {
        hn_page_free(c, page);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

void hn_node_prune(hn_cache *c, hn_prefix_node *b) {
    while (b && !b->children && !b->users) {
        hn_prefix_node *parent = b->parent;
        for (int i = 0; i < c->prefix.n_slots; i++)
            if (b->page[i] != HN_NO_PAGE) return;
        hn_prefix_remove(&c->prefix, b);
        b = parent;
    }
}

void hn_cache_set_last_node(hn_cache *c, hn_seq *s, hn_prefix_node *b) {
    hn_prefix_node *old = s->node;
    if (b) hn_prefix_use(&c->prefix, b, 1);
    s->node = b;
    if (!old) return;
    hn_prefix_use(&c->prefix, old, -1);
    hn_node_prune(c, old);
}

/* The page left its node, and is in another one: of a text that differs after a page shorter than a node, which is rare. */
static void find_node(hn_cache *c, int32_t page) {
    for (hn_prefix_node *b = c->prefix.oldest; b; b = b->newer)
        for (int i = 0; i < c->prefix.n_slots; i++)
            if (b->page[i] == page) {
                c->use[page].node = b;
                c->use[page].slot = i;
                return;
            }
    assert(false && "a page in no node");
}

void hn_node_drop_page(hn_cache *c, hn_prefix_node *b, int slot) {
    const int32_t page = b->page[slot];
    b->page[slot] = HN_NO_PAGE;
    if (page == HN_NO_PAGE) return;
    for (int g = 0; g < c->n_groups; g++)
        if (c->group[g].kind == HN_CACHE_STATE && slot >= c->first_slot[g] && slot < c->first_slot[g + 1])
            c->state_pages[g]--;
    hn_page_use *u = &c->use[page];
    if (u->nodes == 1 && u->tables == 0) unlink_idle(c, page);
    if (--u->nodes > 0) {
        if (u->node == b) find_node(c, page);
        return;
    }
    u->node = NULL;
    if (u->tables == 0) hn_page_free(c, page);
}
