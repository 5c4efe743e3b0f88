/* SPDX-License-Identifier: Apache-2.0 */
/* kv.h - the layout of K and V in a page of the cache, defined only here. Pages and their owners: cache/. Reading and
 * writing: cpu_attention.c, cpu_kv.c.
 *
 * One kv head of one layer; rows are positions, a run of page_rows of them:
 *
 *   F32, F16   K [dim][rows]            V [rows][v_dim]
 *   BF16       K [dim / 2][rows][2]     V [rows / 2][v_dim][2]      pairs, for products of pairs
 *   Q8_0       as F16, in signed bytes; followed by f32 scales,
 *              K [dim / 32][rows]       V [rows][v_dim / 32]        one for each 32 dims of a position
 *
 * So a lane (a position of K, a dim of V) loads its elements without a shuffle. With v_in_k there is no V: attention brings the
 * chunks that it reads to V's layout (cpu_attention_span.c).
 */
#ifndef HN_KV_H
#define HN_KV_H
#include "ops/ops.h"

enum { HN_KV_SCALED = 32 }; /* elements of Q8_0 that share a scale */

static inline size_t hn_kv_element_bytes(hn_dtype t) { return t == HN_F32 ? 4 : t == HN_Q8_0 ? 1 : 2; }
static inline int hn_kv_pair(hn_dtype t) { return t == HN_BF16 ? 2 : 1; }
/* Bytes that a lane loads at once: an element, or a pair. */
static inline size_t hn_kv_lane_bytes(hn_dtype t) { return hn_kv_element_bytes(t) * (size_t)hn_kv_pair(t); }
/* The width of a head must be a multiple of this. */
static inline int hn_kv_multiple(hn_dtype t) { return t == HN_Q8_0 ? HN_KV_SCALED : hn_kv_pair(t); }

/* Bytes of `rows` rows of one head, K or V, including scales. */
static inline size_t hn_kv_bytes(hn_dtype t, int dim, int rows) {
    const size_t count = (size_t)dim * (size_t)rows;
    return count * hn_kv_element_bytes(t) + (t == HN_Q8_0 ? count / HN_KV_SCALED * sizeof(float) : 0);
}

/* ---- rows that attention reads, and its work ----------------------------------------------- */

/* The first position that a row sees whose window is counted back from position `at`: its own, or its block's first. */
static inline int hn_kv_seen_from(const hn_attention_params *how, int at) {
    const int from = how->window > 0 && at >= how->window ? at - how->window + 1 : 0;
    return at >= how->first && how->first > from ? how->first : from;
}
/* Positions of a sequence that n rows after `committed` ones read, each once for all rows and heads. */
static inline int hn_kv_read(const hn_attention_params *how, int committed, int n) {
    return committed + n - hn_kv_seen_from(how, committed);
}
/* Numbers of K and V in `positions` positions of a layer; their bytes. */
static inline uint64_t hn_kv_elements(const hn_kv *kv, int positions) {
    return (uint64_t)kv->kv_heads * (uint64_t)(kv->head_dim + (kv->v_in_k ? 0 : kv->v_dim)) * (uint64_t)positions;
}
static inline double hn_kv_read_bytes(const hn_kv *kv, int positions) {
    const size_t values = kv->v_in_k ? 0 : hn_kv_bytes(kv->type, kv->v_dim, positions);
    return (double)kv->kv_heads * (double)(hn_kv_bytes(kv->type, kv->head_dim, positions) + values);
}
/* Multiply-accumulates of a row that sees up to position `last`. */
static inline double hn_kv_macs(const hn_kv *kv, const hn_attention_params *how, int at, int last) {
    return (double)how->heads * (kv->head_dim + kv->v_dim) * (last + 1 - hn_kv_seen_from(how, at));
}

/* ---- places -------------------------------------------------------------------------------------------------------- */

/* K, or V, of one head and position: `count` pieces of `size` bytes at `at`, `step` bytes apart; with Q8_0 also
 * `scales` f32. Offsets are from the start of the page. */
typedef struct hn_kv_row {
    int count, scales;
    size_t size, at, step;
    size_t scale_at, scale_step;
} hn_kv_row;

static inline hn_kv_row hn_kv_key_row(const hn_kv *kv, int head, int row) {
    const size_t lane = hn_kv_lane_bytes(kv->type), rows = (size_t)kv->page_rows;
    hn_kv_row r = {.count = kv->head_dim / hn_kv_pair(kv->type), .size = lane, .step = lane * rows,
                   .scales = kv->type == HN_Q8_0 ? kv->head_dim / HN_KV_SCALED : 0, .scale_step = sizeof(float) * rows};
    const size_t start = kv->k_off + hn_kv_bytes(kv->type, kv->head_dim, kv->page_rows) * (size_t)head;
    r.at = start + lane * (size_t)row;
    r.scale_at = start + (size_t)r.count * r.step + sizeof(float) * (size_t)row;
    return r;
}

static inline hn_kv_row hn_kv_value_row(const hn_kv *kv, int head, int row) {
    const int pair = hn_kv_pair(kv->type);
    const size_t size = hn_kv_element_bytes(kv->type), lane = hn_kv_lane_bytes(kv->type);
    hn_kv_row r = {.count = kv->v_dim, .size = size, .step = lane,
                   .scales = kv->type == HN_Q8_0 ? kv->v_dim / HN_KV_SCALED : 0, .scale_step = sizeof(float)};
    const size_t start = kv->v_off + hn_kv_bytes(kv->type, kv->v_dim, kv->page_rows) * (size_t)head;
    r.at = start + lane * (size_t)kv->v_dim * (size_t)(row / pair) + size * (size_t)(row % pair);
    r.scale_at = start + size * (size_t)kv->v_dim * (size_t)kv->page_rows +
                 sizeof(float) * (size_t)r.scales * (size_t)row;
    return r;
}

/* The offset of element d of such a row, for access one by one. */
static inline size_t hn_kv_element(const hn_kv *kv, const hn_kv_row *r, int d) {
    const size_t here = r->size / hn_kv_element_bytes(kv->type); /* elements a piece */
    return r->at + (size_t)d / here * r->step + (size_t)d % here * hn_kv_element_bytes(kv->type);
}

/* Copies such a row from one place to another, or between a page and adjacent elements (hn_kv_packed). */
void hn_kv_copy(unsigned char *to, const hn_kv_row *t, const unsigned char *from, const hn_kv_row *f);

/* The same elements without gaps, followed by the scales. */
static inline hn_kv_row hn_kv_packed(hn_kv_row r) {
    r.at = 0;
    r.step = r.size;
    r.scale_at = (size_t)r.count * r.size;
    r.scale_step = sizeof(float);
    return r;
}
#endif
