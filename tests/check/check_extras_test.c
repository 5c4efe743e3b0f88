/* SPDX-License-Identifier: Apache-2.0 */
/* check_extras_test.c - operations of only some families: GeGLU, soft caps, biases and norms of heads, norms after
 * branches, a scaled residual; and sums of exp. The kernels at every level against ref, bit for bit; ref against double
 * arithmetic; the operations against plain loops, with any number of threads. */
#include "check.h"

/* ---- kernels --------------------------------------------------------------------------------------------------------- */

static void one_level(const struct hn_kernels *k, const char *name) {
    const int n = check_int(1, 100);
    const enum check_kind kind = check_any_kind();
    check_buf b[4];
    float *x[4];
    for (int i = 0; i < 4; i++) x[i] = check_guarded(&b[i], n);
    check_fill(x[0], n, kind);
    check_fill(x[1], n, USUAL);
    memcpy(x[2], x[0], (size_t)n * sizeof(float));
    memcpy(x[3], x[0], (size_t)n * sizeof(float));
    check_ref()->geglu(x[2], x[1], n);
    k->geglu(x[3], x[1], n);
    check_same_row(x[3], x[2], n, name, 0);
    for (int i = 0; i < n && kind == USUAL; i++) {
        const double want = check_gelu(x[0][i]) * x[1][i];
        assert_true(fabs(x[2][i] - want) <= 1e-5 * fabs(want) + 1e-30);
    }
    check_ref()->add(x[2], x[0], n);
    k->add(x[3], x[0], n);
    check_same_row(x[3], x[2], n, name, 1);
    for (int i = 0; i < 4; i++) check_free(&b[i]);
}

/* cap * tanh(x / cap) of numbers from tiny ones to those far beyond the cap; NaN stays NaN. */
static void one_cap(const struct hn_kernels *k, const char *name) {
    const int n = check_int(1, 100);
    const enum check_kind kind = check_any_kind();
    const float cap = check_int(0, 1) ? 30.0f : 0.7f;
    check_buf b[3];
    float *x[3];
    for (int i = 0; i < 3; i++) x[i] = check_guarded(&b[i], n);
    check_fill(x[0], n, kind);
    for (int i = 0; i < n && kind == USUAL; i++) x[0][i] *= (float)exp(check_int(-12, 6));
    memcpy(x[1], x[0], (size_t)n * sizeof(float));
    memcpy(x[2], x[0], (size_t)n * sizeof(float));
    check_ref()->softcap(x[1], n, cap);
    k->softcap(x[2], n, cap);
    check_same_row(x[2], x[1], n, name, 2);
    for (int i = 0; i < n; i++) {
        const double want = (double)cap * tanh((double)x[0][i] / (double)cap);
        assert_true(isnan(want) ? isnan(x[1][i]) : fabs(x[1][i] - want) <= 1e-6 * fabs(want) + 1e-30);
    }
    for (int i = 0; i < 3; i++) check_free(&b[i]);
}

static void one_exps(const struct hn_kernels *k, const char *name) {
    const int n = check_int(1, 60);
    check_buf b[2];
    float *x = check_guarded(&b[0], n), *y = check_guarded(&b[1], n);
    check_fill(x, n, check_any_kind());
    memcpy(y, x, (size_t)n * sizeof(float));
    for (int i = 0; i < n; i++) x[i] = hn_exp(x[i]);
    k->exps(y, n);
    check_same_row(y, x, n, name, 4);
    for (int i = 0; i < 2; i++) check_free(&b[i]);
}

/* Sums of exp of the numbers below a row's largest one, or below any, and of their distance times that; NaN is excluded. */
static void one_sum(const struct hn_kernels *k, const char *name) {
    const int n = check_int(1, 300);
    check_buf b;
    float *x = check_guarded(&b, n), most = -INFINITY;
    double want = 0, want_moment = 0;
    check_fill(x, n, check_any_kind());
    for (int i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    if (check_int(0, 7) == 0) most = 0.25f;
    const float have = check_ref()->exp_sum(x, n, most), other = k->exp_sum(x, n, most);
    check_same_row(&other, &have, 1, name, 3);
    const float moment = check_ref()->exp_moment(x, n, most), other_moment = k->exp_moment(x, n, most);
    check_same_row(&other_moment, &moment, 1, name, 5);
    for (int i = 0; i < n; i++) {
        const double d = (double)x[i] - (double)most;
        if (!(d <= 0)) continue;
        want += exp(d);
        if (d > -INFINITY) want_moment += d * exp(d);
    }
    assert_true(!isfinite(most) || fabs(have - want) <= 1e-5 * want + 1e-30);
    assert_true(isfinite(moment) && (!isfinite(most) || fabs(moment - want_moment) <= 2e-5 * fabs(want_moment) + 1e-30));
    check_free(&b);
}

static void kernels_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int round = 0; round < 100; round++) one_level(hn_kernels_get(isa), hn_isa_name(isa));
        for (int round = 0; round < 100; round++) one_cap(hn_kernels_get(isa), hn_isa_name(isa));
        for (int round = 0; round < 100; round++) one_sum(hn_kernels_get(isa), hn_isa_name(isa));
        for (int round = 0; round < 100; round++) one_exps(hn_kernels_get(isa), hn_isa_name(isa));
    }
}

/* Far from zero GELU is the identity or zero, and NaN stays NaN. */
static void edges_test(void **state HN_UNUSED) {
    float gate[5] = {30, -30, INFINITY, NAN, 0}, up[5] = {2, 2, 2, 2, 2};
    check_ref()->geglu(gate, up, 5);
    assert_true(gate[0] == 60 && fabsf(gate[1]) < 1e-30f && gate[2] == INFINITY && isnan(gate[3]) && gate[4] == 0);
    float x[5] = {INFINITY, -INFINITY, NAN, 0, 1e30f};
    check_ref()->softcap(x, 5, 30);
    assert_true(x[0] == 30 && x[1] == -30 && isnan(x[2]) && x[3] == 0 && x[4] == 30);
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

enum { ROWS = 9, HEADS = 6, KV_HEADS = 2, DIM = 24, LD = HEADS * DIM + 5, COLS = 77 };

/* Heads and a branch, before (x) and after (y) the operations. */
typedef struct layer {
    check_ops c;
    hn_head_fix fix;
    hn_buf q, k, v, gate, up, branch, residual, scaled;
    hn_norm norm;
    hn_act gated;
    float times;
    int n;
} layer;

static void layer_rank(void *arg, int rank, int ranks) {
    const layer *l = arg;
    hn_backend *o = l->c.o;
    hn_exec ex = {o->ops, o, rank, ranks};
    const hn_qkv heads = {{l->q, HEADS * DIM, LD}, {l->k, KV_HEADS * DIM, LD}, {l->v, KV_HEADS * DIM, LD}, DIM};
    const hn_glu_in both = {.gate = {l->gate, COLS, LD}, .up = {l->up, COLS, LD}};
    o->ops->fix_heads(&ex, check_number(l->n), &l->fix, &heads);
    o->ops->glu(&ex, check_number(l->n), HN_GELU, &both, 1, l->gated);
    o->ops->norm_add(&ex, check_number(l->n), (hn_matrix){l->branch, COLS, LD}, &l->norm, l->times,
                     (hn_matrix){l->residual, COLS, LD});
    o->ops->scale(&ex, check_number(l->n), (hn_matrix){l->scaled, COLS, LD}, 0.37f);
}

static hn_norm norm_of(hn_backend *o, int width, hn_norm_kind kind) {
    hn_norm n = {.w = check_put_random(o, width), .kind = kind, .eps = 1e-6f};
    if (kind == HN_LAYER_NORM) n.b = check_put_random(o, width);
    return n;
}

/* Each of q, k and v with or without a bias; q and k with or without a norm, v with or without one that has no weights; of both kinds. */
static void layer_create(layer *l, hn_isa isa, int with) {
    l->c = check_open(check_int(1, 4), isa, false);
    hn_backend *o = l->c.o;
    hn_buf *const rows[] = {&l->q, &l->k, &l->v, &l->gate, &l->up, &l->branch, &l->residual, &l->scaled};
    for (int i = 0; i < 8; i++) *rows[i] = check_put_random(o, ROWS * LD);
    l->norm = norm_of(o, COLS, with & 16 ? HN_LAYER_NORM : HN_RMS_NORM);
    l->gated = (hn_act){check_mem(o, o->act_bytes(COLS, ROWS)), COLS, ROWS, HN_ACT_F32};
    l->n = check_int(1, ROWS);
    l->fix = (hn_head_fix){0};
    if (with & 1) l->fix.q_bias = check_put_random(o, HEADS * DIM);
    if (with & 1) l->fix.k_bias = check_put_random(o, KV_HEADS * DIM);
    if (with & 2) l->fix.v_bias = check_put_random(o, KV_HEADS * DIM);
    if (with & 4) l->fix.q_norm = norm_of(o, DIM, with & 16 ? HN_LAYER_NORM : HN_RMS_NORM);
    if (with & 4) l->fix.k_norm = norm_of(o, DIM, HN_RMS_NORM);
    if (with & 8) l->fix.v_norm = (hn_norm){.kind = with & 16 ? HN_LAYER_NORM : HN_RMS_NORM, .eps = 1e-6f};
    l->times = with & 8 ? 0.3f : 1;
}

static void layer_free(layer *l) {
    const hn_buf all[] = {l->q, l->k, l->v, l->gate, l->up, l->branch, l->residual, l->scaled, l->norm.w, l->norm.b, l->fix.q_bias,
                          l->gated.data, l->fix.k_bias, l->fix.v_bias, l->fix.q_norm.w, l->fix.q_norm.b, l->fix.k_norm.w};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) l->c.o->mem_free(l->c.o, all[i].mem);
    check_close(&l->c);
}

static float *copy_of(hn_buf b) {
    float *copy = hn_alloc(ROWS * LD * sizeof *copy);
    memcpy(copy, hn_host(b), ROWS * LD * sizeof *copy);
    return copy;
}

static void norm_in_place(const hn_norm *norm, float *x, int width) {
    const bool centred = norm->kind == HN_LAYER_NORM;
    const hn_row_sums sums = centred ? hn_centred_sums(x, width, norm->eps)
                                     : (hn_row_sums){0, check_ref()->inverse_rms(x, width, norm->eps)};
    for (int i = 0; i < width; i++) {
        const float w = norm->w.mem ? hn_host_f32(norm->w)[i] : 1, b = norm->b.mem ? hn_host_f32(norm->b)[i] : 0;
        x[i] = centred ? fmaf((x[i] - sums.mean) * sums.inverse, w, b) : x[i] * sums.inverse * w;
    }
}

/* One row of heads before the operation (x), by plain loops, against the row after it; numbers after the heads do not change. */
static void check_heads(float *x, hn_buf have, int row, int heads, hn_buf bias, const hn_norm *norm, const char *what) {
    x += row * LD;
    for (int i = 0; i < heads * DIM && bias.mem; i++) x[i] += hn_host_f32(bias)[i];
    for (int h = 0; h < heads && norm->kind; h++) norm_in_place(norm, x + h * DIM, DIM);
    check_same_row(hn_host_f32(have) + row * LD, x, LD, what, row);
}

static void check_branch(const layer *l, float *gate, float *branch, float *residual, float *scaled, int row) {
    const int at = row * LD;
    check_ref()->geglu(gate + at, hn_host_f32(l->up) + at, COLS);
    check_same_row(act_f32(&l->gated, row), gate + at, COLS, "geglu", row);
    norm_in_place(&l->norm, branch + at, COLS);
    for (int k = 0; k < COLS; k++) residual[at + k] = (residual[at + k] + branch[at + k]) * l->times;
    check_same_row(hn_host_f32(l->residual) + at, residual + at, LD, "norm_add", row);
    for (int k = 0; k < COLS; k++) scaled[at + k] *= 0.37f;
    check_same_row(hn_host_f32(l->scaled) + at, scaled + at, LD, "scale", row);
}

static void one_layer(hn_isa isa, int with) {
    layer l;
    layer_create(&l, isa, with);
    float *before[] = {copy_of(l.q), copy_of(l.k), copy_of(l.v), copy_of(l.gate), copy_of(l.branch), copy_of(l.residual),
                       copy_of(l.scaled)};
    hn_pool_run(l.c.pool, layer_rank, &l);
    for (int row = 0; row < l.n; row++) {
        check_heads(before[0], l.q, row, HEADS, l.fix.q_bias, &l.fix.q_norm, "q");
        check_heads(before[1], l.k, row, KV_HEADS, l.fix.k_bias, &l.fix.k_norm, "k");
        check_heads(before[2], l.v, row, KV_HEADS, l.fix.v_bias, &l.fix.v_norm, "v");
        check_branch(&l, before[3], before[4], before[5], before[6], row);
    }
    for (int i = 0; i < 7; i++) hn_free(before[i]);
    layer_free(&l);
}

/* ---- inputs in another order -------------------------------------------------------------------------------------------------- */

enum { INPUTS = 200 };
typedef struct ordered {
    check_ops c;
    hn_matrix x, turned; /* the second has its columns in the order */
    hn_buf order;
    hn_act from, to, want;
    int n;
} ordered;

static void ordered_rank(void *arg, int rank, int ranks) {
    const ordered *t = arg;
    hn_backend *o = t->c.o;
    const hn_exec ex = {o->ops, o, rank, ranks};
    o->ops->quantise(&ex, check_number(t->n), t->x, t->from);
    o->ops->permute(&ex, check_number(t->n), t->from, t->order, t->to);
    o->ops->quantise(&ex, check_number(t->n), t->turned, t->want);
}

/* permute makes what quantise makes of rows whose numbers stand in that order, bit for bit, in all forms. */
static void permute_test(void **state HN_UNUSED) {
    for (int round = 0; round < 20; round++) {
        ordered t = {.c = check_open(check_int(1, 4), hn_isa_best(), false), .n = check_int(1, ROWS)};
        const int in = check_int(1, INPUTS), forms = HN_ACT_Q8 | HN_ACT_BF16 | HN_ACT_F32;
        const size_t bytes = hn_act_size(in, ROWS);
        t.x = (hn_matrix){check_put_random(t.c.o, ROWS * INPUTS), in, INPUTS};
        t.turned = (hn_matrix){check_put_random(t.c.o, ROWS * INPUTS), in, INPUTS};
        t.order = check_mem(t.c.o, INPUTS * sizeof(int32_t));
        hn_act *const acts[] = {&t.from, &t.to, &t.want};
        for (int k = 0; k < 3; k++) {
            *acts[k] = (hn_act){check_mem(t.c.o, bytes), in, ROWS, k ? forms : HN_ACT_F32};
            memset(hn_host(acts[k]->data), 0, bytes);
        }
        int32_t *order = hn_host(t.order);
        for (int i = 0; i < in; i++) order[i] = i;
        for (int i = in - 1; i > 0; i--) {
            const int j = check_int(0, i);
            const int32_t kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
        for (int i = 0; i < ROWS * in; i++)
            hn_host_f32(t.turned.at)[i / in * INPUTS + i % in] = hn_host_f32(t.x.at)[i / in * INPUTS + order[i % in]];
        hn_pool_run(t.c.pool, ordered_rank, &t);
        assert_memory_equal(hn_host(t.to.data), hn_host(t.want.data), bytes);
        for (int k = 0; k < 3; k++) t.c.o->mem_free(t.c.o, acts[k]->data.mem);
        t.c.o->mem_free(t.c.o, t.order.mem);
        t.c.o->mem_free(t.c.o, t.x.at.mem);
        t.c.o->mem_free(t.c.o, t.turned.at.mem);
        check_close(&t.c);
    }
}

/* ---- factors of heads and positions ---------------------------------------------------------------------------------------- */

typedef struct factors {
    check_ops c;
    hn_buf x, by, position;
    hn_position_scale how;
    int n;
} factors;

static void factors_rank(void *arg, int rank, int ranks) {
    const factors *f = arg;
    hn_backend *o = f->c.o;
    const hn_exec ex = {o->ops, o, rank, ranks};
    const hn_rows rows = {.n = check_number(f->n), .position = f->position};
    const hn_matrix x = {f->x, HEADS * DIM, LD};
    o->ops->scale_groups(&ex, rows.n, (hn_matrix){f->by, HEADS, HEADS + 1}, DIM, x);
    o->ops->scale_by_position(&ex, &rows, &f->how, x);
}

static void factors_test(void **state HN_UNUSED) {
    static const hn_position_scale hows[] = {{0.1f, 16, 0}, {0.25f, 8192, 1}, {2, 1, 0}};
    static const int32_t position[ROWS] = {0, 14, 15, 16, 31, 32, 8190, 8191, 1000000};
    for (int round = 0; round < 12; round++) {
        factors f = {.c = check_open(check_int(1, 4), hn_isa_best(), false), .how = hows[round % 3], .n = check_int(1, ROWS)};
        f.x = check_put_random(f.c.o, ROWS * LD);
        f.by = check_put_random(f.c.o, ROWS * (HEADS + 1));
        f.position = check_mem(f.c.o, sizeof position);
        memcpy(hn_host(f.position), position, sizeof position);
        float *x = copy_of(f.x);
        hn_pool_run(f.c.pool, factors_rank, &f);
        for (int i = 0; i < ROWS * LD; i++) {
            const int row = i / LD, column = i % LD;
            const double spans = floor((double)(position[row] + f.how.more) / f.how.span);
            if (row < f.n && column < HEADS * DIM)
                x[i] = x[i] * hn_host_f32(f.by)[row * (HEADS + 1) + column / DIM] * (float)(1 + (double)f.how.times * log(1 + spans));
            assert_true(hn_host_f32(f.x)[i] == x[i]);
        }
        hn_free(x);
        f.c.o->mem_free(f.c.o, f.x.mem);
        f.c.o->mem_free(f.c.o, f.by.mem);
        f.c.o->mem_free(f.c.o, f.position.mem);
        check_close(&f.c);
    }
}

static void operations_test(void **state HN_UNUSED) {
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        for (int with = 0; with < 32; with++) one_layer(isa, with);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_test),
        cmocka_unit_test(edges_test),
        cmocka_unit_test(operations_test), cmocka_unit_test(permute_test), cmocka_unit_test(factors_test),
    };
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
