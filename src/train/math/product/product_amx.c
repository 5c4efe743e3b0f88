/* SPDX-License-Identifier: Apache-2.0 */
/* product_amx.c - a tile of 32 x 32 sums in four tile registers: 16 x 16 sums of 32 terms per instruction. */
#include "ops/x86/tiles_amx.h"
#include "train/math/x86/product_pack_bf16.h"
#include "train/math/product/product_tile.h"

enum { SIDE = 32, TERMS = 32 };

static void sum_tiles(int n, const char *x, const char *y) {
    for (int k = 0; k < n; k += TERMS, x += SIDE * TERMS * 2, y += SIDE * TERMS * 2) {
        hn_tile_load(4, x, 64);  /* [32 rows][32 terms] */
        hn_tile_load(6, y, 128); /* [16 pairs][32 columns][2] */
        hn_tile_load(7, y + 64, 128);
        hn_tile_dot_bf16(0, 4, 6);
        hn_tile_dot_bf16(1, 4, 7);
        hn_tile_load(5, x + 16 * 64, 64);
        hn_tile_dot_bf16(2, 5, 6);
        hn_tile_dot_bf16(3, 5, 7);
    }
}

/* Continues existing sums: a whole tile in C itself, a tile at an edge in a copy. */
static void tile(int n, const void *a, const void *b, hn_tile_out out) {
    static const hn_tile_config shapes = {
        .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _Alignas(64) float square[SIDE][SIDE];
    const bool whole = out.rows == SIDE && out.cols == SIDE;
    float *c = whole ? out.c : square[0];
    const size_t ld = whole ? out.ld : SIDE, stride = ld * sizeof *c;
    hn_tiles_shape(&shapes);
    if (out.add) {
        for (int i = 0; !whole && i < out.rows; i++)
            memcpy(square[i], out.c + (size_t)i * out.ld, sizeof *c * (size_t)out.cols);
        hn_tile_load(0, c, stride);
        hn_tile_load(1, c + 16, stride);
        hn_tile_load(2, c + 16 * ld, stride);
        hn_tile_load(3, c + 16 * ld + 16, stride);
    } else {
        hn_tile_zero(0);
        hn_tile_zero(1);
        hn_tile_zero(2);
        hn_tile_zero(3);
    }
    sum_tiles(n, a, b);
    hn_tile_store(0, c, stride);
    hn_tile_store(1, c + 16, stride);
    hn_tile_store(2, c + 16 * ld, stride);
    hn_tile_store(3, c + 16 * ld + 16, stride);
    for (int i = 0; !whole && i < out.rows; i++)
        memcpy(out.c + (size_t)i * out.ld, square[i], sizeof *c * (size_t)out.cols);
}

const hn_product_kernel hn_product_amx = {HN_ISA_AMX, HN_PRODUCTS_BF16, SIDE, SIDE, TERMS, 2, 256,
                                          2,          hn_pack_bf16,     tile};
