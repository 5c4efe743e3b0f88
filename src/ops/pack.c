/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - writes and reads the strip layout of pack.h. Plain byte shuffling: no weight is changed or rounded. */
#include "ops/pack.h"

#include <string.h>

#include "ops/act.h"

enum { Q4_0_BYTES = 18, Q4_1_BYTES = 20, Q8_0_BYTES = 34 }; /* stored blocks: d, (m,) codes */

static size_t element_bytes(hn_dtype t) { return t == HN_F32 ? 4 : 2; }

size_t hn_strip_bytes(hn_dtype t, int in) {
    if (hn_is_block_type(t)) return hn_group_bytes(t) * (size_t)hn_act_groups(in);
    return ((size_t)in * HN_STRIP * element_bytes(t) + 63) / 64 * 64;
}

/* Lane o of block b of a group from one stored block. */
static void pack_block(hn_dtype t, const unsigned char *src, int o, int b, unsigned char *group) {
    size_t lane = (size_t)o, block = (size_t)b;
    memcpy(group + 32 * block + 2 * lane, src, 2);
    if (t == HN_Q4_1) memcpy(group + 64 + 32 * block + 2 * lane, src + 2, 2);
    const unsigned char *codes = src + (t == HN_Q4_1 ? 4 : 2);
    int lines = t == HN_Q8_0 ? 8 : 4;
    unsigned char *dst = group + hn_group_head(t) + block * 64 * (size_t)lines + 4 * lane;
    for (int r = 0; r < lines; r++, dst += 64, codes += 4) {
        uint32_t word;
        memcpy(&word, codes, 4);
        if (t == HN_Q8_0) word ^= 0x80808080u; /* signed to unsigned: code = q + 128 */
        memcpy(dst, &word, 4);
    }
}

static void pack_lane_blocks(hn_dtype t, int in, const unsigned char *row, int o, unsigned char *dst) {
    size_t step = t == HN_Q4_0 ? Q4_0_BYTES : t == HN_Q4_1 ? Q4_1_BYTES : Q8_0_BYTES;
    for (int i = 0; i < in / HN_BLOCK; i++, row += step) {
        pack_block(t, row, o, i % 2, dst + hn_group_bytes(t) * (size_t)(i / 2));
    }
}

static void pack_lane_floats(hn_dtype t, int in, const unsigned char *row, int o, unsigned char *dst) {
    size_t size = element_bytes(t);
    dst += size * (size_t)o;
    for (int k = 0; k < in; k++, dst += size * HN_STRIP, row += size) memcpy(dst, row, size);
}

void hn_pack_strip(hn_dtype t, int out, int in, const void *src, size_t row_bytes, int first, void *dst) {
    memset(dst, 0, hn_strip_bytes(t, in));
    for (int o = 0; o < HN_STRIP && first + o < out; o++) {
        const unsigned char *row = (const unsigned char *)src + row_bytes * (size_t)(first + o);
        if (hn_is_block_type(t)) {
            pack_lane_blocks(t, in, row, o, dst);
        } else {
            pack_lane_floats(t, in, row, o, dst);
        }
    }
}

/* ---- reading back ------------------------------------------------------------------------------------------------ */

static float half_at(const unsigned char *p, int i) {
    uint16_t h;
    memcpy(&h, p + 2 * i, sizeof h);
    return hn_f16_to_f32(h);
}

static float block_weight(hn_dtype t, const unsigned char *strip, int lane, int k) {
    const unsigned char *group = strip + hn_group_bytes(t) * (size_t)(k / HN_GROUP);
    int b = k % HN_GROUP / HN_BLOCK, i = k % HN_BLOCK;
    float d = half_at(group, 16 * b + lane);
    const unsigned char *codes = group + hn_group_head(t) + (size_t)b * (t == HN_Q8_0 ? 512 : 256);
    if (t == HN_Q8_0) return d * (float)(codes[i / 4 * 64 + 4 * lane + i % 4] - 128);
    int byte = codes[i % 16 / 4 * 64 + 4 * lane + i % 4];
    int nibble = i < 16 ? byte & 15 : byte >> 4;
    if (t == HN_Q4_0) return d * (float)(nibble - 8);
    float product = d * (float)nibble;
    return product + half_at(group + 64, 16 * b + lane);
}

void hn_strip_row(hn_dtype t, const void *strip, int lane, int k, int count, float *dst) {
    const unsigned char *p = strip;
    for (int i = 0; i < count; i++) {
        size_t at = (size_t)(k + i) * HN_STRIP + (size_t)lane;
        if (hn_is_block_type(t)) {
            dst[i] = block_weight(t, p, lane, k + i);
        } else if (t == HN_F32) {
            memcpy(&dst[i], p + 4 * at, 4);
        } else {
            uint16_t h;
            memcpy(&h, p + 2 * at, 2);
            dst[i] = t == HN_F16 ? hn_f16_to_f32(h) : hn_bf16_to_f32(h);
        }
    }
}
