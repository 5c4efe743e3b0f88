/* SPDX-License-Identifier: Apache-2.0 */
/* tiles_emulated.h - operations on tiles in plain C, with the names of ops/x86/tiles_amx.h: the results of AMX's
 * instructions, and a failed test where they would fault. Include after cmocka. */
#ifndef HN_TILES_EMULATED_H
#define HN_TILES_EMULATED_H
#include <stdbool.h>
#include <string.h>

#include "base/dtype.h"
#include "ops/ref/bf16_step.h"
#include "ops/x86/tiles.h"

static _Thread_local struct {
    hn_tile_config shapes;
    uint8_t tile[HN_TILES][HN_TILE_ROWS][HN_TILE_BYTES]; /* beyond a tile's shape zero */
} tiles_state;

#define TILES_MUST(what) do { if (!(what)) fail_msg("tiles: %s does not hold, line %d", #what, __LINE__); } while (0)

static inline void hn_tiles_shape(const hn_tile_config *want) {
    TILES_MUST(want->palette == 1 && want->start_row == 0);
    for (int i = 0; i < 14; i++) TILES_MUST(want->reserved[i] == 0);
    for (int i = 0; i < 16; i++) {
        const int rows = want->rows[i], bytes = want->row_bytes[i];
        TILES_MUST(i < HN_TILES || (rows == 0 && bytes == 0));
        TILES_MUST(rows <= HN_TILE_ROWS && bytes <= HN_TILE_BYTES && (rows == 0) == (bytes == 0));
    }
    if (memcmp(&tiles_state.shapes, want, sizeof *want) == 0) return;
    tiles_state.shapes = *want;
    memset(tiles_state.tile, 0, sizeof tiles_state.tile);
}

static inline int tile_rows_of(int tile) {
    TILES_MUST(tiles_state.shapes.palette == 1 && tile >= 0 && tile < HN_TILES);
    TILES_MUST(tiles_state.shapes.rows[tile] > 0);
    return tiles_state.shapes.rows[tile];
}

static inline void hn_tile_load(int tile, const void *p, size_t stride) {
    const int rows = tile_rows_of(tile);
    memset(tiles_state.tile[tile], 0, sizeof tiles_state.tile[tile]);
    for (int i = 0; i < rows; i++) {
        memcpy(tiles_state.tile[tile][i], (const uint8_t *)p + stride * (size_t)i, tiles_state.shapes.row_bytes[tile]);
    }
}

static inline void hn_tile_store(int tile, void *p, size_t stride) {
    const int rows = tile_rows_of(tile);
    for (int i = 0; i < rows; i++) {
        memcpy((uint8_t *)p + stride * (size_t)i, tiles_state.tile[tile][i], tiles_state.shapes.row_bytes[tile]);
    }
}

static inline void hn_tile_zero(int tile) {
    tile_rows_of(tile);
    memset(tiles_state.tile[tile], 0, sizeof tiles_state.tile[tile]);
}

/* Row i of a times b, added to row i of the sum; columns and quads beyond the shapes hold zeros. */
static inline void tile_dot_row(int sum, int a, int b, int i, bool b_signed) {
    int32_t row[HN_TILE_ROWS];
    memcpy(row, tiles_state.tile[sum][i], sizeof row);
    for (int k = 0; k < HN_TILE_BYTES; k++) {
        const int x = (int8_t)tiles_state.tile[a][i][k];
        for (int o = 0; o < HN_TILE_ROWS; o++) {
            const uint8_t w = tiles_state.tile[b][k / 4][4 * o + k % 4];
            row[o] += x * (b_signed ? (int8_t)w : w);
        }
    }
    memcpy(tiles_state.tile[sum][i], row, sizeof row);
}

/* Rows of sums. */
static inline int tile_dot_shape(int sum, int a, int b) {
    const hn_tile_config *s = &tiles_state.shapes;
    const int rows = tile_rows_of(sum);
    TILES_MUST(sum != a && sum != b && a != b);
    TILES_MUST(tile_rows_of(a) == rows && s->row_bytes[sum] == s->row_bytes[b]);
    TILES_MUST(s->row_bytes[a] == 4 * tile_rows_of(b) && s->row_bytes[b] % 4 == 0);
    return rows;
}

static inline void tile_dot(int sum, int a, int b, bool b_signed) {
    const int rows = tile_dot_shape(sum, a, b);
    for (int i = 0; i < rows; i++) tile_dot_row(sum, a, b, i, b_signed);
}

/* Number i of a row of bf16. */
static inline float tile_half(const uint8_t *row, int i) {
    uint16_t x;
    memcpy(&x, row + 2 * i, sizeof x);
    return bf16_flushed(hn_bf16_to_f32(x));
}

static inline void hn_tile_dot_bf16(int sum, int a, int b) {
    const int rows = tile_dot_shape(sum, a, b), pairs = tile_rows_of(b), columns = tiles_state.shapes.row_bytes[b] / 4;
    for (int i = 0; i < rows; i++) {
        for (int o = 0; o < columns; o++) {
            float half[2] = {0, 0}, before;
            for (int r = 0; r < 2 * pairs; r++) {
                const float x = tile_half(tiles_state.tile[a][i], r), y = tile_half(tiles_state.tile[b][r / 2], 2 * o + r % 2);
                half[r % 2] = bf16_step(x, y, half[r % 2]);
            }
            memcpy(&before, tiles_state.tile[sum][i] + 4 * o, sizeof before);
            before = bf16_flushed(bf16_flushed(before) + bf16_flushed(half[0] + half[1]));
            memcpy(tiles_state.tile[sum][i] + 4 * o, &before, sizeof before);
        }
    }
}

static inline void hn_tile_dot_signed(int sum, int a, int b) { tile_dot(sum, a, b, true); }
static inline void hn_tile_dot_unsigned(int sum, int a, int b) { tile_dot(sum, a, b, false); }
#endif
