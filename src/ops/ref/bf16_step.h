/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_step.h - the step of products of bf16, as in vdpbf16ps and in levels without it under FTZ and DAZ. */
#ifndef HN_BF16_STEP_H
#define HN_BF16_STEP_H
#include <math.h>
#include <stdbool.h>

static inline float bf16_flushed(float v) { return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v; }

/* w * x + c of flushed numbers, rounded once; zero if it is smaller than 2^-126 before it is rounded to the coarser
 * steps of denormals, which is tested on 2^64 times the value. No branches, so that a compiler can vectorise over
 * outputs. */
static inline float bf16_step(float w, float x, float c) {
    const float sum = fmaf(w, x, c), large = fmaf(w * 0x1p64f, x, c * 0x1p64f);
    const bool tiny = (fabsf(sum) <= 0x1p-126f) & (fabsf(large) < 0x1p-62f);
    return tiny ? copysignf(0, sum) : sum;
}
#endif
