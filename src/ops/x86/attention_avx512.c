/* SPDX-License-Identifier: Apache-2.0 */
/* attention_avx512.c - one span of attention with AVX-512. Results: ref/attention_ref.c, bit for bit.
 *
 * Scores: a lane is a position; a tile is T queries x P chunks of 16 positions, its keys widened once for all T.
 * Values: a lane is a dim; a tile is T queries x D vectors of 16 dims, its values widened once for all T.
 */
#include <immintrin.h>
#include <math.h>

#include "ops/kernels.h"
#include "ops/x86/attention_ahead.h"
#include "ops/x86/math_avx512.h"
#include "ops/unroll.h"

enum { SCORE_ROWS = 6, SCORE_CHUNKS = 4, VALUE_ROWS = 6, VALUE_VECTORS = 4 };

/* Widens the first or the second of each pair of a line. */
HN_INLINE __m512 of_pairs(__m512i line, unsigned second) {
    const __m512i at_top = _mm512_sll_epi32(line, _mm_cvtsi32_si128(second ? 0 : 16));
    return _mm512_castsi512_ps(_mm512_and_si512(at_top, _mm512_set1_epi32((int)0xffff0000)));
}

HN_INLINE __m512 of_bytes(__m128i codes, __m512 scale) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)), scale);
}

/* Loads 16 elements; those outside `lanes` are zero and not accessed. Of pairs one half; scale: for Q8_0. */
HN_INLINE __m512 load_lanes(const hn_dtype t, const unsigned char *p, unsigned second, __m512 scale, __mmask16 lanes) {
    if (t == HN_F32) return _mm512_maskz_loadu_ps(lanes, p);
    if (t == HN_BF16) return of_pairs(_mm512_maskz_loadu_epi32(lanes, p), second);
    if (t == HN_Q8_0) return of_bytes(_mm_maskz_loadu_epi8(lanes, p), scale);
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, p));
}

HN_INLINE __m512 load_all(const hn_dtype t, const unsigned char *p, unsigned second, __m512 scale) {
    if (t == HN_F32) return _mm512_loadu_ps(p);
    if (t == HN_BF16) return of_pairs(_mm512_loadu_si512(p), second);
    if (t == HN_Q8_0) return of_bytes(_mm_loadu_si128((const __m128i *)p), scale);
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

/* ---- scores -------------------------------------------------------------------------------------------------------- */

/* One dim of all T queries x P chunks. */
HN_INLINE void score_dim(const int T, const int P, const float *const *row, int d, const __m512 *v, __m512 *acc) {
    HN_UNROLL for (int i = 0; i < T; i++) {
        const __m512 x = _mm512_set1_ps(row[i][d]);
        HN_UNROLL for (int p = 0; p < P; p++) acc[i * P + p] = _mm512_fmadd_ps(x, v[p], acc[i * P + p]);
    }
}

HN_INLINE void score_tile(const hn_dtype t, const int T, const int P, const hn_keys *keys, hn_read_ahead *ahead, int turn, int c,
                          const float *const *q, int dim, float scale, float *s) {
    const int pair = hn_kv_pair(t);
    const unsigned char *k[SCORE_CHUNKS];
    const float *row[SCORE_ROWS];
    size_t step[SCORE_CHUNKS];
    hn_fetch fetch = hn_fetch_begin(ahead, turn);
    __m512 acc[SCORE_ROWS * SCORE_CHUNKS];
    HN_UNROLL for (int p = 0; p < P; p++) {
        k[p] = keys->k[c + p];
        step[p] = (size_t)keys->k_stride[c + p] * hn_kv_lane_bytes(t);
    }
    HN_UNROLL for (int i = 0; i < T; i++) row[i] = q[i];
    HN_UNROLL for (int i = 0; i < T * P; i++) acc[i] = _mm512_setzero_ps();
    for (int d = 0; d < dim / pair; d++) {
        hn_fetch_step(t, P, d, ahead, &fetch);
        HN_UNROLL for (int u = 0; u < pair; u++) {
            __m512 v[SCORE_CHUNKS];
            HN_UNROLL for (int p = 0; p < P; p++) {
                __m512 by = _mm512_setzero_ps();
                if (t == HN_Q8_0) {
                    const size_t block = (size_t)(d / HN_KV_SCALED) * (size_t)keys->k_stride[c + p];
                    by = _mm512_loadu_ps(keys->k_scale[c + p] + block);
                }
                v[p] = load_all(t, k[p], (unsigned)u, by);
            }
            score_dim(T, P, row, d * pair + u, v, acc);
        }
        HN_UNROLL for (int p = 0; p < P; p++) k[p] += step[p];
    }
    hn_fetch_end(ahead, &fetch);
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int p = 0; p < P; p++) {
            _mm512_storeu_ps(s + i * HN_KEY_SPAN + (c + p) * HN_KEY_CHUNK,
                             _mm512_mul_ps(acc[i * P + p], _mm512_set1_ps(scale)));
        }
    }
}

typedef void score_fn(const hn_keys *keys, hn_read_ahead *ahead, int turn, int c, const float *const *q, int dim, float scale,
                      float *s);
#define SCORE(type, T, P)                                                                                             \
    static __attribute__((noinline)) void score_##type##_##T##x##P(const hn_keys *keys, hn_read_ahead *ahead, int turn, int c,\
                                                                   const float *const *q, int dim, float scale,       \
                                                                   float *s) {                                        \
        score_tile(HN_##type, T, P, keys, ahead, turn, c, q, dim, scale, s);                                          \
    }
#define SCORES(type)                                                                                                  \
    SCORE(type, 1, 1) SCORE(type, 2, 1) SCORE(type, 3, 1) SCORE(type, 4, 1) SCORE(type, 5, 1) SCORE(type, 6, 1)       \
    SCORE(type, 1, 2) SCORE(type, 2, 2) SCORE(type, 3, 2) SCORE(type, 4, 2) SCORE(type, 5, 2) SCORE(type, 6, 2)       \
    SCORE(type, 1, 4) SCORE(type, 2, 4) SCORE(type, 3, 4) SCORE(type, 4, 4) SCORE(type, 5, 4) SCORE(type, 6, 4)       \
    static score_fn *const scores_##type[3][SCORE_ROWS + 1] = {                                                       \
        {NULL, score_##type##_1x1, score_##type##_2x1, score_##type##_3x1, score_##type##_4x1, score_##type##_5x1,    \
         score_##type##_6x1},                                                                                         \
        {NULL, score_##type##_1x2, score_##type##_2x2, score_##type##_3x2, score_##type##_4x2, score_##type##_5x2,    \
         score_##type##_6x2},                                                                                         \
        {NULL, score_##type##_1x4, score_##type##_2x4, score_##type##_3x4, score_##type##_4x4, score_##type##_5x4,    \
         score_##type##_6x4}};
SCORES(F32)
SCORES(F16)
SCORES(BF16)
SCORES(Q8_0)

HN_INLINE int numbered(hn_dtype t) { return t == HN_F32 ? 0 : t == HN_F16 ? 1 : t == HN_BF16 ? 2 : 3; }

static void scores(hn_dtype t, const hn_keys *keys, int c0, int c1, const float *const *q, int nq, int dim, float scale,
                   float *s) {
    static score_fn *const(*const of_type[])[SCORE_ROWS + 1] = {scores_F32, scores_F16, scores_BF16, scores_Q8_0};
    score_fn *const(*fn)[SCORE_ROWS + 1] = of_type[numbered(t)];
    int tiles = (nq + SCORE_ROWS - 1) / SCORE_ROWS;
    for (int c = c0; c < c1;) {
        int wide = 2; /* log2 of the chunks at once */
        while (c + (1 << wide) > c1) wide--;
        for (int part = 0, i = 0; part < tiles; part++) {
            int rows = nq * (part + 1) / tiles - i;
            fn[wide][rows](keys, keys->ahead, part, c, q + i, dim, scale, s + i * HN_KEY_SPAN);
            i += rows;
        }
        c += 1 << wide;
    }
}

/* ---- softmax ------------------------------------------------------------------------------------------------------- */

static void softmax(float *s, int lo, int hi, float *m, float *l) {
    const int c0 = lo / 16, c1 = (hi + 15) / 16;
    const __m512 least = _mm512_set1_ps(-INFINITY);
    __m512 top = least, sum = _mm512_setzero_ps();
    for (int c = c0; c < c1; c++) {
        top = _mm512_max_ps(_mm512_mask_loadu_ps(least, hn_chunk_lanes(c, lo, hi), s + 16 * c), top);
    }
    *m = _mm512_reduce_max_ps(top);
    for (int c = c0; c < c1; c++) {
        const __mmask16 lanes = hn_chunk_lanes(c, lo, hi);
        const __m512 v = _mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, s + 16 * c), _mm512_set1_ps(*m));
        const __m512 e = hn_exp_avx512(v);
        _mm512_mask_storeu_ps(s + 16 * c, lanes, e);
        sum = _mm512_mask_add_ps(sum, lanes, sum, e);
    }
    *l = hn_sum_avx512(sum);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

HN_INLINE void value_tile(const hn_dtype t, const int T, const int D, const hn_keys *keys, hn_read_ahead *ahead, int lo, int hi,
                          const float *e, int dim, int d0, float *o, int ldo) {
    hn_fetch fetch = hn_fetch_begin(ahead, 0);
    int step = 0;
    const __mmask16 lanes = D > 1 || dim - d0 >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << (dim - d0)) - 1);
    const size_t row = (size_t)dim * hn_kv_lane_bytes(t);
    __m512 acc[VALUE_ROWS * VALUE_VECTORS];
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = _mm512_maskz_loadu_ps(lanes, o + i * ldo + d0 + 16 * j);
    }
    for (int p = lo; p < hi;) {
        const int c = p / HN_KEY_CHUNK, end = hi < (c + 1) * HN_KEY_CHUNK ? hi : (c + 1) * HN_KEY_CHUNK;
        const unsigned char *base = (const unsigned char *)keys->v[c] + (size_t)d0 * hn_kv_lane_bytes(t);
        for (; p < end; p++) {
            const unsigned in_chunk = (unsigned)p % HN_KEY_CHUNK, second = in_chunk % (unsigned)hn_kv_pair(t);
            const unsigned char *v = base + row * (in_chunk / (unsigned)hn_kv_pair(t));
            __m512 x[VALUE_VECTORS];
            if (second == 0) hn_fetch_step(t, D, step++, ahead, &fetch);
            HN_UNROLL for (int j = 0; j < D; j++) {
                const size_t to = 16 * (size_t)j * hn_kv_lane_bytes(t);
                __m512 by = _mm512_setzero_ps();
                if (t == HN_Q8_0) {
                    const int block = (int)in_chunk * (dim / HN_KV_SCALED) + (d0 + 16 * j) / HN_KV_SCALED;
                    by = _mm512_set1_ps(keys->v_scale[c][block]);
                }
                x[j] = D > 1 ? load_all(t, v + to, second, by) : load_lanes(t, v, second, by, lanes);
            }
            HN_UNROLL for (int i = 0; i < T; i++) {
                const __m512 w = _mm512_set1_ps(e[i * HN_KEY_SPAN + p]);
                HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = _mm512_fmadd_ps(w, x[j], acc[i * D + j]);
            }
        }
    }
    hn_fetch_end(ahead, &fetch);
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) _mm512_mask_storeu_ps(o + i * ldo + d0 + 16 * j, lanes, acc[i * D + j]);
    }
}

typedef void value_fn(const hn_keys *keys, hn_read_ahead *ahead, int lo, int hi, const float *e, int dim, int d0, float *o,
                      int ldo);
#define VALUE(type, T, D)                                                                                             \
    static __attribute__((noinline)) void value_##type##_##T##x##D(const hn_keys *keys, hn_read_ahead *ahead, int lo,      \
                                                                   int hi, const float *e, int dim, int d0, float *o, \
                                                                   int ldo) {                                         \
        value_tile(HN_##type, T, D, keys, ahead, lo, hi, e, dim, d0, o, ldo);                                         \
    }
#define VALUES(type)                                                                                                  \
    VALUE(type, 1, 1) VALUE(type, 2, 1) VALUE(type, 3, 1) VALUE(type, 4, 1) VALUE(type, 5, 1) VALUE(type, 6, 1)       \
    VALUE(type, 1, 4) VALUE(type, 2, 4) VALUE(type, 3, 4) VALUE(type, 4, 4) VALUE(type, 5, 4) VALUE(type, 6, 4)       \
    static value_fn *const values_##type[2][VALUE_ROWS + 1] = {                                                       \
        {NULL, value_##type##_1x1, value_##type##_2x1, value_##type##_3x1, value_##type##_4x1, value_##type##_5x1,    \
         value_##type##_6x1},                                                                                         \
        {NULL, value_##type##_1x4, value_##type##_2x4, value_##type##_3x4, value_##type##_4x4, value_##type##_5x4,    \
         value_##type##_6x4}};
VALUES(F32)
VALUES(F16)
VALUES(BF16)
VALUES(Q8_0)

static void values(hn_dtype t, const hn_keys *keys, int lo, int hi, const float *e, int nq, int dim, float *o, int ldo) {
    static value_fn *const(*const of_type[])[VALUE_ROWS + 1] = {values_F32, values_F16, values_BF16, values_Q8_0};
    value_fn *const(*fn)[VALUE_ROWS + 1] = of_type[numbered(t)];
    for (int i = 0; i < nq;) {
        int rows = nq - i < VALUE_ROWS ? nq - i : VALUE_ROWS, d = 0;
        const float *ei = e + i * HN_KEY_SPAN;
        for (; d + 16 * VALUE_VECTORS <= dim; d += 16 * VALUE_VECTORS) {
            fn[1][rows](keys, keys->ahead, lo, hi, ei, dim, d, o + i * ldo, ldo);
        }
        for (; d < dim; d += 16) fn[0][rows](keys, keys->ahead, lo, hi, ei, dim, d, o + i * ldo, ldo);
        i += rows;
    }
}

static void merge(float *O, const float *o, int dim, float a, float b) {
    for (int d = 0; d < dim; d += 16) {
        const __mmask16 lanes = dim - d >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << (dim - d)) - 1);
        const __m512 kept = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, O + d), _mm512_set1_ps(a));
        const __m512 v = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(lanes, o + d), _mm512_set1_ps(b), kept);
        _mm512_mask_storeu_ps(O + d, lanes, v);
    }
}

static void scale_row(float *y, const float *x, int dim, float a) {
    for (int d = 0; d < dim; d += 16) {
        const __mmask16 lanes = dim - d >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << (dim - d)) - 1);
        _mm512_mask_storeu_ps(y + d, lanes, _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + d), _mm512_set1_ps(a)));
    }
}

void hn_kernels_avx512_attention(struct hn_kernels *k) {
    k->scores = scores;
    k->softmax = softmax;
    k->values = values;
    k->value_rows = VALUE_ROWS;
    k->merge = merge;
    k->scale = scale_row;
}
