/* SPDX-License-Identifier: Apache-2.0 */
/* dots_avxvnni.c - the most that the dot products of bytes give in their VEX form, all operands in registers (machine.h). */
#include <immintrin.h>

#include "ops/machine.h"
#include "ops/unroll.h"

double hn_dots_int8_avxvnni(int rounds) {
    enum { SUMS = 12 };
    const __m256i x = _mm256_set1_epi8(1);
    __m256i sum[SUMS];
    HN_UNROLL for (int i = 0; i < SUMS; i++) {
        sum[i] = _mm256_setzero_si256();
        __asm__("" : "+x"(sum[i])); /* each a sum of its own */
    }
    for (int r = 0; r < rounds; r++) {
        HN_UNROLL for (int i = 0; i < SUMS; i++) sum[i] = _mm256_dpbusd_avx_epi32(sum[i], x, x);
    }
    HN_UNROLL for (int i = 0; i < SUMS; i++) __asm__ volatile("" : : "x"(sum[i])); /* and of use */
    return 32.0 * SUMS * rounds;
}
