/* SPDX-License-Identifier: Apache-2.0 */
/* attention_ref.c - one span of attention in plain C: scores, softmax, values, and the merge of two spans.
 *
 * The positions that a row sees in a span are always one range, because lane = logical position: positions outside it
 * are never read, so that an unwritten cache slot cannot affect a result. Called by ops/cpu_attention.c.
 *
 * Products of bf16 are those of the instruction vdpbf16ps: the second product of a pair first, each added by one fma,
 * denormal inputs and results zero; or those of tdpbf16ps.
 */
#include <math.h>
#include <string.h>

#include "ops/exp_poly.h"
#include "ops/kernels.h"
#include "ops/ref/bf16_step.h"

static float element(hn_dtype t, const void *p, size_t i) {
    const uint16_t *half = p;
    if (t == HN_F32) return ((const float *)p)[i];
    return t == HN_F16 ? hn_f16_to_f32(half[i]) : hn_bf16_to_f32(half[i]);
}

static float key(hn_dtype t, const hn_keys *keys, int c, int p, int d) {
    const size_t stride = (size_t)keys->k_stride[c], pair = (size_t)hn_kv_pair(t), at = (size_t)d;
    const size_t i = (at / pair * stride + (size_t)p) * pair + at % pair;
    if (t != HN_Q8_0) return element(t, keys->k[c], i);
    return (float)((const int8_t *)keys->k[c])[i] * keys->k_scale[c][at / HN_KV_SCALED * stride + (size_t)p];
}

static float value(hn_dtype t, const hn_keys *keys, int p, int d, int dim) {
    const int c = p / HN_KEY_CHUNK, pair = hn_kv_pair(t);
    p %= HN_KEY_CHUNK;
    const size_t i = (size_t)((p / pair * dim + d) * pair + p % pair);
    if (t != HN_Q8_0) return element(t, keys->v[c], i);
    return (float)((const int8_t *)keys->v[c])[i] * keys->v_scale[c][p * (dim / HN_KV_SCALED) + d / HN_KV_SCALED];
}

static void scores(hn_dtype t, const hn_keys *keys, int c0, int c1, const float *const *q, int nq, int dim, float scale,
                   float *s) {
    for (int i = 0; i < nq; i++, s += HN_KEY_SPAN) {
        for (int c = c0; c < c1; c++) {
            for (int p = 0; p < HN_KEY_CHUNK; p++) {
                float acc = 0;
                for (int d = 0; d < dim; d++) acc = fmaf(q[i][d], key(t, keys, c, p, d), acc);
                s[c * HN_KEY_CHUNK + p] = acc * scale;
            }
        }
    }
}

/* The sum: lane i (0..15) sums e[p], p = i mod 16, p ascending; then the tree of norm.c. */
static float sum_lanes(float lane[16]) {
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    }
    return lane[0];
}

static float largest(const float *s, int lo, int hi) {
    float max = -INFINITY;
    for (int p = lo; p < hi; p++) max = s[p] > max ? s[p] : max;
    return max;
}

static void softmax(float *s, int lo, int hi, float *m, float *l) {
    float lane[16] = {0};
    *m = largest(s, lo, hi);
    for (int p = lo; p < hi; p++) {
        s[p] = hn_exp(s[p] - *m);
        lane[p % 16] += s[p];
    }
    *l = sum_lanes(lane);
}

static void values(hn_dtype t, const hn_keys *keys, int lo, int hi, const float *e, int nq, int dim, float *o, int ldo) {
    for (int i = 0; i < nq; i++, e += HN_KEY_SPAN, o += ldo) {
        for (int p = lo; p < hi; p++) {
            for (int d = 0; d < dim; d++) o[d] = fmaf(e[p], value(t, keys, p, d, dim), o[d]);
        }
    }
}

/* ---- products of bf16 ------------------------------------------------------------------------------------------ */

static float add_pair(const float x[2], const float y[2], float sum) {
    return bf16_step(x[0], y[0], bf16_step(x[1], y[1], sum));
}

static float half(uint16_t x) { return bf16_flushed(hn_bf16_to_f32(x)); }

static void scores_bf16(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale,
                        float *s) {
    for (int i = 0; i < nq; i++, s += HN_KEY_SPAN) {
        for (int c = c0; c < c1; c++) {
            for (int p = 0; p < HN_KEY_CHUNK; p++) {
                float acc = 0;
                for (int d = 0; d < dim; d += 2) {
                    const float x[2] = {half(q[i][d]), half(q[i][d + 1])},
                                y[2] = {bf16_flushed(key(HN_BF16, keys, c, p, d)), bf16_flushed(key(HN_BF16, keys, c, p, d + 1))};
                    acc = add_pair(x, y, acc);
                }
                s[c * HN_KEY_CHUNK + p] = bf16_step(acc, bf16_flushed(scale), -0.0f);
            }
        }
    }
}

/* e^x for x <= 0, with the accuracy that bf16 needs. */
static float exp_bf16(float x) {
    if (isnan(x)) return x;
    const float t = fmaxf(x * HN_EXP_LOG2E, HN_EXP2_LO), k = rintf(t), f = t - k;
    return ldexpf(fmaf(fmaf(fmaf(HN_EXP2_P2, f, HN_EXP2_P1), f, HN_EXP2_P0), f, 1.0f), (int)k);
}

static void softmax_bf16(const float *s, int lo, int hi, float *m, float *l, uint16_t *e) {
    float lane[16] = {0};
    *m = largest(s, lo, hi);
    for (int p = lo / HN_KEY_CHUNK * HN_KEY_CHUNK; p % HN_KEY_CHUNK || p < hi; p++) {
        e[p] = 0;
        if (p < lo || p >= hi) continue;
        e[p] = hn_f32_to_bf16(exp_bf16(s[p] - *m));
        lane[p % 16] += hn_bf16_to_f32(e[p]);
    }
    *l = sum_lanes(lane);
}

static void values_bf16(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo) {
    for (int i = 0; i < nq; i++, e += HN_KEY_SPAN, o += ldo) {
        for (int p = lo / 2 * 2; p < hi; p += 2) {
            const float x[2] = {half(e[p]), half(e[p + 1])};
            for (int d = 0; d < dim; d++) {
                const float y[2] = {p >= lo ? bf16_flushed(value(HN_BF16, keys, p, d, dim)) : 0,
                                    p + 1 < hi ? bf16_flushed(value(HN_BF16, keys, p + 1, d, dim)) : 0};
                o[d] = add_pair(x, y, o[d]);
            }
        }
    }
}

/* ---- sums of tiles: those of the instruction tdpbf16ps ----------------------------------------------------------- */

/* The sum of the first and that of the second products of `pairs` pairs, and both to `sum`. */
static float add_tile(const float (*x)[2], const float (*y)[2], int pairs, float sum) {
    float first = 0, second = 0;
    for (int i = 0; i < pairs; i++) {
        first = bf16_step(x[i][0], y[i][0], first);
        second = bf16_step(x[i][1], y[i][1], second);
    }
    return bf16_flushed(bf16_flushed(sum) + bf16_flushed(first + second));
}

static float score_of_tiles(const hn_keys *keys, int c, int p, const uint16_t *q, int dim) {
    float sum = 0;
    for (int d = 0, pairs; d < dim; d += 2 * pairs) {
        float x[16][2], y[16][2]; /* 32 dims */
        pairs = dim - d < 32 ? (dim - d) / 2 : 16;
        for (int i = 0; i < 2 * pairs; i++) {
            x[i / 2][i % 2] = half(q[d + i]);
            y[i / 2][i % 2] = bf16_flushed(key(HN_BF16, keys, c, p, d + i));
        }
        sum = add_tile((const float(*)[2])x, (const float(*)[2])y, pairs, sum);
    }
    return sum;
}

static void scores_of_tiles(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale, float *s) {
    for (int i = 0; i < nq; i++, s += HN_KEY_SPAN)
        for (int p = c0 * HN_KEY_CHUNK; p < c1 * HN_KEY_CHUNK; p++)
            s[p] = bf16_step(score_of_tiles(keys, p / HN_KEY_CHUNK, p % HN_KEY_CHUNK, q[i], dim), bf16_flushed(scale), -0.0f);
}

static void values_of_tiles(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo) {
    for (int i = 0; i < nq; i++, e += HN_KEY_SPAN, o += ldo)
        for (int at = lo / HN_KEY_CHUNK * HN_KEY_CHUNK; at < hi; at += HN_KEY_CHUNK) {
            float x[HN_KEY_CHUNK / 2][2], y[HN_KEY_CHUNK / 2][2];
            for (int p = 0; p < HN_KEY_CHUNK; p++) x[p / 2][p % 2] = half(e[at + p]);
            for (int d = 0; d < dim; d++) {
                for (int p = 0; p < HN_KEY_CHUNK; p++) {
                    const bool seen = at + p >= lo && at + p < hi;
                    y[p / 2][p % 2] = seen ? bf16_flushed(value(HN_BF16, keys, at + p, d, dim)) : 0;
                }
                o[d] = add_tile((const float(*)[2])x, (const float(*)[2])y, HN_KEY_CHUNK / 2, o[d]);
            }
        }
}

/* ---- a Q8_0 cache as bf16 --------------------------------------------------------------------------------------- */

static uint16_t of_code(int8_t code, float scale) { return hn_f32_to_bf16(bf16_flushed((float)code * bf16_flushed(scale))); }

static void keys_q8_to_bf16(const hn_keys *from, int c0, int c1, int dim, unsigned char *to) {
    uint16_t *y = (uint16_t *)(void *)to; /* [chunk][dim / 2][HN_KEY_CHUNK][2] */
    for (int c = c0; c < c1; c++) {
        for (int d = 0; d < dim; d += 2) {
            const size_t stride = (size_t)from->k_stride[c];
            const int8_t *codes = (const int8_t *)from->k[c] + stride * (size_t)d;
            const float *scales = from->k_scale[c] + stride * (size_t)(d / HN_KV_SCALED);
            for (int p = 0; p < HN_KEY_CHUNK; p++) {
                *y++ = of_code(codes[p], scales[p]);
                *y++ = of_code(codes[stride + (size_t)p], scales[p]);
            }
        }
    }
}

static void values_q8_to_bf16(const hn_keys *from, int c0, int c1, int dim, unsigned char *to) {
    uint16_t *y = (uint16_t *)(void *)to; /* [chunk][HN_KEY_CHUNK / 2][dim][2] */
    const int blocks = dim / HN_KV_SCALED;
    for (int p = c0 * HN_KEY_CHUNK; p < c1 * HN_KEY_CHUNK; p += 2) {
        const int8_t *codes = (const int8_t *)from->v[p / HN_KEY_CHUNK] + p % HN_KEY_CHUNK * dim;
        const float *scales = from->v_scale[p / HN_KEY_CHUNK] + p % HN_KEY_CHUNK * blocks;
        for (int d = 0; d < dim; d++) {
            *y++ = of_code(codes[d], scales[d / HN_KV_SCALED]);
            *y++ = of_code(codes[dim + d], scales[blocks + d / HN_KV_SCALED]);
        }
    }
}

static void scores_q8_bf16(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale, float *s) {
    _Alignas(64) unsigned char chunk[HN_KEY_CHUNK * HN_MAX_HEAD_DIM * sizeof(uint16_t)];
    for (int c = c0; c < c1; c++) {
        hn_keys one = {.ahead = NULL};
        keys_q8_to_bf16(keys, c, c + 1, dim, chunk);
        one.k[c] = chunk;
        one.k_stride[c] = HN_KEY_CHUNK;
        scores_bf16(&one, c, c + 1, q, nq, dim, scale, s);
    }
}

static void values_q8_bf16(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo) {
    _Alignas(64) unsigned char chunk[HN_KEY_CHUNK * HN_MAX_HEAD_DIM * sizeof(uint16_t)];
    for (int end; lo < hi; lo = end) {
        const int c = lo / HN_KEY_CHUNK;
        hn_keys one = {.ahead = NULL};
        end = hi < (c + 1) * HN_KEY_CHUNK ? hi : (c + 1) * HN_KEY_CHUNK;
        values_q8_to_bf16(keys, c, c + 1, dim, chunk);
        one.v[c] = chunk;
        values_bf16(&one, lo, end, e, nq, dim, o, ldo);
    }
}

/* ---- keys as values ------------------------------------------------------------------------------------------- */

void hn_keys_to_values_bf16(const unsigned char *k, size_t step, int dim, int first, unsigned char *v) {
    for (int p = 0; p < HN_KEY_CHUNK; p += 2)
        for (int j = first; j < dim / 2; j++) {
            uint16_t rows[4]; /* [row][dim] */
            memcpy(rows, k + step * (size_t)j + 4 * p, sizeof rows);
            const uint16_t pairs[4] = {rows[0], rows[2], rows[1], rows[3]};
            memcpy(v + 2 * (size_t)p * (size_t)dim + 8 * (size_t)j, pairs, sizeof pairs);
        }
}

static void keys_to_values_bf16(const unsigned char *k, size_t step, int dim, unsigned char *v) {
    hn_keys_to_values_bf16(k, step, dim, 0, v);
}

static void keys_to_values_q8(const unsigned char *k, size_t step, int dim, unsigned char *v) {
    for (int p = 0; p < HN_KEY_CHUNK; p++)
        for (int d = 0; d < dim; d++) v[p * dim + d] = k[step * (size_t)d + (size_t)p];
}

/* ---- spans together ------------------------------------------------------------------------------------------- */

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
    k->scores_bf16 = scores_bf16;
    k->softmax_bf16 = softmax_bf16;
    k->values_bf16 = values_bf16;
    k->keys_to_values_bf16 = keys_to_values_bf16;
    k->keys_to_values_q8 = keys_to_values_q8;
    k->keys_q8_to_bf16 = keys_q8_to_bf16;
    k->values_q8_to_bf16 = values_q8_to_bf16;
    k->scores_q8_bf16 = scores_q8_bf16;
    k->values_q8_bf16 = values_q8_bf16;
    k->value_rows = 4;
    k->merge = merge;
    k->scale = scale_row;
}

void hn_kernels_ref_sums_of_tiles(struct hn_kernels *k) {
    k->sums_of_tiles = true;
    k->scores_bf16 = scores_of_tiles;
    k->values_bf16 = values_of_tiles;
}
