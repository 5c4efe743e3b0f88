/* SPDX-License-Identifier: Apache-2.0 */
/* product_ref.c - the product's inner loop in plain C, of floats and of doubles. */
#include "train/math/product/product_tile.h"

enum { ROWS = 4, COLS = 8 };

static void tile(int n, const void *a, const void *b, hn_tile_out out) {
    const hn_real *x = a, *y = b;
    hn_real sum[ROWS][COLS] = {{0}};
    for (int k = 0; k < n; k++, x += ROWS, y += COLS)
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLS; j++) sum[i][j] += x[i] * y[j];
    hn_tile_write(sum[0], COLS, out);
}

const hn_product_kernel hn_product_ref = {HN_ISA_REF, HN_PRODUCTS_F32, ROWS,          COLS, 1, 1,
                                          256,        sizeof(hn_real), hn_pack_plain, tile};
