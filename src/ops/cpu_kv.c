/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_kv.c - rows of the cache: rotated and stored, copied, moved. Layout of their elements: kv.h. No value depends on
 * which rank computes it. */
#include <assert.h>
#include <string.h>

#include "ops/cpu_mem.h"
#include "ops/kernels.h"

/* Copies `count` pieces of `size` bytes, at steps of `to_step` and `from_step` bytes. */
static void copy_apart(unsigned char *to, size_t to_step, const unsigned char *from, size_t from_step, size_t size,
                       int count) {
    if (to_step == size && from_step == size) {
        memcpy(to, from, size * (size_t)count);
        return;
    }
    assert(size == 1 || size == 2 || size == 4); /* a constant for the compiler */
    if (size == 1) for (int i = 0; i < count; i++, to += to_step, from += from_step) memcpy(to, from, 1);
    if (size == 2) for (int i = 0; i < count; i++, to += to_step, from += from_step) memcpy(to, from, 2);
    if (size == 4) for (int i = 0; i < count; i++, to += to_step, from += from_step) memcpy(to, from, 4);
}

void hn_kv_copy(unsigned char *to, const hn_kv_row *t, const unsigned char *from, const hn_kv_row *f) {
    copy_apart(to + t->at, t->step, from + f->at, f->step, t->size, t->count);
    if (t->scales) {
        copy_apart(to + t->scale_at, t->scale_step, from + f->scale_at, f->scale_step, sizeof(float), t->scales);
    }
}

/* The place of a slot: its page, and its row in it. */
static unsigned char *page_of(const hn_kv *kv, const int32_t *pages, int slot, int *row) {
    *row = slot % kv->page_rows;
    return (unsigned char *)hn_host(kv->pool) + kv->page_bytes * (size_t)pages[slot / kv->page_rows];
}

/* A head's codes, followed by their scales, rounded like the inputs of products. */
static void to_codes(const struct hn_kernels *k, const float *x, int dim, unsigned char *out) {
    for (int d = 0; d < dim; d += HN_GROUP) {
        hn_q8_group g;
        hn_q8_parts parts;
        const size_t count = (size_t)(dim - d < HN_GROUP ? dim - d : HN_GROUP), block = (size_t)d / HN_KV_SCALED;
        k->quantise(x + d, (int)count, &g, &parts);
        memcpy(out + d, g.q, count);
        memcpy(out + (size_t)dim + block * sizeof(float), g.d, count / HN_KV_SCALED * sizeof(float));
    }
}

/* K or V of one head in the cache's type. */
static void store(const struct hn_kernels *k, const hn_kv *kv, unsigned char *page, const hn_kv_row *r, const float *x,
                  int dim) {
    _Alignas(64) unsigned char rounded[HN_MAX_HEAD_DIM * sizeof(float)];
    const hn_kv_row packed = hn_kv_packed(*r);
    if (kv->type == HN_Q8_0) {
        to_codes(k, x, dim, rounded);
    } else {
        k->to_cache(kv->type, x, dim, rounded);
    }
    hn_kv_copy(page, r, rounded, &packed);
}

/* One head of row i. */
static void rotate(const hn_cpu_backend *o, const hn_rope_table *by, int i, float *x) {
    if (!by) return;
    const hn_rope *rope = by->rope;
    o->kernels->rope(x + rope->first, hn_host_f32(by->cs) + (size_t)rope->dims * (size_t)i, rope->dims, rope->interleaved);
}

/* Stores the key and the value of row i, head h. */
static void store_row(const hn_cpu_backend *o, const hn_rows *rows, const hn_kv *kv, int i, int h, const float *key, const float *value) {
    int seq = hn_host_i32(rows->seq)[i], row;
    const int32_t *pages = hn_host_i32(rows->page_table) + (size_t)rows->page_stride * (size_t)seq;
    unsigned char *page = page_of(kv, pages, hn_host_i32(rows->slot)[i], &row);
    const hn_kv_row k = hn_kv_key_row(kv, h, row), v = hn_kv_value_row(kv, h, row);
    store(o->kernels, kv, page, &k, key, kv->head_dim);
    if (value) store(o->kernels, kv, page, &v, value, kv->v_dim);
}

/* Items are [kv head][its query heads, then itself if there are keys][row]: neighbouring rows write the same cache lines of K, so
 * one rank takes all rows of a head. */
void hn_cpu_rope_store(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *by, const hn_kv *kv, const hn_qkv *x) {
    const int heads = x->q.cols / kv->head_dim;
    assert(kv->head_dim <= HN_MAX_HEAD_DIM && kv->v_dim <= HN_MAX_HEAD_DIM && heads % kv->kv_heads == 0);
    const bool stores = x->k.cols > 0;
    assert(!stores || (x->k.cols == kv->kv_heads * kv->head_dim && (kv->v_in_k || x->v.cols == kv->kv_heads * kv->v_dim)));
    assert(!by || by->rope->first + by->rope->dims <= kv->head_dim);
    int n = hn_cpu_number(rows->n), group = heads / kv->kv_heads, parts = group + stores, dim = kv->head_dim, first, last;
    hn_share(ex, kv->kv_heads * parts * n, &first, &last);
    for (int item = first; item < last; item++) {
        int i = item % n, h = item / n / parts, j = item / n % parts;
        if (j < group) {
            rotate(hn_cpu(ex), by, i, hn_host_row(x->q, i) + (h * group + j) * dim);
        } else {
            float *key = hn_host_row(x->k, i) + h * dim;
            rotate(hn_cpu(ex), by, i, key);
            store_row(hn_cpu(ex), rows, kv, i, h, key, x->v.cols ? hn_host_row(x->v, i) + h * kv->v_dim : NULL);
        }
    }
    hn_cpu_barrier(ex);
}

/* Moves K and V of one head. */
static void move_head(const hn_kv *kv, const hn_row_move *m, int h) {
    unsigned char *pool = hn_host(kv->pool), *dst = pool + kv->page_bytes * (size_t)m->to_page;
    const unsigned char *src = pool + kv->page_bytes * (size_t)m->from_page;
    const hn_kv_row k_from = hn_kv_key_row(kv, h, m->from_row), k_to = hn_kv_key_row(kv, h, m->to_row),
                    v_from = hn_kv_value_row(kv, h, m->from_row), v_to = hn_kv_value_row(kv, h, m->to_row);
    hn_kv_copy(dst, &k_to, src, &k_from);
    if (!kv->v_in_k) hn_kv_copy(dst, &v_to, src, &v_from);
}

/* Each rank moves its share of the bytes of all rows, in order. */
void hn_cpu_rows_move(const hn_exec *ex, const hn_plain_rows *at, hn_count count, hn_buf moves) {
    unsigned char *pool = hn_host(at->pool);
    const hn_row_move *m = hn_host(moves);
    const int n = hn_cpu_number(count);
    int first, last;
    hn_share(ex, (int)(at->row_bytes / sizeof(float)), &first, &last);
    const size_t off = sizeof(float) * (size_t)first, bytes = sizeof(float) * (size_t)(last - first);
    for (int i = 0; i < n; i++)
        memcpy(pool + at->page_bytes * (size_t)m[i].to_page + at->row_bytes * (size_t)m[i].to_row + off,
               pool + at->page_bytes * (size_t)m[i].from_page + at->row_bytes * (size_t)m[i].from_row + off, bytes);
    hn_cpu_barrier(ex);
}

void hn_cpu_kv_move(const hn_exec *ex, const hn_kv *kv, hn_count count, hn_buf moves) {
    const hn_row_move *m = hn_host(moves);
    const int n = hn_cpu_number(count);
    int first, last;
    hn_share(ex, kv->kv_heads, &first, &last);
    for (int h = first; h < last; h++)
        for (int i = 0; i < n; i++) move_head(kv, &m[i], h);
    hn_cpu_barrier(ex);
}
