/* SPDX-License-Identifier: Apache-2.0 */
/* dots_neon.h - integer sums by dot products of four bytes: a line of codes times four activations of a row, by lane.
 *
 * A code line holds for each output four inputs next to each other, which is what sdot takes. Unsigned codes are below
 * 128, so that signed products work; their offset is subtracted by the initial value of the sums, minus the offset
 * times the row's sum. 8-bit codes do not fit: a level with products of unsigned by signed bytes uses these, others
 * convert them to signed. Used by linear_tiles_neon.h at every ARM level.
 */
#ifndef HN_DOTS_NEON_H
#define HN_DOTS_NEON_H
#include "ops/act.h"
#include "ops/arm/weights_neon.h"

#ifdef __ARM_FEATURE_MATMUL_INT8
enum { HN_MIXED_SIGNS = true };
#else
enum { HN_MIXED_SIGNS = false };
#endif
/* Whether codes are multiplied as unsigned bytes. */
HN_INLINE bool hn_unsigned_neon(const hn_dtype t) { return hn_types[t].low == 8 && HN_MIXED_SIGNS; }

/* Minus the offset of the multiplied codes times the sum of a row's block; in types with parts, of part p. */
HN_INLINE int32_t hn_start_neon(const hn_dtype t, const hn_q8_group *x, const hn_q8_parts *parts, const int odd, const int p) {
    switch (hn_offset_neon(t)) {
    case 4: return parts->n4[2 * odd + p];
    case 8: return x->n8[odd];
    case 16: return 2 * x->n8[odd];
    case 32: return parts->n32[2 * odd + p];
    case 128: return hn_unsigned_neon(t) ? x->n128[odd] : 0;
    default: return 0;
    }
}

/* sum + line x[lane]. The lane is a constant; clang requires a literal. */
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
    const int8x16_t w = vreinterpretq_s8_u8(hn_types[t].low == 8 ? veorq_u8(line, vdupq_n_u8(128)) : line);
    switch (lane) {
    case 0: return vdotq_laneq_s32(sum, w, x, 0);
    case 1: return vdotq_laneq_s32(sum, w, x, 1);
    case 2: return vdotq_laneq_s32(sum, w, x, 2);
    default: return vdotq_laneq_s32(sum, w, x, 3);
    }
}

/* sum[step * i] + part p of a block's quarter times row i, whose codes of the block are at x[i]. */
HN_INLINE void hn_dots_neon(const hn_dtype t, const int T, const unsigned char *codes, const int p, const int8_t *const *x,
                            const int step, int32x4_t *sum) {
    HN_UNROLL for (int r = 0; r < 4; r++) {
        const uint8x16_t line = hn_line_neon(t, codes, 4 * p + r);
        HN_UNROLL for (int i = 0; i < T; i++) {
            sum[step * i] = hn_dot_neon(t, sum[step * i], line, vld1q_s8(x[i] + HN_PART * p), r);
        }
    }
}
#endif
