/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the page pool and the sequences' page tables. The ops write rows (rope_store) and move them (kv_move); this file
 * only assigns their places, and collects what is to be moved. Pages in more than one place: cache_index.c, cache_share.c. */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "cache/cache_private.h"
#include "ops/kv.h"

enum { HUGE_PAGE = 2 << 20 };

enum { MIN_PAGE_ROWS = 16 }; /* required by the ops (hn_kv) */

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static hunch_status check_heads(const hn_cache_group *d, hunch_error *err) {
    const int multiple = hn_kv_multiple(d->type);
    const int odd = d->head_dim % multiple ? d->head_dim : hn_group_v_dim(d);
    if (odd % multiple == 0) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED,
                   "a cache of %s takes heads of a multiple of %d, not of %d: expected another --kv",
                   hn_dtype_name(d->type), multiple, odd);
}

/* Sets the bytes of a row, or of a whole state; *least: minimum bytes of a page, for group 0 by its page_rows. */
static hunch_status plan_row(hn_cache_group *d, bool first, size_t *least, hunch_error *err) {
    size_t rows = d->kind == HN_CACHE_KV ? MIN_PAGE_ROWS : 1, row = 0;
    if (first) rows = (size_t)d->page_rows;
    hunch_status st = d->kind == HN_CACHE_KV ? check_heads(d, err) : HUNCH_OK;
    if (st) return st;
    if (d->kind == HN_CACHE_KV)
        row = (size_t)d->layers * (size_t)d->kv_heads *
              (hn_kv_bytes(d->type, d->head_dim, 1) + (d->v_in_k ? 0 : hn_kv_bytes(d->type, hn_group_v_dim(d), 1)));
    if (d->kind != HN_CACHE_KV && !hn_mul_size(d->unit_bytes, (size_t)d->units, &row))
        return hn_fail_memory(err, d->name, SIZE_MAX);
    d->row_bytes = row;
    if (d->kind == HN_CACHE_STATE) row = d->unit_bytes;
    return hn_mul_size(row, rows, least) && *least <= SIZE_MAX / 2 ? HUNCH_OK
                                                                   : hn_fail_memory(err, "cache page", SIZE_MAX);
}

/* Whether pages of the one group may be in tables of the other. */
static bool is_like(const hn_cache_group *d, const hn_cache_group *of) {
    return d->kind == HN_CACHE_KV && of->kind == HN_CACHE_KV && d->layers == of->layers && d->kv_heads == of->kv_heads &&
           d->head_dim == of->head_dim && d->type == of->type && d->v_in_k == of->v_in_k && d->v_dim == of->v_dim &&
           d->page_rows == of->page_rows && of->model_id < d->model_id && !of->like;
}

/* A page has the size that the first group requests, and room for at least MIN_PAGE_ROWS of every other group with K and V, one
 * row of a group without, one unit of a state. */
static hunch_status plan_pages(hn_cache *c, const hn_cache_group *groups, hunch_error *err) {
    for (int g = 0; g < c->n_groups; g++) {
        hn_cache_group *d = &c->group[g];
        *d = groups[g];
        assert(d->model_id >= 0 && d->model_id < HN_MAX_MODELS && (g ? d->model_id >= groups[g - 1].model_id : d->model_id == 0));
        assert(d->window >= 0 && d->back >= 0);
        assert(d->model_id || d->window || g == 0 || !groups[g - 1].window || d->kind == HN_CACHE_STATE);
        assert(g || d->kind != HN_CACHE_STATE); /* a page of the first group is a node of the index */
        if (d->tentative == 0) d->tentative = HN_MAX_ROWS;
        c->windows |= d->window > 0;
        c->states[d->model_id] |= d->kind == HN_CACHE_STATE;
        if (g == 0 &&
            (d->page_rows < MIN_PAGE_ROWS || d->page_rows > HN_KEY_SPAN || (d->page_rows & (d->page_rows - 1))))
            return hn_fail(err, HUNCH_USAGE, "page rows %d: expected a power of two from %d to %d", d->page_rows,
                           MIN_PAGE_ROWS, HN_KEY_SPAN);
        size_t bytes = 0;
        hunch_status st = plan_row(d, g == 0, &bytes, err);
        if (st) return st;
        if (bytes > c->page_bytes) c->page_bytes = bytes;
    }
    c->page_bytes = (c->page_bytes + 4095) & ~(size_t)4095;
    int step = c->group[0].page_rows;
    for (int g = 1; g < c->n_groups; g++) { /* the largest power of two that fits */
        hn_cache_group *d = &c->group[g];
        d->page_rows = d->recompute ? step : HN_KEY_SPAN; /* a larger page would restrict the target's restores to its ends */
        if (d->kind == HN_CACHE_STATE) d->page_rows = step; /* unused by a state */
        if (d->like) d->page_rows = c->group[d->like - 1].page_rows;
        while (d->kind != HN_CACHE_STATE && d->row_bytes * (size_t)d->page_rows > c->page_bytes) d->page_rows /= 2;
        assert(!d->like || is_like(d, &c->group[d->like - 1]));
        if (d->model_id == 0 && d->page_rows > step) step = d->page_rows;
    }
    return HUNCH_OK;
}

/* Pages of a group for the index: those of `rows` rows; for a window group those of the windows of as many whole contexts. */
static int64_t pages_beside(const hn_cache *c, int group, int64_t rows) {
    if (c->group[group].kind == HN_CACHE_STATE || c->group[group].like) return 0; /* planned apart, and lent */
    const int64_t all = (rows + c->group[group].page_rows - 1) / c->group[group].page_rows;
    const int64_t windows = (rows + c->rows - 1) / c->rows * hn_cache_pages_at_most(c, group, c->rows);
    return c->group[group].window && windows < all ? windows : all;
}

/* Pages of a group: for pool_rows rows and the tentative ones of every sequence, wherever the sequences end in their pages
 * (rows beyond those of all sequences are for the index); and one for the old page while its rows are copied after a rewind
 * into it. */
static hunch_status plan_counts(hn_cache *c, int64_t pool_rows, size_t *bytes, hunch_error *err) {
    const int64_t seqs = c->max_seqs, all = seqs * c->rows;
    const int64_t least = pool_rows > c->rows ? pool_rows : c->rows, rows = pool_rows ? least : all;
    int64_t pages = 0;
    for (int g = 0; g < c->n_groups; g++) {
        const int64_t page_rows = c->group[g].page_rows, tentative = c->group[g].tentative;
        const int64_t stride = hn_pages_of(c, g, c->rows + c->group[g].tentative);
        const int64_t most = seqs * hn_cache_pages_at_most(c, g, c->rows);
        const bool state = c->group[g].kind == HN_CACHE_STATE;
        const int64_t pooled =
            state || c->group[g].like ? most : ((rows < all ? rows : all) + seqs * (tentative + page_rows - 1)) / page_rows;
        c->stride[g] = (int)stride;
        if (state) pages += (int64_t)c->group[g].kept * hn_pages_of(c, g, 1);
        pages += (pooled < most ? pooled : most) + pages_beside(c, g, rows > all ? rows - all : 0) + 1;
    }
    if (pages > INT32_MAX)
        return hn_fail(err, HUNCH_NO_MEMORY, "%lld pages, expected at most %d", (long long)pages, INT32_MAX);
    c->n_pages = (int)pages;
    return hn_mul_size(c->page_bytes, (size_t)pages, bytes) ? HUNCH_OK : hn_fail_memory(err, "cache pages", SIZE_MAX);
}

static hunch_status with_advice(const hn_cache *c, hunch_status st, hunch_error *err) {
    if (st)
        hn_error_prefix(err, "cache of %d x %d rows (a smaller --context or --parallel needs less)", c->max_seqs,
                        c->rows);
    return st;
}

/* Without pool_rows: pages for all sequences, or for all but one if memory is short, or for as many rows as four fifths of it hold, at
 * least one whole sequence: several rarely all fill their contexts, and the scheduler does with fewer. The available memory is
 * checked before it is reserved, as for the weights: pages are touched only as texts grow, and a system without memory then
 * kills the process without an error. */
static hunch_status plan_pool(hn_cache *c, int pool_rows, size_t *bytes, hunch_error *err) {
    const size_t left = hn_backend_memory_left(c->backend);
    int64_t rows = (int64_t)(c->max_seqs - 1) * c->rows;
    hunch_status st = plan_counts(c, pool_rows, bytes, err);
    if (!st && !pool_rows && c->max_seqs > 1 && *bytes > left) st = plan_counts(c, rows, bytes, err);
    const size_t most = *bytes > left ? left / 5 * 4 : left;
    while (!st && !pool_rows && *bytes > most && rows > c->rows) {
        rows = rows / 10 * 9 > c->rows ? rows / 10 * 9 : c->rows;
        st = plan_counts(c, rows, bytes, err);
    }
    if (!st && *bytes > left)
        st = hn_fail(err, HUNCH_NO_MEMORY, "its pages need %zu bytes of memory, %zu are available", *bytes, left);
    return with_advice(c, st, err);
}

/* ---- open and close -------------------------------------------------------------------------------------------- */

/* n 0: none is needed. */
static hunch_status create_table(int32_t **to, size_t n, hunch_error *err) {
    *to = n > 0 ? hn_zalloc(n, sizeof **to) : NULL;
    return *to || n == 0 ? HUNCH_OK : hn_fail_memory(err, "page table", n * sizeof **to);
}

hunch_status hn_cache_plan_row(hn_cache_group *d, hunch_error *err) {
    size_t least;
    return plan_row(d, false, &least, err);
}

/* n_moves, then the moves of each group. */
static size_t moves_bytes(const hn_cache *c) {
    return sizeof c->n_moves + sizeof *c->move * (size_t)c->n_groups * HN_CACHE_MOVES;
}

hunch_status hn_cache_open_moves(hn_cache *c, hunch_error *err) {
    c->move = hn_zalloc((size_t)c->n_groups * HN_CACHE_MOVES, sizeof *c->move);
    if (!c->move) return hn_fail_memory(err, "rows to move", moves_bytes(c));
    return c->backend->mem_create(c->backend, HN_MEM_WORK, moves_bytes(c), &c->moves, err);
}

static hunch_status create_tables(hn_cache *c, hunch_error *err) {
    c->seq = hn_zalloc((size_t)c->max_seqs, sizeof *c->seq);
    c->free = hn_zalloc((size_t)c->n_pages, sizeof *c->free);
    c->use = hn_zalloc((size_t)c->n_pages, sizeof *c->use);
    c->unit_bytes = HUGE_PAGE;
    c->n_units = (int)((hn_cache_bytes(c) + c->unit_bytes - 1) / c->unit_bytes);
    c->unit = hn_zalloc((size_t)c->n_units, sizeof *c->unit);
    c->keep_idle = c->n_pages;
    c->margin = c->n_units / 16 + 2;
    c->path = hn_zalloc((size_t)c->stride[0], sizeof *c->path);
    if (!c->seq || !c->free || !c->use || !c->unit || !c->path)
        return hn_fail_memory(err, "cache tables", (size_t)c->n_pages * (sizeof *c->free + sizeof *c->use));
    hunch_status st = HUNCH_OK;
    for (int g = 0; g < c->n_groups && !st; g++) {
        const size_t stride = (size_t)c->stride[g], next = c->group[g].kind == HN_CACHE_STATE ? stride : 0;
        for (int s = 0; s < c->max_seqs && !st; s++) {
            st = create_table(&c->seq[s].pages[g], stride, err);
            if (!st) st = create_table(&c->seq[s].next[g], next, err);
            if (!st) st = create_table(&c->seq[s].saved[g], (size_t)hn_saved_pages(c, g), err);
            if (!st && next > 0) c->seq[s].next[g][0] = HN_NO_PAGE;
        }
    }
    if (st) return st;
    for (int p = 0; p < c->n_pages; p++) c->free[p] = p;
    c->n_free = c->n_pages;
    for (int g = 0; g < c->n_groups; g++) c->idle[g] = (hn_idle_pages){HN_NO_PAGE, HN_NO_PAGE};
    return hn_cache_open_moves(c, err);
}

static hunch_status create_index(hn_cache *c, hunch_error *err) {
    int slots = 0;
    for (int g = 0; g < c->n_groups; g++) {
        const int in_block = c->group[0].page_rows / c->group[g].page_rows;
        c->first_slot[g] = slots;
        if (c->group[g].kind == HN_CACHE_STATE)
            slots += hn_pages_of(c, g, 1);
        else
            slots += in_block > 1 ? in_block : 1;
    }
    c->first_slot[c->n_groups] = slots;
    const int nodes = c->n_pages / c->n_groups; /* with window groups alone a text has more nodes than pages */
    return hn_prefix_init(&c->prefix, c->group[0].page_rows, slots, nodes > c->stride[0] ? nodes : c->stride[0], err);
}

hunch_status hn_cache_open(hn_cache **out, hn_backend *b, const hn_cache_group *groups, int n_groups, int max_seqs,
                           int rows, int pool_rows, hunch_error *err) {
    *out = NULL;
    assert(n_groups >= 1 && n_groups <= HN_MAX_GROUPS && max_seqs >= 1 && rows >= 1 && pool_rows >= 0);
    hn_cache *c = hn_zalloc(1, sizeof *c);
    if (!c) return hn_fail_memory(err, "cache", sizeof *c);
    c->backend = b;
    c->n_groups = n_groups;
    c->max_seqs = max_seqs;
    c->rows = rows;
    c->moves_batch = 1;
    hunch_status st = plan_pages(c, groups, err);
    size_t bytes = 0;
    if (!st) st = plan_pool(c, pool_rows, &bytes, err);
    if (!st) st = create_tables(c, err);
    if (!st) st = create_index(c, err);
    if (!st) st = with_advice(c, b->mem_create(b, HN_MEM_PAGES, bytes, &c->pool, err), err);
    if (st) {
        hn_cache_close(&c);
        return st;
    }
    hn_account_add(b->account, HN_ACCOUNT_PAGES, (int64_t)bytes, 0);
    st = hn_cache_tell_open(c, err);
    if (st) {
        hn_cache_close(&c);
        return st;
    }
    *out = c;
    return HUNCH_OK;
}

void hn_cache_close(hn_cache **cp) {
    hn_cache *c = *cp;
    *cp = NULL;
    if (!c) return;
    hn_cache_tell_end(c);
    for (int s = 0; c->seq && s < c->max_seqs; s++)
        for (int g = 0; g < c->n_groups; g++) {
            hn_free(c->seq[s].pages[g]);
            hn_free(c->seq[s].next[g]);
            hn_free(c->seq[s].saved[g]);
        }
    if (c->pool) hn_account_add(c->backend->account, HN_ACCOUNT_PAGES, -(int64_t)hn_cache_bytes(c), -(int64_t)hn_cache_touched(c));
    c->backend->mem_free(c->backend, c->pool);
    c->backend->mem_free(c->backend, c->moves);
    hn_prefix_fini(&c->prefix);
    hn_free(c->path);
    hn_free(c->move);
    hn_free(c->use);
    hn_free(c->unit);
    hn_free(c->free);
    hn_free(c->seq);
    hn_free(c->told);
    hn_free(c);
}

/* ---- pages ----------------------------------------------------------------------------------------------------- */

static int32_t new_page(hn_cache *c) {
    while (c->n_free == 0 || (c->n_idle > c->keep_idle && !hn_next_page_warm(c))) hn_cache_evict(c);
    const int32_t page = hn_page_pop(c);
    /* groups are moved one after the other: rows of its last user are not moved behind those of the next */
    if (c->use[page].moves == c->moves_batch) hn_cache_flush(c);
    c->use[page].tables = 1;
    return page;
}

/* Releases the pages of a group from number `keep` on. */
static void drop_pages(hn_cache *c, hn_seq *s, int group, int keep) {
    while (s->n_pages[group] > keep) {
        const int32_t page = s->pages[group][--s->n_pages[group]];
        if (page != HN_NO_PAGE) hn_page_release(c, page);
    }
    if (s->first[group] > keep) s->first[group] = keep;
}

/* Releases the pages reserved for the next state. */
static void drop_next(hn_cache *c, hn_seq *s, int group) {
    if (!s->next[group] || s->next[group][0] == HN_NO_PAGE) return;
    for (int i = 0; i < hn_pages_of(c, group, 1); i++) hn_page_release(c, s->next[group][i]);
    s->next[group][0] = HN_NO_PAGE;
}

/* A drafter commits the text's rows while it drafts, and may reserve more before these rows are published: their pages stay until then, as
 * far as the group's plan allows. A text that is not in the index does not wait. */
static int first_waiting(const hn_cache *c, const hn_seq *s, int group, int first, int tentative) {
    const hn_cache_group *d = &c->group[group];
    const int planned = hn_pages_of(c, group, s->committed[d->model_id] + tentative) - (int)hn_cache_pages_at_most(c, group, c->rows);
    const int waiting = s->published[group] > planned ? s->published[group] : planned;
    return d->model_id > 0 && d->window && s->published[0] > 0 && waiting < first ? waiting : first;
}

/* Releases the pages that no row after the committed ones sees, nor any after a rewind by up to `back` rows of the group. */
static void drop_unseen(hn_cache *c, hn_seq *s, int group, int tentative) {
    const int first = first_waiting(c, s, group, hn_first_page(c, group, hn_first_row_needed(c, s, group)), tentative);
    for (int *i = &s->first[group]; *i < first; ++*i) {
        hn_page_release(c, s->pages[group][*i]);
        s->pages[group][*i] = HN_NO_PAGE;
    }
}

/* ---- moving rows ----------------------------------------------------------------------------------------------- */

bool hn_cache_moves_ready(hn_cache *c) {
    bool any = false;
    const hn_buf at = {c ? c->moves : NULL, 0};
    for (int g = 0; c && g < c->n_groups; g++) any |= c->n_moves[g] > 0;
    if (!any) return false;
    hn_backend *b = c->backend;
    b->write(b, at, c->n_moves, sizeof c->n_moves);
    for (int g = 0; g < c->n_groups; g++) {
        const size_t first = (size_t)g * HN_CACHE_MOVES;
        if (c->n_moves[g] > 0)
            b->write(b, hn_at(at, sizeof c->n_moves + sizeof *c->move * first), c->move + first, sizeof *c->move * (size_t)c->n_moves[g]);
        c->ready[g] = c->n_moves[g];
        c->n_moves[g] = 0;
    }
    c->moves_batch++;
    return true;
}

void hn_cache_move(const hn_exec *ex, const hn_cache *c) {
    const hn_buf at = {c->moves, 0};
    for (int g = 0; g < c->n_groups; g++) {
        const hn_count n = {hn_at(at, sizeof *c->n_moves * (size_t)g), c->ready[g]};
        const hn_buf moves = hn_at(at, sizeof c->n_moves + sizeof *c->move * (size_t)g * HN_CACHE_MOVES);
        if (n.most == 0) continue;
        if (c->group[g].kind == HN_CACHE_ROWS) {
            const hn_plain_rows rows = hn_cache_rows(c, g);
            ex->ops->rows_move(ex, &rows, n, moves);
            continue;
        }
        for (int l = 0; l < c->group[g].layers; l++) {
            const hn_kv kv = hn_cache_kv(c, g, l);
            ex->ops->kv_move(ex, &kv, n, moves);
        }
    }
}

static void move_alone(const hn_exec *ex, const void *arg) {
    hn_cache_move(ex, arg);
}

void hn_cache_flush(hn_cache *c) {
    if (!hn_cache_moves_ready(c)) return;
    hn_cache_tell_moves(c);
    hn_cache_flush_taken(c);
}

void hn_cache_flush_taken(hn_cache *c) { c->backend->submit(c->backend, move_alone, c); }

/* Row `from` of a page will be copied to row `to` of another one, or of the same. */
static void add_move(hn_cache *c, int group, int32_t from_page, int from, int32_t to_page, int to) {
    if (c->n_moves[group] == HN_CACHE_MOVES) hn_cache_flush(c);
    c->use[from_page].moves = c->use[to_page].moves = c->moves_batch;
    c->move[group * HN_CACHE_MOVES + c->n_moves[group]++] = (hn_row_move){from_page, from, to_page, to};
}

/* The page of row `rows`, if it has earlier rows and is shared, so that it must be copied; else -1. */
static int page_to_copy(const hn_cache *c, const hn_seq *s, int group, int rows) {
    if (c->group[group].kind == HN_CACHE_STATE || rows % c->group[group].page_rows == 0) return -1;
    const int i = rows / c->group[group].page_rows;
    const hn_page_use *u = &c->use[s->pages[group][i]];
    return u->tables > 1 || u->nodes ? i : -1;
}

/* Replaces page i of the sequence by a page of its own with its first n rows. */
static void copy_page(hn_cache *c, hn_seq *s, int group, int i, int n) {
    const int32_t old = s->pages[group][i], own = new_page(c);
    for (int r = 0; r < n; r++) add_move(c, group, old, r, own, r);
    s->pages[group][i] = own;
    hn_page_release(c, old);
}

/* Rows of the page with row `committed` to copy: those before it; with `recompute` > 1 also those that the model recomputes. */
static int rows_to_copy(const hn_cache *c, int group, int committed) {
    const int page_rows = c->group[group].page_rows, before = committed % page_rows;
    const int more = c->group[group].recompute > 1 ? c->group[group].recompute : 0;
    return before + more < page_rows ? before + more : page_rows;
}

/* ---- sequences ------------------------------------------------------------------------------------------------- */

/* Idle pages beyond the limit go, and memory of free ones beyond the margin goes back, by units: those that idle pages have a part of
 * cannot, so further idle pages go until what no text that runs has is within limit and margin, or half of the limit is left; or until that
 * gives nothing back, since texts that run have a part of them. */
static void keep_few(hn_cache *c) {
    while (c->n_idle > c->keep_idle) hn_cache_evict(c);
    for (int warm = c->n_units + 1; hn_pages_cool(c) && c->n_warm < warm;) {
        warm = c->n_warm;
        const size_t may = c->page_bytes * (size_t)(c->n_pages - c->n_free - c->n_idle + c->keep_idle) + hn_units_bytes(c, c->margin);
        const int more = c->n_idle - c->keep_idle / 2;
        if (hn_cache_touched(c) <= may || more <= 0) return;
        const size_t over = (hn_cache_touched(c) - may) / c->page_bytes;
        for (int n = (int)hn_least_size(over / 2 + 1, (size_t)more); n > 0 && c->n_idle > 0; n--) hn_cache_evict(c);
    }
}

void hn_cache_seq_begin(hn_cache *c, int seq) {
    assert(!c->seq[seq].live);
    c->seq[seq].live = true;
    c->seq[seq].salt = 0;
}

void hn_cache_seq_end(hn_cache *c, int seq) {
    hn_seq *s = &c->seq[seq];
    hn_prefix_touch(&c->prefix, s->node);
    for (int model_id = 0; model_id < HN_MAX_MODELS; model_id++)
        if (s->saved_node[model_id]) hn_saved_release(c, s, model_id, ++c->prefix.clock);
    s->live = false;
    memset(s->committed, 0, sizeof s->committed);
    memset(s->absorbed, 0, sizeof s->absorbed);
    memset(s->published, 0, sizeof s->published);
    for (int g = 0; g < c->n_groups; g++) {
        drop_pages(c, s, g, 0);
        drop_next(c, s, g);
    }
    hn_cache_set_last_node(c, s, NULL);
    keep_few(c);
}

void hn_cache_keep(hn_cache *c, size_t bytes) {
    const size_t pages = bytes / c->page_bytes;
    c->keep_idle = pages < (size_t)c->n_pages ? (int)pages : c->n_pages;
}

int hn_cache_committed(const hn_cache *c, int seq, int model_id) {
    return c->seq[seq].committed[model_id];
}

const int32_t *hn_cache_pages(const hn_cache *c, int seq, int group, int *n_pages) {
    *n_pages = c->seq[seq].n_pages[group];
    return c->seq[seq].pages[group];
}

/* True if a pass needs new pages to write the state to. */
static bool next_missing(const hn_cache *c, const hn_seq *s, int group, int tentative) {
    return c->group[group].kind == HN_CACHE_STATE && tentative > 0 && s->next[group][0] == HN_NO_PAGE &&
           hn_state_shared(c, s, group);
}

hunch_status hn_cache_reserve(hn_cache *c, int seq, int model_id, int tentative, hunch_error *err) {
    hn_seq *s = &c->seq[seq];
    const int committed = s->committed[model_id];
    int want[HN_MAX_GROUPS], copy[HN_MAX_GROUPS], missing = 0;
    assert(s->live && tentative >= 0);
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].model_id != model_id) continue;
        assert(tentative <= c->group[g].tentative || !c->group[g].window); /* else rows of a prompt, which the table must have room for */
        drop_unseen(c, s, g, tentative);
        want[g] = hn_pages_of(c, g, committed + tentative);
        copy[g] = tentative ? page_to_copy(c, s, g, committed) : -1;
        if (want[g] > c->stride[g])
            return hn_fail(err, HUNCH_USAGE, "sequence of %d rows: the cache was planned for %d",
                           committed + tentative, c->stride[g] * c->group[g].page_rows);
        if (want[g] > s->n_pages[g]) missing += want[g] - s->n_pages[g];
        missing += copy[g] >= 0;
        if (next_missing(c, s, g, tentative)) missing += want[g];
    }
    if (missing > hn_cache_free_pages(c))
        return hn_fail(err, HUNCH_NO_MEMORY, "cache: %d pages wanted, %d of %d free", missing, hn_cache_free_pages(c),
                       c->n_pages);
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].model_id != model_id) continue;
        if (copy[g] >= 0) copy_page(c, s, g, copy[g], rows_to_copy(c, g, committed));
        for (int i = 0, n = next_missing(c, s, g, tentative) ? want[g] : 0; i < n; i++) s->next[g][i] = new_page(c);
        while (s->n_pages[g] < want[g]) s->pages[g][s->n_pages[g]++] = new_page(c);
    }
    return HUNCH_OK;
}

bool hn_cache_lend(hn_cache *c, int seq, int model_id, const int32_t *span, int n) {
    hn_seq *s = &c->seq[seq];
    bool seen = true;
    int rows = 0;
    assert(s->live && n >= 0);
    for (int g = 0; g < c->n_groups; g++) {
        const hn_cache_group *d = &c->group[g];
        if (d->model_id != model_id) continue;
        assert(d->like);
        drop_pages(c, s, g, 0);
        const int of = d->like - 1, committed = s->committed[c->group[of].model_id], pages = HN_KEY_SPAN / d->page_rows;
        rows = 0;
        for (int k = 0; k < n; k++) {
            const int from = span[k] * HN_KEY_SPAN, left = committed - from;
            assert(left > 0 && (left >= HN_KEY_SPAN || k == n - 1) && (k == 0 || span[k] > span[k - 1]));
            rows += left < HN_KEY_SPAN ? left : HN_KEY_SPAN;
            for (int p = span[k] * pages; s->n_pages[g] < hn_pages_of(c, g, rows); p++) {
                const int32_t page = s->pages[of][p];
                if (page != HN_NO_PAGE) hn_page_take(c, page);
                s->first[g] += page == HN_NO_PAGE; /* windows release their first pages */
                s->pages[g][s->n_pages[g]++] = page;
            }
        }
        seen &= s->first[g] <= hn_first_page(c, g, rows);
    }
    s->committed[model_id] = rows;
    if (!seen) hn_cache_lend(c, seq, model_id, NULL, 0);
    return seen;
}

bool hn_cache_reserved(const hn_cache *c, int seq, int model_id, int tentative) {
    const hn_seq *s = &c->seq[seq];
    const int committed = s->committed[model_id];
    for (int g = 0; g < c->n_groups; g++) {
        if (c->group[g].model_id != model_id) continue;
        if (s->n_pages[g] < hn_pages_of(c, g, committed + tentative) || next_missing(c, s, g, tentative)) return false;
        if (tentative > 0 && page_to_copy(c, s, g, committed) >= 0) return false;
    }
    return true;
}

/* In all groups of a model that keep rows. */
static void move_row(hn_cache *c, const hn_seq *s, int model_id, int from, int to) {
    for (int g = 0; g < c->n_groups; g++) {
        const hn_cache_group *d = &c->group[g];
        if (d->model_id != model_id || d->kind == HN_CACHE_STATE) continue;
        add_move(c, g, s->pages[g][from / d->page_rows], from % d->page_rows, s->pages[g][to / d->page_rows], to % d->page_rows);
    }
}

void hn_cache_commit(hn_cache *c, int seq, int model_id, const int16_t *index, int n) {
    hn_seq *s = &c->seq[seq];
    const int first = s->committed[model_id];
    assert(s->live && n >= 0 && (!index || n <= HN_MAX_ROWS));
    for (int i = 0; index && i < n; i++) { /* rows already in place stay */
        assert(index[i] >= i && (i == 0 || index[i] > index[i - 1]));
        if (index[i] != i) move_row(c, s, model_id, first + index[i], first + i);
    }
    s->committed[model_id] += n;
    assert(s->absorbed[model_id] <= s->committed[model_id]);
}

int hn_cache_absorbed(const hn_cache *c, int seq, int model_id) {
    return c->seq[seq].absorbed[model_id];
}

void hn_cache_absorb(hn_cache *c, int seq, int model_id, int rows) {
    hn_seq *s = &c->seq[seq];
    assert(c->states[model_id] && rows >= s->absorbed[model_id]);
    for (int g = 0; g < c->n_groups && rows > s->absorbed[model_id]; g++) {
        if (c->group[g].model_id != model_id || !s->next[g] || s->next[g][0] == HN_NO_PAGE) continue;
        for (int i = 0; i < s->n_pages[g]; i++) {
            hn_page_release(c, s->pages[g][i]);
            s->pages[g][i] = s->next[g][i];
        }
        s->next[g][0] = HN_NO_PAGE;
    }
    s->absorbed[model_id] = rows;
}

const int32_t *hn_cache_next_state(const hn_cache *c, int seq, int group) {
    const hn_seq *s = &c->seq[seq];
    return s->next[group][0] == HN_NO_PAGE ? s->pages[group] : s->next[group];
}

/* True if a window group released a page that the row after `rows` rows needs, or a state has more rows. */
static bool rows_released(const hn_cache *c, const hn_seq *s, int model_id, int rows) {
    if (rows < s->absorbed[model_id]) return true;
    for (int g = 0; g < c->n_groups; g++)
        if (c->group[g].model_id == model_id && hn_first_page(c, g, rows) < s->first[g]) return true;
    return false;
}

int hn_cache_rewind(hn_cache *c, int seq, int model_id, int rows) {
    hn_seq *s = &c->seq[seq];
    assert(rows >= 0 && rows <= s->committed[model_id]);
    if (rows_released(c, s, model_id, rows)) rows = hn_cache_reclaim(c, s, model_id, rows);
    s->committed[model_id] = rows;
    assert(s->absorbed[model_id] <= rows);
    hn_cache_unpublish(c, s, model_id, rows);
    for (int g = 0; g < c->n_groups; g++)
        if (c->group[g].model_id == model_id) drop_pages(c, s, g, hn_pages_of(c, g, rows));
    return rows;
}
