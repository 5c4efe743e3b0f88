/* SPDX-License-Identifier: Apache-2.0 */
/* layer_input.c - inputs that each token has for every layer (per-layer embeddings, Gemma 4): rows of a table that stays in the file,
 * and what the token's embedding adds to them; made once a pass, the rows of the table as late as possible: the system reads them
 * meanwhile if they are not in memory. Each layer adds its part, gated by the stream, after its feed-forward half. */
#include <math.h>

#include "base/mem.h"
#include "model/layers.h"

static int input_width(const hn_model *m) {
    return m->run.n > 0 ? m->run.at[0].token_input : 0;
}

void hn_token_input_expect(const hn_model *m, int32_t token) {
    const hn_stored *s = &m->token_table.stored;
    if (s->rows) hn_pages_expect((const unsigned char *)s->rows + s->row_bytes * (size_t)token, s->row_bytes);
}

void hn_token_products_make(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_count n = s->rows->n;
    const int width = input_width(m);
    const hn_linear_out product = {&m->token_product, s->token_products};
    const hn_act in = hn_act_of(s->in, m->arch.hidden, m->token_forms);
    /* the reference divides the product by sqrt(hidden) before the norm: only its eps sees that */
    const hn_norm *norm = &m->token_norm;
    const hn_head_fix each = {.q_norm = {norm->w, norm->b, norm->eps * (float)m->arch.hidden, norm->kind}};
    const hn_qkv parts = {s->token_products, hn_no_matrix, hn_no_matrix, width};
    if (width == 0) return;
    o->quantise(ex, n, s->x, in);
    o->linear(ex, n, in, &product, 1, false);
    o->fix_heads(ex, n, &each, &parts);
}

void hn_token_inputs_make(const hn_exec *ex, const hn_model *m, const hn_pass_buffers *s) {
    const int width = input_width(m);
    if (width == 0) return;
    ex->ops->embed(ex, s->rows, &m->token_table, HN_TOKEN_INPUT_SHARE * sqrtf((float)width), s->token_inputs);
    ex->ops->apply(ex, s->rows->n, HN_SAME, HN_INTO_ADD, s->token_products, (hn_buf){NULL, 0}, s->token_inputs);
}

void hn_layer_token_input(const hn_exec *ex, const hn_model *m, int layer, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_count n = s->rows->n;
    const int width = m->run.at[layer].token_input;
    const hn_act in = hn_act_of(s->in, m->arch.hidden, l->input_forms), gated = hn_act_of(s->gated, width, l->input_product_forms);
    const hn_glu_in both = {.gate = hn_columns(s->gate, 0, width), .up = hn_columns(s->token_inputs, layer * width, width)};
    const hn_linear_out gate = {&l->input_gate, both.gate}, product = {&l->input_product, s->branch};
    o->quantise(ex, n, s->x, in);
    o->linear(ex, n, in, &gate, 1, false);
    o->glu(ex, n, HN_GELU, &both, 1, gated);
    o->linear(ex, n, gated, &product, 1, false);
    o->norm_add(ex, n, s->branch, &l->input_norm, l->scale, s->x);
}
