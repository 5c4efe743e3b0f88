/* SPDX-License-Identifier: Apache-2.0 */
/* math_neon.h - hn_exp, tanh, sums over lanes and loads of a few lanes, 4 at a time. Included by files compiled for an ARM level
 * only. */
#ifndef HN_MATH_NEON_H
#define HN_MATH_NEON_H
#include <arm_neon.h>
#include <stdbool.h>
#include <string.h>

#include "ops/exp_poly.h"
#include "ops/unroll.h"

/* e^x = (1 + result) * *power. */
HN_INLINE float32x4_t hn_exp_parts_neon(float32x4_t x, float32x4_t *power) {
    /* NaN stays NaN to the end; as an integer it is 0 */
    x = vminq_f32(vmaxq_f32(x, vdupq_n_f32(HN_EXP_LO)), vdupq_n_f32(HN_EXP_HI));
    const float32x4_t k = vrndnq_f32(vmulq_f32(x, vdupq_n_f32(HN_EXP_LOG2E)));
    float32x4_t r = vfmaq_f32(x, k, vdupq_n_f32(-HN_EXP_LN2_HI));
    r = vfmaq_f32(r, k, vdupq_n_f32(-HN_EXP_LN2_LO));
    float32x4_t p = vfmaq_f32(vdupq_n_f32(HN_EXP_P3), vdupq_n_f32(HN_EXP_P4), r);
    p = vfmaq_f32(vdupq_n_f32(HN_EXP_P2), p, r);
    p = vfmaq_f32(vdupq_n_f32(HN_EXP_P1), p, r);
    p = vfmaq_f32(vdupq_n_f32(HN_EXP_P0), p, r);
    *power = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(k), vdupq_n_s32(127)), 23));
    return vfmaq_f32(r, p, vmulq_f32(r, r));
}

HN_INLINE float32x4_t hn_exp_neon(float32x4_t x) {
    float32x4_t power, q = hn_exp_parts_neon(x, &power);
    return vmulq_f32(vaddq_f32(vdupq_n_f32(1.0f), q), power);
}

HN_INLINE float32x4_t hn_tanh_neon(float32x4_t t) {
    float32x4_t power, q = hn_exp_parts_neon(vaddq_f32(t, t), &power);
    const float32x4_t m = vfmaq_f32(vsubq_f32(power, vdupq_n_f32(1.0f)), q, power);
    return vdivq_f32(m, vaddq_f32(m, vdupq_n_f32(2.0f)));
}

/* 16 lanes of a sum: the tree of ref/norm.c, halves are added, 8, 4, 2, 1. */
HN_INLINE float hn_sum_neon(const float32x4_t *lanes) {
    const float32x4_t a = vaddq_f32(vaddq_f32(lanes[0], lanes[2]), vaddq_f32(lanes[1], lanes[3]));
    const float32x2_t b = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
}

/* The first min(4, count) floats at p; other lanes are zero, and are not changed in memory. count > 0. */
HN_INLINE float32x4_t hn_load_neon(const float *p, int count) {
    if (count >= 4) return vld1q_f32(p);
    float v[4] = {0};
    memcpy(v, p, (size_t)count * sizeof *p);
    return vld1q_f32(v);
}
HN_INLINE void hn_store_neon(float *p, int count, float32x4_t v) {
    if (count >= 4) {
        vst1q_f32(p, v);
    } else {
        float some[4];
        vst1q_f32(some, v);
        memcpy(p, some, (size_t)count * sizeof *p);
    }
}

/* Operands and results smaller than 2^-126 are zero until hn_flush_end_neon gets the result of this, and returns
 * whether a result was made zero. Between the two, floats are computed only in functions that are not inlined: a
 * compiler may move arithmetic, but no call, over a change of modes. */
enum { HN_FLUSH = 1 << 24, HN_FLUSHED = 1 << 3 }; /* FZ of the modes, UFC of the state */
HN_INLINE uint64_t hn_flush_begin_neon(void) {
    uint64_t modes, state;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(modes), "=r"(state) : : "memory");
    __asm__ volatile("msr fpsr, %0\n\tmsr fpcr, %1" : : "r"(state & ~(uint64_t)HN_FLUSHED), "r"(modes | HN_FLUSH) : "memory");
    return modes;
}
HN_INLINE bool hn_flush_end_neon(uint64_t modes) {
    uint64_t state;
    __asm__ volatile("mrs %0, fpsr\n\tmsr fpcr, %1" : "=&r"(state) : "r"(modes) : "memory");
    return (state & HN_FLUSHED) != 0;
}

/* f16 as f32, which is exact. */
HN_INLINE float32x4_t hn_f16_neon(uint16x4_t v) { return vcvt_f32_f16(vreinterpret_f16_u16(v)); }
#endif
