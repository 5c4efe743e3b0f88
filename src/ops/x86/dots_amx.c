/* SPDX-License-Identifier: Apache-2.0 */
/* dots_amx.c - peak rate of products of tiles, operands in tiles: four sums of 16 x 16 from two tiles of each side (machine.h). */
#include <immintrin.h>

#include "ops/machine.h"
#include "ops/x86/tiles_amx.h"

enum { SUMS = 4 };

static void tiles_begin(void) {
    hn_tile_config whole = {.palette = 1};
    for (int i = 0; i < HN_TILES; i++) {
        whole.row_bytes[i] = HN_TILE_BYTES;
        whole.rows[i] = HN_TILE_ROWS;
    }
    hn_tiles_shape(&whole);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
}

double hn_dots_int8_amx(int rounds) {
    tiles_begin();
    for (int r = 0; r < rounds; r++) {
        _tile_dpbusd(0, 4, 6);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_release();
    return (double)HN_TILE_ROWS * HN_TILE_ROWS * HN_TILE_BYTES * SUMS * rounds;
}

double hn_dots_bf16_amx(int rounds) {
    tiles_begin();
    for (int r = 0; r < rounds; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return (double)HN_TILE_ROWS * HN_TILE_ROWS * (HN_TILE_BYTES / 2) * SUMS * rounds;
}
