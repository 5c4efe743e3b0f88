/* SPDX-License-Identifier: Apache-2.0 */
/* eagle_parts.c - the weights of an EAGLE-1 head: shapes, and places in the vector of all. */
#include "train/eagle_net.h"
#include "train/parts.h"

static hn_mat shape_of(const void *shape, int part) {
    const hn_eagle_shape *s = shape;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    switch (part) {
    case HN_EAGLE_FC: return hn_mat_of(NULL, s->hidden, 2 * s->hidden);
    case HN_EAGLE_FC_BIAS: return hn_mat_of(NULL, s->bias, s->hidden);
    case HN_EAGLE_Q: return hn_mat_of(NULL, q, s->hidden);
    case HN_EAGLE_K:
    case HN_EAGLE_V: return hn_mat_of(NULL, kv, s->hidden);
    case HN_EAGLE_O: return hn_mat_of(NULL, s->hidden, q);
    case HN_EAGLE_GATE:
    case HN_EAGLE_UP: return hn_mat_of(NULL, s->ffn, s->hidden);
    case HN_EAGLE_DOWN: return hn_mat_of(NULL, s->hidden, s->ffn);
    default: return hn_mat_of(NULL, 1, s->hidden);
    }
}

size_t hn_eagle_count(const hn_eagle_shape *s) {
    return hn_parts_before(shape_of, s, HN_EAGLE_PARTS);
}

hn_mat hn_eagle_part_of(const hn_eagle_shape *s, hn_eagle_part part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

const char *hn_eagle_part_name(hn_eagle_part part) {
    static const char *const names[HN_EAGLE_PARTS] = {
        [HN_EAGLE_FC] = "fc.weight",
        [HN_EAGLE_FC_BIAS] = "fc.bias",
        [HN_EAGLE_Q] = "layers.0.self_attn.q_proj.weight",
        [HN_EAGLE_K] = "layers.0.self_attn.k_proj.weight",
        [HN_EAGLE_V] = "layers.0.self_attn.v_proj.weight",
        [HN_EAGLE_O] = "layers.0.self_attn.o_proj.weight",
        [HN_EAGLE_NORM_POST] = "layers.0.post_attention_layernorm.weight",
        [HN_EAGLE_GATE] = "layers.0.mlp.gate_proj.weight",
        [HN_EAGLE_UP] = "layers.0.mlp.up_proj.weight",
        [HN_EAGLE_DOWN] = "layers.0.mlp.down_proj.weight"};
    return names[part];
}
