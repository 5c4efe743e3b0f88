/* SPDX-License-Identifier: Apache-2.0 */
/* dots_i8mm.c - the most that products of 2 x 8 by 8 x 2 bytes give, all operands in registers (machine.h). */
#include <arm_neon.h>

#include "ops/machine.h"

double hn_dots_int8_i8mm(int rounds) {
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
        for (int i = 0; i < SUMS; i++) sum[i] = vmmlaq_s32(sum[i], x, x);
    }
#pragma GCC unroll 16
    for (int i = 0; i < SUMS; i++) __asm__ volatile("" : : "w"(sum[i])); /* and of use */
    return 32.0 * SUMS * rounds;
}
