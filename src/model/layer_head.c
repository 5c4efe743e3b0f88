/* SPDX-License-Identifier: Apache-2.0 */
/* layer_head.c - what the stream of a pass's rows begins as: embeddings, or in a draft head by its input stage (arch/head_desc.h).
 *
 *   EAGLE-1, -2 (2401.15077)   x = fc(embedding | feature)
 *   MTP (2412.19437)           x = fc(norm(embedding) | norm(feature))
 *   EAGLE-3 (2503.01840)       x = fc(feature); the first layer reads norm(embedding) | norm(x) beside it
 *   Gemma 4's assistants       x = fc(embedding | feature), both as wide as the target
 *   Falcon (2412.12639)        x = lstm(lstm(embedding | feature)), the state of each row zero
 *   DART (2601.19278)          the same; for a mask the first layer reads a vector of its own, whose first half is x
 *   PARD (2504.18583), PARD-2  x = embedding, of the second + scale fc(feature)
 *   DFlash (2602.06036)        x = embedding in a block's rows; norm(fc(feature)) in rows of the text, which attention stores alone
 */
#include "model/layers.h"

/* The states of a feature, each normed separately, side by side. */
static void norm_each(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s) {
    const hn_input_stage *d = &m->arch.draft_head.input;
    const int width = d->feature_width;
    for (int k = 0; k < d->features; k++)
        ex->ops->norm(ex, s->rows->n, hn_columns(s->states, k * width, width), &m->head.fc_norm[k], hn_act_of(s->joint_in, width, 0),
                      hn_columns(s->joint, k * width, width));
}

static void input_product(const hn_exec *ex, const hn_model *m, int module, const hn_pass_buffers *s) {
    const hn_head *h = &m->head;
    const hn_input_stage *d = &m->arch.draft_head.input;
    const hn_count n = s->rows->n;
    const hn_linear_out out = {module > 0 ? &h->further[module - 1].fc : &h->fc, s->x};
    const hn_act in = hn_act_of(s->joint_in, s->joint.cols, h->fc_forms);
    if (d->stream == HN_STREAM_FEATURE && d->feature.norm_each) norm_each(ex, m, s);
    if (d->stream == HN_STREAM_FEATURE && d->feature.norm_all)
        ex->ops->norm(ex, n, s->joint, &h->feature_norm, in, hn_no_matrix);
    else
        ex->ops->quantise(ex, n, s->joint, in);
    ex->ops->linear(ex, n, in, &out, 1, false);
    if (hn_head_has_fc_bias(&m->arch.draft_head)) ex->ops->add_bias(ex, n, s->x, h->fc_bias);
}

/* A layer of an LSTM whose state is zero: of its gates (input, forget, candidate, output) the forget gate is not needed. */
static void lstm_layer(const hn_exec *ex, const hn_model *m, int k, hn_act in, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_head *h = &m->head;
    const hn_count n = s->rows->n;
    const int hidden = m->arch.hidden;
    const hn_linear_out out = {&h->lstm[k], s->lstm};
    const size_t gate = sizeof(float) * (size_t)hidden;
    const hn_buf bias = h->lstm_state_bias[k], none = {NULL, 0};
    const hn_matrix input = hn_columns(s->lstm, 0, hidden), candidate = hn_columns(s->lstm, 2 * hidden, hidden),
                    output = hn_columns(s->lstm, 3 * hidden, hidden);
    o->linear(ex, n, in, &out, 1, false);
    o->add_bias(ex, n, s->lstm, h->lstm_bias[k]);
    o->apply(ex, n, HN_TANH, HN_INTO_SET, candidate, hn_at(bias, 2 * gate), s->x);
    o->apply(ex, n, HN_SIGMOID, HN_INTO_TIMES, input, bias, s->x);
    o->apply(ex, n, HN_TANH, HN_INTO_SET, s->x, none, s->x);
    o->apply(ex, n, HN_SIGMOID, HN_INTO_TIMES, output, hn_at(bias, 3 * gate), s->x);
}

/* x = lstm(lstm(embedding | feature)) */
static void lstm_input(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s) {
    const hn_act joint = hn_act_of(s->joint_in, s->joint.cols, m->head.lstm_forms[0]);
    const hn_act in = hn_act_of(s->in, m->arch.hidden, m->head.lstm_forms[1]);
    ex->ops->quantise(ex, s->rows->n, s->joint, joint);
    lstm_layer(ex, m, 0, joint, s);
    ex->ops->quantise(ex, s->rows->n, s->x, in);
    lstm_layer(ex, m, 1, in, s);
}

/* norm(embedding) | norm(x) */
static void make_pair(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_count n = s->rows->n;
    const int hidden = m->arch.hidden;
    const hn_act one = hn_act_of(s->in, hidden, 0);
    const hn_matrix left = hn_columns(s->pair, 0, hidden), right = hn_columns(s->pair, hidden, hidden);
    o->embed(ex, s->rows, &m->embedding, m->arch.embed_scale, s->token);
    o->norm(ex, n, s->token, &m->head.token_norm, one, left);
    o->norm(ex, n, s->x, &m->head.stream_norm, one, right);
    if (m->run.at[0].input == HN_INPUT_PAIR_NORMED) o->gather(ex, n, s->each, right, (hn_buf){NULL, 0}, s->x);
}

/* embedding | feature, each normed if the description has its norm */
static void make_joint(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_input_stage *d = &m->arch.draft_head.input;
    const hn_count n = s->rows->n;
    const int token = hn_arch_token_width(&m->arch), width = d->features * d->feature_width;
    const hn_matrix left = hn_columns(s->joint, 0, token), right = hn_columns(s->joint, token, width);
    const bool norms = d->stream == HN_STREAM_JOINT && d->joint.norms;
    const hn_matrix feature = norms ? hn_columns(s->states, 0, width) : right;
    const hn_head_module *b = in->module > 0 ? &m->head.further[in->module - 1] : NULL;
    o->embed(ex, s->rows, &m->embedding, m->arch.embed_scale, norms ? s->token : left);
    o->gather(ex, n, in->from, hn_columns(in->rows, 0, width), (hn_buf){NULL, 0}, feature);
    if (!norms) return;
    o->norm(ex, n, s->token, b ? &b->token_norm : &m->head.token_norm, hn_act_of(s->joint_in, token, 0), left);
    o->norm(ex, n, feature, b ? &b->stream_norm : &m->head.stream_norm, hn_act_of(s->joint_in, width, 0), right);
}

/* Replaces a mask's pair and stream by the head's own vectors: mask | its first half. */
static void put_masks(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_matrix mask = {m->head.mask, 2 * m->arch.hidden, 0};
    ex->ops->gather(ex, in->n_masks, in->zero, mask, in->masks, s->pair);
    ex->ops->gather(ex, in->n_masks, in->zero, hn_columns(mask, 0, m->arch.hidden), in->masks, s->x);
}

/* Embeddings; masks get their own row if the head has one. */
static void begin_block(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_matrix mask = {m->head.mask_row, m->arch.hidden, 0};
    ex->ops->embed(ex, s->rows, &m->embedding, m->arch.embed_scale, s->x);
    if (in->n_masks.most > 0) ex->ops->gather(ex, in->n_masks, in->zero, mask, in->masks, s->x);
}

/* norm(fc(feature)) in all forms that the layers' k and v read. */
static void begin_context(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    int forms = 0;
    for (int i = 0; i < m->run.n; i++) forms |= m->layer[i].attn_forms;
    ex->ops->gather(ex, s->rows->n, in->from, in->rows, (hn_buf){NULL, 0}, s->joint);
    input_product(ex, m, 0, s);
    ex->ops->norm(ex, s->rows->n, s->x, &m->head.context_norm, hn_act_of(s->in, m->arch.hidden, forms), hn_no_matrix);
}

/* x = fc(feature), or in rows of drafts the output before them. */
static void begin_feature(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_buf own = {NULL, 0};
    const bool norm_each = m->arch.draft_head.input.feature.norm_each;
    ex->ops->gather(ex, s->rows->n, in->from, in->rows, own, in->drafts ? s->x : norm_each ? s->states : s->joint);
    if (!in->drafts) input_product(ex, m, 0, s);
}

/* x = (embedding / scale + fc(feature)) * scale; without features x = embedding. */
static void begin_sum(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_input_stage *d = &m->arch.draft_head.input;
    const hn_count n = s->rows->n;
    const hn_linear_out out = {&m->head.fc, s->x};
    const hn_act joint = hn_act_of(s->joint_in, s->joint.cols, m->head.fc_forms);
    const float scale = d->features > 0 ? d->sum.scale : 1;
    o->embed(ex, s->rows, &m->embedding, m->arch.embed_scale / scale, s->x);
    if (d->features == 0) return;
    o->gather(ex, n, in->from, in->rows, (hn_buf){NULL, 0}, s->joint);
    o->quantise(ex, n, s->joint, joint);
    o->linear(ex, n, joint, &out, 1, true);
    if (d->sum.fc_bias) o->add_bias(ex, n, s->x, m->head.fc_bias);
    o->scale(ex, n, s->x, scale);
}

void hn_layer_head(const hn_exec *ex, const hn_model *m, const hn_head_input *in, const hn_pass_buffers *s) {
    switch (m->arch.draft_head.input.stream) {
    case HN_STREAM_TOKEN: ex->ops->embed(ex, s->rows, &m->embedding, m->arch.embed_scale, s->x); return;
    case HN_STREAM_CONTEXT: in->context ? begin_context(ex, m, in, s) : begin_block(ex, m, in, s); return;
    case HN_STREAM_SUM: begin_sum(ex, m, in, s); return;
    case HN_STREAM_STATE: return; /* pass_steps.c */
    case HN_STREAM_FEATURE: begin_feature(ex, m, in, s); break;
    case HN_STREAM_JOINT:
        make_joint(ex, m, in, s);
        input_product(ex, m, in->module, s);
        break;
    case HN_STREAM_LSTM:
        make_joint(ex, m, in, s);
        lstm_input(ex, m, s);
        break;
    }
    if (hn_layer_reads_pair(&m->run.at[0])) make_pair(ex, m, s);
    if (in->n_masks.most > 0) put_masks(ex, m, in, s);
}
