/* SPDX-License-Identifier: Apache-2.0 */
/* exps.h - e^x of many numbers: what softmax and SwiGLU mostly are. Of floats without a call and without a branch, so
 * that compilers take several at once, and so that no C library's exp is in the bits of a training; of doubles the
 * library's. */
#ifndef HN_EXPS_H
#define HN_EXPS_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ops/exp_poly.h"
#include "train/real.h"

/* x, or `limit` where the bits of x are in (from, to] as integers. Comparisons of floats may trap: compilers make
 * branches of them, and take one number at a time. */
static inline float hn_exp_limit(float x, float limit, int32_t from, int32_t to) {
    int32_t bits, other;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&other, &limit, sizeof other);
    const int32_t beyond = -(int32_t)((bits > from) & (bits <= to));
    bits = (bits & ~beyond) | (other & beyond);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* To 2 units in the last place; of what is below -87 as of -87, above 88 as of 88. NaN stays NaN. */
static inline float hn_exp_float(float x) {
    x = hn_exp_limit(x, HN_EXP_LO, -0x3D520000, -0x800000); /* -87, -infinity: as integers they rise away from 0 */
    x = hn_exp_limit(x, HN_EXP_HI, 0x42B00000, 0x7F800000); /* 88, infinity */
    const float k =
        x * HN_EXP_LOG2E + 0x1.8p23f; /* where a unit in the last place is 1: rounds, and holds an integer below */
    const float whole = k - 0x1.8p23f, r = (x - whole * HN_EXP_LN2_HI) - whole * HN_EXP_LN2_LO;
    const float p = (((HN_EXP_P4 * r + HN_EXP_P3) * r + HN_EXP_P2) * r + HN_EXP_P1) * r + HN_EXP_P0;
    uint32_t bits;
    float power;
    memcpy(&bits, &k, sizeof bits);
    bits = (bits - 0x4B400000u + 127) << 23;
    memcpy(&power, &bits, sizeof power);
    return (1 + (p * (r * r) + r)) * power;
}

/* y[i] = e^(x[i] - less). y may be x: a block of its own is between them, which a compiler knows to be apart. */
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
