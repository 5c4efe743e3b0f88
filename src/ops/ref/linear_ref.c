/* SPDX-License-Identifier: Apache-2.0 */
/* linear_ref.c - y = W x in plain C: what every level must give, bit for bit.
 *
 * Owns the arithmetic of one output and the epilogues. The layout it reads: ops/pack.h and ops/act.h.
 */
#include <math.h>
#include <string.h>

#include "ops/kernels.h"

/* Outputs are independent, so a compiler may run them side by side; where the machine has a fused multiply-add, fmaf is
 * one instruction in these loops and not a call. The result is the same: fmaf is exact. Sanitizers run before a function
 * clone can be chosen, and so get the plain one. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("fma", "default")))
#else
#define CLONES
#endif

/* ---- quantised rows against block types ------------------------------------------------------------------- */

/* The unsigned code of input k of a block for output o. */
static int code_at(hn_dtype t, const unsigned char *codes, int o, int k) {
    if (t == HN_Q8_0) return codes[k / 4 * 64 + 4 * o + k % 4];
    int byte = codes[k % 16 / 4 * 64 + 4 * o + k % 4];
    return k < 16 ? byte & 15 : byte >> 4;
}

static uint16_t half_at(const unsigned char *p, int i) {
    uint16_t h;
    memcpy(&h, p + 2 * i, sizeof h);
    return h;
}

/* A block of a strip, decoded: what all rows share. */
typedef struct block {
    int16_t code[HN_BLOCK][HN_STRIP];
    float d[HN_STRIP], m[HN_STRIP];
} block;

static void decode(hn_dtype t, const unsigned char *group, int b, block *out) {
    const unsigned char *codes = group + hn_group_head(t) + (size_t)b * (t == HN_Q8_0 ? 512 : 256);
    for (int k = 0; k < HN_BLOCK; k++) {
        for (int o = 0; o < HN_STRIP; o++) out->code[k][o] = (int16_t)code_at(t, codes, o, k);
    }
    for (int o = 0; o < HN_STRIP; o++) {
        out->d[o] = hn_f16_to_f32(half_at(group, 16 * b + o));
        out->m[o] = t == HN_Q4_1 ? hn_f16_to_f32(half_at(group + 64, 16 * b + o)) : 0;
    }
}

/* acc[o] after block b (0 or 1) of a group. */
CLONES static void add_block(hn_dtype t, const block *w, const hn_q8_group *x, int b, float *acc) {
    int32_t isum[HN_STRIP];
    for (int o = 0; o < HN_STRIP; o++) isum[o] = t == HN_Q8_0 ? x->n128[b] : t == HN_Q4_0 ? x->n8[b] : 0;
    for (int k = 0; k < HN_BLOCK; k++) {
        for (int o = 0; o < HN_STRIP; o++) isum[o] += w->code[k][o] * x->q[HN_BLOCK * b + k];
    }
    for (int o = 0; o < HN_STRIP; o++) {
        acc[o] = fmaf((float)isum[o] * w->d[o], x->d[b], acc[o]);
        if (t == HN_Q4_1) acc[o] = fmaf(w->m[o], x->ds[b], acc[o]);
    }
}

static void strips_q8(hn_dtype t, const hn_strips_job *j) {
    int blocks = 2 * hn_act_groups(j->in);
    block w;
    for (int s = 0; s < j->strips; s++) {
        float *c = j->c + (size_t)s * (size_t)j->n * HN_STRIP;
        memset(c, 0, (size_t)j->n * HN_STRIP * sizeof(float));
        for (int i = 0; i < blocks; i++) {
            decode(t, j->w[s] + hn_group_bytes(t) * (size_t)(i / 2), i % 2, &w);
            for (int r = 0; r < j->n; r++) {
                const hn_q8_group *x = (const hn_q8_group *)(j->x + j->x_stride * (size_t)r);
                add_block(t, &w, &x[i / 2], i % 2, c + (size_t)r * HN_STRIP);
            }
        }
    }
}

static void strips_q8_q4_0(const hn_strips_job *j) { strips_q8(HN_Q4_0, j); }
static void strips_q8_q4_1(const hn_strips_job *j) { strips_q8(HN_Q4_1, j); }
static void strips_q8_q8_0(const hn_strips_job *j) { strips_q8(HN_Q8_0, j); }

/* ---- float rows against every type ------------------------------------------------------------------------- */

/* c[o] = fma(w[i][o], x[i], c[o]), i ascending. */
CLONES static void add_row(int count, float (*w)[HN_STRIP], const float *x, float *c) {
    for (int i = 0; i < count; i++) {
        for (int o = 0; o < HN_STRIP; o++) c[o] = fmaf(w[i][o], x[i], c[o]);
    }
}

/* Continues the chains of one strip with inputs [k, k + count). */
static void add_inputs(hn_dtype t, const hn_strips_job *j, int s, int k, int count) {
    float w[HN_GROUP][HN_STRIP], lane[HN_GROUP];
    for (int o = 0; o < HN_STRIP; o++) {
        hn_strip_row(t, j->w[s], o, k, count, lane);
        for (int i = 0; i < count; i++) w[i][o] = lane[i];
    }
    for (int r = 0; r < j->n; r++) {
        const float *x = (const float *)(j->x + j->x_stride * (size_t)r) + k;
        add_row(count, w, x, j->c + ((size_t)s * (size_t)j->n + (size_t)r) * HN_STRIP);
    }
}

static void strips_f32(hn_dtype t, const hn_strips_job *j) {
    for (int s = 0; s < j->strips; s++) {
        memset(j->c + (size_t)s * (size_t)j->n * HN_STRIP, 0, (size_t)j->n * HN_STRIP * sizeof(float));
        for (int k = 0; k < j->in; k += HN_GROUP) add_inputs(t, j, s, k, j->in - k < HN_GROUP ? j->in - k : HN_GROUP);
    }
}

/* ---- epilogues ------------------------------------------------------------------------------------------------ */

static void store(const float *c, int n, float *y, int ldy, int cols, bool add) {
    for (int r = 0; r < n; r++, c += HN_STRIP, y += ldy) {
        for (int o = 0; o < cols; o++) y[o] = add ? y[o] + c[o] : c[o];
    }
}

static void store_glu(const float *gate, const float *up, int n, float *y, int ldy, int cols) {
    for (int r = 0; r < n; r++, gate += HN_STRIP, up += HN_STRIP, y += ldy) {
        for (int o = 0; o < cols; o++) y[o] = gate[o] / (1.0f + hn_exp(-gate[o])) * up[o];
    }
}

#define LINEAR_TABLE hn_kernels_ref_linear
#include "ops/linear_table_tmpl.h"
