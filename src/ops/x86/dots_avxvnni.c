/* SPDX-License-Identifier: Apache-2.0 */
/* dots_avxvnni.c - peak rate of dot products of bytes in their VEX form (peak_dots_tmpl.h). */
#include <immintrin.h>

#define PEAK_DOTS hn_dots_int8_avxvnni
#define PEAK_SUM __m256i
#define PEAK_ZERO _mm256_setzero_si256()
#define PEAK_X _mm256_set1_epi8(1)
#define PEAK_ADD(s, x) _mm256_dpbusd_avx_epi32(s, x, x)
#define PEAK_MACS 32
#define PEAK_SUMS 12
#define PEAK_REGISTER "x"
#include "ops/peak_dots_tmpl.h"
