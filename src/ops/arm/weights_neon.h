/* SPDX-License-Identifier: Apache-2.0 */
/* weights_neon.h - codes and scales of strips (drawn in ops/pack.h) as vectors of 4 outputs, a quarter of a strip.
 *
 * Type, code line and quarter are constants in all calls of these functions, so that each compiles to a few instructions. In
 * all of them `super` is a superblock, b one of its blocks (odd: b % 2), p a part of that, j a quarter. Included by files
 * compiled for an ARM level only.
 */
#ifndef HN_WEIGHTS_NEON_H
#define HN_WEIGHTS_NEON_H
#include "ops/arm/math_neon.h"
#include "ops/pack.h"

/* What is subtracted from an unsigned code to get its value; levels are signed already. */
HN_INLINE int hn_offset_neon(const hn_dtype t) { return hn_types[t].levels ? 0 : hn_offset_of(t); }

/* ---- codes ----------------------------------------------------------------------------------------------------------- */

/* Shifts the bits of each byte from `from` to `to`; the other bits are undefined. */
HN_INLINE uint8x16_t hn_moved_neon(uint8x16_t v, const int from, const int to) {
    return from > to ? v >> (from - to) : from < to ? v << (to - from) : v;
}

/* Code line r from its stored lines: the low bits and, if the type has more, the high ones. */
HN_INLINE uint8x16_t hn_code_neon(const hn_dtype t, uint8x16_t low, uint8x16_t high, const int r) {
    const hn_layout l = hn_layout_of(t);
    const int at = l.low * (r / l.low), high_at = l.high ? l.high * (r / l.high) : 0;
    uint8x16_t v = hn_moved_neon(low, at, 0);
    if (at + l.low < 8) v = vandq_u8(v, vdupq_n_u8((unsigned char)((1 << l.low) - 1)));
    if (!l.high) return v;
    const uint8x16_t mask = vdupq_n_u8((unsigned char)(((1 << l.high) - 1) << l.low));
    return vbslq_u8(mask, hn_moved_neon(high, high_at, l.low), v);
}

/* The multiplied values of codes: signed levels, else the unsigned codes. */
HN_INLINE uint8x16_t hn_levels_neon(const hn_dtype t, uint8x16_t codes) {
    if (!hn_types[t].levels) return codes;
    return vreinterpretq_u8_s8(vqtbl1q_s8(vld1q_s8(hn_types[t].levels), codes));
}

/* The stored line of code line r in a piece of `bits` bits. */
HN_INLINE uint8x16_t hn_stored_neon(const unsigned char *lines, const int bits, const int r) {
    return vld1q_u8(lines + 64 * (r % bits));
}

/* A quarter of code line r of a block: four codes (or levels) of each of 4 outputs. codes: the block's, at the quarter. */
HN_INLINE uint8x16_t hn_line_neon(const hn_dtype t, const unsigned char *codes, const int r) {
    const hn_layout l = hn_layout_of(t);
    const uint8x16_t low = hn_stored_neon(codes, l.low, r);
    const uint8x16_t high = l.high ? hn_stored_neon(codes + 64 * l.low, l.high, r) : low;
    return hn_levels_neon(t, hn_code_neon(t, low, high, r));
}

HN_INLINE const unsigned char *hn_codes_neon(const hn_dtype t, const unsigned char *super, int b, const int j) {
    const hn_layout l = hn_layout_of(t);
    return super + l.head + hn_block_bytes(l) * (size_t)b + 16 * j;
}

/* ---- scales ---------------------------------------------------------------------------------------------------------- */

HN_INLINE float32x4_t hn_halves_neon(const unsigned char *p) { return hn_f16_neon(vld1_u16((const uint16_t *)p)); }
HN_INLINE int32x4_t hn_u8_neon(const unsigned char *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
}
HN_INLINE int32x4_t hn_s8_neon(const unsigned char *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
    return vmovl_s16(vget_low_s16(wide));
}

/* 2^(e - 128), subnormal for the two smallest e. */
HN_INLINE float32x4_t hn_power_neon(int32x4_t e) {
    const int32x4_t usual = vshlq_n_s32(vsubq_s32(e, vdupq_n_s32(1)), 23);
    const int32x4_t small = vshlq_s32(vdupq_n_s32(0x200000), e);
    return vreinterpretq_f32_s32(vbslq_s32(vcltq_s32(e, vdupq_n_s32(2)), small, usual));
}

/* The integer scale of a part, and its minimum. */
HN_INLINE int32x4_t hn_part_scale_neon(const hn_dtype t, const unsigned char *super, int b, const int odd, const int p,
                                       const int j) {
    const unsigned char *at = super + 64 + 16 * (2 * b + p) + 4 * j;
    if (hn_types[t].scales == HN_PARTS_S8) return hn_s8_neon(at);
    if (hn_types[t].scales == HN_PARTS_U4) return vandq_s32(hn_u8_neon(at), vdupq_n_s32(15));
    const int32x4_t low = hn_u8_neon(super + 64 + 16 * b + 4 * j), high = hn_u8_neon(super + 192 + 16 * (b / 2) + 4 * j);
    const int32x4_t four = vandq_s32(low >> (4 * p), vdupq_n_s32(15));
    const int32x4_t two = vandq_s32(high >> (4 * odd + 2 * p), vdupq_n_s32(3));
    return vsubq_s32(vorrq_s32(four, vshlq_n_s32(two, 4)), vdupq_n_s32(32));
}
HN_INLINE int32x4_t hn_part_minimum_neon(const unsigned char *super, int b, const int p, const int j) {
    return hn_u8_neon(super + 64 + 16 * (2 * b + p) + 4 * j) >> 4;
}

/* D of a block (docs/kernels.md); in a type with parts, the final factor of their integer sums. */
HN_INLINE float32x4_t hn_block_scale_neon(const hn_dtype t, const unsigned char *super, int b, const int odd, const int j) {
    const hn_scales_form form = hn_types[t].scales;
    if (form == HN_SCALE_E8) return hn_power_neon(hn_u8_neon(super + 16 * b + 4 * j));
    if (form == HN_SCALE_F16) return hn_halves_neon(super + 32 * odd + 8 * j);
    const float32x4_t d = hn_halves_neon(super + 8 * j);
    if (hn_has_parts(t)) return d;
    const int32x4_t s = form == HN_SCALE_S6 ? hn_s8_neon(super + 64 + 16 * b + 4 * j) : hn_u8_neon(super + 64 + 32 * b + 4 * j);
    return vmulq_f32(d, vcvtq_f32_s32(s));
}

/* The minimum that is added to or subtracted from a block's weights; of parts that of the superblock, without the part's factor. */
HN_INLINE float32x4_t hn_block_minimum_neon(const hn_dtype t, const unsigned char *super, int b, const int odd, const int j) {
    if (hn_adds_minimum(t)) return hn_halves_neon(super + 64 + 32 * odd + 8 * j);
    const float32x4_t dmin = hn_halves_neon(super + 32 + 8 * j);
    if (hn_has_part_minimums(t)) return dmin;
    return vmulq_f32(dmin, vcvtq_f32_s32(hn_u8_neon(super + 64 + 32 * b + 16 + 4 * j)));
}
#endif
