/* SPDX-License-Identifier: Apache-2.0 */
/* dots_avx512bf16.c - the most that the dot products of bf16 pairs give, all operands in registers (machine.h). */
#include <immintrin.h>

#include "ops/machine.h"
#include "ops/unroll.h"

double hn_dots_bf16_avx512bf16(int rounds) {
    enum { SUMS = 16 };
    const __m512bh x = (__m512bh)_mm512_setzero_si512();
    __m512 sum[SUMS];
    HN_UNROLL for (int i = 0; i < SUMS; i++) {
        sum[i] = _mm512_setzero_ps();
        __asm__("" : "+v"(sum[i])); /* each a sum of its own */
    }
    for (int r = 0; r < rounds; r++) {
        HN_UNROLL for (int i = 0; i < SUMS; i++) sum[i] = _mm512_dpbf16_ps(sum[i], x, x);
    }
    HN_UNROLL for (int i = 0; i < SUMS; i++) __asm__ volatile("" : : "v"(sum[i])); /* and of use */
    return 32.0 * SUMS * rounds;
}
