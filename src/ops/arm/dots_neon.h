/* SPDX-License-Identifier: Apache-2.0 */
/* dots_neon.h - integer sums of a block by dot products of four bytes: a line of codes times four activations by lane.
 *
 * A code line holds for each output four inputs next to each other, which is what sdot takes. Unsigned codes are below
 * 128, so that signed products do; their offset is undone by where the sums start, minus the offset times the row's sum.
 * Only 8-bit codes do not fit: where a level has products of unsigned by signed bytes they take those, else they are
 * made signed. Used by linear_tiles_neon.h at every ARM level.
 */
#ifndef HN_DOTS_NEON_H
#define HN_DOTS_NEON_H
#include "ops/act.h"
#include "ops/arm/weights_neon.h"

enum { HN_TILE_ROWS = 8 }; /* most rows a tile */

/* Where a tile of rows is: the groups of each, and their parts. */
typedef struct hn_tile_rows {
    const hn_q8_group *x[HN_TILE_ROWS];
    const hn_q8_parts *parts[HN_TILE_ROWS];
} hn_tile_rows;

#ifdef __ARM_FEATURE_MATMUL_INT8
enum { HN_MIXED_SIGNS = true };
#else
enum { HN_MIXED_SIGNS = false };
#endif
/* Whether codes are multiplied as unsigned bytes. */
HN_INLINE bool hn_unsigned_neon(const hn_dtype t) { return t == HN_Q8_0 && HN_MIXED_SIGNS; }

/* Minus the offset of what is multiplied, times the sum of a row's block; of types with parts, of part p. */
HN_INLINE int32_t hn_start_neon(const hn_dtype t, const hn_q8_group *x, const hn_q8_parts *parts, const int odd, const int p) {
    switch (t) {
    case HN_Q4_0: return x->n8[odd];
    case HN_Q5_0: return 2 * x->n8[odd];
    case HN_Q8_0: return hn_unsigned_neon(t) ? x->n128[odd] : 0;
    case HN_Q3_K: return parts->n4[2 * odd + p];
    case HN_Q6_K: return parts->n32[2 * odd + p];
    default: return 0;
    }
}

HN_INLINE int8x16_t hn_signed_neon(const hn_dtype t, uint8x16_t codes) {
    const bool flip = t == HN_Q8_0 && !hn_unsigned_neon(t);
    return vreinterpretq_s8_u8(flip ? veorq_u8(codes, vdupq_n_u8(128)) : codes);
}

/* The lane is a constant; clang wants to see it as one. */
HN_INLINE int32x4_t hn_dot_neon(const hn_dtype t, int32x4_t sum, uint8x16_t line, int8x16_t x, const int lane) {
#ifdef __ARM_FEATURE_MATMUL_INT8
    if (hn_unsigned_neon(t)) {
        switch (lane) {
        case 0: return vusdotq_laneq_s32(sum, line, x, 0);
        case 1: return vusdotq_laneq_s32(sum, line, x, 1);
        case 2: return vusdotq_laneq_s32(sum, line, x, 2);
        default: return vusdotq_laneq_s32(sum, line, x, 3);
        }
    }
#endif
    const int8x16_t w = hn_signed_neon(t, line);
    switch (lane) {
    case 0: return vdotq_laneq_s32(sum, w, x, 0);
    case 1: return vdotq_laneq_s32(sum, w, x, 1);
    case 2: return vdotq_laneq_s32(sum, w, x, 2);
    default: return vdotq_laneq_s32(sum, w, x, 3);
    }
}

/* sum[T][Q]: integer sums of block b for T rows and Q quarters from j on; of types with parts times their scales. */
HN_INLINE void hn_block_dots_neon(const hn_dtype t, const int T, const int Q, const int j, const unsigned char *super, int b,
                                  const int odd, const hn_tile_rows *rows, int32x4_t *sum) {
    const unsigned char *codes = hn_codes_neon(t, super, b, j);
    const int scaled = hn_has_parts(t) ? Q : 0; /* quarters whose parts have scales: all or none */
    int32x4_t part[4 * HN_TILE_ROWS];
    HN_UNROLL for (int p = 0; p < 2; p++) {
        int8x16_t x[HN_TILE_ROWS];
        HN_UNROLL for (int i = 0; i < T; i++) {
            x[i] = vld1q_s8(rows->x[i]->q + HN_BLOCK * odd + HN_PART * p);
            if (p == 1 && !hn_has_parts(t)) continue;
            const int32x4_t start = vdupq_n_s32(hn_start_neon(t, rows->x[i], rows->parts[i], odd, p));
            HN_UNROLL for (int k = 0; k < Q; k++) part[Q * i + k] = start;
        }
        HN_UNROLL for (int r = 0; r < 4; r++) {
            HN_UNROLL for (int k = 0; k < Q; k++) {
                const uint8x16_t line = hn_line_neon(t, codes + 16 * k, 4 * p + r);
                HN_UNROLL for (int i = 0; i < T; i++) part[Q * i + k] = hn_dot_neon(t, part[Q * i + k], line, x[i], r);
            }
        }
        HN_UNROLL for (int k = 0; k < scaled; k++) {
            const int32x4_t s = hn_part_scale_neon(t, super, b, odd, p, j + k);
            HN_UNROLL for (int i = 0; i < T; i++) {
                const int at = Q * i + k;
                sum[at] = p ? vmlaq_s32(sum[at], part[at], s) : vmulq_s32(part[at], s);
            }
        }
    }
    HN_UNROLL for (int i = 0; i < T * (Q - scaled); i++) sum[i] = part[i];
}
#endif
