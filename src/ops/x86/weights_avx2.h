/* SPDX-License-Identifier: Apache-2.0 */
/* weights_avx2.h - codes and scales of strips (drawn in ops/pack.h) as vectors of 8 outputs, half a strip.
 *
 * Type, code line and half are constants in all calls of these functions, so that each compiles to a few instructions.
 * Included by files compiled for that level only.
 */
#ifndef HN_WEIGHTS_AVX2_H
#define HN_WEIGHTS_AVX2_H
#include <immintrin.h>

#include "ops/pack.h"
#include "ops/unroll.h"

/* ---- codes ----------------------------------------------------------------------------------------------------------- */

HN_INLINE __m256i hn_line(const void *p) { return _mm256_load_si256((const __m256i *)p); }

/* Bytes shifted left by n, right by -n; the caller masks bits that cross into a neighbour. */
HN_INLINE __m256i hn_shift_avx2(__m256i v, const int n) {
    return n > 0 ? _mm256_slli_epi16(v, n) : n < 0 ? _mm256_srli_epi16(v, -n) : v;
}

/* Bits `at` and up (`bits` of them) of code line r, from the stored lines of one piece. */
HN_INLINE __m256i hn_piece_avx2(const unsigned char *lines, const int bits, const int r, const int at) {
    const __m256i v = hn_shift_avx2(hn_line(lines + 64 * (r % bits)), at - bits * (r / bits));
    return _mm256_and_si256(v, _mm256_set1_epi8((char)(((1 << bits) - 1) << at)));
}

/* Half of code line r of a block: four unsigned codes of each of 8 outputs. codes: the block's, plus 32 for outputs 8..15. */
HN_INLINE __m256i hn_codes_avx2(const hn_dtype t, const unsigned char *codes, const int r) {
    const hn_layout l = hn_layout_of(t);
    if (l.low == 8) return hn_line(codes + 64 * r);
    const __m256i low = hn_piece_avx2(codes, l.low, r, 0);
    return l.high ? _mm256_or_si256(low, hn_piece_avx2(codes + 64 * l.low, l.high, r, l.low)) : low;
}

/* The values of the line's codes, plus `plus`: 0, or the type's offset. */
HN_INLINE __m256i hn_values_avx2(const hn_dtype t, const unsigned char *codes, const int r, const int plus) {
    const __m256i code = hn_codes_avx2(t, codes, r);
    if (hn_types[t].levels) {
        const __m128i levels = _mm_loadu_si128((const __m128i *)hn_types[t].levels);
        const __m128i table = plus ? _mm_add_epi8(levels, _mm_set1_epi8((char)plus)) : levels;
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), code);
    }
    const int less = hn_offset_of(t) - plus;
    return less ? _mm256_sub_epi8(code, _mm256_set1_epi8((char)less)) : code;
}

/* ---- scales ---------------------------------------------------------------------------------------------------------- */

/* d: the scale D of a block (in types with parts without that of the part); m: its minimum, of parts that of the
 * superblock. parts, mins: scales and minimums of the two parts of each output, 16 bits each. */
typedef struct hn_scales {
    __m256 d, m;
    __m256i parts, mins;
} hn_scales;

HN_INLINE __m256 hn_half_avx2(const unsigned char *p) { return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)p)); }
HN_INLINE __m128i hn_bytes_avx2(const unsigned char *p) { return _mm_loadl_epi64((const __m128i *)p); }
HN_INLINE __m256 hn_u8_ps_avx2(__m128i v) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)); }
HN_INLINE __m256 hn_s8_ps_avx2(__m128i v) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)); }

/* 2^(e - 128), subnormal for the two smallest. */
HN_INLINE __m256 hn_power_avx2(__m128i bytes) {
    const __m256i e = _mm256_cvtepu8_epi32(bytes);
    const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    const __m256i usual = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(usual, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

/* HN_PARTS_S6: s of the two parts of block b (odd: b % 2) of 8 outputs, side by side. */
HN_INLINE __m256i hn_q3_parts_avx2(const unsigned char *rows, int b, const int odd) {
    const __m128i nibbles = hn_bytes_avx2(rows + 16 * b), bits = hn_bytes_avx2(rows + 128 + 16 * (b / 2));
    const __m128i low = _mm_unpacklo_epi8(nibbles, _mm_srli_epi16(nibbles, 4));
    const __m128i high = odd ? _mm_unpacklo_epi8(bits, _mm_srli_epi16(bits, 2))
                             : _mm_unpacklo_epi8(_mm_slli_epi16(bits, 4), _mm_slli_epi16(bits, 2));
    const __m128i s = _mm_or_si128(_mm_and_si128(low, _mm_set1_epi8(15)), _mm_and_si128(high, _mm_set1_epi8(48)));
    return _mm256_cvtepi8_epi16(_mm_sub_epi8(s, _mm_set1_epi8(32)));
}

/* The scales of block b (odd: b % 2) of a superblock, outputs 8 * h and up. */
HN_INLINE hn_scales hn_scales_avx2(const hn_dtype t, const unsigned char *head, int b, const int odd, const int h) {
    const unsigned char *lane2 = head + 16 * h, *lane1 = head + 64 + 8 * h; /* f16 values; bytes after d and dmin */
    hn_scales s = {.d = _mm256_setzero_ps(), .m = _mm256_setzero_ps()};
    switch (hn_types[t].scales) {
    case HN_NO_SCALES: return s;
    case HN_SCALE_F16:
        if (hn_has_minimum(t)) s.m = hn_half_avx2(lane2 + 64 + 32 * b);
        s.d = hn_half_avx2(lane2 + 32 * b);
        return s;
    case HN_SCALE_E8:
        s.d = hn_power_avx2(hn_bytes_avx2(head + 16 * b + 8 * h));
        return s;
    case HN_SCALE_U6:
        s.d = _mm256_mul_ps(hn_half_avx2(lane2), hn_u8_ps_avx2(hn_bytes_avx2(lane1 + 32 * b)));
        s.m = _mm256_mul_ps(hn_half_avx2(lane2 + 32), hn_u8_ps_avx2(hn_bytes_avx2(lane1 + 32 * b + 16)));
        return s;
    case HN_SCALE_S6:
        s.d = _mm256_mul_ps(hn_half_avx2(lane2), hn_s8_ps_avx2(hn_bytes_avx2(lane1 + 16 * b)));
        return s;
    case HN_PARTS_U4: case HN_PARTS_S8: {
        const __m128i both = _mm_unpacklo_epi8(hn_bytes_avx2(lane1 + 32 * b), hn_bytes_avx2(lane1 + 32 * b + 16));
        s.d = hn_half_avx2(lane2);
        s.parts = _mm256_cvtepi8_epi16(hn_has_part_minimums(t) ? _mm_and_si128(both, _mm_set1_epi8(15)) : both);
        if (!hn_has_part_minimums(t)) return s;
        s.m = hn_half_avx2(lane2 + 32);
        s.mins = _mm256_cvtepi8_epi16(_mm_and_si128(_mm_srli_epi16(both, 4), _mm_set1_epi8(15)));
        return s;
    }
    case HN_PARTS_S6:
        s.d = hn_half_avx2(lane2);
        s.parts = hn_q3_parts_avx2(lane1, b, odd);
        return s;
    }
    return s;
}

/* The first (0) or second (1) of each output's pair of 16 bits, as 32 bits; or twice as 16 bits. */
HN_INLINE __m256i hn_one_of_pair_avx2(__m256i pairs, const int which) {
    return _mm256_srai_epi32(which ? pairs : _mm256_slli_epi32(pairs, 16), 16);
}
HN_INLINE __m256i hn_twice_of_pair_avx2(__m256i pairs, const int which) {
    const int64_t by = which ? 0x0202020202020202 : 0, low = 0x0504050401000100 + by, high = 0x0d0c0d0c09080908 + by;
    return _mm256_shuffle_epi8(pairs, _mm256_set_epi64x(high, low, high, low));
}
#endif
