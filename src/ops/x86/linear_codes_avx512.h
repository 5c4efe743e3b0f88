/* SPDX-License-Identifier: Apache-2.0 */
/* linear_codes_avx512.h - reads a strip of a block type (ops/pack.h) 16 outputs at a time: codes and scales, by type.
 *
 * Used by linear_avx512.c. Every function is inlined with a constant type, so tests of the type cost nothing. In all of
 * them `super` is a superblock, i one of its groups of 64 inputs, b a block of that group, p a part of that block; head
 * offsets are those of the table in pack.h.
 */
#ifndef HN_LINEAR_CODES_AVX512_H
#define HN_LINEAR_CODES_AVX512_H
#include <immintrin.h>

#include "ops/pack.h"
#include "ops/unroll.h"

/* What is subtracted from an unsigned code to get its value; levels are read with 128 added. */
HN_INLINE int offset_of(const hn_dtype t) { return hn_types[t].levels ? 128 : hn_offset_of(t); }
HN_INLINE int groups_of(const hn_dtype t) { return hn_layout_of(t).inputs / 64; } /* of a superblock */

/* ---- codes ------------------------------------------------------------------------------------------------------------ */

/* The piece of `bits` bits of code line r, shifted to bit `to` of its bytes; the other bits are undefined. gcc takes
 * these counts as int, clang as unsigned. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
HN_INLINE __m512i piece_at(const unsigned char *lines, const int bits, const int r, const int to) {
    const __m512i v = _mm512_load_si512(lines + 64 * (r % bits));
    const int from = bits * (r / bits);
    return from > to ? _mm512_srli_epi16(v, from - to) : from < to ? _mm512_slli_epi16(v, to - from) : v;
}
#pragma GCC diagnostic pop

/* The levels of a type plus 128, as a table in each of the four parts of a vector. */
HN_INLINE __m512i levels_of(const hn_dtype t) {
    const __m128i v = _mm_loadu_si128((const __m128i *)hn_types[t].levels);
    return _mm512_broadcast_i32x4(_mm_xor_si128(v, _mm_set1_epi8(-128)));
}

/* Line r (0..7) of a block, 16 outputs x 4 inputs, unsigned: its codes, or their levels plus 128. */
HN_INLINE __m512i load_codes(const hn_dtype t, const unsigned char *block, const int r) {
    const hn_layout l = hn_layout_of(t);
    __m512i codes = piece_at(block, l.low, r, 0);
    if (l.low == 8) return codes;
    const __m512i mask = _mm512_set1_epi8((char)((1 << l.low) - 1));
    if (l.high) {
        __m512i high = piece_at(block + 64 * l.low, l.high, r, l.low);
        high = _mm512_and_si512(high, _mm512_set1_epi8((char)(((1 << l.high) - 1) << l.low)));
        return _mm512_ternarylogic_epi32(codes, high, mask, 0xe4); /* mask ? codes : high */
    }
    codes = _mm512_and_si512(codes, mask);
    return hn_types[t].levels ? _mm512_shuffle_epi8(levels_of(t), codes) : codes;
}

/* ---- scales ----------------------------------------------------------------------------------------------------------- */

HN_INLINE __m512 load_half(const unsigned char *p) {
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)p));
}
HN_INLINE __m512i load_u8(const unsigned char *p) { return _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)p)); }
HN_INLINE __m512i load_s8(const unsigned char *p) { return _mm512_cvtepi8_epi32(_mm_load_si128((const __m128i *)p)); }

/* 2^(e-128): subnormal for the two smallest e. */
HN_INLINE __m512 load_power(const unsigned char *p) {
    const __m512i e = load_u8(p), normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __mmask16 small = _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_sllv_epi32(normal, small, _mm512_set1_epi32(0x200000), e));
}

/* The integer scale of a part, and its minimum. */
HN_INLINE __m512i part_scale(const hn_dtype t, const unsigned char *super, int i, const int b, const int p) {
    const unsigned char *at = super + 64 + 16 * (4 * i + 2 * b + p);
    if (hn_types[t].scales == HN_PARTS_S8) return load_s8(at);
    if (hn_types[t].scales == HN_PARTS_U4) return _mm512_and_si512(load_u8(at), _mm512_set1_epi32(15));
    const __m512i low = load_u8(super + 64 + 16 * (2 * i + b)), high = load_u8(super + 192 + 16 * i);
    const int down = 2 * (2 * b + p); /* position of bits 4 and 5 of the scale in `high` */
    const __m512i four = p ? _mm512_srli_epi32(low, 4) : _mm512_and_si512(low, _mm512_set1_epi32(15));
    const __m512i two = down < 4 ? _mm512_slli_epi32(high, (unsigned)(4 - down))
                                 : _mm512_srli_epi32(high, (unsigned)(down - 4));
    const __m512i six = _mm512_or_si512(four, _mm512_and_si512(two, _mm512_set1_epi32(48)));
    return _mm512_sub_epi32(six, _mm512_set1_epi32(32));
}
HN_INLINE __m512i part_minimum(const unsigned char *super, int i, const int b, const int p) {
    return _mm512_srli_epi32(load_u8(super + 64 + 16 * (4 * i + 2 * b + p)), 4);
}

/* D of a block (docs/kernels.md); in a type with parts, the final factor of their integer sums. */
HN_INLINE __m512 block_scale(const hn_dtype t, const unsigned char *super, int i, const int b) {
    const hn_scales_form form = hn_types[t].scales;
    if (form == HN_SCALE_E8) return load_power(super + 16 * (2 * i + b));
    if (form == HN_SCALE_F16) return load_half(super + 32 * b);
    const __m512 d = load_half(super);
    if (hn_has_parts(t)) return d;
    const __m512i s = form == HN_SCALE_S6 ? load_s8(super + 64 + 16 * (2 * i + b)) : load_u8(super + 64 + 32 * (2 * i + b));
    return _mm512_mul_ps(d, _mm512_cvtepi32_ps(s));
}

/* The minimum that is added to or subtracted from a block's weights; of parts a quarter of it, for their integer sums. */
HN_INLINE __m512 block_minimum(const hn_dtype t, const unsigned char *super, int i, const int b) {
    if (hn_adds_minimum(t)) return load_half(super + 64 + 32 * b);
    const __m512 dmin = load_half(super + 32);
    if (hn_has_part_minimums(t)) return _mm512_mul_ps(dmin, _mm512_set1_ps(0.25f));
    return _mm512_mul_ps(dmin, _mm512_cvtepi32_ps(load_u8(super + 64 + 32 * (2 * i + b) + 16)));
}

/* ---- weights as floats ------------------------------------------------------------------------------------------------ */

/* 16 weights of input c (0..3) of a line of codes or levels. d, m: factor and minimum, as in hn_dequantise. */
HN_INLINE __m512 dequantise(const hn_dtype t, __m512i line, const int c, __m512 d, __m512 m) {
    /* a byte in the lowest bits of 2^23 adds its value: 2^23 and the offset are removed by one exact subtraction */
    const __m512i byte = _mm512_set1_epi32(255), ones = _mm512_castps_si512(_mm512_set1_ps(0x1p23f));
    const __m512i sum = _mm512_ternarylogic_epi32(_mm512_srli_epi32(line, (unsigned)(8 * c)), byte, ones, 0xea);
    const __m512 value = _mm512_sub_ps(_mm512_castsi512_ps(sum), _mm512_set1_ps(0x1p23f + (float)offset_of(t)));
    const __m512 product = _mm512_mul_ps(d, value);
    return hn_adds_minimum(t) ? _mm512_add_ps(product, m) : hn_takes_minimum(t) ? _mm512_sub_ps(product, m) : product;
}

/* Group i of a superblock as f32 [64][16]. */
HN_INLINE void widen_group(const hn_dtype t, const unsigned char *super, int i, float *dst) {
    const hn_layout l = hn_layout_of(t);
    HN_UNROLL for (int b = 0; b < 2; b++) {
        const unsigned char *block = super + l.head + hn_block_bytes(l) * (size_t)(2 * i + b);
        __m512 d = block_scale(t, super, i, b), m = d;
        if (hn_has_minimum(t) && !hn_has_part_minimums(t)) m = block_minimum(t, super, i, b);
        HN_UNROLL for (int r = 0; r < 8; r++, dst += 4 * HN_STRIP) {
            if (hn_has_parts(t) && r % 4 == 0) {
                d = _mm512_mul_ps(load_half(super), _mm512_cvtepi32_ps(part_scale(t, super, i, b, r / 4)));
            }
            if (hn_has_part_minimums(t) && r % 4 == 0) {
                m = _mm512_mul_ps(load_half(super + 32), _mm512_cvtepi32_ps(part_minimum(super, i, b, r / 4)));
            }
            const __m512i line = load_codes(t, block, r);
            HN_UNROLL for (int c = 0; c < 4; c++) _mm512_store_ps(dst + c * HN_STRIP, dequantise(t, line, c, d, m));
        }
    }
}

/* Two more types for a kernel: F8_E4M3 if it is plain (f8_is_plain), and f32 that was widened into the L1 cache. */
enum { HN_F8_PLAIN = HN_WEIGHT_TYPES, HN_WIDENED };

/* One input of F8_E4M3 times its factor. A code's exponent and fraction, shifted to their bits in f32, give 2^-120 of
 * its value, also for subnormal codes. If it is plain, 2^120 and the factor are one number; the product is rounded once
 * in both cases. */
HN_INLINE __m512 load_f8(const bool plain, const unsigned char *w, __m512 factor) {
    const __m512i top = _mm512_set1_epi32(0x07f00000);
    __m512i v = _mm512_slli_epi32(load_s8(w), 20);
    v = _mm512_and_si512(v, _mm512_set1_epi32((int)0x87f00000));
    if (plain) return _mm512_mul_ps(_mm512_castsi512_ps(v), _mm512_mul_ps(factor, _mm512_set1_ps(0x1p120f)));
    const __mmask16 nan = _mm512_cmpeq_epi32_mask(_mm512_and_si512(v, top), top);
    v = _mm512_mask_mov_epi32(v, nan, _mm512_set1_epi32(0x7fc00000));
    return _mm512_mul_ps(_mm512_mul_ps(_mm512_castsi512_ps(v), _mm512_set1_ps(0x1p120f)), factor);
}

/* Whether none of `count` inputs of one factor is NaN, and the factor can be multiplied by 2^120. Reads whole lines. */
HN_INLINE bool f8_is_plain(const unsigned char *w, int count, float factor) {
    __m512i most[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (int i = 0; i < count; i += 8) {
        HN_UNROLL for (int k = 0; k < 2; k++) { /* twice a code, without its sign: 254 if it is NaN */
            const __m512i v = _mm512_load_si512(w + HN_STRIP * (i + 4 * k < count ? i + 4 * k : i));
            most[k] = _mm512_max_epu8(most[k], _mm512_add_epi8(v, v));
        }
    }
    const __m512i all = _mm512_max_epu8(most[0], most[1]);
    return _mm512_cmpeq_epi8_mask(all, _mm512_set1_epi8((char)254)) == 0 && factor < 128 && factor > -128;
}

HN_INLINE size_t float_bytes(const int t) {
    return t == HN_F32 || t == HN_WIDENED ? 4 : t == HN_F16 || t == HN_BF16 ? 2 : 1;
}

/* Input i of the pairs of BF16 that begin at w. */
HN_INLINE __m512 load_of_pair(const unsigned char *w, const int i) {
    const __m512i v = _mm512_load_si512(w + 64 * (i / 2));
    return _mm512_castsi512_ps(i % 2 ? _mm512_and_si512(v, _mm512_set1_epi32((int)0xffff0000)) : _mm512_slli_epi32(v, 16));
}

/* One input of a strip of a float type other than BF16. */
HN_INLINE __m512 load_float(const int t, const unsigned char *w, __m512 factor) {
    if (float_bytes(t) == 4) return _mm512_load_ps((const float *)w);
    if (t == HN_F16) return load_half(w);
    return load_f8(t == HN_F8_PLAIN, w, factor);
}
#endif
