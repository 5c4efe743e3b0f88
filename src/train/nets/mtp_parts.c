/* SPDX-License-Identifier: Apache-2.0 */
/* mtp_parts.c - the weights of a module of multi-token prediction: names, shapes, and places in the vector of all. */
#include <stdio.h>

#include "train/nets/mtp_net.h"
#include "train/math/parts.h"

static const hn_part_row parts[HN_MTP_PARTS] = {
    [HN_MTP_NORM_TOKEN] = {"token_layernorm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    [HN_MTP_NORM_HIDDEN] = {"hidden_layernorm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    [HN_MTP_FC] = {"input_proj.weight", HN_WIDTH_HIDDEN, HN_WIDTH_PAIR},
    [HN_MTP_NORM_INPUT] = {"input_layernorm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    HN_LAYER_PARTS(HN_MTP, "", NORM_POST, HN_WIDTH_HIDDEN),
    [HN_MTP_Q_NORM] = {"self_attn.q_norm.weight", HN_WIDTH_ONE, HN_WIDTH_HEAD},
    [HN_MTP_K_NORM] = {"self_attn.k_norm.weight", HN_WIDTH_ONE, HN_WIDTH_HEAD},
    [HN_MTP_NORM_OUTPUT] = {"final_layernorm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN}};

static hn_mat shape_of(const void *shape, int part) {
    const hn_mtp_shape *s = shape;
    int width[HN_WIDTHS];
    hn_widths_of(width, &s->sizes);
    return hn_part_shaped(&parts[part % HN_MTP_PARTS], width);
}

size_t hn_mtp_count(const hn_mtp_shape *s) {
    return hn_parts_before(shape_of, s, s->modules * HN_MTP_PARTS);
}

hn_mat hn_mtp_part_of(const hn_mtp_shape *s, int part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

void hn_mtp_part_name(int part, char *out) {
    snprintf(out, 80, "mtp_layers.%d.%s", part / HN_MTP_PARTS, parts[part % HN_MTP_PARTS].name);
}
