/* SPDX-License-Identifier: Apache-2.0 */
/* delta_dotprod.c - the kernels of gated delta nets with NEON. Results: ref/delta_ref.c, bit for bit. */
#include "ops/arm/math_neon.h"
#include "ops/delta.h"
#include "ops/kernels.h"

HN_INLINE float32x4_t sigmoid_of(float32x4_t x, float32x4_t up) {
    return vdivq_f32(up, vaddq_f32(vdupq_n_f32(1.0f), hn_exp_neon(vnegq_f32(x))));
}

/* sum + the products of the taps of inputs [c, c + left). */
HN_INLINE float32x4_t add_taps(float32x4_t sum, const float *const *m, int taps, const float *w, int ldw, int c, int left) {
    for (int t = 0; t < taps; t++) {
        if (!m[t]) continue;
        const float32x4_t weight = hn_load_neon(w + (size_t)t * (size_t)ldw + (size_t)c, left);
        sum = vfmaq_f32(sum, weight, hn_load_neon(m[t] + c, left));
    }
    return sum;
}

static void convolve(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y) {
    for (int c = 0; c < count; c += 4) {
        const float32x4_t first = bias ? hn_load_neon(bias + c, count - c) : vdupq_n_f32(0);
        const float32x4_t sum = add_taps(first, m, taps, w, ldw, c, count - c);
        hn_store_neon(y + c, count - c, sigmoid_of(sum, sum));
    }
}

static void gated_taps(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y) {
    for (int c = 0; c < count; c += 4) {
        const float32x4_t first = bias ? hn_load_neon(bias + c, count - c) : vdupq_n_f32(0);
        const float32x4_t sum = add_taps(first, m, taps, w, ldw, c, count - c);
        hn_store_neon(y + c, count - c, vmulq_f32(hn_load_neon(y + c, count - c), sum));
    }
}

static float dot(const float *x, const float *y, int count) {
    float32x4_t sum[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    for (int i = 0; i < count; i += 4)
        sum[i / 4 % 4] = vfmaq_f32(sum[i / 4 % 4], hn_load_neon(x + i, count - i), hn_load_neon(y + i, count - i));
    return hn_sum_neon(sum);
}

enum { VECTORS = 4 };

/* Columns [first, first + 16). */
HN_INLINE void step_of(const hn_delta_step *s, int first) {
    const float32x4_t g = vdupq_n_f32(s->g);
    const size_t width = (size_t)s->width;
    float32x4_t sk[VECTORS], sq[VECTORS];
    HN_UNROLL for (int i = 0; i < VECTORS; i++) sk[i] = sq[i] = vdupq_n_f32(0);
    for (int d = 0; d < s->dim; d++) {
        const float *row = s->from + width * (size_t)d + first;
        HN_UNROLL for (int i = 0; i < VECTORS; i++) sk[i] = vfmaq_f32(sk[i], vld1q_f32(row + 4 * i), vdupq_n_f32(s->k[d]));
        if (!s->q) continue;
        HN_UNROLL for (int i = 0; i < VECTORS; i++) sq[i] = vfmaq_f32(sq[i], vld1q_f32(row + 4 * i), vdupq_n_f32(s->q[d]));
    }
    HN_UNROLL for (int i = 0; i < VECTORS; i++) {
        const float32x4_t e = vfmsq_f32(vld1q_f32(s->v + first + 4 * i), g, sk[i]);
        sk[i] = vmulq_f32(vdupq_n_f32(s->beta), e);
        if (s->q) vst1q_f32(s->o + first + 4 * i, vfmaq_f32(vmulq_f32(g, sq[i]), sk[i], vdupq_n_f32(s->kq)));
    }
    for (int d = 0; d < s->dim && s->to; d++)
        HN_UNROLL for (int i = 0; i < VECTORS; i++) {
            const size_t at = width * (size_t)d + (size_t)first + 4 * (size_t)i;
            vst1q_f32(s->to + at, vfmaq_f32(vmulq_f32(g, vld1q_f32(s->from + at)), vdupq_n_f32(s->k[d]), sk[i]));
        }
}

static void delta_step(const hn_delta_step *s) {
    for (int first = 0; first < s->width; first += 4 * VECTORS) step_of(s, first);
}

static void swiglu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 4) {
        const float32x4_t x = hn_load_neon(gate + i, count - i), u = hn_load_neon(up + i, count - i);
        hn_store_neon(gate + i, count - i, vmulq_f32(sigmoid_of(x, x), u));
    }
}

static void sigmoid_glu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 4) {
        const float32x4_t x = hn_load_neon(gate + i, count - i), u = hn_load_neon(up + i, count - i);
        hn_store_neon(gate + i, count - i, sigmoid_of(x, u));
    }
}

static void clamped_glu(float *gate, const float *up, int count, float alpha, float limit) {
    const float32x4_t most = vdupq_n_f32(limit), least = vdupq_n_f32(-limit), one = vdupq_n_f32(1.0f);
    for (int i = 0; i < count; i += 4) { /* the minimum of NaN and a number is NaN */
        const float32x4_t g = vminq_f32(hn_load_neon(gate + i, count - i), most);
        const float32x4_t u = vmaxq_f32(vminq_f32(hn_load_neon(up + i, count - i), most), least);
        const float32x4_t part = sigmoid_of(vmulq_f32(vdupq_n_f32(alpha), g), g);
        hn_store_neon(gate + i, count - i, vmulq_f32(part, vaddq_f32(u, one)));
    }
}

#define DELTA_TABLE hn_kernels_dotprod_delta
#include "ops/delta_table_tmpl.h"
