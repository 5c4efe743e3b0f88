/* SPDX-License-Identifier: Apache-2.0 */
/* linear_ref.c - y = W x in plain C: defines the bits of every level.
 *
 * The arithmetic of one output and the epilogues. Layout: ops/pack.h and ops/act.h.
 */
#include <math.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/ref/bf16_step.h"

/* Outputs are independent, so a compiler may vectorise over them; on machines with a fused multiply-add, fmaf is one
 * instruction in these loops and not a call. The result is the same: fmaf is exact. Sanitizers run before a function
 * clone can be chosen, so they get the plain one, as do C libraries other than glibc, which cannot choose. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("fma", "default")))
#else
#define CLONES
#endif

/* ---- quantised rows against block types ------------------------------------------------------------------- */

/* A decoded block of a strip, for all rows. d and m: factors of the block's sums of products and of codes. */
typedef struct block {
    int16_t v[HN_BLOCK][HN_STRIP];
    float d[HN_STRIP], m[HN_STRIP];
    int32_t part_s[2][HN_STRIP], part_m[2][HN_STRIP]; /* for types with a scale for each part, else 1 */
} block;

static void decode(hn_dtype t, const unsigned char *strip, int i, block *out) {
    for (int o = 0; o < HN_STRIP; o++) {
        hn_lane_block b;
        hn_strip_block(t, strip, o, i, &b);
        for (int k = 0; k < HN_BLOCK; k++) out->v[k][o] = b.v[k];
        out->d[o] = hn_has_parts(t) ? b.d : b.d * (float)b.s[0];
        out->m[o] = hn_has_parts(t) ? b.dmin * 0.25f : b.dmin * (float)b.m[0];
        for (int p = 0; p < 2; p++) {
            out->part_s[p][o] = hn_has_parts(t) ? b.s[p] : 1;
            out->part_m[p][o] = b.m[p];
        }
    }
}

/* A row's data for a block: codes, scale, scale times sum of codes, -4 times the sums of the parts. */
typedef struct row_block {
    const int8_t *q;
    float d, ds;
    const int32_t *n4;
} row_block;

static row_block row_at(const hn_strips_job *j, int r, int i) {
    const unsigned char *row = j->x + j->x_stride * (size_t)r;
    const hn_q8_group *g = (const hn_q8_group *)row + i / 2;
    const hn_q8_parts *parts = (const hn_q8_parts *)(row + hn_act_parts_off(j->in)) + i / 2;
    return (row_block){g->q + HN_BLOCK * (i % 2), g->d[i % 2], g->ds[i % 2], parts->n4 + 2 * (i % 2)};
}

/* acc[o] after a block. */
CLONES static void add_node(hn_dtype t, const block *w, const row_block *x, float *acc) {
    int32_t isum[HN_STRIP] = {0};
    for (int p = 0; p < 2; p++) {
        int32_t sum[HN_STRIP] = {0};
        for (int k = HN_PART * p; k < HN_PART * (p + 1); k++) {
            for (int o = 0; o < HN_STRIP; o++) sum[o] += w->v[k][o] * x->q[k];
        }
        for (int o = 0; o < HN_STRIP; o++) isum[o] += w->part_s[p][o] * sum[o];
    }
    for (int o = 0; o < HN_STRIP; o++) acc[o] = fmaf((float)isum[o] * w->d[o], x->d, acc[o]);
    for (int o = 0; o < HN_STRIP && hn_has_minimum(t); o++) {
        if (hn_has_parts(t)) { /* m has a quarter of the minimum, n4 four times the sums; both are negative */
            int32_t msum = w->part_m[0][o] * x->n4[0] + w->part_m[1][o] * x->n4[1];
            acc[o] = fmaf((float)msum * -w->m[o], x->d, acc[o]);
        } else {
            acc[o] = fmaf(w->m[o], x->ds, acc[o]);
        }
    }
}

/* Both blocks of the row's last group are added, also if `in` ends between them: the inputs beyond it are zero. */
static void strips_q8(hn_dtype t, const hn_strips_job *j) {
    block w;
    for (int s = 0; s < j->strips; s++) {
        float *c = j->c + (size_t)s * (size_t)j->n * HN_STRIP;
        memset(c, 0, (size_t)j->n * HN_STRIP * sizeof(float));
        for (int i = 0; i < 2 * hn_act_groups(j->in); i++) {
            decode(t, j->w[s], i, &w);
            for (int r = 0; r < j->n; r++) {
                const row_block x = row_at(j, r, i);
                add_node(t, &w, &x, c + (size_t)r * HN_STRIP);
            }
        }
    }
}

#define STRIPS_Q8(type, ...) \
    static void strips_q8_##type(const hn_strips_job *j) { strips_q8(HN_##type, j); }
HN_BLOCK_TYPES(STRIPS_Q8)

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
        hn_strip_row(t, j->in, j->w[s], o, k, count, lane);
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

/* ---- bf16 rows against bf16 weights ------------------------------------------------------------------------------ */

CLONES static void add_pairs(int count, float (*w)[HN_STRIP], const uint16_t *x, float *c) {
    for (int i = 0; i < count; i += 2) {
        const float x0 = bf16_flushed(hn_bf16_to_f32(x[i])), x1 = bf16_flushed(hn_bf16_to_f32(x[i + 1]));
        for (int o = 0; o < HN_STRIP; o++) c[o] = bf16_step(w[i][o], x0, bf16_step(w[i + 1][o], x1, c[o]));
    }
}

/* Continues the chains of one strip with inputs [k, k + count). */
static void add_bf16(const hn_strips_job *j, int s, int k, int count) {
    float w[HN_GROUP][HN_STRIP] = {{0}}, lane[HN_GROUP];
    for (int o = 0; o < HN_STRIP; o++) {
        hn_strip_row(HN_BF16, j->in, j->w[s], o, k, count, lane);
        for (int i = 0; i < count; i++) w[i][o] = bf16_flushed(lane[i]);
    }
    for (int r = 0; r < j->n; r++) {
        const uint16_t *x = (const uint16_t *)(j->x + j->x_stride * (size_t)r) + k;
        add_pairs(count, w, x, j->c + ((size_t)s * (size_t)j->n + (size_t)r) * HN_STRIP);
    }
}

static void strips_bf16(const hn_strips_job *j) {
    for (int s = 0; s < j->strips; s++) {
        memset(j->c + (size_t)s * (size_t)j->n * HN_STRIP, 0, (size_t)j->n * HN_STRIP * sizeof(float));
        for (int k = 0; k < j->in; k += HN_GROUP) add_bf16(j, s, k, j->in - k < HN_GROUP ? j->in - k : HN_GROUP);
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
#define LINEAR_BF16 strips_bf16
#include "ops/linear_table_tmpl.h"
