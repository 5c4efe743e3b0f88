/* SPDX-License-Identifier: Apache-2.0 */
/* layer_ffn.c - the feed-forward half, with experts (layer_experts.c) or dense: SwiGLU (one operation, unless there are
 * biases) or GeGLU. */
#include "model/layers.h"

bool hn_ffn_in_steps(const hn_arch *a, int layer) {
    const hn_layer_desc *d = &a->layer[layer];
    return d->ffn != HN_FFN_EXPERTS && (d->ffn == HN_FFN_GEGLU || d->gate_up_bias || a->residual_scale != 1);
}

void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->arch.layer[layer];
    const int n = s->rows->n;
    if (d->ffn == HN_FFN_EXPERTS) {
        hn_layer_experts_run(ex, m, layer, s);
        return;
    }
    const hn_act gated = {s->gated.data, d->ffn_width, s->gated.max_rows}, in = {s->in.data, m->arch.hidden, s->in.max_rows};
    const hn_linear_out out = {&l->down, d->post_norms ? s->branch : s->x, s->ldx};

    o->rmsnorm(ex, n, s->x, s->ldx, l->ffn_norm, m->arch.norm_eps, in, l->ffn_forms, (hn_buf){NULL, 0}, 0);
    if (hn_ffn_in_steps(&m->arch, layer)) {
        const hn_linear_out both[] = {{&l->gate, s->gate, s->ldhidden}, {&l->up, s->up, s->ldhidden}};
        o->linear(ex, n, in, both, 2, false);
        o->glu(ex, n, d->ffn == HN_FFN_GEGLU ? HN_GELU : HN_SILU, s->gate, l->gate_bias, s->up, l->up_bias, s->ldhidden,
               m->arch.residual_scale, gated, l->down_forms);
    } else
        o->linear_glu(ex, n, in, &l->gate, &l->up, gated, l->down_forms);
    o->linear(ex, n, gated, &out, 1, !d->post_norms);
    if (d->down_bias) o->add_bias(ex, n, out.y, s->ldx, m->arch.hidden, l->down_bias);
    if (d->post_norms)
        o->norm_add(ex, n, s->branch, s->ldx, l->post_ffn_norm, m->arch.norm_eps, s->x, s->ldx, m->arch.hidden);
}
