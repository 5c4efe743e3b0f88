/* SPDX-License-Identifier: Apache-2.0 */
/* attention_bf16_avx2.c - scores and values of a BF16 cache with AVX2: two fmas for a pair, denormals off.
 *
 * Scores: a tile is T queries x one chunk of 16 positions. Values: a tile is T queries x 16 dims; the last ones of a
 * head whose width is not a multiple of 8 are loaded and stored with a mask.
 */
#include <immintrin.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/x86/math_avx2.h"
#include "ops/unroll.h"

enum { SCORE_ROWS = 4, VALUE_ROWS = 4, FLUSH = 0x8040 /* of MXCSR: denormal inputs and results are zero */ };

typedef struct pairs {
    __m256 first, second;
} pairs;

HN_INLINE pairs of_line(__m256i line) {
    return (pairs){_mm256_castsi256_ps(_mm256_slli_epi32(line, 16)),
                   _mm256_castsi256_ps(_mm256_and_si256(line, _mm256_set1_epi32((int)0xffff0000)))};
}

HN_INLINE pairs of_one(const void *pair) {
    int bits;
    memcpy(&bits, pair, sizeof bits);
    return of_line(_mm256_set1_epi32(bits));
}

HN_INLINE __m256 add_pairs(__m256 sum, pairs x, pairs y) {
    return _mm256_fmadd_ps(x.first, y.first, _mm256_fmadd_ps(x.second, y.second, sum));
}

/* ---- scores -------------------------------------------------------------------------------------------------------- */

HN_INLINE void score_tile(const int T, const hn_keys *keys, int c, const uint16_t *const *q, int dim, float scale,
                          float *s) {
    const unsigned char *k = keys->k[c];
    const size_t step = (size_t)keys->k_stride[c] * 4;
    __m256 acc[2 * SCORE_ROWS];
    HN_UNROLL for (int i = 0; i < 2 * T; i++) acc[i] = _mm256_setzero_ps();
    for (int d = 0; d < dim; d += 2, k += step) {
        const pairs v0 = of_line(_mm256_loadu_si256((const __m256i *)k)),
                    v1 = of_line(_mm256_loadu_si256((const __m256i *)(k + 32)));
        HN_UNROLL for (int i = 0; i < T; i++) {
            const pairs x = of_one(q[i] + d);
            acc[2 * i] = add_pairs(acc[2 * i], x, v0);
            acc[2 * i + 1] = add_pairs(acc[2 * i + 1], x, v1);
        }
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        float *to = s + i * HN_KEY_SPAN + c * HN_KEY_CHUNK;
        _mm256_storeu_ps(to, _mm256_mul_ps(acc[2 * i], _mm256_set1_ps(scale)));
        _mm256_storeu_ps(to + 8, _mm256_mul_ps(acc[2 * i + 1], _mm256_set1_ps(scale)));
    }
}

typedef void score_fn(const hn_keys *keys, int c, const uint16_t *const *q, int dim, float scale, float *s);
#define SCORE(T)                                                                                                      \
    static __attribute__((noinline)) void score_##T(const hn_keys *keys, int c, const uint16_t *const *q, int dim,    \
                                                    float scale, float *s) {                                          \
        score_tile(T, keys, c, q, dim, scale, s);                                                                     \
    }
SCORE(1) SCORE(2) SCORE(3) SCORE(4)
static score_fn *const score_fns[SCORE_ROWS + 1] = {NULL, score_1, score_2, score_3, score_4};

static void scores(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale, float *s) {
    const unsigned csr = _mm_getcsr();
    const int tiles = (nq + SCORE_ROWS - 1) / SCORE_ROWS;
    _mm_setcsr(csr | FLUSH);
    for (int c = c0; c < c1; c++) {
        for (int part = 0, i = 0; part < tiles; part++) {
            int rows = nq * (part + 1) / tiles - i;
            score_fns[rows](keys, c, q + i, dim, scale, s + i * HN_KEY_SPAN);
            i += rows;
        }
    }
    _mm_setcsr(csr);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

/* Loads 8 or fewer dims of a pair of positions at v. */
HN_INLINE __m256i load_pairs(const unsigned char *v, int dims) {
    return dims >= 8 ? _mm256_loadu_si256((const __m256i *)v)
                     : _mm256_maskload_epi32((const int *)(const void *)v, hn_first_avx2(dims));
}

/* D: vectors of 8 dims, with `dims` dims in all. */
HN_INLINE void value_tile(const int T, const int D, int dims, const hn_keys *keys, int lo, int hi, const uint16_t *e, int dim,
                          int d0, float *o, int ldo) {
    __m256 acc[2 * VALUE_ROWS];
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = hn_load_avx2(o + i * ldo + d0 + 8 * j, dims - 8 * j);
    }
    for (int p = lo / 2 * 2; p < hi; p += 2) {
        const size_t at = (size_t)(p % HN_KEY_CHUNK / 2) * (size_t)dim + (size_t)d0;
        const unsigned char *v = (const unsigned char *)keys->v[p / HN_KEY_CHUNK] + 4 * at;
        const uint32_t seen = (p < lo ? 0xffff0000 : UINT32_MAX) & (p + 1 == hi ? 0x0000ffff : UINT32_MAX);
        pairs x[2];
        HN_UNROLL for (int j = 0; j < D; j++) {
            x[j] = of_line(_mm256_and_si256(load_pairs(v + 32 * j, dims - 8 * j), _mm256_set1_epi32((int)seen)));
        }
        HN_UNROLL for (int i = 0; i < T; i++) {
            const pairs w = of_one(e + i * HN_KEY_SPAN + p);
            HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = add_pairs(acc[i * D + j], w, x[j]);
        }
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) hn_store_avx2(o + i * ldo + d0 + 8 * j, dims - 8 * j, acc[i * D + j]);
    }
}

typedef void value_fn(const hn_keys *keys, int lo, int hi, const uint16_t *e, int dim, float *o, int ldo);
#define VALUE(T)                                                                                                      \
    static __attribute__((noinline)) void value_##T(const hn_keys *keys, int lo, int hi, const uint16_t *e, int dim,  \
                                                    float *o, int ldo) {                                              \
        int d = 0;                                                                                                    \
        for (; d + 16 <= dim; d += 16) value_tile(T, 2, 16, keys, lo, hi, e, dim, d, o, ldo);                         \
        for (; d < dim; d += 8) value_tile(T, 1, dim - d, keys, lo, hi, e, dim, d, o, ldo);                           \
    }
VALUE(1) VALUE(2) VALUE(3) VALUE(4)
static value_fn *const value_fns[VALUE_ROWS + 1] = {NULL, value_1, value_2, value_3, value_4};

static void values(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo) {
    const unsigned csr = _mm_getcsr();
    _mm_setcsr(csr | FLUSH);
    for (int i = 0; i < nq; i += VALUE_ROWS) {
        int rows = nq - i < VALUE_ROWS ? nq - i : VALUE_ROWS;
        value_fns[rows](keys, lo, hi, e + i * HN_KEY_SPAN, dim, o + i * ldo, ldo);
    }
    _mm_setcsr(csr);
}

void hn_kernels_avx2_attention_bf16(struct hn_kernels *k) {
    k->scores_bf16 = scores;
    k->values_bf16 = values;
}
