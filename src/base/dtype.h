/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.h - element types of stored tensors, with ggml's type numbers and block layouts. */
#ifndef HN_DTYPE_H
#define HN_DTYPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block of 32 weights: Q4_0 {f16 d; u8 q[16]}  w = d*(nibble-8)   (byte i: weight i low nibble, i+16 high nibble)
 *                        Q4_1 {f16 d, m; u8 q[16]} w = d*nibble + m
 *                        Q8_0 {f16 d; i8 q[32]}  w = d*q */
typedef enum hn_dtype {
    HN_F32, HN_F16, HN_BF16, HN_Q4_0, HN_Q4_1, HN_Q8_0,
    HN_WEIGHT_TYPES,       /* the types above can be matrices; those below only small data */
    HN_I32 = HN_WEIGHT_TYPES, HN_I64, HN_I8, HN_U8, HN_I16, HN_F64,
    HN_DTYPES
} hn_dtype;

const char *hn_dtype_name(hn_dtype t);  /* "F32", "Q4_1", … */
int hn_dtype_block(hn_dtype t);         /* weights a block: 1 or 32 */
int hn_dtype_block_bytes(hn_dtype t);   /* bytes a block */
bool hn_dtype_row_bytes(hn_dtype t, uint64_t cols, size_t *bytes); /* false: not whole blocks, or overflow */
bool hn_dtype_from_ggml(uint32_t ggml_type, hn_dtype *out);
const char *hn_ggml_type_name(uint32_t ggml_type); /* also of types we do not read; NULL if unknown */

float hn_f16_to_f32(uint16_t h);
uint16_t hn_f32_to_f16(float f);  /* round to nearest even */
static inline float hn_bf16_to_f32(uint16_t b) {
    union { uint32_t u; float f; } v = {(uint32_t)b << 16};
    return v.f;
}
uint16_t hn_f32_to_bf16(float f); /* round to nearest even; NaN stays NaN */
/* n stored weights at src (n whole blocks) to f32, each computed as ggml does: product and sum rounded to f32. */
void hn_dequantise(hn_dtype t, const void *src, size_t n, float *dst);
#endif
