/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c - names, sizes and decoding of the element types of stored tensors.
 *
 * Owns the one scalar decoding of each type, which the reference kernels and the repacking build on; the table is in dtype.h.
 */
#include "base/dtype.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/* Names by ggml number of the types that hunch does not read, for messages. Gaps were removed from the format. */
static const char *const other_names[] = {
    [4] = "Q4_2",      [5] = "Q4_3",      [9] = "Q8_1",      [15] = "Q8_K",   [16] = "IQ2_XXS", [17] = "IQ2_XS",
    [18] = "IQ3_XXS",  [19] = "IQ1_S",    [21] = "IQ3_S",    [22] = "IQ2_S",  [29] = "IQ1_M",   [31] = "Q4_0_4_4",
    [32] = "Q4_0_4_8", [33] = "Q4_0_8_8", [34] = "TQ1_0",    [35] = "TQ2_0",  [36] = "IQ4_NL_4_4", [37] = "IQ4_NL_4_8",
    [38] = "IQ4_NL_8_8",
};

bool hn_dtype_row_bytes(hn_dtype t, uint64_t cols, size_t *bytes) {
    const uint64_t block = (uint64_t)hn_types[t].block;
    if (cols % block != 0 || cols / block > SIZE_MAX) return false;
    return hn_mul_size((size_t)(cols / block), (size_t)hn_types[t].bytes, bytes);
}

bool hn_dtype_from_ggml(uint32_t ggml_type, hn_dtype *out) {
    for (int t = 0; t < HN_DTYPES; t++) {
        if (hn_types[t].ggml == ggml_type && ggml_type != HN_NO_NUMBER) {
            *out = (hn_dtype)t;
            return true;
        }
    }
    return false;
}

const char *hn_ggml_type_name(uint32_t ggml_type) {
    hn_dtype t;
    if (hn_dtype_from_ggml(ggml_type, &t)) return hn_dtype_name(t);
    return ggml_type < sizeof other_names / sizeof *other_names ? other_names[ggml_type] : NULL;
}

static uint32_t f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float f32_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float hn_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 0x3FF;
    if (exponent == 31) return f32_from_bits(sign | 0x7F800000 | fraction << 13); /* infinity, NaN */
    if (exponent == 0) {
        float tiny = (float)fraction * 0x1p-24f; /* zero and subnormals: exact in f32 */
        return f32_from_bits(sign | f32_bits(tiny));
    }
    return f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* value / 2^shift, to nearest, ties to even. */
static uint32_t shift_round(uint32_t value, int shift) {
    uint32_t half = 1u << (shift - 1), rest = value & (2 * half - 1), quotient = value >> shift;
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

uint16_t hn_f32_to_f16(float f) {
    uint32_t u = f32_bits(f), sign = u >> 16 & 0x8000, magnitude = u & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF)); /* NaN, made quiet */
    if (magnitude >= 0x47800000) return (uint16_t)(sign | 0x7C00);                           /* 2^16 and above */
    if (magnitude >= 0x38800000) {
        /* Normal. A carry out of the fraction goes into the exponent: the value is rounded up to 2^k, or to infinity. */
        return (uint16_t)(sign | (shift_round(magnitude, 13) - (112u << 10)));
    }
    int exponent = (int)(magnitude >> 23);
    if (exponent < 102) return (uint16_t)sign; /* below half of the smallest subnormal */
    return (uint16_t)(sign | shift_round((magnitude & 0x7FFFFF) | 0x800000, 126 - exponent));
}

uint16_t hn_f32_to_bf16(float f) {
    uint32_t u = f32_bits(f);
    if ((u & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(u >> 16 | 0x40); /* rounding could turn a NaN into infinity */
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

/* ---- blocks, as laid out in dtype.h; -ffp-contract=off keeps products from fusing with sums --------------------- */

static uint16_t u16_at(const unsigned char *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static float f16_at(const unsigned char *p) {
    return hn_f16_to_f32(u16_at(p));
}

static void q4_0_block(const unsigned char *b, float *dst) {
    float d = f16_at(b);
    for (int i = 0; i < 16; i++) {
        dst[i] = d * (float)((b[2 + i] & 15) - 8);
        dst[i + 16] = d * (float)((b[2 + i] >> 4) - 8);
    }
}

static void q4_1_block(const unsigned char *b, float *dst) {
    float d = f16_at(b), m = f16_at(b + 2);
    for (int i = 0; i < 16; i++) {
        float low = d * (float)(b[4 + i] & 15), high = d * (float)(b[4 + i] >> 4);
        dst[i] = low + m;
        dst[i + 16] = high + m;
    }
}

/* Weight i of 32 in five bits: the fifth is bit i of h. */
static int five_bits(const unsigned char *h, const unsigned char *q, int i) {
    return (q[i % 16] >> i / 16 * 4 & 15) | (h[i / 8] >> i % 8 & 1) << 4;
}

static void q5_0_block(const unsigned char *b, float *dst) {
    float d = f16_at(b);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)(five_bits(b + 2, b + 6, i) - 16);
}

static void q5_1_block(const unsigned char *b, float *dst) {
    float d = f16_at(b), m = f16_at(b + 2);
    for (int i = 0; i < 32; i++) {
        float product = d * (float)five_bits(b + 4, b + 8, i);
        dst[i] = product + m;
    }
}

static void q8_0_block(const unsigned char *b, float *dst) {
    float d = f16_at(b);
    for (int i = 0; i < 32; i++) dst[i] = d * (float)(signed char)b[2 + i];
}

/* 32 weights whose nibbles index a table of levels. */
static void levels_decode(float scale, const int8_t level[16], const unsigned char *q, float *dst) {
    for (int i = 0; i < 16; i++) {
        dst[i] = scale * (float)level[q[i] & 15];
        dst[i + 16] = scale * (float)level[q[i] >> 4];
    }
}

const int8_t hn_iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static void iq4_nl_block(const unsigned char *b, float *dst) {
    levels_decode(f16_at(b), hn_iq4_levels, b + 2, dst);
}

const int8_t hn_mxfp4_levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float hn_mxfp4_scale(uint8_t e) {
    return f32_from_bits(e < 2 ? 0x200000u << e : (uint32_t)(e - 1) << 23);
}

static void mxfp4_block(const unsigned char *b, float *dst) {
    levels_decode(hn_mxfp4_scale(b[0]), hn_mxfp4_levels, b + 1, dst);
}

void hn_mxfp4_join(uint8_t scale, const uint8_t codes[16], uint8_t block[17]) {
    block[0] = scale;
    for (int i = 0; i < 16; i++) {
        const int shift = i % 2 * 4, low = codes[i / 2] >> shift & 15, high = codes[8 + i / 2] >> shift & 15;
        block[1 + i] = (uint8_t)(low | high << 4);
    }
}

/* Two bits of weight i of 256, in Q2_K, Q3_K and Q6_K: 32 bytes hold 128 weights, the lowest bits the first 32. */
static int two_bits(const unsigned char *q, int i) {
    return q[i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
}

/* One bit of weight i of 256, in Q3_K and Q5_K: 32 bytes hold all, bit k the k-th 32 weights. */
static int one_bit(const unsigned char *h, int i) {
    return h[i % 32] >> i / 32 & 1;
}

static void q2_k_block(const unsigned char *b, float *dst) {
    float d = f16_at(b + 80), dmin = f16_at(b + 82);
    for (int i = 0; i < 256; i++) {
        float s = d * (float)(b[i / 16] & 15), m = dmin * (float)(b[i / 16] >> 4);
        float product = s * (float)two_bits(b + 16, i);
        dst[i] = product - m;
    }
}

/* Scale j of 16 in six bits: the low four of j and j + 8 share a byte, the high two of j, j + 4, j + 8, j + 12. */
static int q3_k_scale(const unsigned char *s, int j) {
    return (s[j % 8] >> j / 8 * 4 & 15) | (s[8 + j % 4] >> j / 4 * 2 & 3) << 4;
}

static void q3_k_block(const unsigned char *b, float *dst) {
    float d = f16_at(b + 108);
    for (int i = 0; i < 256; i++) {
        float s = d * (float)(q3_k_scale(b + 96, i / 16) - 32);
        dst[i] = s * (float)((two_bits(b + 32, i) | one_bit(b, i) << 2) - 4);
    }
}

/* The scale s and minimum m of part j of 8, six bits each. Parts 0 to 3: the low bits of bytes 0 to 3 (s) and 4 to 7
 * (m). Parts 4 to 7: four bits each in bytes 8 to 11, the two high ones above those of part j - 4 (bytes j - 4, j). */
static void part_scale(const unsigned char *sm, int j, int *s, int *m) {
    if (j < 4) {
        *s = sm[j] & 63;
        *m = sm[j + 4] & 63;
    } else {
        *s = (sm[j + 4] & 15) | sm[j - 4] >> 6 << 4;
        *m = sm[j + 4] >> 4 | sm[j] >> 6 << 4;
    }
}

/* Q4_K, and Q5_K where h is not NULL. 32 bytes of q hold two parts: low nibbles, then high ones. */
static void parts_decode(const unsigned char *b, const unsigned char *h, const unsigned char *q, float *dst) {
    float d = f16_at(b), dmin = f16_at(b + 2);
    for (int j = 0; j < 8; j++) {
        int s, m;
        part_scale(b + 4, j, &s, &m);
        float scale = d * (float)s, minimum = dmin * (float)m;
        for (int i = 32 * j; i < 32 * j + 32; i++) {
            int code = q[i / 64 * 32 + i % 32] >> j % 2 * 4 & 15;
            if (h != NULL) code |= one_bit(h, i) << 4;
            float product = scale * (float)code;
            dst[i] = product - minimum;
        }
    }
}

static void q4_k_block(const unsigned char *b, float *dst) {
    parts_decode(b, NULL, b + 16, dst);
}

static void q5_k_block(const unsigned char *b, float *dst) {
    parts_decode(b, b + 16, b + 48, dst);
}

/* Low bits: 64 bytes hold 128 weights, 64 in the low nibbles, then 64 in the high ones. */
static void q6_k_block(const unsigned char *b, float *dst) {
    float d = f16_at(b + 208);
    for (int i = 0; i < 256; i++) {
        float s = d * (float)(signed char)b[192 + i / 16];
        int low = b[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15;
        dst[i] = s * (float)((low | two_bits(b + 128, i) << 4) - 32);
    }
}

static void iq4_xs_block(const unsigned char *b, float *dst) {
    float d = f16_at(b);
    for (int j = 0; j < 8; j++) {
        int s = (b[4 + j / 2] >> j % 2 * 4 & 15) | (u16_at(b + 2) >> 2 * j & 3) << 4;
        levels_decode(d * (float)(s - 32), hn_iq4_levels, b + 8 + 16 * j, dst + 32 * j);
    }
}

/* ---- single numbers and whole rows ------------------------------------------------------------------------------ */

/* Like a half with a shorter exponent, whose bias is 8 less, and with other NaNs. */
float hn_f8_to_f32(uint8_t b) {
    uint32_t sign = (uint32_t)(b & 0x80) << 24;
    if ((b & 0x7F) == 0x7F) return f32_from_bits(sign | 0x7FC00000);
    return hn_f16_to_f32((uint16_t)((b & 0x80) << 8 | (b & 0x7F) << 7)) * 256;
}

static void f32_value(const unsigned char *b, float *dst) { memcpy(dst, b, sizeof *dst); }
static void f16_value(const unsigned char *b, float *dst) { *dst = f16_at(b); }
static void bf16_value(const unsigned char *b, float *dst) { *dst = hn_bf16_to_f32(u16_at(b)); }
static void f8_value(const unsigned char *b, float *dst) { *dst = hn_f8_to_f32(*b); }

/* Small data types hold numbers, not weights: they are converted by value. */
#define NUMBER(name, type)                                    \
    static void name(const unsigned char *b, float *dst) {   \
        type v;                                               \
        memcpy(&v, b, sizeof v);                              \
        *dst = (float)v;                                      \
    }
NUMBER(i32_value, int32_t)
NUMBER(i64_value, int64_t)
NUMBER(i8_value, int8_t)
NUMBER(u8_value, uint8_t)
NUMBER(i16_value, int16_t)
NUMBER(f64_value, double)

/* ---- quantising --------------------------------------------------------------------------------------------------- */

static float largest(const float *x) {
    float most = 0;
    for (int i = 0; i < 32; i++)
        if (fabsf(x[i]) > fabsf(most)) most = x[i];
    return most;
}

static void put_half(unsigned char *to, float f) {
    const uint16_t h = hn_f32_to_f16(f);
    memcpy(to, &h, sizeof h);
}

/* 1 / d may be too large for a float; if d is rounded to 0 as a half, the codes do not matter. */
static float inverse_of(float d) {
    return fabsf(d) >= FLT_MIN ? 1 / d : 0;
}

static void q8_0_put(const float *x, unsigned char *to) {
    const float d = fabsf(largest(x)) / 127, inverse = inverse_of(d);
    put_half(to, d);
    for (int i = 0; i < 32; i++) to[2 + i] = (unsigned char)(int8_t)roundf(x[i] * inverse);
}

/* The value of largest magnitude gets code 0 (-8), the one without an opposite. */
static void q4_0_put(const float *x, unsigned char *to) {
    const float d = largest(x) / -8, inverse = inverse_of(d);
    put_half(to, d);
    for (int i = 0; i < 16; i++) {
        const int low = (int)(x[i] * inverse + 8.5f), high = (int)(x[i + 16] * inverse + 8.5f);
        to[2 + i] = (unsigned char)((low < 15 ? low : 15) | (high < 15 ? high : 15) << 4);
    }
}

static void f32_put(const float *x, unsigned char *to) { memcpy(to, x, sizeof *x); }
static void f16_put(const float *x, unsigned char *to) { put_half(to, *x); }
static void bf16_put(const float *x, unsigned char *to) {
    const uint16_t b = hn_f32_to_bf16(*x);
    memcpy(to, &b, sizeof b);
}

/* ---- all types ------------------------------------------------------------------------------------------------------ */

#define CODEC(name, ggml, file, block, bytes, low, high, scales, minimum, levels, least, most, decode, encode) \
    [HN_##name] = {decode, encode},
static const struct {
    void (*decode)(const unsigned char *block, float *to);
    void (*encode)(const float *from, unsigned char *block);
} codecs[HN_DTYPES] = {HN_FLOAT_TYPES(CODEC) HN_BLOCK_TYPES(CODEC) HN_NUMBER_TYPES(CODEC)};

void hn_dequantise(hn_dtype t, const void *src, size_t n, float *dst) {
    const unsigned char *p = src;
    const size_t block = (size_t)hn_types[t].block, bytes = (size_t)hn_types[t].bytes;
    if (t == HN_F32) {
        if (n) memcpy(dst, src, n * sizeof *dst);
        return;
    }
    for (size_t i = 0; i < n / block; i++, p += bytes, dst += block) codecs[t].decode(p, dst);
}

void hn_quantise(hn_dtype t, const float *src, size_t n, void *dst) {
    unsigned char *to = dst;
    const size_t block = (size_t)hn_types[t].block, bytes = (size_t)hn_types[t].bytes;
    assert(codecs[t].encode);
    for (size_t i = 0; i < n / block; i++, src += block, to += bytes) codecs[t].encode(src, to);
}
