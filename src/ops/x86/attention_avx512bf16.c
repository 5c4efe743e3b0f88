/* SPDX-License-Identifier: Apache-2.0 */
/* attention_avx512bf16.c - attention over a BF16 cache with the instruction that multiplies pairs of bf16. */
#include <immintrin.h>
#include <string.h>

#include "ops/unroll.h"

#define SCORE_CHUNKS 4
#define VALUE_VECTORS 4

typedef __m512bh pairs;

HN_INLINE pairs of_line(__m512i line) { return (pairs)line; }

HN_INLINE pairs of_one(const void *pair) {
    int bits;
    memcpy(&bits, pair, sizeof bits);
    return (pairs)_mm512_set1_epi32(bits);
}

HN_INLINE __m512 add_pairs(__m512 sum, pairs x, pairs y) { return _mm512_dpbf16_ps(sum, y, x); }

HN_INLINE __m256i round_16(__m512 v) { return (__m256i)_mm512_cvtneps_pbh(v); }

#include "ops/x86/attention_bf16_tmpl.h"

static void round_bf16(const float *x, int count, uint16_t *y) {
    for (int i = 0; i < count; i += 16) {
        const int left = count - i, kept = (left + 1) / 2 * 2; /* an odd row is padded with zero */
        const __mmask16 from = left < 16 ? (__mmask16)((1u << left) - 1) : 0xffff;
        const __mmask16 to = kept < 16 ? (__mmask16)((1u << kept) - 1) : 0xffff;
        _mm256_mask_storeu_epi16(y + i, to, round_16(_mm512_maskz_loadu_ps(from, x + i)));
    }
}

void hn_kernels_avx512bf16_attention(struct hn_kernels *k) {
    k->round_bf16 = round_bf16;
    k->scores_bf16 = scores;
    k->softmax_bf16 = softmax;
    k->values_bf16 = values;
    k->value_rows = VALUE_ROWS;
}
