/* SPDX-License-Identifier: Apache-2.0 */
/* math_avx2.h - hn_exp, tanh, rounding to bf16, sums over lanes and loads of a few lanes, 8 at a time. Included by files compiled for that
 * level only. */
#ifndef HN_MATH_AVX2_H
#define HN_MATH_AVX2_H
#include <immintrin.h>

#include "ops/exp_poly.h"
#include "ops/unroll.h"

/* e^x = (1 + result) * *power. */
HN_INLINE __m256 hn_exp_parts_avx2(__m256 x, __m256 *power) {
    /* min and max return their second operand for NaN, so that it stays NaN to the end */
    x = _mm256_min_ps(_mm256_set1_ps(HN_EXP_HI), _mm256_max_ps(_mm256_set1_ps(HN_EXP_LO), x));
    const __m256 k = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(HN_EXP_LOG2E)),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(k, _mm256_set1_ps(HN_EXP_LN2_HI), x);
    r = _mm256_fnmadd_ps(k, _mm256_set1_ps(HN_EXP_LN2_LO), r);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(HN_EXP_P4), r, _mm256_set1_ps(HN_EXP_P3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(HN_EXP_P2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(HN_EXP_P1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(HN_EXP_P0));
    *power = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127)), 23));
    return _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
}

HN_INLINE __m256 hn_exp_avx2(__m256 x) {
    __m256 power, q = hn_exp_parts_avx2(x, &power);
    return _mm256_mul_ps(_mm256_add_ps(_mm256_set1_ps(1.0f), q), power);
}

HN_INLINE __m256 hn_tanh_avx2(__m256 t) {
    __m256 power, q = hn_exp_parts_avx2(_mm256_add_ps(t, t), &power);
    const __m256 m = _mm256_fmadd_ps(q, power, _mm256_sub_ps(power, _mm256_set1_ps(1.0f)));
    return _mm256_div_ps(m, _mm256_add_ps(m, _mm256_set1_ps(2.0f)));
}

/* e^x for x <= 0, with the accuracy that bf16 needs: exp_bf16 of ref/attention_ref.c. */
HN_INLINE __m256 hn_exp_bf16_avx2(__m256 x) {
    const __m256 t = _mm256_max_ps(_mm256_set1_ps(HN_EXP2_LO), _mm256_mul_ps(x, _mm256_set1_ps(HN_EXP_LOG2E)));
    const __m256 k = _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), f = _mm256_sub_ps(t, k);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(HN_EXP2_P2), f, _mm256_set1_ps(HN_EXP2_P1));
    p = _mm256_fmadd_ps(_mm256_fmadd_ps(p, f, _mm256_set1_ps(HN_EXP2_P0)), f, _mm256_set1_ps(1.0f));
    const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

/* Rounds to nearest even; a NaN keeps its upper bits and becomes quiet. 8 dwords with the result in their low half. */
HN_INLINE __m256i hn_bf16_avx2(__m256 v) {
    const __m256i u = _mm256_castps_si256(v), high = _mm256_srli_epi32(u, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i r = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(_mm256_srli_epi32(r, 16), quiet, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
}

/* Lanes 0..7 and 8..15 of a sum: the tree of ref/norm.c, halves are added, 8, 4, 2, 1. */
HN_INLINE float hn_sum_avx2(__m256 low, __m256 high) {
    const __m256 a = _mm256_add_ps(low, high);
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

/* Lanes i with i < count, as a mask. count may be anything. */
HN_INLINE __m256i hn_first_avx2(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first min(8, count) floats at p; other lanes are zero, and are not changed in memory. Masked stores are slow, ten
 * times on AMD: only the end of a row uses them. */
HN_INLINE __m256 hn_load_avx2(const float *p, int count) {
    return count >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, hn_first_avx2(count));
}
HN_INLINE void hn_store_avx2(float *p, int count, __m256 v) {
    if (count >= 8) {
        _mm256_storeu_ps(p, v);
    } else {
        _mm256_maskstore_ps(p, hn_first_avx2(count), v);
    }
}
#endif
