/* SPDX-License-Identifier: Apache-2.0 */
/* layer_ffn.c - the dense feed-forward half: SwiGLU. */
#include "model/layers.h"

void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_lanes *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const int n = s->rows->n;
    const hn_linear_out out = {&l->down, s->x, s->ldx};

    o->rmsnorm(ex, n, s->x, s->ldx, l->ffn_norm, m->arch.norm_eps, s->in, l->ffn_forms, (hn_buf){NULL, 0}, 0);
    o->linear_glu(ex, n, s->in, &l->gate, &l->up, s->hidden, s->ldhidden);
    if (m->arch.residual_scale != 1)
        o->scale(ex, n, s->hidden, s->ldhidden, m->arch.layer[layer].ffn_width, m->arch.residual_scale);
    o->quantise(ex, n, s->hidden, s->ldhidden, s->gated, l->down_forms);
    o->linear(ex, n, s->gated, &out, 1, true);
}
