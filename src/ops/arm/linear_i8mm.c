/* SPDX-License-Identifier: Apache-2.0 */
/* linear_i8mm.c - matrix products of block types with quantised rows by matrix instructions of bytes: two outputs by two
 * rows, eight inputs of each. Results: ref/linear_ref.c, bit for bit.
 *
 * smmla wants eight inputs of an output next to each other; a line of a strip has four. Two lines are woven together in
 * registers, before their codes are unpacked: an instruction for a stored vector, so half or fewer for a vector of
 * codes. Fewer than four rows are products of four bytes (dots_neon.h), where weaving would cost what it gains; so are five.
 * Everything else of the level is dotprod's.
 */
#include "ops/arm/dots_neon.h"

/* Codes 4r .. 4r+7 (r even) of a piece, of outputs 0 and 1 of a quarter and of 2 and 3. */
HN_INLINE uint8x16x2_t weave(uint8x16_t a, uint8x16_t b) {
    const uint32x4_t x = vreinterpretq_u32_u8(a), y = vreinterpretq_u32_u8(b);
    return (uint8x16x2_t){{vreinterpretq_u8_u32(vzip1q_u32(x, y)), vreinterpretq_u8_u32(vzip2q_u32(x, y))}};
}

/* The piece of `bits` bits of code lines r and r + 1 (r even) at `to`. A stored line of single bits is woven with itself,
 * moved so that the bits of both lines come to one place. */
HN_INLINE uint8x16x2_t piece_pair(const unsigned char *lines, const int bits, const int r, const int to) {
    const uint8x16_t first = vld1q_u8(lines + 64 * (r % bits));
    uint8x16x2_t v = weave(first, bits > 1 ? vld1q_u8(lines + 64 * (r % bits + 1)) : first >> 1);
    HN_UNROLL for (int i = 0; i < 2; i++) v.val[i] = hn_bits_neon(v.val[i], bits * (r / bits), bits, to);
    return v;
}

/* A quarter of code lines r and r + 1 (r even): eight codes (or levels) of outputs 0 and 1, of 2 and 3. */
HN_INLINE uint8x16x2_t line_pair(const hn_dtype t, const unsigned char *codes, const int r) {
    const hn_layout l = hn_layout_of(t);
    uint8x16x2_t v = piece_pair(codes, l.low, r, 0);
    if (l.high) {
        const uint8x16x2_t high = piece_pair(codes + 64 * l.low, l.high, r, l.low);
        HN_UNROLL for (int i = 0; i < 2; i++) v.val[i] = vorrq_u8(v.val[i], high.val[i]);
    }
    HN_UNROLL for (int i = 0; i < 2; i++) v.val[i] = hn_levels_neon(t, v.val[i]);
    return v;
}

/* sum[2o + r] + two outputs of a line pair times two rows. */
HN_INLINE int32x4_t multiply(const hn_dtype t, int32x4_t sum, uint8x16_t line, int8x16_t rows) {
    if (hn_unsigned_neon(t)) return vusmmlaq_s32(sum, line, rows);
    return vmmlaq_s32(sum, vreinterpretq_s8_u8(line), rows);
}

/* Part p of a block for Q quarters and P pairs of rows: part[P][Q][2]. An odd last row is paired with itself. */
HN_INLINE void part_pairs(const hn_dtype t, const int T, const int Q, const unsigned char *codes, const int odd, const int p,
                          const hn_tile_rows *rows, int32x4_t *part) {
    int8x16_t x[HN_TILE_ROWS]; /* [pair][half of the part] */
    HN_UNROLL for (int i = 0; i < T; i += 2) {
        const int other = i + 1 < T ? i + 1 : i, at = HN_BLOCK * odd + HN_PART * p;
        const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(rows->x[i]->q + at));
        const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(rows->x[other]->q + at));
        x[i] = vreinterpretq_s8_s64(vzip1q_s64(a, b));
        x[i + 1] = vreinterpretq_s8_s64(vzip2q_s64(a, b));
        if (p == 1 && !hn_has_parts(t)) continue;
        const int32_t start[2] = {hn_start_neon(t, rows->x[i], rows->parts[i], odd, p),
                                  hn_start_neon(t, rows->x[other], rows->parts[other], odd, p)};
        const int32x2_t both = vld1_s32(start);
        HN_UNROLL for (int k = 0; k < 2 * Q; k++) part[Q * i + k] = vcombine_s32(both, both);
    }
    HN_UNROLL for (int r = 0; r < 2; r++) {
        HN_UNROLL for (int k = 0; k < Q; k++) {
            const uint8x16x2_t line = line_pair(t, codes + 16 * k, 4 * p + 2 * r);
            HN_UNROLL for (int i = 0; i < T; i += 2) {
                int32x4_t *at = part + Q * i + 2 * k;
                HN_UNROLL for (int h = 0; h < 2; h++) at[h] = multiply(t, at[h], line.val[h], x[i + r]);
            }
        }
    }
}

/* hn_block_dots_neon by pairs of rows. */
HN_INLINE void block_pairs(const hn_dtype t, const int T, const int Q, const int j, const unsigned char *super, int b,
                           const int odd, const hn_tile_rows *rows, int32x4_t *sum) {
    int32x4_t part[4 * HN_TILE_ROWS];
    HN_UNROLL for (int p = 0; p < 2; p++) {
        part_pairs(t, T, Q, hn_codes_neon(t, super, b, j), odd, p, rows, part);
        if (p == 0 && !hn_has_parts(t)) continue;
        HN_UNROLL for (int k = 0; k < Q; k++) {
            const int32x4_t s = hn_has_parts(t) ? hn_part_scale_neon(t, super, b, odd, p, j + k) : vdupq_n_s32(1);
            HN_UNROLL for (int i = 0; i < T; i++) { /* of two outputs and rows each: those of one row */
                const int32x4_t *at = part + Q * (i - i % 2) + 2 * k;
                const int32x4_t row = i % 2 ? vuzp2q_s32(at[0], at[1]) : vuzp1q_s32(at[0], at[1]);
                int32x4_t *to = &sum[Q * i + k];
                *to = !hn_has_parts(t) ? row : p ? vmlaq_s32(*to, row, s) : vmulq_s32(row, s);
            }
        }
    }
}

HN_INLINE void block_sums(const hn_dtype t, const int T, const int Q, const int j, const unsigned char *super, int b,
                          const int odd, const hn_tile_rows *rows, int32x4_t *sum) {
    if (T == 4 || T > 5) {
        block_pairs(t, T, Q, j, super, b, odd, rows, sum);
    } else {
        hn_block_dots_neon(t, T, Q, j, super, b, odd, rows, sum);
    }
}

#define BLOCK_SUMS block_sums
#include "ops/arm/linear_tiles_neon.h"

void hn_kernels_i8mm_linear(struct hn_kernels *k) {
#define ENTER(type) k->linear_q8[HN_##type] = strips_q8_##type;
    HN_BLOCK_TYPES(ENTER)
}
