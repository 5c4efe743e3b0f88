/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - see parts.h. */
#include "train/math/parts.h"

void hn_widths_of(int width[HN_WIDTHS], int hidden, int heads, int kv_heads, int head_dim, int ffn) {
    const int widths[HN_WIDTHS] = {[HN_WIDTH_ONE] = 1,
                                   [HN_WIDTH_HIDDEN] = hidden,
                                   [HN_WIDTH_PAIR] = 2 * hidden,
                                   [HN_WIDTH_GATES] = 4 * hidden,
                                   [HN_WIDTH_QUERIES] = heads * head_dim,
                                   [HN_WIDTH_KEYS] = kv_heads * head_dim,
                                   [HN_WIDTH_HEAD] = head_dim,
                                   [HN_WIDTH_FFN] = ffn};
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
