/* SPDX-License-Identifier: Apache-2.0 */
/* rows_dotprod.c - the row kernels with NEON. Results: ref/norm.c, bit for bit. */
#include <math.h>
#include <string.h>

#include "ops/arm/math_neon.h"
#include "ops/kernels.h"

static float inverse_rms(const float *x, int in, float eps) {
    float32x4_t sum[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    int i = 0;
    for (; i + 16 <= in; i += 16) {
        HN_UNROLL for (int j = 0; j < 4; j++) {
            const float32x4_t v = vld1q_f32(x + i + 4 * j);
            sum[j] = vfmaq_f32(sum[j], v, v);
        }
    }
    for (int j = 0; i + 4 * j < in; j++) {
        const float32x4_t v = hn_load_neon(x + i + 4 * j, in - i - 4 * j);
        sum[j] = vfmaq_f32(sum[j], v, v);
    }
    return 1.0f / sqrtf(hn_sum_neon(sum) / (float)in + eps);
}

static void normalise(const float *x, const float *w, int count, float r, float *y) {
    for (int i = 0; i < count; i += 4) {
        const float32x4_t v = vmulq_f32(hn_load_neon(x + i, count - i), vdupq_n_f32(r));
        hn_store_neon(y + i, count - i, vmulq_f32(v, hn_load_neon(w + i, count - i)));
    }
}

static void add(float *y, const float *x, int count) {
    for (int i = 0; i < count; i += 4) {
        hn_store_neon(y + i, count - i, vaddq_f32(hn_load_neon(y + i, count - i), hn_load_neon(x + i, count - i)));
    }
}

static void geglu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 4) {
        const float32x4_t x = hn_load_neon(gate + i, count - i);
        const float32x4_t cube = vmulq_f32(vmulq_f32(vdupq_n_f32(HN_GELU_CUBE), x), x);
        const float32x4_t t = vmulq_f32(vdupq_n_f32(HN_GELU_T), vfmaq_f32(x, cube, x));
        const float32x4_t gelu = vdivq_f32(x, vaddq_f32(vdupq_n_f32(1.0f), hn_exp_neon(t)));
        hn_store_neon(gate + i, count - i, vmulq_f32(gelu, hn_load_neon(up + i, count - i)));
    }
}

static void exps(float *x, int count) {
    for (int i = 0; i < count; i += 4) hn_store_neon(x + i, count - i, hn_exp_neon(hn_load_neon(x + i, count - i)));
}

static float exp_sum(const float *x, int count, float most) {
    static const int32_t first[4] = {0, 1, 2, 3};
    const float32x4_t m = vdupq_n_f32(most), zero = vdupq_n_f32(0);
    float32x4_t sum[4] = {zero, zero, zero, zero};
    for (int i = 0; i < count; i += 4) {
        const float32x4_t v = hn_load_neon(x + i, count - i), e = hn_exp_neon(vsubq_f32(v, m));
        const uint32x4_t lanes = vandq_u32(vcleq_f32(v, m), vcltq_s32(vld1q_s32(first), vdupq_n_s32(count - i)));
        sum[i / 4 % 4] = vaddq_f32(sum[i / 4 % 4], vbslq_f32(lanes, e, zero));
    }
    return hn_sum_neon(sum);
}

static float exp_moment(const float *x, int count, float most) {
    static const int32_t first[4] = {0, 1, 2, 3};
    const float32x4_t m = vdupq_n_f32(most), low = vdupq_n_f32(HN_EXP_LO), zero = vdupq_n_f32(0);
    float32x4_t sum[4] = {zero, zero, zero, zero};
    for (int i = 0; i < count; i += 4) {
        const float32x4_t d = vsubq_f32(hn_load_neon(x + i, count - i), m);
        const uint32x4_t within = vandq_u32(vcgeq_f32(d, low), vcleq_f32(d, zero));
        const uint32x4_t lanes = vandq_u32(within, vcltq_s32(vld1q_s32(first), vdupq_n_s32(count - i)));
        sum[i / 4 % 4] = vfmaq_f32(sum[i / 4 % 4], vbslq_f32(lanes, hn_exp_neon(d), zero), vbslq_f32(lanes, d, zero));
    }
    return hn_sum_neon(sum);
}

static void softcap(float *x, int count, float cap) {
    const float32x4_t c = vdupq_n_f32(cap);
    for (int i = 0; i < count; i += 4) {
        const float32x4_t t = vdivq_f32(hn_load_neon(x + i, count - i), c);
        hn_store_neon(x + i, count - i, vmulq_f32(c, hn_tanh_neon(t)));
    }
}

/* 32 values. If the scale is NaN or zero, all codes are zero: a value that is not finite times 0 is NaN, and NaN as an integer is 0. */
static void quantise_block(const float *x, hn_q8_group *g, hn_q8_parts *parts, int b) {
    uint32x4_t top = vdupq_n_u32(0);
    HN_UNROLL for (int i = 0; i < 8; i++) top = vmaxq_u32(top, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + 4 * i))));
    const union { uint32_t u; float f; } amax = {vmaxvq_u32(top)};
    const bool finite = amax.u < 0x7f800000u, tiny = amax.f < 0x1p-100f;
    const float32x4_t inverse = vdupq_n_f32(finite && !tiny ? 127.0f / amax.f : 0.0f);
    int32_t part[2];
    HN_UNROLL for (int p = 0; p < 2; p++) {
        int32x4_t q[4];
        HN_UNROLL for (int i = 0; i < 4; i++) {
            q[i] = vcvtnq_s32_f32(vmulq_f32(vld1q_f32(x + HN_PART * p + 4 * i), inverse));
        }
        part[p] = vaddvq_s32(vaddq_s32(vaddq_s32(q[0], q[1]), vaddq_s32(q[2], q[3])));
        const int16x8_t low = vcombine_s16(vmovn_s32(q[0]), vmovn_s32(q[1]));
        const int16x8_t high = vcombine_s16(vmovn_s32(q[2]), vmovn_s32(q[3]));
        vst1q_s8(g->q + HN_BLOCK * b + HN_PART * p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
        parts->n4[2 * b + p] = -4 * part[p];
        parts->n32[2 * b + p] = -32 * part[p];
    }
    const int32_t sum = part[0] + part[1];
    g->d[b] = !finite ? NAN : tiny ? 0.0f : amax.f / 127.0f;
    g->ds[b] = g->d[b] * (float)sum;
    g->n8[b] = -8 * sum;
    g->n128[b] = -128 * sum;
}

static void quantise(const float *x, int count, hn_q8_group *out, hn_q8_parts *parts) {
    for (; count > 0; count -= HN_GROUP, x += HN_GROUP, out++, parts++) {
        float last[HN_GROUP] = {0}; /* zeros beyond the end have no effect */
        const float *from = x;
        if (count < HN_GROUP) from = memcpy(last, x, (size_t)count * sizeof *x);
        quantise_block(from, out, parts, 0);
        quantise_block(from + HN_BLOCK, out, parts, 1);
    }
}

/* Rotates a by b: fma(a, c, -(b s)), fma(b, c, a s). */
HN_INLINE void rotate(float32x4_t *a, float32x4_t *b, float32x4_t c, float32x4_t s) {
    const float32x4_t x = *a, y = *b;
    *a = vfmaq_f32(vnegq_f32(vmulq_f32(y, s)), x, c);
    *b = vfmaq_f32(vmulq_f32(x, s), y, c);
}

static void rope_halves(float *x, const float *cs, int half) {
    for (int i = 0; i < half; i += 4) {
        const int left = half - i;
        float32x4_t a = hn_load_neon(x + i, left), b = hn_load_neon(x + half + i, left);
        rotate(&a, &b, hn_load_neon(cs + i, left), hn_load_neon(cs + half + i, left));
        hn_store_neon(x + i, left, a);
        hn_store_neon(x + half + i, left, b);
    }
}

static void rope_pairs(float *x, const float *cs, int half) {
    for (int i = 0; i < half; i += 4) {
        const int left = half - i, here = left < 4 ? left : 4;
        float pairs[8] = {0};
        memcpy(pairs, x + 2 * i, 2 * (size_t)here * sizeof *x);
        float32x4x2_t v = vld2q_f32(pairs);
        rotate(&v.val[0], &v.val[1], hn_load_neon(cs + i, left), hn_load_neon(cs + half + i, left));
        vst2q_f32(pairs, v);
        memcpy(x + 2 * i, pairs, 2 * (size_t)here * sizeof *x);
    }
}

static void rope(float *x, const float *cs, int dims, bool interleaved) {
    if (interleaved) {
        rope_pairs(x, cs, dims / 2);
    } else {
        rope_halves(x, cs, dims / 2);
    }
}

/* Rounds to nearest even; a NaN keeps its upper bits and becomes quiet. */
HN_INLINE uint16x4_t to_bf16(float32x4_t v) {
    const uint32x4_t u = vreinterpretq_u32_f32(v), high = vshrq_n_u32(u, 16);
    const uint32x4_t r = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), vandq_u32(high, vdupq_n_u32(1)));
    const uint32x4_t quiet = vorrq_u32(high, vdupq_n_u32(0x40));
    return vmovn_u32(vbslq_u32(vceqq_f32(v, v), vshrq_n_u32(r, 16), quiet));
}

static void to_cache(hn_dtype t, const float *x, int count, void *dst) {
    if (t == HN_F32) {
        memcpy(dst, x, (size_t)count * sizeof *x);
        return;
    }
    uint16_t *half = dst;
    for (int i = 0; i < count; i += 4) {
        const float32x4_t v = hn_load_neon(x + i, count - i);
        uint16_t four[4];
        vst1_u16(four, t == HN_F16 ? vreinterpret_u16_f16(vcvt_f16_f32(v)) : to_bf16(v));
        memcpy(half + i, four, (size_t)(count - i < 4 ? count - i : 4) * sizeof *four);
    }
}

/* Numbers smaller than 2^-126 are zero. */
static void round_bf16(const float *x, int count, uint16_t *y) {
    for (int i = 0; i < count; i += 4) {
        const float32x4_t v = hn_load_neon(x + i, count - i);
        const uint32x4_t tiny = vcaltq_f32(v, vdupq_n_f32(0x1p-126f)), sign = vdupq_n_u32(0x80000000);
        const uint32x4_t bits = vreinterpretq_u32_f32(v), flushed = vbslq_u32(tiny, vandq_u32(bits, sign), bits);
        uint16_t four[4];
        vst1_u16(four, to_bf16(vreinterpretq_f32_u32(flushed)));
        memcpy(y + i, four, (size_t)(count - i < 4 ? count - i : 4) * sizeof *four);
    }
    if (count % 2) y[count] = 0;
}

static unsigned at_least(const float *c, int n, int cols, const float *least, uint16_t *lanes) {
    static const uint32_t bit[4] = {1, 2, 4, 8};
    unsigned all = 0;
    for (int r = 0; r < n; r++, c += HN_STRIP) {
        const float32x4_t bound = vdupq_n_f32(least[r]);
        unsigned here = 0;
        HN_UNROLL for (int j = 0; j < 4; j++) {
            here |= vaddvq_u32(vandq_u32(vcgeq_f32(vld1q_f32(c + 4 * j), bound), vld1q_u32(bit))) << (4 * j);
        }
        lanes[r] = (uint16_t)(here & ((1u << cols) - 1));
        all |= lanes[r];
    }
    return all;
}

#define ROWS_TABLE hn_kernels_dotprod_rows
#include "ops/rows_table_tmpl.h"
