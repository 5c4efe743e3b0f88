/* SPDX-License-Identifier: Apache-2.0 */
/* product_pack_bf16.h - strips of pairs of bf16, packed by AVX-512's own rounding: to nearest, ties to even; NaN stays
 * NaN, denormal numbers become 0. Sixteen vectors of sixteen pairs at a time, which are transposed if the adjacent
 * numbers of the matrix are not adjacent in the strip. */
#ifndef HN_PRODUCT_PACK_BF16_H
#define HN_PRODUCT_PACK_BF16_H
#include <immintrin.h>

#include "ops/unroll.h"
#include "train/math/product/product_kernels.h"

enum { HN_PAIRS = 16 }; /* pairs of a vector: HN_MAX_GROUP terms */

/* The first n of 16 lanes; none if n is negative. */
static inline __mmask16 hn_first_lanes(int n) {
    return (__mmask16)(n >= HN_PAIRS ? 0xFFFF : n > 0 ? (1 << n) - 1 : 0);
}

/* Terms [0, n) of one output, adjacent in the matrix: 16 pairs, zeros after the n-th. */
static inline __m512i hn_pairs_along(const float *p, int n) {
    const __m512 lo = _mm512_maskz_loadu_ps(hn_first_lanes(n), p);
    const __m512 hi = _mm512_maskz_loadu_ps(hn_first_lanes(n - HN_PAIRS), p + HN_PAIRS);
    return (__m512i)_mm512_cvtne2ps_pbh(hi, lo);
}

/* Two terms, the second `along` after the first, of 16 adjacent outputs: a pair each. `second`: there is a second one. */
static inline __m512i hn_pairs_across(const float *p, size_t along, __mmask16 there, bool second) {
    const __m512i weave = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512 lo = _mm512_maskz_loadu_ps(there, p);
    const __m512 hi = _mm512_maskz_loadu_ps(second ? there : 0, p + along);
    return _mm512_permutexvar_epi16(weave, (__m512i)_mm512_cvtne2ps_pbh(hi, lo));
}

/* Transposes 16 x 16 pairs, in squares of 2, 4, 8 and 16. */
static inline void hn_turn_pairs(__m512i x[HN_PAIRS]) {
    __m512i y[HN_PAIRS];
    HN_UNROLL for (int i = 0; i < HN_PAIRS; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    HN_UNROLL for (int i = 0; i < HN_PAIRS; i += 4) {
        x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    HN_UNROLL for (int i = 0; i < 4; i++) {
        y[i] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88);
        y[i + 4] = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xDD);
        y[i + 8] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0x88);
        y[i + 12] = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0xDD);
    }
    HN_UNROLL for (int i = 0; i < 4; i++) {
        x[i] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0x88);
        x[i + 8] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0xDD);
        x[i + 4] = _mm512_shuffle_i32x4(y[i + 4], y[i + 12], 0x88);
        x[i + 12] = _mm512_shuffle_i32x4(y[i + 4], y[i + 12], 0xDD);
    }
}

/* Up to sixteen outputs of 32 terms: `there` outputs and n terms are in the matrix at p. */
static inline void hn_load_pairs(hn_operand x, const float *p, int there, int n, bool turned, __m512i v[HN_PAIRS]) {
    for (int i = 0; i < HN_PAIRS; i++) {
        if (x.across != 1)
            v[i] = i < there ? hn_pairs_along(p + (size_t)i * x.across, n) : _mm512_setzero_si512();
        else
            v[i] = 2 * i < n
                       ? hn_pairs_across(p + (size_t)(2 * i) * x.along, x.along, hn_first_lanes(there), 2 * i + 1 < n)
                       : _mm512_setzero_si512();
    }
    if (turned) hn_turn_pairs(v);
}

/* See hn_product_kernel; group 2 or 32. A vector of the strip is an output's group of 32, or a pair of 16 outputs. */
static inline void hn_pack_bf16(hn_operand x, int first, int width, int k0, int n, int group, void *strip) {
    const bool pairs = group == 2;
    for (int k = 0; k < n; k += HN_MAX_GROUP) {
        uint32_t *to = (uint32_t *)strip + (size_t)k / 2 * (size_t)width;
        for (int i = 0; i < width; i += HN_PAIRS) {
            __m512i v[HN_PAIRS];
            const float *p = x.p + (size_t)(first + i) * x.across + (size_t)(k0 + k) * x.along;
            const int lanes = width - i < HN_PAIRS ? width - i : HN_PAIRS, left = x.outputs - first - i;
            hn_load_pairs(x, p, left < lanes ? left : lanes, n - k, pairs == (x.across != 1), v);
            for (int j = 0; pairs && j < HN_PAIRS; j++)
                _mm512_mask_storeu_epi32(to + j * width + i, hn_first_lanes(lanes), v[j]);
            for (int j = 0; !pairs && j < lanes; j++) _mm512_storeu_si512(to + (i + j) * HN_PAIRS, v[j]);
        }
    }
}
#endif
