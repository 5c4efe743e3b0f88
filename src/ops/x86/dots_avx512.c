/* SPDX-License-Identifier: Apache-2.0 */
/* dots_avx512.c - the most that the dot products of bytes give, all operands in registers (machine.h). */
#include <immintrin.h>

#include "ops/machine.h"
#include "ops/unroll.h"

double hn_dots_int8_avx512(int rounds) {
    enum { SUMS = 16 };
    const __m512i x = _mm512_set1_epi8(1);
    __m512i sum[SUMS];
    HN_UNROLL for (int i = 0; i < SUMS; i++) {
        sum[i] = _mm512_setzero_si512();
        __asm__("" : "+v"(sum[i])); /* each a sum of its own */
    }
    for (int r = 0; r < rounds; r++) {
        HN_UNROLL for (int i = 0; i < SUMS; i++) sum[i] = _mm512_dpbusd_epi32(sum[i], x, x);
    }
    HN_UNROLL for (int i = 0; i < SUMS; i++) __asm__ volatile("" : : "v"(sum[i])); /* and of use */
    return 64.0 * SUMS * rounds;
}
