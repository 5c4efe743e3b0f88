/* SPDX-License-Identifier: Apache-2.0 */
/* act.h - the memory layout of the rows of a matrix input (hn_act).
 *
 *   [Q8 row 0] ... [Q8 row max_rows-1] [F32 row 0] ... [F32 row max_rows-1] [BF16 row 0] ... [BF16 row max_rows-1]
 *
 * An F32 row is the row itself. A BF16 row is rounded to nearest even, numbers smaller than 2^-126 to zero; if `in` is
 * odd a zero follows. A Q8 row is a run of groups of 64 inputs (hn_q8_group), as the weight strips are, so that a
 * kernel walks both with one counter; they are followed by a run of hn_q8_parts, which only types with a scale for
 * every 16 weights read. Inputs beyond `in` in the last group are zero codes with zero scale. Rows are an odd number of
 * cache lines apart, so that a tile of rows does not fall into one set of the L1 cache.
 */
#ifndef HN_ACT_H
#define HN_ACT_H
#include "ops/ops.h"

enum { HN_GROUP = 64, HN_BLOCK = 32, HN_PART = 16 }; /* inputs a group; a block, which has one scale; a part of a block */

/* Two blocks. d: scale; ds: d * (float)sum of the block's codes, rounded (for types with a minimum); n8, n128: -8 and
 * -128 times the sum, to subtract the offset of unsigned weight codes (Q4_0, Q8_0). */
typedef struct hn_q8_group {
    int8_t q[HN_GROUP];
    float d[2], ds[2];
    int32_t n8[2], n128[2];
} hn_q8_group;
_Static_assert(sizeof(hn_q8_group) == 96, "kernels walk rows in steps of 96 bytes");

/* The same group's parts: -4 and -32 times the sum of each part's codes (offsets of Q3_K and Q6_K, minimum of Q2_K). */
typedef struct hn_q8_parts {
    int32_t n4[4], n32[4];
} hn_q8_parts;

/* Sets what follows from the codes of block b, whose scale is set; part: the sums of its two parts. */
static inline void hn_q8_set_sums(hn_q8_group *g, hn_q8_parts *parts, int b, const int32_t part[2]) {
    const int32_t sum = part[0] + part[1];
    g->ds[b] = g->d[b] * (float)sum;
    g->n8[b] = -8 * sum;
    g->n128[b] = -128 * sum;
    for (int p = 0; p < 2; p++) {
        parts->n4[2 * b + p] = -4 * part[p];
        parts->n32[2 * b + p] = -32 * part[p];
    }
}
_Static_assert(sizeof(hn_q8_parts) == 32, "kernels walk parts in steps of 32 bytes");

static inline int hn_act_groups(int in) { return (in + HN_GROUP - 1) / HN_GROUP; }
static inline size_t hn_act_lines(size_t bytes) { return ((bytes + 63) / 64 | 1) * 64; }
/* From the start of a Q8 row to its parts. */
static inline size_t hn_act_parts_off(int in) { return (size_t)hn_act_groups(in) * sizeof(hn_q8_group); }
static inline size_t hn_act_q8_stride(int in) {
    return hn_act_lines((size_t)hn_act_groups(in) * (sizeof(hn_q8_group) + sizeof(hn_q8_parts)));
}
static inline size_t hn_act_f32_stride(int in) { return hn_act_lines((size_t)in * sizeof(float)); }
static inline size_t hn_act_bf16_stride(int in) { return hn_act_lines((size_t)((in + 1) / 2) * 2 * sizeof(uint16_t)); }

static inline size_t hn_act_size(int in, int max_rows) {
    return (hn_act_q8_stride(in) + hn_act_f32_stride(in) + hn_act_bf16_stride(in)) * (size_t)max_rows;
}
static inline size_t hn_act_q8_off(int in, int row) { return hn_act_q8_stride(in) * (size_t)row; }
static inline size_t hn_act_f32_off(int in, int max_rows, int row) {
    return hn_act_q8_stride(in) * (size_t)max_rows + hn_act_f32_stride(in) * (size_t)row;
}
static inline size_t hn_act_bf16_off(int in, int max_rows, int row) {
    return hn_act_f32_off(in, max_rows, max_rows) + hn_act_bf16_stride(in) * (size_t)row;
}

/* `count` (even) numbers of a BF16 row as f32, with the two of each pair swapped: the order in which pairs are multiplied. */
static inline void hn_act_swapped_bf16(const uint16_t *x, int count, float *y) {
    for (int i = 0; i < count; i++) y[i ^ 1] = hn_bf16_to_f32(x[i]);
}
#endif
