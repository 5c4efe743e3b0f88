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

typedef struct work {
    const hn_exec *ex;
    const hn_ops *o;
    const hn_model *m;
    const hn_step_buffers *s;
    const hn_step *step;
    int k;      /* step */
    hn_count n; /* rows */
} work;

static int forms_of(const hn_model *m, const hn_weight *w) {
    return m->backend->act_forms(m->backend, w->dtype);
}

/* y += silu(W y + b), for each resblock from `from` on. */
static void resblocks_from(const work *w, hn_matrix y, int from) {
    const hn_step_buffers *s = w->s;
    for (int j = from; j < w->m->arch.draft_head.rows.steps.resblocks.n; j++) {
        const hn_linear_out out = {&w->step->resblock[j], hn_columns(s->mid, 0, y.cols)};
        const hn_act in = hn_act_of(s->in, out.w->in, forms_of(w->m, out.w));
        w->o->quantise(w->ex, w->n, y, in);
        w->o->linear(w->ex, w->n, in, &out, 1, false);
        w->o->apply(w->ex, w->n, HN_SWISH, HN_INTO_ADD, out.y, w->step->resblock_bias[j], y);
    }
}

static void grounded(const work *w, hn_matrix state, hn_matrix y) {
    const hn_step_buffers *s = w->s;
    const hn_linear_out out[] = {{&w->step->residual, y}, {&w->step->resblock[0], hn_columns(s->mid, 0, y.cols)}};
    const int read = out[0].w->in, forms = forms_of(w->m, &w->step->residual) | forms_of(w->m, &w->step->resblock[0]);
    const hn_act in = hn_act_of(s->in, read, forms);
    w->o->quantise(w->ex, w->n, hn_columns(state, 0, read), in);
    w->o->linear(w->ex, w->n, in, out, 2, false);
    w->o->add_bias(w->ex, w->n, y, w->step->residual_bias);
    w->o->apply(w->ex, w->n, HN_SWISH, HN_INTO_ADD, out[1].y, w->step->resblock_bias[0], y);
    resblocks_from(w, y, 1);
}

/* ---- speculators with a state of their own ----------------------------------------------------------------------------------- */

static float token_weight(const hn_steps_desc *d) {
    const double state = pow(0.5, 0.5 / d->n);
    return (float)(sqrt((1 - state * state) * d->own_state.width / 2) / state);
}

/* The input of a step's projections: its state; that of the first may be normed and divided by sqrt 2. */
static hn_act read_state(const work *w, hn_matrix state) {
    const int width = w->step->gate[0].in;
    int forms = 0;
    for (int g = 0; g < HN_STEP_GATES; g++)
        if (w->step->gate[g].in > 0) forms |= forms_of(w->m, &w->step->gate[g]);
    const hn_act in = hn_act_of(w->s->in, width, forms);
    state = hn_columns(state, 0, width);
    if (w->k == 0 && w->m->arch.draft_head.rows.steps.own_state.scale_input)
        w->o->norm(w->ex, w->n, state, &w->m->head.root_half, in, hn_no_matrix);
    else
        w->o->quantise(w->ex, w->n, state, in);
    return in;
}

/* to = gelu(norm(x) + bias) */
static void normed_gelu(const work *w, hn_matrix x, const hn_norm *norm, hn_buf bias, hn_matrix to) {
    w->o->norm(w->ex, w->n, x, norm, hn_act_of(w->s->in, x.cols, 0), to);
    w->o->apply(w->ex, w->n, HN_GELU_ERF, HN_INTO_SET, to, bias, to);
}

static void sum_step(const work *w, const hn_rows *rows, hn_matrix state) {
    const hn_steps_desc *d = &w->m->arch.draft_head.rows.steps;
    const hn_linear_out out = {&w->step->gate[0], hn_columns(w->s->mid, 0, d->own_state.width)};
    w->o->embed(w->ex, rows, &w->step->embedding, token_weight(d), out.y);
    w->o->linear(w->ex, w->n, read_state(w, state), &out, 1, true);
    normed_gelu(w, out.y, &w->step->norm, w->step->norm_bias, hn_columns(state, 0, d->own_state.width));
}

/* state: c | s */
static void lstm_step(const work *w, const hn_rows *rows, hn_matrix state) {
    const hn_step_buffers *s = w->s;
    const hn_ops *o = w->o;
    const int inner = w->m->arch.draft_head.rows.steps.own_state.width;
    const hn_matrix cell = hn_columns(state, 0, inner), own = hn_columns(state, inner, inner), result = hn_columns(s->result, 0, inner);
    const hn_buf none = {NULL, 0};
    hn_linear_out out[HN_STEP_GATES];
    for (int g = 0; g < HN_STEP_GATES; g++) {
        out[g] = (hn_linear_out){&w->step->gate[g], hn_columns(s->mid, g * inner, inner)};
        o->embed(w->ex, rows, &w->step->embedding, token_weight(&w->m->arch.draft_head.rows.steps), out[g].y);
    }
    const hn_act in = read_state(w, hn_columns(state, inner, state.cols - inner));
    o->linear(w->ex, w->n, in, out, 2, true);
    o->linear(w->ex, w->n, in, out + 2, 2, true);
    normed_gelu(w, out[3].y, &w->step->cell_norm, w->step->cell_norm_bias, result);
    o->apply(w->ex, w->n, HN_SIGMOID, HN_INTO_TIMES, out[1].y, none, result);
    if (w->k > 0) o->apply(w->ex, w->n, HN_SIGMOID, HN_INTO_TIMES, out[0].y, none, cell);
    o->apply(w->ex, w->n, HN_SAME, w->k > 0 ? HN_INTO_ADD : HN_INTO_SET, result, none, cell);
    normed_gelu(w, cell, &w->step->norm, w->step->norm_bias, own);
    o->apply(w->ex, w->n, HN_SIGMOID, HN_INTO_TIMES, out[2].y, none, own);
}

/* ---- a step -------------------------------------------------------------------------------------------------------------- */

int hn_step_state_at(const hn_arch *a) {
    return a->draft_head.rows.steps.kind == HN_STEP_LSTM ? a->draft_head.rows.steps.own_state.width : 0;
}

int hn_step_width(const hn_arch *a, int step) {
    const hn_steps_desc *d = &a->draft_head.rows.steps;
    switch (d->kind) {
    case HN_STEP_GROUNDED: return (step + 2) * a->hidden;
    case HN_STEP_SUM: return d->own_state.width;
    case HN_STEP_LSTM: return 2 * d->own_state.width;
    default: return 0;
    }
}

/* The part of a row that the output matrix reads, and that the next step begins with. */
static int result_width(const hn_arch *a) {
    const hn_own_state_desc *state = hn_steps_own_state(&a->draft_head.rows.steps);
    return state ? state->width : a->hidden;
}

hn_matrix hn_step_result(const hn_arch *a, const hn_step_buffers *s, int row) {
    const bool own = a->draft_head.rows.steps.kind == HN_STEP_GROUNDED;
    return hn_rows_from(hn_columns(own ? s->result : s->state, own ? 0 : hn_step_state_at(a), result_width(a)), row);
}

void hn_layer_step(const hn_exec *ex, const hn_model *m, const hn_rows *rows, int step, int first, hn_count n, const hn_step_buffers *s) {
    const work w = {ex, ex->ops, m, s, &m->head.step[step], step, n};
    const hn_steps_desc *d = &m->arch.draft_head.rows.steps;
    const hn_matrix state = hn_rows_from(s->state, first);
    if (d->kind == HN_STEP_RESBLOCKS) resblocks_from(&w, hn_columns(state, 0, m->arch.hidden), 0);
    if (d->kind == HN_STEP_GROUNDED) grounded(&w, state, hn_step_result(&m->arch, s, first));
    if (d->kind == HN_STEP_SUM) sum_step(&w, rows, state);
    if (d->kind == HN_STEP_LSTM) lstm_step(&w, rows, state);
}
