/* SPDX-License-Identifier: Apache-2.0 */
/* attention_ref.c - one block of attention in plain C: scores, softmax, values, and the merge of two blocks.
 *
 * Which positions a row sees in a block is always one range, because lane = logical position: what lies outside it is
 * never touched, so that nothing of an unwritten cache slot can reach a result. Who calls this: ops/cpu_attention.c.
 */
#include <math.h>
#include <string.h>

#include "ops/kernels.h"

static float element(hn_dtype t, const void *p, size_t i) {
    const uint16_t *half = p;
    if (t == HN_F32) return ((const float *)p)[i];
    return t == HN_F16 ? hn_f16_to_f32(half[i]) : hn_bf16_to_f32(half[i]);
}

static void scores(hn_dtype t, const hn_keys *keys, int c0, int c1, const float *const *q, int nq, int dim, float scale,
                   float *s) {
    for (int i = 0; i < nq; i++, s += HN_KEY_BLOCK) {
        for (int c = c0; c < c1; c++) {
            for (int p = 0; p < HN_KEY_CHUNK; p++) {
                float acc = 0;
                for (int d = 0; d < dim; d++) {
                    acc = fmaf(q[i][d], element(t, keys->k[c], (size_t)d * (size_t)keys->k_stride[c] + (size_t)p), acc);
                }
                s[c * HN_KEY_CHUNK + p] = acc * scale;
            }
        }
    }
}

/* The sum: lane i (0..15) sums e[p], p = i mod 16, p ascending; then the tree of norm.c. */
static void softmax(float *s, int lo, int hi, float *m, float *l) {
    float max = -INFINITY, lane[16] = {0};
    for (int p = lo; p < hi; p++) max = s[p] > max ? s[p] : max;
    for (int p = lo; p < hi; p++) {
        s[p] = hn_exp(s[p] - max);
        lane[p % 16] += s[p];
    }
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    }
    *m = max;
    *l = lane[0];
}

static void values(hn_dtype t, const hn_keys *keys, int lo, int hi, const float *e, int nq, int dim, float *o, int ldo) {
    for (int i = 0; i < nq; i++, e += HN_KEY_BLOCK, o += ldo) {
        for (int p = lo; p < hi; p++) {
            const void *v = keys->v[p / HN_KEY_CHUNK];
            size_t row = (size_t)(p % HN_KEY_CHUNK) * (size_t)dim;
            for (int d = 0; d < dim; d++) o[d] = fmaf(e[p], element(t, v, row + (size_t)d), o[d]);
        }
    }
}

static void merge(float *O, const float *o, int dim, float a, float b) {
    for (int d = 0; d < dim; d++) O[d] = fmaf(o[d], b, O[d] * a);
}

static void scale_row(float *y, const float *x, int dim, float a) {
    for (int d = 0; d < dim; d++) y[d] = x[d] * a;
}

void hn_kernels_ref_attention(struct hn_kernels *k) {
    k->scores = scores;
    k->softmax = softmax;
    k->values = values;
    k->value_rows = 4;
    k->merge = merge;
    k->scale = scale_row;
}
