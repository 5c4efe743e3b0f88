/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - see parts.h. */
#include "train/parts.h"

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
