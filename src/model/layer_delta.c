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

/* The products of a layer's input as the net reads them: q | k | v, z, and b | a; and those whose parts are interleaved by key heads,
 * one after another. */
typedef struct parts {
    hn_matrix m, z, b, a;
    hn_matrix all, gates; /* fused: of q, k, v and z; of b and a */
} parts;

static parts parts_of(const hn_delta *net, const hn_pass_buffers *s) {
    const int channels = hn_delta_channels(net), values = hn_delta_values(net), heads = net->value_heads;
    return (parts){.m = hn_columns(s->qkv, 0, channels),
                   .z = hn_columns(s->z, 0, values),
                   .b = hn_columns(s->gates, 0, heads),
                   .a = hn_columns(s->gates, heads, heads),
                   .all = hn_columns(s->fused, 0, channels + values),
                   .gates = hn_columns(s->fused, channels + values, 2 * heads)};
}

/* Reorders fused products. */
static void sort_out(const hn_exec *ex, hn_count n, const hn_delta_desc *d, const hn_delta *net, const parts *p) {
    const int each = d->value_heads / d->key_heads, values = each * d->value_dim, key = d->key_dim, run = 2 * key + 2 * values;
    const int keys = hn_delta_keys(net);
    hn_pick part[6];
    int k = 0;
    if (d->fused) {
        part[k++] = (hn_pick){p->all, hn_columns(p->m, 0, keys), 0, key, run};
        part[k++] = (hn_pick){p->all, hn_columns(p->m, keys, keys), key, key, run};
        part[k++] = (hn_pick){p->all, hn_columns(p->m, 2 * keys, hn_delta_values(net)), 2 * key, values, run};
        part[k++] = (hn_pick){p->all, p->z, 2 * key + values, values, run};
    }
    if (d->fused_gates) {
        part[k++] = (hn_pick){p->gates, p->b, 0, each, 2 * each};
        part[k++] = (hn_pick){p->gates, p->a, each, each, 2 * each};
    }
    if (k > 0) ex->ops->pick(ex, n, part, k);
}

/* The products of the layer's input. */
static void products(const hn_exec *ex, const hn_model *m, int layer, hn_count n, const hn_delta *net, hn_act in, const parts *p) {
    const hn_layer *l = &m->layer[layer];
    const hn_delta_desc *d = &m->arch.layer[layer].delta;
    hn_linear_out out[4];
    int k = 0;
    out[k++] = (hn_linear_out){&l->q, d->fused ? p->all : p->m};
    if (!d->fused) out[k++] = (hn_linear_out){&l->z, p->z};
    out[k++] = (hn_linear_out){&l->beta, d->fused_gates ? p->gates : p->b};
    if (!d->fused_gates) out[k++] = (hn_linear_out){&l->alpha, p->a};
    ex->ops->linear(ex, n, in, out, k, false);
    sort_out(ex, n, d, net, p);
}

void hn_layer_delta(const hn_exec *ex, const hn_model *m, int layer, const hn_delta_at *at, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_delta net = net_of(m, layer);
    const parts p = parts_of(&net, s);
    const hn_count n = s->rows->n;
    const hn_act in = hn_act_of(s->in, m->arch.hidden, l->attn_forms), mixed = hn_act_of(s->mixed, p.z.cols, l->o_forms);
    const hn_linear_out out = {&l->o, s->x};
    const hn_delta_job job = {.net = &net,
                              .walk = at->walk,
                              .n_seqs = s->rows->n_seqs,
                              .inputs = at->inputs,
                              .states = at->states,
                              .m = p.m,
                              .z = p.z,
                              .b = p.b,
                              .a = p.a,
                              .scratch = s->delta_scratch};
    o->rmsnorm(ex, n, s->x, l->attn_norm, m->arch.norm_eps, in, hn_no_matrix);
    products(ex, m, layer, n, &net, in, &p);
    o->delta(ex, &job);
    o->quantise(ex, n, p.z, mixed);
    o->linear(ex, n, mixed, &out, 1, true);
}
