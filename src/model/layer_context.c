/* SPDX-License-Identifier: Apache-2.0 */
/* layer_context.c - rows of the text in a head of blocks (DFlash, 2602.06036): only keys and values of every layer,
 * computed by the layer's own products from one vector for each position, norm(fc(feature)). Rows of a block:
 * layer_attention.c. */
#include "model/layers.h"

void hn_layer_context(const hn_exec *ex, const hn_model *m, int layer, const hn_rows *rows, const hn_kv *kv,
                      const hn_pass_buffers *s) {
    const hn_ops *o = ex->ops;
    const hn_layer *l = &m->layer[layer];
    const hn_layer_desc *d = &m->arch.layer[layer];
    const int width = d->kv_heads * d->head_dim;
    const hn_qkv x = {hn_no_matrix, hn_columns(s->qkv, 0, width), hn_columns(s->qkv, width, width), d->head_dim};
    const hn_linear_out both[] = {{&l->k, x.k}, {&l->v, x.v}};
    o->linear(ex, rows->n, hn_act_of(s->in, l->k.in, l->attn_forms), both, 2, false);
    if (d->qkv_bias || d->qk_norm || d->v_norm) o->fix_heads(ex, rows->n, &l->heads, &x);
    o->rope_store(ex, rows, hn_layer_rotation(s, d), kv, &x);
}
