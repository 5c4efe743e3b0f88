/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_attention.c - attention on the CPU: how queries and cached positions are cut into items of work.
 *
 * A query is (row, head). The positions it sees are cut into spans of HN_KEY_SPAN from position 0; each span gives a
 * partial result (maximum m, sum l, weighted values o) from a fresh state, and partial results are merged in ascending
 * order. An item is (sequence, kv head, up to HN_QUERIES of its queries, and one span or all spans): all spans if
 * there are enough queries for every thread, else one, with the partial results in scratch and the merge after a barrier.
 * The bits are the same in both cases.
 *
 * Inside a span, chunks of 16 positions whose cache slots equal their positions are read in place, for all queries of
 * the item together. Chunks that hold positions of a draft tree differ between rows: they are gathered slot by slot, one
 * chunk at a time, for the row's own queries. Values that are a part of keys are brought to their own layout once an item and span.
 *
 * Over a BF16 cache the queries and the weights of values are rounded to bf16 and multiplied in pairs (kernels.h). Ranges
 * of positions are cut between pairs only, so that a pair is halved only by the range that its row sees.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "ops/cpu_mem.h"
#include "ops/kernels.h"

enum {
    ITEMS_A_RANK = 3,          /* with fewer items per rank they are cut smaller */
    ITEMS_MAX = (1 << 20) - 1, /* of hn_claim */
    STATS = 16                 /* floats before a partial result; m and l are used */
};
static const size_t scratch_cap = (size_t)64 << 20;

/* One call of the operation. */
typedef struct call {
    const hn_exec *ex;
    const hn_rows *rows;
    const hn_kv *kv;
    const struct hn_kernels *kernels;
    const hn_attention_params *how;
    const float *sinks;
    const int32_t *from, *last; /* for each row: the position that its window is counted back from, the last position that it sees */
    bool bf16; /* products of pairs */
    int group; /* query heads that share a kv head */
    int spans;
    const hn_act *act; /* gets the rows too, in these forms */
    int forms;
    const float *q;
    int ldq;
    float *out;
    int ldo;
    int queries; /* most queries an item, up to HN_QUERIES */
    bool split;  /* items are single spans */
    struct rank_scratch *rank_scratch; /* this rank's */
    float *part;       /* [row][head][spans][STATS + v_dim], if split */
} call;

/* The queries of an item that see something of a span, and their results. */
typedef struct tile {
    int seq, kv_head, span;
    int n;
    int row[HN_QUERIES], head[HN_QUERIES];
    int lo[HN_QUERIES], hi[HN_QUERIES]; /* positions seen, counted from the span's first */
    const float *q[HN_QUERIES];
    const uint16_t *q16[HN_QUERIES];
    float m[HN_QUERIES], l[HN_QUERIES];
    _Alignas(64) float s[HN_QUERIES * HN_KEY_SPAN];
    _Alignas(64) uint16_t e[HN_QUERIES * HN_KEY_SPAN];
    _Alignas(64) float o[HN_QUERIES * HN_MAX_HEAD_DIM]; /* [n][v_dim] */
    _Alignas(64) uint16_t rounded[HN_QUERIES * HN_MAX_HEAD_DIM]; /* queries of the item */
    _Alignas(64) unsigned char chunk[HN_KEY_CHUNK * HN_MAX_HEAD_DIM * sizeof(float)]; /* gathered positions */
    unsigned char *values; /* [HN_KEY_CHUNKS] chunks of values that were in keys */
} tile;

/* Merged spans of the queries of an item. */
typedef struct merged {
    bool any[HN_QUERIES];
    float m[HN_QUERIES], l[HN_QUERIES];
    _Alignas(64) float o[HN_QUERIES * HN_MAX_HEAD_DIM];
} merged;

/* The buffers of a rank. Too large for the stack: rank 0 runs on the stack of the library's caller. */
typedef struct rank_scratch {
    int first_item[HN_MAX_TEXTS + 1]; /* of each sequence */
    tile t;
    merged g;
} rank_scratch;

static size_t part_stride(int dim) { return STATS + ((size_t)dim + 15) / 16 * 16; }

static size_t part_bytes(int rows, int heads, int dim, int positions) {
    size_t spans = ((size_t)positions + HN_KEY_SPAN - 1) / HN_KEY_SPAN;
    return (size_t)rows * (size_t)heads * spans * part_stride(dim) * sizeof(float);
}

/* Bytes of a rank for the values of a span that are in keys, in the largest type. */
static size_t values_bytes(int v_dim, bool v_in_k) { return v_in_k ? hn_kv_bytes(HN_F32, v_dim, HN_KEY_SPAN) : 0; }

/* A rank_scratch for every rank, then its values of keys, then the partial results; calls that would need more of these do not split
 * spans. */
size_t hn_cpu_attention_scratch(const hn_ops *o, int max_rows, int heads, int v_dim, bool v_in_k, int max_positions) {
    const size_t ranks = (size_t)hn_pool_threads(o->pool), bytes = part_bytes(max_rows, heads, v_dim, max_positions);
    return (sizeof(rank_scratch) + values_bytes(v_dim, v_in_k)) * ranks + (bytes < scratch_cap ? bytes : scratch_cap);
}

/* ---- one span ------------------------------------------------------------------------------------------------- */

static const unsigned char *slot_page(const call *c, int seq, int slot) {
    const int32_t *pages = hn_host_i32(c->rows->page_table) + (size_t)c->rows->page_stride * (size_t)seq;
    assert(pages[slot / c->kv->page_rows] != HN_NO_PAGE);
    return (const unsigned char *)hn_host(c->kv->pool) + c->kv->page_bytes * (size_t)pages[slot / c->kv->page_rows];
}

static int chunks_to(int hi) { return (hi + HN_KEY_CHUNK - 1) / HN_KEY_CHUNK; }

/* Chunks [0, result) of the span have slot = position for every row of the sequence. */
static int shared_chunks(const call *c, const tile *t) {
    if (hn_host_i32(c->rows->direct)[t->seq]) return HN_KEY_CHUNKS;
    int below = hn_host_i32(c->rows->committed)[t->seq] - t->span * HN_KEY_SPAN;
    if (below <= 0) return 0;
    return below >= HN_KEY_SPAN ? HN_KEY_CHUNKS : below / HN_KEY_CHUNK;
}

/* Sets the values of chunk i. */
static void enter_values(const unsigned char *page, const hn_kv_row *v, hn_keys *keys, int i) {
    keys->v[i] = page + v->at;
    keys->v_scale[i] = (const float *)(const void *)(page + v->scale_at);
}

/* Sets chunk i to row `row` and up of a page, or of gathered chunks. */
static void enter_chunk(const hn_kv *kv, const unsigned char *page, int head, int row, hn_keys *keys, int i) {
    const hn_kv_row k = hn_kv_key_row(kv, head, row), v = hn_kv_value_row(kv, head, row);
    keys->k[i] = page + k.at;
    keys->k_scale[i] = (const float *)(const void *)(page + k.scale_at);
    keys->k_stride[i] = kv->page_rows;
    enter_values(page, &v, keys, i);
}

/* A page that is one chunk. */
static hn_kv chunk_page(const hn_kv *kv) {
    hn_kv own = *kv;
    own.page_rows = HN_KEY_CHUNK;
    own.k_off = own.v_off = 0;
    return own;
}

/* Sets the values of chunk i to those in the keys of row `row` and up. */
static void enter_values_of_keys(const hn_kv *kv, tile *t, const unsigned char *page, int head, int row, hn_keys *keys, int i) {
    const hn_kv own = chunk_page(kv);
    unsigned char *to = t->values + hn_kv_bytes(kv->type, kv->v_dim, HN_KEY_CHUNK) * (size_t)i;
    const hn_kv_row v = hn_kv_value_row(&own, 0, 0);
    hn_kv_values_of_keys(kv, page, hn_kv_key_row(kv, head, row), to);
    enter_values(to, &v, keys, i);
}

static void keys_in_place(const call *c, tile *t, int c0, int c1, hn_keys *keys) {
    for (int i = c0; i < c1; i++) {
        const int slot = t->span * HN_KEY_SPAN + i * HN_KEY_CHUNK, row = slot % c->kv->page_rows;
        const unsigned char *page = slot_page(c, t->seq, slot);
        enter_chunk(c->kv, page, t->kv_head, row, keys, i);
        if (c->kv->v_in_k) enter_values_of_keys(c->kv, t, page, t->kv_head, row, keys, i);
    }
}

/* The slot of a position on a row's path. */
static int path_slot(const call *c, const tile *t, int row, int position) {
    int beyond = position - hn_host_i32(c->rows->committed)[t->seq];
    if (beyond < 0) return position;
    return hn_host_i32(c->rows->path_slots)[hn_host_i32(c->rows->path_start)[row] + beyond];
}

/* Gathers the keys or the values of a row's positions in chunk i, as in a page of 16 rows; positions that it does not
 * see are not written, and are not read. */
static void copy_chunk(const call *c, tile *t, int first, int i, bool of_keys, hn_keys *keys) {
    const hn_kv own = chunk_page(c->kv);
    const bool values_of_keys = !of_keys && c->kv->v_in_k;
    of_keys |= values_of_keys;
    for (int p = 0; p < HN_KEY_CHUNK; p++) {
        int at = i * HN_KEY_CHUNK + p;
        if (at < t->lo[first] || at >= t->hi[first]) continue;
        int slot = path_slot(c, t, t->row[first], t->span * HN_KEY_SPAN + at), row = slot % c->kv->page_rows;
        const hn_kv_row from = of_keys ? hn_kv_key_row(c->kv, t->kv_head, row) : hn_kv_value_row(c->kv, t->kv_head, row),
                        to = of_keys ? hn_kv_key_row(&own, 0, p) : hn_kv_value_row(&own, 0, p);
        hn_kv_copy(t->chunk, &to, slot_page(c, t->seq, slot), &from);
    }
    enter_chunk(&own, t->chunk, 0, 0, keys, i);
    if (values_of_keys) enter_values_of_keys(&own, t, t->chunk, 0, 0, keys, i);
}

/* Scores of queries [i, end) with chunks [c0, c1). */
static void scores(const call *c, tile *t, const hn_keys *keys, int c0, int c1, int i, int end) {
    float *s = t->s + i * HN_KEY_SPAN;
    const int dim = c->kv->head_dim;
    if (c->bf16) {
        c->kernels->scores_bf16(keys, c0, c1, t->q16 + i, end - i, dim, c->how->scale, s);
    } else {
        c->kernels->scores(c->kv->type, keys, c0, c1, t->q + i, end - i, dim, c->how->scale, s);
    }
}

/* Adds values of positions [lo, hi) to the results of queries [i, end). */
static void values(const call *c, tile *t, const hn_keys *keys, int lo, int hi, int i, int end) {
    const int dim = c->kv->v_dim, at = i * HN_KEY_SPAN;
    if (lo >= hi) return;
    if (c->bf16) {
        c->kernels->values_bf16(keys, lo, hi, t->e + at, end - i, dim, t->o + i * dim, dim);
    } else {
        c->kernels->values(c->kv->type, keys, lo, hi, t->s + at, end - i, dim, t->o + i * dim, dim);
    }
}

/* Queries [i, result) belong to one row. */
static int row_end(const tile *t, int i) {
    int end = i + 1;
    while (end < t->n && t->row[end] == t->row[i]) end++;
    return end;
}

/* Scores of all queries of the tile: with chunks [c0, c1) in place, and from `shared` on with each row's own positions. */
static void tile_scores(const call *c, tile *t, const hn_keys *keys, int c0, int c1, int shared) {
    if (c0 < c1) scores(c, t, keys, c0, c1, 0, t->n);
    for (int i = 0, end; i < t->n; i = end) {
        end = row_end(t, i);
        for (int j = hn_most(t->lo[i] / HN_KEY_CHUNK, shared); j < chunks_to(t->hi[i]); j++) {
            hn_keys own;
            copy_chunk(c, t, i, j, true, &own);
            scores(c, t, &own, j, j + 1, i, end);
        }
    }
}

/* Values of chunks in place for queries [i, end), whose ranges may differ: the common part for all queries at once. */
static void shared_values(const call *c, tile *t, const hn_keys *keys, int i, int end, int limit) {
    int lo = 0, hi = limit;
    for (int x = i; x < end; x++) {
        lo = hn_most(lo, t->lo[x]);
        hi = hn_least(hi, t->hi[x]);
    }
    lo += lo % 2;
    hi = hn_most(hi - hi % 2, lo);
    for (int x = i, next; x < end; x = next) { /* positions before the common part */
        next = hn_least(row_end(t, x), end);
        values(c, t, keys, t->lo[x], hn_least(hn_least(lo, t->hi[x]), limit), x, next);
    }
    values(c, t, keys, lo, hi, i, end);
    for (int x = i, next; x < end; x = next) { /* positions after it */
        next = hn_least(row_end(t, x), end);
        values(c, t, keys, hn_most(hi, t->lo[x]), hn_least(t->hi[x], limit), x, next);
    }
}

static void own_values(const call *c, tile *t, int i, int end, int shared) {
    for (int j = hn_most(t->lo[i] / HN_KEY_CHUNK, shared); j < chunks_to(t->hi[i]); j++) {
        hn_keys own;
        const int lo = j * HN_KEY_CHUNK;
        copy_chunk(c, t, i, j, false, &own);
        values(c, t, &own, hn_most(lo, t->lo[i]), hn_least(lo + HN_KEY_CHUNK, t->hi[i]), i, end);
    }
}

static void tile_softmax(const call *c, tile *t, int i) {
    float *s = t->s + i * HN_KEY_SPAN;
    if (c->bf16) {
        c->kernels->softmax_bf16(s, t->lo[i], t->hi[i], &t->m[i], &t->l[i], t->e + i * HN_KEY_SPAN);
    } else {
        c->kernels->softmax(s, t->lo[i], t->hi[i], &t->m[i], &t->l[i]);
    }
}

/* Partial results of all queries of the tile on its span. */
static void tile_block(const call *c, tile *t) {
    hn_keys keys;
    int shared = shared_chunks(c, t), hi = 0, lo = HN_KEY_SPAN;
    for (int i = 0; i < t->n; i++) {
        hi = hn_most(hi, t->hi[i]);
        lo = hn_least(lo, t->lo[i]);
    }
    int in_place = hn_least(chunks_to(hi), shared), tiles = (t->n + c->kernels->value_rows - 1) / c->kernels->value_rows;
    keys_in_place(c, t, lo / HN_KEY_CHUNK, in_place, &keys);
    tile_scores(c, t, &keys, lo / HN_KEY_CHUNK, in_place, shared);
    for (int i = 0; i < t->n; i++) tile_softmax(c, t, i);
    memset(t->o, 0, (size_t)(t->n * c->kv->v_dim) * sizeof(float));
    for (int part = 0; part < tiles; part++) {
        shared_values(c, t, &keys, t->n * part / tiles, t->n * (part + 1) / tiles, in_place * HN_KEY_CHUNK);
    }
    for (int i = 0, end; i < t->n; i = end) {
        end = row_end(t, i);
        own_values(c, t, i, end, shared);
    }
}

/* ---- queries of an item ---------------------------------------------------------------------------------------- */

/* The positions of a span that a row sees; false: none. */
static bool sees(const call *c, int row, int span, int *lo, int *hi) {
    int base = span * HN_KEY_SPAN;
    *hi = hn_least(c->last[row] + 1 - base, HN_KEY_SPAN);
    *lo = hn_most(hn_kv_seen_from(c->how, c->from[row]) - base, 0);
    return *lo < *hi;
}

static int seq_row(const call *c, int seq) { return hn_host_i32(c->rows->seq_first)[seq]; }
static int seq_queries(const call *c, int seq) { return (seq_row(c, seq + 1) - seq_row(c, seq)) * c->group; }
static int seq_tiles(const call *c, int seq) { return (seq_queries(c, seq) + c->queries - 1) / c->queries; }

/* Queries [first, end) of a sequence are tile number `part`. */
static void tile_queries(const call *c, const tile *t, int part, int *first, int *end) {
    *first = part * c->queries;
    *end = hn_least(*first + c->queries, seq_queries(c, t->seq));
}

/* The row and head of query i of a sequence. */
static void query_of(const call *c, const tile *t, int i, int *row, int *head) {
    *row = seq_row(c, t->seq) + i / c->group;
    *head = t->kv_head * c->group + i % c->group;
}

static const float *query(const call *c, int row, int head) {
    return c->q + (size_t)c->ldq * (size_t)row + head * c->kv->head_dim;
}

/* Once an item: rounds its queries. */
static void tile_round(const call *c, tile *t, int part) {
    int first, end, row, head;
    tile_queries(c, t, part, &first, &end);
    for (int i = first; c->bf16 && i < end; i++) {
        query_of(c, t, i, &row, &head);
        c->kernels->round_bf16(query(c, row, head), c->kv->head_dim, t->rounded + (i - first) * c->kv->head_dim);
    }
}

/* Queries of tile number `part` of a sequence that see something of the span. */
static void tile_fill(const call *c, tile *t, int part) {
    int first, end, row, head;
    tile_queries(c, t, part, &first, &end);
    t->n = 0;
    for (int i = first; i < end; i++) {
        query_of(c, t, i, &row, &head);
        if (!sees(c, row, t->span, &t->lo[t->n], &t->hi[t->n])) continue;
        t->row[t->n] = row;
        t->head[t->n] = head;
        t->q[t->n] = query(c, row, head);
        t->q16[t->n] = t->rounded + (i - first) * c->kv->head_dim;
        t->n++;
    }
}

/* Spans [first, last] that any row of a sequence sees. */
static void seq_nodes(const call *c, int seq, int *first, int *last) {
    int min = c->from[seq_row(c, seq)], max = c->last[seq_row(c, seq)];
    for (int row = seq_row(c, seq); row < seq_row(c, seq + 1); row++) {
        min = hn_least(min, c->from[row]);
        max = hn_most(max, c->last[row]);
    }
    *first = hn_kv_seen_from(c->how, min) / HN_KEY_SPAN;
    *last = max / HN_KEY_SPAN;
}

static float *part_at(const call *c, int row, int head, int span) {
    size_t i = ((size_t)row * (size_t)c->how->heads + (size_t)head) * (size_t)c->spans + (size_t)span;
    return c->part + i * part_stride(c->kv->v_dim);
}

/* Adds one span's result to query i of a merged state. */
static void merge_block(const call *c, merged *g, int i, float m, float l, const float *o) {
    int dim = c->kv->v_dim;
    float *to = g->o + i * dim;
    if (!g->any[i]) {
        g->any[i] = true;
        g->m[i] = m;
        g->l[i] = l;
        memcpy(to, o, (size_t)dim * sizeof *o);
        return;
    }
    float top = m > g->m[i] ? m : g->m[i];
    float a = top == g->m[i] ? 1 : hn_exp(g->m[i] - top), b = top == m ? 1 : hn_exp(m - top); /* e^0 is 1 */
    g->m[i] = top;
    g->l[i] = fmaf(l, b, g->l[i] * a);
    c->kernels->merge(to, o, dim, a, b);
}

/* The factor of the merged values: 1 / l, including the head's sink. */
static float factor(const call *c, const merged *g, int i, int head) {
    if (!c->sinks) return 1.0f / g->l[i];
    float sink = c->sinks[head], top = sink > g->m[i] ? sink : g->m[i], a = hn_exp(g->m[i] - top);
    return a / fmaf(g->l[i], a, hn_exp(sink - top));
}

static void write_out(const call *c, const merged *g, int i, int row, int head) {
    int dim = c->kv->v_dim;
    float *out = c->out + (size_t)c->ldo * (size_t)row + head * dim;
    c->kernels->scale(out, g->o + i * dim, dim, factor(c, g, i, head));
    if (c->forms) hn_cpu_put_inputs(c->ex->ops, out, dim, c->act, c->forms, row, head * dim / HN_GROUP);
}

/* An item of one span: partial results to scratch. */
static void run_block(const call *c, tile *t, int part) {
    tile_fill(c, t, part);
    if (t->n == 0) return;
    tile_round(c, t, part);
    tile_block(c, t);
    for (int i = 0; i < t->n; i++) {
        float *p = part_at(c, t->row[i], t->head[i], t->span);
        p[0] = t->m[i];
        p[1] = t->l[i];
        memcpy(p + STATS, t->o + i * c->kv->v_dim, (size_t)c->kv->v_dim * sizeof(float));
    }
}

/* An item of all spans: merged at once. A tile's queries are numbered as in the item by row and head. */
static void run_all_blocks(const call *c, tile *t, int part) {
    merged *g = &c->rank_scratch->g;
    int first, last, base, end, row, head, row0 = seq_row(c, t->seq);
    tile_queries(c, t, part, &base, &end);
    tile_round(c, t, part);
    memset(g->any, 0, sizeof g->any);
    seq_nodes(c, t->seq, &first, &last);
    for (t->span = first; t->span <= last; t->span++) {
        tile_fill(c, t, part);
        if (t->n == 0) continue;
        tile_block(c, t);
        for (int i = 0; i < t->n; i++) {
            int at = (t->row[i] - row0) * c->group + t->head[i] % c->group - base;
            merge_block(c, g, at, t->m[i], t->l[i], t->o + i * c->kv->v_dim);
        }
    }
    for (int i = base; i < end; i++) {
        query_of(c, t, i, &row, &head);
        write_out(c, g, i - base, row, head);
    }
}

/* Merges the partial results of this rank's share of the queries: neighbouring heads of all rows, most of whose items it ran. */
static void merge_parts(const call *c) {
    merged *g = &c->rank_scratch->g;
    int first, last;
    hn_share(c->ex, c->rows->n * c->how->heads, &first, &last);
    for (int i = first; i < last; i++) {
        int row = i % c->rows->n, head = i / c->rows->n, lo, hi;
        g->any[0] = false;
        for (int b = 0; b < c->spans; b++) {
            if (!sees(c, row, b, &lo, &hi)) continue;
            const float *p = part_at(c, row, head, b);
            merge_block(c, g, 0, p[0], p[1], p + STATS);
        }
        write_out(c, g, 0, row, head);
    }
}

/* ---- the operation --------------------------------------------------------------------------------------------- */

/* Numbers the items: for each sequence [kv head][span, if split][tile]. Returns their number, or -1: too many. */
static int number_items(call *c) {
    int64_t items = 0;
    for (int seq = 0; seq < c->rows->n_seqs; seq++) {
        int first, last;
        c->rank_scratch->first_item[seq] = (int)items;
        seq_nodes(c, seq, &first, &last);
        items += (int64_t)c->kv->kv_heads * seq_tiles(c, seq) * (c->split ? last - first + 1 : 1);
        if (items > ITEMS_MAX) return -1;
    }
    c->rank_scratch->first_item[c->rows->n_seqs] = (int)items;
    return (int)items;
}

/* Cuts the call into items, enough of them for every rank: first by spans, then by fewer queries an item. */
static int plan_items(call *c) {
    int wanted = ITEMS_A_RANK * c->ex->ranks, items = number_items(c);
    if (items >= wanted) return items;
    size_t bytes = part_bytes(c->rows->n, c->how->heads, c->kv->v_dim, c->rows->max_position + 1);
    if (c->spans > 1 && bytes <= scratch_cap) {
        c->split = true;
        int split_items = number_items(c);
        c->split = split_items >= 0;
        items = c->split ? split_items : number_items(c);
    }
    /* the last span is often nearly empty */
    int full = c->split ? (int)((int64_t)items * (c->spans - 1) / c->spans) : items;
    if (c->ex->ranks > 1 && full < wanted) {
        int tiles = full > 0 ? (wanted + full - 1) / full : wanted, queries = 0;
        for (int seq = 0; seq < c->rows->n_seqs; seq++) queries = hn_most(queries, seq_queries(c, seq));
        c->queries = (hn_least(queries, HN_QUERIES) + tiles - 1) / tiles;
        items = number_items(c);
    }
    return items;
}

static void run_item(const call *c, tile *t, int item) {
    t->seq = 0;
    while (item >= c->rank_scratch->first_item[t->seq + 1]) t->seq++;
    item -= c->rank_scratch->first_item[t->seq];
    int tiles = seq_tiles(c, t->seq), first, last;
    if (!c->split) {
        t->kv_head = item / tiles;
        run_all_blocks(c, t, item % tiles);
        return;
    }
    seq_nodes(c, t->seq, &first, &last);
    int spans = last - first + 1;
    t->kv_head = item / (tiles * spans);
    t->span = first + item / tiles % spans;
    run_block(c, t, item % tiles);
}

void hn_cpu_attention(const hn_exec *ex, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how, hn_matrix q,
                      hn_matrix out, hn_act a, hn_buf scratch) {
    assert(q.cols == how->heads * kv->head_dim && out.cols == how->heads * kv->v_dim);
    assert(kv->head_dim <= HN_MAX_HEAD_DIM && kv->v_dim <= HN_MAX_HEAD_DIM && how->heads % kv->kv_heads == 0);
    assert(kv->head_dim % hn_kv_multiple(kv->type) == 0 && kv->v_dim % hn_kv_multiple(kv->type) == 0);
    rank_scratch *const scratches = (rank_scratch *)(void *)hn_host(scratch);
    unsigned char *const values = (unsigned char *)(scratches + ex->ranks);
    const size_t values_each = values_bytes(kv->v_dim, kv->v_in_k);
    const bool whole = kv->v_dim % HN_GROUP == 0; /* heads are whole groups: the rank that finishes one can quantise it */
    call c = {.ex = ex, .rows = rows, .kv = kv, .kernels = ex->ops->kernels, .how = how,
              .sinks = how->sinks.mem ? hn_host_f32(how->sinks) : NULL, .from = hn_host_i32(rows->from),
              .last = hn_host_i32(how->ahead ? rows->last : rows->position), .bf16 = kv->type == HN_BF16 && !ex->ops->f32,
              .group = how->heads / kv->kv_heads, .spans = rows->max_position / HN_KEY_SPAN + 1, .act = &a,
              .forms = whole ? a.forms : 0, .queries = HN_QUERIES, .q = hn_host_f32(q.at), .ldq = q.ld, .out = hn_host_f32(out.at),
              .ldo = out.ld, .rank_scratch = scratches + ex->rank, .part = (float *)(void *)(values + values_each * (size_t)ex->ranks)};
    int items = plan_items(&c);
    c.rank_scratch->t.values = values + values_each * (size_t)ex->rank;
    hn_claim claim = hn_claim_begin(ex->ops->pool, ex->rank, items);
    for (int item; (item = hn_claim_next(&claim)) >= 0;) run_item(&c, &c.rank_scratch->t, item);
    if (c.split) {
        hn_barrier(ex->ops->pool, ex->rank);
        merge_parts(&c);
    }
    hn_barrier(ex->ops->pool, ex->rank);
    if (a.forms && !whole) hn_cpu_quantise(ex, rows->n, out, a);
}
