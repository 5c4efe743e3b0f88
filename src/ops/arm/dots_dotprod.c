/* SPDX-License-Identifier: Apache-2.0 */
/* dots_dotprod.c - the most that dot products of bytes give, all operands in registers (machine.h). */
#include <arm_neon.h>

#include "ops/machine.h"

double hn_dots_int8_dotprod(int rounds) {
    enum { SUMS = 16 };
    const int8x16_t x = vdupq_n_s8(1);
    int32x4_t sum[SUMS];
#pragma GCC unroll 16
    for (int i = 0; i < SUMS; i++) {
        sum[i] = vdupq_n_s32(0);
        __asm__("" : "+w"(sum[i])); /* each a sum of its own */
    }
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 16
        for (int i = 0; i < SUMS; i++) sum[i] = vdotq_s32(sum[i], x, x);
    }
#pragma GCC unroll 16
    for (int i = 0; i < SUMS; i++) __asm__ volatile("" : : "w"(sum[i])); /* and of use */
    return 16.0 * SUMS * rounds;
}
