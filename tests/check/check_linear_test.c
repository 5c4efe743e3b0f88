/* SPDX-License-Identifier: Apache-2.0 */
/* check_linear_test.c - weight packing and matrix products: every level against ref, bit for bit; ref against double
 * arithmetic; a row alone against the same row among others; any number of threads against one; damaged scales. */
#include "base/run_mode_for_tests.h"
#include "check.h"
#include "check_forms.h"

#define TYPE(type, ...) HN_##type,
static const hn_dtype all_types[] = {HN_FLOAT_TYPES(TYPE) HN_BLOCK_TYPES(TYPE)};
enum { TYPES = sizeof all_types / sizeof *all_types };
_Static_assert((int)TYPES == (int)HN_WEIGHT_TYPES, "every weight type is packed and multiplied");

/* A random width that the type can have, about `most` at most. */
static int random_in(hn_dtype t, int most) {
    int block = hn_dtype_block(t), blocks = most / block;
    return block * check_int(1, blocks < 2 ? 2 : blocks);
}

/* ---- packing ----------------------------------------------------------------------------------------------------------- */

/* A lane of a strip against its source: a row and its factors; or zero. */
static void check_lane(hn_dtype t, int in, const unsigned char *strip, int o, const unsigned char *row, const float *factors) {
    float *want = hn_zalloc((size_t)in, sizeof *want), *got = hn_alloc((size_t)in * sizeof *got);
    if (row) hn_dequantise(t, row, (size_t)in, want);
    for (int k = 0; k < in && factors; k++) want[k] *= factors[k / HN_F8_TILE];
    hn_strip_row(t, in, strip, o, 0, in, got);
    for (int k = 0; k < in; k++) {
        if (row ? !check_same(got[k], want[k]) : got[k] != 0) {
            fail_msg("%s: lane %d, input %d of %d: %a, expected %a", hn_dtype_name(t), o, k, in, got[k], want[k]);
        }
    }
    int k = check_int(0, in - 1), count = check_int(1, in - k); /* any part of it is the same */
    hn_strip_row(t, in, strip, o, k, count, got);
    if (row) check_same_row(got, want + k, count, hn_dtype_name(t), o);
    hn_free(want);
    hn_free(got);
}

static void check_packed(hn_dtype t, int out, int in) {
    size_t row_bytes = check_row_bytes(t, in), shift = (size_t)check_int(0, 7); /* sources may have any alignment */
    check_buf src = check_alloc(row_bytes * (size_t)out, shift), strip = check_alloc(hn_strip_bytes(t, in), 0);
    for (int i = 0; i < out; i++) check_weights(t, in, (enum check_size)(i % 3), src.p + row_bytes * (size_t)i);
    for (int first = 0; first < out; first += HN_STRIP) {
        float *factors = check_factors(t, in);
        hn_pack_strip(t, out, in, src.p, row_bytes, factors, first, strip.p);
        for (int o = 0; o < HN_STRIP; o++) {
            int row = first + o;
            check_lane(t, in, strip.p, o, row < out ? src.p + row_bytes * (size_t)row : NULL, factors);
        }
        hn_free(factors);
    }
    check_free(&src);
    check_free(&strip);
}

static void pack_test(void **state HN_UNUSED) {
    for (int i = 0; i < TYPES; i++) {
        const hn_dtype t = all_types[i];
        check_packed(t, 105, 3 * hn_dtype_block(t)); /* an odd number of blocks */
        check_packed(t, 3, hn_dtype_block(t));
        if (!hn_is_block_type(t)) check_packed(t, 20, 43);
        for (int round = 0; round < 5; round++) check_packed(t, check_int(1, 70), random_in(t, 300));
    }
    check_packed(HN_F8_E4M3, 17, 2100); /* more than one line of factors */
}

/* A strip is zero beyond `in`: kernels walk whole superblocks. */
static void padding_test(void **state HN_UNUSED) {
    for (int i = 0; i < TYPES; i++) {
        const hn_dtype t = all_types[i];
        const int inputs = hn_layout_of(t).inputs;
        if (!hn_is_block_type(t) || inputs == hn_dtype_block(t)) continue; /* no superblock is ever part full */
        unsigned char row[64];
        _Alignas(64) unsigned char strip[2048];
        assert_true(hn_strip_bytes(t, HN_BLOCK) <= sizeof strip);
        check_weights(t, HN_BLOCK, SMALL, row);
        hn_pack_strip(t, 1, HN_BLOCK, row, sizeof row, NULL, 0, strip);
        for (int k = HN_BLOCK; k < inputs; k += HN_BLOCK) {
            hn_lane_block b;
            hn_strip_block(t, strip, 0, k / HN_BLOCK, &b);
            assert_true(b.d == (t == HN_MXFP4 ? 0x1p-128f : 0) && (b.dmin == 0));
            const unsigned char *codes = strip + hn_layout_of(t).head + hn_block_bytes(hn_layout_of(t)) * (size_t)(k / HN_BLOCK);
            for (size_t n = 0; n < hn_block_bytes(hn_layout_of(t)); n++) assert_int_equal(codes[n], 0);
        }
    }
}

/* ---- kernels against ref ------------------------------------------------------------------------------------------------- */

/* Some strips of one type and rows in both forms. */
typedef struct job {
    hn_dtype type;
    int strips, in, n;
    check_buf w[HN_CALL_STRIPS], q8, f32, bf16;
    size_t q8_stride, f32_stride, bf16_stride;
} job;

/* The other forms of row r. */
static void job_quantise(const job *j, int r) {
    unsigned char *q8 = j->q8.p + j->q8_stride * (size_t)r;
    const float *x = (const float *)(j->f32.p + j->f32_stride * (size_t)r);
    check_ref()->quantise(x, j->in, (hn_q8_group *)q8, (hn_q8_parts *)(q8 + hn_act_parts_off(j->in)));
    check_ref()->round_bf16(x, j->in, (uint16_t *)(j->bf16.p + j->bf16_stride * (size_t)r));
}

/* The forms that products of a type read, the native one first. */
static int acts_of(hn_dtype t, int forms[2]) {
    forms[0] = hn_is_block_type(t) ? HN_ACT_Q8 : HN_ACT_BF16;
    forms[hn_is_block_type(t) || t == HN_BF16 ? 1 : 0] = HN_ACT_F32;
    return hn_is_block_type(t) || t == HN_BF16 ? 2 : 1;
}

static job job_create(hn_dtype t, int strips, int in, int n) {
    job j = {.type = t, .strips = strips, .in = in, .n = n, .q8_stride = hn_act_q8_stride(in),
             .f32_stride = hn_act_f32_stride(in), .bf16_stride = hn_act_bf16_stride(in)};
    size_t row_bytes = check_row_bytes(t, in);
    unsigned char *rows = hn_alloc(row_bytes * HN_STRIP);
    float *factors = check_factors(t, in);
    for (int s = 0; s < strips; s++) {
        int real = s == strips - 1 ? check_int(1, HN_STRIP) : HN_STRIP; /* the last strip may be cut off */
        enum check_size size = (enum check_size)check_int(SMALL, EXTREME);
        for (int i = 0; i < real; i++) check_weights(t, in, size, rows + row_bytes * (size_t)i);
        j.w[s] = check_alloc(hn_strip_bytes(t, in), 0);
        hn_pack_strip(t, real, in, rows, row_bytes, factors, 0, j.w[s].p);
    }
    hn_free(rows);
    hn_free(factors);
    j.q8 = check_alloc(j.q8_stride * (size_t)n, 0);
    j.f32 = check_alloc(j.f32_stride * (size_t)n, 0);
    j.bf16 = check_alloc(j.bf16_stride * (size_t)n, 0);
    for (int r = 0; r < n; r++) {
        float *x = (float *)(j.f32.p + j.f32_stride * (size_t)r);
        check_fill(x, in, r % 3 ? USUAL : (enum check_kind)check_int(0, CHECK_KINDS - 1));
        job_quantise(&j, r);
    }
    return j;
}

static void job_free(job *j) {
    for (int s = 0; s < j->strips; s++) check_free(&j->w[s]);
    check_free(&j->q8);
    check_free(&j->f32);
    check_free(&j->bf16);
}

/* Result [strips][n][16] in a guarded buffer. */
static check_buf job_run(const job *j, const struct hn_kernels *k, int form) {
    check_buf c = check_alloc((size_t)(j->strips * j->n * HN_STRIP) * sizeof(float), 0);
    const check_buf *x = form == HN_ACT_F32 ? &j->f32 : form == HN_ACT_Q8 ? &j->q8 : &j->bf16;
    hn_strips_job call = {.strips = j->strips, .in = j->in, .n = j->n, .c = (float *)c.p, .x = x->p,
                          .x_stride = x->size / (size_t)j->n};
    for (int s = 0; s < j->strips; s++) call.w[s] = j->w[s].p;
    (form == HN_ACT_F32 ? k->linear_f32[j->type] : form == HN_ACT_Q8 ? k->linear_q8[j->type] : k->linear_bf16)(&call);
    return c;
}

/* The two terms of weight k, the second 0 if it has only one. As f32 weight they may overflow, which is visible in the first. */
static void weight_terms(const job *j, int form, int strip, int o, int k, double term[2]) {
    float w;
    hn_strip_row(j->type, j->in, j->w[strip].p, o, k, 1, &w);
    term[0] = form == HN_ACT_BF16 && fabsf(w) < 0x1p-126f ? 0 : w;
    term[1] = 0;
    if (!hn_is_block_type(j->type) || (form == HN_ACT_F32 && isinf(w))) return;
    hn_lane_block b;
    hn_strip_block(j->type, j->w[strip].p, o, k / HN_BLOCK, &b);
    const int part = k % HN_BLOCK / HN_PART;
    term[0] = (double)b.d * b.s[part] * b.v[k % HN_BLOCK];
    if (hn_has_minimum(j->type)) term[1] = (double)b.dmin * b.m[part];
}

/* Σ w x of one output over the row's values as the form holds them, in double; and the sum of magnitudes of all terms. */
static double exact(const job *j, int form, int strip, int row, int o, double *magnitude) {
    const float *x = (const float *)(j->f32.p + j->f32_stride * (size_t)row);
    const hn_q8_group *g = (const hn_q8_group *)(j->q8.p + j->q8_stride * (size_t)row);
    const uint16_t *half = (const uint16_t *)(j->bf16.p + j->bf16_stride * (size_t)row);
    double sum = 0, w[2];
    *magnitude = 0;
    for (int k = 0; k < j->in; k++) {
        double v = form == HN_ACT_F32 ? x[k] : form == HN_ACT_BF16 ? hn_bf16_to_f32(half[k])
                                            : (double)g[k / 64].d[k % 64 / 32] * g[k / 64].q[k % 64];
        weight_terms(j, form, strip, o, k, w);
        sum += (w[0] + w[1]) * v;
        *magnitude += fabs(w[0] * v) + fabs(w[1] * v);
        if (form == HN_ACT_Q8 && fabs(w[0]) > 1e32) *magnitude += 1e37; /* a block's sum, before the row's scale makes it small */
    }
    return sum;
}

/* Sums that may overflow in between are left out. */
static void check_against_double(const job *j, int form, const float *c) {
    for (int i = 0; i < 8; i++) {
        int s = check_int(0, j->strips - 1), r = check_int(0, j->n - 1), o = check_int(0, HN_STRIP - 1);
        double magnitude, want = exact(j, form, s, r, o, &magnitude);
        double got = c[(s * j->n + r) * HN_STRIP + o];
        if (!isfinite(magnitude)) { /* the row or a weight is not finite, and then so is the sum */
            assert_true(!isfinite(got));
        } else if (magnitude < 1e37) {
            double bound = (j->in + 8) * 0x1p-23 * magnitude + 1e-37;
            if (!(fabs(got - want) <= bound)) fail_msg("%s: %a, expected %a", hn_dtype_name(j->type), got, want);
        }
    }
}

static void check_job(hn_dtype t, int strips, int in, int n) {
    job j = job_create(t, strips, in, n);
    int acts[2];
    check_form forms[CHECK_FORMS];
    const int n_forms = check_forms(forms);
    for (int a = 0; a < acts_of(t, acts); a++) {
        check_buf ref = job_run(&j, check_ref(), acts[a]);
        check_against_double(&j, acts[a], (const float *)ref.p);
        for (int i = 1; i < n_forms; i++) {
            check_buf c = job_run(&j, forms[i].kernels, acts[a]);
            char what[100];
            snprintf(what, sizeof what, "%s %s act %d strips %d in %d n %d", forms[i].name, hn_dtype_name(t), acts[a],
                     strips, in, n);
            check_same_row((float *)c.p, (float *)ref.p, strips * n * HN_STRIP, what, 0);
            check_free(&c);
        }
        check_free(&ref);
    }
    job_free(&j);
}

/* README: "Every kernel of every instruction level computes the bits of the plain C reference of its operation and level." */
static void kernels_test(void **state HN_UNUSED) {
    for (int i = 0; i < TYPES; i++) {
        hn_dtype t = all_types[i];
        for (int n = 1; n <= HN_MAX_ROWS; n += n < 9 || !test_light() ? 1 : 11) {
            check_job(t, check_int(1, n > 16 ? 2 : HN_CALL_STRIPS), random_in(t, n > 16 ? 150 : 600), n);
        }
        check_job(t, 3, hn_dtype_block(t), 2);
        check_job(t, HN_CALL_STRIPS, hn_dtype_block(t) > 1 ? 1024 + hn_dtype_block(t) : 172, check_int(1, 20));
    }
    check_job(HN_F8_E4M3, 2, 2100, 9);
}

/* A bf16 number whose products with another such are near 2^-126, or sometimes any. */
static uint16_t edge_bf16(void) {
    const uint64_t bits = hn_splitmix(&check_state);
    return (uint16_t)(check_int(0, 30) ? (bits & 0x807f) | (uint64_t)check_int(61, 66) << 7 : bits);
}

/* Pairs of bf16 where sums and products are just flushed, and just not. */
static void flush_test(void **state HN_UNUSED) {
    for (int round = 0; round < 60; round++) {
        const int in = check_int(1, 40);
        job j = job_create(HN_BF16, 1, in, check_int(1, 20));
        uint16_t *w = (uint16_t *)(void *)j.w[0].p;
        for (int k = 0; k < in; k++) /* the padding of an odd row stays zero */
            for (int o = 0; o < HN_STRIP; o++) w[k / 2 * 2 * HN_STRIP + 2 * o + k % 2] = edge_bf16();
        for (int r = 0; r < j.n; r++) {
            uint16_t *x = (uint16_t *)(void *)(j.bf16.p + j.bf16_stride * (size_t)r);
            for (int k = 0; k < in; k++) x[k] = edge_bf16();
        }
        check_buf ref = job_run(&j, check_ref(), HN_ACT_BF16);
        for (hn_isa isa = hn_isa_next(HN_ISA_REF); isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            check_buf c = job_run(&j, hn_kernels_get(isa), HN_ACT_BF16);
            check_same_row((float *)c.p, (float *)ref.p, j.n * HN_STRIP, hn_isa_name(isa), in);
            check_free(&c);
        }
        for (int i = 0; i < j.n * HN_STRIP; i++) assert_true(fpclassify(((float *)ref.p)[i]) != FP_SUBNORMAL);
        check_free(&ref);
        job_free(&j);
    }
}

/* By hand: the odd product first, each step rounded; what is smaller than 2^-126 is zero. */
static void pairs_test(void **state HN_UNUSED) {
    static const struct {
        float w[2], x[2], want;
    } cases[] = {{{1, 0x1p-30f}, {1, 1}, 1},
                 {{-1, 1}, {1, 1 + 0x1p-7f}, 0x1p-7f},
                 {{0x1p-100f, 0x1p-63f}, {0x1p-20f, 0x1p-64f}, 0x1p-120f}, /* the second product is flushed */
                 {{0x1p-63f, -0x1p-63f}, {0x1p-63f, 0x1.8p-63f}, 0},       /* their sum is */
                 {{0x1p-127f, 1}, {0x1p60f, 2}, 2}};                       /* a weight is */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job j = job_create(HN_BF16, 1, 2, 1);
        for (int k = 0; k < 2; k++) {
            ((uint16_t *)(void *)j.w[0].p)[k] = hn_f32_to_bf16(cases[i].w[k]);
            ((uint16_t *)(void *)j.bf16.p)[k] = hn_f32_to_bf16(cases[i].x[k]);
        }
        for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
            check_buf c = job_run(&j, hn_kernels_get(isa), HN_ACT_BF16);
            assert_true(*(float *)c.p == cases[i].want);
            check_free(&c);
        }
        job_free(&j);
    }
}

/* ---- damage ---------------------------------------------------------------------------------------------------------------- */

/* Makes a weight of a stored row a NaN, or infinite: by its scale, where it has one. false: the type has no such value. */
static bool damage(hn_dtype t, bool infinite, unsigned char *row, int in) {
    int at = check_int(0, in / hn_dtype_block(t) - 1) * hn_dtype_block_bytes(t);
    const float value = infinite ? INFINITY : NAN;
    uint16_t half = t == HN_BF16 ? hn_f32_to_bf16(value) : hn_f32_to_f16(value);
    if (t == HN_F32) {
        memcpy(row + at, &value, sizeof value);
    } else if (t == HN_F8_E4M3) {
        row[at] = check_int(0, 1) ? 0x7f : 0xff;
        return !infinite;
    } else if (t == HN_MXFP4) {
        return false;
    } else {
        bool minimum = hn_is_block_type(t) && check_scales[t].m >= 0 && check_int(0, 1);
        memcpy(row + at + (minimum ? check_scales[t].m : hn_is_block_type(t) ? check_scales[t].d : 0), &half, 2);
    }
    return true;
}

/* The results of two jobs that differ in lane o of the first strip: other lanes are the same, that lane is not finite. */
static void check_damage(const job *healthy, const job *damaged, int o) {
    int acts[2];
    check_form forms[CHECK_FORMS];
    const int n_forms = check_forms(forms);
    for (int act = 0; act < acts_of(healthy->type, acts); act++) {
        for (int form = 0; form < n_forms; form++) {
            const struct hn_kernels *k = forms[form].kernels;
            check_buf a = job_run(healthy, k, acts[act]), b = job_run(damaged, k, acts[act]);
            const float *x = (const float *)a.p, *y = (const float *)b.p;
            for (int i = 0; i < healthy->n * HN_STRIP; i++) {
                if (i % HN_STRIP == o ? isfinite(y[i]) : !check_same(x[i], y[i])) {
                    fail_msg("%s %s: output %d of row %d is %a, was %a; damaged is %d", forms[form].name,
                             hn_dtype_name(healthy->type), i % HN_STRIP, i / HN_STRIP, y[i], x[i], o);
                }
            }
            check_free(&a);
            check_free(&b);
        }
    }
}

static void damage_test(void **state HN_UNUSED) {
    for (int i = 0; i < 2 * TYPES; i++) {
        hn_dtype t = all_types[i / 2];
        int in = random_in(t, 300), o = check_int(0, HN_STRIP - 1);
        size_t row_bytes = check_row_bytes(t, in);
        float *factors = check_factors(t, in);
        unsigned char *rows = hn_alloc(row_bytes * HN_STRIP);
        job healthy = job_create(t, 1, in, check_int(1, 12)), damaged = healthy;
        for (int r = 0; r < healthy.n; r++) { /* rows of numbers that are neither zero nor wild */
            float *x = (float *)(healthy.f32.p + healthy.f32_stride * (size_t)r);
            for (int k = 0; k < in; k++) x[k] = 1 + check_normal() * 0.1f;
            job_quantise(&healthy, r);
        }
        for (int r = 0; r < HN_STRIP; r++) check_weights(t, in, SMALL, rows + row_bytes * (size_t)r);
        hn_pack_strip(t, HN_STRIP, in, rows, row_bytes, factors, 0, healthy.w[0].p);
        if (damage(t, i % 2, rows + row_bytes * (size_t)o, in)) {
            damaged.w[0] = check_alloc(hn_strip_bytes(t, in), 0);
            hn_pack_strip(t, HN_STRIP, in, rows, row_bytes, factors, 0, damaged.w[0].p);
            check_damage(&healthy, &damaged, o);
            check_free(&damaged.w[0]);
        }
        job_free(&healthy);
        hn_free(rows);
        hn_free(factors);
    }
}

static void store_test(void **state HN_UNUSED) {
    const struct hn_kernels *ref = hn_kernels_get(HN_ISA_REF);
    _Alignas(64) float c[2][8 * HN_STRIP];
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        const struct hn_kernels *k = hn_kernels_get(isa);
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
                check_same_row((float *)b.p, (float *)a.p, ldy * (n - 1) + cols, hn_isa_name(isa), what);
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

/* At a place that is made. */
static void weight_fill(hn_backend *o, const hn_weight *w) {
    const hn_dtype t = w->dtype;
    const int out = w->out, in = w->in;
    size_t row_bytes = check_row_bytes(t, in);
    unsigned char *rows = hn_alloc(row_bytes * (size_t)out);
    float *factors = check_factors(t, in);
    for (int i = 0; i < out; i++) check_weights(t, in, SMALL, rows + row_bytes * (size_t)i);
    check_pack(o, w, 0, rows, row_bytes, factors);
    hn_free(rows);
    hn_free(factors);
}

/* A type that can have this width. */
static hn_dtype random_type(int in) {
    hn_dtype t;
    do t = all_types[check_int(0, TYPES - 1)];
    while (in % hn_dtype_block(t));
    return t;
}

static layer layer_create(hn_backend *o, int in) {
    layer l = {.in = in, .n_mats = check_int(1, MATRICES)};
    for (int i = 0; i < l.n_mats; i++) {
        l.w[i] = (hn_weight){.dtype = random_type(in), .in = in, .out = check_int(1, 130)};
        check_place(o, &l.w[i]);
        weight_fill(o, &l.w[i]);
    }
    return l;
}

/* What is computed of matrices: their products; the unit of the first two in one operation, or in two. */
typedef enum what_kind { PRODUCTS, SILU, GELU, SILU_STEPS, GELU_STEPS } what_kind;

/* One call with its own buffers. */
typedef struct call {
    hn_backend *o;
    const layer *l;
    int n;
    bool add;
    what_kind what;
    hn_act act, gated;
    hn_buf x, y[MATRICES];
    int ldy[MATRICES];
} call;

static void call_rank(void *arg, int rank, int ranks) {
    const call *c = arg;
    hn_exec ex = {c->o->ops, c->o, rank, ranks};
    hn_linear_out outs[MATRICES] = {0};
    for (int i = 0; i < c->l->n_mats; i++) outs[i] = (hn_linear_out){&c->l->w[i], {c->y[i], c->l->w[i].out, c->ldy[i]}};
    c->o->ops->quantise(&ex, check_number(c->n), (hn_matrix){c->x, c->l->in, c->l->in}, c->act);
    if (c->what == SILU || c->what == GELU) {
        c->o->ops->linear_glu(&ex, check_number(c->n), c->act, &c->l->w[0], &c->l->w[1], c->what == GELU ? HN_GELU : HN_SILU, c->gated);
        return;
    }
    c->o->ops->linear(&ex, check_number(c->n), c->act, outs, c->l->n_mats, c->add);
    const hn_glu_in both = {.gate = outs[0].y, .up = outs[1].y};
    if (c->what != PRODUCTS) c->o->ops->glu(&ex, check_number(c->n), c->what == GELU_STEPS ? HN_GELU : HN_SILU, &both, 1, c->gated);
}

/* Runs rows x [n][in]; results [n][out of all matrices]; checks the guards. */
static void call_run(hn_backend *o, hn_pool *pool, const layer *l, const float *x, int n, bool add, what_kind what,
                     float *results) {
    const bool glu = what != PRODUCTS;
    call c = {.o = o, .l = l, .n = n, .add = add, .what = what};
    c.act = (hn_act){check_mem(o, o->act_bytes(l->in, n)), l->in, n, HN_ACT_F32 | HN_ACT_BF16 | (l->in % HN_BLOCK ? 0 : HN_ACT_Q8)};
    c.x = check_put(o, x, (size_t)(n * l->in) * sizeof *x);
    const int mats = what == SILU || what == GELU ? 0 : l->n_mats;
    if (glu) c.gated = (hn_act){check_mem(o, o->act_bytes(l->w[0].out, n)), l->w[0].out, n, HN_ACT_F32 | HN_ACT_Q8 | HN_ACT_BF16};
    for (int i = 0; i < mats; i++) {
        c.ldy[i] = l->w[i].out + 5;
        c.y[i] = check_mem(o, (size_t)(n * c.ldy[i]) * sizeof(float));
        float *y = hn_host_f32(c.y[i]);
        for (int k = 0; k < n * c.ldy[i]; k++) y[k] = (float)(k % 7);
    }
    hn_pool_run(pool, call_rank, &c);
    for (int i = 0; i < mats; i++) {
        const float *y = hn_host(c.y[i]);
        for (int r = 0; r < n; r++, y += c.ldy[i]) {
            for (int k = l->w[i].out; k < c.ldy[i]; k++) assert_true(y[k] == (float)((r * c.ldy[i] + k) % 7));
            if (glu) continue;
            memcpy(results, y, (size_t)l->w[i].out * sizeof *y);
            results += l->w[i].out;
        }
        o->mem_free(o, c.y[i].mem);
    }
    for (int r = 0; r < n && glu; r++) {
        check_act_forms(&c.gated, r);
        memcpy(results + r * c.gated.in, act_f32(&c.gated, r), (size_t)c.gated.in * sizeof *results);
    }
    o->mem_free(o, c.gated.data.mem);
    o->mem_free(o, c.x.mem);
    o->mem_free(o, c.act.data.mem);
}

enum { RESULTS = HN_MAX_ROWS * MATRICES * 130 };

/* The same bits with more threads, at every level, and for each row alone. */
static void check_layer(const layer *l, bool f32, what_kind what) {
    float *want = hn_alloc(RESULTS * sizeof *want), *got = hn_alloc(RESULTS * sizeof *got);
    const bool glu = what != PRODUCTS;
    int n = check_int(1, HN_MAX_ROWS), mats = glu ? 1 : l->n_mats, all = 0;
    bool add = !glu && check_int(0, 1);
    float *x = hn_alloc((size_t)(n * l->in) * sizeof *x);
    check_fill(x, n * l->in, USUAL);
    for (int i = 0; i < mats; i++) all += l->w[i].out;
    check_ops ref = check_open(1, HN_ISA_REF, f32);
    call_run(ref.o, ref.pool, l, x, n, add, what, want);
    check_close(&ref);
    for (hn_isa isa = HN_ISA_REF; isa < HN_ISA_COUNT; isa = hn_isa_next(isa)) {
        check_ops c = check_open(check_int(1, 4), isa, f32);
        call_run(c.o, c.pool, l, x, n, add, what, got);
        check_same_row(got, want, n * all, hn_isa_name(isa), (int)what);
        if (glu) { /* as two products and the unit */
            call_run(c.o, c.pool, l, x, n, false, what == GELU ? GELU_STEPS : SILU_STEPS, got);
            check_same_row(got, want, n * all, "in steps", (int)what);
        }
        int row = check_int(0, n - 1), at = 0;
        if (!add) { /* the addends are at other places for another n */
            call_run(c.o, c.pool, l, x + row * l->in, 1, add, what, got);
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
    for (int round = 0; round < 24; round++) {
        layer l = layer_create(c.o, round % 2 ? HN_BLOCK * check_int(1, 8) : 256 * check_int(1, 2));
        check_layer(&l, round % 3 == 0, PRODUCTS);
        for (int i = 0; i < l.n_mats; i++) c.o->mem_free(c.o, l.w[i].place.at.mem);
    }
    check_close(&c);
}

/* Gate and up at a place for both, as by the loader. */
static void glu_test(void **state HN_UNUSED) {
    check_ops c = check_open(1, HN_ISA_REF, false);
    for (int round = 0; round < 2 * TYPES; round++) {
        hn_dtype t[2] = {all_types[round % TYPES], all_types[round % TYPES]};
        int in = HN_BLOCK * (hn_dtype_block(t[0]) > HN_BLOCK ? 8 : check_int(1, 8)), out = check_int(1, 130);
        if (round >= TYPES) t[1] = random_type(in);
        const size_t size[2] = {c.o->matrix_bytes(c.o, t[0], out, in), c.o->matrix_bytes(c.o, t[1], out, in)};
        const hn_buf data = check_mem(c.o, size[0] + size[1]);
        layer l = {.in = in, .n_mats = 2};
        for (int i = 0; i < 2; i++) {
            l.w[i] = (hn_weight){.dtype = t[i], .out = out, .in = in};
            l.w[i].place = c.o->place(c.o, t[i], in, hn_at(data, i ? size[0] : 0));
        }
        c.o->pair(c.o, &l.w[0].place, &l.w[1].place);
        for (int i = 0; i < 2; i++) weight_fill(c.o, &l.w[i]);
        check_layer(&l, round % 3 == 0, round % 2 ? SILU : GELU);
        c.o->mem_free(c.o, data.mem);
    }
    check_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_test),  cmocka_unit_test(padding_test), cmocka_unit_test(kernels_test),
        cmocka_unit_test(damage_test), cmocka_unit_test(store_test),  cmocka_unit_test(linear_test),
        cmocka_unit_test(glu_test),   cmocka_unit_test(flush_test),   cmocka_unit_test(pairs_test),
    };
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
