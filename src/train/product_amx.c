/* SPDX-License-Identifier: Apache-2.0 */
/* product_amx.c - a tile of 32 x 32 sums in four tile registers: 16 x 16 sums of 32 terms an instruction. */
#include "ops/x86/tiles_amx.h"
#include "train/product_tile.h"

enum { SIDE = 32, TERMS = 32 };

#define TILE_DOT_BF16(sum, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : :)

static void tile(int n, const void *a, const void *b, hn_tile_out out) {
    static const hn_tile_config shapes = {.palette = 1,
                                          .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                          .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _Alignas(64) float square[SIDE][SIDE] = {{0}};
    const char *x = a, *y = b; /* [32 rows][32 terms], [16 pairs][32 columns][2] */
    hn_tiles_shape(&shapes);
    __asm__ volatile("tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3" : :);
    for (int k = 0; k < n; k += TERMS, x += SIDE * TERMS * 2, y += SIDE * TERMS * 2) {
        hn_tile_load(4, x, 64);
        hn_tile_load(5, x + 16 * 64, 64);
        hn_tile_load(6, y, 128);
        hn_tile_load(7, y + 64, 128);
        TILE_DOT_BF16(0, 4, 6);
        TILE_DOT_BF16(1, 4, 7);
        TILE_DOT_BF16(2, 5, 6);
        TILE_DOT_BF16(3, 5, 7);
    }
    hn_tile_store(0, &square[0][0], sizeof square[0]);
    hn_tile_store(1, &square[0][16], sizeof square[0]);
    hn_tile_store(2, &square[16][0], sizeof square[0]);
    hn_tile_store(3, &square[16][16], sizeof square[0]);
    hn_tile_write(square[0], SIDE, out);
}

const hn_product_kernel hn_product_amx = {HN_ISA_AMX, HN_PRODUCTS_BF16, SIDE, SIDE, TERMS, 2, 512, 2, hn_pack_bf16, tile};
