/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_parts.c - the weights of an EAGLE-3 head: shapes, and places in the vector of all. */
#include "train/eagle3_net.h"
#include "train/parts.h"

static hn_mat shape_of(const void *shape, int part) {
    const hn_eagle3_shape *s = shape;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    switch (part) {
    case HN_EAGLE3_FC: return hn_mat_of(NULL, s->hidden, s->taps);
    case HN_EAGLE3_Q: return hn_mat_of(NULL, q, 2 * s->hidden);
    case HN_EAGLE3_K:
    case HN_EAGLE3_V: return hn_mat_of(NULL, kv, 2 * s->hidden);
    case HN_EAGLE3_O: return hn_mat_of(NULL, s->hidden, q);
    case HN_EAGLE3_GATE:
    case HN_EAGLE3_UP: return hn_mat_of(NULL, s->ffn, s->hidden);
    case HN_EAGLE3_DOWN: return hn_mat_of(NULL, s->hidden, s->ffn);
    case HN_EAGLE3_HEAD: return hn_mat_of(NULL, s->vocab, s->hidden);
    case HN_EAGLE3_CENTROIDS: return hn_mat_of(NULL, s->clusters.count, s->hidden);
    default: return hn_mat_of(NULL, 1, s->hidden);
    }
}

size_t hn_eagle3_count(const hn_eagle3_shape *s) {
    return hn_parts_before(shape_of, s, HN_EAGLE3_ALL_PARTS);
}

hn_mat hn_eagle3_part_of(const hn_eagle3_shape *s, hn_eagle3_part part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

const char *hn_eagle3_part_name(hn_eagle3_part part) {
    static const char *const names[HN_EAGLE3_ALL_PARTS] = {
        [HN_EAGLE3_CENTROIDS] = "masked_embedding.centroids.weight",
        [HN_EAGLE3_FC] = "fc.weight",
        [HN_EAGLE3_NORM_INPUT] = "midlayer.input_layernorm.weight",
        [HN_EAGLE3_NORM_HIDDEN] = "midlayer.hidden_norm.weight",
        [HN_EAGLE3_Q] = "midlayer.self_attn.q_proj.weight",
        [HN_EAGLE3_K] = "midlayer.self_attn.k_proj.weight",
        [HN_EAGLE3_V] = "midlayer.self_attn.v_proj.weight",
        [HN_EAGLE3_O] = "midlayer.self_attn.o_proj.weight",
        [HN_EAGLE3_NORM_POST] = "midlayer.post_attention_layernorm.weight",
        [HN_EAGLE3_GATE] = "midlayer.mlp.gate_proj.weight",
        [HN_EAGLE3_UP] = "midlayer.mlp.up_proj.weight",
        [HN_EAGLE3_DOWN] = "midlayer.mlp.down_proj.weight",
        [HN_EAGLE3_NORM] = "norm.weight",
        [HN_EAGLE3_HEAD] = "lm_head.weight"};
    return names[part];
}
