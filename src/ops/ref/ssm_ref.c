/* SPDX-License-Identifier: Apache-2.0 */
/* ssm_ref.c - the kernels of state space layers in plain C, which defines their results. */
#include <math.h>

#include "ops/kernels.h"

static void ssm_read(const hn_ssm_read *r) {
    for (int i = 0; i < r->n; i++)
        for (int j = 0; j < r->width; j++) {
            float sum = 0;
            for (int d = 0; d < r->dim; d++) sum = fmaf(r->s[(size_t)d * (size_t)r->width + (size_t)j], r->c[i][d], sum);
            r->y[(size_t)i * (size_t)r->width + (size_t)j] = sum;
        }
}

static void ssm_move(const hn_ssm_move *m) {
    for (int d = 0; d < m->dim; d++)
        for (int j = 0; j < m->width; j++) {
            const size_t at = (size_t)d * (size_t)m->width + (size_t)j;
            float s = m->from ? m->from[at] : 0;
            for (int i = 0; i < m->n; i++) s = fmaf(m->b[i][d], m->u[i * m->width + j], m->g[i] * s);
            m->to[at] = s;
        }
}

static void add_rows(const float *w, const float *const *x, int n, int count, float *y) {
    for (int j = 0; j < count; j++)
        for (int i = 0; i < n; i++) y[j] = fmaf(w[i], x[i][j], y[j]);
}

void hn_kernels_ref_ssm(struct hn_kernels *k) {
    k->ssm_read = ssm_read;
    k->ssm_move = ssm_move;
    k->add_rows = add_rows;
}
