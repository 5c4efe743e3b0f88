/* SPDX-License-Identifier: Apache-2.0 */
/* peak_dots_tmpl.h - peak rate of an instruction for dot products, all operands in registers (machine.h). Included by a
 * file of one level, which defines
 *   PEAK_DOTS      the name of the function
 *   PEAK_SUM       type of a sum, PEAK_ZERO an empty one, PEAK_X an operand
 *   PEAK_ADD(s, x) the instruction
 *   PEAK_MACS      multiply-accumulates of one
 *   PEAK_SUMS      sums at once, at most 16: enough to hide its latency and leave a register for the operand
 *   PEAK_REGISTER  the constraint letter of a vector register */
#include "ops/machine.h"
#include "ops/unroll.h"

double PEAK_DOTS(int rounds) {
    const __typeof__(PEAK_X) x = PEAK_X;
    PEAK_SUM sum[PEAK_SUMS];
    HN_UNROLL for (int i = 0; i < PEAK_SUMS; i++) {
        sum[i] = PEAK_ZERO;
        __asm__("" : "+" PEAK_REGISTER(sum[i])); /* keeps each sum separate */
    }
    for (int r = 0; r < rounds; r++) {
        HN_UNROLL for (int i = 0; i < PEAK_SUMS; i++) sum[i] = PEAK_ADD(sum[i], x);
    }
    HN_UNROLL for (int i = 0; i < PEAK_SUMS; i++) __asm__ volatile("" : : PEAK_REGISTER(sum[i])); /* and used */
    return (double)PEAK_MACS * PEAK_SUMS * rounds;
}
