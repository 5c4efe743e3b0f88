/* SPDX-License-Identifier: Apache-2.0 */
/* flush.h - what products of bf16 ask of levels that have no instruction for them: numbers smaller than 2^-126 count as
 * zero, and a pair's second product comes first. */
#ifndef HN_FLUSH_H
#define HN_FLUSH_H
#include <immintrin.h>

#include "base/dtype.h"

/* Operands and results smaller than 2^-126 are zero until hn_flush_end gets what this returns. Between the two, floats are
 * computed in functions that are not inlined only: a compiler may move arithmetic, but no call, over a change of modes. */
static inline unsigned hn_flush_begin(void) {
    const unsigned modes = _mm_getcsr();
    _mm_setcsr(modes | _MM_FLUSH_ZERO_ON | 0x40); /* 0x40: denormal operands are zero */
    return modes;
}
static inline void hn_flush_end(unsigned modes) { _mm_setcsr(modes); }

/* `count` numbers, even, as f32, the two of each pair swapped. */
static inline void hn_swapped_bf16(const uint16_t *x, int count, float *y) {
    for (int i = 0; i < count; i++) y[i ^ 1] = hn_bf16_to_f32(x[i]);
}
#endif
