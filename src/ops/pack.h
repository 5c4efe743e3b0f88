/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - the strip layout of weights.
 *
 * A strip is 16 outputs, read by a kernel as one ascending stream of whole cache lines. One layout serves every level.
 *
 * Block types are a run of superblocks of 64, 128 or 256 inputs: scales, then the codes of its blocks of 32 one after another.
 * Scales and codes of the last superblock beyond `in` are zero.
 *
 *     superblock   [head: scales of 16 outputs][block 0: low][block 0: high][block 1: low][block 1: high] ...
 *
 *   Codes. A line is 64 bytes: four neighbouring inputs of output 0, of output 1, ... A block's 8 lines of codes r = 0..7
 *   hold inputs 4r .. 4r+3; byte 4*o + c is output o, input 4r + c. With b bits a code, 8/b of these lines share a stored
 *   one: code line r is stored line r % b, bits b*(r/b) and up. So 8 bits: 8 lines as they are; 4 bits: 4 stored lines,
 *   low nibble r, high nibble r+4; 2 bits: 2 lines; 1 bit: 1 line. Codes of 3, 5 and 6 bits are stored in two such pieces:
 *   code = low | high << (bits of low).
 *
 *   type     inputs  low high  head (16 values of one kind at a time, output 0 first)                          weight
 *   Q4_0       64     4    -   d of block 0, d of 1: f16                                                   64  d*(code - 8)
 *   Q5_0       64     4    1   the same                                                                    64  d*(code - 16)
 *   Q8_0       64     8    -   the same; code = q + 128                                                    64  d*(code - 128)
 *   IQ4_NL     64     4    -   the same                                                                    64  d*level[code]
 *   Q4_1       64     4    -   d of 0, d of 1, m of 0, m of 1: f16                                        128  d*code + m
 *   Q5_1       64     4    1   the same                                                                   128  d*code + m
 *   MXFP4     128     4    -   e of blocks 0..3: u8                                                        64  2^(e-128)*level[code]
 *   Q4_K      256     4    -   d, dmin: f16; then of each block b: s, m: u8                               320  d*s*code - dmin*m
 *   Q5_K      256     4    1   the same                                                                   320  d*s*code - dmin*m
 *   IQ4_XS    256     4    -   d: f16; 32 bytes 0; s of each block: s8, 32 subtracted                     192  d*s*level[code]
 *   Q2_K      256     2    -   d, dmin: f16; then of each part p of 16 inputs: s | m << 4: u8             320  d*s*code - dmin*m
 *   Q3_K      256     2    1   d: f16; 32 bytes 0; 8 rows of 16 bytes: low nibbles of s of parts 2k (low  256  d*(s - 32)*(code - 4)
 *                              nibble) and 2k+1 (high); 4 rows: bits 4 and 5 of s of parts 4k .. 4k+3
 *   Q6_K      256     4    2   d: f16; 32 bytes 0; s of each part: s8                                     320  d*s*(code - 32)
 *
 * Float types: per input the 16 outputs next to each other; the strip is padded to whole lines. F8_E4M3 starts with f32 factors, one for
 * each 128 inputs (the same for all 16 outputs), padded to whole lines: weight = value * factor. BF16 keeps two neighbouring inputs of an
 * output together, a line being [16 outputs][2]: instructions multiply pairs of them. If `in` is odd the last line has zeros.
 */
#ifndef HN_PACK_H
#define HN_PACK_H
#include "ops/ops.h"
#include "ops/unroll.h"

static inline int hn_strips(int out) { return (out + HN_STRIP - 1) / HN_STRIP; }
HN_INLINE bool hn_is_block_type(hn_dtype t) { return hn_types[t].scales != HN_NO_SCALES; }

/* A block type's superblock: inputs, bytes of its head and rows of 16 halves at its begin, bits of the two pieces of a code. Folded at
 * compile time if t is a constant. */
typedef struct hn_layout {
    int inputs, head, halves, low, high;
} hn_layout;
HN_INLINE hn_layout hn_layout_of(hn_dtype t) {
    const hn_type_desc *d = &hn_types[t];
    hn_layout l = {.low = d->low, .high = d->high};
    switch (d->scales) {
    case HN_NO_SCALES: break;
    case HN_SCALE_F16: l.inputs = 64, l.head = d->minimum ? 128 : 64, l.halves = d->minimum ? 4 : 2; break;
    case HN_SCALE_E8: l.inputs = 128, l.head = 64, l.halves = 0; break;
    case HN_SCALE_S6: l.inputs = 256, l.head = 192, l.halves = 2; break;
    case HN_PARTS_S6: l.inputs = 256, l.head = 256, l.halves = 2; break;
    case HN_SCALE_U6: case HN_PARTS_U4: case HN_PARTS_S8: l.inputs = 256, l.head = 320, l.halves = 2; break;
    }
    return l;
}
HN_INLINE size_t hn_block_bytes(hn_layout l) { return 64 * (size_t)(l.low + l.high); } /* codes of a block */
HN_INLINE size_t hn_super_bytes(hn_layout l) { return (size_t)l.head + (size_t)(l.inputs / 32) * hn_block_bytes(l); }
/* F8_E4M3: bytes of the factors before a strip. */
static inline size_t hn_f8_head(int in) {
    return ((size_t)((in + HN_F8_TILE - 1) / HN_F8_TILE) * sizeof(float) + 63) / 64 * 64;
}

size_t hn_strip_bytes(hn_dtype t, int in);
/* Packs rows [first, first + 16) of a stored matrix as a strip; rows at or beyond `out` become zeros. factors: with
 * F8_E4M3 those of the strip's rows, one for each 128 inputs; else NULL. */
void hn_pack_strip(hn_dtype t, int out, int in, const void *src, size_t row_bytes, const float *factors, int first, void *dst);
/* The same for MXFP4 in two parts (hn_stored.scales). */
void hn_pack_parts(int out, int in, const hn_stored *from, int first, void *dst);
/* Inputs [k, k + count) of output `lane` of a strip, dequantised exactly as the stored row by hn_dequantise (times the
 * factor, with F8_E4M3). */
void hn_strip_row(hn_dtype t, int in, const void *strip, int lane, int k, int count, float *dst);

/* Makes lane `to` of a strip the same as lane `from` of another; factors of F8_E4M3, which all lanes share, are copied too. */
void hn_strip_copy_lane(hn_dtype t, int in, const void *strip, int from, void *other, int to);

/* 32 weights of one output, of a block type: weight k, in part p = k / 16, is d * s[p] * v[k], plus dmin * m[p] if the
 * type has a minimum. Each product and the sum is rounded, in this order. s and m are 1 if the type has none. */
typedef struct hn_lane_block {
    int8_t v[32];
    float d, dmin;
    int s[2], m[2];
} hn_lane_block;
HN_INLINE bool hn_has_minimum(hn_dtype t) { return hn_types[t].minimum != 0; }
HN_INLINE bool hn_adds_minimum(hn_dtype t) { return hn_types[t].minimum > 0; }
HN_INLINE bool hn_takes_minimum(hn_dtype t) { return hn_types[t].minimum < 0; }
HN_INLINE bool hn_has_parts(hn_dtype t) { return hn_types[t].scales >= HN_PARTS_U4; }
HN_INLINE bool hn_has_part_minimums(hn_dtype t) { return hn_types[t].scales == HN_PARTS_U4; }
/* What is subtracted from a code to get its value, if codes are numbers; of levels, what makes all of them unsigned. */
HN_INLINE int hn_offset_of(hn_dtype t) { return -hn_types[t].least; }
/* Values that reach beyond 64 are not made unsigned where a product of bytes has to fit 16 bits. */
HN_INLINE bool hn_has_large_values(hn_dtype t) { return hn_types[t].least < -64; }
/* Whether the sum of a part, 16 values times 16 activations to 127, fits 16 bits. */
HN_INLINE bool hn_parts_fit_words(hn_dtype t) {
    return 16 * 127 * (hn_types[t].least < -hn_types[t].most ? -hn_types[t].least : hn_types[t].most) <= INT16_MAX;
}
/* Block number `block` of output `lane`. */
void hn_strip_block(hn_dtype t, const void *strip, int lane, int block, hn_lane_block *out);
#endif
