/* SPDX-License-Identifier: Apache-2.0 */
/* linear_i8mm.c - matrix products of block types with quantised rows by matrix instructions of bytes: two outputs by two
 * rows, eight inputs of each. Results: ref/linear_ref.c, bit for bit. Everything else of the level is dotprod's.
 *
 * smmla needs eight adjacent inputs of an output; a line of a strip has four. Two lines are interleaved in registers
 * before their codes are unpacked: one instruction per stored vector, so half or less per vector of codes. Two rows
 * would not be faster; they, and an odd number of rows, use products of four bytes (dots_neon.h).
 */
#include "ops/arm/dots_neon.h"

/* Four outputs of two lines: outputs 0 and 1 of both, then 2 and 3. */
HN_INLINE uint8x16x2_t interleave(uint8x16_t a, uint8x16_t b) {
    const uint32x4_t x = vreinterpretq_u32_u8(a), y = vreinterpretq_u32_u8(b);
    return (uint8x16x2_t){{vreinterpretq_u8_u32(vzip1q_u32(x, y)), vreinterpretq_u8_u32(vzip2q_u32(x, y))}};
}

/* The stored lines of code lines r and r + 1 (r even) of a piece of `bits` bits. A line of single bits is interleaved
 * with itself, shifted so that the bits of both code lines are in the same position. */
HN_INLINE uint8x16x2_t stored_pair(const unsigned char *lines, const int bits, const int r) {
    const uint8x16_t first = hn_stored_neon(lines, bits, r);
    return interleave(first, bits > 1 ? hn_stored_neon(lines, bits, r + 1) : first >> 1);
}

/* A quarter of code lines r and r + 1 (r even): eight codes (or levels) of outputs 0 and 1, of 2 and 3. */
HN_INLINE uint8x16x2_t line_pair(const hn_dtype t, const unsigned char *codes, const int r) {
    const hn_layout l = hn_layout_of(t);
    const uint8x16x2_t low = stored_pair(codes, l.low, r);
    const uint8x16x2_t high = l.high ? stored_pair(codes + 64 * l.low, l.high, r) : low;
    uint8x16x2_t v;
    HN_UNROLL for (int h = 0; h < 2; h++) v.val[h] = hn_levels_neon(t, hn_code_neon(t, low.val[h], high.val[h], r));
    return v;
}

/* Two outputs of a line pair times two rows. */
HN_INLINE int32x4_t multiply(const hn_dtype t, int32x4_t sum, uint8x16_t line, int8x16_t x) {
    if (hn_unsigned_neon(t)) return vusmmlaq_s32(sum, line, x);
    return vmmlaq_s32(sum, vreinterpretq_s8_u8(line), x);
}

/* sum[step * i + h] + part p of a block's quarter times pair i. */
HN_INLINE void pairs(const hn_dtype t, const int P, const unsigned char *codes, const int p, const int8_t *const *x,
                     const int step, int32x4_t *sum) {
    HN_UNROLL for (int r = 0; r < 2; r++) {
        const uint8x16x2_t line = line_pair(t, codes, 4 * p + 2 * r);
        HN_UNROLL for (int i = 0; i < P; i++) {
            const int8x16_t both = vld1q_s8(x[i] + HN_PART * (2 * p + r));
            HN_UNROLL for (int h = 0; h < 2; h++) sum[step * i + h] = multiply(t, sum[step * i + h], line.val[h], both);
        }
    }
}

#define BY_PAIRS(T) ((T) > 2 && (T) % 2 == 0)
#define PAIRS pairs
#include "ops/arm/linear_tiles_neon.h"

#define LINEAR_TABLE hn_kernels_i8mm_linear
#define LINEAR_ONLY_Q8
#include "ops/linear_table_tmpl.h"
