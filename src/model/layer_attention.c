/* SPDX-License-Identifier: Apache-2.0 */
/* layer_attention.c - grouped-query attention over the paged cache. */
#include "model/kv_groups.h"
#include "model/layers.h"

/* Separates q and gates: in the product each head of q is followed by its gate. */
static void part_gates(const hn_exec *ex, int n, const hn_layer_desc *d, const hn_pass_buffers *s) {
    const int width = d->heads * d->head_dim;
    const hn_pick part[] = {{s->fused, s->qkv, s->ldfused, s->ldqkv, 0, d->head_dim, 2 * d->head_dim, width},
                            {s->fused, s->z, s->ldfused, s->ldz, d->head_dim, d->head_dim, 2 * d->head_dim, width}};
    ex->ops->pick(ex, n, part, 2);
}

/* The attention's result, scaled or gated, in the form that o reads. */
static void mix(const hn_exec *ex, const hn_model *m, int layer, int n, const hn_pass_buffers *s) {
    const hn_layer_desc *d = &m->arch.layer[layer];
    const hn_buf none = {NULL, 0};
    const hn_act mixed = {s->mixed.data, d->heads * d->head_dim, s->mixed.max_rows};
    if (d->gated) {
        ex->ops->glu(ex, n, HN_GATE, s->z, none, s->attended, none, s->ldattended, m->arch.residual_scale, mixed,
                     m->layer[layer].o_forms);
        return;
    }
    ex->ops->scale(ex, n, s->attended, s->ldattended, mixed.in, m->arch.residual_scale);
    ex->ops->quantise(ex, n, s->attended, s->ldattended, mixed, m->layer[layer].o_forms);
}

void hn_layer_attention(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv,
                        const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->arch.layer[layer];
    const int n = rows->n;
    const size_t q_width = (size_t)(d->heads * d->head_dim), kv_width = (size_t)(d->kv_heads * d->head_dim);
    const hn_buf q = s->qkv, k = hn_at(q, q_width * sizeof(float)), v = hn_at(k, kv_width * sizeof(float));
    const hn_linear_out qkv[] = {
        {&l->q, d->gated ? s->fused : q, d->gated ? s->ldfused : s->ldqkv}, {&l->k, k, s->ldqkv}, {&l->v, v, s->ldqkv}};
    const hn_linear_out out = {&l->o, d->post_norms ? s->branch : s->x, s->ldx};
    const hn_act in = {s->in.data, l->q.in, s->in.max_rows};

    if (d->input == HN_INPUT_NORMED)
        o->rmsnorm(ex, n, s->x, s->ldx, l->attn_norm, m->arch.norm_eps, in, l->attn_forms, (hn_buf){NULL, 0}, 0);
    else if (d->input == HN_INPUT_PLAIN)
        o->quantise(ex, n, s->x, s->ldx, in, l->attn_forms);
    else
        o->quantise(ex, n, s->pair, s->ldpair, in, l->attn_forms);
    o->linear(ex, n, in, qkv, 3, false);
    if (d->gated && d->qkv_bias) o->add_bias(ex, n, s->fused, s->ldfused, 2 * (int)q_width, l->gated_bias);
    if (d->gated) part_gates(ex, n, d, s);
    if (d->qkv_bias || d->qk_norm)
        o->fix_heads(ex, n, &l->heads, d->heads, d->kv_heads, d->head_dim, q, k, v, s->ldqkv);
    o->rope_store(ex, rows, hn_layer_rotation(s, d), d->heads, kv, q, k, v, s->ldqkv);
    hn_attention_params how = hn_layer_how(d);
    how.sinks = l->sinks;
    const bool later = d->gated || m->arch.residual_scale != 1;
    const hn_act mixed = {s->mixed.data, (int)q_width, s->mixed.max_rows};
    o->attention(ex, rows, kv, &how, q, s->ldqkv, s->attended, s->ldattended, mixed, later ? 0 : l->o_forms, s->scratch);
    if (later) mix(ex, m, layer, n, s);
    o->linear(ex, n, mixed, &out, 1, !d->post_norms);
    if (d->o_bias) o->add_bias(ex, n, out.y, s->ldx, m->arch.hidden, l->o_bias);
    if (d->post_norms)
        o->norm_add(ex, n, s->branch, s->ldx, l->post_attn_norm, m->arch.norm_eps, s->x, s->ldx, m->arch.hidden);
}
