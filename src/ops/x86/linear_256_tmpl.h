/* SPDX-License-Identifier: Apache-2.0 */
/* linear_256_tmpl.h - the walk of quantised rows along a strip with vectors of 256 bits: tiles of 1 to 4 rows,
 * prefetches, sums of floats. A lane is an output; the 16 outputs of a strip are two registers (halves). Float sums of a
 * tile are kept in c between blocks, which leaves the registers to the integers.
 *
 * Included by each level with its own sums of integers in such vectors (linear_avx2.c, linear_vnni256_tmpl.h), which
 * defines block_sums() after it.
 */
#include <immintrin.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/unroll.h"
#include "ops/x86/weights_avx2.h"

enum {
    TILE_ROWS = 4,    /* most rows a tile */
    CHUNK_GROUPS = 8, /* groups of a strip (whole superblocks) that all tiles of rows use before the next */
    AHEAD = 8192      /* distance in bytes of a tile's prefetches along the strip, into the L2 cache */
};

/* The current groups of a tile of rows, and their parts. */
typedef struct tile_rows {
    const hn_q8_group *x[TILE_ROWS];
    const hn_q8_parts *parts[TILE_ROWS];
} tile_rows;

/* Defined by each level. sum[T][H]: the exact integer sums of block b of a group for T rows and H halves; in types with
 * parts times their scales. codes: the block's, from the first half on. */
HN_INLINE void block_sums(const hn_dtype t, const int T, const int H, const unsigned char *codes, const tile_rows *rows,
                          const int b, const hn_scales *scales, __m256i *sum);

/* Four inputs of a row, for every output. */
HN_INLINE __m256i quad_at(const hn_q8_group *x, const int b, const int r) {
    int v;
    memcpy(&v, x->q + HN_BLOCK * b + 4 * r, sizeof v);
    return _mm256_set1_epi32(v);
}

/* -4 * sum of the two parts of a block, 16 bits each. */
HN_INLINE __m256i part_sums(const hn_q8_parts *x, const int b) {
    long long both;
    memcpy(&both, x->n4 + 2 * b, sizeof both);
    const __m256i low = _mm256_set1_epi64x(0x0504010005040100);
    return _mm256_shuffle_epi8(_mm256_set1_epi64x(both), low);
}

/* Half a row's sums continued with one block. */
HN_INLINE __m256 add_node(const hn_dtype t, __m256 acc, __m256i sum, const hn_q8_group *x, const hn_q8_parts *parts,
                           const int b, const hn_scales *s) {
    const __m256 d = _mm256_set1_ps(x->d[b]);
    acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), s->d), d, acc);
    if (!hn_has_minimum(t)) return acc;
    if (hn_adds_minimum(t)) return _mm256_fmadd_ps(s->m, _mm256_set1_ps(x->ds[b]), acc);
    if (!hn_has_part_minimums(t)) return _mm256_fnmadd_ps(s->m, _mm256_set1_ps(x->ds[b]), acc);
    const __m256i msum = _mm256_madd_epi16(part_sums(parts, b), s->mins);
    const __m256 by = _mm256_mul_ps(s->m, _mm256_set1_ps(0.25f));
    return _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(msum), by), d, acc);
}

/* Block b of a superblock, which is block `odd` of a group, for T rows: H halves from h on; c[T][16] continued. */
HN_INLINE void block_q8(const hn_dtype t, const int T, const int H, const int h, const unsigned char *super, int b,
                        const int odd, const tile_rows *rows, float *c) {
    const hn_layout l = hn_layout_of(t);
    const unsigned char *codes = super + l.head + hn_block_bytes(l) * (size_t)b + 32 * h;
    __m256i sum[2 * TILE_ROWS];
    hn_scales s[2];
    if (hn_has_parts(t)) HN_UNROLL for (int k = 0; k < H; k++) s[k] = hn_scales_avx2(t, super, b, odd, h + k);
    block_sums(t, T, H, codes, rows, odd, s, sum);
    HN_UNROLL for (int k = 0; k < H; k++) {
        if (!hn_has_parts(t)) s[k] = hn_scales_avx2(t, super, b, odd, h + k);
        HN_UNROLL for (int i = 0; i < T; i++) {
            float *at = c + HN_STRIP * i + 8 * (h + k);
            _mm256_store_ps(at, add_node(t, _mm256_load_ps(at), sum[H * i + k], rows->x[i], rows->parts[i], odd, &s[k]));
        }
    }
}

#define TILE_END(row, n) (row)
#include "ops/linear_walk_tmpl.h"

/* With one row the core's own prefetcher is as good or better, but only if lines are read in ascending order: not low
 * and high ones alternately (5 and 6 bits: 27 GB/s instead of 19), nor codes alternately with the head of a large
 * superblock. */
HN_INLINE bool prefetches(const hn_dtype t, const int T) {
    const hn_layout l = hn_layout_of(t);
    return T > 1 || l.high || l.inputs > HN_GROUP;
}

HN_INLINE void prefetch_ahead(const unsigned char *p, size_t bytes) {
    for (size_t l = 0; l < bytes; l += 64) _mm_prefetch((const char *)p + AHEAD + l, _MM_HINT_T1);
}

HN_INLINE void tile_q8(const hn_dtype t, const int T, const tile_job *j) {
    const hn_layout l = hn_layout_of(t);
    const int H = hn_has_parts(t) && T > 1 ? 1 : 2; /* halves at once: integer sums of parts take twice the registers */
    const size_t stride = j->x_stride;
    const unsigned char *w = j->w, *x = j->x, *parts = j->parts;
    float *c = j->c;
    for (int g = 0, groups = j->groups; g < groups; g++, x += sizeof(hn_q8_group), parts += sizeof(hn_q8_parts)) {
        const int in_super = g % (l.inputs / HN_GROUP);
        tile_rows rows;
        HN_UNROLL for (int i = 0; i < T; i++) {
            rows.x[i] = (const hn_q8_group *)(x + stride * (size_t)i);
            rows.parts[i] = (const hn_q8_parts *)(parts + stride * (size_t)i);
        }
        if (prefetches(t, T)) {
            if (in_super == 0) prefetch_ahead(w, (size_t)l.head);
            prefetch_ahead(w + l.head + 2 * hn_block_bytes(l) * (size_t)in_super, 2 * hn_block_bytes(l));
        }
        HN_UNROLL for (int b = 0; b < 2; b++) {
            if (T > 2) HN_REREAD(c); /* no registers remain for float sums */
            HN_UNROLL for (int h = 0; h < 2; h += H) block_q8(t, T, H, h, w, 2 * in_super + b, b, &rows, c);
        }
        if (in_super == l.inputs / HN_GROUP - 1) w += hn_super_bytes(l);
    }
}

#define TILE(type, T)                                                                                                 \
    static __attribute__((noinline)) void tile_##type##_##T(const tile_job *j) { tile_q8(HN_##type, T, j); }
#define TILES(type, ...)                                                                                              \
    TILE(type, 1) TILE(type, 2) TILE(type, 3) TILE(type, 4)                                                           \
    static void strips_q8_##type(const hn_strips_job *j) {                                                            \
        static tile_fn *const by_rows[TILE_ROWS + 1] = {NULL, tile_##type##_1, tile_##type##_2, tile_##type##_3,      \
                                                        tile_##type##_4};                                             \
        strips_q8(HN_##type, by_rows, j);                                                                             \
    }
HN_BLOCK_TYPES(TILES)
