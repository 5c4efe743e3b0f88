/* SPDX-License-Identifier: Apache-2.0 */
/* delta_avx2.c - the kernels of gated delta nets with AVX2 and FMA. Results: ref/delta_ref.c, bit for bit. */
#include <immintrin.h>

#include "ops/delta.h"
#include "ops/kernels.h"
#include "ops/x86/math_avx2.h"

HN_INLINE __m256 sigmoid_of(__m256 x, __m256 up) {
    const __m256 e = hn_exp_avx2(_mm256_xor_ps(x, _mm256_set1_ps(-0.0f)));
    return _mm256_div_ps(up, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

/* sum + the products of the taps of inputs [c, c + left). */
HN_INLINE __m256 add_taps(__m256 sum, const float *const *m, int taps, const float *w, int ldw, int c, int left) {
    for (int t = 0; t < taps; t++) {
        if (!m[t]) continue;
        const __m256 weight = hn_load_avx2(w + (size_t)t * (size_t)ldw + (size_t)c, left);
        sum = _mm256_fmadd_ps(weight, hn_load_avx2(m[t] + c, left), sum);
    }
    return sum;
}

static void convolve(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y) {
    for (int c = 0; c < count; c += 8) {
        const __m256 first = bias ? hn_load_avx2(bias + c, count - c) : _mm256_setzero_ps();
        const __m256 sum = add_taps(first, m, taps, w, ldw, c, count - c);
        hn_store_avx2(y + c, count - c, sigmoid_of(sum, sum));
    }
}

static void gated_taps(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y) {
    for (int c = 0; c < count; c += 8) {
        const __m256 first = bias ? hn_load_avx2(bias + c, count - c) : _mm256_setzero_ps();
        const __m256 sum = add_taps(first, m, taps, w, ldw, c, count - c);
        hn_store_avx2(y + c, count - c, _mm256_mul_ps(hn_load_avx2(y + c, count - c), sum));
    }
}

static float dot(const float *x, const float *y, int count) {
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int i = 0; i < count; i += 8)
        sum[i / 8 % 2] = _mm256_fmadd_ps(hn_load_avx2(x + i, count - i), hn_load_avx2(y + i, count - i), sum[i / 8 % 2]);
    return hn_sum_avx2(sum[0], sum[1]);
}

enum { VECTORS = 4 }; /* vectors of columns at a time: both sums of each stay in registers */

/* Columns [first, first + 8 * n). */
HN_INLINE void step_of(const hn_delta_step *s, int first, int n) {
    const __m256 g = _mm256_set1_ps(s->g);
    const size_t width = (size_t)s->width;
    __m256 sk[VECTORS], sq[VECTORS];
    HN_UNROLL for (int i = 0; i < n; i++) sk[i] = sq[i] = _mm256_setzero_ps();
    for (int d = 0; d < s->dim; d++) {
        const float *row = s->from + width * (size_t)d + first;
        const __m256 k = _mm256_set1_ps(s->k[d]);
        HN_UNROLL for (int i = 0; i < n; i++) sk[i] = _mm256_fmadd_ps(_mm256_loadu_ps(row + 8 * i), k, sk[i]);
        if (!s->q) continue;
        const __m256 q = _mm256_set1_ps(s->q[d]);
        HN_UNROLL for (int i = 0; i < n; i++) sq[i] = _mm256_fmadd_ps(_mm256_loadu_ps(row + 8 * i), q, sq[i]);
    }
    HN_UNROLL for (int i = 0; i < n; i++) {
        const __m256 e = _mm256_fnmadd_ps(g, sk[i], _mm256_loadu_ps(s->v + first + 8 * i));
        sk[i] = _mm256_mul_ps(_mm256_set1_ps(s->beta), e);
        if (s->q)
            _mm256_storeu_ps(s->o + first + 8 * i, _mm256_fmadd_ps(sk[i], _mm256_set1_ps(s->kq), _mm256_mul_ps(g, sq[i])));
    }
    for (int d = 0; d < s->dim && s->to; d++) {
        const __m256 k = _mm256_set1_ps(s->k[d]);
        HN_UNROLL for (int i = 0; i < n; i++) {
            const size_t at = width * (size_t)d + (size_t)first + 8 * (size_t)i;
            _mm256_storeu_ps(s->to + at, _mm256_fmadd_ps(k, sk[i], _mm256_mul_ps(g, _mm256_loadu_ps(s->from + at))));
        }
    }
}

static void delta_step(const hn_delta_step *s) {
    int first = 0;
    for (; first + 8 * VECTORS <= s->width; first += 8 * VECTORS) step_of(s, first, VECTORS);
    if (first < s->width) step_of(s, first, 2);
}

static void swiglu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 8) {
        const __m256 x = hn_load_avx2(gate + i, count - i), u = hn_load_avx2(up + i, count - i);
        hn_store_avx2(gate + i, count - i, _mm256_mul_ps(sigmoid_of(x, x), u));
    }
}

static void sigmoid_glu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 8) {
        const __m256 x = hn_load_avx2(gate + i, count - i), u = hn_load_avx2(up + i, count - i);
        hn_store_avx2(gate + i, count - i, sigmoid_of(x, u));
    }
}

static void clamped_glu(float *gate, const float *up, int count, float alpha, float limit) {
    const __m256 most = _mm256_set1_ps(limit), least = _mm256_set1_ps(-limit), one = _mm256_set1_ps(1.0f);
    for (int i = 0; i < count; i += 8) { /* of NaN and a number the second operand */
        const __m256 g = _mm256_min_ps(most, hn_load_avx2(gate + i, count - i));
        const __m256 u = _mm256_max_ps(least, _mm256_min_ps(most, hn_load_avx2(up + i, count - i)));
        const __m256 part = sigmoid_of(_mm256_mul_ps(_mm256_set1_ps(alpha), g), g);
        hn_store_avx2(gate + i, count - i, _mm256_mul_ps(part, _mm256_add_ps(u, one)));
    }
}

#define DELTA_TABLE hn_kernels_avx2_delta
#include "ops/delta_table_tmpl.h"
