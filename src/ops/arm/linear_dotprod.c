/* SPDX-License-Identifier: Apache-2.0 */
/* linear_dotprod.c - matrix products with NEON and dot products of bytes. Results: ref/linear_ref.c, bit for bit.
 *
 * Products with float rows and the epilogues of every ARM level; those with quantised rows are in linear_tiles_neon.h,
 * here with sdot. A lane is an output; the 16 outputs of a strip are four registers (quarters).
 */
#include <math.h>
#include <string.h>

#define BY_PAIRS(T) false
#define PAIRS(...) ((void)0)
#include "ops/arm/linear_tiles_neon.h"

/* ---- float rows: widening ------------------------------------------------------------------------------------------ */

/* Block b of a superblock (odd: b % 2) as f32, [32][16] at dst. */
HN_INLINE void widen_block(const hn_dtype t, const unsigned char *super, int b, const int odd, float *dst) {
    HN_UNROLL for (int j = 0; j < 4; j++, dst += 4) {
        const unsigned char *codes = hn_codes_neon(t, super, b, j);
        const float32x4_t scale = hn_block_scale_neon(t, super, b, odd, j);
        const float32x4_t least = hn_has_minimum(t) ? hn_block_minimum_neon(t, super, b, odd, j) : scale;
        HN_UNROLL for (int r = 0; r < 8; r++) {
            float32x4_t d = scale, m = least;
            if (hn_has_parts(t)) d = vmulq_f32(d, vcvtq_f32_s32(hn_part_scale_neon(t, super, b, odd, r / 4, j)));
            if (hn_has_part_minimums(t)) m = vmulq_f32(m, vcvtq_f32_s32(hn_part_minimum_neon(super, b, r / 4, j)));
            const uint8x16_t offset = vdupq_n_u8((unsigned char)hn_offset_neon(t));
            const int32x4_t line = vreinterpretq_s32_u8(vsubq_u8(hn_line_neon(t, codes, r), offset));
            HN_UNROLL for (int i = 0; i < 4; i++) {
                float32x4_t w = vmulq_f32(d, vcvtq_f32_s32((line << (24 - 8 * i)) >> 24));
                if (hn_adds_minimum(t)) w = vaddq_f32(w, m);
                if (hn_takes_minimum(t)) w = vsubq_f32(w, m);
                vst1q_f32(dst + (4 * r + i) * HN_STRIP, w);
            }
        }
    }
}

/* A group, whose first block is block b of the superblock. */
#define WIDEN(type, ...)                                                                                              \
    static __attribute__((noinline)) void widen_##type(const unsigned char *super, int b, float *dst) {               \
        HN_UNROLL for (int k = 0; k < 2; k++) widen_block(HN_##type, super, b + k, k, dst + HN_BLOCK * HN_STRIP * k); \
    }
HN_BLOCK_TYPES(WIDEN)

static void widen_blocks(hn_dtype t, const unsigned char *strip, int k, float *dst) {
#define WIDENS(type, ...) [HN_##type] = widen_##type,
    static void (*const by_type[HN_WEIGHT_TYPES])(const unsigned char *, int, float *) = {HN_BLOCK_TYPES(WIDENS)};
    const hn_layout l = hn_layout_of(t);
    by_type[t](strip + hn_super_bytes(l) * (size_t)(k / l.inputs), k % l.inputs / HN_BLOCK, dst);
}

/* F8_E4M3: a code's exponent and fraction, shifted to their bits in f32, give 2^-120 of its value, also for subnormal codes. */
static void widen_f8(const unsigned char *src, int count, float factor, float *dst) {
    const int32x4_t top = vdupq_n_s32(0x07f00000), nan = vdupq_n_s32(0x7fc00000);
    for (int i = 0; i < count; i++, src += HN_STRIP, dst += HN_STRIP) {
        HN_UNROLL for (int j = 0; j < 4; j++) {
            const int32x4_t v = vandq_s32(vshlq_n_s32(hn_s8_neon(src + 4 * j), 20), vdupq_n_s32((int)0x87f00000));
            const uint32x4_t is_nan = vceqq_s32(vandq_s32(v, top), top);
            const float32x4_t scaled = vreinterpretq_f32_s32(vbslq_s32(is_nan, nan, v));
            vst1q_f32(dst + 4 * j, vmulq_f32(vmulq_f32(scaled, vdupq_n_f32(0x1p120f)), vdupq_n_f32(factor)));
        }
    }
}

static void widen_f16(const unsigned char *src, int count, float *dst) {
    for (int i = 0; i < count * HN_STRIP; i += 4) vst1q_f32(dst + i, hn_halves_neon(src + 2 * i));
}

/* BF16, whole pairs of inputs; swap 1: the second input of each pair first. */
static void widen_pairs(const unsigned char *src, int count, int swap, float *dst) {
    for (int i = 0; i < (count + 1) / 2; i++, dst += 2 * HN_STRIP) {
        HN_UNROLL for (int j = 0; j < HN_STRIP; j += 4, src += 16) {
            const uint32x4_t both = vreinterpretq_u32_u8(vld1q_u8(src));
            vst1q_f32(dst + HN_STRIP * swap + j, vreinterpretq_f32_u32(vshlq_n_u32(both, 16)));
            vst1q_f32(dst + HN_STRIP * !swap + j, vreinterpretq_f32_u32(vandq_u32(both, vdupq_n_u32(0xffff0000))));
        }
    }
}

/* Inputs [k, k + count) of a strip as f32 [count][16]; k a multiple of 64. Scratch holds a group. */
static const float *widen(hn_dtype t, int in, const unsigned char *strip, int k, int count, float *scratch) {
    const size_t at = (size_t)k * HN_STRIP;
    switch (t) {
    case HN_F32: return (const float *)strip + at;
    case HN_F16: widen_f16(strip + 2 * at, count, scratch); break;
    case HN_BF16: widen_pairs(strip + 2 * at, count, 0, scratch); break;
    case HN_F8_E4M3:
        widen_f8(strip + hn_f8_head(in) + at, count, ((const float *)strip)[k / HN_F8_TILE], scratch);
        break;
    default: widen_blocks(t, strip, k, scratch);
    }
    return scratch;
}

/* ---- float rows: products ------------------------------------------------------------------------------------------- */

enum { FLOAT_ROWS = 6, FLOAT_SUMS = 24 }; /* most rows of a tile; registers of sums: 4 a row and strip */

/* c[S][T] continued with `count` inputs of S widened strips and T rows. */
HN_INLINE void tile_f32(const int T, const int S, const float *const *w, const float *x, size_t x_stride, int count,
                        float *c, size_t c_stride) {
    float32x4_t acc[FLOAT_SUMS];
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int i = 0; i < 4 * T; i++) acc[4 * T * s + i] = vld1q_f32(c + c_stride * (size_t)s + 4 * i);
    }
    for (int k = 0; k < count; k++) {
        HN_UNROLL for (int s = 0; s < S; s++) {
            float32x4_t v[4];
            HN_UNROLL for (int j = 0; j < 4; j++) v[j] = vld1q_f32(w[s] + HN_STRIP * k + 4 * j);
            HN_UNROLL for (int i = 0; i < T; i++) {
                const float32x4_t a = vdupq_n_f32(x[x_stride * (size_t)i + (size_t)k]);
                float32x4_t *sum = acc + 4 * (s * T + i);
                HN_UNROLL for (int j = 0; j < 4; j++) sum[j] = vfmaq_f32(sum[j], v[j], a);
            }
        }
    }
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int i = 0; i < 4 * T; i++) vst1q_f32(c + c_stride * (size_t)s + 4 * i, acc[4 * T * s + i]);
    }
}

typedef void float_fn(const float *const *w, const float *x, size_t x_stride, int count, float *c, size_t c_stride);
#define FLOAT_TILE(T, S)                                                                                              \
    static __attribute__((noinline)) void float_##T##x##S(const float *const *w, const float *x, size_t x_stride,     \
                                                          int count, float *c, size_t c_stride) {                     \
        tile_f32(T, S, w, x, x_stride, count, c, c_stride);                                                           \
    }
FLOAT_TILE(1, 1)
FLOAT_TILE(2, 1)
FLOAT_TILE(3, 1)
FLOAT_TILE(4, 1)
FLOAT_TILE(5, 1)
FLOAT_TILE(6, 1)
FLOAT_TILE(1, 2)
FLOAT_TILE(2, 2)
FLOAT_TILE(3, 2)
FLOAT_TILE(1, 4)
static float_fn *const float_tiles[3][FLOAT_ROWS + 1] = {
    {NULL, float_1x1, float_2x1, float_3x1, float_4x1, float_5x1, float_6x1},
    {NULL, float_1x2, float_2x2, float_3x2, NULL, NULL, NULL},
    {NULL, float_1x4, NULL, NULL, NULL, NULL, NULL}};

#include "ops/linear_widened_tmpl.h"

/* Operands and results smaller than 2^-126 are zero. This processor tests results before rounding, the contract after;
 * that differs only if a result became zero, so then ref computes it again. */
static void strips_bf16(const hn_strips_job *j) {
    const uint64_t modes = hn_flush_begin_neon();
    chains_bf16(j);
    if (hn_flush_end_neon(modes)) hn_kernels_get(HN_ISA_REF)->linear_bf16(j);
}

/* ---- epilogues ---------------------------------------------------------------------------------------------------- */

static void store(const float *c, int n, float *y, int ldy, int cols, bool add) {
    for (int r = 0; r < n; r++, c += HN_STRIP, y += ldy) {
        for (int o = 0; o < cols; o += 4) {
            float32x4_t v = vld1q_f32(c + o);
            if (add) v = vaddq_f32(hn_load_neon(y + o, cols - o), v);
            hn_store_neon(y + o, cols - o, v);
        }
    }
}

static void store_glu(const float *gate, const float *up, int n, float *y, int ldy, int cols) {
    for (int r = 0; r < n; r++, gate += HN_STRIP, up += HN_STRIP, y += ldy) {
        for (int o = 0; o < cols; o += 4) {
            const float32x4_t g = vld1q_f32(gate + o);
            const float32x4_t silu = vdivq_f32(g, vaddq_f32(vdupq_n_f32(1.0f), hn_exp_neon(vnegq_f32(g))));
            hn_store_neon(y + o, cols - o, vmulq_f32(silu, vld1q_f32(up + o)));
        }
    }
}

#define LINEAR_TABLE hn_kernels_dotprod_linear
#define LINEAR_BF16 strips_bf16
#include "ops/linear_table_tmpl.h"
