/* SPDX-License-Identifier: Apache-2.0 */
/* attention_tiles_tmpl.h - scores and values of a BF16 cache in products of tiles, over the operations of tiles_amx.h or, in tests, of
 * tiles_emulated.h. A chunk of K is in the cache as a tile is, pairs of dims in its rows and positions in its columns; a chunk of V is
 * eight rows of pairs of positions. The order of sums: ref/attention_ref.c.
 *
 * Included by a file that has a form of the operations on tiles (tiles.h) and defines ATTENTION_TABLE.
 *
 * Scores and values of a call have the same shapes of tiles if the head's dims are whole blocks, so that a thread does not load others
 * between the two. Tiles: sums of the first 16 queries 0, of the others 1; queries 2, 3 and keys 4 of a block of dims; weights 5, 6 and
 * values 7 of a chunk, or queries 5, 6 and keys 7 of a last, shorter block.
 */
#include <immintrin.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/unroll.h"
#include "ops/x86/attention_ahead.h"
#include "ops/x86/flush.h"
#include "ops/x86/tiles.h"

enum {
    QUERIES = HN_TILE_ROWS,                            /* of a tile; the others of a call are in a second one */
    BLOCK_DIMS = HN_TILE_BYTES / 2,                    /* of K, in a product */
    BLOCKS = (HN_MAX_HEAD_DIM + BLOCK_DIMS - 1) / BLOCK_DIMS,
    VECTOR_DIMS = HN_TILE_BYTES / 4,                   /* of V, in a product */
    CHUNK_PAIRS = HN_KEY_CHUNK / 2,
    CHUNK_BYTES = 4 * CHUNK_PAIRS                      /* of its weights of one query */
};

/* A tile without rows or bytes is not used. */
static void shape_tiles(const int rows[HN_TILES], const int bytes[HN_TILES]) {
    hn_tile_config c = {.palette = 1};
    for (int i = 0; i < HN_TILES; i++) {
        c.rows[i] = (uint8_t)(bytes[i] ? rows[i] : 0);
        c.row_bytes[i] = (uint16_t)(rows[i] ? bytes[i] : 0);
    }
    hn_tiles_shape(&c);
}

static int in_first(int nq) { return nq < QUERIES ? nq : QUERIES; }

/* ---- scores -------------------------------------------------------------------------------------------------------- */

typedef struct query_blocks {
    _Alignas(64) uint16_t at[BLOCKS][HN_QUERIES][BLOCK_DIMS];
} query_blocks;

static void cut_queries(const uint16_t *const *q, int nq, int dim, query_blocks *out) {
    for (int b = 0; b * BLOCK_DIMS < dim; b++) {
        const int left = dim - b * BLOCK_DIMS, n = left < BLOCK_DIMS ? left : BLOCK_DIMS;
        for (int i = 0; i < nq; i++) memcpy(out->at[b][i], q[i] + b * BLOCK_DIMS, (size_t)n * sizeof **q);
    }
}

static void shape_for_scores(int nq, int dim) {
    const int first = in_first(nq), second = nq - first, last = dim % BLOCK_DIMS, whole = HN_TILE_BYTES;
    const int width = last ? 2 * last : CHUNK_BYTES;
    const int rows[] = {first, second, first, second, HN_TILE_ROWS, first, second, width / 4};
    const int bytes[] = {whole, whole, whole, whole, whole, width, width, whole};
    shape_tiles(rows, bytes);
}

/* Adds a block of dims; KEYS, FIRST, SECOND: tiles that have its shape. */
#define SCORE_BLOCK(KEYS, FIRST, SECOND, two, k, step, block)                    \
    do {                                                                         \
        hn_tile_load(KEYS, k, step);                                             \
        hn_tile_load(FIRST, (block)[0], HN_TILE_BYTES);                          \
        hn_tile_dot_bf16(0, FIRST, KEYS);                                        \
        if (!(two)) break;                                                       \
        hn_tile_load(SECOND, (block)[QUERIES], HN_TILE_BYTES);                   \
        hn_tile_dot_bf16(1, SECOND, KEYS);                                       \
    } while (0)

/* Scores of chunk c; s: of the first query and position. */
HN_INLINE void score_chunk(const bool two, const hn_keys *keys, int c, const query_blocks *q, int dim, hn_fetch *fetch, float *s) {
    const int blocks = dim / BLOCK_DIMS;
    const size_t step = (size_t)keys->k_stride[c] * hn_kv_lane_bytes(HN_BF16);
    const unsigned char *k = keys->k[c];
    s += c * HN_KEY_CHUNK;
    hn_tile_zero(0);
    if (two) hn_tile_zero(1);
    for (int b = 0; b < blocks; b++, k += HN_TILE_ROWS * step) {
        hn_keys_fetch(keys, fetch, HN_TILE_ROWS);
        SCORE_BLOCK(4, 2, 3, two, k, step, q->at[b]);
    }
    if (dim % BLOCK_DIMS) SCORE_BLOCK(7, 5, 6, two, k, step, q->at[blocks]);
    hn_tile_store(0, s, HN_KEY_SPAN * sizeof *s);
    if (two) hn_tile_store(1, s + QUERIES * HN_KEY_SPAN, HN_KEY_SPAN * sizeof *s);
}

static __attribute__((noinline)) void scale_scores(float *s, int c0, int c1, int nq, float scale) {
    for (int i = 0; i < nq; i++, s += HN_KEY_SPAN)
        for (int p = c0 * HN_KEY_CHUNK; p < c1 * HN_KEY_CHUNK; p += 16)
            _mm512_storeu_ps(s + p, _mm512_mul_ps(_mm512_loadu_ps(s + p), _mm512_set1_ps(scale)));
}

static void scores(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale, float *s) {
    query_blocks blocks;
    hn_fetch fetch = hn_fetch_begin(keys->ahead, 0);
    cut_queries(q, nq, dim, &blocks);
    shape_for_scores(nq, dim);
    for (int c = c0; c < c1; c++) {
        if (nq > QUERIES) {
            score_chunk(true, keys, c, &blocks, dim, &fetch, s);
        } else {
            score_chunk(false, keys, c, &blocks, dim, &fetch, s);
        }
    }
    hn_fetch_end(keys->ahead, &fetch);
    const unsigned modes = hn_flush_begin();
    scale_scores(s, c0, c1, nq, scale);
    hn_flush_end(modes);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

static void shape_for_values(int nq, int dims) {
    const int first = in_first(nq), second = nq - first, whole = HN_TILE_BYTES;
    const int rows[] = {first, second, first, second, HN_TILE_ROWS, first, second, CHUNK_PAIRS};
    const int bytes[] = {4 * dims, 4 * dims, whole, whole, whole, CHUNK_BYTES, CHUNK_BYTES, 4 * dims};
    shape_tiles(rows, bytes);
}

/* Values of a chunk, of the dims at hand. */
typedef struct chunk_values {
    _Alignas(64) uint16_t at[CHUNK_PAIRS][VECTOR_DIMS][2];
} chunk_values;

/* A copy in which positions outside of [lo, hi), counted from the chunk's first, are zero. */
static void mask_values(const unsigned char *v, size_t step, int dims, int lo, int hi, chunk_values *out) {
    memset(out, 0, sizeof *out);
    for (int p = lo; p < hi; p++)
        for (int d = 0; d < dims; d++)
            memcpy(&out->at[p / 2][d][p % 2], v + step * (size_t)(p / 2) + 4 * (size_t)d + 2 * (size_t)(p % 2), sizeof(uint16_t));
}

HN_INLINE void value_chunk(const bool two, const unsigned char *v, size_t step, const uint16_t *e) {
    const size_t row = HN_KEY_SPAN * sizeof *e;
    hn_tile_load(7, v, step);
    hn_tile_load(5, e, row);
    hn_tile_dot_bf16(0, 5, 7);
    if (two) {
        hn_tile_load(6, e + QUERIES * HN_KEY_SPAN, row);
        hn_tile_dot_bf16(1, 6, 7);
    }
}

/* Dims [d, d + dims), up to VECTOR_DIMS. */
HN_INLINE void value_dims(const bool two, const hn_keys *keys, int lo, int hi, const uint16_t *e, int dim, int d, int dims, hn_fetch *fetch,
                          float *o, int ldo) {
    const size_t step = (size_t)dim * hn_kv_lane_bytes(HN_BF16), row = (size_t)ldo * sizeof *o;
    float *second = o + (size_t)QUERIES * (size_t)ldo;
    hn_tile_load(0, o + d, row);
    if (two) hn_tile_load(1, second + d, row);
    for (int c = lo / HN_KEY_CHUNK; c * HN_KEY_CHUNK < hi; c++) {
        const unsigned char *v = (const unsigned char *)keys->v[c] + hn_kv_lane_bytes(HN_BF16) * (size_t)d;
        const int at = c * HN_KEY_CHUNK, from = lo > at ? lo - at : 0, to = hi - at < HN_KEY_CHUNK ? hi - at : HN_KEY_CHUNK;
        hn_keys_fetch(keys, fetch, CHUNK_PAIRS);
        if (from > 0 || to < HN_KEY_CHUNK) {
            chunk_values seen;
            mask_values(v, step, dims, from, to, &seen);
            value_chunk(two, (const unsigned char *)seen.at, sizeof seen.at[0], e + at);
        } else {
            value_chunk(two, v, step, e + at);
        }
    }
    hn_tile_store(0, o + d, row);
    if (two) hn_tile_store(1, second + d, row);
}

static void values(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo) {
    hn_fetch fetch = hn_fetch_begin(keys->ahead, 0);
    for (int d = 0, dims; d < dim; d += dims) {
        dims = dim - d < VECTOR_DIMS ? dim - d : VECTOR_DIMS;
        if (d == 0 || dims < VECTOR_DIMS) shape_for_values(nq, dims);
        if (nq > QUERIES) {
            value_dims(true, keys, lo, hi, e, dim, d, dims, &fetch, o, ldo);
        } else {
            value_dims(false, keys, lo, hi, e, dim, d, dims, &fetch, o, ldo);
        }
    }
    hn_fetch_end(keys->ahead, &fetch);
}

void ATTENTION_TABLE(struct hn_kernels *k) {
    k->sums_of_tiles = true;
    k->scores_bf16 = scores;
    k->values_bf16 = values;
}
