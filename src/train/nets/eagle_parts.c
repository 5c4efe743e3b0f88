/* SPDX-License-Identifier: Apache-2.0 */
/* eagle_parts.c - the weights of an EAGLE-1 head: names, shapes, and places in the vector of all. */
#include "train/nets/eagle_net.h"
#include "train/math/parts.h"

static const hn_part_row parts[HN_EAGLE_PARTS] = {
    [HN_EAGLE_FC] = {"fc.weight", HN_WIDTH_HIDDEN, HN_WIDTH_PAIR},
    [HN_EAGLE_FC_BIAS] = {"fc.bias", HN_WIDTH_OWN, HN_WIDTH_HIDDEN},
    HN_LAYER_PARTS(HN_EAGLE, "layers.0.", NORM_POST, HN_WIDTH_HIDDEN)};

static hn_mat shape_of(const void *shape, int part) {
    const hn_eagle_shape *s = shape;
    int width[HN_WIDTHS];
    hn_widths_of(width, &s->sizes);
    width[HN_WIDTH_OWN] = s->bias;
    return hn_part_shaped(&parts[part], width);
}

size_t hn_eagle_count(const hn_eagle_shape *s) {
    return hn_parts_before(shape_of, s, HN_EAGLE_PARTS);
}

hn_mat hn_eagle_part_of(const hn_eagle_shape *s, hn_eagle_part part, hn_real *vector) {
    return hn_part_in(shape_of, s, part, vector);
}

const char *hn_eagle_part_name(hn_eagle_part part) {
    return parts[part].name;
}
