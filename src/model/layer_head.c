/* SPDX-License-Identifier: Apache-2.0 */
/* layer_head.c - the input of a draft head's layers: the stream is computed from embedding and feature.
 *
 *   EAGLE-1, -2 (2401.15077)   x = fc(embedding | feature)
 *   MTP (2412.19437)           x = fc(norm(embedding) | norm(feature))
 *   EAGLE-3 (2503.01840)       x = fc(feature); the first layer reads norm(embedding) | norm(x) beside it
 *   Falcon (2412.12639)        x = lstm(lstm(embedding | feature)), the state of each row zero
 *   DART (2601.19278)          the same; for a mask the first layer reads a vector of its own, whose first half is x
 *   DFlash (2602.06036)        x = embedding in a block's rows; norm(fc(feature)) in rows of the text, which layer_context.c reads
 */
#include "model/layers.h"

/* The states of a feature, each normed separately, side by side. */
static void norm_each(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s) {
    const hn_head_desc *d = &m->arch.draft_head;
    const hn_act one = {s->joint_in.data, d->feature_width, s->joint_in.max_rows};
    for (int k = 0; k < d->features; k++) {
        const size_t at = sizeof(float) * (size_t)k * (size_t)d->feature_width;
        ex->ops->rmsnorm(ex, s->rows->n, hn_at(s->states, at), s->ldjoint, m->head.fc_norm[k], m->arch.norm_eps, one, 0,
                         hn_at(s->joint, at), s->ldjoint);
    }
}

static void input_product(const hn_exec *ex, const hn_model *m, int module, const hn_pass_buffers *s) {
    const hn_head *h = &m->head;
    const hn_head_desc *d = &m->arch.draft_head;
    const int n = s->rows->n;
    const hn_linear_out out = {module > 0 ? &h->further[module - 1].fc : &h->fc, s->x, s->ldx};
    if (d->fc_norms) norm_each(ex, m, s);
    if (d->norm_before_fc)
        ex->ops->rmsnorm(ex, n, s->joint, s->ldjoint, h->feature_norm, m->arch.norm_eps, s->joint_in, h->fc_forms,
                         (hn_buf){NULL, 0}, 0);
    else
        ex->ops->quantise(ex, n, s->joint, s->ldjoint, s->joint_in, h->fc_forms);
    ex->ops->linear(ex, n, s->joint_in, &out, 1, false);
    if (d->fc_bias) ex->ops->add_bias(ex, n, s->x, s->ldx, m->arch.hidden, h->fc_bias);
}

/* A layer of an LSTM whose state is zero: of its gates (input, forget, candidate, output) the forget gate is not needed. */
static void lstm_layer(const hn_exec *ex, const hn_model *m, int k, hn_act in, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_head *h = &m->head;
    const int n = s->rows->n, hidden = m->arch.hidden, ld = 4 * s->ldx;
    const hn_linear_out out = {&h->lstm[k], s->lstm, ld};
    const size_t gate = sizeof(float) * (size_t)hidden;
    const hn_buf bias = h->lstm_state_bias[k], none = {NULL, 0};
    o->linear(ex, n, in, &out, 1, false);
    o->add_bias(ex, n, s->lstm, ld, 4 * hidden, h->lstm_bias[k]);
    o->apply(ex, n, HN_TANH, HN_INTO_SET, hn_at(s->lstm, 2 * gate), ld, hn_at(bias, 2 * gate), s->x, s->ldx, hidden);
    o->apply(ex, n, HN_SIGMOID, HN_INTO_TIMES, s->lstm, ld, bias, s->x, s->ldx, hidden);
    o->apply(ex, n, HN_TANH, HN_INTO_SET, s->x, s->ldx, none, s->x, s->ldx, hidden);
    o->apply(ex, n, HN_SIGMOID, HN_INTO_TIMES, hn_at(s->lstm, 3 * gate), ld, hn_at(bias, 3 * gate), s->x, s->ldx, hidden);
}

/* x = lstm(lstm(embedding | feature)) */
static void lstm_input(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s) {
    const hn_act in = {s->in.data, m->arch.hidden, s->in.max_rows};
    ex->ops->quantise(ex, s->rows->n, s->joint, s->ldjoint, s->joint_in, m->head.lstm_forms[0]);
    lstm_layer(ex, m, 0, s->joint_in, s);
    ex->ops->quantise(ex, s->rows->n, s->x, s->ldx, in, m->head.lstm_forms[1]);
    lstm_layer(ex, m, 1, in, s);
}

/* norm(embedding) | norm(x) */
static void make_pair(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const int n = s->rows->n, hidden = m->arch.hidden;
    const float eps = m->arch.norm_eps;
    const hn_act one = {s->in.data, hidden, s->in.max_rows};
    const hn_buf right = hn_at(s->pair, sizeof(float) * (size_t)hidden);
    o->embed(ex, s->rows, &m->embedding, m->arch.embed_scale, s->token, s->ldx);
    o->rmsnorm(ex, n, s->token, s->ldx, m->head.token_norm, eps, one, 0, s->pair, s->ldpair);
    o->rmsnorm(ex, n, s->x, s->ldx, m->head.stream_norm, eps, one, 0, right, s->ldpair);
    if (m->arch.draft_head.normed_stream)
        o->gather(ex, n, s->each, right, s->ldpair, (hn_buf){NULL, 0}, s->x, s->ldx, hidden);
}

/* embedding | feature, each normed if the description has its norm */
static void make_joint(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const int n = s->rows->n, hidden = m->arch.hidden, width = m->arch.draft_head.features * m->arch.draft_head.feature_width;
    const float eps = m->arch.norm_eps;
    const hn_buf own = {NULL, 0}, right = hn_at(s->joint, sizeof(float) * (size_t)hidden);
    const bool norms = m->arch.draft_head.joint_norms;
    const hn_head_module *b = in->module > 0 ? &m->head.further[in->module - 1] : NULL;
    o->embed(ex, s->rows, &m->embedding, m->arch.embed_scale, norms ? s->token : s->joint, norms ? s->ldx : s->ldjoint);
    o->gather(ex, n, in->from, in->rows, in->ld, own, norms ? s->states : right, s->ldjoint, width);
    if (!norms) return;
    const hn_act token = {s->joint_in.data, hidden, s->joint_in.max_rows}, feature = {s->joint_in.data, width, s->joint_in.max_rows};
    o->rmsnorm(ex, n, s->token, s->ldx, b ? b->token_norm : m->head.token_norm, eps, token, 0, s->joint, s->ldjoint);
    o->rmsnorm(ex, n, s->states, s->ldjoint, b ? b->stream_norm : m->head.stream_norm, eps, feature, 0, right, s->ldjoint);
}

/* Replaces a mask's pair and stream by the head's own vectors: mask | its first half. */
static void put_masks(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const int hidden = m->arch.hidden;
    o->gather(ex, in->n_masks, in->zero, m->head.mask, 2 * hidden, in->masks, s->pair, s->ldpair, 2 * hidden);
    o->gather(ex, in->n_masks, in->zero, m->head.mask, 2 * hidden, in->masks, s->x, s->ldx, hidden);
}

/* Embeddings; masks get their own row if the head has one. */
static void begin_block(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    ex->ops->embed(ex, s->rows, &m->embedding, m->arch.embed_scale, s->x, s->ldx);
    if (in->n_masks > 0)
        ex->ops->gather(ex, in->n_masks, in->zero, m->head.mask_row, 0, in->masks, s->x, s->ldx, m->arch.hidden);
}

/* norm(fc(feature)) in all forms that the layers' k and v read. */
static void begin_context(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_head_desc *d = &m->arch.draft_head;
    const hn_act act = {s->in.data, m->arch.hidden, s->in.max_rows};
    int forms = 0;
    for (int i = 0; i < m->arch.layers; i++) forms |= m->layer[i].attn_forms;
    ex->ops->gather(ex, s->rows->n, in->from, in->rows, in->ld, (hn_buf){NULL, 0}, s->joint, s->ldjoint,
                    d->features * d->feature_width);
    input_product(ex, m, 0, s);
    ex->ops->rmsnorm(ex, s->rows->n, s->x, s->ldx, m->head.context_norm, m->arch.norm_eps, act, forms, (hn_buf){NULL, 0}, 0);
}

void hn_layer_head(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_head_desc *d = &m->arch.draft_head;
    const int n = s->rows->n, width = d->features * d->feature_width;
    const hn_buf own = {NULL, 0};
    if (d->block) {
        in->context ? begin_context(ex, m, in, s) : begin_block(ex, m, in, s);
        return;
    }
    if (d->joint) {
        make_joint(ex, m, in, s);
        if (d->lstm)
            lstm_input(ex, m, s);
        else
            input_product(ex, m, in->module, s);
    } else if (in->drafts) {
        o->gather(ex, n, in->from, in->rows, in->ld, own, s->x, s->ldx, m->arch.hidden);
    } else {
        o->gather(ex, n, in->from, in->rows, in->ld, own, d->fc_norms ? s->states : s->joint, s->ldjoint, width);
        input_product(ex, m, 0, s);
    }
    if (m->arch.layer[0].input == HN_INPUT_PAIR) make_pair(ex, m, s);
    if (in->n_masks > 0) put_masks(ex, m, in, s);
}
