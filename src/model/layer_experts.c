/* SPDX-License-Identifier: Apache-2.0 */
/* layer_experts.c - the feed-forward half with experts: a router chooses some for each row, their results are summed,
 * and that of the shared expert is added. Rows are computed independently; an expert's weights are read once for all
 * rows that chose it. */
#include "base/least.h"
#include "model/ffns.h"

/* Of this layer's rows; in: what its experts read. */
static hn_routing routing_of(const hn_pass_buffers *s, const hn_layer_desc *d, int layer, hn_act in) {
    hn_routing routing = s->routing;
    routing.experts = d->experts.count;
    routing.used = d->experts.used;
    routing.distinct = hn_distinct_of(&s->routing, layer);
    routing.gathered.forms = in.forms;
    return routing;
}

/* gate and up are separate products */
static bool shared_in_steps(const hn_layer_desc *d) { return d->ffn_limit > 0 || d->experts.shared_bias; }

/* The shared expert, into the branch. */
static hn_shared run_shared(const hn_exec *ex, const hn_model *m, const hn_layer_desc *d, const hn_layer_experts *l, hn_act in,
                            const hn_pass_buffers *s) {
    const float times = hn_branch_times(&m->arch, d->ffn_times);
    const hn_act gated = hn_act_of(s->gated, d->experts.shared_width, l->shared_forms);
    const hn_linear_out out = {&l->shared_down, hn_own_columns(&l->shared_down, s->branch)};
    if (d->experts.shared_width == 0) return (hn_shared){0};
    if (shared_in_steps(d)) {
        const hn_glu_in both = {hn_columns(s->gate, 0, gated.in), hn_columns(s->up, 0, gated.in), l->shared_gate_bias, l->shared_up_bias,
                                d->ffn_limit};
        const hn_linear_out products[] = {{&l->shared_gate, both.gate}, {&l->shared_up, both.up}};
        ex->ops->linear(ex, s->rows->n, in, products, 2, false);
        ex->ops->glu(ex, s->rows->n, HN_SILU, &both, 1, gated);
    } else
        ex->ops->linear_glu(ex, s->rows->n, in, &l->shared_gate, &l->shared_up, HN_SILU, gated);
    ex->ops->linear(ex, s->rows->n, hn_layer_joined(ex, s->rows->n, 1, out.w, gated, s->joined, s), &out, 1, false);
    if (d->experts.shared_bias) ex->ops->add_bias(ex, s->rows->n, out.y, l->shared_down_bias);
    if (times != 1) ex->ops->scale(ex, s->rows->n, out.y, times); /* as weights of experts are, where the layer is planned */
    return (hn_shared){out.y, d->experts.shared_gate ? s->shared_gate : hn_no_matrix};
}

/* y = (add: +=) the results of each row's experts, whose inputs of `down` are in gated, and of the shared one. */
static void finish(const hn_exec *ex, const hn_layer_experts *l, const hn_routing *by, hn_act gated, hn_buf bias, const hn_shared *shared,
                   bool add, hn_matrix y, const hn_pass_buffers *s) {
    const hn_count n = s->rows->n;
    const hn_matrix results = hn_columns(s->expert_out, 0, l->down.out);
    const hn_act read = hn_layer_joined(ex, n, by->used, &l->down, gated, s->expert_joined, s);
    ex->ops->experts_linear(ex, n, by, read, &l->down, results);
    ex->ops->combine(ex, n, by, results, bias, shared, add, hn_own_columns(&l->down, y));
    hn_layer_join(ex, n, &l->down, y, s);
}

static void run(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
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
    if (d->experts.score_cap > 0) {
        o->scale(ex, n, scores, 1 / d->experts.score_cap);
        o->apply(ex, n, HN_TANH, HN_INTO_SET, scores, (hn_buf){NULL, 0}, scores);
        o->scale(ex, n, scores, d->experts.score_cap);
    }
    o->route(ex, n, &l->choice, scores, &routing);
    const hn_shared shared = run_shared(ex, m, d, l, in, s);
    o->experts_glu(ex, n, &routing, in, &l->gate, &l->up, &l->unit, gated);
    finish(ex, l, &routing, gated, l->down_bias, &shared, !d->post_norms, d->post_norms ? s->halves : s->x, s);
    if (d->post_norms) o->norm_add(ex, n, s->halves, &m->layer[layer].post_ffn_norm, 1, s->x);
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
    finish(ex, l, &routing, gated, (hn_buf){NULL, 0}, &none, false, y, s);
}

/* ---- the kind -------------------------------------------------------------------------------------------------------------- */

static int matrices(const hn_layer *l, hn_ffn_matrix w[HN_FFN_MATRICES]) {
    const hn_layer_experts *e = &l->experts;
    const hn_weight *const each[] = {&e->gate, &e->up, &e->down},
                    *const all[] = {&e->router, &e->shared_router, &e->shared_gate, &e->shared_up, &e->shared_down};
    int n = 0;
    for (int k = 0; k < 3; k++) w[n++] = (hn_ffn_matrix){each[k], e->choice.used};
    for (int k = 0; k < 5; k++) w[n++] = (hn_ffn_matrix){all[k], 1};
    return n;
}

static void forms(const hn_backend *b, const hn_layer_desc *d, hn_layer *l) {
    hn_layer_experts *e = &l->experts;
    e->in_forms = HN_ACT_F32 | b->act_forms(b, e->gate.dtype) | b->act_forms(b, e->up.dtype); /* routers read F32 */
    e->down_forms = hn_forms_of(b, &e->down);
    if (d->experts.shared_width == 0) return;
    e->in_forms |= b->act_forms(b, e->shared_gate.dtype) | b->act_forms(b, e->shared_up.dtype);
    e->shared_forms = hn_forms_of(b, &e->shared_down);
}

static void widen(hn_ffn_widths *w, const hn_model *m, int layer) {
    const hn_expert_desc *e = &m->run.at[layer].experts;
    w->experts = hn_most(w->experts, e->count);
    w->used = hn_most(w->used, e->used);
    w->expert = hn_most(w->expert, e->width);
    w->gated = hn_most(w->gated, e->shared_width);
    if (shared_in_steps(&m->run.at[layer])) {
        w->gate = hn_most(w->gate, e->shared_width);
        w->up = hn_most(w->up, e->shared_width);
    }
    w->branch |= e->shared_width > 0;
    w->halves |= m->run.at[layer].post_norms;
}

static const char *lacks(const hn_backend *b, const hn_layer_desc *l HN_UNUSED) { return b->ops->route ? NULL : "experts"; }

const hn_ffn_kind hn_ffn_experts = {.as_stored = "experts", .matrices = matrices, .forms = forms, .widen = widen, .run = run,
                                    .lacks = lacks};
