/* SPDX-License-Identifier: Apache-2.0 */
/* falcon_parts.c - the weights of Falcon's head: shapes, places in the vector of all, and names in its release. */
#include "train/nets/falcon_net.h"
#include "train/math/parts.h"

static const hn_part_row parts[HN_FALCON_PARTS] = {
    [HN_FALCON_LSTM_1] = {"lstm.weight_ih_l0", HN_WIDTH_GATES, HN_WIDTH_PAIR},
    [HN_FALCON_LSTM_2] = {"lstm.weight_ih_l1", HN_WIDTH_GATES, HN_WIDTH_HIDDEN},
    [HN_FALCON_BIAS_1] = {"lstm.bias_ih_l0", HN_WIDTH_ONE, HN_WIDTH_GATES},
    [HN_FALCON_BIAS_2] = {"lstm.bias_ih_l1", HN_WIDTH_ONE, HN_WIDTH_GATES},
    [HN_FALCON_STATE_BIAS_1] = {"lstm.bias_hh_l0", HN_WIDTH_ONE, HN_WIDTH_GATES},
    [HN_FALCON_STATE_BIAS_2] = {"lstm.bias_hh_l1", HN_WIDTH_ONE, HN_WIDTH_GATES},
    [HN_FALCON_Q] = {"layers.0.self_attn.q_proj.weight", HN_WIDTH_QUERIES, HN_WIDTH_HIDDEN},
    [HN_FALCON_K] = {"layers.0.self_attn.k_proj.weight", HN_WIDTH_KEYS, HN_WIDTH_HIDDEN},
    [HN_FALCON_V] = {"layers.0.self_attn.v_proj.weight", HN_WIDTH_KEYS, HN_WIDTH_HIDDEN},
    [HN_FALCON_O] = {"layers.0.self_attn.o_proj.weight", HN_WIDTH_HIDDEN, HN_WIDTH_QUERIES},
    [HN_FALCON_POST] = {"layers.0.post_attention_layernorm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    [HN_FALCON_GATE] = {"layers.0.mlp.gate_proj.weight", HN_WIDTH_FFN, HN_WIDTH_HIDDEN},
    [HN_FALCON_UP] = {"layers.0.mlp.up_proj.weight", HN_WIDTH_FFN, HN_WIDTH_HIDDEN},
    [HN_FALCON_DOWN] = {"layers.0.mlp.down_proj.weight", HN_WIDTH_HIDDEN, HN_WIDTH_FFN}};

static hn_mat shape_of(const void *shape, int part) {
    const hn_falcon_shape *s = shape;
    int width[HN_WIDTHS];
    hn_widths_of(width, &s->sizes);
    return hn_part_shaped(&parts[part], width);
}

size_t hn_falcon_count(const hn_falcon_shape *s) {
    return hn_parts_before(shape_of, s, HN_FALCON_PARTS);
}

hn_mat hn_falcon_part_of(const hn_falcon_shape *s, hn_falcon_part part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

const char *hn_falcon_part_name(hn_falcon_part part) {
    return parts[part].name;
}
