/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - the strip layout of weights.
 *
 * A strip is 16 outputs, read by a kernel as one ascending stream of whole cache lines. One layout serves every level.
 *
 * Block types (Q4_0, Q4_1, Q8_0): a run of groups of 64 inputs, that is of two blocks A and B of 32. An odd last block
 * leaves B of the last group zero (scale 0, zero codes).
 *
 *     Q8_0  [d of A: 16 f16][d of B: 16 f16]                                  [codes of A: 512][codes of B: 512]
 *     Q4_0  [d of A: 16 f16][d of B: 16 f16]                                  [codes of A: 256][codes of B: 256]
 *     Q4_1  [d of A: 16 f16][d of B: 16 f16][m of A: 16 f16][m of B: 16 f16]  [codes of A: 256][codes of B: 256]
 *
 *   8-bit codes of a block: 8 lines (64 bytes), line r = inputs 4r..4r+3: output 0's four, output 1's four, ...
 *     Stored unsigned: code = q + 128, so w = d * (code - 128).
 *   4-bit codes: 4 lines, byte 4*o + c of line r: output o, low nibble input 4r + c, high nibble input 16 + 4r + c.
 *     w = d * (code - 8) (Q4_0) or d * code + m (Q4_1).
 *
 * F32, F16, BF16: per input the 16 outputs next to each other; the strip is padded to whole lines.
 */
#ifndef HN_PACK_H
#define HN_PACK_H
#include "ops/ops.h"

static inline int hn_strips(int out) { return (out + HN_STRIP - 1) / HN_STRIP; }
static inline bool hn_is_block_type(hn_dtype t) { return t == HN_Q4_0 || t == HN_Q4_1 || t == HN_Q8_0; }
/* Bytes of scales in front of a group, and of a whole group, of a block type. */
static inline size_t hn_group_head(hn_dtype t) { return t == HN_Q4_1 ? 128 : 64; }
static inline size_t hn_group_bytes(hn_dtype t) { return hn_group_head(t) + (t == HN_Q8_0 ? 1024 : 512); }

size_t hn_strip_bytes(hn_dtype t, int in);
/* One strip from rows [first, first + 16) of a stored matrix; rows at or beyond `out` become zeros. */
void hn_pack_strip(hn_dtype t, int out, int in, const void *src, size_t row_bytes, int first, void *dst);
/* Inputs [k, k + count) of output `lane` of a strip, dequantised exactly as hn_dequantise does the stored row. */
void hn_strip_row(hn_dtype t, const void *strip, int lane, int k, int count, float *dst);
#endif
