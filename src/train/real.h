/* SPDX-License-Identifier: Apache-2.0 */
/* real.h - what numbers the trainer computes with, and how it passes matrices.
 *
 * The floor src/train belongs to the program that trains draft heads; neither the library nor the command is linked
 * with it. It is compiled twice: with float, which is what trains, and with double, in which the tests hold every
 * gradient against finite differences (HN_TRAIN_DOUBLE, hunch_train_double in CMakeLists.txt). Where to read on:
 * product.h, then layers_back.h, attention_back.h, loss.h, eagle3_net.h, adamw.h. */
#ifndef HN_REAL_H
#define HN_REAL_H
#include <stdbool.h>
#include <stddef.h>

#ifdef HN_TRAIN_DOUBLE
typedef double hn_real;
#else
typedef float hn_real;
#endif

/* A matrix that lies somewhere, row by row: row r begins at p + r * ld. Whether it is read or written the functions
 * say. */
typedef struct hn_mat {
    hn_real *p;
    int rows, cols;
    size_t ld;
} hn_mat;

static inline hn_mat hn_mat_of(hn_real *p, int rows, int cols) {
    return (hn_mat){p, rows, cols, (size_t)cols};
}
static inline hn_real *hn_mat_row(hn_mat m, int row) {
    return m.p + (size_t)row * m.ld;
}
/* Columns [first, first + cols). */
static inline hn_mat hn_mat_cols(hn_mat m, int first, int cols) {
    return (hn_mat){m.p + first, m.rows, cols, m.ld};
}
/* Rows [first, first + rows). */
static inline hn_mat hn_mat_part(hn_mat m, int first, int rows) {
    return (hn_mat){hn_mat_row(m, first), rows, m.cols, m.ld};
}
#endif
