/* SPDX-License-Identifier: Apache-2.0 */
/* dots_avx512bf16.c - peak rate of dot products of bf16 pairs (peak_dots_tmpl.h). */
#include <immintrin.h>

#define PEAK_DOTS hn_dots_bf16_avx512bf16
#define PEAK_SUM __m512
#define PEAK_ZERO _mm512_setzero_ps()
#define PEAK_X ((__m512bh)_mm512_setzero_si512())
#define PEAK_ADD(s, x) _mm512_dpbf16_ps(s, x, x)
#define PEAK_MACS 32
#define PEAK_SUMS 16
#define PEAK_REGISTER "v"
#include "ops/peak_dots_tmpl.h"
