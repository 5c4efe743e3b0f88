/* SPDX-License-Identifier: Apache-2.0 */
/* layer_experts.c - the feed-forward half with experts: a router chooses some for each row, their results are summed,
 * and that of the shared expert is added. Rows are computed independently; an expert's weights are read once for all
 * rows that chose it. */
#include "model/layers.h"

/* Of this layer's rows; in: what its experts read. */
static hn_routing routing_of(const hn_pass_buffers *s, const hn_layer_desc *d, int layer, hn_act in) {
    hn_routing routing = s->routing;
    routing.experts = d->experts.count;
    routing.used = d->experts.used;
    routing.distinct = hn_distinct_of(&s->routing, layer);
    routing.gathered.forms = in.forms;
    return routing;
}

/* The shared expert, into the branch. */
static hn_shared run_shared(const hn_exec *ex, const hn_layer_desc *d, const hn_layer_experts *l, hn_act in, const hn_pass_buffers *s) {
    const hn_act gated = hn_act_of(s->gated, d->experts.shared_width, l->shared_forms);
    const hn_linear_out out = {&l->shared_down, s->branch};
    if (d->experts.shared_width == 0) return (hn_shared){0};
    ex->ops->linear_glu(ex, s->rows->n, in, &l->shared_gate, &l->shared_up, HN_SILU, gated);
    ex->ops->linear(ex, s->rows->n, gated, &out, 1, false);
    return (hn_shared){s->branch, d->experts.shared_gate ? s->shared_gate : hn_no_matrix};
}

void hn_layer_experts_run(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer_experts *l = &m->layer[layer].experts;
    const hn_layer_desc *d = &m->run.at[layer];
    const hn_count n = s->rows->n;
    const hn_act in = hn_act_of(s->in, m->arch.hidden, l->in_forms), gated = hn_act_of(s->expert_gated, d->experts.width, l->down_forms);
    const hn_matrix scores = hn_columns(s->scores, 0, d->experts.count);
    const hn_linear_out routers[] = {{&l->router, scores}, {&l->shared_router, s->shared_gate}};
    const hn_routing routing = routing_of(s, d, layer, in);

    hn_layer_read(ex, n, s->x, &m->layer[layer].ffn_norm, in);
    o->linear(ex, n, in, routers, d->experts.shared_gate ? 2 : 1, false);
    if (d->experts.biases) o->add_bias(ex, n, scores, l->score_bias);
    o->route(ex, n, &l->choice, scores, &routing);
    const hn_shared shared = run_shared(ex, d, l, in, s);
    o->experts_glu(ex, n, &routing, in, &l->gate, &l->up, &l->unit, gated);
    o->experts_linear(ex, n, &routing, gated, &l->down, s->expert_out);
    o->combine(ex, n, &routing, s->expert_out, l->down_bias, &shared, true, s->x);
}

void hn_layer_experts_beside(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s, hn_matrix y) {
    const hn_ops *o = ex->ops;
    const hn_layer_experts *l = &m->layer[layer].experts;
    const hn_layer_desc *d = &m->run.at[layer];
    const hn_count n = s->rows->n;
    const hn_act in = hn_act_of(s->in, m->arch.hidden, l->in_forms), gated = hn_act_of(s->expert_gated, d->experts.width, l->down_forms);
    const hn_matrix scores = hn_columns(s->scores, 0, d->experts.count);
    const hn_linear_out router = {&l->router, scores};
    const hn_routing routing = routing_of(s, d, layer, in);
    const hn_shared none = {0};
    o->norm(ex, n, s->x, &l->router_norm, hn_act_of(in, in.in, HN_ACT_F32), hn_no_matrix);
    o->linear(ex, n, in, &router, 1, false);
    o->route(ex, n, &l->choice, scores, &routing);
    o->norm(ex, n, s->x, &l->norm, in, hn_no_matrix);
    o->experts_glu(ex, n, &routing, in, &l->gate, &l->up, &l->unit, gated);
    o->experts_linear(ex, n, &routing, gated, &l->down, s->expert_out);
    o->combine(ex, n, &routing, s->expert_out, (hn_buf){NULL, 0}, &none, false, y);
}
