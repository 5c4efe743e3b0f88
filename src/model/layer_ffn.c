/* SPDX-License-Identifier: Apache-2.0 */
/* layer_ffn.c - kinds of dense feed-forward parts: SwiGLU or GeGLU, one operation unless there are biases; without a gate; and dense with
 * experts beside it (layer_experts.c). */
#include "base/least.h"
#include "model/ffns.h"

/* gate and up are separate products */
static bool in_steps(const hn_model *m, int layer) {
    const hn_layer_desc *d = &m->run.at[layer];
    const hn_layer *l = &m->layer[layer];
    return d->gate_up_bias || d->ffn_limit > 0 || hn_branch_times(&m->arch, d->ffn_times) != 1 || l->gate.order.mem || l->up.order.mem;
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

/* The input of the dense part, and what its result is added to. */
typedef struct half {
    hn_act in, gated;
    const hn_head_conv *conv; /* around it; NULL: none */
    bool branch;              /* the result is not added to the stream at once */
    hn_linear_out out;
} half;

static half begin(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->run.at[layer];
    half h = {.in = hn_act_of(s->in, m->arch.hidden, l->ffn_forms),
              .gated = hn_act_of(s->gated, d->ffn_width, l->down_forms),
              .conv = m->head.conv ? &m->head.conv[2 * layer + 1] : NULL};
    h.branch = d->post_norms || h.conv;
    h.out = (hn_linear_out){&l->down, h.branch ? s->branch : s->x};
    if (h.conv)
        hn_layer_conv_in(ex, m, h.conv, &l->ffn_norm, h.in, s);
    else
        hn_layer_read(ex, s->rows->n, s->x, &l->ffn_norm, h.in);
    return h;
}

static void end(const hn_exec *ex, const hn_model *m, int layer, const half *h, const hn_pass_buffers *s) {
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->run.at[layer];
    const hn_count n = s->rows->n;
    hn_layer_product(ex, n, h->gated, &h->out, 1, !h->branch, s);
    if (d->down_bias) ex->ops->add_bias(ex, n, h->out.y, l->down_bias);
    if (h->conv)
        hn_layer_conv_out(ex, m, h->conv, s);
    else if (d->ffn == HN_FFN_BESIDE)
        add_beside(ex, m, layer, s);
    else if (d->post_norms)
        ex->ops->norm_add(ex, n, s->branch, &l->post_ffn_norm, hn_ffn_scale(l, d), s->x);
}

static void run_gated(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->run.at[layer];
    const hn_count n = s->rows->n;
    const hn_glu unit = hn_ffn_of(d)->unit;
    const half h = begin(ex, m, layer, s);
    if (in_steps(m, layer)) {
        const hn_glu_in both = {hn_columns(s->gate, 0, d->ffn_width), hn_columns(s->up, 0, d->ffn_width), l->gate_bias, l->up_bias,
                                d->ffn_limit};
        const hn_linear_out products[] = {{&l->gate, both.gate}, {&l->up, both.up}};
        hn_layer_product(ex, n, h.in, products, 2, false, s);
        o->glu(ex, n, unit, &both, hn_branch_times(&m->arch, d->ffn_times), h.gated);
    } else
        o->linear_glu(ex, n, h.in, &l->gate, &l->up, unit, h.gated);
    end(ex, m, layer, &h, s);
}

static void run_plain(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer_desc *d = &m->run.at[layer];
    const hn_count n = s->rows->n;
    const float times = hn_branch_times(&m->arch, d->ffn_times);
    const hn_linear_out up = {&m->layer[layer].up, hn_columns(s->up, 0, d->ffn_width)};
    const half h = begin(ex, m, layer, s);
    hn_layer_product(ex, n, h.in, &up, 1, false, s);
    o->apply(ex, n, d->plain_unit, HN_INTO_SET, up.y, m->layer[layer].up_bias, up.y);
    if (times != 1) o->scale(ex, n, up.y, times);
    o->quantise(ex, n, up.y, h.gated);
    end(ex, m, layer, &h, s);
}

/* ---- kinds ---------------------------------------------------------------------------------------------------------------- */

static int matrices(const hn_layer *l, hn_ffn_matrix w[HN_FFN_MATRICES]) {
    const hn_weight *const all[] = {&l->gate, &l->up, &l->down};
    for (int i = 0; i < 3; i++) w[i] = (hn_ffn_matrix){all[i], 1};
    return 3;
}

static void forms(const hn_backend *b, const hn_layer_desc *d, hn_layer *l) {
    l->ffn_forms = hn_forms_of(b, &l->up);
    if (d->ffn != HN_FFN_PLAIN) l->ffn_forms |= hn_forms_of(b, &l->gate);
    l->down_forms = hn_forms_of(b, &l->down);
}

static void widen(hn_ffn_widths *w, const hn_model *m, int layer) {
    const int width = m->run.at[layer].ffn_width;
    w->gated = hn_most(w->gated, width);
    if (in_steps(m, layer)) w->gate = hn_most(w->gate, width);
    if (in_steps(m, layer) || m->run.at[layer].ffn == HN_FFN_PLAIN) w->up = hn_most(w->up, width);
}

static const char *plain_lacks(const hn_backend *b, const hn_layer_desc *l) {
    return b->applies && !b->applies(l->plain_unit) ? "this function of a feed-forward part without gates" : NULL;
}

static int matrices_beside(const hn_layer *l, hn_ffn_matrix w[HN_FFN_MATRICES]) {
    const int n = matrices(l, w);
    return n + hn_ffn_experts.matrices(l, w + n);
}

static void forms_beside(const hn_backend *b, const hn_layer_desc *d, hn_layer *l) {
    forms(b, d, l);
    hn_ffn_experts.forms(b, d, l);
}

static void widen_beside(hn_ffn_widths *w, const hn_model *m, int layer) {
    widen(w, m, layer);
    hn_ffn_experts.widen(w, m, layer);
    w->halves = true;
}

static const char *lacks_beside(const hn_backend *b, const hn_layer_desc *l) { return hn_ffn_experts.lacks(b, l); }

static const hn_ffn_kind swiglu = {.unit = HN_SILU, .matrices = matrices, .forms = forms, .widen = widen, .run = run_gated},
                         geglu = {.unit = HN_GELU, .matrices = matrices, .forms = forms, .widen = widen, .run = run_gated},
                         plain = {.matrices = matrices, .forms = forms, .widen = widen, .run = run_plain, .lacks = plain_lacks},
                         beside = {.unit = HN_GELU, .as_stored = "experts", .matrices = matrices_beside, .forms = forms_beside,
                                   .widen = widen_beside, .run = run_gated, .lacks = lacks_beside};

const hn_ffn_kind *hn_ffn_of(const hn_layer_desc *l) {
    static const hn_ffn_kind *const kinds[] = {[HN_FFN_SWIGLU] = &swiglu, [HN_FFN_GEGLU] = &geglu, [HN_FFN_EXPERTS] = &hn_ffn_experts,
                                               [HN_FFN_PLAIN] = &plain,   [HN_FFN_BESIDE] = &beside, [HN_FFN_NONE] = NULL};
    return kinds[l->ffn];
}

void hn_layer_ffn(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ffn_kind *kind = hn_ffn_of(&m->run.at[layer]);
    if (kind) kind->run(ex, m, layer, s);
}
