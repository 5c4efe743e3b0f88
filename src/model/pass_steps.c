/* SPDX-License-Identifier: Apache-2.0 */
/* pass_steps.c - the pass of a draft head that has weights of its own for each drafted position (layer_steps.c). Rows whose outputs are
 * wanted are in the order of their steps, so that a step's matrices are read once.
 *
 * A root's pass begins with the target's state, and runs the head's layers if it has any: a prefix layer (Hydra) before all steps, or a
 * layer for each step, all from the same state (Meta). Later passes of kinds that read the tokens drafted so far begin with stored
 * states. */
#include "base/least.h"
#include "model/pass_private.h"

hn_step_widths hn_pass_step_widths(const hn_arch *a) {
    const hn_steps_desc *d = &a->draft_head.rows.steps;
    const hn_own_state_desc *state = hn_steps_own_state(d);
    const int hidden = a->hidden, own = state ? state->width : 0, reads = hn_most(hidden, own);
    switch (d->kind) {
    case HN_STEP_RESBLOCKS: return (hn_step_widths){hidden, 0, hidden, 0, hidden};
    case HN_STEP_GROUNDED: return (hn_step_widths){(d->n + 1) * hidden, (d->n + 1) * hidden, hidden, hidden, (d->n + 1) * hidden};
    case HN_STEP_SUM: return (hn_step_widths){reads, 0, own, 0, reads};
    case HN_STEP_LSTM: return (hn_step_widths){own + reads, own + reads, HN_STEP_GATES * own, 0, reads};
    case HN_STEP_LAYERS: break;
    }
    return (hn_step_widths){0};
}

int hn_pass_output_width(const hn_arch *a) {
    const hn_steps_desc *d = hn_head_steps(&a->draft_head);
    if (a->draft_head.output.norm == HN_NORM_CARRIED) return a->draft_head.input.feature_width;
    return d ? hn_step_width(a, d->n - 1) : a->hidden;
}

/* ---- input of the steps ------------------------------------------------------------------------------------------- */

static void gather_root(const hn_exec *ex, const hn_runner *r) {
    const hn_buf own = {NULL, 0};
    ex->ops->gather(ex, r->rows.group[0].n, hn_image_at(r, offsetof(hn_row_image, from)),
                    hn_columns(r->head.store, 0, r->m->arch.hidden), own, r->buf.x);
}

static void run_layer(const hn_exec *ex, const hn_runner *r, int i) {
    hn_pass_mix(ex, r, i);
    hn_layer_ffn(ex, r->m, i, &r->buf);
}

static hn_count wanted_rows(const hn_runner *r) {
    return hn_image_count(r, offsetof(hn_row_image, n_out), r->out.n);
}

/* Those of a step. */
static hn_count step_rows(const hn_runner *r, int step) {
    const size_t at = offsetof(hn_row_image, n_step) + sizeof(int32_t) * (size_t)step;
    return hn_image_count(r, at, r->steps.begin[step + 1] - r->steps.begin[step]);
}

/* Gathers the wanted rows [first, first + n). */
static void gather_wanted(const hn_exec *ex, const hn_runner *r, int first, hn_count n, hn_matrix to) {
    const hn_buf own = {NULL, 0}, from = hn_image_at(r, offsetof(hn_row_image, out) + sizeof(int32_t) * (size_t)first);
    if (n.most > 0) ex->ops->gather(ex, n, from, r->buf.x, own, hn_rows_from(to, first));
}

/* A layer for each step, all from the same state, and its result for the rows that need it. */
static void layer_a_step(const hn_exec *ex, const hn_runner *r) {
    for (int i = 0; i < r->m->arch.layers; i++) {
        gather_root(ex, r);
        run_layer(ex, r, i);
        gather_wanted(ex, r, r->steps.begin[i], step_rows(r, i), r->out.x);
    }
}

static void root_states(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_matrix to = hn_columns(r->steps.buffers.state, hn_step_state_at(&m->arch), m->arch.hidden);
    hn_pass_rotations(ex, r);
    if (m->arch.draft_head.rows.steps.kind == HN_STEP_LAYERS) {
        layer_a_step(ex, r);
        return;
    }
    gather_root(ex, r);
    for (int i = 0; i < m->arch.layers; i++) run_layer(ex, r, i);
    if (r->out.n == 0) return;
    if (m->arch.draft_head.output.norm == HN_NORM_NONE) {
        gather_wanted(ex, r, 0, wanted_rows(r), to);
        return;
    }
    gather_wanted(ex, r, 0, wanted_rows(r), r->out.x);
    ex->ops->norm(ex, wanted_rows(r), r->out.x, &m->output_norm, r->out.act, to);
}

static void draft_states(const hn_exec *ex, const hn_runner *r) {
    const hn_buf own = {NULL, 0};
    const int width = hn_step_width(&r->m->arch, r->steps.first - 1);
    ex->ops->gather(ex, wanted_rows(r), hn_image_at(r, offsetof(hn_row_image, from)), hn_columns(r->head.outputs, 0, width), own,
                    hn_columns(r->steps.buffers.state, 0, width));
}

/* Appends the embedding of each row's token to its state. */
static void append_tokens(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_step_buffers *s = &r->steps.buffers;
    const hn_buf own = {NULL, 0};
    ex->ops->embed(ex, &r->rows.group[0], &m->embedding, m->arch.embed_scale, s->token);
    ex->ops->gather(ex, wanted_rows(r), hn_image_at(r, offsetof(hn_row_image, out)), s->token, own,
                    hn_columns(s->state, (r->steps.first + 1) * m->arch.hidden, m->arch.hidden));
}

/* ---- outputs --------------------------------------------------------------------------------------------------------------- */

static void keep_states(const hn_exec *ex, const hn_runner *r) {
    const hn_buf from = hn_image_at(r, offsetof(hn_row_image, output_row)),
                 to = hn_image_at(r, offsetof(hn_row_image, output_slot));
    const int width = hn_step_width(&r->m->arch, r->steps.first);
    const hn_count n = hn_image_count(r, offsetof(hn_row_image, n_stored), r->head.n_output_rows);
    if (n.most > 0 && width > 0)
        ex->ops->gather(ex, n, from, hn_columns(r->steps.buffers.state, 0, width), to,
                        hn_columns(r->head.outputs, 0, width));
}

/* Logits of rows [first, first + n) of the input `in`. */
static void step_logits(const hn_exec *ex, const hn_runner *r, const hn_step *step, hn_act in, int first, hn_count n) {
    const size_t parts = (size_t)hn_sum_parts(r->m->arch.vocab), at = (size_t)first;
    const hn_output_rows out = {r->m->arch.logit_scale, r->m->arch.logit_cap, n, hn_rows_from(r->out.logits, first)};
    hn_top top = hn_runner_top(r, r->out.best);
    top.id = hn_at(top.id, sizeof(int32_t) * at * (size_t)top.k);
    top.value = hn_at(top.value, sizeof(float) * at * (size_t)top.k);
    top.sums = hn_at(top.sums, sizeof(float) * at * parts);
    if (top.moments.mem) top.moments = hn_at(top.moments, sizeof(float) * at * parts);
    top.bias = step->output_bias;
    ex->ops->linear_top(ex, n, in, &step->output, &out, &top);
}

static void rows_logits(const hn_exec *ex, const hn_runner *r, const hn_step *step, int first, hn_count n) {
    const hn_model *m = r->m;
    const int forms = m->backend->act_forms(m->backend, step->output.dtype);
    const bool layers = m->arch.draft_head.rows.steps.kind == HN_STEP_LAYERS;
    const hn_act in = hn_act_of(layers ? r->out.act : r->steps.buffers.in, step->output.in, forms);
    if (layers)
        ex->ops->norm(ex, n, hn_rows_from(r->out.x, first), &m->output_norm, in, hn_no_matrix);
    else
        ex->ops->quantise(ex, n, hn_step_result(&m->arch, &r->steps.buffers, first), in);
    step_logits(ex, r, step, in, first, n);
}

void hn_pass_steps(const hn_exec *ex, const hn_runner *r) {
    const hn_model *m = r->m;
    const hn_steps_desc *d = &m->arch.draft_head.rows.steps;
    if (r->head.drafts)
        draft_states(ex, r);
    else
        root_states(ex, r);
    if (r->out.n == 0) return;
    if (d->kind == HN_STEP_GROUNDED) append_tokens(ex, r);
    for (int k = 0; k < d->n; k++) {
        const int first = r->steps.begin[k];
        const hn_count n = step_rows(r, k);
        if (n.most > 0) hn_layer_step(ex, m, &r->rows.group[0], k, first, n, &r->steps.buffers);
        if (n.most > 0 && !d->one_output) rows_logits(ex, r, &m->head.step[k], first, n);
    }
    keep_states(ex, r);
    if (d->one_output) rows_logits(ex, r, &m->head.step[0], 0, wanted_rows(r));
}
