/* SPDX-License-Identifier: Apache-2.0 */
/* exps.h - e^x of many numbers, most of the work of softmax and SwiGLU. For floats without calls and branches, so that
 * compilers vectorise it, and so that the bits of a training do not depend on a C library's exp; for doubles the
 * library's. */
#ifndef HN_EXPS_H
#define HN_EXPS_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ops/exp_poly.h"
#include "train/math/real.h"

/* x, or `limit` if the bits of x are in (from, to] as integers. Comparisons of floats may trap: compilers turn them
 * into branches, and do not vectorise. */
static inline float hn_exp_limit(float x, float limit, int32_t from, int32_t to) {
    int32_t bits, other;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&other, &limit, sizeof other);
    const int32_t beyond = -(int32_t)((bits > from) & (bits <= to));
    bits = (bits & ~beyond) | (other & beyond);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* To 2 units in the last place; clamped to -87..88. NaN stays NaN. */
static inline float hn_exp_float(float x) {
    x = hn_exp_limit(x, HN_EXP_LO, -0x3D520000, -0x800000); /* -87, -infinity: as integers they increase with the magnitude */
    x = hn_exp_limit(x, HN_EXP_HI, 0x42B00000, 0x7F800000); /* 88, infinity */
    const float k =
        x * HN_EXP_LOG2E + 0x1.8p23f; /* a unit in the last place is 1: rounds, and the low bits are an integer */
    const float whole = k - 0x1.8p23f, r = (x - whole * HN_EXP_LN2_HI) - whole * HN_EXP_LN2_LO;
    const float p = (((HN_EXP_P4 * r + HN_EXP_P3) * r + HN_EXP_P2) * r + HN_EXP_P1) * r + HN_EXP_P0;
    uint32_t bits;
    float power;
    memcpy(&bits, &k, sizeof bits);
    bits = (bits - 0x4B400000u + 127) << 23;
    memcpy(&power, &bits, sizeof power);
    return (1 + (p * (r * r) + r)) * power;
}

/* y[i] = e^(x[i] - less). y may be x: a local block is between them, so that a compiler can assume no aliasing. */
static inline void hn_exps(hn_real *y, const hn_real *x, hn_real less, int n) {
    enum { SOME = 64 };
    hn_real block[SOME];
    for (int at = 0; at < n; at += SOME) {
        const int here = n - at < SOME ? n - at : SOME;
        for (int i = 0; i < here; i++) block[i] = x[at + i] - less;
#ifdef HN_TRAIN_DOUBLE
        for (int i = 0; i < here; i++) block[i] = exp(block[i]);
#else
        for (int i = 0; i < here; i++) block[i] = hn_exp_float(block[i]);
#endif
        for (int i = 0; i < here; i++) y[at + i] = block[i];
    }
}
#endif
