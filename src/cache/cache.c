/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the page pool and the sequences' page tables. Rows are written by ops (rope_store) and moved by kv_move;
 * this file only decides where they lie. */
#include "cache/cache.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

typedef struct seq_state {
    bool live;
    int committed;
    int n_pages[HN_MAX_GROUPS];
    int32_t *pages[HN_MAX_GROUPS]; /* [stride of the group] */
} seq_state;

struct hn_cache {
    const hn_ops *ops;
    hn_cache_group group[HN_MAX_GROUPS];
    int stride[HN_MAX_GROUPS]; /* pages a table of the group can hold */
    int n_groups, max_seqs, n_pages, n_free;
    size_t page_bytes;
    hn_mem *pool;
    hn_mem *moves;  /* device copy of one commit: from [HN_MAX_ROWS], to [HN_MAX_ROWS], page table [largest stride] */
    int32_t *free;  /* stack of page numbers */
    seq_state *seq; /* [max_seqs] */
};

static size_t element_bytes(hn_dtype t) {
    return (size_t)hn_dtype_block_bytes(t);
}

/* Page size from the first group; the others hold the largest power of two of rows that fits. */
static hunch_status plan_groups(hn_cache *c, const hn_cache_group *groups, int rows, hunch_error *err) {
    for (int g = 0; g < c->n_groups; g++) {
        hn_cache_group *d = &c->group[g];
        *d = groups[g];
        d->row_bytes = 2 * (size_t)d->layers * (size_t)d->kv_heads * (size_t)d->head_dim * element_bytes(d->type);
        if (g == 0) {
            if (d->page_rows < 16 || d->page_rows > HN_KEY_BLOCK || (d->page_rows & (d->page_rows - 1)))
                return hn_fail(err, HUNCH_USAGE, "page rows %d: expected a power of two from 16 to %d", d->page_rows,
                               HN_KEY_BLOCK);
            if (!hn_mul_size(d->row_bytes, (size_t)d->page_rows, &c->page_bytes))
                return hn_fail_memory(err, "cache page", SIZE_MAX);
            c->page_bytes = (c->page_bytes + 4095) & ~(size_t)4095;
        } else {
            d->page_rows = HN_KEY_BLOCK;
            while (d->page_rows > 1 && d->row_bytes * (size_t)d->page_rows > c->page_bytes) d->page_rows /= 2;
        }
        c->stride[g] = (rows + HN_MAX_ROWS + d->page_rows - 1) / d->page_rows;
        c->n_pages += c->stride[g] * c->max_seqs;
    }
    return HUNCH_OK;
}

static hunch_status create_tables(hn_cache *c, hunch_error *err) {
    int widest = 0;
    c->seq = hn_zalloc((size_t)c->max_seqs, sizeof *c->seq);
    c->free = hn_zalloc((size_t)c->n_pages, sizeof *c->free);
    if (!c->seq || !c->free) return hn_fail_memory(err, "cache tables", (size_t)c->n_pages * sizeof *c->free);
    for (int g = 0; g < c->n_groups; g++) {
        if (c->stride[g] > widest) widest = c->stride[g];
        for (int s = 0; s < c->max_seqs; s++) {
            c->seq[s].pages[g] = hn_zalloc((size_t)c->stride[g], sizeof(int32_t));
            if (!c->seq[s].pages[g]) return hn_fail_memory(err, "page table", (size_t)c->stride[g] * sizeof(int32_t));
        }
    }
    /* The lowest page is on top: a short run touches little of the pool. */
    for (int p = 0; p < c->n_pages; p++) c->free[p] = c->n_pages - 1 - p;
    c->n_free = c->n_pages;
    return c->ops->mem_create(c->ops, (2 * HN_MAX_ROWS + (size_t)widest) * sizeof(int32_t), &c->moves, err);
}

hunch_status hn_cache_open(hn_cache **out, const hn_ops *ops, const hn_cache_group *groups, int n_groups, int max_seqs,
                           int rows, hunch_error *err) {
    *out = NULL;
    assert(n_groups >= 1 && n_groups <= HN_MAX_GROUPS && max_seqs >= 1 && rows >= 1);
    hn_cache *c = hn_zalloc(1, sizeof *c);
    if (!c) return hn_fail_memory(err, "cache", sizeof *c);
    c->ops = ops;
    c->n_groups = n_groups;
    c->max_seqs = max_seqs;
    hunch_status st = plan_groups(c, groups, rows, err);
    size_t bytes = 0;
    if (!st && !hn_mul_size(c->page_bytes, (size_t)c->n_pages, &bytes))
        st = hn_fail_memory(err, "cache pages", SIZE_MAX);
    if (!st) st = create_tables(c, err);
    if (!st) {
        st = ops->mem_create(ops, bytes, &c->pool, err);
        if (st)
            hn_error_prefix(err, "cache of %d x %d rows (a smaller --context or --parallel needs less)", max_seqs,
                            rows);
    }
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
    for (int s = 0; c->seq && s < c->max_seqs; s++)
        for (int g = 0; g < c->n_groups; g++) hn_free(c->seq[s].pages[g]);
    c->ops->mem_free(c->ops, c->pool);
    c->ops->mem_free(c->ops, c->moves);
    hn_free(c->free);
    hn_free(c->seq);
    hn_free(c);
}

size_t hn_cache_bytes(const hn_cache *c) {
    return c->page_bytes * (size_t)c->n_pages;
}

int hn_cache_free_pages(const hn_cache *c) {
    return c->n_free;
}

hn_kv hn_cache_kv(const hn_cache *c, int group, int layer) {
    const hn_cache_group *g = &c->group[group];
    const size_t half = (size_t)g->kv_heads * (size_t)g->head_dim * (size_t)g->page_rows * element_bytes(g->type);
    return (hn_kv){.type = g->type,
                   .pool = {c->pool, 0},
                   .page_bytes = c->page_bytes,
                   .k_off = 2 * half * (size_t)layer,
                   .v_off = 2 * half * (size_t)layer + half,
                   .page_rows = g->page_rows,
                   .kv_heads = g->kv_heads,
                   .head_dim = g->head_dim};
}

void hn_cache_seq_begin(hn_cache *c, int seq) {
    seq_state *s = &c->seq[seq];
    assert(!s->live);
    s->live = true;
    s->committed = 0;
}

/* Returns the pages of a group from number `keep` on. */
static void drop_pages(hn_cache *c, seq_state *s, int group, int keep) {
    while (s->n_pages[group] > keep) c->free[c->n_free++] = s->pages[group][--s->n_pages[group]];
}

void hn_cache_seq_end(hn_cache *c, int seq) {
    seq_state *s = &c->seq[seq];
    for (int g = 0; g < c->n_groups; g++) drop_pages(c, s, g, 0);
    s->live = false;
    s->committed = 0;
}

int hn_cache_committed(const hn_cache *c, int seq) {
    return c->seq[seq].committed;
}

const int32_t *hn_cache_pages(const hn_cache *c, int seq, int group, int *n_pages) {
    *n_pages = c->seq[seq].n_pages[group];
    return c->seq[seq].pages[group];
}

int hn_cache_table_stride(const hn_cache *c, int group) {
    return c->stride[group];
}

hunch_status hn_cache_reserve(hn_cache *c, int seq, int tentative, hunch_error *err) {
    seq_state *s = &c->seq[seq];
    int want[HN_MAX_GROUPS], missing = 0;
    assert(s->live && tentative <= HN_MAX_ROWS);
    for (int g = 0; g < c->n_groups; g++) {
        want[g] = (s->committed + tentative + c->group[g].page_rows - 1) / c->group[g].page_rows;
        if (want[g] > c->stride[g])
            return hn_fail(err, HUNCH_NO_MEMORY, "sequence of %d rows: the cache was planned for %d",
                           s->committed + tentative, c->stride[g] * c->group[g].page_rows);
        if (want[g] > s->n_pages[g]) missing += want[g] - s->n_pages[g];
    }
    if (missing > c->n_free)
        return hn_fail(err, HUNCH_NO_MEMORY, "cache: %d pages wanted, %d of %d free", missing, c->n_free, c->n_pages);
    for (int g = 0; g < c->n_groups; g++)
        while (s->n_pages[g] < want[g]) s->pages[g][s->n_pages[g]++] = c->free[--c->n_free];
    return HUNCH_OK;
}

typedef struct move_job {
    hn_cache *c;
    int group, n;
} move_job;

static void move_rows(void *arg, int rank, int ranks) {
    const move_job *j = arg;
    const hn_exec ex = {j->c->ops, rank, ranks};
    const hn_buf from = {j->c->moves, 0}, to = hn_at(from, HN_MAX_ROWS * sizeof(int32_t)),
                 pages = hn_at(to, HN_MAX_ROWS * sizeof(int32_t));
    for (int l = 0; l < j->c->group[j->group].layers; l++) {
        const hn_kv kv = hn_cache_kv(j->c, j->group, l);
        j->c->ops->kv_move(&ex, &kv, pages, j->n, from, to);
    }
}

void hn_cache_commit(hn_cache *c, int seq, const int16_t *index, int n) {
    seq_state *s = &c->seq[seq];
    int32_t move[2 * HN_MAX_ROWS];
    int m = 0;
    assert(s->live && n >= 0 && n <= HN_MAX_ROWS);
    for (int i = 0; index && i < n; i++) { /* rows that already lie right stay */
        assert(index[i] >= i && (i == 0 || index[i] > index[i - 1]));
        if (index[i] == i) continue;
        move[m] = s->committed + index[i];
        move[HN_MAX_ROWS + m++] = s->committed + i;
    }
    if (m > 0) {
        c->ops->write(c->ops, (hn_buf){c->moves, 0}, move, sizeof move);
        for (int g = 0; g < c->n_groups; g++) {
            c->ops->write(c->ops, (hn_buf){c->moves, sizeof move}, s->pages[g],
                          (size_t)s->n_pages[g] * sizeof(int32_t));
            move_job job = {c, g, m};
            hn_pool_run(c->ops->pool, move_rows, &job);
        }
    }
    s->committed += n;
}

void hn_cache_rewind(hn_cache *c, int seq, int rows) {
    seq_state *s = &c->seq[seq];
    assert(rows >= 0 && rows <= s->committed);
    s->committed = rows;
    for (int g = 0; g < c->n_groups; g++)
        drop_pages(c, s, g, (rows + c->group[g].page_rows - 1) / c->group[g].page_rows);
}

bool hn_cache_valid(const hn_cache *c) {
    unsigned char *seen = hn_zalloc((size_t)c->n_pages, 1);
    bool ok = seen != NULL;
    int found = c->n_free;
    for (int i = 0; ok && i < c->n_free; i++) ok = !seen[c->free[i]]++;
    for (int s = 0; ok && s < c->max_seqs; s++)
        for (int g = 0; ok && g < c->n_groups; g++)
            for (int p = 0; ok && p < c->seq[s].n_pages[g]; p++, found++) ok = !seen[c->seq[s].pages[g][p]]++;
    hn_free(seen);
    return ok && found == c->n_pages;
}
