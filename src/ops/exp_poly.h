/* SPDX-License-Identifier: Apache-2.0 */
/* exp_poly.h - the constants of hn_exp and GELU, shared by their scalar and vector forms, which agree bit for bit:
 *   x clamped to [LO, HI]; k = rint(x * LOG2E); r = fma(k, -LN2_LO, fma(k, -LN2_HI, x));
 *   p = Horner in r of P4..P0, each step an fma; q = fma(p, r * r, r); result (1 + q) * 2^k.
 * P: Chebyshev fit of (e^r - 1 - r) / r^2 on +-ln(2)/2, relative error of the whole 1.1e-8 before rounding.
 *   0.5 x (1 + tanh(t)) = x / (1 + e^(-2t)), t = sqrt(2 / pi) (x + 0.044715 x^3):
 *   x / (1 + exp(GELU_T * fma(GELU_CUBE * x * x, x, x))), left to right.
 *   tanh(t) = m / (m + 2), m = e^(2t) - 1 = fma(q, 2^k, 2^k - 1) of x = 2t: exact to a few ulp near 0 too. */
#ifndef HN_EXP_POLY_H
#define HN_EXP_POLY_H
#define HN_EXP_LO (-87.0f)
#define HN_EXP_HI 88.0f
#define HN_EXP_LOG2E 0x1.715476p+0f
#define HN_EXP_LN2_HI 0.693359375f
#define HN_EXP_LN2_LO (-0x1.bd0106p-13f)
#define HN_EXP_P0 0x1.000000p-1f
#define HN_EXP_P1 0x1.5554dcp-3f
#define HN_EXP_P2 0x1.5554e8p-5f
#define HN_EXP_P3 0x1.120c68p-7f
#define HN_EXP_P4 0x1.6d444ep-10f
/* 2^f - 1 = f (P0 + f (P1 + f P2)) for |f| <= 1/2, to 1e-4: for results that are rounded to bf16. */
#define HN_EXP2_LO (-125.0f)
#define HN_EXP2_P0 0x1.62f5fap-1f
#define HN_EXP2_P1 0x1.f00c4cp-3f
#define HN_EXP2_P2 0x1.c2a218p-5f
#define HN_GELU_CUBE 0.044715f
#define HN_GELU_T (-2 * 0.7978845608f)
#endif
