/* SPDX-License-Identifier: Apache-2.0 */
/* real.h - the number type of the trainer, and its matrices.
 *
 * The layer src/train belongs to the program that trains draft heads; neither the library nor the command is linked
 * with it. It is compiled twice: with float for training, and with double for tests that compare every gradient with
 * finite differences (HN_TRAIN_DOUBLE, hunch_train_double in CMakeLists.txt). Read on in: product.h, then
 * layers_back.h, attention_back.h, loss.h, eagle3_net.h, adamw.h. */
#ifndef HN_REAL_H
#define HN_REAL_H
#include <stdbool.h>
#include <stddef.h>

#ifdef HN_TRAIN_DOUBLE
typedef double hn_real;
#else
typedef float hn_real;
#endif

/* A matrix in memory of its caller, row by row: row r starts at p + r * ld. Each function specifies whether it is read or written. */
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
