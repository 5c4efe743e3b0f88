/* SPDX-License-Identifier: Apache-2.0 */
/* attention_avx2.c - one span of attention with AVX2, FMA and F16C. Results: ref/attention_ref.c, bit for bit.
 *
 * Scores: a lane is a position; a tile is T queries x one chunk of 16 positions (two registers). Values: a lane is a
 * dim; a tile is T queries x 16 dims. Dims beyond the last multiple of 8 are computed one by one.
 */
#include <immintrin.h>
#include <math.h>

#include "ops/kernels.h"
#include "ops/x86/math_avx2.h"
#include "ops/unroll.h"

enum { SCORE_ROWS = 6, VALUE_ROWS = 4 };

/* Loads 8 elements; of pairs the first of each, or the second; scale: for Q8_0. */
HN_INLINE __m256 load8(const hn_dtype t, const unsigned char *p, unsigned second, __m256 scale) {
    if (t == HN_F32) return _mm256_loadu_ps((const float *)p);
    if (t == HN_F16) return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    if (t == HN_Q8_0) return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p))), scale);
    const __m256i line = _mm256_sll_epi32(_mm256_loadu_si256((const __m256i *)p), _mm_cvtsi32_si128(second ? 0 : 16));
    return _mm256_castsi256_ps(_mm256_and_si256(line, _mm256_set1_epi32((int)0xffff0000)));
}

HN_INLINE float load1(const hn_dtype t, const unsigned char *p, unsigned second) {
    if (t == HN_F32) return *(const float *)p;
    const uint16_t half = ((const uint16_t *)p)[second];
    return t == HN_F16 ? _cvtsh_ss(half) : hn_bf16_to_f32(half);
}

/* ---- scores -------------------------------------------------------------------------------------------------------- */

HN_INLINE void score_tile(const hn_dtype t, const int T, const hn_keys *keys, int c, const float *const *q, int dim,
                          float scale, float *s) {
    const unsigned char *k = keys->k[c];
    const size_t step = (size_t)keys->k_stride[c] * hn_kv_lane_bytes(t);
    const int pair = hn_kv_pair(t);
    const float *row[SCORE_ROWS];
    __m256 acc[2 * SCORE_ROWS];
    HN_UNROLL for (int i = 0; i < T; i++) row[i] = q[i];
    HN_UNROLL for (int i = 0; i < 2 * T; i++) acc[i] = _mm256_setzero_ps();
    for (int d = 0; d < dim; d++, k += d % pair ? 0 : step) {
        __m256 by[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
        if (t == HN_Q8_0) {
            const float *scales = keys->k_scale[c] + (size_t)(d / HN_KV_SCALED) * (size_t)keys->k_stride[c];
            by[0] = _mm256_loadu_ps(scales);
            by[1] = _mm256_loadu_ps(scales + 8);
        }
        const unsigned second = (unsigned)(d % pair);
        const __m256 v0 = load8(t, k, second, by[0]), v1 = load8(t, k + 8 * hn_kv_lane_bytes(t), second, by[1]);
        HN_UNROLL for (int i = 0; i < T; i++) {
            const __m256 x = _mm256_set1_ps(row[i][d]);
            acc[2 * i] = _mm256_fmadd_ps(x, v0, acc[2 * i]);
            acc[2 * i + 1] = _mm256_fmadd_ps(x, v1, acc[2 * i + 1]);
        }
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        float *to = s + i * HN_KEY_SPAN + c * HN_KEY_CHUNK;
        _mm256_storeu_ps(to, _mm256_mul_ps(acc[2 * i], _mm256_set1_ps(scale)));
        _mm256_storeu_ps(to + 8, _mm256_mul_ps(acc[2 * i + 1], _mm256_set1_ps(scale)));
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
    static score_fn *const scores_##type[SCORE_ROWS + 1] = {NULL, score_##type##_1, score_##type##_2,                 \
                                                            score_##type##_3, score_##type##_4, score_##type##_5,     \
                                                            score_##type##_6};
SCORES(F32)
SCORES(F16)
SCORES(BF16)
SCORES(Q8_0)

HN_INLINE int numbered(hn_dtype t) { return t == HN_F32 ? 0 : t == HN_F16 ? 1 : t == HN_BF16 ? 2 : 3; }

static void scores(hn_dtype t, const hn_keys *keys, int c0, int c1, const float *const *q, int nq, int dim, float scale,
                   float *s) {
    static score_fn *const *const of_type[] = {scores_F32, scores_F16, scores_BF16, scores_Q8_0};
    score_fn *const *fn = of_type[numbered(t)];
    int tiles = (nq + SCORE_ROWS - 1) / SCORE_ROWS;
    for (int c = c0; c < c1; c++) {
        for (int part = 0, i = 0; part < tiles; part++) {
            int rows = nq * (part + 1) / tiles - i;
            fn[rows](keys, c, q + i, dim, scale, s + i * HN_KEY_SPAN);
            i += rows;
        }
    }
}

/* ---- softmax ------------------------------------------------------------------------------------------------------- */

/* Lanes of positions p..p+7 that are in [lo, hi). */
HN_INLINE __m256i lanes_at(int p, int lo, int hi) { return _mm256_andnot_si256(hn_first_avx2(lo - p), hn_first_avx2(hi - p)); }

/* Writes e to `same`, or rounded to `rounded`. */
HN_INLINE void softmax_to(const float *s, int lo, int hi, float *m, float *l, float *same, uint16_t *rounded) {
    const int first = lo / 16 * 16, last = (hi + 15) / 16 * 16;
    const __m256 least = _mm256_set1_ps(-INFINITY);
    __m256 top = least, sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int p = first; p < last; p += 8) {
        const __m256 lanes = _mm256_castsi256_ps(lanes_at(p, lo, hi));
        top = _mm256_max_ps(_mm256_blendv_ps(least, _mm256_loadu_ps(s + p), lanes), top);
    }
    top = _mm256_max_ps(top, _mm256_permute2f128_ps(top, top, 1));
    top = _mm256_max_ps(top, _mm256_permute_ps(top, 0x4e));
    top = _mm256_max_ps(top, _mm256_permute_ps(top, 0xb1));
    for (int p = first; p < last; p += 8) {
        const __m256i lanes = lanes_at(p, lo, hi);
        const __m256 x = _mm256_sub_ps(_mm256_loadu_ps(s + p), top);
        __m256 e = rounded ? hn_exp_bf16_avx2(x) : hn_exp_avx2(x);
        if (rounded) {
            const __m256i half = _mm256_and_si256(hn_bf16_avx2(e), lanes);
            const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
            _mm_storeu_si128((__m128i *)(rounded + p), packed);
            e = _mm256_castsi256_ps(_mm256_slli_epi32(half, 16));
        } else {
            _mm256_maskstore_ps(same + p, lanes, e);
        }
        sum[p / 8 % 2] = _mm256_add_ps(sum[p / 8 % 2], _mm256_and_ps(e, _mm256_castsi256_ps(lanes)));
    }
    *m = _mm256_cvtss_f32(top);
    *l = hn_sum_avx2(sum[0], sum[1]);
}

static void softmax(float *s, int lo, int hi, float *m, float *l) { softmax_to(s, lo, hi, m, l, s, NULL); }

static void softmax_bf16(const float *s, int lo, int hi, float *m, float *l, uint16_t *e) {
    softmax_to(s, lo, hi, m, l, NULL, e);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

HN_INLINE const unsigned char *value_row(const hn_dtype t, const hn_keys *keys, int p, int dim, int d0) {
    const size_t at = (size_t)(p % HN_KEY_CHUNK / hn_kv_pair(t)) * (size_t)dim + (size_t)d0;
    return (const unsigned char *)keys->v[p / HN_KEY_CHUNK] + at * hn_kv_lane_bytes(t);
}

HN_INLINE void value_tile(const hn_dtype t, const int T, const int D, const hn_keys *keys, int lo, int hi, const float *e,
                          int dim, int d0, float *o, int ldo) {
    __m256 acc[2 * VALUE_ROWS];
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = _mm256_loadu_ps(o + i * ldo + d0 + 8 * j);
    }
    for (int p = lo; p < hi; p++) {
        const unsigned char *v = value_row(t, keys, p, dim, d0);
        __m256 x[2], by = _mm256_setzero_ps();
        if (t == HN_Q8_0) { /* 16 dims have one scale */
            const int block = p % HN_KEY_CHUNK * (dim / HN_KV_SCALED) + d0 / HN_KV_SCALED;
            by = _mm256_set1_ps(keys->v_scale[p / HN_KEY_CHUNK][block]);
        }
        HN_UNROLL for (int j = 0; j < D; j++) {
            x[j] = load8(t, v + 8 * (size_t)j * hn_kv_lane_bytes(t), (unsigned)(p % hn_kv_pair(t)), by);
        }
        HN_UNROLL for (int i = 0; i < T; i++) {
            const __m256 w = _mm256_set1_ps(e[i * HN_KEY_SPAN + p]);
            HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = _mm256_fmadd_ps(w, x[j], acc[i * D + j]);
        }
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) _mm256_storeu_ps(o + i * ldo + d0 + 8 * j, acc[i * D + j]);
    }
}

/* One dim of one query; not used for Q8_0, whose dims are whole blocks. */
HN_INLINE void value_dim(const hn_dtype t, const hn_keys *keys, int lo, int hi, const float *e, int dim, int d,
                         float *o) {
    __m128 acc = _mm_set_ss(*o);
    for (int p = lo; p < hi; p++) {
        const float v = load1(t, value_row(t, keys, p, dim, d), (unsigned)(p % hn_kv_pair(t)));
        acc = _mm_fmadd_ss(_mm_set_ss(e[p]), _mm_set_ss(v), acc);
    }
    *o = _mm_cvtss_f32(acc);
}

/* All dims of T queries. */
HN_INLINE void value_rows(const hn_dtype t, const int T, const hn_keys *keys, int lo, int hi, const float *e, int dim,
                          float *o, int ldo) {
    int d = 0;
    for (; d + 16 <= dim; d += 16) value_tile(t, T, 2, keys, lo, hi, e, dim, d, o, ldo);
    for (; d + 8 <= dim; d += 8) value_tile(t, T, 1, keys, lo, hi, e, dim, d, o, ldo);
    for (; d < dim; d++) {
        for (int i = 0; i < T; i++) value_dim(t, keys, lo, hi, e + i * HN_KEY_SPAN, dim, d, o + i * ldo + d);
    }
}

typedef void value_fn(const hn_keys *keys, int lo, int hi, const float *e, int dim, float *o, int ldo);
#define VALUE(type, T)                                                                                                \
    static __attribute__((noinline)) void value_##type##_##T(const hn_keys *keys, int lo, int hi, const float *e,     \
                                                             int dim, float *o, int ldo) {                            \
        value_rows(HN_##type, T, keys, lo, hi, e, dim, o, ldo);                                                       \
    }
#define VALUES(type)                                                                                                  \
    VALUE(type, 1) VALUE(type, 2) VALUE(type, 3) VALUE(type, 4)                                                       \
    static value_fn *const values_##type[VALUE_ROWS + 1] = {NULL, value_##type##_1, value_##type##_2,                 \
                                                            value_##type##_3, value_##type##_4};
VALUES(F32)
VALUES(F16)
VALUES(BF16)
VALUES(Q8_0)

static void values(hn_dtype t, const hn_keys *keys, int lo, int hi, const float *e, int nq, int dim, float *o, int ldo) {
    static value_fn *const *const of_type[] = {values_F32, values_F16, values_BF16, values_Q8_0};
    value_fn *const *fn = of_type[numbered(t)];
    for (int i = 0; i < nq; i += VALUE_ROWS) {
        int rows = nq - i < VALUE_ROWS ? nq - i : VALUE_ROWS;
        fn[rows](keys, lo, hi, e + i * HN_KEY_SPAN, dim, o + i * ldo, ldo);
    }
}

static void merge(float *O, const float *o, int dim, float a, float b) {
    for (int d = 0; d < dim; d += 8) {
        const __m256 kept = _mm256_mul_ps(hn_load_avx2(O + d, dim - d), _mm256_set1_ps(a));
        hn_store_avx2(O + d, dim - d, _mm256_fmadd_ps(hn_load_avx2(o + d, dim - d), _mm256_set1_ps(b), kept));
    }
}

static void scale_row(float *y, const float *x, int dim, float a) {
    for (int d = 0; d < dim; d += 8) {
        hn_store_avx2(y + d, dim - d, _mm256_mul_ps(hn_load_avx2(x + d, dim - d), _mm256_set1_ps(a)));
    }
}

void hn_kernels_avx2_attention(struct hn_kernels *k) {
    k->scores = scores;
    k->softmax = softmax;
    k->softmax_bf16 = softmax_bf16;
    k->values = values;
    k->value_rows = VALUE_ROWS;
    k->merge = merge;
    k->scale = scale_row;
}
