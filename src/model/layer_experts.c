/* SPDX-License-Identifier: Apache-2.0 */
/* layer_experts.c - the feed-forward half with experts: a router chooses some for each row, their results are summed,
 * and that of the shared expert is added. Rows are computed independently; an expert's weights are read once for all
 * rows that chose it. */
#include "model/layers.h"

/* The shared expert, into the branch. */
static hn_shared run_shared(const hn_exec *ex, const hn_layer_desc *d, const hn_layer_experts *l, hn_act in, const hn_pass_buffers *s) {
    const hn_act gated = {s->gated.data, d->experts.shared_width, s->gated.max_rows};
    const hn_linear_out out = {&l->shared_down, s->branch, s->ldx};
    if (d->experts.shared_width == 0) return (hn_shared){0};
    ex->ops->linear_glu(ex, s->rows->n, in, &l->shared_gate, &l->shared_up, gated, l->shared_forms);
    ex->ops->linear(ex, s->rows->n, gated, &out, 1, false);
    return (hn_shared){.y = s->branch,
                       .ld = s->ldx,
                       .gate = d->experts.shared_gate ? s->shared_gate : (hn_buf){NULL, 0},
                       .ldgate = HN_STRIP};
}

void hn_layer_experts_run(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer_experts *l = &m->layer[layer].experts;
    const hn_layer_desc *d = &m->arch.layer[layer];
    const int n = s->rows->n, used = d->experts.used;
    const hn_act in = {s->in.data, m->arch.hidden, s->in.max_rows};
    const hn_act gated = {s->expert_gated.data, d->experts.width, s->expert_gated.max_rows};
    const hn_linear_out scores[] = {{&l->router, s->scores, s->ldscores}, {&l->shared_router, s->shared_gate, HN_STRIP}};
    hn_routing routing = s->routing;
    routing.experts = d->experts.count;
    routing.used = used;
    routing.distinct = hn_distinct_of(&s->routing, layer);

    o->rmsnorm(ex, n, s->x, s->ldx, m->layer[layer].ffn_norm, m->arch.norm_eps, in, l->in_forms, (hn_buf){NULL, 0}, 0);
    o->linear(ex, n, in, scores, d->experts.shared_gate ? 2 : 1, false);
    o->route(ex, n, &l->choice, s->scores, s->ldscores, &routing);
    const hn_shared shared = run_shared(ex, d, l, in, s);
    o->experts_glu(ex, n, &routing, in, s->gathered, &l->gate, &l->up, gated, l->down_forms);
    o->experts_linear(ex, n, &routing, gated, &l->down, s->expert_out, s->ldx);
    o->combine(ex, n, &routing, s->expert_out, s->ldx, &shared, s->x, s->ldx, m->arch.hidden);
}
