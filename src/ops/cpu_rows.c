/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_rows.c - operations on rows: embedding, norms, biases and activations, quantisation, angles of the rotation, gather.
 *
 * All are split in fixed shares over the ranks; no value depends on which rank computes it.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "ops/cpu_mem.h"
#include "ops/kernels.h"

/* Row `token` of a table; the bits are the same from a packed and a stored one. */
static void table_row(const hn_weight *table, int token, float *dst) {
    const hn_stored *s = &table->stored;
    if (!s->rows) {
        hn_strip_row(table->dtype, table->in,
                     (const unsigned char *)hn_host(table->place.at) + table->place.step * (size_t)(token / HN_STRIP),
                     token % HN_STRIP, 0, table->in, dst);
        return;
    }
    const float *factors = hn_stored_factors(s, table->in, token);
    hn_dequantise(table->dtype, (const unsigned char *)s->rows + s->row_bytes * (size_t)token, (size_t)table->in, dst);
    for (int k = 0; k < table->in && factors; k++) dst[k] *= factors[k / HN_F8_TILE];
}

void hn_cpu_embed(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_matrix x) {
    const int32_t *token = hn_host_i32(rows->token);
    int first, last;
    hn_share(ex, hn_cpu_number(rows->n), &first, &last);
    for (int i = first; i < last; i++) {
        assert(token[i] >= 0 && token[i] < table->out);
        float *dst = hn_host_row(x, i);
        table_row(table, token[i], dst);
        for (int k = 0; k < table->in && scale != 1.0f; k++) dst[k] *= scale;
    }
    hn_cpu_barrier(ex);
}

static float *act_f32(const hn_act *a, int row) {
    return (float *)((unsigned char *)hn_host(a->data) + hn_act_f32_off(a->in, a->max_rows, row));
}

void hn_cpu_put_inputs(const hn_cpu_backend *o, const float *x, int count, const hn_act *a, int forms, int row, int group) {
    unsigned char *base = hn_host(a->data), *q8 = base + hn_act_q8_off(a->in, row);
    uint16_t *bf16 = (uint16_t *)(base + hn_act_bf16_off(a->in, a->max_rows, row));
    if (forms & HN_ACT_Q8)
        o->kernels->quantise(x, count, (hn_q8_group *)q8 + group,
                             (hn_q8_parts *)(q8 + hn_act_parts_off(a->in)) + group);
    if (forms & HN_ACT_BF16) o->kernels->round_bf16(x, count, bf16 + HN_GROUP * group);
    if (forms & HN_ACT_F32) memcpy(act_f32(a, row) + HN_GROUP * group, x, (size_t)count * sizeof *x);
}

/* A rank's share of n rows, in whole groups: part of its first row, whole rows, part of its last one. So a single row
 * is shared too; computations on the whole row are cheap, and each rank does them. */
typedef struct piece {
    int row, from, count; /* inputs [from, from + count) */
    int next;             /* number of the next group in all rows; 0 at first */
} piece;

static bool next_piece(const hn_exec *ex, int n, int in, piece *p) {
    const int groups = hn_act_groups(in);
    int first, last;
    hn_share(ex, n * groups, &first, &last);
    if (p->next < first) p->next = first;
    if (p->next >= last) return false;
    const int group = p->next % groups, left = last - p->next, end = group + left < groups ? group + left : groups;
    p->row = p->next / groups;
    p->from = group * HN_GROUP;
    p->count = (end * HN_GROUP < in ? end * HN_GROUP : in) - p->from;
    p->next += end - group;
    return true;
}

static const float *or_none(hn_buf b) {
    return b.mem ? hn_host_f32(b) : NULL;
}

static hn_row_sums sums_of(const struct hn_kernels *k, const hn_norm *by, const float *x, int in) {
    return by->kind == HN_LAYER_NORM ? hn_centred_sums(x, in, by->eps) : (hn_row_sums){0, k->inverse_rms(x, in, by->eps)};
}

/* Numbers [from, from + count) of a normed row. */
static void norm_part(const struct hn_kernels *k, const hn_norm *by, hn_row_sums sums, const float *x, int from, int count, float *y) {
    const float *w = or_none(hn_at(by->w, sizeof(float) * (size_t)from)), *b = or_none(hn_at(by->b, sizeof(float) * (size_t)from));
    if (by->kind == HN_LAYER_NORM)
        hn_centre(x + from, w, b, count, sums, y);
    else if (w)
        k->normalise(x + from, w, count, sums.inverse, y);
    else
        k->scale(y, x + from, count, sums.inverse);
}

void hn_cpu_norm(const hn_exec *ex, hn_count count, hn_matrix x, const hn_norm *by, hn_act a, hn_matrix y) {
    const int n = hn_cpu_number(count);
    assert(n <= a.max_rows && x.cols == a.in && (!y.at.mem || y.cols == a.in));
    const struct hn_kernels *k = hn_cpu(ex)->kernels;
    piece p = {0};
    while (next_piece(ex, n, a.in, &p)) {
        const float *row = hn_host_row(x, p.row);
        float *normed = act_f32(&a, p.row) + p.from; /* the F32 row is scratch if it is not wanted */
        norm_part(k, by, sums_of(k, by, row, a.in), row, p.from, p.count, normed);
        hn_cpu_put_inputs(hn_cpu(ex), normed, p.count, &a, a.forms & ~HN_ACT_F32, p.row, p.from / HN_GROUP);
        if (y.at.mem) memcpy(hn_host_row(y, p.row) + p.from, normed, (size_t)p.count * sizeof(float));
    }
    hn_cpu_barrier(ex);
}

/* A rank's inputs [from, to) of a row, whole groups; returns the first. */
static int share_groups(const hn_exec *ex, int in, int *from, int *to) {
    int first, last;
    hn_share(ex, hn_act_groups(in), &first, &last);
    *from = first * HN_GROUP;
    *to = last * HN_GROUP < in ? last * HN_GROUP : in;
    return first;
}

/* Split by columns: a single row is split too, and a rank mostly gets columns that it wrote itself (products and
 * attention give their ranks neighbouring columns). */
void hn_cpu_quantise(const hn_exec *ex, hn_count count, hn_matrix x, hn_act a) {
    const int n = hn_cpu_number(count);
    int k, end, first = share_groups(ex, a.in, &k, &end);
    assert(n <= a.max_rows && x.cols == a.in);
    for (int i = 0; i < n && k < end; i++) hn_cpu_put_inputs(hn_cpu(ex), hn_host_row(x, i) + k, end - k, &a, a.forms, i, first);
    hn_cpu_barrier(ex);
}

/* Split as above: each rank gathers the groups that it writes. */
void hn_cpu_permute(const hn_exec *ex, hn_count count, hn_act from, hn_buf order, hn_act to) {
    const int n = hn_cpu_number(count);
    const int32_t *input = hn_host_i32(order);
    int k, end, first = share_groups(ex, to.in, &k, &end);
    assert(n <= to.max_rows && from.in == to.in && from.forms & HN_ACT_F32);
    for (int i = 0; i < n; i++)
        for (int at = k, group = first; at < end; at += HN_GROUP, group++) {
            const float *row = act_f32(&from, i);
            float x[HN_GROUP];
            const int m = end - at < HN_GROUP ? end - at : HN_GROUP;
            for (int j = 0; j < m; j++) x[j] = row[input[at + j]];
            hn_cpu_put_inputs(hn_cpu(ex), x, m, &to, to.forms, i, group);
        }
    hn_cpu_barrier(ex);
}

/* One head of one row: bias, then norm. */
static void fix_head(const struct hn_kernels *k, float *x, const float *bias, const hn_norm *by, int dim) {
    if (bias) k->add(x, bias, dim);
    if (by->kind) norm_part(k, by, sums_of(k, by, x, dim), x, 0, dim, x);
}

void hn_cpu_fix_heads(const hn_exec *ex, hn_count count, const hn_head_fix *fix, const hn_qkv *x) {
    const int n = hn_cpu_number(count);
    const struct {
        hn_matrix x;
        const float *bias;
        const hn_norm *norm;
    } part[3] = {{x->q, or_none(fix->q_bias), &fix->q_norm},
                 {x->k, or_none(fix->k_bias), &fix->k_norm},
                 {x->v, or_none(fix->v_bias), &fix->v_norm}};
    const int dim = x->head_dim, heads = (x->q.cols + x->k.cols + x->v.cols) / dim;
    int first, last;
    hn_share(ex, n * heads, &first, &last);
    for (int i = first; i < last; i++) {
        int at = i % heads * dim, p = 0;
        while (at >= part[p].x.cols) at -= part[p++].x.cols;
        fix_head(hn_cpu(ex)->kernels, hn_host_row(part[p].x, i / heads) + at, part[p].bias ? part[p].bias + at : NULL, part[p].norm,
                 dim);
    }
    hn_cpu_barrier(ex);
}

/* A rank's columns [from, to), whole strips, as the products before wrote them. */
static void share_columns(const hn_exec *ex, int cols, int *from, int *to) {
    int first, last;
    hn_share(ex, (cols + HN_STRIP - 1) / HN_STRIP, &first, &last);
    *from = first * HN_STRIP;
    *to = last * HN_STRIP < cols ? last * HN_STRIP : cols;
}

void hn_cpu_norm_add(const hn_exec *ex, hn_count number, hn_matrix x, const hn_norm *by, float times, hn_matrix y) {
    const int n = hn_cpu_number(number);
    const struct hn_kernels *k = hn_cpu(ex)->kernels;
    piece p = {0};
    assert(x.cols == y.cols);
    while (next_piece(ex, n, x.cols, &p)) {
        const float *branch = hn_host_row(x, p.row);
        float *sum = hn_host_row(y, p.row), normed[HN_GROUP];
        const hn_row_sums sums = sums_of(k, by, branch, x.cols);
        for (int i = p.from; i < p.from + p.count; i += HN_GROUP) {
            const int left = p.from + p.count - i, count = left < HN_GROUP ? left : HN_GROUP;
            norm_part(k, by, sums, branch, i, count, normed);
            k->add(sum + i, normed, count);
            if (times != 1) k->scale(sum + i, sum + i, count, times);
        }
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_limited_glu(const struct hn_kernels *k, float *gate, const float *up, int count, float limit) {
    float one[HN_GROUP];
    for (int i = 0; i < HN_GROUP; i++) one[i] = 1;
    for (int from = 0, n; from < count; from += n) {
        n = hn_least(count - from, HN_GROUP);
        k->swiglu(gate + from, one, n);
        for (int i = from; i < from + n; i++) {
            const float g = gate[i] > limit ? limit : gate[i], low = up[i] > limit ? limit : up[i];
            gate[i] = g * (low < -limit ? -limit : low);
        }
    }
}

void hn_cpu_glu(const hn_exec *ex, hn_count count, hn_glu act, const hn_glu_in *in, float scale, hn_act y) {
    const int n = hn_cpu_number(count);
    const float *gb = or_none(in->gate_bias), *ub = or_none(in->up_bias);
    const struct hn_kernels *k = hn_cpu(ex)->kernels;
    int from, to, first = share_groups(ex, y.in, &from, &to);
    assert(n <= y.max_rows && in->gate.cols == y.in && in->up.cols == y.in);
    for (int i = 0; i < n && from < to; i++) {
        float *g = hn_host_row(in->gate, i) + from, *u = hn_host_row(in->up, i) + from;
        if (gb) k->add(g, gb + from, to - from);
        if (ub) k->add(u, ub + from, to - from);
        if (in->limit > 0) hn_cpu_limited_glu(k, g, u, to - from, in->limit);
        else (act == HN_GELU ? k->geglu : act == HN_SILU ? k->swiglu : k->sigmoid_glu)(g, u, to - from);
        if (scale != 1) k->scale(g, g, to - from, scale);
        hn_cpu_put_inputs(hn_cpu(ex), g, to - from, &y, y.forms, i, first);
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_add_bias(const hn_exec *ex, hn_count count, hn_matrix x, hn_buf bias) {
    const int n = hn_cpu_number(count);
    int from, to;
    share_columns(ex, x.cols, &from, &to);
    for (int i = 0; i < n; i++) hn_cpu(ex)->kernels->add(hn_host_row(x, i) + from, hn_host_f32(bias) + from, to - from);
    hn_cpu_barrier(ex);
}

enum { SOME = 64 }; /* numbers at a time */
static const float ones[SOME] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* x = f(x) of at most SOME numbers. */
static void apply_some(const struct hn_kernels *k, hn_function f, float *x, int count) {
    switch (f) {
    case HN_SAME: break;
    case HN_SWISH: k->swiglu(x, ones, count); break;
    case HN_SIGMOID: k->sigmoid_glu(x, ones, count); break;
    case HN_GELU_ERF:
        for (int i = 0; i < count; i++) x[i] = (float)(0.5 * (double)x[i] * (1 + erf((double)x[i] * 0.70710678118654752440)));
        break;
    case HN_TANH:
        for (int i = 0; i < count; i++) x[i] = (float)tanh((double)x[i]);
        break;
    case HN_SOFTPLUS:
        for (int i = 0; i < count; i++) x[i] = (float)hn_softplus((double)x[i]);
        break;
    case HN_RELU2:
        for (int i = 0; i < count; i++) x[i] = x[i] < 0 ? 0 : x[i] * x[i];
        break;
    }
}

void hn_cpu_apply(const hn_exec *ex, hn_count number, hn_function f, hn_into into, hn_matrix x, hn_buf bias, hn_matrix y) {
    const int n = hn_cpu_number(number);
    const float *b = or_none(bias);
    int from, to;
    assert(x.cols == y.cols);
    share_columns(ex, y.cols, &from, &to);
    for (int i = 0; i < n; i++)
        for (int k = from, count; k < to; k += count) {
            float value[SOME], *dst = hn_host_row(y, i) + k;
            count = to - k < SOME ? to - k : SOME;
            memcpy(value, hn_host_row(x, i) + k, (size_t)count * sizeof *value);
            if (b) hn_cpu(ex)->kernels->add(value, b + k, count);
            apply_some(hn_cpu(ex)->kernels, f, value, count);
            if (into == HN_INTO_SET) memcpy(dst, value, (size_t)count * sizeof *value);
            if (into == HN_INTO_ADD) hn_cpu(ex)->kernels->add(dst, value, count);
            for (int c = 0; into == HN_INTO_TIMES && c < count; c++) dst[c] *= value[c];
        }
    hn_cpu_barrier(ex);
}

/* Numbers [k, k + count) of a row's state. */
static void gru_some(const struct hn_kernels *k, const float *input, float *own, int size, float *s, int count) {
    float *reset = own, *update = own + size, *fresh = own + 2 * size;
    k->add(reset, input, count);
    k->add(update, input + size, count);
    k->sigmoid_glu(reset, fresh, count);
    memcpy(fresh, input + 2 * size, (size_t)count * sizeof *fresh);
    k->add(fresh, reset, count);
    k->softcap(fresh, count, 1);
    for (int i = 0; i < count; i++) s[i] -= fresh[i];
    k->sigmoid_glu(update, s, count);
    memcpy(s, fresh, (size_t)count * sizeof *s);
    k->add(s, update, count);
}

void hn_cpu_gru(const hn_exec *ex, hn_count count, hn_matrix input, hn_matrix own, hn_matrix s) {
    const int n = hn_cpu_number(count);
    int from, to;
    assert(input.cols == 3 * s.cols && own.cols == 3 * s.cols);
    share_columns(ex, s.cols, &from, &to);
    for (int i = 0; i < n && from < to; i++)
        gru_some(hn_cpu(ex)->kernels, hn_host_row(input, i) + from, hn_host_row(own, i) + from, s.cols, hn_host_row(s, i) + from,
                 to - from);
    hn_cpu_barrier(ex);
}

/* sum[count] += (base + a coefficient for each group) * x, from the first column of a group on. */
static void add_tap(float *sum, const float *base, const float *coefficient, const float *x, int count, int group) {
    for (int k = 0; k < count; k += group)
        for (int i = k; i < k + group; i++) sum[i] += (base[i] + coefficient[k / group]) * x[i];
}

void hn_cpu_convolve(const hn_exec *ex, hn_count number, const hn_convolution *c, hn_matrix x, bool add, hn_matrix y) {
    const int n = hn_cpu_number(number);
    const float *base = hn_host_f32(c->base);
    const int groups = x.cols / c->group;
    int first, last;
    assert(x.cols == y.cols && x.cols % c->group == 0 && c->coefficients.cols == c->taps * groups);
    hn_share(ex, groups, &first, &last);
    const int from = first * c->group, count = (last - first) * c->group;
    for (int i = 0; i < n && count > 0; i++) {
        float *sum = hn_host_row(y, i) + from;
        if (!add) memset(sum, 0, (size_t)count * sizeof *sum);
        for (int t = 0; t < c->taps && t <= i % c->block; t++)
            add_tap(sum, base + t * x.cols + from, hn_host_row(c->coefficients, i) + t * groups + first, hn_host_row(x, i - t) + from,
                    count, c->group);
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_scale(const hn_exec *ex, hn_count count, hn_matrix x, float a) {
    const int n = hn_cpu_number(count);
    int from, to;
    share_columns(ex, x.cols, &from, &to);
    for (int i = 0; i < n; i++) {
        float *row = hn_host_row(x, i) + from;
        hn_cpu(ex)->kernels->scale(row, row, to - from, a);
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_scale_groups(const hn_exec *ex, hn_count count, hn_matrix by, int each, hn_matrix x) {
    const int n = hn_cpu_number(count), groups = x.cols / each;
    int first, last;
    assert(x.cols % each == 0 && by.cols == groups);
    hn_share(ex, n * groups, &first, &last);
    for (int i = first; i < last; i++) {
        float *part = hn_host_row(x, i / groups) + i % groups * each;
        hn_cpu(ex)->kernels->scale(part, part, each, hn_host_row(by, i / groups)[i % groups]);
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_scale_by_position(const hn_exec *ex, const hn_rows *rows, const hn_position_scale *by, hn_matrix x) {
    const int n = hn_cpu_number(rows->n);
    int from, to;
    share_columns(ex, x.cols, &from, &to);
    for (int i = 0; i < n && from < to; i++) {
        const int spans = (hn_host_i32(rows->position)[i] + by->more) / by->span;
        float *row = hn_host_row(x, i) + from;
        if (spans > 0) hn_cpu(ex)->kernels->scale(row, row, to - from, (float)(1 + (double)by->times * log(1 + spans)));
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_rope_table(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *to) {
    const hn_rope *rope = to->rope;
    const int32_t *position = hn_host_i32(rows->position);
    const float *freq = hn_host_f32(rope->freq);
    int half = rope->dims / 2, first, last;
    hn_share(ex, hn_cpu_number(rows->n) * half, &first, &last);
    for (int i = first; i < last; i++) {
        float *row = hn_host_f32(to->cs) + (size_t)(i / half) * (size_t)rope->dims;
        float angle = (float)position[i / half] * freq[i % half]; /* rounded to f32, as the reference does */
        /* Rounded from double, every C library gives the same float; their sinf and cosf sometimes differ in the last bit. */
        row[i % half] = (float)cos((double)angle) * rope->scale;
        row[half + i % half] = (float)sin((double)angle) * rope->scale;
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_pick(const hn_exec *ex, hn_count count, const hn_pick *parts, int n_parts) {
    const int n = hn_cpu_number(count);
    int first, last;
    hn_share(ex, n, &first, &last);
    for (int i = first; i < last; i++)
        for (int k = 0; k < n_parts; k++) {
            const hn_pick *p = &parts[k];
            const float *src = hn_host_row(p->src, i) + p->first;
            float *dst = hn_host_row(p->dst, i);
            for (int c = 0, left; (left = p->dst.cols - c) > 0; c += p->run, src += p->stride)
                memcpy(dst + c, src, sizeof *dst * (size_t)(left < p->run ? left : p->run));
        }
    hn_cpu_barrier(ex);
}

void hn_cpu_gather(const hn_exec *ex, hn_count count, hn_buf from, hn_matrix src, hn_buf to, hn_matrix dst) {
    const int n = hn_cpu_number(count);
    int first, last;
    assert(src.cols == dst.cols);
    hn_share(ex, n, &first, &last);
    for (int i = first; i < last; i++) {
        const int at = to.mem ? hn_host_i32(to)[i] : i;
        memcpy(hn_host_row(dst, at), hn_host_row(src, hn_host_i32(from)[i]), (size_t)dst.cols * sizeof(float));
    }
    hn_cpu_barrier(ex);
}
