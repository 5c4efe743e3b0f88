/* SPDX-License-Identifier: Apache-2.0 */
/* linear_walk_tmpl.h - walks strips for quantised rows in tiles whose sums are in memory: every strip for all rows,
 * chunk by chunk, so that codes stay in the L1 cache while all tiles use them. Included by levels that define before
 *   TILE_ROWS         most rows a tile
 *   CHUNK_GROUPS      groups of a strip (whole superblocks) that all tiles of rows use before the next
 *   TILE_END(row, n)  end of the tile whose rows end at `row` if n rows are divided evenly
 * and after it a tile_fn for each type and number of rows. */
#include <string.h>

#include "ops/kernels.h"

/* A strip from a superblock on, and the rows from there on. */
typedef struct tile_job {
    const unsigned char *w, *x, *parts; /* parts are read for types that have them */
    size_t x_stride;
    int groups;
    float *c;
} tile_job;
typedef void tile_fn(const tile_job *j);

static void strips_q8(hn_dtype t, tile_fn *const *by_rows, const hn_strips_job *j) {
    const hn_layout l = hn_layout_of(t);
    int groups = hn_act_groups(j->in), tiles = (j->n + TILE_ROWS - 1) / TILE_ROWS;
    int step = tiles > 1 ? CHUNK_GROUPS : groups;
    memset(j->c, 0, (size_t)j->strips * (size_t)j->n * HN_STRIP * sizeof(float));
    for (int s = 0; s < j->strips; s++) {
        for (int g = 0; g < groups; g += step) {
            for (int part = 0, row = 0; part < tiles; part++) {
                const int end = TILE_END(j->n * (part + 1) / tiles, j->n);
                const unsigned char *x = j->x + j->x_stride * (size_t)row;
                by_rows[end - row](&(tile_job){
                    .w = j->w[s] + hn_super_bytes(l) * (size_t)(g * HN_GROUP / l.inputs),
                    .x = x + sizeof(hn_q8_group) * (size_t)g,
                    .parts = x + hn_act_parts_off(j->in) + sizeof(hn_q8_parts) * (size_t)g,
                    .x_stride = j->x_stride,
                    .groups = groups - g < step ? groups - g : step,
                    .c = j->c + ((size_t)s * (size_t)j->n + (size_t)row) * HN_STRIP,
                });
                row = end;
            }
        }
    }
}
