/* SPDX-License-Identifier: Apache-2.0 */
/* layer_steps.c - one drafted position of a draft head with weights of its own for each. h: a state of the target, H
 * wide; t: the token before the drafted one; I: inner; no cache, no attention.
 *
 *   Medusa (2401.10774), Hydra that is not grounded    y = h;  y += silu(W y + b), for each block
 *   Hydra (2402.05109), step k                         s = h | E[x_n] | E[d_1] ... E[d_k], E the target's
 *                                                      y = R s + r + silu(W s + b);  further blocks as above
 *   IBM's speculator (2404.19124)                      s = gelu(norm(P s + a E[t]) + b), the first s is h;  y = s
 *   Arctic's, with a cell                              f, i, o, g = P s + a E[t], each
 *                                                      c = sigmoid(f) c + sigmoid(i) gelu(norm(g) + b), the first c is 0
 *                                                      s = sigmoid(o) gelu(norm(c) + b');  y = s
 *
 * with a = sqrt((1 - w^2) I / 2) / w and w = 0.5^(0.5 / steps), norms of eps 1e-6 and gelu in its exact form. y goes to
 * the output matrix. */
#include <math.h>

#include "model/layers.h"

#define SUM_EPS 1e-6f

typedef struct work {
    const hn_exec *ex;
    const hn_ops *o;
    const hn_model *m;
    const hn_step_buffers *s;
    const hn_step *step;
    int k, n; /* step; rows */
} work;

static hn_buf row_of(hn_buf b, int ld, int row) {
    return hn_at(b, sizeof(float) * (size_t)ld * (size_t)row);
}

static hn_buf column_of(hn_buf b, int column) {
    return hn_at(b, sizeof(float) * (size_t)column);
}

static int forms_of(const hn_model *m, const hn_weight *w) {
    return m->ops.act_forms(&m->ops, w->dtype);
}

static hn_act input_of(const hn_step_buffers *s, int width) {
    return (hn_act){s->in.data, width, s->in.max_rows};
}

/* y += silu(W y + b), for each resblock from `from` on. */
static void resblocks_from(const work *w, hn_buf y, int from) {
    const hn_step_buffers *s = w->s;
    for (int j = from; j < w->m->arch.draft_head.steps.resblocks; j++) {
        const hn_linear_out out = {&w->step->resblock[j], s->mid, s->ldmid};
        const hn_act in = input_of(s, out.w->in);
        w->o->quantise(w->ex, w->n, y, s->ldstate, in, forms_of(w->m, out.w));
        w->o->linear(w->ex, w->n, in, &out, 1, false);
        w->o->apply(w->ex, w->n, HN_SWISH, HN_INTO_ADD, s->mid, s->ldmid, w->step->resblock_bias[j], y, s->ldstate, w->m->arch.hidden);
    }
}

static void grounded(const work *w, hn_buf state, hn_buf y) {
    const hn_step_buffers *s = w->s;
    const int hidden = w->m->arch.hidden;
    const hn_linear_out out[] = {{&w->step->residual, y, s->ldstate}, {&w->step->resblock[0], s->mid, s->ldmid}};
    const int forms = forms_of(w->m, &w->step->residual) | forms_of(w->m, &w->step->resblock[0]);
    const hn_act in = input_of(s, out[0].w->in);
    w->o->quantise(w->ex, w->n, state, s->ldstate, in, forms);
    w->o->linear(w->ex, w->n, in, out, 2, false);
    w->o->add_bias(w->ex, w->n, y, s->ldstate, hidden, w->step->residual_bias);
    w->o->apply(w->ex, w->n, HN_SWISH, HN_INTO_ADD, s->mid, s->ldmid, w->step->resblock_bias[0], y, s->ldstate, hidden);
    resblocks_from(w, y, 1);
}

/* ---- speculators with a state of their own ----------------------------------------------------------------------------------- */

static float token_weight(const hn_steps_desc *d) {
    const double state = pow(0.5, 0.5 / d->n);
    return (float)(sqrt((1 - state * state) * d->inner / 2) / state);
}

/* The input of a step's projections: its state; that of the first may be normed and divided by sqrt 2. */
static hn_act read_state(const work *w, hn_buf state) {
    const hn_act in = input_of(w->s, w->step->gate[0].in);
    const hn_buf none = {NULL, 0};
    int forms = 0;
    for (int g = 0; g < HN_STEP_GATES; g++)
        if (w->step->gate[g].in > 0) forms |= forms_of(w->m, &w->step->gate[g]);
    if (w->k == 0 && w->m->arch.draft_head.steps.scale_input)
        w->o->rmsnorm(w->ex, w->n, state, w->s->ldstate, w->m->head.root_half, SUM_EPS, in, forms, none, 0);
    else
        w->o->quantise(w->ex, w->n, state, w->s->ldstate, in, forms);
    return in;
}

/* to = gelu(norm(x) + bias) */
static void normed_gelu(const work *w, hn_buf x, int ldx, hn_buf norm, hn_buf bias, hn_buf to) {
    const int inner = w->m->arch.draft_head.steps.inner, ld = w->s->ldstate;
    w->o->rmsnorm(w->ex, w->n, x, ldx, norm, SUM_EPS, input_of(w->s, inner), 0, to, ld);
    w->o->apply(w->ex, w->n, HN_GELU_ERF, HN_INTO_SET, to, ld, bias, to, ld, inner);
}

static void sum_step(const work *w, const hn_rows *rows, hn_buf state) {
    const hn_step_buffers *s = w->s;
    const hn_linear_out out = {&w->step->gate[0], s->mid, s->ldmid};
    w->o->embed(w->ex, rows, &w->step->embedding, token_weight(&w->m->arch.draft_head.steps), s->mid, s->ldmid);
    w->o->linear(w->ex, w->n, read_state(w, state), &out, 1, true);
    normed_gelu(w, s->mid, s->ldmid, w->step->norm, w->step->norm_bias, state);
}

/* state: c | s */
static void lstm_step(const work *w, const hn_rows *rows, hn_buf state) {
    const hn_step_buffers *s = w->s;
    const hn_ops *o = w->o;
    const int inner = w->m->arch.draft_head.steps.inner, ld = s->ldstate;
    const hn_buf cell = state, own = column_of(state, inner), none = {NULL, 0};
    hn_buf gate[HN_STEP_GATES];
    hn_linear_out out[HN_STEP_GATES];
    for (int g = 0; g < HN_STEP_GATES; g++) {
        gate[g] = column_of(s->mid, g * inner);
        out[g] = (hn_linear_out){&w->step->gate[g], gate[g], s->ldmid};
        o->embed(w->ex, rows, &w->step->embedding, token_weight(&w->m->arch.draft_head.steps), gate[g], s->ldmid);
    }
    const hn_act in = read_state(w, own);
    o->linear(w->ex, w->n, in, out, 2, true);
    o->linear(w->ex, w->n, in, out + 2, 2, true);
    normed_gelu(w, gate[3], s->ldmid, w->step->cell_norm, w->step->cell_norm_bias, s->result);
    o->apply(w->ex, w->n, HN_SIGMOID, HN_INTO_TIMES, gate[1], s->ldmid, none, s->result, ld, inner);
    if (w->k > 0) o->apply(w->ex, w->n, HN_SIGMOID, HN_INTO_TIMES, gate[0], s->ldmid, none, cell, ld, inner);
    o->apply(w->ex, w->n, HN_SAME, w->k > 0 ? HN_INTO_ADD : HN_INTO_SET, s->result, ld, none, cell, ld, inner);
    normed_gelu(w, cell, ld, w->step->norm, w->step->norm_bias, own);
    o->apply(w->ex, w->n, HN_SIGMOID, HN_INTO_TIMES, gate[2], s->ldmid, none, own, ld, inner);
}

/* ---- a step -------------------------------------------------------------------------------------------------------------- */

int hn_step_state_at(const hn_arch *a) {
    return a->draft_head.steps.kind == HN_STEP_LSTM ? a->draft_head.steps.inner : 0;
}

int hn_step_width(const hn_arch *a, int step) {
    const hn_steps_desc *d = &a->draft_head.steps;
    switch (d->kind) {
    case HN_STEP_GROUNDED: return (step + 2) * a->hidden;
    case HN_STEP_SUM: return d->inner;
    case HN_STEP_LSTM: return 2 * d->inner;
    default: return 0;
    }
}

hn_buf hn_step_result(const hn_arch *a, const hn_step_buffers *s, int row) {
    const hn_buf from = a->draft_head.steps.kind == HN_STEP_GROUNDED ? s->result : column_of(s->state, hn_step_state_at(a));
    return row_of(from, s->ldstate, row);
}

void hn_layer_step(const hn_exec *ex, const hn_model *m, const hn_rows *rows, int step, int first, int n, const hn_step_buffers *s) {
    const work w = {ex, ex->ops, m, s, &m->head.step[step], step, n};
    const hn_steps_desc *d = &m->arch.draft_head.steps;
    const hn_buf state = row_of(s->state, s->ldstate, first);
    if (d->kind == HN_STEP_RESBLOCKS) resblocks_from(&w, state, 0);
    if (d->kind == HN_STEP_GROUNDED) grounded(&w, state, row_of(s->result, s->ldstate, first));
    if (d->kind == HN_STEP_SUM) sum_step(&w, rows, state);
    if (d->kind == HN_STEP_LSTM) lstm_step(&w, rows, state);
}
