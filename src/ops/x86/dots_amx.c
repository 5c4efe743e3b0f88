/* SPDX-License-Identifier: Apache-2.0 */
/* dots_amx.c - the most that products of tiles give, operands in tiles: four sums of 16 x 16 over two tiles of each side
 * (machine.h). */
#include <immintrin.h>

#include "ops/machine.h"

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, SUMS = 4 };

/* Whole tiles everywhere: what the processor reads as their shapes. */
typedef struct shapes {
    uint8_t palette, first_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shapes;

static void tiles_begin(void) {
    _Alignas(64) shapes s = {.palette = 1};
    for (int i = 0; i < TILES; i++) {
        s.row_bytes[i] = ROW_BYTES;
        s.rows[i] = ROWS;
    }
    _tile_loadconfig(&s);
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
    return (double)ROWS * ROWS * ROW_BYTES * SUMS * rounds;
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
    return (double)ROWS * ROWS * (ROW_BYTES / 2) * SUMS * rounds;
}
