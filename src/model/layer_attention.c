/* SPDX-License-Identifier: Apache-2.0 */
/* layer_attention.c - grouped-query attention over the paged cache. */
#include "model/kv_groups.h"
#include "model/layers.h"

/* Separates q and gates: in the product each head of q is followed by its gate. */
static void part_gates(const hn_exec *ex, hn_count n, const hn_layer_desc *d, hn_matrix q, hn_matrix gates, const hn_pass_buffers *s) {
    const hn_matrix both = hn_columns(s->fused, 0, 2 * q.cols);
    const hn_pick part[] = {{both, q, 0, d->head_dim, 2 * d->head_dim}, {both, gates, d->head_dim, d->head_dim, 2 * d->head_dim}};
    ex->ops->pick(ex, n, part, 2);
}

/* The attention's result, scaled or gated, in the form that o reads. */
static void mix(const hn_exec *ex, const hn_model *m, int layer, hn_count n, hn_matrix attended, hn_act mixed, const hn_pass_buffers *s) {
    if (m->arch.layer[layer].gated) {
        const hn_glu_in in = {.gate = hn_columns(s->z, 0, attended.cols), .up = attended};
        ex->ops->glu(ex, n, HN_GATE, &in, m->arch.residual_scale, mixed);
        return;
    }
    ex->ops->scale(ex, n, attended, m->arch.residual_scale);
    ex->ops->quantise(ex, n, attended, mixed);
}

/* Queries, keys and values side by side; queries alone if the layer stores no rows. */
static hn_qkv heads_of(const hn_layer_desc *d, bool stores, const hn_pass_buffers *s) {
    const int q = d->heads * d->head_dim, kv = stores ? d->kv_heads * d->head_dim : 0;
    return (hn_qkv){hn_columns(s->qkv, 0, q), hn_columns(s->qkv, q, kv), hn_columns(s->qkv, q + kv, kv), d->head_dim};
}

void hn_layer_attention(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv,
                        const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->arch.layer[layer];
    const bool stores = rows->slot.mem && d->kv_back == 0; /* else queries alone */
    const hn_count n = rows->n;
    const int q_width = d->heads * d->head_dim;
    const hn_qkv x = heads_of(d, stores, s);
    const hn_matrix fused = hn_columns(s->fused, 0, 2 * q_width), attended = hn_columns(s->attended, 0, q_width);
    const hn_linear_out qkv[] = {{&l->q, d->gated ? fused : x.q}, {&l->k, x.k}, {&l->v, x.v}};
    const hn_pick copy = {x.k, x.v, 0, x.v.cols, 0};
    const hn_head_conv *conv = m->head.conv ? &m->head.conv[2 * layer] : NULL;
    const bool branch = d->post_norms || conv;
    const hn_linear_out out = {&l->o, branch ? s->branch : s->x};
    const hn_act in = hn_act_of(s->in, l->q.in, l->attn_forms), mixed = hn_act_of(s->mixed, q_width, l->o_forms);

    if (conv)
        hn_layer_conv_in(ex, m, conv, l->attn_norm, in, s);
    else if (d->input == HN_INPUT_NORMED)
        o->rmsnorm(ex, n, s->x, l->attn_norm, m->arch.norm_eps, in, hn_no_matrix);
    else
        o->quantise(ex, n, d->input == HN_INPUT_PLAIN ? s->x : s->pair, in);
    o->linear(ex, n, in, qkv, !stores ? 1 : d->v_is_k ? 2 : 3, false);
    if (d->gated && d->qkv_bias) o->add_bias(ex, n, fused, l->gated_bias);
    if (d->gated) part_gates(ex, n, d, x.q, hn_columns(s->z, 0, q_width), s);
    if (stores && d->v_is_k) o->pick(ex, n, &copy, 1);
    if (d->qkv_bias || d->qk_norm || d->v_norm) o->fix_heads(ex, n, &l->heads, &x);
    o->rope_store(ex, rows, hn_layer_rotation(s, d), kv, &x);
    hn_attention_params how = hn_layer_how(d);
    how.sinks = l->sinks;
    how.ahead |= !rows->slot.mem; /* rows without slots see up to the last one of others */
    const bool later = d->gated || m->arch.residual_scale != 1;
    o->attention(ex, rows, kv, &how, x.q, attended, hn_act_of(mixed, q_width, later ? 0 : l->o_forms), s->scratch);
    if (later) mix(ex, m, layer, n, attended, mixed, s);
    o->linear(ex, n, mixed, &out, 1, !branch);
    if (d->o_bias) o->add_bias(ex, n, out.y, l->o_bias);
    if (conv) hn_layer_conv_out(ex, m, conv, s);
    if (d->post_norms) o->norm_add(ex, n, s->branch, l->post_attn_norm, m->arch.norm_eps, 1, s->x);
}
