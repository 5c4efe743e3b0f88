/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - the matrices of a network are one after another in one vector, as are those of its gradient. */
#ifndef HN_PARTS_H
#define HN_PARTS_H
#include "train/real.h"

/* Rows and columns of part `part` of a network of shape *shape; p is not used. */
typedef hn_mat hn_part_shape(const void *shape, int part);

/* Numbers in the parts before `part`; with the number of parts: in all. */
size_t hn_parts_before(hn_part_shape *of, const void *shape, int part);
hn_mat hn_part_in(hn_part_shape *of, const void *shape, int part, hn_real *vector);
#endif
