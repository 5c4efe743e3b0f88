/* SPDX-License-Identifier: Apache-2.0 */
/* layer_latent.c - latent attention (DeepSeek-V2, 2405.04434, section 2.1), always in its absorbed form: prompts, plain and draft rows
 * read the same rows of the cache by the same products (contract C2).
 *
 *   [reduced query | c | k_r] = A norm(x)            q = Q norm(reduced query)     c and the reduced query are normed
 *   a head:  q' = [K_h q_nope | q_rope]              scores with rows [c | k_r] of all positions, of which c is the value
 *            result = V_h (weighted c)               x += o(results)
 */
#include "model/kv_groups.h"
#include "model/layers.h"

/* The norms inside have an epsilon of their own, whatever the model's is. */
static const float LATENT_EPS = 1e-6f;

/* The products that read the stream, and the queries. */
static void queries_and_row(const hn_exec *ex, const hn_model *m, int layer, hn_count n, hn_matrix q, hn_matrix row,
                            const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_latent_desc *d = &m->arch.layer[layer].latent;
    const bool reduced = d->query_rank > 0;
    const hn_matrix less = hn_columns(s->fused, 0, d->query_rank);
    const hn_act in = hn_act_of(s->in, m->arch.hidden, l->attn_forms), normed = hn_act_of(s->mixed, d->query_rank, l->q_forms);
    const hn_linear_out first[] = {{reduced ? &l->q_a : &l->q, reduced ? less : q}, {&l->kv_a, row}}, second = {&l->q, q};
    o->rmsnorm(ex, n, s->x, l->attn_norm, m->arch.norm_eps, in, hn_no_matrix);
    o->linear(ex, n, in, first, 2, false);
    if (l->q_a_bias.mem) o->add_bias(ex, n, less, l->q_a_bias);
    if (l->kv_a_bias.mem) o->add_bias(ex, n, row, l->kv_a_bias);
    if (!reduced) return;
    o->rmsnorm(ex, n, less, l->q_a_norm, LATENT_EPS, normed, hn_no_matrix);
    o->linear(ex, n, normed, &second, 1, false);
}

/* The latent row as a key: its first part normed, the rotated part copied. */
static void key_of_row(const hn_exec *ex, const hn_layer *l, const hn_latent_desc *d, hn_count n, hn_matrix row, hn_matrix key,
                       const hn_pass_buffers *s) {
    const hn_pick rotated = {hn_columns(row, d->rank, d->rope), hn_columns(key, d->rank, d->rope), 0, d->rope, d->rope};
    ex->ops->rmsnorm(ex, n, hn_columns(row, 0, d->rank), l->kv_a_norm, LATENT_EPS, hn_act_of(s->mixed, d->rank, 0),
                     hn_columns(key, 0, d->rank));
    ex->ops->pick(ex, n, &rotated, 1);
}

void hn_layer_latent(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv, const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->arch.layer[layer];
    const hn_latent_desc *t = &d->latent;
    const hn_count n = rows->n;
    const int width = d->heads * d->head_dim, plain = d->heads * (t->nope + t->rope);
    const hn_matrix row = hn_columns(s->fused, t->query_rank, t->rank + t->rope);
    const hn_matrix q = hn_columns(s->fused, hn_latent_queries_at(t), plain);
    const hn_qkv x = {hn_columns(s->qkv, 0, width), hn_columns(s->qkv, width, d->head_dim), hn_no_matrix, d->head_dim};
    const hn_matrix attended = hn_columns(s->attended, 0, d->heads * t->rank), results = hn_columns(s->z, 0, hn_layer_mixed_width(d));
    const hn_act mixed = hn_act_of(s->mixed, results.cols, l->o_forms);
    const hn_linear_out out = {&l->o, s->x};
    const hn_attention_params how = hn_layer_how(d);

    queries_and_row(ex, m, layer, n, q, row, s);
    key_of_row(ex, l, t, n, row, x.k, s);
    o->heads_linear(ex, n, &l->k_b, (hn_head_columns){q, t->nope + t->rope}, t->rope, s->head_in, (hn_head_columns){x.q, d->head_dim});
    o->rope_store(ex, rows, hn_layer_rotation(s, d), kv, &x);
    o->attention(ex, rows, kv, &how, x.q, attended, hn_act_of(s->mixed, attended.cols, 0), s->scratch);
    o->heads_linear(ex, n, &l->v_b, (hn_head_columns){attended, t->rank}, 0, s->head_in, (hn_head_columns){results, t->value});
    o->quantise(ex, n, results, mixed);
    o->linear(ex, n, mixed, &out, 1, true);
    if (d->o_bias) o->add_bias(ex, n, s->x, l->o_bias);
}
