/* SPDX-License-Identifier: Apache-2.0 */
/* falcon_parts.c - the weights of Falcon's head: shapes, places in the vector of all, and names in its release. */
#include "train/falcon_net.h"
#include "train/parts.h"

static hn_mat shape_of(const void *shape, int part) {
    const hn_falcon_shape *s = shape;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    switch (part) {
    case HN_FALCON_LSTM_1: return hn_mat_of(NULL, 4 * s->hidden, 2 * s->hidden);
    case HN_FALCON_LSTM_2: return hn_mat_of(NULL, 4 * s->hidden, s->hidden);
    case HN_FALCON_Q: return hn_mat_of(NULL, q, s->hidden);
    case HN_FALCON_K:
    case HN_FALCON_V: return hn_mat_of(NULL, kv, s->hidden);
    case HN_FALCON_O: return hn_mat_of(NULL, s->hidden, q);
    case HN_FALCON_POST: return hn_mat_of(NULL, 1, s->hidden);
    case HN_FALCON_GATE:
    case HN_FALCON_UP: return hn_mat_of(NULL, s->ffn, s->hidden);
    case HN_FALCON_DOWN: return hn_mat_of(NULL, s->hidden, s->ffn);
    default: return hn_mat_of(NULL, 1, 4 * s->hidden);
    }
}

size_t hn_falcon_count(const hn_falcon_shape *s) {
    return hn_parts_before(shape_of, s, HN_FALCON_PARTS);
}

hn_mat hn_falcon_part_of(const hn_falcon_shape *s, hn_falcon_part part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

const char *hn_falcon_part_name(hn_falcon_part part) {
    static const char *const names[HN_FALCON_PARTS] = {[HN_FALCON_LSTM_1] = "lstm.weight_ih_l0",
                                                       [HN_FALCON_LSTM_2] = "lstm.weight_ih_l1",
                                                       [HN_FALCON_BIAS_1] = "lstm.bias_ih_l0",
                                                       [HN_FALCON_BIAS_2] = "lstm.bias_ih_l1",
                                                       [HN_FALCON_STATE_BIAS_1] = "lstm.bias_hh_l0",
                                                       [HN_FALCON_STATE_BIAS_2] = "lstm.bias_hh_l1",
                                                       [HN_FALCON_Q] = "layers.0.self_attn.q_proj.weight",
                                                       [HN_FALCON_K] = "layers.0.self_attn.k_proj.weight",
                                                       [HN_FALCON_V] = "layers.0.self_attn.v_proj.weight",
                                                       [HN_FALCON_O] = "layers.0.self_attn.o_proj.weight",
                                                       [HN_FALCON_POST] = "layers.0.post_attention_layernorm.weight",
                                                       [HN_FALCON_GATE] = "layers.0.mlp.gate_proj.weight",
                                                       [HN_FALCON_UP] = "layers.0.mlp.up_proj.weight",
                                                       [HN_FALCON_DOWN] = "layers.0.mlp.down_proj.weight"};
    return names[part];
}
