/* SPDX-License-Identifier: Apache-2.0 */
/* dots_avx512.c - peak rate of dot products of bytes (peak_dots_tmpl.h). */
#include <immintrin.h>

#define PEAK_DOTS hn_dots_int8_avx512
#define PEAK_SUM __m512i
#define PEAK_ZERO _mm512_setzero_si512()
#define PEAK_X _mm512_set1_epi8(1)
#define PEAK_ADD(s, x) _mm512_dpbusd_epi32(s, x, x)
#define PEAK_MACS 64
#define PEAK_SUMS 16
#define PEAK_REGISTER "v"
#include "ops/peak_dots_tmpl.h"
