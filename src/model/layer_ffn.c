/* SPDX-License-Identifier: Apache-2.0 */
/* layer_ffn.c - the feed-forward half, with experts (layer_experts.c) or dense: SwiGLU or GeGLU, one operation unless there are
 * biases; or dense with experts beside it. */
#include "model/layers.h"

static hn_glu unit_of(const hn_layer_desc *d) {
    return d->ffn == HN_FFN_GEGLU || d->ffn == HN_FFN_BESIDE ? HN_GELU : HN_SILU;
}

bool hn_ffn_in_steps(const hn_arch *a, int layer) {
    const hn_layer_desc *d = &a->layer[layer];
    return d->ffn != HN_FFN_EXPERTS && (d->gate_up_bias || a->residual_scale != 1);
}

/* Adds the normed sum of the dense half, which is in the branch, and of the experts beside it, each normed. */
static void add_beside(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_count n = s->rows->n;
    const float eps = m->arch.norm_eps;
    o->rmsnorm(ex, n, s->branch, l->experts.post_dense_norm, eps, hn_act_of(s->in, m->arch.hidden, 0), s->halves);
    hn_layer_experts_beside(ex, m, layer, s, s->branch);
    o->norm_add(ex, n, s->branch, l->experts.post_norm, eps, 1, s->halves);
    o->norm_add(ex, n, s->halves, l->post_ffn_norm, eps, hn_ffn_scale(l, &m->arch.layer[layer]), s->x);
}

void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->arch.layer[layer];
    const hn_count n = s->rows->n;
    if (d->ffn == HN_FFN_EXPERTS) {
        hn_layer_experts_run(ex, m, layer, s);
        return;
    }
    const hn_act gated = hn_act_of(s->gated, d->ffn_width, l->down_forms), in = hn_act_of(s->in, m->arch.hidden, l->ffn_forms);
    const hn_head_conv *conv = m->head.conv ? &m->head.conv[2 * layer + 1] : NULL;
    const bool branch = d->post_norms || conv;
    const hn_linear_out out = {&l->down, branch ? s->branch : s->x};

    if (conv)
        hn_layer_conv_in(ex, m, conv, l->ffn_norm, in, s);
    else
        o->rmsnorm(ex, n, s->x, l->ffn_norm, m->arch.norm_eps, in, hn_no_matrix);
    if (hn_ffn_in_steps(&m->arch, layer)) {
        const hn_glu_in both = {hn_columns(s->gate, 0, d->ffn_width), hn_columns(s->up, 0, d->ffn_width), l->gate_bias, l->up_bias};
        const hn_linear_out products[] = {{&l->gate, both.gate}, {&l->up, both.up}};
        o->linear(ex, n, in, products, 2, false);
        o->glu(ex, n, unit_of(d), &both, m->arch.residual_scale, gated);
    } else
        o->linear_glu(ex, n, in, &l->gate, &l->up, unit_of(d), gated);
    o->linear(ex, n, gated, &out, 1, !branch);
    if (d->down_bias) o->add_bias(ex, n, out.y, l->down_bias);
    if (conv)
        hn_layer_conv_out(ex, m, conv, s);
    else if (d->ffn == HN_FFN_BESIDE)
        add_beside(ex, m, layer, s);
    else if (d->post_norms)
        o->norm_add(ex, n, s->branch, l->post_ffn_norm, m->arch.norm_eps, hn_ffn_scale(l, d), s->x);
}
