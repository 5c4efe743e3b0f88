/* SPDX-License-Identifier: Apache-2.0 */
/* layer_delta.c - a gated delta net: its products, and between them one operation (ops/delta.h). */
#include "model/kv_groups.h"
#include "model/layers.h"

static hn_delta net_of(const hn_model *m, int layer) {
    const hn_layer *l = &m->layer[layer];
    hn_delta d = hn_layer_delta_sizes(&m->arch.layer[layer]);
    d.eps = m->arch.norm_eps;
    d.conv = l->conv;
    d.decay = l->decay;
    d.dt = l->dt;
    d.norm = l->delta_norm;
    return d;
}

/* Reorders products that are ordered by key heads: q | k | v, and z; b and a. */
static void sort_out(const hn_exec *ex, int n, const hn_delta_desc *d, const hn_delta *net, const hn_pass_buffers *s) {
    const int each = d->value_heads / d->key_heads, values = each * d->value_dim, run = 2 * d->key_dim + 2 * values;
    const size_t keys = (size_t)hn_delta_keys(net) * sizeof(float), gates = (size_t)d->value_heads * sizeof(float);
    const hn_buf two = hn_at(s->fused, sizeof(float) * (size_t)(hn_delta_channels(net) + hn_delta_values(net)));
    hn_pick part[6];
    int k = 0;
    if (d->fused) {
        part[k++] = (hn_pick){s->fused, s->qkv, s->ldfused, s->ldqkv, 0, d->key_dim, run, hn_delta_keys(net)};
        part[k++] = (hn_pick){s->fused, hn_at(s->qkv, keys), s->ldfused, s->ldqkv, d->key_dim, d->key_dim, run, hn_delta_keys(net)};
        part[k++] = (hn_pick){s->fused, hn_at(s->qkv, 2 * keys), s->ldfused, s->ldqkv, 2 * d->key_dim, values, run, hn_delta_values(net)};
        part[k++] = (hn_pick){s->fused, s->z, s->ldfused, s->ldz, 2 * d->key_dim + values, values, run, hn_delta_values(net)};
    }
    if (d->fused_gates) {
        part[k++] = (hn_pick){two, s->gates, s->ldfused, s->ldgates, 0, each, 2 * each, d->value_heads};
        part[k++] = (hn_pick){two, hn_at(s->gates, gates), s->ldfused, s->ldgates, each, each, 2 * each, d->value_heads};
    }
    if (k > 0) ex->ops->pick(ex, n, part, k);
}

/* The products of the layer's input. */
static void products(const hn_exec *ex, const hn_model *m, int layer, const hn_delta *net, const hn_pass_buffers *s) {
    const hn_layer *l = &m->layer[layer];
    const hn_delta_desc *d = &m->arch.layer[layer].delta;
    const hn_buf two = hn_at(s->fused, sizeof(float) * (size_t)(hn_delta_channels(net) + hn_delta_values(net)));
    const hn_act in = {s->in.data, m->arch.hidden, s->in.max_rows};
    hn_linear_out out[4];
    int k = 0;
    out[k++] = d->fused ? (hn_linear_out){&l->q, s->fused, s->ldfused} : (hn_linear_out){&l->q, s->qkv, s->ldqkv};
    if (!d->fused) out[k++] = (hn_linear_out){&l->z, s->z, s->ldz};
    out[k++] = d->fused_gates ? (hn_linear_out){&l->beta, two, s->ldfused} : (hn_linear_out){&l->beta, s->gates, s->ldgates};
    if (!d->fused_gates)
        out[k++] = (hn_linear_out){&l->alpha, hn_at(s->gates, (size_t)d->value_heads * sizeof(float)), s->ldgates};
    ex->ops->linear(ex, s->rows->n, in, out, k, false);
    sort_out(ex, s->rows->n, d, net, s);
}

void hn_layer_delta(const hn_exec *ex, const hn_model *m, int layer, const hn_delta_at *at, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_delta net = net_of(m, layer);
    const int n = s->rows->n;
    const hn_act in = {s->in.data, m->arch.hidden, s->in.max_rows}, mixed = {s->mixed.data, hn_delta_values(&net), s->mixed.max_rows};
    const hn_linear_out out = {&l->o, s->x, s->ldx};
    const hn_delta_job job = {.net = &net,
                              .walk = at->walk,
                              .n_seqs = s->rows->n_seqs,
                              .inputs = at->inputs,
                              .states = at->states,
                              .m = s->qkv,
                              .z = s->z,
                              .b = s->gates,
                              .a = hn_at(s->gates, (size_t)net.value_heads * sizeof(float)),
                              .ldm = s->ldqkv,
                              .ldz = s->ldz,
                              .ldg = s->ldgates,
                              .scratch = s->delta_scratch,
                              .scratch_bytes = s->delta_bytes};
    o->rmsnorm(ex, n, s->x, s->ldx, l->attn_norm, m->arch.norm_eps, in, l->attn_forms, (hn_buf){NULL, 0}, 0);
    products(ex, m, layer, &net, s);
    o->delta(ex, &job);
    o->quantise(ex, n, s->z, s->ldz, mixed, l->o_forms);
    o->linear(ex, n, mixed, &out, 1, true);
}
