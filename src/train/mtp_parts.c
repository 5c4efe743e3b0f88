/* SPDX-License-Identifier: Apache-2.0 */
/* mtp_parts.c - the weights of a module of multi-token prediction: shapes, and places in the vector of all. */
#include <stdio.h>

#include "train/mtp_net.h"
#include "train/parts.h"

static hn_mat shape_of(const void *shape, int part) {
    const hn_mtp_shape *s = shape;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    switch (part % HN_MTP_PARTS) {
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
    return hn_parts_before(shape_of, s, s->modules * HN_MTP_PARTS);
}

hn_mat hn_mtp_part_of(const hn_mtp_shape *s, int part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

void hn_mtp_part_name(int part, char *out) {
    static const char *const names[HN_MTP_PARTS] = {
        [HN_MTP_NORM_TOKEN] = "token_layernorm.weight",
        [HN_MTP_NORM_HIDDEN] = "hidden_layernorm.weight",
        [HN_MTP_FC] = "input_proj.weight",
        [HN_MTP_NORM_INPUT] = "input_layernorm.weight",
        [HN_MTP_Q] = "self_attn.q_proj.weight",
        [HN_MTP_K] = "self_attn.k_proj.weight",
        [HN_MTP_V] = "self_attn.v_proj.weight",
        [HN_MTP_O] = "self_attn.o_proj.weight",
        [HN_MTP_Q_NORM] = "self_attn.q_norm.weight",
        [HN_MTP_K_NORM] = "self_attn.k_norm.weight",
        [HN_MTP_NORM_POST] = "post_attention_layernorm.weight",
        [HN_MTP_GATE] = "mlp.gate_proj.weight",
        [HN_MTP_UP] = "mlp.up_proj.weight",
        [HN_MTP_DOWN] = "mlp.down_proj.weight",
        [HN_MTP_NORM_OUTPUT] = "final_layernorm.weight"};
    snprintf(out, 80, "mtp_layers.%d.%s", part / HN_MTP_PARTS, names[part % HN_MTP_PARTS]);
}
