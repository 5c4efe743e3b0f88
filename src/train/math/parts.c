/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - see parts.h. */
#include "train/math/parts.h"

void hn_widths_of(int width[HN_WIDTHS], const hn_sizes *s) {
    const int widths[HN_WIDTHS] = {[HN_WIDTH_ONE] = 1,
                                   [HN_WIDTH_HIDDEN] = s->hidden,
                                   [HN_WIDTH_PAIR] = 2 * s->hidden,
                                   [HN_WIDTH_GATES] = 4 * s->hidden,
                                   [HN_WIDTH_QUERIES] = s->heads * s->head_dim,
                                   [HN_WIDTH_KEYS] = s->kv_heads * s->head_dim,
                                   [HN_WIDTH_HEAD] = s->head_dim,
                                   [HN_WIDTH_FFN] = s->ffn};
    for (int i = 0; i < HN_WIDTHS; i++) width[i] = widths[i];
}

size_t hn_parts_before(hn_part_shape *of, const void *shape, int part) {
    size_t n = 0;
    for (int i = 0; i < part; i++) {
        const hn_mat m = of(shape, i);
        n += (size_t)m.rows * (size_t)m.cols;
    }
    return n;
}

hn_mat hn_part_in(hn_part_shape *of, const void *shape, int part, hn_real *vector) {
    hn_mat m = of(shape, part);
    m.p = vector + hn_parts_before(of, shape, part);
    return m;
}
