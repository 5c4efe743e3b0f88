/* SPDX-License-Identifier: Apache-2.0 */
/* linear_avx2.c - matrix products with AVX2 and FMA. Results: ref/linear_ref.c, bit for bit.
 *
 * Quantised rows are walked by linear_256_tmpl.h; here are their sums of integers. vpmaddubsw multiplies unsigned by
 * signed bytes and adds neighbouring products in 16 bits: as many code lines as cannot overflow 16 bits are added
 * there, then widened by vpmaddwd, whose other factor is 1 or, in types with parts, the part's integer scale. The
 * offset of unsigned codes is subtracted by means of the row's sum. Levels and 8-bit weights are signed and large:
 * their magnitude is multiplied by the activation with their sign.
 */
#include <math.h>

#include "ops/x86/flush.h"
#include "ops/x86/linear_256_tmpl.h"
#include "ops/x86/math_avx2.h"

enum { FLOAT_ROWS = 3 };

/* ---- quantised rows: integers -------------------------------------------------------------------------------------- */

/* Whether weights are multiplied as magnitude and sign; else as unsigned codes with their offset. */
HN_INLINE bool is_signed(const hn_dtype t) { return hn_has_large_values(t); }

/* Number of code lines of one scale whose products fit 16 bits together: a line adds two, and an activation is at most 127. */
HN_INLINE int lines_at_once(const hn_dtype t) {
    const int top = is_signed(t) ? -hn_types[t].least : hn_types[t].most - hn_types[t].least;
    const int fit = INT16_MAX / (2 * 127 * top);
    return fit >= 8 && !hn_has_parts(t) ? 8 : fit >= 4 ? 4 : fit;
}

HN_INLINE __m256i products(const hn_dtype t, __m256i w, __m256i quad) {
    if (!is_signed(t)) return _mm256_maddubs_epi16(w, quad);
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(quad, w));
}

/* The offset of unsigned codes, times the row's sum. */
HN_INLINE __m256i undo_offset(const hn_dtype t, __m256i sum, const hn_q8_group *x, const hn_q8_parts *parts, const int b,
                              const hn_scales *s) {
    const __m256i n8 = _mm256_set1_epi32(x->n8[b]);
    switch (is_signed(t) ? 0 : hn_offset_of(t)) {
    case 4: return _mm256_add_epi32(sum, _mm256_madd_epi16(part_sums(parts, b), s->parts));
    case 8: return _mm256_add_epi32(sum, n8);
    case 12: return _mm256_add_epi32(sum, _mm256_add_epi32(n8, _mm256_srai_epi32(n8, 1)));
    case 16: return _mm256_add_epi32(sum, _mm256_slli_epi32(n8, 1));
    case 32: /* 4 * 8 */
        return _mm256_add_epi32(sum, _mm256_madd_epi16(part_sums(parts, b), _mm256_slli_epi16(s->parts, 3)));
    default: return sum;
    }
}

HN_INLINE void block_sums(const hn_dtype t, const int T, const int H, const unsigned char *codes, const tile_rows *rows,
                          const int b, const hn_scales *scales, __m256i *sum) {
    const int at_once = lines_at_once(t);
    __m256i some[2 * TILE_ROWS], w[2], by[2];
    HN_UNROLL for (int r = 0; r < 8; r++) {
        HN_UNROLL for (int h = 0; h < H; h++) {
            w[h] = hn_values_avx2(t, codes + 32 * h, r, is_signed(t) ? 0 : hn_offset_of(t));
            by[h] = hn_has_parts(t) ? hn_twice_of_pair_avx2(scales[h].parts, r / 4) : _mm256_set1_epi16(1);
        }
        HN_UNROLL for (int i = 0; i < T; i++) {
            const __m256i quad = quad_at(rows->x[i], b, r);
            HN_UNROLL for (int h = 0; h < H; h++) {
                const int k = H * i + h;
                const __m256i line = products(t, w[h], quad);
                some[k] = r % at_once == 0 ? line : _mm256_add_epi16(some[k], line);
                if (at_once > 1) HN_SETTLE(some[k]);
                if ((r + 1) % at_once != 0) continue;
                const __m256i wide = _mm256_madd_epi16(some[k], by[h]);
                sum[k] = r < at_once ? wide : _mm256_add_epi32(sum[k], wide);
                if (at_once == 1) HN_SETTLE(sum[k]);
            }
        }
    }
    HN_UNROLL for (int k = 0; k < T * H; k++) {
        sum[k] = undo_offset(t, sum[k], rows->x[k / H], rows->parts[k / H], b, &scales[k % H]);
    }
}

/* ---- float rows: widening ------------------------------------------------------------------------------------------ */

/* Half h (8 outputs) of block b (odd: b % 2) of a superblock as f32, [32][16] at dst. */
HN_INLINE void widen_half(const hn_dtype t, const unsigned char *super, int b, const int odd, const int h, float *dst) {
    const hn_layout l = hn_layout_of(t);
    const unsigned char *codes = super + l.head + hn_block_bytes(l) * (size_t)b + 32 * h;
    const hn_scales s = hn_scales_avx2(t, super, b, odd, h);
    HN_UNROLL for (int r = 0; r < 8; r++) {
        const __m256i line = hn_values_avx2(t, codes, r, 0);
        __m256 d = s.d, m = s.m;
        if (hn_has_parts(t)) d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(hn_one_of_pair_avx2(s.parts, r / 4)));
        if (hn_has_part_minimums(t)) m = _mm256_mul_ps(m, _mm256_cvtepi32_ps(hn_one_of_pair_avx2(s.mins, r / 4)));
        HN_UNROLL for (int i = 0; i < 4; i++) {
            const __m256i value = _mm256_srai_epi32(_mm256_slli_epi32(line, 24 - 8 * i), 24);
            __m256 w = _mm256_mul_ps(d, _mm256_cvtepi32_ps(value));
            if (hn_adds_minimum(t)) w = _mm256_add_ps(w, m);
            if (hn_takes_minimum(t)) w = _mm256_sub_ps(w, m);
            _mm256_store_ps(dst + (4 * r + i) * HN_STRIP + 8 * h, w);
        }
    }
}

/* A group, whose first block is block b of the superblock. */
#define WIDEN(type, ...)                                                                                              \
    static __attribute__((noinline)) void widen_##type(const unsigned char *super, int b, float *dst) {               \
        HN_UNROLL for (int k = 0; k < 4; k++) {                                                                       \
            widen_half(HN_##type, super, b + k / 2, k / 2, k % 2, dst + HN_BLOCK * HN_STRIP * (k / 2));               \
        }                                                                                                             \
    }
HN_BLOCK_TYPES(WIDEN)

static void widen_blocks(hn_dtype t, const unsigned char *strip, int k, float *dst) {
#define WIDENS(type, ...) [HN_##type] = widen_##type,
    static void (*const by_type[HN_WEIGHT_TYPES])(const unsigned char *, int, float *) = {HN_BLOCK_TYPES(WIDENS)};
    const hn_layout l = hn_layout_of(t);
    by_type[t](strip + hn_super_bytes(l) * (size_t)(k / l.inputs), k % l.inputs / HN_BLOCK, dst);
}

/* F8_E4M3, `count` inputs, by twos (src and dst have room). Its bits are those of an f16 2^8 times smaller, except NaN.
 * large: the factor times 2^8 may be infinite. */
HN_INLINE void widen_f8(const unsigned char *src, int count, float factor, const bool large, float *dst) {
    const __m256 up = _mm256_set1_ps(256.0f), by = _mm256_set1_ps(large ? factor : 256.0f * factor);
    const __m256i rest = _mm256_set1_epi16(0x7f << 7);
    for (int i = 0; i < count; i += 2, src += 2 * HN_STRIP, dst += 2 * HN_STRIP) {
        const __m256i zero = _mm256_setzero_si256();
        HN_UNROLL for (int k = 0; k < 2; k++) { /* outputs 8 * k and up of both inputs */
            __m256i h = k ? _mm256_unpackhi_epi8(zero, hn_line(src)) : _mm256_unpacklo_epi8(zero, hn_line(src));
            h = _mm256_and_si256(_mm256_srai_epi16(h, 1), _mm256_set1_epi16((short)0xbf80));
            const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(h, rest), rest);
            h = _mm256_or_si256(h, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
            __m256 a = _mm256_cvtph_ps(_mm256_castsi256_si128(h)), b = _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1));
            if (large) a = _mm256_mul_ps(a, up), b = _mm256_mul_ps(b, up);
            _mm256_store_ps(dst + 8 * k, _mm256_mul_ps(a, by));
            _mm256_store_ps(dst + HN_STRIP + 8 * k, _mm256_mul_ps(b, by));
        }
    }
}

/* BF16, `count` inputs and a zero if that is odd, each at its place; swap 1: at its neighbour's in a pair. */
static void widen_pairs(const unsigned char *src, int count, int swap, float *dst) {
    const __m256i high = _mm256_set1_epi32((int)0xffff0000);
    for (int i = 0; i < count; i += 2, src += 64, dst += 2 * HN_STRIP) {
        HN_UNROLL for (int h = 0; h < 2; h++) {
            const __m256i v = hn_line(src + 32 * h);
            _mm256_store_si256((__m256i *)(dst + HN_STRIP * swap + 8 * h), _mm256_slli_epi32(v, 16));
            _mm256_store_si256((__m256i *)(dst + HN_STRIP * (1 - swap) + 8 * h), _mm256_and_si256(v, high));
        }
    }
}

/* Inputs [k, k + count) of a strip as f32 [count][16]; k a multiple of 64. Scratch holds a group. */
static const float *widen(hn_dtype t, int in, const unsigned char *strip, int k, int count, float *scratch) {
    const unsigned char *half = strip + (size_t)k * HN_STRIP * 2;
    switch (t) {
    case HN_F16:
        for (int i = 0; i < 2 * count; i++) _mm256_store_ps(scratch + 8 * i, hn_half_avx2(half + 16 * i));
        break;
    case HN_BF16: widen_pairs(half, count, 0, scratch); break;
    case HN_F8_E4M3: {
        const float factor = ((const float *)strip)[k / HN_F8_TILE];
        strip += hn_f8_head(in) + (size_t)k * HN_STRIP;
        if (fabsf(factor) < 0x1p119f) {
            widen_f8(strip, count, factor, false, scratch);
        } else {
            widen_f8(strip, count, factor, true, scratch);
        }
        break;
    }
    case HN_F32: return (const float *)strip + (size_t)k * HN_STRIP;
    default: widen_blocks(t, strip, k, scratch);
    }
    return scratch;
}

/* ---- float rows: products ------------------------------------------------------------------------------------------- */

/* c[S][T] continued with `count` inputs of S widened strips and T rows. */
HN_INLINE void tile_f32(const int T, const int S, const float *const *w, const float *x, size_t x_stride, int count,
                        float *c, size_t c_stride) {
    __m256 acc[12];
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int i = 0; i < 2 * T; i++) acc[2 * s * T + i] = _mm256_load_ps(c + c_stride * (size_t)s + 8 * i);
    }
    for (int k = 0; k < count; k++) {
        HN_UNROLL for (int s = 0; s < S; s++) {
            const __m256 w0 = _mm256_load_ps(w[s] + 16 * k), w1 = _mm256_load_ps(w[s] + 16 * k + 8);
            HN_UNROLL for (int i = 0; i < T; i++) {
                const __m256 a = _mm256_set1_ps(x[x_stride * (size_t)i + (size_t)k]);
                __m256 *sum = acc + 2 * (s * T + i);
                sum[0] = _mm256_fmadd_ps(w0, a, sum[0]);
                sum[1] = _mm256_fmadd_ps(w1, a, sum[1]);
            }
        }
    }
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int i = 0; i < 2 * T; i++) _mm256_store_ps(c + c_stride * (size_t)s + 8 * i, acc[2 * s * T + i]);
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
FLOAT_TILE(1, 2)
FLOAT_TILE(2, 2)
FLOAT_TILE(3, 2)
FLOAT_TILE(1, 4)
static float_fn *const float_tiles[3][FLOAT_ROWS + 1] = {{NULL, float_1x1, float_2x1, float_3x1},
                                                         {NULL, float_1x2, float_2x2, float_3x2},
                                                         {NULL, float_1x4, NULL, NULL}};

#include "ops/linear_widened_tmpl.h"

static void strips_bf16(const hn_strips_job *j) {
    const unsigned modes = hn_flush_begin();
    chains_bf16(j);
    hn_flush_end(modes);
}

/* ---- epilogues ---------------------------------------------------------------------------------------------------- */

static void store(const float *c, int n, float *y, int ldy, int cols, bool add) {
    for (int r = 0; r < n; r++, c += HN_STRIP, y += ldy) {
        HN_UNROLL for (int h = 0; h < 2; h++) {
            if (cols <= 8 * h) break;
            __m256 v = _mm256_load_ps(c + 8 * h);
            if (add) v = _mm256_add_ps(hn_load_avx2(y + 8 * h, cols - 8 * h), v);
            hn_store_avx2(y + 8 * h, cols - 8 * h, v);
        }
    }
}

static void store_glu(const float *gate, const float *up, int n, float *y, int ldy, int cols) {
    for (int r = 0; r < n; r++, gate += HN_STRIP, up += HN_STRIP, y += ldy) {
        HN_UNROLL for (int h = 0; h < 2; h++) {
            if (cols <= 8 * h) break;
            const __m256 g = _mm256_load_ps(gate + 8 * h), minus = _mm256_xor_ps(g, _mm256_set1_ps(-0.0f));
            const __m256 silu = _mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0f), hn_exp_avx2(minus)));
            hn_store_avx2(y + 8 * h, cols - 8 * h, _mm256_mul_ps(silu, _mm256_load_ps(up + 8 * h)));
        }
    }
}

#define LINEAR_TABLE hn_kernels_avx2_linear
#define LINEAR_BF16 strips_bf16
#include "ops/linear_table_tmpl.h"
