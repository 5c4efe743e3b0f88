/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - helpers of the kernel checks: a printed seed, random numbers of every kind, buffers with guards around
 * them, comparison of floats by their bits, and the levels this machine has.
 *
 * Each check_*_test.c is one program. HUNCH_SEED=n in the environment repeats a run. */
#ifndef HN_CHECK_H
#define HN_CHECK_H
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/random.h"
#include "ops/cpu_mem.h"
#include "ops/kernels.h"

static uint64_t check_state;

static inline void check_seed(void) {
    const char *given = getenv("HUNCH_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    check_state = seed;
    printf("HUNCH_SEED=%llu\n", (unsigned long long)seed);
}

static inline int check_int(int lo, int hi) { /* both included */
    return lo + (int)(hn_splitmix(&check_state) % (uint64_t)(hi - lo + 1));
}

static inline double check_unit(void) { return (double)(hn_splitmix(&check_state) >> 11) * 0x1p-53; }

/* About normal: the sum of a few uniform numbers. */
static inline float check_normal(void) {
    double s = 0;
    for (int i = 0; i < 4; i++) s += check_unit() - 0.5;
    return (float)(s * 1.7);
}

/* A row of one of several kinds: usual, zero, tiny, huge, denormal, mixed magnitudes, with infinities and NaN. */
enum check_kind { USUAL, ZERO, TINY, HUGE_VALUES, DENORMAL, MIXED, NOT_FINITE, CHECK_KINDS };

static inline float check_value(enum check_kind kind) {
    float v = check_normal();
    switch (kind) {
    case ZERO: return v < 0 ? -0.0f : 0.0f;
    case TINY: return v * 1e-30f;
    case HUGE_VALUES: return v * 1e37f;
    case DENORMAL: return v * 1e-40f;
    case MIXED: return ldexpf(v, check_int(-30, 30));
    case NOT_FINITE: return check_int(0, 40) ? v : check_int(0, 1) ? NAN : check_int(0, 1) ? INFINITY : -INFINITY;
    default: return v;
    }
}

static inline enum check_kind check_any_kind(void) { return (enum check_kind)check_int(0, CHECK_KINDS - 1); }

static inline void check_fill(float *x, int n, enum check_kind kind) {
    for (int i = 0; i < n; i++) x[i] = check_value(kind);
}

/* ---- buffers with guards ------------------------------------------------------------------------------------------- */

enum { CHECK_GUARD = 64, CHECK_BYTE = 0xa5 };

/* size bytes, `shift` bytes off a cache line, with guard bytes on both sides; all set to the guard byte. */
typedef struct check_buf {
    unsigned char *raw, *p;
    size_t size;
} check_buf;

static inline check_buf check_alloc(size_t size, size_t shift) {
    check_buf b = {.raw = hn_alloc(size + 2 * CHECK_GUARD + shift), .size = size};
    assert_non_null(b.raw);
    memset(b.raw, CHECK_BYTE, size + 2 * CHECK_GUARD + shift);
    b.p = b.raw + CHECK_GUARD + shift;
    return b;
}

static inline void check_free(check_buf *b) { /* and checks the guards */
    for (unsigned char *g = b->raw; g < b->p; g++) assert_int_equal(*g, CHECK_BYTE);
    for (int i = 0; i < CHECK_GUARD; i++) assert_int_equal(b->p[b->size + (size_t)i], CHECK_BYTE);
    hn_free(b->raw);
}

/* n floats, somewhere in a cache line. */
static inline float *check_guarded(check_buf *b, int n) {
    *b = check_alloc((size_t)n * sizeof(float), 4 * (size_t)check_int(0, 15));
    return (float *)b->p;
}

/* ---- expected results ----------------------------------------------------------------------------------- */

static inline const struct hn_kernels *check_ref(void) { return hn_kernels_get(HN_ISA_REF); }

static inline double check_gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/* ---- comparison ------------------------------------------------------------------------------------------------------ */

static inline bool check_same(float a, float b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

static inline void check_same_row(const float *a, const float *b, int n, const char *what, int row) {
    for (int i = 0; i < n; i++) {
        if (!check_same(a[i], b[i])) fail_msg("%s: row %d, column %d: %a, expected %a", what, row, i, a[i], b[i]);
    }
}

/* ---- a backend ------------------------------------------------------------------------------------------------------- */

typedef struct check_ops {
    hn_pool *pool;
    hn_backend *o; /* owned */
} check_ops;

static inline check_ops check_open(int threads, hn_isa isa, bool f32) {
    check_ops c;
    assert_int_equal(hn_pool_create(&c.pool, threads, NULL), HUNCH_OK);
    assert_int_equal(hn_cpu_backend_open(&c.o, c.pool, isa, f32, NULL), HUNCH_OK);
    return c;
}

/* A number of rows as a pass has it: in a buffer, and less than the most that it may be. */
static inline hn_count check_number(int n) {
    static int32_t numbers[1024];
    static hn_mem mem = {.base = (unsigned char *)numbers, .size = sizeof numbers};
    assert_in_range(n, 0, 1023);
    numbers[n] = n; /* by any thread the same */
    return (hn_count){{&mem, sizeof *numbers * (size_t)n}, n + 5};
}

static inline void check_close(check_ops *c) {
    c->o->close(c->o);
    hn_pool_free(c->pool);
}

static inline hn_buf check_mem(hn_backend *o, size_t bytes) {
    hn_buf b = {.off = 0};
    assert_int_equal(o->mem_create(o, HN_MEM_READBACK, bytes, &b.mem, NULL), HUNCH_OK);
    return b;
}

/* A buffer of the backend holding `bytes` from src. */
static inline hn_buf check_put(hn_backend *o, const void *src, size_t bytes) {
    hn_buf b = check_mem(o, bytes);
    o->write(o, b, src, bytes);
    return b;
}

static inline hn_buf check_put_random(hn_backend *o, int n) {
    hn_buf b = check_mem(o, (size_t)n * sizeof(float));
    check_fill(hn_host_f32(b), n, USUAL);
    return b;
}

/* Makes the place of a packed matrix, or of as many as it has experts. */
static inline void check_place(hn_backend *o, hn_weight *w) {
    const size_t matrices = w->experts > 0 ? (size_t)w->experts : 1;
    w->place = o->place(o, w->dtype, w->in, check_mem(o, o->matrix_bytes(o, w->dtype, w->out, w->in) * matrices));
}

/* Packs a matrix; all its rows have the same factors. */
static inline void check_pack(hn_backend *o, const hn_weight *w, int matrix, const unsigned char *rows, size_t row, const float *factors) {
    for (int first = 0; first < w->out; first += HN_STRIP) o->pack(o, w, matrix, first, rows + row * (size_t)first, row, factors);
}

/* Room for reading stored matrices of two types, as one memory. */
static inline hn_matrix_place check_place_stored(hn_backend *o, const hn_weight *const *w, int n) {
    size_t room = 0;
    for (int i = 0; i < n; i++) {
        const size_t own = o->stored_room(o, w[i]->dtype, w[i]->in);
        if (own > room) room = own;
    }
    return o->place_stored(o, check_mem(o, room), room);
}

/* The F32 row of a matrix input. */
static inline const float *act_f32(const hn_act *a, int row) {
    return (const float *)(const void *)((const unsigned char *)hn_host(a->data) + hn_act_f32_off(a->in, a->max_rows, row));
}

/* The other forms of a row, from its F32 form. */
static inline void check_act_forms(const hn_act *a, int row) {
    const size_t groups = (size_t)hn_act_groups(a->in);
    hn_q8_group *q8 = hn_zalloc(groups, sizeof *q8);
    hn_q8_parts *parts = hn_zalloc(groups, sizeof *parts);
    uint16_t *bf16 = hn_zalloc((size_t)a->in + 1, sizeof *bf16);
    const unsigned char *base = hn_host(a->data), *have = base + hn_act_q8_off(a->in, row);
    check_ref()->quantise(act_f32(a, row), a->in, q8, parts);
    check_ref()->round_bf16(act_f32(a, row), a->in, bf16);
    assert_memory_equal(have, q8, groups * sizeof *q8);
    assert_memory_equal(have + hn_act_parts_off(a->in), parts, groups * sizeof *parts);
    assert_memory_equal(base + hn_act_bf16_off(a->in, a->max_rows, row), bf16, (size_t)(a->in + 1) / 2 * 2 * sizeof *bf16);
    hn_free(q8);
    hn_free(parts);
    hn_free(bf16);
}

/* ---- stored weights --------------------------------------------------------------------------------------------------- */

static inline size_t check_row_bytes(hn_dtype t, int in) {
    size_t bytes;
    assert_true(hn_dtype_row_bytes(t, (uint64_t)in, &bytes));
    return bytes;
}

static inline void check_half(unsigned char *p, float v) {
    uint16_t h = hn_f32_to_f16(v);
    memcpy(p, &h, 2);
}

/* Offsets of the f16 scale and minimum in a stored block, -1: none; and the approximate size of the integers that multiply both. */
static const struct {
    int d, m, integers;
} check_scales[HN_DTYPES] = {
    [HN_Q4_0] = {0, -1, 1},   [HN_Q4_1] = {0, 2, 1},    [HN_Q5_0] = {0, -1, 1},   [HN_Q5_1] = {0, 2, 1},
    [HN_Q8_0] = {0, -1, 1},   [HN_Q2_K] = {80, 82, 8},  [HN_Q3_K] = {108, -1, 16}, [HN_Q4_K] = {0, 2, 32},
    [HN_Q5_K] = {0, 2, 32},   [HN_Q6_K] = {208, -1, 64}, [HN_IQ4_NL] = {0, -1, 32}, [HN_IQ4_XS] = {0, -1, 512},
    [HN_MXFP4] = {-1, -1, 0},
};

/* Sizes of the scales of weights: usual; all sizes; the limits of the type. All are finite. */
enum check_size { SMALL, WILD, EXTREME };

static inline float check_scale(enum check_size size) {
    static const float ends[] = {65504, -65504, 0x1p-14f, 0x1p-24f, -0x1p-24f, 0, -0.0f, 1};
    if (size == EXTREME) return ends[check_int(0, 7)];
    return size == WILD ? ldexpf(check_normal(), check_int(-20, 6)) : check_normal() * 0.05f;
}

/* A stored block: random codes under such scales. */
static inline void check_block(hn_dtype t, enum check_size size, unsigned char *block) {
    static const unsigned char exponents[] = {0, 1, 2, 127, 253, 254, 255};
    for (int i = 0; i < hn_dtype_block_bytes(t); i++) block[i] = (unsigned char)hn_splitmix(&check_state);
    if (t == HN_MXFP4) {
        *block = (unsigned char)(size == SMALL ? check_int(119, 124) : check_int(90, 140));
        if (size == EXTREME) *block = exponents[check_int(0, 6)];
    } else if (t == HN_F8_E4M3) {
        if ((*block & 0x7f) == 0x7f) *block = 0x7e; /* no NaN */
    } else {
        float v = check_scale(size) / (size == EXTREME ? 1 : (float)check_scales[t].integers);
        check_half(block + check_scales[t].d, v);
        if (check_scales[t].m < 0) return;
        float m = t == HN_Q4_1 || t == HN_Q5_1 ? -7.5f * v + check_normal() * 0.01f : v;
        check_half(block + check_scales[t].m, size == EXTREME ? check_scale(size) : m);
    }
}

/* A stored row of random weights. */
static inline void check_weights(hn_dtype t, int in, enum check_size size, unsigned char *row) {
    for (int k = 0; k < in; k += hn_dtype_block(t), row += hn_dtype_block_bytes(t)) {
        float v = check_scale(size);
        uint16_t h = t == HN_F16 ? hn_f32_to_f16(v) : hn_f32_to_bf16(v);
        if (t == HN_F32) {
            memcpy(row, &v, 4);
        } else if (t == HN_F16 || t == HN_BF16) {
            memcpy(row, &h, 2);
        } else {
            check_block(t, size, row);
        }
    }
}

/* F8_E4M3: the factors of one block of rows, one for each 128 inputs; other types: NULL. Free with hn_free. */
static inline float *check_factors(hn_dtype t, int in) {
    if (t != HN_F8_E4M3) return NULL;
    int n = (in + HN_F8_TILE - 1) / HN_F8_TILE;
    float *factors = hn_alloc((size_t)n * sizeof *factors);
    for (int i = 0; i < n; i++) factors[i] = check_normal() * 0.01f;
    return factors;
}
#endif
