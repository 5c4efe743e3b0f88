/* SPDX-License-Identifier: Apache-2.0 */
/* check_linear_test.c - weight packing and matrix products: every level against ref, bit for bit; ref against double
 * arithmetic; a row alone against the same row among others; any number of threads against one. */
#include "check.h"

static const hn_dtype all_types[] = {HN_F32, HN_F16, HN_BF16, HN_Q4_0, HN_Q4_1, HN_Q8_0};
enum { TYPES = sizeof all_types / sizeof *all_types };

/* A random width that the type can have. */
static int random_in(hn_dtype t, int most) {
    return hn_is_block_type(t) ? HN_BLOCK * check_int(1, most / HN_BLOCK) : check_int(1, most);
}

/* ---- packing ----------------------------------------------------------------------------------------------------------- */

static void check_pack(hn_dtype t, int out, int in) {
    size_t row_bytes = check_row_bytes(t, in), shift = (size_t)check_int(0, 7); /* sources may lie anywhere */
    check_buf src = check_alloc(row_bytes * (size_t)out, shift), strip = check_alloc(hn_strip_bytes(t, in), 0);
    float *want = hn_alloc((size_t)in * sizeof *want), *got = hn_alloc((size_t)in * sizeof *got);
    for (int i = 0; i < out; i++) check_weights(t, in, true, src.p + row_bytes * (size_t)i);
    for (int first = 0; first < out; first += HN_STRIP) {
        hn_pack_strip(t, out, in, src.p, row_bytes, first, strip.p);
        for (int o = 0; o < HN_STRIP; o++) {
            hn_strip_row(t, strip.p, o, 0, in, got);
            if (first + o < out) {
                hn_dequantise(t, src.p + row_bytes * (size_t)(first + o), (size_t)in, want);
                check_same_row(got, want, in, hn_dtype_name(t), first + o);
            } else {
                for (int k = 0; k < in; k++) assert_true(got[k] == 0);
            }
        }
    }
    check_free(&src);
    check_free(&strip);
    hn_free(want);
    hn_free(got);
}

static void pack_test(void **state HN_UNUSED) {
    for (int i = 0; i < TYPES; i++) {
        check_pack(all_types[i], 105, hn_is_block_type(all_types[i]) ? 96 : 43);
        for (int round = 0; round < 5; round++) {
            check_pack(all_types[i], check_int(1, 70), random_in(all_types[i], 300));
        }
    }
}

/* ---- kernels against ref ------------------------------------------------------------------------------------------------- */

/* Some strips of one type and rows in both forms. */
typedef struct job {
    hn_dtype type;
    int strips, in, n;
    check_buf w[HN_CALL_STRIPS], q8, f32;
    size_t q8_stride, f32_stride;
} job;

static job job_create(hn_dtype t, int strips, int in, int n) {
    job j = {.type = t, .strips = strips, .in = in, .n = n, .q8_stride = hn_act_q8_stride(in),
             .f32_stride = hn_act_f32_stride(in)};
    size_t row_bytes = check_row_bytes(t, in);
    unsigned char *rows = hn_alloc(row_bytes * HN_STRIP);
    for (int s = 0; s < strips; s++) {
        int real = s == strips - 1 ? check_int(1, HN_STRIP) : HN_STRIP; /* the last strip may be cut off */
        for (int i = 0; i < real; i++) check_weights(t, in, s == 1, rows + row_bytes * (size_t)i);
        j.w[s] = check_alloc(hn_strip_bytes(t, in), 0);
        hn_pack_strip(t, real, in, rows, row_bytes, 0, j.w[s].p);
    }
    hn_free(rows);
    j.q8 = check_alloc(j.q8_stride * (size_t)n, 0);
    j.f32 = check_alloc(j.f32_stride * (size_t)n, 0);
    for (int r = 0; r < n; r++) {
        float *x = (float *)(j.f32.p + j.f32_stride * (size_t)r);
        check_fill(x, in, r % 3 ? USUAL : (enum check_kind)check_int(0, CHECK_KINDS - 1));
        hn_kernels_get(HN_ISA_REF)->quantise(x, in, (hn_q8_group *)(j.q8.p + j.q8_stride * (size_t)r));
    }
    return j;
}

static void job_free(job *j) {
    for (int s = 0; s < j->strips; s++) check_free(&j->w[s]);
    check_free(&j->q8);
    check_free(&j->f32);
}

/* Result [strips][n][16] in a guarded buffer. */
static check_buf job_run(const job *j, hn_isa isa, bool f32) {
    const struct hn_kernels *k = hn_kernels_get(isa);
    check_buf c = check_alloc((size_t)(j->strips * j->n * HN_STRIP) * sizeof(float), 0);
    hn_strips_job call = {.strips = j->strips, .in = j->in, .n = j->n, .c = (float *)c.p,
                          .x = f32 ? j->f32.p : j->q8.p, .x_stride = f32 ? j->f32_stride : j->q8_stride};
    for (int s = 0; s < j->strips; s++) call.w[s] = j->w[s].p;
    (f32 ? k->linear_f32 : k->linear_q8)[j->type](&call);
    return c;
}

/* Σ w x of one output over the row's values as the form holds them, in double; and the sum of magnitudes. */
static double exact(const job *j, bool f32, int strip, int row, int o, double *magnitude) {
    float *w = hn_alloc((size_t)j->in * sizeof *w);
    hn_strip_row(j->type, j->w[strip].p, o, 0, j->in, w);
    const float *x = (const float *)(j->f32.p + j->f32_stride * (size_t)row);
    const hn_q8_group *g = (const hn_q8_group *)(j->q8.p + j->q8_stride * (size_t)row);
    double sum = 0;
    *magnitude = 0;
    for (int k = 0; k < j->in; k++) {
        double v = f32 ? x[k] : (double)g[k / 64].d[k % 64 / 32] * g[k / 64].q[k % 64];
        sum += w[k] * v;
        *magnitude += fabs(w[k] * v);
    }
    hn_free(w);
    return sum;
}

static void check_against_double(const job *j, bool f32, const float *c) {
    for (int i = 0; i < 8; i++) {
        int s = check_int(0, j->strips - 1), r = check_int(0, j->n - 1), o = check_int(0, HN_STRIP - 1);
        double magnitude, want = exact(j, f32, s, r, o, &magnitude);
        double got = c[(s * j->n + r) * HN_STRIP + o];
        if (!isfinite(want)) {
            assert_false(isfinite(got));
        } else if (magnitude < 1e38) {
            /* Q4_1 sums codes and minimum apart, and they nearly cancel: its terms are up to 15 times the weight */
            double bound = (j->type == HN_Q4_1 && !f32 ? 20 : 1) * (j->in + 8) * 0x1p-23 * magnitude + 1e-37;
            if (!(fabs(got - want) <= bound)) fail_msg("%s: %a, expected %a", hn_dtype_name(j->type), got, want);
        }
    }
}

static void check_job(hn_dtype t, int strips, int in, int n) {
    job j = job_create(t, strips, in, n);
    for (int f32 = hn_is_block_type(t) ? 0 : 1; f32 < 2; f32++) {
        check_buf ref = job_run(&j, HN_ISA_REF, f32);
        check_against_double(&j, f32, (const float *)ref.p);
        for (int isa = HN_ISA_REF + 1; isa <= (int)hn_isa_best(); isa++) {
            check_buf c = job_run(&j, (hn_isa)isa, f32);
            char what[100];
            snprintf(what, sizeof what, "%s %s %s strips %d in %d n %d", hn_isa_name((hn_isa)isa), hn_dtype_name(t),
                     f32 ? "f32" : "q8", strips, in, n);
            check_same_row((float *)c.p, (float *)ref.p, strips * n * HN_STRIP, what, 0);
            check_free(&c);
        }
        check_free(&ref);
    }
    job_free(&j);
}

static void kernels_test(void **state HN_UNUSED) {
    static const int rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17, 64};
    for (int i = 0; i < TYPES; i++) {
        hn_dtype t = all_types[i];
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            check_job(t, check_int(1, HN_CALL_STRIPS), random_in(t, 400), rows[r]);
        }
        check_job(t, 3, 32, 2);
        check_job(t, HN_CALL_STRIPS, hn_is_block_type(t) ? 608 : 172, check_int(1, 20));
        if (!hn_is_block_type(t)) check_job(t, 2, 1, 3);
    }
}

static void store_test(void **state HN_UNUSED) {
    const struct hn_kernels *ref = hn_kernels_get(HN_ISA_REF);
    _Alignas(64) float c[2][8 * HN_STRIP];
    for (int isa = HN_ISA_REF; isa <= (int)hn_isa_best(); isa++) {
        const struct hn_kernels *k = hn_kernels_get((hn_isa)isa);
        for (int cols = 1; cols <= HN_STRIP; cols++) {
            for (int what = 0; what < 3; what++) {
                int n = check_int(1, 8), ldy = cols + check_int(0, 3);
                size_t bytes = (size_t)(ldy * (n - 1) + cols) * sizeof(float);
                check_buf a = check_alloc(bytes, 4), b = check_alloc(bytes, 4);
                check_fill(c[0], 8 * HN_STRIP, (enum check_kind)check_int(0, CHECK_KINDS - 1));
                check_fill(c[1], 8 * HN_STRIP, USUAL);
                if (what == 2) {
                    ref->store_glu(c[0], c[1], n, (float *)a.p, ldy, cols);
                    k->store_glu(c[0], c[1], n, (float *)b.p, ldy, cols);
                } else {
                    ref->store(c[0], n, (float *)a.p, ldy, cols, what);
                    k->store(c[0], n, (float *)b.p, ldy, cols, what);
                }
                check_same_row((float *)b.p, (float *)a.p, ldy * (n - 1) + cols, hn_isa_name((hn_isa)isa), what);
                check_free(&a);
                check_free(&b);
            }
        }
    }
}

/* ---- the operations ----------------------------------------------------------------------------------------------------------- */

enum { MATRICES = 3 };

/* Up to three matrices of different types and heights over one input, packed for the backend. */
typedef struct layer {
    int in, n_mats;
    hn_weight w[MATRICES];
} layer;

static hn_weight weight_create(const hn_ops *o, hn_dtype t, int out, int in, hn_buf data, size_t stride) {
    hn_weight w = {.dtype = t, .out = out, .in = in, .data = data, .strip_stride = stride};
    size_t row_bytes = check_row_bytes(t, in);
    unsigned char *rows = hn_alloc(row_bytes * (size_t)out);
    for (int i = 0; i < out; i++) check_weights(t, in, false, rows + row_bytes * (size_t)i);
    for (int s = 0; s < hn_strips(out); s++) {
        o->pack_strip(o, t, out, in, rows, row_bytes, s * HN_STRIP, hn_at(data, stride * (size_t)s));
    }
    hn_free(rows);
    return w;
}

static layer layer_create(const hn_ops *o, int in) {
    layer l = {.in = in, .n_mats = check_int(1, MATRICES)};
    for (int i = 0; i < l.n_mats; i++) {
        hn_dtype t = all_types[check_int(0, TYPES - 1)];
        int out = check_int(1, 130);
        size_t stride = hn_strip_bytes(t, in);
        l.w[i] = weight_create(o, t, out, in, check_mem(o, stride * (size_t)hn_strips(out)), stride);
    }
    return l;
}

/* One call with its own buffers. */
typedef struct call {
    const hn_ops *o;
    const layer *l;
    int n;
    bool add, glu;
    hn_act act;
    hn_buf x, y[MATRICES];
    int ldy[MATRICES];
} call;

static void call_rank(void *arg, int rank, int ranks) {
    const call *c = arg;
    hn_exec ex = {c->o, rank, ranks};
    hn_linear_out outs[MATRICES];
    for (int i = 0; i < c->l->n_mats; i++) outs[i] = (hn_linear_out){&c->l->w[i], c->y[i], c->ldy[i]};
    c->o->quantise(&ex, c->n, c->x, c->l->in, c->act, HN_ACT_F32 | (c->l->in % HN_BLOCK ? 0 : HN_ACT_Q8));
    if (c->glu) {
        c->o->linear_glu(&ex, c->n, c->act, &c->l->w[0], &c->l->w[1], c->y[0], c->ldy[0]);
    } else {
        c->o->linear(&ex, c->n, c->act, outs, c->l->n_mats, c->add);
    }
}

/* Runs rows x [n][in]; results [n][out of all matrices], what is around them checked. */
static void call_run(const hn_ops *o, hn_pool *pool, const layer *l, const float *x, int n, bool add, bool glu,
                     float *results) {
    call c = {.o = o, .l = l, .n = n, .add = add, .glu = glu};
    c.act = (hn_act){check_mem(o, o->act_bytes(l->in, n)), l->in, n};
    c.x = check_put(o, x, (size_t)(n * l->in) * sizeof *x);
    int mats = glu ? 1 : l->n_mats;
    for (int i = 0; i < mats; i++) {
        c.ldy[i] = l->w[i].out + 5;
        c.y[i] = check_mem(o, (size_t)(n * c.ldy[i]) * sizeof(float));
        float *y = hn_host_f32(c.y[i]);
        for (int k = 0; k < n * c.ldy[i]; k++) y[k] = (float)(k % 7);
    }
    hn_pool_run(pool, call_rank, &c);
    for (int i = 0; i < mats; i++) {
        const float *y = o->view(o, c.y[i]);
        for (int r = 0; r < n; r++, y += c.ldy[i]) {
            for (int k = l->w[i].out; k < c.ldy[i]; k++) assert_true(y[k] == (float)((r * c.ldy[i] + k) % 7));
            memcpy(results, y, (size_t)l->w[i].out * sizeof *y);
            results += l->w[i].out;
        }
        o->mem_free(o, c.y[i].mem);
    }
    o->mem_free(o, c.x.mem);
    o->mem_free(o, c.act.data.mem);
}

enum { RESULTS = HN_MAX_ROWS * MATRICES * 130 };

/* The same bits with more threads, at every level, and for each row alone. */
static void check_layer(const layer *l, bool f32, bool glu) {
    float *want = hn_alloc(RESULTS * sizeof *want), *got = hn_alloc(RESULTS * sizeof *got);
    int n = check_int(1, HN_MAX_ROWS), mats = glu ? 1 : l->n_mats, all = 0;
    bool add = !glu && check_int(0, 1);
    float *x = hn_alloc((size_t)(n * l->in) * sizeof *x);
    check_fill(x, n * l->in, USUAL);
    for (int i = 0; i < mats; i++) all += l->w[i].out;
    check_ops ref = check_open(1, HN_ISA_REF, f32);
    call_run(&ref.o, ref.pool, l, x, n, add, glu, want);
    check_close(&ref);
    for (int isa = HN_ISA_REF; isa <= (int)hn_isa_best(); isa++) {
        check_ops c = check_open(check_int(1, 4), (hn_isa)isa, f32);
        call_run(&c.o, c.pool, l, x, n, add, glu, got);
        check_same_row(got, want, n * all, hn_isa_name((hn_isa)isa), glu);
        int row = check_int(0, n - 1), at = 0;
        if (!add) { /* what is added to lies at other places for another n */
            call_run(&c.o, c.pool, l, x + row * l->in, 1, add, glu, got);
            for (int i = 0, k = 0; i < mats; k += l->w[i].out, at += n * l->w[i].out, i++) {
                check_same_row(got + k, want + at + row * l->w[i].out, l->w[i].out, "a row alone", row);
            }
        }
        check_close(&c);
    }
    hn_free(want);
    hn_free(got);
    hn_free(x);
}

static void linear_test(void **state HN_UNUSED) {
    check_ops c = check_open(1, HN_ISA_REF, false);
    for (int round = 0; round < 12; round++) {
        layer l = layer_create(&c.o, HN_BLOCK * check_int(1, 8));
        check_layer(&l, round % 3 == 0, false);
        for (int i = 0; i < l.n_mats; i++) c.o.mem_free(&c.o, l.w[i].data.mem);
    }
    check_close(&c);
}

/* Gate and up interleaved strip by strip, as the loader lays them. */
static void glu_test(void **state HN_UNUSED) {
    check_ops c = check_open(1, HN_ISA_REF, false);
    for (int round = 0; round < 2 * TYPES; round++) {
        int in = HN_BLOCK * check_int(1, 8), out = check_int(1, 130);
        hn_dtype t[2] = {all_types[round % TYPES], all_types[round < TYPES ? round % TYPES : check_int(0, TYPES - 1)]};
        size_t size[2] = {hn_strip_bytes(t[0], in), hn_strip_bytes(t[1], in)}, stride = size[0] + size[1];
        hn_buf data = check_mem(&c.o, stride * (size_t)hn_strips(out));
        layer l = {.in = in, .n_mats = 2};
        l.w[0] = weight_create(&c.o, t[0], out, in, data, stride);
        l.w[1] = weight_create(&c.o, t[1], out, in, hn_at(data, size[0]), stride);
        check_layer(&l, round % 3 == 0, true);
        c.o.mem_free(&c.o, data.mem);
    }
    check_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_test), cmocka_unit_test(kernels_test), cmocka_unit_test(store_test),
        cmocka_unit_test(linear_test), cmocka_unit_test(glu_test),
    };
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
