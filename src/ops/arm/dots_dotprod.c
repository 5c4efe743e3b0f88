/* SPDX-License-Identifier: Apache-2.0 */
/* dots_dotprod.c - peak rate of dot products of bytes (peak_dots_tmpl.h). */
#include <arm_neon.h>

#define PEAK_DOTS hn_dots_int8_dotprod
#define PEAK_SUM int32x4_t
#define PEAK_ZERO vdupq_n_s32(0)
#define PEAK_X vdupq_n_s8(1)
#define PEAK_ADD(s, x) vdotq_s32(s, x, x)
#define PEAK_MACS 16
#define PEAK_SUMS 16
#define PEAK_REGISTER "w"
#include "ops/peak_dots_tmpl.h"
