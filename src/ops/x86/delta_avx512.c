/* SPDX-License-Identifier: Apache-2.0 */
/* delta_avx512.c - the kernels of gated delta nets with AVX-512. Results: ref/delta_ref.c, bit for bit. */
#include <immintrin.h>

#include "ops/delta.h"
#include "ops/kernels.h"
#include "ops/x86/math_avx512.h"

HN_INLINE __mmask16 lanes_of(int left) { return left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1); }

HN_INLINE __m512 sigmoid_of(__m512 x, __m512 up) {
    const __m512 e = hn_exp_avx512(_mm512_xor_ps(x, _mm512_set1_ps(-0.0f)));
    return _mm512_div_ps(up, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

/* sum + the products of the taps of the inputs from c on. */
HN_INLINE __m512 add_taps(__m512 sum, const float *const *m, int taps, const float *w, int ldw, int c, __mmask16 lanes) {
    for (int t = 0; t < taps; t++) {
        if (!m[t]) continue;
        const __m512 weight = _mm512_maskz_loadu_ps(lanes, w + (size_t)t * (size_t)ldw + (size_t)c);
        sum = _mm512_fmadd_ps(weight, _mm512_maskz_loadu_ps(lanes, m[t] + c), sum);
    }
    return sum;
}

static void convolve(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y) {
    for (int c = 0; c < count; c += 16) {
        const __mmask16 lanes = lanes_of(count - c);
        const __m512 first = bias ? _mm512_maskz_loadu_ps(lanes, bias + c) : _mm512_setzero_ps();
        const __m512 sum = add_taps(first, m, taps, w, ldw, c, lanes);
        _mm512_mask_storeu_ps(y + c, lanes, sigmoid_of(sum, sum));
    }
}

static void gated_taps(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y) {
    for (int c = 0; c < count; c += 16) {
        const __mmask16 lanes = lanes_of(count - c);
        const __m512 first = bias ? _mm512_maskz_loadu_ps(lanes, bias + c) : _mm512_setzero_ps();
        const __m512 sum = add_taps(first, m, taps, w, ldw, c, lanes);
        _mm512_mask_storeu_ps(y + c, lanes, _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, y + c), sum));
    }
}

static float dot(const float *x, const float *y, int count) {
    __m512 sum = _mm512_setzero_ps();
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(lanes, x + i), _mm512_maskz_loadu_ps(lanes, y + i), sum);
    }
    return hn_sum_avx512(sum);
}

/* n vectors of columns. */
HN_INLINE void step_of(const hn_delta_step *s, int n) {
    const __m512 g = _mm512_set1_ps(s->g);
    const size_t width = 16 * (size_t)n;
    __m512 sk[4], sq[4];
    HN_UNROLL for (int i = 0; i < n; i++) sk[i] = sq[i] = _mm512_setzero_ps();
    for (int d = 0; d < s->dim; d++) {
        const float *row = s->from + width * (size_t)d;
        const __m512 k = _mm512_set1_ps(s->k[d]);
        HN_UNROLL for (int i = 0; i < n; i++) sk[i] = _mm512_fmadd_ps(_mm512_loadu_ps(row + 16 * i), k, sk[i]);
        if (!s->q) continue;
        const __m512 q = _mm512_set1_ps(s->q[d]);
        HN_UNROLL for (int i = 0; i < n; i++) sq[i] = _mm512_fmadd_ps(_mm512_loadu_ps(row + 16 * i), q, sq[i]);
    }
    HN_UNROLL for (int i = 0; i < n; i++) {
        const __m512 e = _mm512_fnmadd_ps(g, sk[i], _mm512_loadu_ps(s->v + 16 * i));
        sk[i] = _mm512_mul_ps(_mm512_set1_ps(s->beta), e);
        if (s->q) _mm512_storeu_ps(s->o + 16 * i, _mm512_fmadd_ps(sk[i], _mm512_set1_ps(s->kq), _mm512_mul_ps(g, sq[i])));
    }
    for (int d = 0; d < s->dim && s->to; d++) {
        const __m512 k = _mm512_set1_ps(s->k[d]);
        HN_UNROLL for (int i = 0; i < n; i++) {
            const size_t at = width * (size_t)d + 16 * (size_t)i;
            _mm512_storeu_ps(s->to + at, _mm512_fmadd_ps(k, sk[i], _mm512_mul_ps(g, _mm512_loadu_ps(s->from + at))));
        }
    }
}

static void delta_step(const hn_delta_step *s) {
    switch (s->width) {
    case 16: step_of(s, 1); return;
    case 32: step_of(s, 2); return;
    case 48: step_of(s, 3); return;
    default: step_of(s, 4); return;
    }
}

static void swiglu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 x = _mm512_maskz_loadu_ps(lanes, gate + i), u = _mm512_maskz_loadu_ps(lanes, up + i);
        _mm512_mask_storeu_ps(gate + i, lanes, _mm512_mul_ps(sigmoid_of(x, x), u));
    }
}

static void sigmoid_glu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 x = _mm512_maskz_loadu_ps(lanes, gate + i), u = _mm512_maskz_loadu_ps(lanes, up + i);
        _mm512_mask_storeu_ps(gate + i, lanes, sigmoid_of(x, u));
    }
}

static void clamped_glu(float *gate, const float *up, int count, float alpha, float limit) {
    const __m512 most = _mm512_set1_ps(limit), least = _mm512_set1_ps(-limit), one = _mm512_set1_ps(1.0f);
    for (int i = 0; i < count; i += 16) { /* of NaN and a number the second operand */
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 g = _mm512_min_ps(most, _mm512_maskz_loadu_ps(lanes, gate + i));
        const __m512 u = _mm512_max_ps(least, _mm512_min_ps(most, _mm512_maskz_loadu_ps(lanes, up + i)));
        const __m512 part = sigmoid_of(_mm512_mul_ps(_mm512_set1_ps(alpha), g), g);
        _mm512_mask_storeu_ps(gate + i, lanes, _mm512_mul_ps(part, _mm512_add_ps(u, one)));
    }
}

#define DELTA_TABLE hn_kernels_avx512_delta
#include "ops/delta_table_tmpl.h"
