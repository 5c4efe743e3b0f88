/* SPDX-License-Identifier: Apache-2.0 */
/* math_avx512.h - hn_exp, tanh, rounding to bf16, and sums over lanes, 16 at a time. Included by files compiled for that level only. */
#ifndef HN_MATH_AVX512_H
#define HN_MATH_AVX512_H
#include <immintrin.h>

#include "ops/exp_poly.h"
#include "ops/unroll.h"

/* e^x = (1 + result) * 2^*k_out. */
HN_INLINE __m512 hn_exp_parts_avx512(__m512 x, __m512 *k_out) {
    /* min and max return their second operand for NaN, so that it stays NaN to the end */
    x = _mm512_min_ps(_mm512_set1_ps(HN_EXP_HI), _mm512_max_ps(_mm512_set1_ps(HN_EXP_LO), x));
    const __m512 k = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(HN_EXP_LOG2E)),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(k, _mm512_set1_ps(HN_EXP_LN2_HI), x);
    r = _mm512_fnmadd_ps(k, _mm512_set1_ps(HN_EXP_LN2_LO), r);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(HN_EXP_P4), r, _mm512_set1_ps(HN_EXP_P3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(HN_EXP_P2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(HN_EXP_P1));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(HN_EXP_P0));
    *k_out = k;
    return _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
}

HN_INLINE __m512 hn_exp_avx512(__m512 x) {
    __m512 k, q = hn_exp_parts_avx512(x, &k);
    return _mm512_scalef_ps(_mm512_add_ps(_mm512_set1_ps(1.0f), q), k);
}

HN_INLINE __m512 hn_tanh_avx512(__m512 t) {
    __m512 k, q = hn_exp_parts_avx512(_mm512_add_ps(t, t), &k);
    const __m512 one = _mm512_set1_ps(1.0f), power = _mm512_scalef_ps(one, k);
    const __m512 m = _mm512_fmadd_ps(q, power, _mm512_sub_ps(power, one));
    return _mm512_div_ps(m, _mm512_add_ps(m, _mm512_set1_ps(2.0f)));
}

/* e^x for x <= 0, with the accuracy that bf16 needs: exp_bf16 of ref/attention_ref.c. */
HN_INLINE __m512 hn_exp_bf16_avx512(__m512 x) {
    const __m512 t = _mm512_max_ps(_mm512_set1_ps(HN_EXP2_LO), _mm512_mul_ps(x, _mm512_set1_ps(HN_EXP_LOG2E)));
    const __m512 k = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), f = _mm512_sub_ps(t, k);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(HN_EXP2_P2), f, _mm512_set1_ps(HN_EXP2_P1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(HN_EXP2_P0));
    return _mm512_scalef_ps(_mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f)), k);
}

/* Rounded to bf16, in the low half of each lane; NaN stays NaN. */
HN_INLINE __m512i hn_bf16_avx512(__m512 v) {
    const __m512i u = _mm512_castps_si512(v), high = _mm512_srli_epi32(u, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i r = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_mask_or_epi32(_mm512_srli_epi32(r, 16), _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), high,
                                _mm512_set1_epi32(0x40));
}

/* The tree of ref/norm.c: halves are added, 8, 4, 2, 1. */
HN_INLINE float hn_sum_avx512(__m512 v) {
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
#endif
