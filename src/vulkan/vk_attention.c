/* SPDX-License-Identifier: Apache-2.0 */
/* vk_attention.c - keys and values in the pages of the cache, and attention over them. Layout of a row: shaders/kv.glsl. */
#include <assert.h>

#include "base/least.h"
#include "ops/kv.h"
#include "vulkan/vk_device.h"

static int cache_type(hn_dtype t) { return t == HN_F32 ? 0 : t == HN_F16 ? 1 : t == HN_BF16 ? 2 : 3; }
static uint32_t words(size_t bytes) {
    assert(bytes % 4 == 0);
    return (uint32_t)(bytes / 4);
}
static size_t row_bytes(const hn_kv *kv, int width) { return hn_kv_bytes(kv->type, width, 1); }
static vk_arg pool_arg(const hn_buf pool, bool write) { return vk_bytes(pool, vk_mem_of(pool.mem)->size - pool.off, write); }

/* The page table of all texts. */
static vk_arg table_arg(const hn_rows *rows) {
    return vk_bytes(rows->page_table, 4 * (size_t)rows->page_stride * (size_t)rows->n_seqs.most, false);
}

void hn_vk_rope_store(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *by, const hn_kv *kv, const hn_qkv *x) {
    vk_device *d = vk_device_of(ex);
    const int n = rows->n.most, heads = x->q.cols / kv->head_dim, stored = x->k.cols > 0 ? kv->kv_heads : 0;
    const int values = stored && !kv->v_in_k ? stored : 0, half = by ? by->rope->dims / 2 : 0;
    const vk_arg args[] = {heads ? vk_rows(x->q, n, true) : vk_no_arg(), stored ? vk_rows(x->k, n, true) : vk_no_arg(),
                           values ? vk_rows(x->v, n, false) : vk_no_arg(),
                           by ? vk_bytes(by->cs, 8 * (size_t)half * (size_t)n, false) : vk_no_arg(),
                           stored ? vk_bytes(rows->slot, 4 * (size_t)n, false) : vk_no_arg(),
                           stored ? vk_bytes(rows->seq, 4 * (size_t)n, false) : vk_no_arg(), stored ? table_arg(rows) : vk_no_arg(),
                           stored ? pool_arg(kv->pool, true) : vk_no_arg()};
    struct {
        uint32_t n_at, n_most, q_at, k_at, v_at, cs_at, slot_at, seq_at, table_at, pool_at;
        uint32_t ldq, ldk, ldv, table_stride;
        uint32_t heads, kv_heads, width, v_width;
        uint32_t first, half, does;
        uint32_t page_words, page_rows, k_off, v_off;
    } push = {.q_at = hn_vk_at(d, x->q.at, 4),
              .k_at = hn_vk_at(d, x->k.at, 4),
              .v_at = hn_vk_at(d, x->v.at, 4),
              .cs_at = by ? hn_vk_at(d, by->cs, 4) : 0,
              .ldq = (uint32_t)x->q.ld,
              .ldk = (uint32_t)x->k.ld,
              .ldv = (uint32_t)x->v.ld,
              .heads = (uint32_t)heads,
              .kv_heads = (uint32_t)stored,
              .width = (uint32_t)kv->head_dim,
              .v_width = (uint32_t)kv->v_dim,
              .first = by ? (uint32_t)by->rope->first : 0,
              .half = (uint32_t)half,
              .does = (by ? 1u : 0) | (by && by->rope->interleaved ? 2u : 0)};
    if (stored) {
        push.slot_at = hn_vk_at(d, rows->slot, 4);
        push.seq_at = hn_vk_at(d, rows->seq, 4);
        push.table_at = hn_vk_at(d, rows->page_table, 4);
        push.pool_at = hn_vk_at(d, kv->pool, 4);
        push.table_stride = (uint32_t)rows->page_stride;
        push.page_words = words(kv->page_bytes);
        push.page_rows = (uint32_t)kv->page_rows;
        push.k_off = words(kv->k_off);
        push.v_off = words(kv->v_off);
    }
    hn_vk_dispatch(ex, VK_STORE + cache_type(kv->type), NULL, rows->n, args, 8, &push, sizeof push, heads + stored + values, n, 1);
}

/* Descriptions of rows are parts of one buffer: from the first to the last of those that a kernel reads. */
static vk_arg rows_arg(const hn_rows *rows, hn_buf last) {
    const size_t n = (size_t)rows->n.most, seqs = (size_t)rows->n_seqs.most, paths = n < HN_MAX_ROWS ? n * HN_MAX_ROWS : n * HN_PASS_ROWS;
    const struct {
        hn_buf at;
        size_t count;
    } part[] = {{last, n}, {rows->from, n}, {rows->seq, n}, {rows->path_start, n}, {rows->path_slots, paths}, {rows->committed, seqs},
                {rows->direct, seqs}};
    size_t first = part[0].at.off, end = 0;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        assert(part[i].at.mem == last.mem);
        if (part[i].at.off < first) first = part[i].at.off;
        if (part[i].at.off + 4 * part[i].count > end) end = part[i].at.off + 4 * part[i].count;
    }
    const size_t size = vk_mem_of(last.mem)->size;
    return vk_bytes((hn_buf){last.mem, first}, (end < size ? end : size) - first, false);
}

enum { FEW_ITEMS = 2048, STATS = 3 }; /* heads of rows below which spans are divided; numbers beside the values of a span */
static const size_t most_parts = (size_t)32 << 20;

static size_t parts_bytes(int rows, int heads, int spans, int v_dim) {
    return sizeof(float) * (size_t)rows * (size_t)heads * (size_t)spans * (size_t)(v_dim + STATS);
}

size_t hn_vk_attention_scratch(const hn_backend *b HN_UNUSED, int max_rows, int heads, const hn_kv *kv, int max_positions) {
    return hn_least_size(parts_bytes(hn_least(max_rows, HN_MAX_ROWS), heads, vk_blocks(max_positions, HN_KEY_SPAN), kv->v_dim),
                         most_parts) +
           64;
}

/* Merges the spans' results. */
static void merge(const hn_exec *ex, hn_count n, hn_buf parts, size_t bytes, int spans, const hn_attention_params *how, const hn_matrix out,
                  int v_dim) {
    vk_device *d = vk_device_of(ex);
    const vk_arg args[] = {vk_bytes(parts, bytes, false),
                           how->sinks.mem ? vk_bytes(how->sinks, 4 * (size_t)how->heads, false) : vk_no_arg(), vk_rows(out, n.most, true)};
    struct {
        uint32_t n_at, n_most, part_at, sinks_at, out_at, ldo, heads, v_width, spans, does;
    } push = {0, 0, hn_vk_at(d, parts, 4), hn_vk_at(d, how->sinks, 4), hn_vk_at(d, out.at, 4), (uint32_t)out.ld, (uint32_t)how->heads,
              (uint32_t)v_dim, (uint32_t)spans, how->sinks.mem ? 1u : 0};
    hn_vk_dispatch(ex, VK_MERGE, NULL, n, args, 3, &push, sizeof push, how->heads, n.most, 1);
}

void hn_vk_attention(const hn_exec *ex, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how, hn_matrix q, hn_matrix out,
                     hn_act a, hn_buf scratch) {
    vk_device *d = vk_device_of(ex);
    const int n = rows->n.most, spans = vk_blocks(rows->most_seen, HN_KEY_SPAN);
    const size_t bytes = parts_bytes(n, how->heads, spans, kv->v_dim);
    const uint32_t parts[2] = {spans > 1 && n <= HN_MAX_ROWS && n * how->heads < FEW_ITEMS && bytes <= most_parts, 0};
    const hn_buf last = how->ahead ? rows->last : rows->position;
    const vk_arg described = rows_arg(rows, last);
    const uint32_t base = hn_vk_at(d, described.at, 4);
    assert(!how->mass.to.mem);
#define IN_ROWS(field) (base + (uint32_t)((field).off - described.at.off) / 4)
    const vk_arg args[] = {vk_rows(q, n, false), pool_arg(kv->pool, false), described, table_arg(rows),
                           how->sinks.mem ? vk_bytes(how->sinks, 4 * (size_t)how->heads, false) : vk_no_arg(),
                           parts[0] ? vk_bytes(scratch, bytes, true) : vk_rows(out, n, true)};
    struct {
        uint32_t n_at, n_most, q_at, pool_at, table_at, sinks_at, out_at;
        uint32_t ldq, ldo, table_stride, heads, group, width, v_width;
        uint32_t page_words, page_rows, k_off, v_off;
        uint32_t last_at, from_at, seq_at, path_start_at, path_at, committed_at, direct_at;
        uint32_t window, first, does;
        float scale;
        uint32_t spans;
    } push = {.q_at = hn_vk_at(d, q.at, 4),
              .pool_at = hn_vk_at(d, kv->pool, 4),
              .table_at = hn_vk_at(d, rows->page_table, 4),
              .sinks_at = hn_vk_at(d, how->sinks, 4),
              .out_at = hn_vk_at(d, parts[0] ? scratch : out.at, 4),
              .ldq = (uint32_t)q.ld,
              .ldo = (uint32_t)out.ld,
              .table_stride = (uint32_t)rows->page_stride,
              .heads = (uint32_t)how->heads,
              .group = (uint32_t)(how->heads / kv->kv_heads),
              .width = (uint32_t)kv->head_dim,
              .v_width = (uint32_t)kv->v_dim,
              .page_words = words(kv->page_bytes),
              .page_rows = (uint32_t)kv->page_rows,
              .k_off = words(kv->k_off),
              .v_off = kv->v_in_k ? 0 : words(kv->v_off),
              .last_at = IN_ROWS(last),
              .from_at = IN_ROWS(rows->from),
              .seq_at = IN_ROWS(rows->seq),
              .path_start_at = IN_ROWS(rows->path_start),
              .path_at = IN_ROWS(rows->path_slots),
              .committed_at = IN_ROWS(rows->committed),
              .direct_at = IN_ROWS(rows->direct),
              .window = (uint32_t)how->window,
              .first = (uint32_t)how->first,
              .does = (how->sinks.mem ? 1u : 0) | (kv->v_in_k ? 2u : 0),
              .scale = how->scale,
              .spans = (uint32_t)spans};
#undef IN_ROWS
    hn_vk_dispatch(ex, VK_ATTENTION + cache_type(kv->type), parts, rows->n, args, 6, &push, sizeof push, how->heads, n,
                   parts[0] ? spans : 1);
    if (parts[0]) merge(ex, rows->n, scratch, bytes, spans, how, out, kv->v_dim);
    d->counts.macs += (double)n * how->heads * (kv->head_dim + kv->v_dim) * (rows->most_seen + 1) / 2;
    if (a.forms) hn_vk_quantise(ex, rows->n, out, a);
}

static void move(const hn_exec *ex, hn_buf pool, size_t page_bytes, size_t off, size_t row, size_t head, int heads, hn_count n,
                 hn_buf moves) {
    vk_device *d = vk_device_of(ex);
    const vk_arg args[] = {vk_bytes(moves, sizeof(hn_row_move) * (size_t)n.most, false), pool_arg(pool, true)};
    struct {
        uint32_t n_at, n_most, moves_at, pool_at, page_words, off, row_words, head_words, heads;
    } push = {.moves_at = hn_vk_at(d, moves, 4), .pool_at = hn_vk_at(d, pool, 4), .page_words = words(page_bytes), .off = words(off),
              .row_words = words(row), .head_words = words(head), .heads = (uint32_t)heads};
    hn_vk_dispatch(ex, VK_MOVE, NULL, n, args, 2, &push, sizeof push, vk_blocks((int)push.row_words * heads, 64), 1, 1);
}

void hn_vk_kv_move(const hn_exec *ex, const hn_kv *kv, hn_count n, hn_buf moves) {
    const size_t k = row_bytes(kv, kv->head_dim), v = row_bytes(kv, kv->v_dim), rows = (size_t)kv->page_rows;
    move(ex, kv->pool, kv->page_bytes, kv->k_off, k, k * rows, kv->kv_heads, n, moves);
    if (!kv->v_in_k) move(ex, kv->pool, kv->page_bytes, kv->v_off, v, v * rows, kv->kv_heads, n, moves);
}
