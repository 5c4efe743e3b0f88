/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_attention_span.c - one span of positions for a tile of queries of one kv head: scores, softmax, weighted values.
 *
 * Chunks of 16 positions whose cache slots equal their positions are read in place, for all queries of the tile together.
 * Chunks that hold positions of a draft tree differ between rows: they are gathered slot by slot, one chunk at a time, for
 * a row's own queries. Rows follow each other in a tree, so only the slots that differ from those of the row before are copied.
 * Values that are a part of keys are brought to their own layout once for all tiles that read a span one after another.
 *
 * Over a BF16 cache the queries and the weights of values are rounded to bf16 and multiplied in pairs (kernels.h). Ranges
 * of positions are cut between pairs only, at levels with sums of tiles between chunks only, so that what is summed together is
 * parted only by the range that its row sees. A Q8_0 cache is read the same way at levels that widen it: a span once for all tiles.
 */
#include <assert.h>
#include <string.h>

#include "base/least.h"
#include "ops/cpu_attention.h"

enum { WIDENED_AT_ONCE = 4 }; /* chunks */

static const unsigned char *slot_page(const hn_attention_call *c, int seq, int slot) {
    const int32_t *pages = hn_host_i32(c->rows->page_table) + (size_t)c->rows->page_stride * (size_t)seq;
    assert(pages[slot / c->kv->page_rows] != HN_NO_PAGE);
    return (const unsigned char *)hn_host(c->kv->pool) + c->kv->page_bytes * (size_t)pages[slot / c->kv->page_rows];
}

static int chunks_to(int hi) { return (hi + HN_KEY_CHUNK - 1) / HN_KEY_CHUNK; }

/* Chunks [0, result) of the span have slot = position for every row of the sequence. */
static int shared_chunks(const hn_attention_call *c, const hn_attention_tile *t) {
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

/* V of HN_KEY_CHUNK rows of the one head whose V is in K, as in a page of as many rows. key: the place of the first one's K in the page,
 * which has the other rows' behind it. */
static void values_of_keys(const hn_attention_call *c, const unsigned char *page, hn_kv_row key, unsigned char *to) {
    const hn_kv own = chunk_page(c->kv);
    if (c->kv->type == HN_BF16) {
        c->kernels->keys_to_values_bf16(page + key.at, key.step, c->kv->v_dim, to);
        return;
    }
    key.count = c->kv->v_dim;
    key.scales = 0;
    if (c->kv->type == HN_Q8_0) {
        c->kernels->keys_to_values_q8(page + key.at, key.step, c->kv->v_dim, to);
        key.count = 0;
        key.scales = c->kv->v_dim / HN_KV_SCALED;
    }
    for (int p = 0; p < HN_KEY_CHUNK; p++) {
        const hn_kv_row value = hn_kv_value_row(&own, 0, p);
        hn_kv_copy(to, &value, page, &key);
        key.at += key.size;
        key.scale_at += sizeof(float);
    }
}

/* The place of chunk i's keys, or values, in a copy. */
static unsigned char *copied_keys(const hn_attention_call *c, const hn_attention_tile *t, int i) {
    return t->copy.keys + hn_kv_bytes(HN_BF16, c->kv->head_dim, HN_KEY_CHUNK) * (size_t)i;
}

static unsigned char *copied_values(const hn_attention_call *c, const hn_attention_tile *t, int i) {
    return t->copy.values + hn_kv_bytes(c->widened ? HN_BF16 : c->kv->type, c->kv->v_dim, HN_KEY_CHUNK) * (size_t)i;
}

/* Sets the values of chunk i to a copy. */
static void enter_copied_values(const hn_attention_call *c, const hn_attention_tile *t, hn_keys *keys, int i) {
    const hn_kv own = chunk_page(c->kv);
    const hn_kv_row v = hn_kv_value_row(&own, 0, 0);
    enter_values(copied_values(c, t, i), &v, keys, i);
}

/* Sets keys and values of chunk i, or one of them, to BF16 in pages of one chunk. */
static void enter_widened(const unsigned char *k, const unsigned char *v, hn_keys *keys, int i) {
    keys->k[i] = k;
    keys->v[i] = v;
    keys->k_stride[i] = HN_KEY_CHUNK;
}

/* Chunks as kernels read them, if that is not where they are in the pages. */
static void enter_copies(const hn_attention_call *c, const hn_attention_tile *t, int c0, int c1, hn_keys *keys) {
    for (int i = c0; i < c1; i++) {
        if (c->widened) {
            enter_widened(copied_keys(c, t, i), copied_values(c, t, i), keys, i);
        } else if (c->kv->v_in_k) {
            enter_copied_values(c, t, keys, i);
        }
    }
}

/* Whether n queries read a Q8_0 cache as it is stored. */
static bool reads_codes(const hn_attention_call *c, int n) {
    return c->widened && !c->tiles && !c->kv->v_in_k && n <= HN_CODE_QUERIES;
}

/* Chunks where they are in the pages. */
static void enter_pages(const hn_attention_call *c, const hn_attention_tile *t, int c0, int c1, hn_keys *keys) {
    keys->codes = reads_codes(c, t->n);
    for (int i = c0; i < c1; i++) {
        const int slot = t->span * HN_KEY_SPAN + i * HN_KEY_CHUNK;
        enter_chunk(c->kv, slot_page(c, t->seq, slot), t->kv_head, slot % c->kv->page_rows, keys, i);
    }
}

/* Copies the values of chunks, which are in their keys. */
static void copy_values_of_keys(const hn_attention_call *c, const hn_attention_tile *t, int c0, int c1) {
    for (int i = c0; i < c1; i++) {
        const int slot = t->span * HN_KEY_SPAN + i * HN_KEY_CHUNK;
        const hn_kv_row key = hn_kv_key_row(c->kv, t->kv_head, slot % c->kv->page_rows);
        values_of_keys(c, slot_page(c, t->seq, slot), key, copied_values(c, t, i));
    }
}

/* Widens keys of chunks, and values that are in them. */
static void widen_keys(const hn_attention_call *c, const hn_attention_tile *t, const hn_keys *stored, int c0, int c1) {
    const size_t step = hn_kv_lane_bytes(HN_BF16) * HN_KEY_CHUNK;
    c->kernels->keys_q8_to_bf16(stored, c0, c1, c->kv->head_dim, copied_keys(c, t, c0));
    for (int i = c0; c->kv->v_in_k && i < c1; i++) {
        c->kernels->keys_to_values_bf16(copied_keys(c, t, i), step, c->kv->v_dim, copied_values(c, t, i));
    }
}

/* The tile has a copy of chunks [c0, c1); else it will have. */
static bool copied(hn_attention_tile *t, int c0, int c1) {
    hn_span_copy *y = &t->copy;
    if (y->seq == t->seq && y->kv_head == t->kv_head && y->span == t->span && c0 >= y->from && c1 <= y->to) return true;
    *y = (hn_span_copy){y->keys, y->values, t->seq, t->kv_head, t->span, c0, c1};
    return false;
}

/* Adds the keys, or the values, of the first `hi` positions of a span of a sequence, page by page; not of a page that is nearly
 * empty. */
static void look_ahead(const hn_attention_call *c, int seq, int head, int span, int hi, bool of_keys, hn_read_ahead *a) {
    const hn_kv *kv = c->kv;
    if (kv->v_in_k && !of_keys) return;
    const int32_t *pages = hn_host_i32(c->rows->page_table) + (size_t)c->rows->page_stride * (size_t)seq;
    for (int p = 0; p + kv->page_rows / 2 < hi; p += kv->page_rows) {
        const int32_t page = pages[(span * HN_KEY_SPAN + p) / kv->page_rows];
        if (page == HN_NO_PAGE) continue;
        const hn_kv_row row = of_keys ? hn_kv_key_row(kv, head, 0) : hn_kv_value_row(kv, head, 0);
        a->run[a->count].at = (const unsigned char *)hn_host(kv->pool) + kv->page_bytes * (size_t)page + row.at;
        a->run[a->count++].bytes = hn_kv_bytes(kv->type, of_keys ? kv->head_dim : kv->v_dim, kv->page_rows);
    }
}

/* The keys that the last row of a text sees in what is read next. */
static void look_at_next(const hn_attention_call *c, const hn_attention_tile *t, hn_read_ahead *a) {
    for (int i = 0, lo, hi; i < t->n_next; i++) {
        const int row = hn_host_i32(c->rows->seq_first)[t->next[i].seq + 1] - 1;
        if (!hn_attention_sees(c, row, t->next[i].span, &lo, &hi)) continue;
        look_ahead(c, t->next[i].seq, t->next[i].kv_head, t->next[i].span, hi, true, a);
    }
}

/* The slot of a position on a row's path. */
static int path_slot(const hn_attention_call *c, const hn_attention_tile *t, int row, int position) {
    int beyond = position - hn_host_i32(c->rows->committed)[t->seq];
    if (beyond < 0) return position;
    return hn_host_i32(c->rows->path_slots)[hn_host_i32(c->rows->path_start)[row] + beyond];
}

/* Widens chunk i, gathered keys or values. from_keys: values that are in the keys. */
static void widen_gathered(const hn_attention_call *c, hn_attention_tile *t, int i, bool of_keys, bool from_keys, hn_keys *keys) {
    unsigned char *to = t->own.widened;
    if (of_keys) {
        c->kernels->keys_q8_to_bf16(keys, i, i + 1, c->kv->head_dim, to);
    } else {
        c->kernels->values_q8_to_bf16(keys, i, i + 1, c->kv->v_dim, to);
    }
    if (from_keys) {
        c->kernels->keys_to_values_bf16(to, hn_kv_lane_bytes(HN_BF16) * HN_KEY_CHUNK, c->kv->v_dim, copied_values(c, t, i));
        to = copied_values(c, t, i);
    }
    enter_widened(to, to, keys, i);
}

/* Gathers the keys or the values of positions in chunk i that queries [first, end), which are one row's, see, as in a page of 16 rows.
 * Positions that they do not see are left as they are, and are not read. */
static void gather_chunk(const hn_attention_call *c, hn_attention_tile *t, int first, int end, int i, bool of_keys, hn_keys *keys) {
    const hn_kv own = chunk_page(c->kv);
    const bool from_keys = !of_keys && c->kv->v_in_k;
    of_keys |= from_keys;
    for (int p = 0; p < HN_KEY_CHUNK; p++) {
        int at = i * HN_KEY_CHUNK + p;
        if (at < t->lo[first] || at >= t->hi[first]) continue;
        int slot = path_slot(c, t, t->row[first], t->span * HN_KEY_SPAN + at), row = slot % c->kv->page_rows;
        if (slot == t->own.slot[p]) continue; /* the row before has the same ancestor here */
        const hn_kv_row from = of_keys ? hn_kv_key_row(c->kv, t->kv_head, row) : hn_kv_value_row(c->kv, t->kv_head, row),
                        to = of_keys ? hn_kv_key_row(&own, 0, p) : hn_kv_value_row(&own, 0, p);
        hn_kv_copy(t->own.at, &to, slot_page(c, t->seq, slot), &from);
        t->own.slot[p] = slot;
    }
    keys->ahead = NULL;
    keys->codes = reads_codes(c, end - first);
    enter_chunk(&own, t->own.at, 0, 0, keys, i);
    if (keys->codes) return;
    if (c->widened) {
        widen_gathered(c, t, i, of_keys, from_keys, keys);
    } else if (from_keys) {
        values_of_keys(c, t->own.at, hn_kv_key_row(&own, 0, 0), copied_values(c, t, i));
        enter_copied_values(c, t, keys, i);
    }
}

/* Scores of queries [i, end) with chunks [c0, c1). */
static void scores(const hn_attention_call *c, hn_attention_tile *t, const hn_keys *keys, int c0, int c1, int i, int end) {
    float *s = t->s + i * HN_KEY_SPAN;
    const int dim = c->kv->head_dim;
    if (keys->codes) {
        c->kernels->scores_q8_bf16(keys, c0, c1, t->q16 + i, end - i, dim, c->how->scale, s);
    } else if (c->bf16) {
        c->kernels->scores_bf16(keys, c0, c1, t->q16 + i, end - i, dim, c->how->scale, s);
    } else {
        c->kernels->scores(c->kv->type, keys, c0, c1, t->q + i, end - i, dim, c->how->scale, s);
    }
}

/* Adds values of positions [lo, hi) to the results of queries [i, end). */
static void values(const hn_attention_call *c, hn_attention_tile *t, const hn_keys *keys, int lo, int hi, int i, int end) {
    const int dim = c->kv->v_dim, at = i * HN_KEY_SPAN;
    if (lo >= hi) return;
    if (keys->codes) {
        c->kernels->values_q8_bf16(keys, lo, hi, t->e + at, end - i, dim, t->o + i * dim, dim);
    } else if (c->bf16) {
        c->kernels->values_bf16(keys, lo, hi, t->e + at, end - i, dim, t->o + i * dim, dim);
    } else {
        c->kernels->values(c->kv->type, keys, lo, hi, t->s + at, end - i, dim, t->o + i * dim, dim);
    }
}

/* Queries [i, result) belong to one row. */
static int row_end(const hn_attention_tile *t, int i) {
    int end = i + 1;
    while (end < t->n && t->row[end] == t->row[i]) end++;
    return end;
}

/* The first and the last chunk, from `shared` on, that any of the tile's rows has of its own. */
static void own_chunks(const hn_attention_tile *t, int shared, int *first, int *end) {
    *first = HN_KEY_CHUNKS;
    *end = 0;
    for (int i = 0; i < t->n; i++) {
        *first = hn_least(*first, hn_most(t->lo[i] / HN_KEY_CHUNK, shared));
        *end = hn_most(*end, chunks_to(t->hi[i]));
    }
}

/* Scores of all queries with each row's own positions, from chunk `shared` on. */
static void own_scores(const hn_attention_call *c, hn_attention_tile *t, int shared) {
    int first, last;
    own_chunks(t, shared, &first, &last);
    memset(t->own.slot, 0xff, sizeof t->own.slot); /* none */
    for (int j = first; j < last; j++) {
        for (int i = 0, end; i < t->n; i = end) {
            hn_keys own;
            end = row_end(t, i);
            if (j < t->lo[i] / HN_KEY_CHUNK || j >= chunks_to(t->hi[i])) continue;
            gather_chunk(c, t, i, end, j, true, &own);
            scores(c, t, &own, j, j + 1, i, end);
        }
    }
}

/* Values of chunks in place for queries [i, end), whose ranges may differ: the common part for all queries at once. */
static void shared_values(const hn_attention_call *c, hn_attention_tile *t, const hn_keys *keys, int i, int end, int limit) {
    const int whole = c->tiles ? HN_KEY_CHUNK : 2; /* positions that are summed before others are added */
    int lo = 0, hi = limit;
    for (int x = i; x < end; x++) {
        lo = hn_most(lo, t->lo[x]);
        hi = hn_least(hi, t->hi[x]);
    }
    lo = (lo + whole - 1) / whole * whole;
    hi = hn_most(hi / whole * whole, lo);
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

static void own_values(const hn_attention_call *c, hn_attention_tile *t, int shared) {
    int first, last;
    own_chunks(t, shared, &first, &last);
    memset(t->own.slot, 0xff, sizeof t->own.slot); /* none */
    for (int j = first; j < last; j++) {
        const int lo = j * HN_KEY_CHUNK;
        for (int i = 0, end; i < t->n; i = end) {
            hn_keys own;
            end = row_end(t, i);
            if (j < t->lo[i] / HN_KEY_CHUNK || j >= chunks_to(t->hi[i])) continue;
            gather_chunk(c, t, i, end, j, false, &own);
            values(c, t, &own, hn_most(lo, t->lo[i]), hn_least(lo + HN_KEY_CHUNK, t->hi[i]), i, end);
        }
    }
}

static void tile_softmax(const hn_attention_call *c, hn_attention_tile *t, int i) {
    float *s = t->s + i * HN_KEY_SPAN;
    if (c->bf16) {
        c->kernels->softmax_bf16(s, t->lo[i], t->hi[i], &t->m[i], &t->l[i], t->e + i * HN_KEY_SPAN);
    } else {
        c->kernels->softmax(s, t->lo[i], t->hi[i], &t->m[i], &t->l[i]);
    }
}

/* As many queries at once as a level's kernels handle best. */
static int parts_of(const hn_attention_call *c, const hn_attention_tile *t) {
    const int rows = c->tiles ? HN_QUERIES : c->kernels->value_rows;
    return (t->n + rows - 1) / rows;
}

/* Values of chunks in place. */
static void tile_values(const hn_attention_call *c, hn_attention_tile *t, const hn_keys *keys, int limit) {
    const int parts = parts_of(c, t);
    for (int part = 0; part < parts; part++) {
        shared_values(c, t, keys, t->n * part / parts, t->n * (part + 1) / parts, limit);
    }
}

/* Scores of all queries with chunks [c0, c1) of a Q8_0 cache, which are widened a few at a time, so that they are in the nearest cache
 * when they are read again; then the values are widened. keys: as they are stored, and after it the copies. ahead, next: what is
 * prefetched meanwhile, or NULL. */
static void widened_scores(const hn_attention_call *c, hn_attention_tile *t, int c0, int c1, hn_keys *keys, hn_read_ahead *ahead,
                           hn_read_ahead *next) {
    hn_keys stored = *keys;
    stored.ahead = ahead;
    keys->ahead = NULL;
    enter_copies(c, t, c0, c1, keys);
    for (int i = c0, end; i < c1; i = end) {
        end = hn_least(i + WIDENED_AT_ONCE, c1);
        widen_keys(c, t, &stored, i, end);
        scores(c, t, keys, i, end, 0, t->n);
    }
    stored.ahead = next;
    if (!c->kv->v_in_k && c0 < c1) c->kernels->values_q8_to_bf16(&stored, c0, c1, c->kv->v_dim, copied_values(c, t, c0));
}

/* Scores of all queries with chunks [c0, c1), and copies of what is read in another form. */
static void scores_in_place(const hn_attention_call *c, hn_attention_tile *t, int c0, int c1, hn_keys *keys, hn_read_ahead *ahead,
                            hn_read_ahead *next) {
    if ((c->widened || c->kv->v_in_k) && !keys->codes) {
        const bool have = copied(t, c0, c1);
        if (c->widened && !have) {
            widened_scores(c, t, c0, c1, keys, ahead, next);
            return;
        }
        if (!have) copy_values_of_keys(c, t, c0, c1);
        enter_copies(c, t, c0, c1, keys);
    }
    keys->ahead = ahead;
    if (c0 < c1) scores(c, t, keys, c0, c1, 0, t->n);
}

void hn_attention_span(const hn_attention_call *c, hn_attention_tile *t, bool fetch) {
    const int shared = shared_chunks(c, t);
    hn_keys keys;
    hn_read_ahead ahead = {.every = parts_of(c, t)}, next = ahead;
    int hi = 0, lo = HN_KEY_SPAN;
    for (int i = 0; i < t->n; i++) {
        hi = hn_most(hi, t->hi[i]);
        lo = hn_least(lo, t->lo[i]);
    }
    const int in_place = hn_least(chunks_to(hi), shared);
    enter_pages(c, t, lo / HN_KEY_CHUNK, in_place, &keys);
    if (fetch) {
        look_ahead(c, t->seq, t->kv_head, t->span, hi, false, &ahead);
        look_at_next(c, t, &next);
    }
    scores_in_place(c, t, lo / HN_KEY_CHUNK, in_place, &keys, fetch ? &ahead : NULL, fetch ? &next : NULL);
    own_scores(c, t, shared);
    for (int i = 0; i < t->n; i++) tile_softmax(c, t, i);
    memset(t->o, 0, (size_t)(t->n * c->kv->v_dim) * sizeof(float));
    keys.ahead = fetch ? &next : NULL;
    tile_values(c, t, &keys, in_place * HN_KEY_CHUNK);
    own_values(c, t, shared);
}
