/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c - the row kernels in plain C: RMS norm, sums, sums of exp, GeGLU, quantisation, rotation, rounding, comparison,
 * exp, soft caps.
 *
 * The sum of squares of inverse_rms: lane i (0..15) sums x[j]^2, j = i mod 16, j ascending, each step an fma; then lanes are added in
 * halves: l[i] += l[i + 8] for i < 8, then 4, 2, 1. The sums of a centred row have the same lanes and tree, of its mean by additions; so
 * have exp_sum and exp_moment, whose steps are an fma each, and softmax's sum the same tree.
 */
#include <math.h>
#include <string.h>

#include "ops/exp_poly.h"
#include "ops/kernels.h"
#include "ops/ref/bf16_step.h"

/* e^x = (1 + result) * *power; x is not NaN. */
static float exp_parts(float x, float *power) {
    x = x < HN_EXP_LO ? HN_EXP_LO : x > HN_EXP_HI ? HN_EXP_HI : x;
    float k = rintf(x * HN_EXP_LOG2E);
    float r = fmaf(k, -HN_EXP_LN2_LO, fmaf(k, -HN_EXP_LN2_HI, x));
    float p = fmaf(HN_EXP_P4, r, HN_EXP_P3);
    p = fmaf(p, r, HN_EXP_P2);
    p = fmaf(p, r, HN_EXP_P1);
    p = fmaf(p, r, HN_EXP_P0);
    union { uint32_t u; float f; } two_to_k = {(uint32_t)((int)k + 127) << 23};
    *power = two_to_k.f;
    return fmaf(p, r * r, r);
}

float hn_exp(float x) {
    if (isnan(x)) return x;
    float power, q = exp_parts(x, &power);
    return (1.0f + q) * power;
}

static float sum_lanes(float lane[16]) {
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    }
    return lane[0];
}

static float sum_squares(const float *x, int in) {
    float lane[16] = {0};
    for (int i = 0; i < in; i++) lane[i % 16] = fmaf(x[i], x[i], lane[i % 16]);
    return sum_lanes(lane);
}

static void exps(float *x, int count) {
    for (int i = 0; i < count; i++) x[i] = hn_exp(x[i]);
}

static float exp_sum(const float *x, int count, float most) {
    float lane[16] = {0};
    for (int i = 0; i < count; i++)
        if (x[i] <= most) lane[i % 16] += hn_exp(x[i] - most);
    return sum_lanes(lane);
}

static float exp_moment(const float *x, int count, float most) {
    float lane[16] = {0};
    for (int i = 0; i < count; i++) {
        const float d = x[i] - most;
        if (d >= HN_EXP_LO && d <= 0) lane[i % 16] = fmaf(hn_exp(d), d, lane[i % 16]);
    }
    return sum_lanes(lane);
}

static float inverse_rms(const float *x, int in, float eps) { return 1.0f / sqrtf(sum_squares(x, in) / (float)in + eps); }

hn_row_sums hn_centred_sums(const float *x, int in, float eps) {
    float lane[16] = {0};
    for (int i = 0; i < in; i++) lane[i % 16] += x[i];
    const float mean = sum_lanes(lane) / (float)in;
    memset(lane, 0, sizeof lane);
    for (int i = 0; i < in; i++) lane[i % 16] = fmaf(x[i] - mean, x[i] - mean, lane[i % 16]);
    return (hn_row_sums){mean, 1.0f / sqrtf(sum_lanes(lane) / (float)in + eps)};
}

void hn_centre(const float *x, const float *w, const float *b, int count, hn_row_sums sums, float *y) {
    for (int i = 0; i < count; i++) y[i] = fmaf((x[i] - sums.mean) * sums.inverse, w ? w[i] : 1, b ? b[i] : 0);
}

static void normalise(const float *x, const float *w, int count, float r, float *y) {
    for (int i = 0; i < count; i++) y[i] = x[i] * r * w[i];
}

static void add(float *y, const float *x, int count) {
    for (int i = 0; i < count; i++) y[i] += x[i];
}

static float gelu(float x) {
    return x / (1.0f + hn_exp(HN_GELU_T * fmaf(HN_GELU_CUBE * x * x, x, x)));
}

static void geglu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i++) gate[i] = gelu(gate[i]) * up[i];
}

static void softcap(float *x, int count, float cap) {
    for (int i = 0; i < count; i++) {
        if (isnan(x[i])) continue;
        const float t = x[i] / cap;
        float power, q = exp_parts(t + t, &power), m = fmaf(q, power, power - 1.0f);
        x[i] = cap * (m / (m + 2.0f));
    }
}

/* One block of up to 32 values. Blocks whose largest magnitude is below 2^-100 are zero (so 127 / amax is finite); a
 * block with an infinity or a NaN gets a NaN scale and zero codes, which makes the outputs NaN. */
static void quantise_block(const float *x, int count, hn_q8_group *g, hn_q8_parts *parts, int b) {
    uint32_t top = 0;
    for (int i = 0; i < count; i++) {
        union { float f; uint32_t u; } v = {x[i]};
        uint32_t magnitude = v.u & 0x7fffffffu;
        if (magnitude > top) top = magnitude;
    }
    union { uint32_t u; float f; } amax = {top};
    bool finite = top < 0x7f800000u;
    bool tiny = amax.f < 0x1p-100f;
    float inverse = finite && !tiny ? 127.0f / amax.f : 0.0f;
    int32_t part[2] = {0};
    for (int i = 0; i < count && inverse > 0; i++) {
        g->q[HN_BLOCK * b + i] = (int8_t)rintf(x[i] * inverse);
        part[i / HN_PART] += g->q[HN_BLOCK * b + i];
    }
    g->d[b] = !finite ? NAN : tiny ? 0.0f : amax.f / 127.0f;
    hn_q8_set_sums(g, parts, b, part);
}

static void quantise(const float *x, int count, hn_q8_group *out, hn_q8_parts *parts) {
    for (; count > 0; count -= HN_GROUP, x += HN_GROUP, out++, parts++) {
        memset(out, 0, sizeof *out);
        memset(parts, 0, sizeof *parts);
        quantise_block(x, count < HN_BLOCK ? count : HN_BLOCK, out, parts, 0);
        int rest = count - HN_BLOCK;
        if (rest > 0) quantise_block(x + HN_BLOCK, rest < HN_BLOCK ? rest : HN_BLOCK, out, parts, 1);
    }
}

static void round_bf16(const float *x, int count, uint16_t *y) {
    for (int i = 0; i < count; i++) y[i] = hn_f32_to_bf16(bf16_flushed(x[i]));
    if (count % 2) y[count] = 0;
}

static void rotate_pair(float *a, float *b, float c, float s) {
    float x = *a, y = *b;
    *a = fmaf(x, c, -(y * s));
    *b = fmaf(y, c, x * s);
}

static void rope(float *x, const float *cs, int dims, bool interleaved) {
    int half = dims / 2;
    for (int i = 0; i < half; i++) {
        if (interleaved) {
            rotate_pair(&x[2 * i], &x[2 * i + 1], cs[i], cs[half + i]);
        } else {
            rotate_pair(&x[i], &x[half + i], cs[i], cs[half + i]);
        }
    }
}

static void to_cache(hn_dtype t, const float *x, int count, void *dst) {
    uint16_t *half = dst;
    if (t == HN_F32) {
        memcpy(dst, x, (size_t)count * sizeof *x);
    } else {
        for (int i = 0; i < count; i++) half[i] = t == HN_F16 ? hn_f32_to_f16(x[i]) : hn_f32_to_bf16(x[i]);
    }
}

static unsigned at_least(const float *c, int n, int cols, const float *least, uint16_t *lanes) {
    unsigned all = 0;
    for (int r = 0; r < n; r++, c += HN_STRIP) {
        unsigned here = 0;
        for (int o = 0; o < cols; o++) here |= (unsigned)(c[o] >= least[r]) << o;
        lanes[r] = (uint16_t)here;
        all |= here;
    }
    return all;
}

#define ROWS_TABLE hn_kernels_ref_norm
#include "ops/rows_table_tmpl.h"
