/* SPDX-License-Identifier: Apache-2.0 */
/* attention_bf16_tmpl.h - scores and values of a BF16 cache in products of pairs, 16 lanes at a time. A level that
 * includes it defines before the type of a vector of pairs, and its product:
 *
 *   pairs                                 type for 16 pairs of bf16
 *   pairs of_line(__m512i)                16 pairs, one in each lane
 *   pairs of_one(const void *)            one pair in all lanes
 *   __m512 add_pairs(__m512, pairs, pairs)
 *   __m256i round_16(__m512)              to bf16, denormals to zero
 *   SCORE_CHUNKS, VALUE_VECTORS           4 or less: width of a tile, by the registers that pairs take
 *
 * Scores: a lane is a position; a tile is T queries x P chunks of 16. Values: a lane is a dim; a tile is T queries x D
 * vectors of 16. Denormals are zero everywhere here, as in the instruction vdpbf16ps.
 */
#include <immintrin.h>
#include <math.h>

#include "ops/kernels.h"
#include "ops/x86/attention_ahead.h"
#include "ops/x86/math_avx512.h"
#include "ops/unroll.h"

enum { SCORE_ROWS = 6, VALUE_ROWS = 6, FLUSH = 0x8040 /* of MXCSR: denormal inputs and results are zero */ };

/* ---- scores -------------------------------------------------------------------------------------------------------- */

HN_INLINE void score_tile(const int T, const int P, const hn_keys *keys, hn_read_ahead *ahead, int turn, int c,
                          const uint16_t *const *q, int dim, float scale, float *s) {
    const unsigned char *k[SCORE_CHUNKS];
    const uint16_t *row[SCORE_ROWS];
    size_t step[SCORE_CHUNKS];
    hn_fetch fetch = hn_fetch_begin(ahead, turn);
    __m512 acc[SCORE_ROWS * SCORE_CHUNKS];
    HN_UNROLL for (int p = 0; p < P; p++) {
        k[p] = keys->k[c + p];
        step[p] = (size_t)keys->k_stride[c + p] * hn_kv_lane_bytes(HN_BF16);
    }
    HN_UNROLL for (int i = 0; i < T; i++) row[i] = q[i];
    HN_UNROLL for (int i = 0; i < T * P; i++) acc[i] = _mm512_setzero_ps();
    for (int d = 0; d < dim / 2; d++) {
        pairs v[SCORE_CHUNKS];
        hn_fetch_step(HN_BF16, P, d, ahead, &fetch);
        HN_UNROLL for (int p = 0; p < P; p++) {
            v[p] = of_line(_mm512_loadu_si512(k[p]));
            k[p] += step[p];
        }
        HN_UNROLL for (int i = 0; i < T; i++) {
            const pairs x = of_one(row[i] + 2 * d);
            HN_UNROLL for (int p = 0; p < P; p++) acc[i * P + p] = add_pairs(acc[i * P + p], x, v[p]);
        }
    }
    hn_fetch_end(ahead, &fetch);
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int p = 0; p < P; p++) {
            _mm512_storeu_ps(s + i * HN_KEY_SPAN + (c + p) * HN_KEY_CHUNK,
                             _mm512_mul_ps(acc[i * P + p], _mm512_set1_ps(scale)));
        }
    }
}

typedef void score_fn(const hn_keys *keys, hn_read_ahead *ahead, int turn, int c, const uint16_t *const *q, int dim, float scale,
                      float *s);
#define SCORE(T, P)                                                                                                   \
    static __attribute__((noinline)) void score_##T##x##P(const hn_keys *keys, hn_read_ahead *ahead, int turn, int c,      \
                                                          const uint16_t *const *q, int dim, float scale, float *s) { \
        score_tile(T, P, keys, ahead, turn, c, q, dim, scale, s);                                                     \
    }
SCORE(1, 1) SCORE(2, 1) SCORE(3, 1) SCORE(4, 1) SCORE(5, 1) SCORE(6, 1)
SCORE(1, 2) SCORE(2, 2) SCORE(3, 2) SCORE(4, 2) SCORE(5, 2) SCORE(6, 2)
#if SCORE_CHUNKS == 4
SCORE(1, 4) SCORE(2, 4) SCORE(3, 4) SCORE(4, 4) SCORE(5, 4) SCORE(6, 4)
#endif
static score_fn *const score_fns[][SCORE_ROWS + 1] = {
    {NULL, score_1x1, score_2x1, score_3x1, score_4x1, score_5x1, score_6x1},
    {NULL, score_1x2, score_2x2, score_3x2, score_4x2, score_5x2, score_6x2},
#if SCORE_CHUNKS == 4
    {NULL, score_1x4, score_2x4, score_3x4, score_4x4, score_5x4, score_6x4},
#endif
};

static void scores(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale, float *s) {
    const unsigned csr = _mm_getcsr();
    const int tiles = (nq + SCORE_ROWS - 1) / SCORE_ROWS;
    _mm_setcsr(csr | FLUSH);
    for (int c = c0; c < c1;) {
        int wide = SCORE_CHUNKS == 4 ? 2 : 1; /* log2 of the chunks at once */
        while (c + (1 << wide) > c1) wide--;
        for (int part = 0, i = 0; part < tiles; part++) {
            int rows = nq * (part + 1) / tiles - i;
            score_fns[wide][rows](keys, keys->ahead, part, c, q + i, dim, scale, s + i * HN_KEY_SPAN);
            i += rows;
        }
        c += 1 << wide;
    }
    _mm_setcsr(csr);
}

/* ---- rounding: softmax, queries ------------------------------------------------------------------------------------ */

HN_INLINE void round_chunk(const float *s, __mmask16 lanes, __m512 top, __m512 *sum, uint16_t *e) {
    const __m512 v = _mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, s), top);
    const __m256i half = _mm256_maskz_mov_epi16(lanes, round_16(hn_exp_bf16_avx512(v)));
    _mm256_storeu_si256((__m256i *)e, half);
    *sum = _mm512_mask_add_ps(*sum, lanes, *sum, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16)));
}

static void softmax(const float *s, int lo, int hi, float *m, float *l, uint16_t *e) {
    const __m512 least = _mm512_set1_ps(-INFINITY);
    const int c0 = lo / 16, c1 = (hi - 1) / 16; /* the ends, where lanes may be masked */
    __m512 top = _mm512_mask_loadu_ps(least, hn_chunk_lanes(c0, lo, hi), s + 16 * c0), sum = _mm512_setzero_ps();
    top = _mm512_max_ps(top, least);
    for (int c = c0 + 1; c < c1; c++) top = _mm512_max_ps(_mm512_loadu_ps(s + 16 * c), top);
    top = _mm512_max_ps(_mm512_mask_loadu_ps(least, hn_chunk_lanes(c1, lo, hi), s + 16 * c1), top);
    *m = _mm512_reduce_max_ps(top);
    top = _mm512_set1_ps(*m);
    round_chunk(s + 16 * c0, hn_chunk_lanes(c0, lo, hi), top, &sum, e + 16 * c0);
    for (int c = c0 + 1; c < c1; c++) round_chunk(s + 16 * c, 0xffff, top, &sum, e + 16 * c);
    if (c1 > c0) round_chunk(s + 16 * c1, hn_chunk_lanes(c1, lo, hi), top, &sum, e + 16 * c1);
    *l = hn_sum_avx512(sum);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

/* One pair of positions; its values are masked with `seen`. */
HN_INLINE void value_pair(const int T, const int D, const unsigned char *v, uint32_t seen, const uint16_t *e,
                          __mmask16 lanes, __m512 *acc) {
    pairs x[VALUE_VECTORS];
    HN_UNROLL for (int j = 0; j < D; j++) {
        __m512i line = D > 1 ? _mm512_loadu_si512(v + 64 * j) : _mm512_maskz_loadu_epi32(lanes, v);
        if (seen != UINT32_MAX) line = _mm512_and_si512(line, _mm512_set1_epi32((int)seen));
        x[j] = of_line(line);
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        const pairs w = of_one(e + i * HN_KEY_SPAN);
        HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = add_pairs(acc[i * D + j], w, x[j]);
    }
}

HN_INLINE const unsigned char *pair_at(const hn_keys *keys, int p, int dim, int d0) {
    const size_t at = (size_t)(p % HN_KEY_CHUNK / 2) * (size_t)dim + (size_t)d0;
    return (const unsigned char *)keys->v[p / HN_KEY_CHUNK] + at * hn_kv_lane_bytes(HN_BF16);
}

HN_INLINE void value_tile(const int T, const int D, const hn_keys *keys, hn_read_ahead *ahead, int lo, int hi, const uint16_t *e,
                          int dim, int d0, float *o, int ldo) {
    hn_fetch fetch = hn_fetch_begin(ahead, 0);
    int step = 0;
    const __mmask16 lanes = D > 1 || dim - d0 >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << (dim - d0)) - 1);
    const size_t row = (size_t)dim * hn_kv_lane_bytes(HN_BF16);
    int p = lo / 2 * 2;
    __m512 acc[VALUE_ROWS * VALUE_VECTORS];
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) acc[i * D + j] = _mm512_maskz_loadu_ps(lanes, o + i * ldo + d0 + 16 * j);
    }
    if (p < lo || p + 1 == hi) {
        const uint32_t seen = (p < lo ? 0xffff0000 : UINT32_MAX) & (p + 1 == hi ? 0x0000ffff : UINT32_MAX);
        value_pair(T, D, pair_at(keys, p, dim, d0), seen, e + p, lanes, acc);
        p += 2;
    }
    while (p + 1 < hi) {
        const int end = p / HN_KEY_CHUNK * HN_KEY_CHUNK + HN_KEY_CHUNK;
        const unsigned char *v = pair_at(keys, p, dim, d0);
        for (; p < end && p + 1 < hi; p += 2, v += row) {
            hn_fetch_step(HN_BF16, D, step++, ahead, &fetch);
            value_pair(T, D, v, UINT32_MAX, e + p, lanes, acc);
        }
    }
    if (p < hi) value_pair(T, D, pair_at(keys, p, dim, d0), 0x0000ffff, e + p, lanes, acc);
    hn_fetch_end(ahead, &fetch);
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int j = 0; j < D; j++) _mm512_mask_storeu_ps(o + i * ldo + d0 + 16 * j, lanes, acc[i * D + j]);
    }
}

typedef void value_fn(const hn_keys *keys, hn_read_ahead *ahead, int lo, int hi, const uint16_t *e, int dim, int d0, float *o,
                      int ldo);
#define VALUE(T, D, name)                                                                                             \
    static __attribute__((noinline)) void value_##T##name(const hn_keys *keys, hn_read_ahead *ahead, int lo, int hi,       \
                                                          const uint16_t *e, int dim, int d0, float *o, int ldo) {    \
        value_tile(T, D, keys, ahead, lo, hi, e, dim, d0, o, ldo);                                                    \
    }
VALUE(1, 1, narrow) VALUE(2, 1, narrow) VALUE(3, 1, narrow) VALUE(4, 1, narrow) VALUE(5, 1, narrow) VALUE(6, 1, narrow)
VALUE(1, VALUE_VECTORS, wide) VALUE(2, VALUE_VECTORS, wide) VALUE(3, VALUE_VECTORS, wide)
VALUE(4, VALUE_VECTORS, wide) VALUE(5, VALUE_VECTORS, wide) VALUE(6, VALUE_VECTORS, wide)
static value_fn *const value_fns[2][VALUE_ROWS + 1] = {
    {NULL, value_1narrow, value_2narrow, value_3narrow, value_4narrow, value_5narrow, value_6narrow},
    {NULL, value_1wide, value_2wide, value_3wide, value_4wide, value_5wide, value_6wide}};

static void values(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo) {
    const unsigned csr = _mm_getcsr();
    _mm_setcsr(csr | FLUSH);
    for (int i = 0; i < nq;) {
        int rows = nq - i < VALUE_ROWS ? nq - i : VALUE_ROWS, d = 0;
        const uint16_t *ei = e + i * HN_KEY_SPAN;
        for (; d + 16 * VALUE_VECTORS <= dim; d += 16 * VALUE_VECTORS) {
            value_fns[1][rows](keys, keys->ahead, lo, hi, ei, dim, d, o + i * ldo, ldo);
        }
        for (; d < dim; d += 16) value_fns[0][rows](keys, keys->ahead, lo, hi, ei, dim, d, o + i * ldo, ldo);
        i += rows;
    }
    _mm_setcsr(csr);
}
