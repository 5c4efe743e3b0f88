/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_attention.c - attention on the CPU: how queries and cached positions are cut into items of work. One span of
 * positions: cpu_attention_span.c.
 *
 * A query is (row, head). The positions it sees are cut into spans of HN_KEY_SPAN from position 0; each span gives a
 * partial result (maximum m, sum l, weighted values o) from a fresh state, and partial results are merged in ascending
 * order. An item is (kv head, a bundle: up to BUNDLE queries of neighbouring rows, and one span or all spans): all spans if there
 * are enough bundles for every thread, else one, with the partial results of a wave of spans in scratch, which are merged
 * between two barriers. The bits are the same in all cases.
 *
 * K and V of a span are read from memory once for all queries of the bundle: in tiles of up to HN_QUERIES, one after the other,
 * while the span is in the cache of the core. Rows of several texts share tiles where their pages are the same.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "ops/cpu_attention.h"

enum {
    BUNDLE = 128,                 /* most queries of an item: 64 multiply-accumulates a byte of K and V */
    LEAST_LOT = 48,            /* of one text, if K and V would be read more often for more items */
    ITEMS_A_RANK = 3,          /* with fewer items per rank they are cut smaller */
    ITEMS_MAX = (1 << 20) - 1, /* of hn_claim */
    STATS = 16                 /* floats before a partial result: m, l, and whether there is one of all spans so far */
};
static const size_t part_cap = (size_t)4 << 20; /* bytes of partial results a rank: they stay in the last cache */

typedef hn_attention_call call;
typedef hn_attention_tile tile;

/* Queries [first, end) of a kv head, of all rows in order; and what is merged of each. */
typedef struct bundle {
    int kv_head, first, end;
    bool any[BUNDLE];
    float m[BUNDLE], l[BUNDLE];
    _Alignas(64) float o[BUNDLE * HN_MAX_HEAD_DIM];
    _Alignas(64) uint16_t rounded[BUNDLE * HN_MAX_HEAD_DIM]; /* queries */
} bundle;

/* The buffers of a rank. Too large for the stack: rank 0 runs on the stack of the library's caller. */
typedef struct rank_scratch {
    tile t;
    bundle g;
} rank_scratch;

static size_t part_stride(int dim) { return STATS + ((size_t)dim + 15) / 16 * 16; }

/* Partial results of a span for all queries. */
static size_t part_bytes(int rows, int heads, int dim) {
    return (size_t)rows * (size_t)heads * part_stride(dim) * sizeof(float);
}

/* Bytes of a rank for copies of a span's keys, and of its values: hn_span_copy. */
static size_t copied_keys_bytes(const hn_kv *kv) { return kv->type == HN_Q8_0 ? hn_kv_bytes(HN_BF16, kv->head_dim, HN_KEY_SPAN) : 0; }
static size_t copied_values_bytes(const hn_kv *kv) {
    const size_t in_keys = kv->v_in_k ? hn_kv_bytes(kv->type, kv->v_dim, HN_KEY_SPAN) : 0;
    return kv->type == HN_Q8_0 ? hn_kv_bytes(HN_BF16, kv->v_dim, HN_KEY_SPAN) : in_keys;
}
static size_t copied_bytes(const hn_kv *kv) {
    const size_t bytes = copied_keys_bytes(kv) + copied_values_bytes(kv);
    return (bytes + 63) / 64 * 64;
}

/* A rank_scratch for every rank, then its copies of a span, then the partial results: of as many spans as there are, or as the cap
 * allows. */
size_t hn_cpu_attention_scratch(const hn_backend *b, int max_rows, int heads, const hn_kv *kv, int max_positions) {
    const size_t spans = ((size_t)max_positions + HN_KEY_SPAN - 1) / HN_KEY_SPAN + 1, ranks = (size_t)hn_cpu_threads(b);
    const size_t parts = hn_least_size(part_bytes(max_rows, heads, kv->v_dim) * spans, ranks * part_cap);
    return ranks * (sizeof(rank_scratch) + copied_bytes(kv)) + parts;
}

/* ---- queries of an item ---------------------------------------------------------------------------------------- */

static int row_of(const call *c, int query) { return query / c->group; }
static int head_of(const call *c, const bundle *g, int query) { return g->kv_head * c->group + query % c->group; }
static int seq_of(const call *c, int query) { return hn_host_i32(c->rows->seq)[row_of(c, query)]; }

static const float *query_at(const call *c, const bundle *g, int query) {
    return c->q + (size_t)c->ldq * (size_t)row_of(c, query) + head_of(c, g, query) * c->kv->head_dim;
}

static void bundle_start(const call *c, bundle *g, int kv_head, int number) {
    const int dim = c->kv->head_dim;
    g->kv_head = kv_head;
    g->first = number * c->bundle;
    g->end = hn_least(g->first + c->bundle, c->n * c->group);
    memset(g->any, 0, sizeof g->any);
    for (int i = g->first; c->bf16 && i < g->end; i++) {
        c->kernels->round_bf16(query_at(c, g, i), dim, g->rounded + (i - g->first) * dim);
    }
}

/* Queries [i, result) of the bundle read the same pages of a span. */
static int alike_end(const call *c, const bundle *g, int i, int span) {
    int seq = seq_of(c, i);
    while (seq + 1 < c->n_seqs && c->alike[seq + 1] > span) seq++;
    return hn_least(hn_host_i32(c->rows->seq_first)[seq + 1] * c->group, g->end);
}

/* Queries [i, end) that see something of the span. */
static void tile_fill(const call *c, tile *t, const bundle *g, int i, int end) {
    const int dim = c->kv->head_dim;
    t->n = 0;
    for (; i < end; i++) {
        const int row = row_of(c, i);
        if (!hn_attention_sees(c, row, t->span, &t->lo[t->n], &t->hi[t->n])) continue;
        t->row[t->n] = row;
        t->head[t->n] = head_of(c, g, i);
        t->at[t->n] = i - g->first;
        t->q[t->n] = query_at(c, g, i);
        t->q16[t->n] = g->rounded + (i - g->first) * dim;
        t->n++;
    }
}

/* What is read after queries up to `end` of the bundle have been computed: other pages of this span, the next span, the next head. */
static void set_next(const call *c, tile *t, const bundle *g, int end) {
    t->n_next = 0;
    if (end < g->end) {
        t->next[t->n_next].seq = seq_of(c, end);
        t->next[t->n_next].kv_head = g->kv_head;
        t->next[t->n_next++].span = t->span;
        return;
    }
    for (int i = 0, head = g->kv_head, span = t->span; i < 2; i++) {
        const bool last = span == c->last_span;
        head += last;
        span = last ? c->first_span : span + 1;
        if (head >= c->kv->kv_heads) return;
        t->next[t->n_next].seq = seq_of(c, g->first);
        t->next[t->n_next].kv_head = head;
        t->next[t->n_next++].span = span;
    }
}

static float *part_at(const call *c, int row, int head, int number) {
    const size_t i = ((size_t)row * (size_t)c->how->heads + (size_t)head) * (size_t)(c->wave + 1) + (size_t)number;
    return c->part + i * part_stride(c->kv->v_dim);
}

/* The maximum of what query i of a bundle has so far; of nothing: m. */
static float maximum_of(const bundle *g, int i, float m) { return g->any[i] ? g->m[i] : m; }

/* One span's result becomes that of query i of a bundle, or is added to it: old and new count exp(their maxima - top), top the greater. */
static void merge_span(const call *c, bundle *g, int i, float m, float l, const float *o, float old_times, float new_times) {
    int dim = c->kv->v_dim;
    float *to = g->o + i * dim;
    if (!g->any[i]) {
        g->any[i] = true;
        g->m[i] = m;
        g->l[i] = l;
        memcpy(to, o, (size_t)dim * sizeof *o);
        return;
    }
    const float top = m > g->m[i] ? m : g->m[i];
    const float a = top == g->m[i] ? 1 : old_times, b = top == m ? 1 : new_times; /* e^0 is 1 */
    g->m[i] = top;
    g->l[i] = fmaf(l, b, g->l[i] * a);
    c->kernels->merge(to, o, dim, a, b);
}

/* The tile's results to those of its queries. */
static void merge_tile(const call *c, const tile *t, bundle *g) {
    float times[2][HN_QUERIES];
    for (int i = 0; i < t->n; i++) {
        const float before = maximum_of(g, t->at[i], t->m[i]), top = t->m[i] > before ? t->m[i] : before;
        times[0][i] = before - top;
        times[1][i] = t->m[i] - top;
    }
    for (int k = 0; k < 2; k++) c->kernels->exps(times[k], t->n);
    for (int i = 0; i < t->n; i++) {
        merge_span(c, g, t->at[i], t->m[i], t->l[i], t->o + i * c->kv->v_dim, times[0][i], times[1][i]);
    }
}

/* The tile's results to scratch. wave: its first span. */
static void keep_parts(const call *c, const tile *t, int wave) {
    const int dim = c->kv->v_dim;
    for (int i = 0; i < t->n; i++) {
        float *p = part_at(c, t->row[i], t->head[i], 1 + t->span - wave);
        p[0] = t->m[i];
        p[1] = t->l[i];
        memcpy(p + STATS, t->o + i * dim, (size_t)dim * sizeof(float));
    }
}

static float *partial_of(const call *c, int row, int head, int span) {
    const hn_span_mass *m = &c->how->mass;
    return hn_host_f32(m->partial) + 2 * (((size_t)row * (size_t)c->how->heads + (size_t)head) * (size_t)m->spans + (size_t)span);
}

/* The maxima and sums of a tile's queries, from which their shares are made when all spans are over. */
static void keep_mass(const call *c, const tile *t) {
    assert(t->span < c->how->mass.spans);
    for (int i = 0; i < t->n; i++) {
        float *p = partial_of(c, t->row[i], t->head[i], t->span);
        p[0] = t->m[i];
        p[1] = t->l[i];
    }
}

/* Adds the shares of a head's spans. */
static void add_shares(const call *c, int row, int head, float *to) {
    float most = c->sinks ? c->sinks[head] : -INFINITY, sum = 0;
    int lo, hi;
    for (int span = c->first_span; span <= c->last_span; span++)
        if (hn_attention_sees(c, row, span, &lo, &hi)) most = fmaxf(most, partial_of(c, row, head, span)[0]);
    for (int again = 0; again < 2; again++) {
        for (int span = c->first_span; span <= c->last_span; span++) {
            if (!hn_attention_sees(c, row, span, &lo, &hi)) continue;
            const float *p = partial_of(c, row, head, span), part = p[1] * hn_exp(p[0] - most);
            if (again)
                to[span] += part / sum;
            else
                sum += part;
        }
        if (!again && c->sinks) sum += hn_exp(c->sinks[head] - most);
    }
}

/* This rank's rows. */
static void write_mass(const call *c) {
    const hn_span_mass *m = &c->how->mass;
    int first, last;
    hn_share(c->ex, c->n * c->kv->kv_heads, &first, &last);
    for (int i = first; i < last; i++) {
        float *to = hn_host_f32(m->to) + (size_t)i * (size_t)m->spans;
        const int row = i / c->kv->kv_heads, head = i % c->kv->kv_heads * c->group;
        for (int span = 0; span < m->spans; span++) to[span] = 0;
        for (int k = 0; k < c->group; k++) add_shares(c, row, head + k, to);
        for (int span = 0; span < m->spans; span++) to[span] /= (float)c->group;
    }
}

/* One span for all queries of a bundle. */
static void run_span(const call *c, tile *t, bundle *g, int span, int wave) {
    t->span = span;
    t->kv_head = g->kv_head;
    for (int i = g->first, end; i < g->end; i = end) {
        end = alike_end(c, g, i, span);
        bool fetch = true; /* the first tile that sees something reads all for the others */
        t->seq = seq_of(c, i);
        set_next(c, t, g, end);
        for (int from = i; from < end; from += HN_QUERIES) {
            tile_fill(c, t, g, from, hn_least(from + HN_QUERIES, end));
            if (t->n == 0) continue;
            hn_attention_span(c, t, fetch);
            fetch = false;
            if (c->how->mass.to.mem) keep_mass(c, t);
            if (c->split)
                keep_parts(c, t, wave);
            else
                merge_tile(c, t, g);
        }
    }
}

/* The factor of the merged values: 1 / l, including the head's sink. */
static float factor(const call *c, const bundle *g, int i, int head) {
    if (!c->sinks) return 1.0f / g->l[i];
    float sink = c->sinks[head], top = sink > g->m[i] ? sink : g->m[i], a = hn_exp(g->m[i] - top);
    return a / fmaf(g->l[i], a, hn_exp(sink - top));
}

static void write_out(const call *c, const bundle *g, int i, int row, int head) {
    int dim = c->kv->v_dim;
    float *out = c->out + (size_t)c->ldo * (size_t)row + head * dim;
    c->kernels->scale(out, g->o + i * dim, dim, factor(c, g, i, head));
    if (c->forms) hn_cpu_put_inputs(hn_cpu(c->ex), out, dim, c->act, c->forms, row, head * dim / HN_GROUP);
}

/* ---- items of all spans -------------------------------------------------------------------------------------------- */

static void run_whole(const call *c, rank_scratch *mine) {
    bundle *g = &mine->g;
    hn_claim claim = hn_cpu_claim(c->ex, c->kv->kv_heads * c->bundles);
    for (int item; (item = hn_claim_next(&claim)) >= 0;) {
        bundle_start(c, g, item / c->bundles, item % c->bundles);
        for (int span = c->first_span; span <= c->last_span; span++) run_span(c, &mine->t, g, span, 0);
        for (int i = g->first; i < g->end; i++) write_out(c, g, i - g->first, row_of(c, i), head_of(c, g, i));
    }
}

/* ---- items of single spans, in waves --------------------------------------------------------------------------------- */

/* Merges the partial results of spans [from, end) of one query; after the last wave the result is written. */
static void merge_query(const call *c, bundle *g, int row, int head, int from, int end) {
    float *kept = part_at(c, row, head, 0);
    const int dim = c->kv->v_dim;
    int lo, hi;
    g->any[0] = from > c->first_span && kept[2] != 0;
    if (g->any[0]) {
        g->m[0] = kept[0];
        g->l[0] = kept[1];
        memcpy(g->o, kept + STATS, (size_t)dim * sizeof(float));
    }
    for (int span = from; span < end; span++) {
        if (!hn_attention_sees(c, row, span, &lo, &hi)) continue;
        const float *p = part_at(c, row, head, 1 + span - from);
        const float before = maximum_of(g, 0, p[0]), top = p[0] > before ? p[0] : before;
        merge_span(c, g, 0, p[0], p[1], p + STATS, hn_exp(before - top), hn_exp(p[0] - top));
    }
    if (end > c->last_span) {
        write_out(c, g, 0, row, head);
        return;
    }
    kept[0] = g->m[0];
    kept[1] = g->l[0];
    kept[2] = g->any[0];
    memcpy(kept + STATS, g->o, (size_t)dim * sizeof(float));
}

/* This rank's share of the queries: neighbouring heads of all rows, most of whose items it ran. */
static void merge_wave(const call *c, bundle *g, int from, int end) {
    int first, last;
    hn_share(c->ex, c->n * c->how->heads, &first, &last);
    for (int i = first; i < last; i++) merge_query(c, g, i % c->n, i / c->n, from, end);
}

static void run_split(const call *c, rank_scratch *mine) {
    bundle *g = &mine->g;
    for (int from = c->first_span, end; from <= c->last_span; from = end) {
        end = hn_least(from + c->wave, c->last_span + 1);
        const int spans = end - from;
        int number = -1; /* of the bundle that was started */
        hn_claim claim = hn_cpu_claim(c->ex, c->kv->kv_heads * c->bundles * spans);
        for (int item; (item = hn_claim_next(&claim)) >= 0;) {
            if (item / spans != number) {
                number = item / spans;
                bundle_start(c, g, number / c->bundles, number % c->bundles);
            }
            run_span(c, &mine->t, g, from + item % spans, from);
        }
        hn_cpu_barrier(c->ex);
        merge_wave(c, g, from, end);
        if (end <= c->last_span) hn_cpu_barrier(c->ex);
    }
}

/* ---- the operation --------------------------------------------------------------------------------------------- */

/* Spans that any row sees. */
static void find_spans(call *c) {
    int min = c->from[0], max = c->last[0];
    for (int row = 1; row < c->n; row++) {
        min = hn_least(min, c->from[row]);
        max = hn_most(max, c->last[row]);
    }
    c->first_span = hn_kv_seen_from(c->how, min) / HN_KEY_SPAN;
    c->last_span = max / HN_KEY_SPAN;
}

/* Whole spans of committed positions that two neighbouring texts have in the same pages. */
static int spans_alike(const call *c, int seq) {
    const int32_t *committed = hn_host_i32(c->rows->committed), a_page = c->kv->page_rows;
    const int32_t *b = hn_host_i32(c->rows->page_table) + (size_t)c->rows->page_stride * (size_t)seq, *a = b - c->rows->page_stride;
    const int spans = hn_least(hn_least(committed[seq - 1], committed[seq]) / HN_KEY_SPAN, c->last_span + 1);
    int page = c->first_span * HN_KEY_SPAN / a_page;
    while (page < spans * HN_KEY_SPAN / a_page && a[page] == b[page]) page++;
    return page * a_page / HN_KEY_SPAN;
}

static void find_alike(call *c) {
    for (int seq = 1; seq < c->n_seqs; seq++) c->alike[seq] = spans_alike(c, seq);
}

/* Lots of nearly equal size, of `most` queries at most. */
static void cut_bundles(call *c, int most) {
    const int all = c->n * c->group, bundles = (all + most - 1) / most;
    c->bundle = (all + bundles - 1) / bundles;
    c->bundles = (all + c->bundle - 1) / c->bundle;
}

/* The most queries of a kv head that a text has. */
static int most_queries(const call *c) {
    const int32_t *first = hn_host_i32(c->rows->seq_first);
    int most = 0;
    for (int seq = 0; seq < c->n_seqs; seq++) most = hn_most(most, (first[seq + 1] - first[seq]) * c->group);
    return most;
}

/* Cuts the call into items, enough of them for every rank: smaller bundles, single spans, or both. */
static void plan(call *c) {
    const int wanted = c->ex->ranks > 1 ? ITEMS_A_RANK * c->ex->ranks : 1, heads = c->kv->kv_heads;
    const int all = c->n * c->group, spans = c->last_span - c->first_span + 1, wanted_bundles = (wanted + heads - 1) / heads;
    const size_t bytes = part_bytes(c->n, c->how->heads, c->kv->v_dim);
    cut_bundles(c, BUNDLE);
    if (heads * c->bundles >= wanted) return;
    const int fewer = all / wanted_bundles;
    if (fewer >= hn_least(LEAST_LOT, most_queries(c))) {
        cut_bundles(c, fewer);
        return;
    }
    c->wave = hn_least(spans, (int)((size_t)c->ex->ranks * part_cap / bytes) - 1);
    c->wave = hn_least(c->wave, ITEMS_MAX / (heads * c->bundles));
    c->split = spans > 1 && c->wave > 0;
    const int full = c->split ? heads * c->bundles * hn_most(c->wave - 1, 1) : heads * c->bundles; /* the last span is often nearly empty */
    if (full < wanted) cut_bundles(c, hn_most(1, c->bundle / ((wanted + full - 1) / full)));
}

bool hn_cpu_attention_in_bf16(const hn_backend *b, hn_dtype cache) {
    return !b->f32 && (cache == HN_BF16 || (cache == HN_Q8_0 && hn_cpu_of(b)->kernels->q8_as_bf16));
}

void hn_cpu_attention(const hn_exec *ex, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how, hn_matrix q,
                      hn_matrix out, hn_act a, hn_buf scratch) {
    assert(q.cols == how->heads * kv->head_dim && out.cols == how->heads * kv->v_dim);
    assert(kv->head_dim <= HN_MAX_HEAD_DIM && kv->v_dim <= HN_MAX_HEAD_DIM && how->heads % kv->kv_heads == 0);
    assert(kv->head_dim % hn_kv_multiple(kv->type) == 0 && kv->v_dim % hn_kv_multiple(kv->type) == 0);
    rank_scratch *const scratches = (rank_scratch *)(void *)hn_host(scratch);
    unsigned char *const copies = (unsigned char *)(scratches + ex->ranks), *const own = copies + copied_bytes(kv) * (size_t)ex->rank;
    const bool whole = kv->v_dim % HN_GROUP == 0; /* heads are whole groups: the rank that finishes one can quantise it */
    const bool bf16 = hn_cpu_attention_in_bf16(ex->backend, kv->type);
    call c = {.ex = ex, .rows = rows, .n = hn_cpu_number(rows->n), .n_seqs = hn_cpu_number(rows->n_seqs), .kv = kv,
              .kernels = hn_cpu(ex)->kernels, .how = how,
              .sinks = how->sinks.mem ? hn_host_f32(how->sinks) : NULL, .from = hn_host_i32(rows->from),
              .last = hn_host_i32(how->ahead ? rows->last : rows->position), .bf16 = bf16, .widened = bf16 && kv->type == HN_Q8_0,
              .tiles = bf16 && hn_cpu(ex)->kernels->sums_of_tiles,
              .group = how->heads / kv->kv_heads, .act = &a, .forms = whole ? a.forms : 0, .q = hn_host_f32(q.at), .ldq = q.ld,
              .out = hn_host_f32(out.at), .ldo = out.ld, .part = (float *)(void *)(copies + copied_bytes(kv) * (size_t)ex->ranks)};
    assert(c.n > 0);
    scratches[ex->rank].t.copy = (hn_span_copy){.keys = own, .values = own + copied_keys_bytes(kv)};
    find_spans(&c);
    find_alike(&c);
    plan(&c);
    if (c.split) {
        run_split(&c, scratches + ex->rank);
    } else {
        run_whole(&c, scratches + ex->rank);
    }
    hn_cpu_barrier(ex);
    if (how->mass.to.mem) {
        write_mass(&c);
        hn_cpu_barrier(ex);
    }
    if (a.forms && !whole) hn_cpu_quantise(ex, rows->n, out, a);
}
