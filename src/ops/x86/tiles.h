/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.h - the shapes of AMX's eight tile registers, as the processor reads and writes them in memory.
 *
 * The operations on tiles come in two forms with the same names: instructions (tiles_amx.h), and plain C for tests on
 * machines without them (tests/check/tiles_emulated.h).
 */
#ifndef HN_TILES_H
#define HN_TILES_H
#include <stdint.h>

enum { HN_TILES = 8, HN_TILE_ROWS = 16, HN_TILE_BYTES = 64 }; /* most rows of a tile, most bytes of a row */

typedef struct hn_tile_config {
    _Alignas(64) uint8_t palette; /* 1: tiles as above */
    uint8_t start_row;            /* where an interrupted load or store continues: 0 */
    uint8_t reserved[14];
    uint16_t row_bytes[16]; /* of each tile; 0 if it is not used */
    uint8_t rows[16];
} hn_tile_config;
_Static_assert(sizeof(hn_tile_config) == 64, "the processor reads 64 bytes");
#endif
