/* SPDX-License-Identifier: Apache-2.0 */
/* flush.h - the floating-point mode for products of bf16 in levels without an instruction for them: numbers smaller
 * than 2^-126 are zero. */
#ifndef HN_FLUSH_H
#define HN_FLUSH_H
#include <immintrin.h>

/* Operands and results smaller than 2^-126 are zero until hn_flush_end gets the result of this. Between the two, floats
 * are computed only in functions that are not inlined: a compiler may move arithmetic, but no call, over a change of
 * modes. */
static inline unsigned hn_flush_begin(void) {
    const unsigned modes = _mm_getcsr();
    _mm_setcsr(modes | _MM_FLUSH_ZERO_ON | 0x40); /* 0x40: denormal operands are zero */
    return modes;
}
static inline void hn_flush_end(unsigned modes) { _mm_setcsr(modes); }
#endif
