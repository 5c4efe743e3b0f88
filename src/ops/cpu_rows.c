/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_rows.c - operations on rows: embedding, norm, quantisation, angles of the rotation, gather, argmax.
 *
 * All are split in fixed shares over the ranks; which rank does what never changes a value.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "ops/cpu_mem.h"
#include "ops/kernels.h"

void hn_cpu_embed(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_buf x, int ldx) {
    const int32_t *token = hn_host_i32(rows->token);
    int first, last;
    hn_share(ex, rows->n, &first, &last);
    for (int i = first; i < last; i++) {
        assert(token[i] >= 0 && token[i] < table->out);
        const unsigned char *base = hn_host(table->data);
        float *dst = hn_host_f32(x) + (size_t)ldx * (size_t)i;
        hn_strip_row(table->dtype, table->in, base + table->strip_stride * (size_t)(token[i] / HN_STRIP),
                     token[i] % HN_STRIP, 0, table->in, dst);
        for (int k = 0; k < table->in && scale != 1.0f; k++) dst[k] *= scale;
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

static float *act_f32(const hn_act *a, int row) {
    return (float *)((unsigned char *)hn_host(a->data) + hn_act_f32_off(a->in, a->max_rows, row));
}

void hn_cpu_quantise_part(const hn_ops *o, const float *x, int first, int count, const hn_act *a, int row, int forms) {
    if (forms & HN_ACT_Q8) {
        unsigned char *q8 = (unsigned char *)hn_host(a->data) + hn_act_q8_off(a->in, row);
        hn_q8_parts *parts = (hn_q8_parts *)(q8 + hn_act_parts_off(a->in));
        o->kernels->quantise(x, count, (hn_q8_group *)q8 + first / HN_GROUP, parts + first / HN_GROUP);
    }
    if (forms & HN_ACT_F32) memcpy(act_f32(a, row) + first, x, (size_t)count * sizeof(float));
}

void hn_cpu_rmsnorm(const hn_exec *ex, int n, hn_buf x, int ldx, hn_buf w, float eps, hn_act a, int forms, hn_buf y,
                    int ldy) {
    assert(n <= a.max_rows || forms == 0);
    const struct hn_kernels *k = ex->ops->kernels;
    int first, last;
    hn_share(ex, n, &first, &last);
    for (int i = first; i < last; i++) {
        float *normed = act_f32(&a, i); /* the F32 row also serves as scratch where only Q8 is wanted */
        k->rmsnorm(hn_host_f32(x) + (size_t)ldx * (size_t)i, hn_host_f32(w), a.in, eps, normed);
        if (forms & HN_ACT_Q8) hn_cpu_quantise_part(ex->ops, normed, 0, a.in, &a, i, HN_ACT_Q8);
        if (y.mem) memcpy(hn_host_f32(y) + (size_t)ldy * (size_t)i, normed, (size_t)a.in * sizeof(float));
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

/* Split by columns: a single row is split too, and a rank takes what it has mostly written itself (products and attention
 * give their ranks neighbouring columns). */
void hn_cpu_quantise(const hn_exec *ex, int n, hn_buf x, int ldx, hn_act a, int forms) {
    assert(n <= a.max_rows);
    int first, last;
    hn_share(ex, hn_act_groups(a.in), &first, &last);
    int k = first * HN_GROUP, end = last * HN_GROUP < a.in ? last * HN_GROUP : a.in;
    for (int i = 0; i < n && k < end; i++) {
        hn_cpu_quantise_part(ex->ops, hn_host_f32(x) + (size_t)ldx * (size_t)i + k, k, end - k, &a, i, forms);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

/* One head of one row: bias, then norm. */
static void fix_head(const struct hn_kernels *k, float *x, const float *bias, const float *norm, int dim, float eps) {
    if (bias) k->add(x, bias, dim);
    if (norm) k->rmsnorm(x, norm, dim, eps, x);
}

static const float *or_none(hn_buf b) {
    return b.mem ? hn_host_f32(b) : NULL;
}

void hn_cpu_fix_heads(const hn_exec *ex, int n, const hn_head_fix *fix, int heads, int kv_heads, int head_dim, hn_buf q,
                      hn_buf k, hn_buf v, int ldq) {
    const struct {
        float *x;
        const float *bias, *norm;
        int heads;
    } part[3] = {{hn_host_f32(q), or_none(fix->q_bias), or_none(fix->q_norm), heads},
                 {hn_host_f32(k), or_none(fix->k_bias), or_none(fix->k_norm), kv_heads},
                 {hn_host_f32(v), or_none(fix->v_bias), NULL, kv_heads}};
    int first, last;
    hn_share(ex, n * (heads + 2 * kv_heads), &first, &last);
    for (int i = first; i < last; i++) {
        int head = i % (heads + 2 * kv_heads), p = 0;
        while (head >= part[p].heads) head -= part[p++].heads;
        const size_t at = (size_t)head * (size_t)head_dim, row = (size_t)(i / (heads + 2 * kv_heads)) * (size_t)ldq;
        fix_head(ex->ops->kernels, part[p].x + row + at, part[p].bias ? part[p].bias + at : NULL, part[p].norm, head_dim,
                 fix->eps);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

/* A rank's columns [from, to), whole strips, as the products before wrote them. */
static void share_columns(const hn_exec *ex, int cols, int *from, int *to) {
    int first, last;
    hn_share(ex, (cols + HN_STRIP - 1) / HN_STRIP, &first, &last);
    *from = first * HN_STRIP;
    *to = last * HN_STRIP < cols ? last * HN_STRIP : cols;
}

void hn_cpu_norm_add(const hn_exec *ex, int n, hn_buf x, int ldx, hn_buf w, float eps, hn_buf y, int ldy, int cols) {
    int first, last;
    hn_share(ex, n, &first, &last);
    for (int i = first; i < last; i++) {
        float *branch = hn_host_f32(x) + (size_t)ldx * (size_t)i, *sum = hn_host_f32(y) + (size_t)ldy * (size_t)i;
        ex->ops->kernels->rmsnorm(branch, hn_host_f32(w), cols, eps, branch);
        ex->ops->kernels->add(sum, branch, cols);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

/* gate = silu(gate) * up */
static void silu_times(float *gate, const float *up, int count) {
    for (int k = 0; k < count; k++) gate[k] = gate[k] / (1 + hn_exp(-gate[k])) * up[k];
}

void hn_cpu_glu(const hn_exec *ex, int n, hn_glu act, hn_buf gate, hn_buf gate_bias, hn_buf up, hn_buf up_bias, int ld,
                int cols) {
    const float *gb = or_none(gate_bias), *ub = or_none(up_bias);
    const struct hn_kernels *k = ex->ops->kernels;
    int from, to;
    share_columns(ex, cols, &from, &to);
    for (int i = 0; i < n; i++) {
        const size_t at = (size_t)ld * (size_t)i + (size_t)from;
        float *g = hn_host_f32(gate) + at, *u = hn_host_f32(up) + at;
        if (gb) k->add(g, gb + from, to - from);
        if (ub) k->add(u, ub + from, to - from);
        (act == HN_GELU ? k->geglu : silu_times)(g, u, to - from);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

void hn_cpu_add_bias(const hn_exec *ex, int n, hn_buf x, int ldx, int cols, hn_buf bias) {
    int from, to;
    share_columns(ex, cols, &from, &to);
    for (int i = 0; i < n; i++) {
        float *row = hn_host_f32(x) + (size_t)ldx * (size_t)i;
        ex->ops->kernels->add(row + from, hn_host_f32(bias) + from, to - from);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

void hn_cpu_scale(const hn_exec *ex, int n, hn_buf x, int ldx, int cols, float a) {
    int from, to;
    share_columns(ex, cols, &from, &to);
    for (int i = 0; i < n; i++) {
        float *row = hn_host_f32(x) + (size_t)ldx * (size_t)i + from;
        ex->ops->kernels->scale(row, row, to - from, a);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

void hn_cpu_rope_table(const hn_exec *ex, const hn_rows *rows, const hn_rope *rope, hn_buf cs) {
    const int32_t *position = hn_host_i32(rows->position);
    const float *freq = hn_host_f32(rope->freq);
    int half = rope->dims / 2, first, last;
    hn_share(ex, rows->n * half, &first, &last);
    for (int i = first; i < last; i++) {
        float *row = hn_host_f32(cs) + (size_t)(i / half) * (size_t)rope->dims;
        float angle = (float)position[i / half] * freq[i % half]; /* rounded to f32, as the reference does */
        row[i % half] = cosf(angle) * rope->scale;
        row[half + i % half] = sinf(angle) * rope->scale;
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

/* ---- small things ----------------------------------------------------------------------------------------------- */

void hn_cpu_gather(const hn_exec *ex, int n, hn_buf index, hn_buf src, int lds, hn_buf dst, int ldd, int cols) {
    int first, last;
    hn_share(ex, n, &first, &last);
    for (int i = first; i < last; i++) {
        memcpy(hn_host_f32(dst) + (size_t)ldd * (size_t)i,
               hn_host_f32(src) + (size_t)lds * (size_t)hn_host_i32(index)[i], (size_t)cols * sizeof(float));
    }
    hn_barrier(ex->ops->pool, ex->rank);
}

void hn_cpu_argmax(const hn_exec *ex, int n, hn_buf x, int ldx, int cols, hn_buf best) {
    int first, last;
    hn_share(ex, n, &first, &last);
    for (int i = first; i < last; i++) {
        ((int32_t *)hn_host(best))[i] = ex->ops->kernels->argmax(hn_host_f32(x) + (size_t)ldx * (size_t)i, cols);
    }
    hn_barrier(ex->ops->pool, ex->rank);
}
