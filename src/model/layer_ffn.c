/* SPDX-License-Identifier: Apache-2.0 */
/* layer_ffn.c - the feed-forward half by its kind: with experts (layer_experts.c) or dense: SwiGLU or GeGLU, one operation unless there are
 * biases; or dense with experts beside it. */
#include "model/layers.h"

bool hn_ffn_in_steps(const hn_model *m, int layer) {
    const hn_layer_desc *d = &m->run.at[layer];
    return hn_layer_is_dense(d) && (d->gate_up_bias || hn_branch_times(&m->arch, d->ffn_times) != 1);
}

/* Adds the normed sum of the dense half, which is in the branch, and of the experts beside it, each normed. */
static void add_beside(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_count n = s->rows->n;
    o->norm(ex, n, s->branch, &l->experts.post_dense_norm, hn_act_of(s->in, m->arch.hidden, 0), s->halves);
    hn_layer_experts_beside(ex, m, layer, s, s->branch);
    o->norm_add(ex, n, s->branch, &l->experts.post_norm, 1, s->halves);
    o->norm_add(ex, n, s->halves, &l->post_ffn_norm, hn_ffn_scale(l, &m->run.at[layer]), s->x);
}

static void run_dense(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s, hn_glu unit) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->run.at[layer];
    const hn_count n = s->rows->n;
    const hn_act gated = hn_act_of(s->gated, d->ffn_width, l->down_forms), in = hn_act_of(s->in, m->arch.hidden, l->ffn_forms);
    const hn_head_conv *conv = m->head.conv ? &m->head.conv[2 * layer + 1] : NULL;
    const bool branch = d->post_norms || conv;
    const hn_linear_out out = {&l->down, branch ? s->branch : s->x};

    if (conv)
        hn_layer_conv_in(ex, m, conv, &l->ffn_norm, in, s);
    else
        hn_layer_read(ex, n, s->x, &l->ffn_norm, in);
    if (hn_ffn_in_steps(m, layer)) {
        const hn_glu_in both = {hn_columns(s->gate, 0, d->ffn_width), hn_columns(s->up, 0, d->ffn_width), l->gate_bias, l->up_bias};
        const hn_linear_out products[] = {{&l->gate, both.gate}, {&l->up, both.up}};
        o->linear(ex, n, in, products, 2, false);
        o->glu(ex, n, unit, &both, hn_branch_times(&m->arch, d->ffn_times), gated);
    } else
        o->linear_glu(ex, n, in, &l->gate, &l->up, unit, gated);
    o->linear(ex, n, gated, &out, 1, !branch);
    if (d->down_bias) o->add_bias(ex, n, out.y, l->down_bias);
    if (conv)
        hn_layer_conv_out(ex, m, conv, s);
    else if (d->ffn == HN_FFN_BESIDE)
        add_beside(ex, m, layer, s);
    else if (d->post_norms)
        o->norm_add(ex, n, s->branch, &l->post_ffn_norm, hn_ffn_scale(l, d), s->x);
}

static void run_experts(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s, hn_glu unit HN_UNUSED) {
    hn_layer_experts_run(ex, m, layer, s);
}

void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    static const struct {
        void (*run)(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s, hn_glu unit);
        hn_glu unit; /* of the dense part */
    } kinds[] = {[HN_FFN_SWIGLU] = {run_dense, HN_SILU},
                 [HN_FFN_GEGLU] = {run_dense, HN_GELU},
                 [HN_FFN_EXPERTS] = {run_experts, HN_SILU},
                 [HN_FFN_BESIDE] = {run_dense, HN_GELU},
                 [HN_FFN_NONE] = {NULL, HN_SILU}};
    const hn_ffn kind = m->run.at[layer].ffn;
    if (kinds[kind].run) kinds[kind].run(ex, m, layer, s, kinds[kind].unit);
}
