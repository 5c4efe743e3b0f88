/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.h - element types of stored tensors, with ggml's type numbers and block layouts. */
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
typedef enum hn_dtype {
    HN_F32, HN_F16, HN_BF16, HN_F8_E4M3,
    HN_Q4_0, HN_Q4_1, HN_Q5_0, HN_Q5_1, HN_Q8_0, HN_Q2_K, HN_Q3_K, HN_Q4_K, HN_Q5_K, HN_Q6_K,
    HN_IQ4_NL, HN_IQ4_XS, HN_MXFP4,
    HN_WEIGHT_TYPES, /* kernels multiply by matrices of the types above; those below are only small data */
    HN_I32 = HN_WEIGHT_TYPES, HN_I64, HN_I8, HN_U8, HN_I16, HN_F64,
    HN_DTYPES
} hn_dtype;

const char *hn_dtype_name(hn_dtype t);  /* "F32", "Q4_1", … */
int hn_dtype_block(hn_dtype t);         /* weights a block: 1, 32 or 256 */
int hn_dtype_block_bytes(hn_dtype t);   /* bytes a block */
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
/* The 16 signed values of the codes of IQ4_NL and IQ4_XS, and of MXFP4. */
extern const int8_t hn_iq4_levels[16], hn_mxfp4_levels[16];
/* A block of MXFP4 from its scale and its 32 codes as safetensors have them: 2i and 2i + 1 in byte i, the first one low. */
void hn_mxfp4_join(uint8_t scale, const uint8_t codes[16], uint8_t block[17]);
/* n stored weights at src (n whole blocks) to f32, each computed as ggml does: every product and sum rounded to f32. */
void hn_dequantise(hn_dtype t, const void *src, size_t n, float *dst);
/* n floats to F32, BF16, F16, Q8_0 or Q4_0 at dst (n whole blocks), as ggml's reference does it. */
void hn_quantise(hn_dtype t, const float *src, size_t n, void *dst);
#endif
