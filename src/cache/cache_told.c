/* SPDX-License-Identifier: Apache-2.0 */
/* cache_told.c - a cache over ranks: what the leader tells the others of its own, and theirs, which are pages without texts. */
#include <string.h>

#include "base/mem.h"
#include "cache/cache_private.h"

/* HN_TOLD_CACHE */
typedef struct told_open {
    hn_told told;
    int32_t n_groups, n_pages;
    struct {
        int32_t kind, layers, type, page_rows, window, head_dim, v_dim, v_in_k, stride; /* of a table */
        int32_t model_id;
        uint32_t model; /* hn_cache_group.told */
    } group[HN_MAX_GROUPS];
} told_open;

/* Whether ranks have such a group too. */
static bool is_told(const hn_cache_group *d) { return d->model_id == 0 || d->told > 0; }

uint32_t hn_cache_told_id(const hn_cache *c) { return c->told_id; }

size_t hn_cache_most_told(const hn_cache *c) {
    size_t bytes = sizeof c->ready;
    for (int g = 0; g < c->n_groups; g++)
        if (is_told(&c->group[g])) bytes += sizeof *c->move * HN_CACHE_MOVES;
    return bytes;
}

/* ---- of the leader ----------------------------------------------------------------------------------------------------------- */

hunch_status hn_cache_tell_open(hn_cache *c, hunch_error *err) {
    hn_link *l = c->backend->link;
    if (!hn_link_leads(l)) return HUNCH_OK;
    c->told = hn_alloc(sizeof(hn_told) + hn_cache_most_told(c));
    if (!c->told) return hn_fail_memory(err, "a message to ranks", hn_cache_most_told(c));
    c->told_id = ++l->next_id;
    told_open m = {.told = {HN_TOLD_CACHE, c->told_id}, .n_groups = c->n_groups, .n_pages = c->n_pages};
    for (int g = 0; g < c->n_groups; g++) {
        const hn_cache_group *d = &c->group[g];
        m.group[g].kind = (int32_t)d->kind, m.group[g].layers = d->layers, m.group[g].type = (int32_t)d->type;
        m.group[g].page_rows = d->page_rows, m.group[g].window = d->window, m.group[g].head_dim = d->head_dim;
        m.group[g].v_dim = d->v_dim, m.group[g].v_in_k = d->v_in_k, m.group[g].stride = c->stride[g];
        m.group[g].model_id = d->model_id;
        m.group[g].model = d->told;
    }
    l->send(l, &m, sizeof m);
    return hn_link_agree(l, HUNCH_OK, err);
}

size_t hn_cache_put_moves(const hn_cache *c, void *to) {
    int32_t ready[HN_MAX_GROUPS] = {0};
    unsigned char *at = (unsigned char *)to + sizeof ready;
    for (int g = 0; g < c->n_groups; g++) {
        if (!is_told(&c->group[g])) continue;
        const size_t bytes = sizeof *c->move * (size_t)c->ready[g];
        ready[g] = c->ready[g];
        memcpy(at, c->move + (size_t)g * HN_CACHE_MOVES, bytes);
        at += bytes;
    }
    memcpy(to, ready, sizeof ready);
    return (size_t)(at - (unsigned char *)to);
}

void hn_cache_tell_moves(hn_cache *c) {
    hn_link *l = c->backend->link;
    if (!c->told) return;
    *(hn_told *)c->told = (hn_told){HN_TOLD_MOVES, c->told_id};
    l->send(l, c->told, sizeof(hn_told) + hn_cache_put_moves(c, (hn_told *)c->told + 1));
}

void hn_cache_tell_end(hn_cache *c) {
    const hn_told m = {HN_TOLD_CACHE_END, c->told_id};
    if (c->told) c->backend->link->send(c->backend->link, &m, sizeof m);
}

/* ---- of the others ------------------------------------------------------------------------------------------------------------- */

/* The groups of drafters that the leader alone has keep their numbers, and have no layers here. */
static hunch_status take_groups(hn_cache *c, const told_open *m, hn_told_groups *groups, void *user, hunch_error *err) {
    hn_cache_group own[HN_MAX_GROUPS];
    size_t most = 0;
    c->n_groups = m->n_groups;
    for (int g = 0, first = 0, n = 0; g < m->n_groups; g++) {
        hn_cache_group *d = &c->group[g];
        c->stride[g] = m->group[g].stride;
        *d = (hn_cache_group){.model_id = m->group[g].model_id};
        if (d->model_id > 0 && m->group[g].model == 0) continue;
        if (g == 0 || m->group[g].model_id != m->group[g - 1].model_id) {
            first = g;
            n = groups(user, m->group[g].model, own);
        }
        const hn_cache_group *mine = &own[g - first];
        if (g - first >= n || (int32_t)mine->kind != m->group[g].kind || mine->layers != m->group[g].layers ||
            mine->window != m->group[g].window || mine->head_dim != m->group[g].head_dim || mine->v_dim != m->group[g].v_dim ||
            mine->v_in_k != m->group[g].v_in_k)
            return hn_fail(err, HUNCH_REFUSED,
                           "its heads fall into other groups of layers than the leader's: expected another number of ranks");
        *d = *mine;
        d->model_id = m->group[g].model_id;
        d->told = m->group[g].model;
        d->type = (hn_dtype)m->group[g].type;
        d->page_rows = m->group[g].page_rows;
        const hunch_status st = hn_cache_plan_row(d, err);
        if (st) return st;
        const size_t units = (size_t)(d->units + m->group[g].stride - 1) / (size_t)m->group[g].stride; /* of a state, in each page of it */
        const size_t bytes = d->kind == HN_CACHE_STATE ? units * d->unit_bytes : d->row_bytes * (size_t)d->page_rows;
        most = most > bytes ? most : bytes;
    }
    c->page_bytes = (most + 4095) & ~(size_t)4095;
    return HUNCH_OK;
}

hunch_status hn_cache_open_told(hn_cache **out, hn_backend *b, hn_told_groups *groups, void *user, const void *message, size_t bytes,
                                hunch_error *err) {
    told_open m;
    *out = NULL;
    if (bytes != sizeof m) return hn_fail(err, HUNCH_FAILED, "a message of another form");
    memcpy(&m, message, sizeof m);
    hn_cache *c = hn_zalloc(1, sizeof *c);
    if (!c) return hn_fail_memory(err, "cache", sizeof *c);
    c->backend = b;
    c->n_pages = m.n_pages;
    hunch_status st = take_groups(c, &m, groups, user, err);
    const size_t all = c->page_bytes * (size_t)c->n_pages, left = hn_backend_memory_left(b);
    if (!st && all > left)
        st = hn_fail(err, HUNCH_NO_MEMORY, "pages of its heads need %zu bytes of memory, %zu are available", all, left);
    if (!st) st = hn_cache_open_moves(c, err);
    if (!st) st = b->mem_create(b, HN_MEM_PAGES, all, &c->pool, err);
    if (st) {
        hn_cache_close(&c);
        return st;
    }
    hn_account_add(b->account, HN_ACCOUNT_PAGES, (int64_t)all, 0);
    *out = c;
    return HUNCH_OK;
}

size_t hn_cache_take_moves(hn_cache *c, const void *from, size_t bytes) {
    const unsigned char *at = (const unsigned char *)from + sizeof c->ready, *end = (const unsigned char *)from + bytes;
    if (bytes < sizeof c->ready) return 0;
    memcpy(c->n_moves, from, sizeof c->n_moves);
    for (int g = 0; g < HN_MAX_GROUPS; g++) {
        const size_t moves = sizeof *c->move * (size_t)c->n_moves[g];
        if (c->n_moves[g] < 0 || c->n_moves[g] > HN_CACHE_MOVES || (size_t)(end - at) < moves) return 0;
        if (g < c->n_groups) memcpy(c->move + (size_t)g * HN_CACHE_MOVES, at, moves);
        at += moves;
    }
    hn_cache_moves_ready(c);
    return (size_t)(at - (const unsigned char *)from);
}
