/* SPDX-License-Identifier: Apache-2.0 */
/* dots_i8mm.c - peak rate of products of 2 x 8 by 8 x 2 bytes (peak_dots_tmpl.h). */
#include <arm_neon.h>

#define PEAK_DOTS hn_dots_int8_i8mm
#define PEAK_SUM int32x4_t
#define PEAK_ZERO vdupq_n_s32(0)
#define PEAK_X vdupq_n_s8(1)
#define PEAK_ADD(s, x) vmmlaq_s32(s, x, x)
#define PEAK_MACS 32
#define PEAK_SUMS 16
#define PEAK_REGISTER "w"
#include "ops/peak_dots_tmpl.h"
