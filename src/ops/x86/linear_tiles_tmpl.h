/* SPDX-License-Identifier: Apache-2.0 */
/* linear_tiles_tmpl.h - products of quantised rows with AMX tiles. Results: ref/linear_ref.c, bit for bit.
 *
 * A row of tile A is 32 inputs, a block, of one row of the activations, read in place; tile B is the block's 8 lines of weight codes,
 * as in strips; tile C gets the exact integer sums of up to 16 rows and 16 outputs. They pass through the L1 cache to vectors of 16
 * outputs, which scale and add them in ref's order. Codes are unpacked into the L1 cache as signed bytes, once for all rows; those of
 * Q8_0 are multiplied in the strip itself, unsigned, and their offset is subtracted from the sums. In types with parts a block is two
 * products, with the lines of the other part zero.
 *
 * Three stages overlap, so that none waits for another: codes of group g + 1 are unpacked, group g is multiplied with a tile of rows,
 * the sums of the tile before are scaled. The last one limits the speed: about 5 instructions per row and block where VNNI has 10.
 * With one tile of rows, their floats stay in registers along the strip (walk_tile); with more they are kept in c (walk_strip). With
 * few rows VNNI is faster (see FROM_ROWS) and is used; the bits are the same.
 *
 * Shapes of tiles stay loaded: they depend only on the number of rows, and a thread's next call mostly has the same. A switch to
 * another thread then saves 8 KiB more; Linux clears tiles itself before a core enters deep sleep.
 *
 * Included by a file that has a form of the operations on tiles (tiles.h) and defines LINEAR_TABLE.
 */
#include <immintrin.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/x86/linear_codes_avx512.h"
#include "ops/x86/tiles.h"
#include "ops/unroll.h"

/* Measured on a Xeon of 2023 (docs/decisions/amx-tiles.md). */
enum {
    FROM_ROWS = 9, /* fewest rows: with fewer VNNI is faster, by a quarter to two fifths at 5 to 8 */
    PARTS_FROM_ROWS = 17, /* for types with parts */
    AHEAD = 1536,  /* distance in bytes of the prefetches of a walk of several tiles, into the L1 cache */
    NEAR = 2176, FAR = 8192 /* the same for a walk of one tile, into the L1 and the L2 cache */
};
enum { PART_LINES = 4, CODE_LINES = 12, SUMS = HN_TILE_ROWS * HN_STRIP };

/* The buffers of a strip's walk in the L1 cache, used alternately. In types with parts the codes are 4 lines, 4 lines
 * of zeros, 4 lines: the first 8 are a tile for part 0, the last 8 one for part 1. */
typedef struct walk_buffers {
    _Alignas(64) unsigned char codes[2][2][64 * CODE_LINES]; /* [turn][block] */
    /* [turn][block, or part of the group]; two more, so that stores of one turn and reads of the other are in different
     * halves of a page: a read waits for a store whose address has the same low 12 bits */
    _Alignas(4096) int32_t sums[2][4 + 2][SUMS];
} walk_buffers;

/* A walk along a strip. Each tile has `rows` rows: the last one overlaps the one before if needed. */
typedef struct walk {
    const hn_strips_job *j;
    int groups, tiles, rows;
    float *c; /* [n][16] of the strip */
} walk;

/* The current place: group i of a superblock, and a tile of rows. */
typedef struct place {
    const unsigned char *super;
    int i, group, tile;
} place;

HN_INLINE place next_group(const hn_dtype t, place p) {
    p.tile = 0;
    p.group++;
    if (++p.i < groups_of(t)) return p;
    p.i = 0;
    p.super += hn_super_bytes(hn_layout_of(t));
    return p;
}

HN_INLINE place next_tile(const hn_dtype t, const walk *k, place p) {
    return ++p.tile < k->tiles ? p : next_group(t, p);
}

/* The first of a tile's own rows, and of those that it multiplies. */
HN_INLINE int own_row(const walk *k, place p) { return p.tile * k->rows; }
HN_INLINE int first_row(const walk *k, place p) {
    const int last = k->j->n - k->rows;
    return own_row(k, p) < last ? own_row(k, p) : last;
}

/* ---- codes ---------------------------------------------------------------------------------------------------------- */

HN_INLINE const unsigned char *block_at(const hn_dtype t, place p, const int b) {
    const hn_layout l = hn_layout_of(t);
    return p.super + l.head + hn_block_bytes(l) * (size_t)(2 * p.i + b);
}

HN_INLINE void prefetch_ahead(const hn_dtype t, place p) {
    const int bytes = (int)hn_super_bytes(hn_layout_of(t)) / groups_of(t);
    for (int l = 0; l < bytes; l += 64) _mm_prefetch((const char *)p.super + AHEAD + bytes * p.i + l, _MM_HINT_T0);
}

/* Whether codes are multiplied in the strip itself. */
HN_INLINE bool in_place(const hn_dtype t) { return hn_types[t].low == 8; }

/* Prefetches the lines NEAR and FAR of a place that belong to step 0..15: all at once would delay the reads of that time. */
HN_INLINE void prefetch_in_steps(const hn_dtype t, place p, const int step) {
    const int bytes = (int)hn_super_bytes(hn_layout_of(t)) / groups_of(t), lines = (bytes + 63) / 64;
    HN_UNROLL for (int l = lines * step / 16; l < lines * (step + 1) / 16; l++) {
        const char *at = (const char *)p.super + bytes * p.i + 64 * l;
        __asm__ volatile("prefetcht1 %0\n\tprefetcht0 %1" : : "m"(at[FAR]), "m"(at[NEAR]));
    }
}

HN_INLINE void unpack_codes(const hn_dtype t, place p, unsigned char (*codes)[64 * CODE_LINES]) {
    if (in_place(t)) return;
    HN_UNROLL for (int b = 0; b < 2; b++) {
        HN_UNROLL for (int r = 0; r < 8; r++) {
            const int line = hn_has_parts(t) && r >= PART_LINES ? r + PART_LINES : r;
            __m512i v = load_codes(t, block_at(t, p, b), r);
            if (offset_of(t)) v = _mm512_sub_epi8(v, _mm512_set1_epi8((char)offset_of(t)));
            _mm512_store_si512(codes[b] + 64 * line, v);
        }
    }
}

/* ---- products --------------------------------------------------------------------------------------------------------- */

/* Tiles 0 to 3 are sums, 4 and 5 the two blocks of a group of the rows, 6 and 7 codes. */
static hn_tile_config shapes_for(int rows) {
    hn_tile_config s = {.palette = 1};
    for (int i = 0; i < HN_TILES; i++) {
        s.rows[i] = (uint8_t)(i < 6 ? rows : 8);
        s.row_bytes[i] = i == 4 || i == 5 ? HN_BLOCK : HN_TILE_BYTES;
    }
    return s;
}

/* A sum starts by loading zeros: that is faster than clearing a tile that is soon stored again. */
static const _Alignas(64) unsigned char zeros[HN_TILE_BYTES];
#define PRODUCT(sum, a, b, lines)                                                                                     \
    do {                                                                                                              \
        hn_tile_load(b, lines, 64);                                                                                   \
        hn_tile_load(sum, zeros, 0);                                                                                  \
        if (in_place(t)) {                                                                                            \
            hn_tile_dot_unsigned(sum, a, b);                                                                          \
        } else {                                                                                                      \
            hn_tile_dot_signed(sum, a, b);                                                                            \
        }                                                                                                             \
    } while (0)

/* Integer sums of a group and a tile of rows. */
HN_INLINE void multiply(const hn_dtype t, const walk *k, place p, const unsigned char (*codes)[64 * CODE_LINES],
                        int32_t (*sums)[SUMS]) {
    const size_t stride = k->j->x_stride;
    const unsigned char *x = k->j->x + stride * (size_t)first_row(k, p) + sizeof(hn_q8_group) * (size_t)p.group;
    const unsigned char *lines[2];
    HN_UNROLL for (int b = 0; b < 2; b++) lines[b] = in_place(t) ? block_at(t, p, b) : codes[b];
    hn_tile_load(4, x, stride);
    hn_tile_load(5, x + HN_BLOCK, stride);
    if (hn_has_parts(t)) {
        PRODUCT(0, 4, 6, lines[0]);
        PRODUCT(1, 4, 7, lines[0] + 64 * PART_LINES);
        PRODUCT(2, 5, 6, lines[1]);
        PRODUCT(3, 5, 7, lines[1] + 64 * PART_LINES);
        hn_tile_store(0, sums[0], 64);
        hn_tile_store(1, sums[1], 64);
        hn_tile_store(2, sums[2], 64);
        hn_tile_store(3, sums[3], 64);
    } else {
        PRODUCT(0, 4, 6, lines[0]);
        PRODUCT(1, 5, 7, lines[1]);
        hn_tile_store(0, sums[0], 64);
        hn_tile_store(1, sums[1], 64);
    }
}

/* ---- sums ------------------------------------------------------------------------------------------------------------- */

/* The scales of a block for all rows. */
typedef struct block_scales {
    __m512 d, m, part[2];
    __m512i part_m[2];
} block_scales;

HN_INLINE block_scales scales_of(const hn_dtype t, place p, const int b) {
    block_scales s = {.d = block_scale(t, p.super, p.i, b)};
    if (hn_has_minimum(t)) s.m = block_minimum(t, p.super, p.i, b);
    HN_UNROLL for (int part = 0; part < 2; part++) {
        if (hn_has_parts(t)) s.part[part] = _mm512_cvtepi32_ps(part_scale(t, p.super, p.i, b, part));
        if (hn_has_part_minimums(t)) s.part_m[part] = part_minimum(p.super, p.i, b, part);
    }
    return s;
}

/* A row's integer sum of block b of a group as floats; at: its place in a tile. The sum of two parts stays below 2^24,
 * where floats are exact. It may be -0, which has no effect in a chain of sums that begins at +0. */
HN_INLINE __m512 block_sum(const hn_dtype t, int32_t (*sums)[SUMS], int at, const int b, const hn_q8_group *x,
                           const block_scales *s) {
    if (hn_has_parts(t)) {
        const __m512 first = _mm512_cvtepi32_ps(_mm512_load_si512(sums[2 * b] + at));
        const __m512 second = _mm512_cvtepi32_ps(_mm512_load_si512(sums[2 * b + 1] + at));
        return _mm512_fmadd_ps(second, s->part[1], _mm512_mul_ps(first, s->part[0]));
    }
    __m512i sum = _mm512_load_si512(sums[b] + at);
    if (in_place(t)) sum = _mm512_add_epi32(sum, _mm512_set1_epi32(x->n128[b]));
    return _mm512_cvtepi32_ps(sum);
}

/* A row's floats continued with one block. */
HN_INLINE __m512 add_node(const hn_dtype t, __m512 acc, __m512 sum, const int b, const hn_q8_group *x,
                           const hn_q8_parts *parts, const block_scales *s) {
    const __m512 d = _mm512_set1_ps(x->d[b]), ds = _mm512_set1_ps(x->ds[b]);
    acc = _mm512_fmadd_ps(_mm512_mul_ps(sum, s->d), d, acc);
    if (hn_adds_minimum(t)) return _mm512_fmadd_ps(s->m, ds, acc);
    if (!hn_has_part_minimums(t)) return hn_takes_minimum(t) ? _mm512_fnmadd_ps(s->m, ds, acc) : acc;
    __m512i msum = _mm512_madd_epi16(s->part_m[0], _mm512_set1_epi32(parts->n4[2 * b]));
    msum = _mm512_dpwssd_epi32(msum, s->part_m[1], _mm512_set1_epi32(parts->n4[2 * b + 1]));
    return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(msum), s->m), d, acc);
}

/* The tile's own rows of c continued with a group. */
HN_INLINE void scale_sums(const hn_dtype t, const walk *k, place p, int32_t (*sums)[SUMS]) {
    const block_scales s[2] = {scales_of(t, p, 0), scales_of(t, p, 1)};
    const int skip = HN_STRIP * (own_row(k, p) - first_row(k, p)), end = HN_STRIP * k->rows;
    const size_t stride = k->j->x_stride, parts_off = hn_act_parts_off(k->j->in);
    const unsigned char *row = k->j->x + stride * (size_t)own_row(k, p);
    float *c = k->c + HN_STRIP * first_row(k, p);
    for (int at = skip; at < end; at += HN_STRIP, row += stride) {
        const hn_q8_group *x = (const hn_q8_group *)row + p.group;
        const hn_q8_parts *parts = (const hn_q8_parts *)(row + parts_off) + p.group;
        __m512 acc = _mm512_load_ps(c + at);
        HN_UNROLL for (int b = 0; b < 2; b++) {
            acc = add_node(t, acc, block_sum(t, sums, at, b, x, &s[b]), b, x, parts, &s[b]);
        }
        _mm512_store_ps(c + at, acc);
    }
}

/* ---- strips ----------------------------------------------------------------------------------------------------------- */

/* The same for all rows of a single tile, in registers. */
HN_INLINE void scale_in_registers(const hn_dtype t, const walk *k, place p, place now, int32_t (*sums)[SUMS],
                                  __m512 *acc) {
    const block_scales s[2] = {scales_of(t, p, 0), scales_of(t, p, 1)};
    const size_t parts_off = hn_act_parts_off(k->j->in);
    const unsigned char *row = k->j->x;
    HN_UNROLL for (int r = 0; r < HN_TILE_ROWS; r++) {
        prefetch_in_steps(t, now, r);
        if (r >= k->rows) continue;
        const hn_q8_group *x = (const hn_q8_group *)row + p.group;
        const hn_q8_parts *parts = (const hn_q8_parts *)(row + parts_off) + p.group;
        HN_UNROLL for (int b = 0; b < 2; b++) {
            acc[r] = add_node(t, acc[r], block_sum(t, sums, HN_STRIP * r, b, x, &s[b]), b, x, parts, &s[b]);
        }
        row += k->j->x_stride;
    }
}

HN_INLINE void walk_tile(const hn_dtype t, const walk *k, const unsigned char *strip, walk_buffers *work) {
    __m512 acc[HN_TILE_ROWS];
    HN_UNROLL for (int r = 0; r < HN_TILE_ROWS; r++) acc[r] = _mm512_setzero_ps();
    place now = {.super = strip}, before = now;
    unpack_codes(t, now, work->codes[0]);
    for (int g = 0; g <= k->groups; g++) {
        const place next = next_group(t, now);
        if (g + 1 < k->groups) unpack_codes(t, next, work->codes[(g + 1) % 2]);
        if (g < k->groups) multiply(t, k, now, work->codes[g % 2], work->sums[g % 2]);
        if (g > 0) scale_in_registers(t, k, before, now, work->sums[(g - 1) % 2], acc);
        before = now;
        now = next;
    }
    HN_UNROLL for (int r = 0; r < HN_TILE_ROWS; r++) {
        if (r < k->rows) _mm512_store_ps(k->c + HN_STRIP * r, acc[r]);
    }
}

HN_INLINE void walk_strip(const hn_dtype t, const walk *k, const unsigned char *strip, walk_buffers *work) {
    const int steps = k->groups * k->tiles;
    place now = {.super = strip}, before = now;
    prefetch_ahead(t, now);
    unpack_codes(t, now, work->codes[0]);
    for (int step = 0; step <= steps; step++) {
        const place next = next_group(t, now);
        if (now.tile == 0 && next.group < k->groups) {
            prefetch_ahead(t, next);
            unpack_codes(t, next, work->codes[next.group % 2]);
        }
        if (step < steps) multiply(t, k, now, work->codes[now.group % 2], work->sums[step % 2]);
        if (step > 0) scale_sums(t, k, before, work->sums[(step - 1) % 2]);
        before = now;
        now = next_tile(t, k, now);
    }
}

typedef void strip_fn(const walk *k, const unsigned char *strip, walk_buffers *work);

/* Tile by tile: rows in two tiles are computed twice. */
static void tile_by_tile(const walk *k, strip_fn *tile, int s, walk_buffers *work) {
    const hn_strips_job *j = k->j;
    for (int p = 0; p < k->tiles; p++) {
        const int first = p * k->rows < j->n - k->rows ? p * k->rows : j->n - k->rows;
        const unsigned char *x = j->x + j->x_stride * (size_t)first;
        const hn_strips_job part = {.in = j->in, .n = k->rows, .x = x, .x_stride = j->x_stride};
        const walk one = {.j = &part, .groups = k->groups, .tiles = 1, .rows = k->rows, .c = k->c + HN_STRIP * first};
        tile(&one, j->w[s], work);
    }
}

static void strips_q8(hn_dtype t, strip_fn *strip, strip_fn *tile, const hn_strips_job *j) {
    if (j->n < (hn_has_parts(t) ? PARTS_FROM_ROWS : FROM_ROWS)) {
        hn_kernels_get(hn_isa_below(HN_ISA_AMX))->linear_q8[t](j);
        return;
    }
    const int tiles = (j->n + HN_TILE_ROWS - 1) / HN_TILE_ROWS;
    walk k = {.j = j, .groups = hn_act_groups(j->in), .tiles = tiles, .rows = (j->n + tiles - 1) / tiles, .c = j->c};
    const hn_tile_config shapes = shapes_for(k.rows);
    walk_buffers work;
    hn_tiles_shape(&shapes);
    if (hn_has_parts(t)) memset(work.codes, 0, sizeof work.codes);
    const bool apart = tiles == 1 || in_place(t); /* else codes would be unpacked for each tile */
    if (!apart) memset(j->c, 0, (size_t)(j->strips * j->n) * HN_STRIP * sizeof(float));
    for (int s = 0; s < j->strips; s++, k.c += HN_STRIP * j->n) {
        if (apart)
            tile_by_tile(&k, tile, s, &work);
        else
            strip(&k, j->w[s], &work);
    }
}

#define STRIPS_Q8(type, ...)                                                                                             \
    static void strip_##type(const walk *k, const unsigned char *strip, walk_buffers *work) {                            \
        walk_strip(HN_##type, k, strip, work);                                                                        \
    }                                                                                                                 \
    static void tile_##type(const walk *k, const unsigned char *strip, walk_buffers *work) {                             \
        walk_tile(HN_##type, k, strip, work);                                                                         \
    }                                                                                                                 \
    static void strips_q8_##type(const hn_strips_job *j) { strips_q8(HN_##type, strip_##type, tile_##type, j); }
HN_BLOCK_TYPES(STRIPS_Q8)

#define LINEAR_ONLY_Q8
#include "ops/linear_table_tmpl.h"
