/* SPDX-License-Identifier: Apache-2.0 */
/* delta_ref.c - the kernels of gated delta nets in plain C, which defines their results. */
#include <math.h>

#include "ops/delta.h"
#include "ops/kernels.h"

/* sum + the products of the taps of input c. */
static float add_taps(float sum, const float *const *m, int taps, const float *w, int ldw, int c) {
    for (int t = 0; t < taps; t++)
        if (m[t]) sum = fmaf(w[(size_t)t * (size_t)ldw + (size_t)c], m[t][c], sum);
    return sum;
}

static void convolve(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y) {
    for (int c = 0; c < count; c++) {
        const float sum = add_taps(bias ? bias[c] : 0, m, taps, w, ldw, c);
        y[c] = sum / (1 + hn_exp(-sum));
    }
}

static void gated_taps(const float *const *m, int taps, const float *w, int ldw, const float *bias, int count, float *y) {
    for (int c = 0; c < count; c++) y[c] *= add_taps(bias ? bias[c] : 0, m, taps, w, ldw, c);
}

static float dot(const float *x, const float *y, int count) {
    float lane[16] = {0};
    for (int i = 0; i < count; i++) lane[i % 16] = fmaf(x[i], y[i], lane[i % 16]);
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

static void delta_step(const hn_delta_step *s) {
    for (int j = 0; j < s->width; j++) {
        const float *from = s->from + j;
        float sk = 0, sq = 0;
        for (int d = 0; d < s->dim; d++) {
            sk = fmaf(from[(size_t)d * (size_t)s->width], s->k[d], sk);
            if (s->q) sq = fmaf(from[(size_t)d * (size_t)s->width], s->q[d], sq);
        }
        const float u = s->beta * fmaf(-s->g, sk, s->v[j]);
        if (s->q) s->o[j] = fmaf(u, s->kq, s->g * sq);
        for (int d = 0; d < s->dim && s->to; d++) {
            const size_t at = (size_t)d * (size_t)s->width + (size_t)j;
            s->to[at] = fmaf(s->k[d], u, s->g * s->from[at]);
        }
    }
}

static void swiglu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i++) gate[i] = gate[i] / (1 + hn_exp(-gate[i])) * up[i];
}

static void sigmoid_glu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i++) gate[i] = up[i] / (1 + hn_exp(-gate[i]));
}

static void clamped_glu(float *gate, const float *up, int count, float alpha, float limit) {
    for (int i = 0; i < count; i++) {
        const float g = gate[i] > limit ? limit : gate[i];
        const float low = up[i] > limit ? limit : up[i], u = low < -limit ? -limit : low;
        gate[i] = g / (1 + hn_exp(-(alpha * g))) * (u + 1);
    }
}

#define DELTA_TABLE hn_kernels_ref_delta
#include "ops/delta_table_tmpl.h"
