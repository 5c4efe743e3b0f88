/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c - what the element types of stored tensors are called, how large they are, and what their bits mean.
 *
 * Owns the table of types and the one scalar decoding of each, which the reference kernels and the repacking build on.
 * The order and numbers are those of hn_dtype in dtype.h and of the GGUF format.
 */
#include "base/dtype.h"

#include <string.h>

#include "base/mem.h"

static const struct {
    const char *name;
    uint32_t ggml;
    int block, bytes;
} types[HN_DTYPES] = {
    [HN_F32] = {"F32", 0, 1, 4},    [HN_F16] = {"F16", 1, 1, 2},    [HN_BF16] = {"BF16", 30, 1, 2},
    [HN_Q4_0] = {"Q4_0", 2, 32, 18}, [HN_Q4_1] = {"Q4_1", 3, 32, 20}, [HN_Q8_0] = {"Q8_0", 8, 32, 34},
    [HN_I32] = {"I32", 26, 1, 4},   [HN_I64] = {"I64", 27, 1, 8},   [HN_I8] = {"I8", 24, 1, 1},
    [HN_U8] = {"U8", UINT32_MAX, 1, 1}, [HN_I16] = {"I16", 25, 1, 2}, [HN_F64] = {"F64", 28, 1, 8},
};

/* Names by ggml number, for messages about types that hunch does not read. Gaps were removed from the format. */
static const char *const ggml_names[] = {
    "F32",     "F16",     "Q4_0",   "Q4_1",  "Q4_2",  "Q4_3",  "Q5_0",    "Q5_1",    "Q8_0",  "Q8_1",
    "Q2_K",    "Q3_K",    "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS",  "IQ3_XXS", "IQ1_S",
    "IQ4_NL",  "IQ3_S",   "IQ2_S",  "IQ4_XS", "I8",   "I16",   "I32",     "I64",     "F64",   "IQ1_M",
    "BF16",    "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0", "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",
};

const char *hn_dtype_name(hn_dtype t) {
    return types[t].name;
}

int hn_dtype_block(hn_dtype t) {
    return types[t].block;
}

int hn_dtype_block_bytes(hn_dtype t) {
    return types[t].bytes;
}

bool hn_dtype_row_bytes(hn_dtype t, uint64_t cols, size_t *bytes) {
    uint64_t block = (uint64_t)types[t].block;
    if (cols % block != 0 || cols / block > SIZE_MAX) return false;
    return hn_mul_size((size_t)(cols / block), (size_t)types[t].bytes, bytes);
}

bool hn_dtype_from_ggml(uint32_t ggml_type, hn_dtype *out) {
    for (int t = 0; t < HN_DTYPES; t++) {
        if (types[t].ggml == ggml_type && t != HN_U8) {
            *out = (hn_dtype)t;
            return true;
        }
    }
    return false;
}

const char *hn_ggml_type_name(uint32_t ggml_type) {
    return ggml_type < sizeof ggml_names / sizeof *ggml_names ? ggml_names[ggml_type] : NULL;
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
        /* Normal. A carry out of the fraction runs into the exponent, which is what rounding up to 2^k, or to
         * infinity, means. */
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

static uint16_t u16_at(const unsigned char *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static void q4_0_block(const unsigned char *b, float *dst) {
    float d = hn_f16_to_f32(u16_at(b));
    for (int i = 0; i < 16; i++) {
        dst[i] = d * (float)((b[2 + i] & 15) - 8);
        dst[i + 16] = d * (float)((b[2 + i] >> 4) - 8);
    }
}

static void q4_1_block(const unsigned char *b, float *dst) {
    float d = hn_f16_to_f32(u16_at(b)), m = hn_f16_to_f32(u16_at(b + 2));
    for (int i = 0; i < 16; i++) {
        /* Two roundings, as ggml: -ffp-contract=off keeps the compiler from fusing them. */
        float low = d * (float)(b[4 + i] & 15), high = d * (float)(b[4 + i] >> 4);
        dst[i] = low + m;
        dst[i + 16] = high + m;
    }
}

static void q8_0_block(const unsigned char *b, float *dst) {
    float d = hn_f16_to_f32(u16_at(b));
    for (int i = 0; i < 32; i++) dst[i] = d * (float)(signed char)b[2 + i];
}

/* Small data types (I32, …) hold numbers, not weights: they are converted by value. */
static float scalar_at(hn_dtype t, const unsigned char *p) {
    union { int16_t i16; int32_t i32; int64_t i64; float f32; double f64; } v = {0};
    memcpy(&v, p, (size_t)types[t].bytes);
    switch (t) {
    case HN_F32: return v.f32;
    case HN_F16: return hn_f16_to_f32(u16_at(p));
    case HN_BF16: return hn_bf16_to_f32(u16_at(p));
    case HN_I32: return (float)v.i32;
    case HN_I64: return (float)v.i64;
    case HN_I16: return (float)v.i16;
    case HN_F64: return (float)v.f64;
    case HN_I8: return (float)(signed char)*p;
    default: return (float)*p; /* HN_U8 */
    }
}

void hn_dequantise(hn_dtype t, const void *src, size_t n, float *dst) {
    const unsigned char *p = src;
    size_t blocks = n / (size_t)types[t].block;
    if (t == HN_F32) {
        if (n) memcpy(dst, src, n * sizeof *dst);
        return;
    }
    for (size_t i = 0; i < blocks; i++, p += types[t].bytes, dst += types[t].block) {
        switch (t) {
        case HN_Q4_0: q4_0_block(p, dst); break;
        case HN_Q4_1: q4_1_block(p, dst); break;
        case HN_Q8_0: q8_0_block(p, dst); break;
        default: *dst = scalar_at(t, p);
        }
    }
}
