/* SPDX-License-Identifier: Apache-2.0 */
/* vk_linear.c - products, and the best of their outputs. */
#include <assert.h>

#include "base/least.h"
#include "vulkan/vk_device.h"

enum { TEAMS = 4, TOP_OUTPUTS = 32768 }; /* of a workgroup; outputs of a row that are searched at a time */

/* Rows and outputs that a team has: the bits do not depend on them. */
static void shape_of(int n, uint32_t constant[2]) {
    constant[0] = n <= 1 ? 1 : n <= 2 ? 2 : n <= 4 ? 4 : 8;
    constant[1] = n <= 4 ? 2 : 4;
}

/* Outputs [first, first + count) of W a as columns of y from its first on. */
static void product(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, int first, int count, hn_matrix y, bool add) {
    vk_device *d = vk_device_of(ex);
    const vk_layout l = hn_vk_layout(w->dtype, w->out, w->in);
    const vk_act in = hn_vk_act(a);
    const int form = w->wide ? HN_ACT_F32 : ex->backend->act_forms(ex->backend, w->dtype);
    const bool packed = form == HN_ACT_Q8;
    const size_t rows = (size_t)n.most;
    int kernel = packed ? VK_LINEAR_PACKED + (l.type - VK_Q4) : VK_LINEAR + l.type;
    uint32_t constant[2];
    assert((a.forms & form) && a.in == w->in && !hn_is_stored(w) && n.most <= a.max_rows);
    shape_of(n.most, constant);
    const int most = (int)(hn_least_size(hn_vk_most(d, w->place.at), (size_t)INT32_MAX) / l.code_row) / 256 * 256;
    for (int from = 0, outs; from < count; from += outs) {
        outs = hn_least(count - from, most);
        const size_t row = (size_t)(first + from);
        const hn_buf codes = hn_at(w->place.at, l.code_row * row), scales = hn_at(w->place.at, l.scales + l.scale_row * row);
        const hn_matrix to = hn_columns(y, from, outs);
        const vk_arg args[] = {vk_bytes(codes, l.code_row * (size_t)outs, false), vk_bytes(scales, l.scale_row * (size_t)outs, false),
                               packed ? vk_bytes(in.codes, 4 * (size_t)in.ld_codes * rows, false)
                                      : vk_bytes(in.plain, 4 * (size_t)in.ld_plain * rows, false),
                               packed ? vk_bytes(in.meta, 4 * (size_t)in.ld_meta * rows, false) : vk_no_arg(), vk_rows(to, n.most, true)};
        struct {
            uint32_t n_at, n_most, codes_at, scales_at, inputs_at, meta_at, y_at;
            uint32_t steps, outs, ld_codes, ld_scales, ld_inputs, ld_meta, ldy, add, left;
        } push = {.codes_at = hn_vk_at(d, codes, 16),
                  .scales_at = l.scale_row ? hn_vk_at(d, scales, 4) : 0,
                  .inputs_at = hn_vk_at(d, packed ? in.codes : in.plain, 16),
                  .meta_at = packed ? hn_vk_at(d, in.meta, 8) : 0,
                  .y_at = hn_vk_at(d, to.at, 4),
                  .steps = (uint32_t)(packed ? w->in / 32 : vk_blocks(w->in, 8)),
                  .outs = (uint32_t)outs,
                  .ld_codes = (uint32_t)(l.code_row / 16),
                  .ld_scales = (uint32_t)(l.scale_row / 4),
                  .ld_inputs = (packed ? in.ld_codes : in.ld_plain) / 4,
                  .ld_meta = in.ld_meta / 2,
                  .ldy = (uint32_t)y.ld,
                  .add = add,
                  .left = (uint32_t)(w->in % 8 ? w->in % 8 : 8)};
        hn_vk_dispatch(ex, kernel, constant, n, args, 5, &push, sizeof push, vk_blocks(outs, TEAMS * (int)constant[1]),
                       vk_blocks(n.most, (int)constant[0]), 1);
        d->counts.bytes += (double)(l.code_row + l.scale_row) * outs;
        d->counts.macs += (double)outs * w->in * n.most;
    }
}

void hn_vk_linear(const hn_exec *ex, hn_count n, hn_act a, const hn_linear_out *outs, int n_outs, bool add) {
    for (int i = 0; i < n_outs; i++) product(ex, n, a, outs[i].w, 0, outs[i].w->out, outs[i].y, add);
}

void hn_vk_linear_glu(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *gate, const hn_weight *up, hn_glu act, hn_act y) {
    const vk_act to = hn_vk_act(y);
    const hn_glu_in in = {.gate = {to.plain, gate->out, (int)to.ld_plain}, .up = {to.second, up->out, (int)to.ld_plain}};
    product(ex, n, a, gate, 0, gate->out, in.gate, false);
    product(ex, n, a, up, 0, up->out, in.up, false);
    hn_vk_glu(ex, n, act, &in, 1, y);
}

/* ---- the best of a row ---------------------------------------------------------------------------------------------- */

size_t hn_vk_top_scratch(const hn_backend *b HN_UNUSED, int max_rows, int k HN_UNUSED) {
    return sizeof(float) * TOP_OUTPUTS * (size_t)max_rows;
}

static void search(const hn_exec *ex, hn_count n, hn_matrix part, int first, const hn_output_rows *out, const hn_top *top) {
    vk_device *d = vk_device_of(ex);
    const int count = part.cols, written = out->n_written.most;
    const hn_matrix y = written > 0 ? hn_columns(out->y, first, count) : hn_no_matrix;
    const size_t list = 4 * (size_t)top->k * (size_t)n.most;
    const hn_buf counted = out->n_written.at;
    const hn_matrix bias = {top->bias, first + count, top->ld_bias};
    const vk_arg args[] = {vk_rows(part, n.most, true), written > 0 ? vk_rows(y, written, true) : vk_no_arg(),
                           top->bias.mem ? vk_rows(bias, top->ld_bias ? n.most : 1, false) : vk_no_arg(),
                           top->map.mem ? vk_bytes(top->map, 4 * (size_t)(first + count), false) : vk_no_arg(),
                           vk_bytes(top->id, list, true), vk_bytes(top->value, list, true),
                           written > 0 && counted.mem ? vk_bytes(counted, 4, false) : vk_no_arg()};
    struct {
        uint32_t n_at, n_most, part_at, y_at, bias_at, map_at, id_at, value_at, written_at, written_most;
        uint32_t ld_part, ldy, ld_bias, first, count, k, does;
        float scale, cap, inverse_cap;
    } push = {.part_at = hn_vk_at(d, part.at, 4),
              .y_at = hn_vk_at(d, y.at, 4) - (uint32_t)first,
              .bias_at = hn_vk_at(d, top->bias, 4),
              .map_at = hn_vk_at(d, top->map, 4),
              .id_at = hn_vk_at(d, top->id, 4),
              .value_at = hn_vk_at(d, top->value, 4),
              .written_at = written > 0 && counted.mem ? hn_vk_at(d, counted, 4) : UINT32_MAX,
              .written_most = (uint32_t)written,
              .ld_part = (uint32_t)part.ld,
              .ldy = (uint32_t)out->y.ld,
              .ld_bias = (uint32_t)top->ld_bias,
              .first = (uint32_t)first,
              .count = (uint32_t)count,
              .k = (uint32_t)top->k,
              .does = (top->bias.mem ? 1u : 0) | (top->map.mem ? 2u : 0) | (first > 0 ? 4u : 0) | (out->cap > 0 ? 8u : 0),
              .scale = out->scale,
              .cap = out->cap,
              .inverse_cap = out->cap > 0 ? 1 / out->cap : 0};
    hn_vk_dispatch(ex, VK_TOP, NULL, n, args, 7, &push, sizeof push, n.most, 1, 1);
}

static void sum_rows(const hn_exec *ex, hn_count n, hn_matrix y, const hn_top *top) {
    vk_device *d = vk_device_of(ex);
    const int parts = hn_sum_parts(y.cols);
    const size_t bytes = 4 * (size_t)parts * (size_t)n.most;
    const vk_arg args[] = {vk_rows(y, n.most, false), vk_bytes(top->value, 4 * (size_t)top->k * (size_t)n.most, false),
                           top->sums.mem ? vk_bytes(top->sums, bytes, true) : vk_no_arg(),
                           top->moments.mem ? vk_bytes(top->moments, bytes, true) : vk_no_arg()};
    struct {
        uint32_t n_at, n_most, y_at, value_at, sums_at, moments_at, ldy, width, k, parts, does;
    } push = {0, 0, hn_vk_at(d, y.at, 4), hn_vk_at(d, top->value, 4), hn_vk_at(d, top->sums, 4), hn_vk_at(d, top->moments, 4),
              (uint32_t)y.ld, (uint32_t)y.cols, (uint32_t)top->k, (uint32_t)parts, (top->sums.mem ? 1u : 0) | (top->moments.mem ? 2u : 0)};
    hn_vk_dispatch(ex, VK_SUMS, NULL, n, args, 4, &push, sizeof push, parts, n.most, 1);
}

/* Outputs come a part at a time, so that rows whose outputs nobody reads need no memory for all. */
void hn_vk_linear_top(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_output_rows *out, const hn_top *top) {
    assert(top->k >= 1 && top->k <= HN_MAX_TOP);
    for (int first = 0, count; first < w->out; first += count) {
        count = hn_least(w->out - first, TOP_OUTPUTS);
        const hn_matrix part = {top->scratch, count, count};
        product(ex, n, a, w, first, count, part, false);
        search(ex, n, part, first, out, top);
    }
    if ((top->sums.mem || top->moments.mem) && out->n_written.most > 0) sum_rows(ex, out->n_written, out->y, top);
}
