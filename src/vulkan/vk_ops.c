/* SPDX-License-Identifier: Apache-2.0 */
/* vk_ops.c - operations on rows, and the table of all. Those that the table lacks a model is refused for (model/lacks.c). */
#include <assert.h>

#include "base/least.h"
#include "vulkan/vk_device.h"

/* ---- inputs of products --------------------------------------------------------------------------------------------- */

static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

static vk_act place(hn_buf data, int in, int max_rows, size_t *bytes) {
    const size_t blocks = (size_t)vk_blocks(in, 32), plain = (size_t)vk_blocks(in, 8) * 8, rows = (size_t)max_rows;
    vk_act a = {.ld_codes = (uint32_t)(8 * blocks), .ld_meta = (uint32_t)(2 * blocks), .ld_plain = (uint32_t)plain};
    a.codes = data;
    a.meta = hn_at(a.codes, lines(32 * blocks * rows));
    a.plain = hn_at(a.meta, lines(8 * blocks * rows));
    a.second = hn_at(a.plain, lines(4 * plain * rows));
    *bytes = a.second.off + lines(4 * plain * rows) - data.off;
    return a;
}

vk_act hn_vk_act(hn_act a) {
    size_t bytes;
    return place(a.data, a.in, a.max_rows, &bytes);
}

size_t hn_vk_act_bytes(int in, int max_rows) {
    size_t bytes;
    place((hn_buf){NULL, 0}, in, max_rows, &bytes);
    return bytes;
}

static vk_arg codes_arg(const vk_act *a, int forms, int n) {
    return forms & HN_ACT_Q8 ? vk_bytes(a->codes, 4 * (size_t)a->ld_codes * (size_t)n, true) : vk_no_arg();
}
static vk_arg meta_arg(const vk_act *a, int forms, int n) {
    return forms & HN_ACT_Q8 ? vk_bytes(a->meta, 4 * (size_t)a->ld_meta * (size_t)n, true) : vk_no_arg();
}
static vk_arg plain_arg(const vk_act *a, int forms, int in, int n) {
    return forms & HN_ACT_F32 ? vk_rows((hn_matrix){a->plain, in, (int)a->ld_plain}, n, true) : vk_no_arg();
}

typedef struct act_push {
    uint32_t n_at, n_most, x_at, u_at, x_bias_at, u_bias_at, plain_at, codes_at, meta_at, width, ldx, ldu, ld_plain, ld_codes, ld_meta;
    uint32_t does, unit;
    float scale;
} act_push;

static void make_act(const hn_exec *ex, hn_count n, int unit, const hn_glu_in *in, float scale, hn_act to) {
    vk_device *d = vk_device_of(ex);
    const vk_act a = hn_vk_act(to);
    const int forms = to.forms;
    assert(in->gate.cols == to.in && n.most <= to.max_rows);
    /* the gate may be the row that is written */
    const bool same = in->gate.at.mem == a.plain.mem && in->gate.at.off == a.plain.off;
    const vk_arg args[] = {same && forms & HN_ACT_F32 ? vk_no_arg() : vk_rows(in->gate, n.most, false),
                           unit ? vk_rows(in->up, n.most, false) : vk_no_arg(),
                           in->gate_bias.mem ? vk_bytes(in->gate_bias, 4 * (size_t)to.in, false) : vk_no_arg(),
                           in->up_bias.mem ? vk_bytes(in->up_bias, 4 * (size_t)to.in, false) : vk_no_arg(),
                           plain_arg(&a, forms, to.in, n.most), codes_arg(&a, forms, n.most), meta_arg(&a, forms, n.most)};
    act_push push = {.x_at = hn_vk_at(d, in->gate.at, 4),
                     .u_at = hn_vk_at(d, in->up.at, 4),
                     .x_bias_at = hn_vk_at(d, in->gate_bias, 4),
                     .u_bias_at = hn_vk_at(d, in->up_bias, 4),
                     .plain_at = hn_vk_at(d, a.plain, 4),
                     .codes_at = hn_vk_at(d, a.codes, 4),
                     .meta_at = hn_vk_at(d, a.meta, 4),
                     .width = (uint32_t)to.in,
                     .ldx = (uint32_t)in->gate.ld,
                     .ldu = (uint32_t)in->up.ld,
                     .ld_plain = a.ld_plain,
                     .ld_codes = a.ld_codes,
                     .ld_meta = a.ld_meta,
                     .does = (in->gate_bias.mem ? 1u : 0) | (in->up_bias.mem ? 2u : 0) | (forms & HN_ACT_F32 ? 4u : 0) |
                             (forms & HN_ACT_Q8 ? 8u : 0) | (same && forms & HN_ACT_F32 ? 16u : 0),
                     .unit = (uint32_t)unit,
                     .scale = scale};
    hn_vk_dispatch(ex, VK_ACT, NULL, n, args, 7, &push, sizeof push, vk_blocks(to.in, 128), n.most, 1);
}

void hn_vk_quantise(const hn_exec *ex, hn_count n, hn_matrix x, hn_act a) {
    const hn_glu_in in = {.gate = x};
    if (a.forms) make_act(ex, n, 0, &in, 1, a);
}

void hn_vk_glu(const hn_exec *ex, hn_count n, hn_glu act, const hn_glu_in *in, float scale, hn_act y) {
    make_act(ex, n, act == HN_SILU ? 1 : act == HN_GELU ? 2 : 3, in, scale, y);
}

/* ---- norms ---------------------------------------------------------------------------------------------------------- */

static void norm_rows(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, uint32_t does, float times, hn_act to, hn_matrix y) {
    vk_device *d = vk_device_of(ex);
    const vk_act a = to.data.mem ? hn_vk_act(to) : (vk_act){.ld_codes = 0};
    const int forms = to.data.mem ? to.forms : 0;
    const vk_arg args[] = {vk_rows(x, n.most, false), vk_bytes(by->w, 4 * (size_t)x.cols, false),
                           y.at.mem ? vk_rows(y, n.most, true) : vk_no_arg(), plain_arg(&a, forms, x.cols, n.most),
                           codes_arg(&a, forms, n.most), meta_arg(&a, forms, n.most)};
    struct {
        uint32_t n_at, n_most, x_at, w_at, y_at, plain_at, codes_at, meta_at, width, ldx, ldy, ld_plain, ld_codes, ld_meta, does;
        float eps, inverse, times;
    } push = {.x_at = hn_vk_at(d, x.at, 4),
              .w_at = hn_vk_at(d, by->w, 4),
              .y_at = hn_vk_at(d, y.at, 4),
              .plain_at = hn_vk_at(d, a.plain, 4),
              .codes_at = hn_vk_at(d, a.codes, 4),
              .meta_at = hn_vk_at(d, a.meta, 4),
              .width = (uint32_t)x.cols,
              .ldx = (uint32_t)x.ld,
              .ldy = (uint32_t)y.ld,
              .ld_plain = a.ld_plain,
              .ld_codes = a.ld_codes,
              .ld_meta = a.ld_meta,
              .does = does | (forms & HN_ACT_F32 ? 4u : 0) | (forms & HN_ACT_Q8 ? 8u : 0),
              .eps = by->eps,
              .inverse = 1 / (float)x.cols,
              .times = times};
    hn_vk_dispatch(ex, VK_NORM, NULL, n, args, 6, &push, sizeof push, n.most, 1, 1);
}

static void norm(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, hn_act a, hn_matrix y) {
    norm_rows(ex, n, x, by, y.at.mem ? 1 : 0, 1, a, y);
}

static void norm_add(const hn_exec *ex, hn_count n, hn_matrix x, const hn_norm *by, float times, hn_matrix y) {
    norm_rows(ex, n, x, by, 2, times, (hn_act){.data = {NULL, 0}}, y);
}

static void fix_part(const hn_exec *ex, hn_count n, hn_matrix x, int width, hn_buf bias, const hn_norm *norm) {
    vk_device *d = vk_device_of(ex);
    const hn_buf w = norm->w;
    if (x.cols == 0 || (!bias.mem && !norm->kind)) return;
    const vk_arg args[] = {vk_rows(x, n.most, true), bias.mem ? vk_bytes(bias, 4 * (size_t)x.cols, false) : vk_no_arg(),
                           w.mem ? vk_bytes(w, 4 * (size_t)width, false) : vk_no_arg()};
    struct {
        uint32_t n_at, n_most, x_at, bias_at, w_at, ld, width, does;
        float eps, inverse;
    } push = {0, 0, hn_vk_at(d, x.at, 4), hn_vk_at(d, bias, 4), hn_vk_at(d, w, 4), (uint32_t)x.ld, (uint32_t)width,
              (bias.mem ? 1u : 0) | (norm->kind ? 2u : 0) | (w.mem ? 4u : 0), norm->eps, 1 / (float)width};
    hn_vk_dispatch(ex, VK_FIX_HEADS, NULL, n, args, 3, &push, sizeof push, x.cols / width, n.most, 1);
}

static void fix_heads(const hn_exec *ex, hn_count n, const hn_head_fix *fix, const hn_qkv *x) {
    fix_part(ex, n, x->q, x->head_dim, fix->q_bias, &fix->q_norm);
    fix_part(ex, n, x->k, x->head_dim, fix->k_bias, &fix->k_norm);
    fix_part(ex, n, x->v, x->head_dim, fix->v_bias, &fix->v_norm);
}

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

/* A table beyond what a kernel sees is read in parts. */
static void embed(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_matrix x) {
    vk_device *d = vk_device_of(ex);
    const vk_layout l = hn_vk_layout(table->dtype, table->out, table->in);
    const int n = rows->n.most, most = (int)(hn_least_size(hn_vk_most(d, table->place.at), (size_t)INT32_MAX) / l.code_row) / 256 * 256;
    assert(!hn_is_stored(table));
    for (int first = 0, count; first < table->out; first += count) {
        count = table->out - first < most ? table->out - first : most;
        const hn_buf codes = hn_at(table->place.at, l.code_row * (size_t)first),
                     scales = hn_at(table->place.at, l.scales + l.scale_row * (size_t)first);
        const vk_arg args[] = {vk_bytes(rows->token, 4 * (size_t)n, false), vk_bytes(codes, l.code_row * (size_t)count, false),
                               vk_bytes(scales, l.scale_row * (size_t)count, false),
                               vk_rows((hn_matrix){x.at, table->in, x.ld}, n, true)};
        struct {
            uint32_t n_at, n_most, token_at, codes_at, scales_at, x_at, width, ld, first, rows, ld_codes, ld_scales;
            float scale;
        } push = {0, 0, hn_vk_at(d, rows->token, 4), hn_vk_at(d, codes, 4), l.scale_row ? hn_vk_at(d, scales, 4) : 0,
                  hn_vk_at(d, x.at, 4), (uint32_t)table->in, (uint32_t)x.ld, (uint32_t)first, (uint32_t)count,
                  (uint32_t)(l.code_row / 4), (uint32_t)(l.scale_row / 4), scale};
        hn_vk_dispatch(ex, VK_EMBED + l.type, NULL, rows->n, args, 4, &push, sizeof push, vk_blocks(table->in, 64), n, 1);
    }
}

static void rope_table(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *to) {
    vk_device *d = vk_device_of(ex);
    const int n = rows->n.most, half = to->rope->dims / 2;
    const vk_arg args[] = {vk_bytes(rows->position, 4 * (size_t)n, false), vk_bytes(to->rope->freq, 4 * (size_t)half, false),
                           vk_bytes(to->cs, 8 * (size_t)half * (size_t)n, true)};
    struct {
        uint32_t n_at, n_most, position_at, freq_at, cs_at, half;
        float scale;
    } push = {
        0, 0, hn_vk_at(d, rows->position, 4), hn_vk_at(d, to->rope->freq, 4), hn_vk_at(d, to->cs, 4), (uint32_t)half, to->rope->scale};
    hn_vk_dispatch(ex, VK_ROPE_TABLE, NULL, rows->n, args, 3, &push, sizeof push, vk_blocks(half, 64), n, 1);
}

typedef struct apply_push {
    uint32_t n_at, n_most, x_at, bias_at, y_at, width, ldx, ldy, function, into, does;
    float scale;
} apply_push;

static void apply_scaled(const hn_exec *ex, hn_count n, hn_function f, hn_into into, hn_matrix x, hn_buf bias, float scale, hn_matrix y) {
    vk_device *d = vk_device_of(ex);
    const bool same = x.at.mem == y.at.mem && x.at.off == y.at.off;
    const vk_arg args[] = {same ? vk_no_arg() : vk_rows(x, n.most, false),
                           bias.mem ? vk_bytes(bias, 4 * (size_t)y.cols, false) : vk_no_arg(), vk_rows(y, n.most, true)};
    apply_push push = {0, 0, hn_vk_at(d, x.at, 4), hn_vk_at(d, bias, 4), hn_vk_at(d, y.at, 4), (uint32_t)y.cols, (uint32_t)x.ld,
                       (uint32_t)y.ld, (uint32_t)f, (uint32_t)into, (bias.mem ? 1u : 0) | (same ? 2u : 0), scale};
    assert(hn_vk_applies(f) && (!same || x.ld == y.ld));
    hn_vk_dispatch(ex, VK_APPLY, NULL, n, args, 3, &push, sizeof push, vk_blocks(y.cols, 64), n.most, 1);
}

static void apply(const hn_exec *ex, hn_count n, hn_function f, hn_into into, hn_matrix x, hn_buf bias, hn_matrix y) {
    apply_scaled(ex, n, f, into, x, bias, 1, y);
}

static void add_bias(const hn_exec *ex, hn_count n, hn_matrix x, hn_buf bias) { apply_scaled(ex, n, HN_SAME, HN_INTO_SET, x, bias, 1, x); }

static void scale(const hn_exec *ex, hn_count n, hn_matrix x, float a) {
    apply_scaled(ex, n, HN_SAME, HN_INTO_SET, x, (hn_buf){NULL, 0}, a, x);
}

/* Any row of src may be read, and of dst be written: all that are bound at once. ld 0: every row is the first. */
static vk_arg whole(const vk_device *d, hn_matrix m, bool write) {
    if (m.ld == 0) return vk_rows(m, 1, write);
    const size_t left = hn_least_size(vk_mem_of(m.at.mem)->size - m.at.off, d->largest_range - d->align), rows = left / (4 * (size_t)m.ld);
    const int n = rows < HN_PASS_ROWS ? (int)rows : HN_PASS_ROWS;
    vk_arg a = vk_rows(m, n, write);
    if (a.bytes + 4 * (size_t)m.ld > left && left % (4 * (size_t)m.ld) >= a.width) a.bytes = (size_t)n * a.step + a.width;
    return a;
}

static void gather(const hn_exec *ex, hn_count n, hn_buf from, hn_matrix src, hn_buf to, hn_matrix dst) {
    vk_device *d = vk_device_of(ex);
    const vk_arg args[] = {vk_bytes(from, 4 * (size_t)n.most, false), whole(d, src, false),
                           to.mem ? vk_bytes(to, 4 * (size_t)n.most, false) : vk_no_arg(),
                           to.mem ? whole(d, dst, true) : vk_rows(dst, n.most, true)};
    struct {
        uint32_t n_at, n_most, from_at, src_at, to_at, dst_at, width, lds, ldd;
    } push = {0, 0, hn_vk_at(d, from, 4), hn_vk_at(d, src.at, 4), to.mem ? hn_vk_at(d, to, 4) : UINT32_MAX, hn_vk_at(d, dst.at, 4),
              (uint32_t)dst.cols, (uint32_t)src.ld, (uint32_t)dst.ld};
    hn_vk_dispatch(ex, VK_GATHER, NULL, n, args, 4, &push, sizeof push, vk_blocks(dst.cols, 64), n.most, 1);
}

static void pick(const hn_exec *ex, hn_count n, const hn_pick *parts, int n_parts) {
    vk_device *d = vk_device_of(ex);
    for (int i = 0; i < n_parts; i++) {
        const hn_pick *p = &parts[i];
        const int last = p->dst.cols - 1, end = p->run > 0 ? p->first + last / p->run * p->stride + last % p->run + 1 : 0;
        const hn_matrix read = hn_columns(p->src, p->first, end - p->first);
        const vk_arg args[] = {vk_rows(read, n.most, false), vk_rows(p->dst, n.most, true)};
        struct {
            uint32_t n_at, n_most, src_at, dst_at, width, lds, ldd, run, stride;
        } push = {0, 0, hn_vk_at(d, read.at, 4), hn_vk_at(d, p->dst.at, 4), (uint32_t)p->dst.cols, (uint32_t)p->src.ld, (uint32_t)p->dst.ld,
                  (uint32_t)p->run, (uint32_t)p->stride};
        if (p->dst.cols > 0) hn_vk_dispatch(ex, VK_PICK, NULL, n, args, 2, &push, sizeof push, vk_blocks(p->dst.cols, 64), n.most, 1);
    }
}

const hn_ops hn_vk_ops = {
    .embed = embed,
    .norm = norm,
    .quantise = hn_vk_quantise,
    .linear = hn_vk_linear,
    .linear_glu = hn_vk_linear_glu,
    .linear_top = hn_vk_linear_top,
    .rope_table = rope_table,
    .fix_heads = fix_heads,
    .rope_store = hn_vk_rope_store,
    .attention = hn_vk_attention,
    .gather = gather,
    .norm_add = norm_add,
    .glu = hn_vk_glu,
    .add_bias = add_bias,
    .apply = apply,
    .scale = scale,
    .pick = pick,
    .kv_move = hn_vk_kv_move,
};
