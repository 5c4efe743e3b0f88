/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.h - element types of stored tensors: one table that all else about a type follows from.
 *
 * A new weight type is a row here, a decode (and an encode) in dtype.c, its codes and scales in ops/pack.c, and a form of scales in the
 * kernels if its own is none of these. */
#ifndef HN_DTYPE_H
#define HN_DTYPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Weights come in blocks that share scales. Fields in the order of the file; d, m: f16; 4 bits: low nibble first.
 * 32 weights, w[i] and w[i + 16] from the nibbles of byte i:
 *   Q4_0    d  q[16]            w = d*(q - 8)
 *   Q4_1    d  m  q[16]         w = d*q + m
 *   Q5_0    d  h[4]  q[16]      w = d*(q - 16), fifth bit of w[i]: bit i of h
 *   Q5_1    d  m  h[4]  q[16]   w = d*q + m
 *   Q8_0    d  q[32]            w = d*q, q signed
 *   IQ4_NL  d  q[16]            w = d*level[q], 16 fixed levels
 *   MXFP4   e  q[16]            w = 2^(e-128)*level[q], e one byte, 16 fixed levels: those of e2m1, doubled
 * 256 weights, in parts of 16 or 32 that have a scale s, some a minimum m, as small integers:
 *   Q2_K    sm[16]  q[64]  d  dmin           parts of 16   w = d*s*q - dmin*m
 *   Q3_K    h[32]  q[64]  s[12]  d           parts of 16   w = d*(s - 32)*(q - 4)
 *   Q4_K    d  dmin  sm[12]  q[128]          parts of 32   w = d*s*q - dmin*m
 *   Q5_K    d  dmin  sm[12]  h[32]  q[128]   parts of 32   w = d*s*q - dmin*m
 *   Q6_K    q[128]  h[64]  s[16]  d          parts of 16   w = d*s*(q - 32), s signed
 *   IQ4_XS  d  s[6]  q[128]                  parts of 32   w = d*(s - 32)*level[q], the levels of IQ4_NL
 * One weight: F8_E4M3, the form without infinities (2209.05433: e4m3fn; 0x7F and 0xFF are NaN). Matrices of it come with
 * an f32 factor for each tile of HN_F8_TILE x HN_F8_TILE weights, which is in another tensor. */
enum { HN_F8_TILE = 128 };

/* What the scales of a block type are, in a file as in a strip. */
typedef enum hn_scales_form {
    HN_NO_SCALES, /* not a block type */
    HN_SCALE_F16, /* of each 32 weights: d, and m if there is a minimum */
    HN_SCALE_E8,  /* of each 32 weights: a power of two */
    HN_SCALE_U6,  /* of 256: d, dmin; of each 32: s and m of six bits */
    HN_SCALE_S6,  /* of 256: d; of each 32: s of six bits, 32 subtracted */
    HN_PARTS_U4,  /* of 256: d, dmin; of each part of 16: s and m of four bits */
    HN_PARTS_S6,  /* of 256: d; of each part of 16: s of six bits, 32 subtracted */
    HN_PARTS_S8   /* of 256: d; of each part of 16: s of eight bits */
} hn_scales_form;

#define HN_NO_NUMBER UINT32_MAX /* not a type of GGUF, or of a whole file */
/* Rows of the table. ggml: its number in a GGUF; file: general.file_type of a file whose matrices are of it. block, bytes: weights and
 * bytes of a stored block. Of block types: low, high: bits of a code, and those of them that are stored apart; minimum: 1 is added,
 * -1 subtracted; least, most: the values of codes, which are numbers from least on or, if not NULL, the type's levels. decode, encode: of a
 * block (dtype.c); without an encode NULL. */
/*    name     ggml file block bytes low high scales       minimum levels      least most  decode        encode */
#define HN_FLOAT_TYPES(X) \
    X(F32,      0,   0,    1,   4,  0, 0, HN_NO_SCALES,  0, NULL,               0,   0, f32_value,    f32_put) \
    X(F16,      1,   1,    1,   2,  0, 0, HN_NO_SCALES,  0, NULL,               0,   0, f16_value,    f16_put) \
    X(BF16,    30,  32,    1,   2,  0, 0, HN_NO_SCALES,  0, NULL,               0,   0, bf16_value,   bf16_put) \
    X(F8_E4M3, HN_NO_NUMBER, HN_NO_NUMBER, 1, 1, 0, 0, HN_NO_SCALES, 0, NULL,   0,   0, f8_value,     NULL)
#define HN_BLOCK_TYPES(X) \
    X(Q4_0,     2,   2,   32,  18,  4, 0, HN_SCALE_F16,  0, NULL,              -8,   7, q4_0_block,   q4_0_put) \
    X(Q4_1,     3,   3,   32,  20,  4, 0, HN_SCALE_F16,  1, NULL,               0,  15, q4_1_block,   NULL) \
    X(Q5_0,     6,   8,   32,  22,  4, 1, HN_SCALE_F16,  0, NULL,             -16,  15, q5_0_block,   NULL) \
    X(Q5_1,     7,   9,   32,  24,  4, 1, HN_SCALE_F16,  1, NULL,               0,  31, q5_1_block,   NULL) \
    X(Q8_0,     8,   7,   32,  34,  8, 0, HN_SCALE_F16,  0, NULL,            -128, 127, q8_0_block,   q8_0_put) \
    X(Q2_K,    10,  10,  256,  84,  2, 0, HN_PARTS_U4,  -1, NULL,               0,   3, q2_k_block,   NULL) \
    X(Q3_K,    11,  11,  256, 110,  2, 1, HN_PARTS_S6,   0, NULL,              -4,   3, q3_k_block,   NULL) \
    X(Q4_K,    12,  14,  256, 144,  4, 0, HN_SCALE_U6,  -1, NULL,               0,  15, q4_k_block,   NULL) \
    X(Q5_K,    13,  16,  256, 176,  4, 1, HN_SCALE_U6,  -1, NULL,               0,  31, q5_k_block,   NULL) \
    X(Q6_K,    14,  18,  256, 210,  4, 2, HN_PARTS_S8,   0, NULL,             -32,  31, q6_k_block,   NULL) \
    X(IQ4_NL,  20,  25,   32,  18,  4, 0, HN_SCALE_F16,  0, hn_iq4_levels,   -127, 113, iq4_nl_block, NULL) \
    X(IQ4_XS,  23,  30,  256, 136,  4, 0, HN_SCALE_S6,   0, hn_iq4_levels,   -127, 113, iq4_xs_block, NULL) \
    X(MXFP4,   39,  38,   32,  17,  4, 0, HN_SCALE_E8,   0, hn_mxfp4_levels,  -12,  12, mxfp4_block,  NULL)
#define HN_NUMBER_TYPES(X) \
    X(I32,     26, HN_NO_NUMBER, 1, 4, 0, 0, HN_NO_SCALES, 0, NULL, 0, 0, i32_value, NULL) \
    X(I64,     27, HN_NO_NUMBER, 1, 8, 0, 0, HN_NO_SCALES, 0, NULL, 0, 0, i64_value, NULL) \
    X(I8,      24, HN_NO_NUMBER, 1, 1, 0, 0, HN_NO_SCALES, 0, NULL, 0, 0, i8_value,  NULL) \
    X(U8, HN_NO_NUMBER, HN_NO_NUMBER, 1, 1, 0, 0, HN_NO_SCALES, 0, NULL, 0, 0, u8_value, NULL) \
    X(I16,     25, HN_NO_NUMBER, 1, 2, 0, 0, HN_NO_SCALES, 0, NULL, 0, 0, i16_value, NULL) \
    X(F64,     28, HN_NO_NUMBER, 1, 8, 0, 0, HN_NO_SCALES, 0, NULL, 0, 0, f64_value, NULL)

#define HN_TYPE_NUMBER(name, ...) HN_##name,
typedef enum hn_dtype {
    HN_FLOAT_TYPES(HN_TYPE_NUMBER) HN_BLOCK_TYPES(HN_TYPE_NUMBER)
    HN_WEIGHT_TYPES, /* kernels multiply by matrices of the types above; those below are only small data */
    HN_LAST_WEIGHT_TYPE = HN_WEIGHT_TYPES - 1,
    HN_NUMBER_TYPES(HN_TYPE_NUMBER)
    HN_DTYPES
} hn_dtype;
#undef HN_TYPE_NUMBER

/* The 16 signed values of the codes of IQ4_NL and IQ4_XS, and of MXFP4. */
extern const int8_t hn_iq4_levels[16], hn_mxfp4_levels[16];

/* In the header, so that with a type that is constant, as in kernels, every field is. */
typedef struct hn_type_desc {
    const char *name;
    uint32_t ggml, file;
    short block, bytes, least, most;
    signed char low, high, minimum;
    hn_scales_form scales;
    const int8_t *levels;
} hn_type_desc;
#define HN_TYPE_ROW(name, ggml, file, block, bytes, low, high, scales, minimum, levels, least, most, decode, encode) \
    [HN_##name] = {#name, ggml, file, block, bytes, least, most, low, high, minimum, scales, levels},
static const hn_type_desc hn_types[HN_DTYPES] = {HN_FLOAT_TYPES(HN_TYPE_ROW) HN_BLOCK_TYPES(HN_TYPE_ROW) HN_NUMBER_TYPES(HN_TYPE_ROW)};
#undef HN_TYPE_ROW

static inline const char *hn_dtype_name(hn_dtype t) { return hn_types[t].name; } /* "F32", "Q4_1", … */
static inline int hn_dtype_block(hn_dtype t) { return hn_types[t].block; }       /* weights a block: 1, 32 or 256 */
static inline int hn_dtype_block_bytes(hn_dtype t) { return hn_types[t].bytes; }
static inline double hn_dtype_bits(hn_dtype t) { return 8.0 * hn_types[t].bytes / hn_types[t].block; } /* of a weight */
bool hn_dtype_row_bytes(hn_dtype t, uint64_t cols, size_t *bytes); /* false: not whole blocks, or overflow */
bool hn_dtype_from_ggml(uint32_t ggml_type, hn_dtype *out);
const char *hn_ggml_type_name(uint32_t ggml_type); /* also of types that hunch does not read; NULL if unknown */

float hn_f16_to_f32(uint16_t h);
uint16_t hn_f32_to_f16(float f);  /* round to nearest even */
static inline float hn_bf16_to_f32(uint16_t b) {
    union { uint32_t u; float f; } v = {(uint32_t)b << 16};
    return v.f;
}
uint16_t hn_f32_to_bf16(float f); /* round to nearest even; NaN stays NaN */
float hn_f8_to_f32(uint8_t b);    /* F8_E4M3 */
float hn_mxfp4_scale(uint8_t e);  /* 2^(e-128), subnormal for 0 and 1; as in ggml 2^127 for 255, a NaN in the specification */
/* A block of MXFP4 from its scale and its 32 codes as safetensors have them: 2i and 2i + 1 in byte i, the first one low. */
void hn_mxfp4_join(uint8_t scale, const uint8_t codes[16], uint8_t block[17]);
/* n stored weights at src (n whole blocks) to f32, each computed as ggml does: every product and sum rounded to f32. */
void hn_dequantise(hn_dtype t, const void *src, size_t n, float *dst);
/* n floats to a type that has an encode, at dst (n whole blocks), as ggml's reference does it. */
void hn_quantise(hn_dtype t, const float *src, size_t n, void *dst);
#endif
