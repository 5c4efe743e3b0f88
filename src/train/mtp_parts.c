/* SPDX-License-Identifier: Apache-2.0 */
/* mtp_parts.c - which weights a module of multi-token prediction has, of which shape, and where they lie in the vector of all. */
#include "train/mtp_net.h"
#include "train/parts.h"

static hn_mat shape_of(const void *shape, int part) {
    const hn_mtp_shape *s = shape;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    switch (part) {
    case HN_MTP_FC: return hn_mat_of(NULL, s->hidden, 2 * s->hidden);
    case HN_MTP_Q: return hn_mat_of(NULL, q, s->hidden);
    case HN_MTP_K:
    case HN_MTP_V: return hn_mat_of(NULL, kv, s->hidden);
    case HN_MTP_O: return hn_mat_of(NULL, s->hidden, q);
    case HN_MTP_Q_NORM:
    case HN_MTP_K_NORM: return hn_mat_of(NULL, 1, s->head_dim);
    case HN_MTP_GATE:
    case HN_MTP_UP: return hn_mat_of(NULL, s->ffn, s->hidden);
    case HN_MTP_DOWN: return hn_mat_of(NULL, s->hidden, s->ffn);
    default: return hn_mat_of(NULL, 1, s->hidden);
    }
}

size_t hn_mtp_count(const hn_mtp_shape *s) {
    return hn_parts_before(shape_of, s, HN_MTP_PARTS);
}

hn_mat hn_mtp_part_of(const hn_mtp_shape *s, hn_mtp_part part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

const char *hn_mtp_part_name(hn_mtp_part part) {
    static const char *const names[HN_MTP_PARTS] = {
        [HN_MTP_NORM_TOKEN] = "mtp_layers.0.token_layernorm.weight",
        [HN_MTP_NORM_HIDDEN] = "mtp_layers.0.hidden_layernorm.weight",
        [HN_MTP_FC] = "mtp_layers.0.input_proj.weight",
        [HN_MTP_NORM_INPUT] = "mtp_layers.0.input_layernorm.weight",
        [HN_MTP_Q] = "mtp_layers.0.self_attn.q_proj.weight",
        [HN_MTP_K] = "mtp_layers.0.self_attn.k_proj.weight",
        [HN_MTP_V] = "mtp_layers.0.self_attn.v_proj.weight",
        [HN_MTP_O] = "mtp_layers.0.self_attn.o_proj.weight",
        [HN_MTP_Q_NORM] = "mtp_layers.0.self_attn.q_norm.weight",
        [HN_MTP_K_NORM] = "mtp_layers.0.self_attn.k_norm.weight",
        [HN_MTP_NORM_POST] = "mtp_layers.0.post_attention_layernorm.weight",
        [HN_MTP_GATE] = "mtp_layers.0.mlp.gate_proj.weight",
        [HN_MTP_UP] = "mtp_layers.0.mlp.up_proj.weight",
        [HN_MTP_DOWN] = "mtp_layers.0.mlp.down_proj.weight",
        [HN_MTP_NORM_OUTPUT] = "mtp_layers.0.final_layernorm.weight"};
    return names[part];
}
