/* SPDX-License-Identifier: Apache-2.0 */
/* attention_bf16_avx512.c - attention over a BF16 cache with AVX-512 without an instruction for pairs: two fmas are used. */
#include <immintrin.h>
#include <string.h>

#include "ops/x86/math_avx512.h"
#include "ops/unroll.h"

#define SCORE_CHUNKS 2
#define VALUE_VECTORS 2

typedef struct pairs {
    __m512 first, second;
} pairs;

HN_INLINE pairs of_line(__m512i line) {
    return (pairs){_mm512_castsi512_ps(_mm512_slli_epi32(line, 16)),
                   _mm512_castsi512_ps(_mm512_and_si512(line, _mm512_set1_epi32((int)0xffff0000)))};
}

HN_INLINE pairs of_one(const void *pair) {
    int bits;
    memcpy(&bits, pair, sizeof bits);
    return of_line(_mm512_set1_epi32(bits));
}

HN_INLINE __m512 add_pairs(__m512 sum, pairs x, pairs y) {
    return _mm512_fmadd_ps(x.first, y.first, _mm512_fmadd_ps(x.second, y.second, sum));
}

HN_INLINE __m256i round_16(__m512 v) {
    const __mmask16 small = _mm512_cmp_ps_mask(_mm512_abs_ps(v), _mm512_set1_ps(0x1p-126f), _CMP_LT_OQ);
    const __m512i sign = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32((int)0x80000000));
    return _mm512_cvtepi32_epi16(_mm512_mask_srli_epi32(hn_bf16_avx512(v), small, sign, 16));
}

#include "ops/x86/attention_bf16_tmpl.h"

void hn_kernels_avx512_attention_bf16(struct hn_kernels *k) {
    k->scores_bf16 = scores;
    k->softmax_bf16 = softmax;
    k->values_bf16 = values;
}
