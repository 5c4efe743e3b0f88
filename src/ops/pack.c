/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - writes and reads the strip layout of pack.h. A permutation of bits: no weight is changed or rounded.
 *
 * Codes are handled as words of four, a byte each: a stored block becomes words in the order of the inputs
 * (block_words, the only function that depends on how a type stores its codes), which pieces_put writes to lines by the
 * rule of pack.h and words_get reads back. Scales: head_put, head_get. Stored layouts: base/dtype.h.
 */
#include "ops/pack.h"

#include <assert.h>
#include <string.h>

#include "ops/act.h"

#define INLINE static inline __attribute__((always_inline)) /* called with constant types only */

INLINE int min_int(int a, int b) { return a < b ? a : b; }

size_t hn_strip_bytes(hn_dtype t, int in) {
    const hn_layout l = hn_layout_of(t);
    if (hn_is_block_type(t)) return hn_super_bytes(l) * (size_t)((in + l.inputs - 1) / l.inputs);
    if (t == HN_BF16) return (size_t)((in + 1) / 2) * 64;
    return (t == HN_F8_E4M3 ? hn_f8_head(in) : 0) + ((size_t)in * HN_STRIP * (size_t)hn_dtype_block_bytes(t) + 63) / 64 * 64;
}

INLINE uint32_t word_at(const unsigned char *p) {
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

/* A mask of the lowest `bits` bits in each byte of a word. */
INLINE uint32_t low_bits(int bits) { return ((1u << bits) - 1) * 0x01010101u; }

/* ---- codes of a stored block ------------------------------------------------------------------------------------- */

/* 32 nibbles: w[i] and w[i + 4] from the nibbles of the same four bytes. */
INLINE void nibble_words(const unsigned char *q, uint32_t w[8]) {
    for (int r = 0; r < 4; r++) {
        w[r] = word_at(q + 4 * r) & low_bits(4);
        w[r + 4] = word_at(q + 4 * r) >> 4 & low_bits(4);
    }
}

/* 32 codes that are `bits` bits of each of 32 bytes, from bit `shift` on, put `at` bits up. */
INLINE void field_words(const unsigned char *q, int shift, int bits, int at, uint32_t w[8]) {
    for (int r = 0; r < 8; r++) w[r] |= (word_at(q + 4 * r) >> shift & low_bits(bits)) << at;
}

/* Bit i of 32 becomes the fifth bit of code i. */
INLINE void fifth_bits(const unsigned char *h, uint32_t w[8]) {
    uint32_t bits = word_at(h);
    for (int r = 0; r < 8; r++) w[r] |= ((bits >> 4 * r & 15) * 0x00204081u & low_bits(1)) << 4;
}

/* Codes of the j-th 32 weights of a stored block: w[r] holds codes 4r .. 4r + 3. */
INLINE void block_words(hn_dtype t, const unsigned char *b, int j, uint32_t w[8]) {
    const int half = j / 4, quarter = j % 4; /* K types store groups of 128 weights */
    memset(w, 0, 8 * sizeof *w);
    switch (t) {
    case HN_Q4_0: case HN_IQ4_NL: nibble_words(b + 2, w); break;
    case HN_Q4_1: nibble_words(b + 4, w); break;
    case HN_MXFP4: nibble_words(b + 1, w); break;
    case HN_Q5_0: nibble_words(b + 6, w), fifth_bits(b + 2, w); break;
    case HN_Q5_1: nibble_words(b + 8, w), fifth_bits(b + 4, w); break;
    case HN_IQ4_XS: nibble_words(b + 8 + 16 * j, w); break;
    case HN_Q4_K: field_words(b + 16 + 32 * (j / 2), 4 * (j % 2), 4, 0, w); break;
    case HN_Q5_K: field_words(b + 48 + 32 * (j / 2), 4 * (j % 2), 4, 0, w), field_words(b + 16, j, 1, 4, w); break;
    case HN_Q2_K: field_words(b + 16 + 32 * half, 2 * quarter, 2, 0, w); break;
    case HN_Q3_K: field_words(b + 32 + 32 * half, 2 * quarter, 2, 0, w), field_words(b, j, 1, 2, w); break;
    case HN_Q6_K:
        field_words(b + 64 * half + 32 * (quarter % 2), 4 * (quarter / 2), 4, 0, w);
        field_words(b + 128 + 32 * half, 2 * quarter, 2, 4, w);
        break;
    default: /* Q8_0: signed to unsigned, code = q + 128 */
        for (int r = 0; r < 8; r++) w[r] = word_at(b + 2 + 4 * r) ^ 0x80808080u;
    }
}

/* ---- codes of a strip's block -------------------------------------------------------------------------------------- */

/* `bits` bits of each code, from bit `shift` on, to one lane of `bits` lines. */
INLINE void piece_put(const uint32_t w[8], int shift, int bits, unsigned char *lane) {
    for (int l = 0; l < bits; l++, lane += 64) {
        uint32_t line = 0;
        for (int i = 0; i < 8 / bits; i++) line |= (w[l + bits * i] >> shift & low_bits(bits)) << bits * i;
        memcpy(lane, &line, sizeof line);
    }
}

static void piece_get(const unsigned char *lane, int shift, int bits, uint32_t w[8]) {
    for (int r = 0; r < 8; r++) w[r] |= (word_at(lane + 64 * (r % bits)) >> bits * (r / bits) & low_bits(bits)) << shift;
}

/* ---- scales of a superblock ------------------------------------------------------------------------------------------ */

/* The k-th 16 halves, and the k-th 16 bytes after the first 64. */
INLINE void half_put(unsigned char *head, int k, int lane, const unsigned char *half) {
    memcpy(head + 32 * k + 2 * lane, half, 2);
}
INLINE unsigned char *byte_row(unsigned char *head, int k, int lane) { return head + 64 + 16 * k + lane; }

/* The scale and the minimum, six bits each, of part j of 8. Parts 4 to 7 keep their high bits above those of part j - 4. */
INLINE void six_bits(const unsigned char *sm, int j, unsigned char *s, unsigned char *m) {
    *s = j < 4 ? sm[j] & 63 : (unsigned char)((sm[j + 4] & 15) | sm[j - 4] >> 6 << 4);
    *m = j < 4 ? sm[j + 4] & 63 : (unsigned char)(sm[j + 4] >> 4 | sm[j] >> 6 << 4);
}

static void q3_k_scales_put(const unsigned char *s, int lane, unsigned char *head) {
    unsigned char scale[16];
    for (int p = 0; p < 16; p++) {
        scale[p] = (unsigned char)((s[p % 8] >> p / 8 * 4 & 15) | (s[8 + p % 4] >> p / 4 * 2 & 3) << 4);
    }
    for (int k = 0; k < 8; k++) {
        *byte_row(head, k, lane) = (unsigned char)((scale[2 * k] & 15) | (scale[2 * k + 1] & 15) << 4);
    }
    for (int k = 0; k < 4; k++) {
        int high = 0;
        for (int i = 0; i < 4; i++) high |= scale[4 * k + i] >> 4 << 2 * i;
        *byte_row(head, 8 + k, lane) = (unsigned char)high;
    }
}

/* Scales of a stored block, whose weights begin at block b of the superblock. */
INLINE void head_put(hn_dtype t, const unsigned char *src, int b, int lane, unsigned char *head) {
    switch (t) {
    case HN_Q4_1: case HN_Q5_1:
        half_put(head, b, lane, src);
        half_put(head, 2 + b, lane, src + 2);
        break;
    case HN_MXFP4: head[16 * b + lane] = src[0]; break;
    case HN_Q4_K: case HN_Q5_K:
        half_put(head, 0, lane, src);
        half_put(head, 1, lane, src + 2);
        for (int j = 0; j < 8; j++) six_bits(src + 4, j, byte_row(head, 2 * j, lane), byte_row(head, 2 * j + 1, lane));
        break;
    case HN_IQ4_XS:
        half_put(head, 0, lane, src);
        for (int j = 0; j < 8; j++) {
            int high = src[2 + j / 4] >> 2 * (j % 4) & 3, low = src[4 + j / 2] >> 4 * (j % 2) & 15;
            *byte_row(head, j, lane) = (unsigned char)((low | high << 4) - 32);
        }
        break;
    case HN_Q2_K:
        half_put(head, 0, lane, src + 80);
        half_put(head, 1, lane, src + 82);
        for (int p = 0; p < 16; p++) *byte_row(head, p, lane) = src[p];
        break;
    case HN_Q3_K:
        half_put(head, 0, lane, src + 108);
        q3_k_scales_put(src + 96, lane, head);
        break;
    case HN_Q6_K:
        half_put(head, 0, lane, src + 208);
        for (int p = 0; p < 16; p++) *byte_row(head, p, lane) = src[192 + p];
        break;
    default: half_put(head, b, lane, src); /* Q4_0, Q5_0, Q8_0, IQ4_NL */
    }
}

static float half_at(const unsigned char *head, int k, int lane) {
    uint16_t h;
    memcpy(&h, head + 32 * k + 2 * lane, sizeof h);
    return hn_f16_to_f32(h);
}

/* Both parts of block b have the same scale s, and minimum m. */
static void one_scale(hn_lane_block *out, int s, int m) {
    out->s[0] = out->s[1] = s;
    out->m[0] = out->m[1] = m;
}

/* Scales of block b of a superblock. */
static void head_get(hn_dtype t, const unsigned char *head, int b, int lane, hn_lane_block *out) {
    const unsigned char *row = head + 64 + lane;
    out->d = half_at(head, hn_types[t].scales == HN_SCALE_F16 ? b : 0, lane);
    out->dmin = 0;
    one_scale(out, 1, 1);
    switch (hn_types[t].scales) {
    case HN_NO_SCALES: break;
    case HN_SCALE_F16:
        if (hn_has_minimum(t)) out->dmin = half_at(head, 2 + b, lane);
        break;
    case HN_SCALE_E8: out->d = hn_mxfp4_scale(head[16 * b + lane]); break;
    case HN_SCALE_U6:
        out->dmin = -half_at(head, 1, lane);
        one_scale(out, row[32 * b], row[32 * b + 16]);
        break;
    case HN_SCALE_S6: one_scale(out, (int8_t)row[16 * b], 0); break;
    case HN_PARTS_U4:
        out->dmin = -half_at(head, 1, lane);
        for (int i = 0; i < 2; i++) {
            out->s[i] = row[16 * (2 * b + i)] & 15;
            out->m[i] = row[16 * (2 * b + i)] >> 4;
        }
        break;
    case HN_PARTS_S6:
        for (int i = 0; i < 2; i++) {
            int low = row[16 * b] >> 4 * i & 15, high = row[128 + 16 * (b / 2)] >> (4 * (b % 2) + 2 * i) & 3;
            out->s[i] = (low | high << 4) - 32;
        }
        break;
    case HN_PARTS_S8:
        for (int i = 0; i < 2; i++) out->s[i] = (int8_t)row[16 * (2 * b + i)];
        break;
    }
}

/* ---- packing ------------------------------------------------------------------------------------------------------------ */

/* Superblock by superblock, so that the writes of 16 rows stay in the L1 cache. */
INLINE void pack_blocks(hn_dtype t, int lanes, int in, const unsigned char *src, size_t row_bytes, unsigned char *strip) {
    const hn_layout l = hn_layout_of(t);
    const int stored = hn_dtype_block(t); /* weights a stored block */
    const size_t stored_bytes = (size_t)hn_dtype_block_bytes(t);
    for (int k = 0; k < in; k += stored, src += stored_bytes) {
        unsigned char *head = strip + hn_super_bytes(l) * (size_t)(k / l.inputs);
        const int first = k % l.inputs / HN_BLOCK;
        for (int lane = 0; lane < lanes; lane++) {
            const unsigned char *from = src + row_bytes * (size_t)lane;
            unsigned char *to = head + l.head + hn_block_bytes(l) * (size_t)first + 4 * lane;
            head_put(t, from, first, lane, head);
            for (int j = 0; j < stored / HN_BLOCK; j++, to += hn_block_bytes(l)) {
                uint32_t w[8];
                block_words(t, from, j, w);
                piece_put(w, 0, l.low, to);
                if (l.high) piece_put(w, l.low, l.high, to + 64 * l.low);
            }
        }
    }
}

/* Elements of `size` bytes: [lane][input] to [input][16 lanes], some inputs at a time. */
INLINE void pack_floats(size_t size, int lanes, int in, const unsigned char *src, size_t row_bytes, unsigned char *dst) {
    for (int k = 0; k < in; k += HN_GROUP) {
        const int end = min_int(in, k + HN_GROUP);
        for (int lane = 0; lane < lanes; lane++) {
            const unsigned char *row = src + row_bytes * (size_t)lane;
            for (int i = k; i < end; i++) {
                memcpy(dst + size * ((size_t)i * HN_STRIP + (size_t)lane), row + size * (size_t)i, size);
            }
        }
    }
}

typedef void pack_fn(int lanes, int in, const unsigned char *src, size_t row_bytes, unsigned char *strip);
#define PACK_BLOCKS(type, ...)                                                                                              \
    static void pack_##type(int lanes, int in, const unsigned char *src, size_t row_bytes, unsigned char *strip) {          \
        pack_blocks(HN_##type, lanes, in, src, row_bytes, strip);                                                           \
    }
HN_BLOCK_TYPES(PACK_BLOCKS)

#define PACK_FLOATS(type, bytes)                                                                                            \
    static void pack_##type(int lanes, int in, const unsigned char *src, size_t row_bytes, unsigned char *strip) {          \
        pack_floats(bytes, lanes, in, src, row_bytes, strip);                                                               \
    }
PACK_FLOATS(F32, 4)
PACK_FLOATS(F16, 2)
PACK_FLOATS(F8_E4M3, 1)

/* Pairs of inputs as one element; the rest of half a pair is zero. */
static void pack_BF16(int lanes, int in, const unsigned char *src, size_t row_bytes, unsigned char *strip) {
    pack_floats(4, lanes, in / 2, src, row_bytes, strip);
    for (int lane = 0; lane < lanes && in % 2; lane++) {
        memcpy(strip + 64 * (size_t)(in / 2) + 4 * (size_t)lane, src + row_bytes * (size_t)lane + 2 * (size_t)(in - 1), 2);
    }
}

#define ENTRY(type, ...) [HN_##type] = pack_##type,
static pack_fn *const packers[HN_WEIGHT_TYPES] = {HN_BLOCK_TYPES(ENTRY) HN_FLOAT_TYPES(ENTRY)};

void hn_pack_strip(hn_dtype t, int out, int in, const void *src, size_t row_bytes, const float *factors, int first, void *dst) {
    unsigned char *strip = dst;
    assert((t == HN_F8_E4M3) == (factors != NULL));
    memset(strip, 0, hn_strip_bytes(t, in));
    if (factors) {
        memcpy(strip, factors, (size_t)((in + HN_F8_TILE - 1) / HN_F8_TILE) * sizeof *factors);
        strip += hn_f8_head(in);
    }
    packers[t](min_int(out - first, HN_STRIP), in, (const unsigned char *)src + row_bytes * (size_t)first, row_bytes, strip);
}

void hn_pack_parts(int out, int in, const hn_stored *from, int first, void *dst) {
    const hn_layout l = hn_layout_of(HN_MXFP4);
    const int lanes = min_int(out - first, HN_STRIP);
    unsigned char *strip = dst, block[17];
    memset(strip, 0, hn_strip_bytes(HN_MXFP4, in));
    for (int b = 0; b < in / HN_BLOCK; b++) {
        const int place = b % (l.inputs / HN_BLOCK);
        unsigned char *head = strip + hn_super_bytes(l) * (size_t)(b * HN_BLOCK / l.inputs);
        for (int lane = 0; lane < lanes; lane++) {
            const size_t row = (size_t)(first + lane);
            uint32_t w[8];
            hn_mxfp4_join(from->scales[row * from->scale_bytes + (size_t)b],
                          (const unsigned char *)from->rows + row * from->row_bytes + 16 * (size_t)b, block);
            head_put(HN_MXFP4, block, place, lane, head);
            block_words(HN_MXFP4, block, 0, w);
            piece_put(w, 0, l.low, head + l.head + hn_block_bytes(l) * (size_t)place + 4 * lane);
        }
    }
}

/* ---- lanes ----------------------------------------------------------------------------------------------------------------- */

/* Copies a lane of `rows` rows of 16 values of `size` bytes: 1, 2 or 4, each a copy of a known size. */
static void copy_lane(size_t rows, size_t size, const unsigned char *src, int from, unsigned char *dst, int to) {
    const size_t step = size * HN_STRIP;
    dst += size * (size_t)to;
    src += size * (size_t)from;
    switch (size) {
    case 1:
        for (size_t i = 0; i < rows; i++) dst[step * i] = src[step * i];
        break;
    case 2:
        for (size_t i = 0; i < rows; i++) memcpy(dst + step * i, src + step * i, 2);
        break;
    default:
        for (size_t i = 0; i < rows; i++) memcpy(dst + step * i, src + step * i, 4);
    }
}

void hn_strip_copy_lane(hn_dtype t, int in, const void *strip, int from, void *other, int to) {
    const hn_layout l = hn_layout_of(t);
    const unsigned char *src = strip, *end = src + hn_strip_bytes(t, in);
    unsigned char *dst = other;
    if (!hn_is_block_type(t)) {
        const size_t size = t == HN_BF16 ? 4 : (size_t)hn_dtype_block_bytes(t), head = t == HN_F8_E4M3 ? hn_f8_head(in) : 0;
        memcpy(dst, src, head);
        copy_lane((size_t)(t == HN_BF16 ? (in + 1) / 2 : in), size, src + head, from, dst + head, to);
        return;
    }
    /* halves first, then bytes; a line of codes is 16 words */
    const int halves = l.halves, codes = (int)hn_super_bytes(l) - l.head;
    for (; src < end; src += hn_super_bytes(l), dst += hn_super_bytes(l)) {
        copy_lane((size_t)halves, 2, src, from, dst, to);
        copy_lane((size_t)(l.head - 32 * halves) / HN_STRIP, 1, src + 32 * halves, from, dst + 32 * halves, to);
        copy_lane((size_t)codes / 64, 4, src + l.head, from, dst + l.head, to);
    }
}

/* ---- reading back ---------------------------------------------------------------------------------------------------------- */

static int8_t value_of(hn_dtype t, int code) {
    return hn_types[t].levels ? hn_types[t].levels[code] : (int8_t)(code - hn_offset_of(t));
}

void hn_strip_block(hn_dtype t, const void *strip, int lane, int block, hn_lane_block *out) {
    const hn_layout l = hn_layout_of(t);
    const int blocks = l.inputs / HN_BLOCK;
    const unsigned char *head = (const unsigned char *)strip + hn_super_bytes(l) * (size_t)(block / blocks);
    const unsigned char *codes = head + l.head + hn_block_bytes(l) * (size_t)(block % blocks) + 4 * lane;
    uint32_t w[8] = {0};
    unsigned char code[HN_BLOCK];
    piece_get(codes, 0, l.low, w);
    if (l.high) piece_get(codes + 64 * l.low, l.low, l.high, w);
    memcpy(code, w, sizeof code);
    for (int k = 0; k < HN_BLOCK; k++) out->v[k] = value_of(t, code[k]);
    head_get(t, head, block % blocks, lane, out);
}

/* Inputs [k, k + count) of one block. */
static void block_row(hn_dtype t, const void *strip, int lane, int k, int count, float *dst) {
    hn_lane_block b;
    hn_strip_block(t, strip, lane, k / HN_BLOCK, &b);
    for (int i = 0; i < count; i++) {
        const int at = k % HN_BLOCK + i, part = at / HN_PART;
        const float scale = b.d * (float)b.s[part], product = scale * (float)b.v[at];
        const float minimum = b.dmin * (float)b.m[part];
        dst[i] = hn_has_minimum(t) ? product + minimum : product;
    }
}

/* One number of a float type. */
static float float_at(hn_dtype t, const unsigned char *p) {
    uint16_t half;
    float full;
    switch (t) {
    case HN_F8_E4M3: return hn_f8_to_f32(*p);
    case HN_F32: memcpy(&full, p, sizeof full); return full;
    default: memcpy(&half, p, sizeof half); return t == HN_F16 ? hn_f16_to_f32(half) : hn_bf16_to_f32(half);
    }
}

/* The index of input k of a lane in a float type, in elements. */
static size_t float_place(hn_dtype t, int k, int lane) {
    if (t == HN_BF16) return ((size_t)(k / 2) * HN_STRIP + (size_t)lane) * 2 + (size_t)(k % 2);
    return (size_t)k * HN_STRIP + (size_t)lane;
}

static void float_row(hn_dtype t, int in, const unsigned char *strip, int lane, int k, int count, float *dst) {
    const size_t size = (size_t)hn_dtype_block_bytes(t);
    const unsigned char *values = strip + (t == HN_F8_E4M3 ? hn_f8_head(in) : 0);
    for (int i = k; i < k + count; i++) dst[i - k] = float_at(t, values + size * float_place(t, i, lane));
    for (int i = k; i < k + count && t == HN_F8_E4M3; i++) {
        float factor;
        memcpy(&factor, strip + sizeof factor * (size_t)(i / HN_F8_TILE), sizeof factor);
        dst[i - k] *= factor;
    }
}

void hn_strip_row(hn_dtype t, int in, const void *strip, int lane, int k, int count, float *dst) {
    if (!hn_is_block_type(t)) {
        float_row(t, in, strip, lane, k, count, dst);
        return;
    }
    for (int part; count > 0; k += part, dst += part, count -= part) {
        part = min_int(count, HN_BLOCK - k % HN_BLOCK);
        block_row(t, strip, lane, k, part, dst);
    }
}
