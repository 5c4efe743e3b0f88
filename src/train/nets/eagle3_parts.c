/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_parts.c - the weights of an EAGLE-3 head: names, shapes, and places in the vector of all. */
#include "train/nets/eagle3_net.h"
#include "train/math/parts.h"

static const hn_part_row parts[HN_EAGLE3_ALL_PARTS] = {
    [HN_EAGLE3_FC] = {"fc.weight", HN_WIDTH_HIDDEN, HN_WIDTH_OWN},
    [HN_EAGLE3_NORM_INPUT] = {"midlayer.input_layernorm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    [HN_EAGLE3_NORM_HIDDEN] = {"midlayer.hidden_norm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    HN_LAYER_PARTS(HN_EAGLE3, "midlayer.", NORM_POST, HN_WIDTH_PAIR),
    [HN_EAGLE3_NORM] = {"norm.weight", HN_WIDTH_ONE, HN_WIDTH_HIDDEN},
    [HN_EAGLE3_HEAD] = {"lm_head.weight", HN_WIDTH_OWN_2, HN_WIDTH_HIDDEN},
    [HN_EAGLE3_CENTROIDS] = {"masked_embedding.centroids.weight", HN_WIDTH_OWN_3, HN_WIDTH_HIDDEN}};

static hn_mat shape_of(const void *shape, int part) {
    const hn_eagle3_shape *s = shape;
    int width[HN_WIDTHS];
    hn_widths_of(width, &s->sizes);
    width[HN_WIDTH_OWN] = s->taps;
    width[HN_WIDTH_OWN_2] = s->vocab;
    width[HN_WIDTH_OWN_3] = s->clusters.count;
    return hn_part_shaped(&parts[part], width);
}

size_t hn_eagle3_count(const hn_eagle3_shape *s) {
    return hn_parts_before(shape_of, s, HN_EAGLE3_ALL_PARTS);
}

hn_mat hn_eagle3_part_of(const hn_eagle3_shape *s, hn_eagle3_part part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

const char *hn_eagle3_part_name(hn_eagle3_part part) {
    return parts[part].name;
}
