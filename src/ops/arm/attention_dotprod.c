/* SPDX-License-Identifier: Apache-2.0 */
/* attention_dotprod.c - one span of attention with NEON. Results: ref/attention_ref.c, bit for bit.
 *
 * Scores: a lane is a position; a tile is T queries x one chunk of 16 positions (four registers). Values: a lane is a
 * dim; a tile is T queries x 16 dims. Dims beyond the last multiple of 4 are computed one by one. Caches of F32 and
 * F16; other types use ref.
 */
#include <math.h>

#include "ops/arm/math_neon.h"
#include "ops/kernels.h"

enum { ROWS = 6 }; /* most queries of a tile: 24 registers of sums */

HN_INLINE size_t element_bytes(const hn_dtype t) { return t == HN_F32 ? 4 : 2; }

HN_INLINE float32x4_t load4(const hn_dtype t, const unsigned char *p) {
    if (t == HN_F32) return vld1q_f32((const float *)p);
    return hn_f16_neon(vld1_u16((const uint16_t *)p));
}

HN_INLINE float load1(const hn_dtype t, const unsigned char *p) {
    if (t == HN_F32) return *(const float *)p;
    return hn_f16_to_f32(*(const uint16_t *)p);
}

/* ---- scores -------------------------------------------------------------------------------------------------------- */

HN_INLINE void score_tile(const hn_dtype t, const int T, const hn_keys *keys, int c, const float *const *q, int dim,
                          float scale, float *s) {
    const unsigned char *k = keys->k[c];
    const size_t step = (size_t)keys->k_stride[c] * element_bytes(t);
    float32x4_t acc[4 * ROWS];
    HN_UNROLL for (int i = 0; i < 4 * T; i++) acc[i] = vdupq_n_f32(0);
    for (int d = 0; d < dim; d++, k += step) {
        float32x4_t v[4];
        HN_UNROLL for (int j = 0; j < 4; j++) v[j] = load4(t, k + 4 * (size_t)j * element_bytes(t));
        HN_UNROLL for (int i = 0; i < T; i++) {
            const float32x4_t x = vdupq_n_f32(q[i][d]);
            HN_UNROLL for (int j = 0; j < 4; j++) acc[4 * i + j] = vfmaq_f32(acc[4 * i + j], x, v[j]);
        }
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        float *to = s + i * HN_KEY_SPAN + c * HN_KEY_CHUNK;
        HN_UNROLL for (int j = 0; j < 4; j++) vst1q_f32(to + 4 * j, vmulq_f32(acc[4 * i + j], vdupq_n_f32(scale)));
    }
}

typedef void score_fn(const hn_keys *keys, int c, const float *const *q, int dim, float scale, float *s);
#define SCORE(type, T)                                                                                                \
    static __attribute__((noinline)) void score_##type##_##T(const hn_keys *keys, int c, const float *const *q,       \
                                                             int dim, float scale, float *s) {                        \
        score_tile(HN_##type, T, keys, c, q, dim, scale, s);                                                          \
    }
#define SCORES(type)                                                                                                  \
    SCORE(type, 1) SCORE(type, 2) SCORE(type, 3) SCORE(type, 4) SCORE(type, 5) SCORE(type, 6)                         \
    static score_fn *const scores_##type[ROWS + 1] = {NULL, score_##type##_1, score_##type##_2, score_##type##_3,     \
                                                      score_##type##_4, score_##type##_5, score_##type##_6};
SCORES(F32)
SCORES(F16)

static void scores(hn_dtype t, const hn_keys *keys, int c0, int c1, const float *const *q, int nq, int dim, float scale,
                   float *s) {
    if (t != HN_F32 && t != HN_F16) {
        hn_kernels_get(HN_ISA_REF)->scores(t, keys, c0, c1, q, nq, dim, scale, s);
        return;
    }
    score_fn *const *fn = t == HN_F32 ? scores_F32 : scores_F16;
    int tiles = (nq + ROWS - 1) / ROWS;
    for (int c = c0; c < c1; c++) {
        for (int part = 0, i = 0; part < tiles; part++) {
            int rows = nq * (part + 1) / tiles - i;
            fn[rows](keys, c, q + i, dim, scale, s + i * HN_KEY_SPAN);
            i += rows;
        }
    }
}

/* ---- softmax ------------------------------------------------------------------------------------------------------- */

/* Lanes of positions p..p+3 that are in [lo, hi). */
HN_INLINE uint32x4_t lanes_at(int p, int lo, int hi) {
    static const int32_t first[4] = {0, 1, 2, 3};
    const int32x4_t at = vaddq_s32(vdupq_n_s32(p), vld1q_s32(first));
    return vandq_u32(vcgeq_s32(at, vdupq_n_s32(lo)), vcltq_s32(at, vdupq_n_s32(hi)));
}

static void softmax(float *s, int lo, int hi, float *m, float *l) {
    const int first = lo / 16 * 16, last = (hi + 15) / 16 * 16;
    const float32x4_t zero = vdupq_n_f32(0);
    float32x4_t top = vdupq_n_f32(-INFINITY), sum[4] = {zero, zero, zero, zero};
    for (int p = first; p < last; p += 4) {
        const float32x4_t v = vld1q_f32(s + p); /* a NaN does not compare larger */
        top = vbslq_f32(vandq_u32(lanes_at(p, lo, hi), vcgtq_f32(v, top)), v, top);
    }
    top = vdupq_n_f32(vmaxvq_f32(top));
    for (int p = first; p < last; p += 16) {
        HN_UNROLL for (int j = 0; j < 4; j++) {
            const uint32x4_t lanes = lanes_at(p + 4 * j, lo, hi);
            const float32x4_t v = vld1q_f32(s + p + 4 * j), e = hn_exp_neon(vsubq_f32(v, top));
            vst1q_f32(s + p + 4 * j, vbslq_f32(lanes, e, v));
            sum[j] = vaddq_f32(sum[j], vbslq_f32(lanes, e, zero));
        }
    }
    *m = vgetq_lane_f32(top, 0);
    *l = hn_sum_neon(sum);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

HN_INLINE const unsigned char *value_row(const hn_dtype t, const hn_keys *keys, int p, int dim, int d0) {
    const size_t at = (size_t)(p % HN_KEY_CHUNK) * (size_t)dim + (size_t)d0;
    return (const unsigned char *)keys->v[p / HN_KEY_CHUNK] + at * element_bytes(t);
}

/* 4 * D dims from d0 on. */
HN_INLINE void value_tile(const hn_dtype t, const int T, const int D, const hn_keys *keys, int lo, int hi, const float *e,
                          int dim, int d0, float *o, int ldo) {
    float32x4_t acc[4 * ROWS];
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = vld1q_f32(o + i * ldo + d0 + 4 * j);
    }
    for (int p = lo; p < hi; p++) {
        const unsigned char *v = value_row(t, keys, p, dim, d0);
        float32x4_t x[4];
        HN_UNROLL for (int j = 0; j < D; j++) x[j] = load4(t, v + 4 * (size_t)j * element_bytes(t));
        HN_UNROLL for (int i = 0; i < T; i++) {
            const float32x4_t w = vdupq_n_f32(e[i * HN_KEY_SPAN + p]);
            HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = vfmaq_f32(acc[i * D + j], w, x[j]);
        }
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) vst1q_f32(o + i * ldo + d0 + 4 * j, acc[i * D + j]);
    }
}

/* All dims of T queries. */
HN_INLINE void value_rows(const hn_dtype t, const int T, const hn_keys *keys, int lo, int hi, const float *e, int dim,
                          float *o, int ldo) {
    int d = 0;
    for (; d + 16 <= dim; d += 16) value_tile(t, T, 4, keys, lo, hi, e, dim, d, o, ldo);
    for (; d + 4 <= dim; d += 4) value_tile(t, T, 1, keys, lo, hi, e, dim, d, o, ldo);
    for (; d < dim; d++) {
        for (int i = 0; i < T; i++) {
            float *to = o + i * ldo + d;
            for (int p = lo; p < hi; p++) *to = fmaf(e[i * HN_KEY_SPAN + p], load1(t, value_row(t, keys, p, dim, d)), *to);
        }
    }
}

typedef void value_fn(const hn_keys *keys, int lo, int hi, const float *e, int dim, float *o, int ldo);
#define VALUE(type, T)                                                                                                \
    static __attribute__((noinline)) void value_##type##_##T(const hn_keys *keys, int lo, int hi, const float *e,     \
                                                             int dim, float *o, int ldo) {                            \
        value_rows(HN_##type, T, keys, lo, hi, e, dim, o, ldo);                                                       \
    }
#define VALUES(type)                                                                                                  \
    VALUE(type, 1) VALUE(type, 2) VALUE(type, 3) VALUE(type, 4) VALUE(type, 5) VALUE(type, 6)                         \
    static value_fn *const values_##type[ROWS + 1] = {NULL, value_##type##_1, value_##type##_2, value_##type##_3,     \
                                                      value_##type##_4, value_##type##_5, value_##type##_6};
VALUES(F32)
VALUES(F16)

static void values(hn_dtype t, const hn_keys *keys, int lo, int hi, const float *e, int nq, int dim, float *o, int ldo) {
    if (t != HN_F32 && t != HN_F16) {
        hn_kernels_get(HN_ISA_REF)->values(t, keys, lo, hi, e, nq, dim, o, ldo);
        return;
    }
    value_fn *const *fn = t == HN_F32 ? values_F32 : values_F16;
    for (int i = 0; i < nq; i += ROWS) {
        int rows = nq - i < ROWS ? nq - i : ROWS;
        fn[rows](keys, lo, hi, e + i * HN_KEY_SPAN, dim, o + i * ldo, ldo);
    }
}

static void merge(float *O, const float *o, int dim, float a, float b) {
    for (int d = 0; d < dim; d += 4) {
        const float32x4_t kept = vmulq_f32(hn_load_neon(O + d, dim - d), vdupq_n_f32(a));
        hn_store_neon(O + d, dim - d, vfmaq_f32(kept, hn_load_neon(o + d, dim - d), vdupq_n_f32(b)));
    }
}

static void scale_row(float *y, const float *x, int dim, float a) {
    for (int d = 0; d < dim; d += 4) {
        hn_store_neon(y + d, dim - d, vmulq_f32(hn_load_neon(x + d, dim - d), vdupq_n_f32(a)));
    }
}

void hn_kernels_dotprod_attention(struct hn_kernels *k) {
    k->scores = scores;
    k->softmax = softmax;
    k->values = values;
    k->value_rows = ROWS;
    k->merge = merge;
    k->scale = scale_row;
}
