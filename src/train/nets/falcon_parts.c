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
    HN_LAYER_PARTS(HN_FALCON, "layers.0.", POST, HN_WIDTH_HIDDEN)};

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
