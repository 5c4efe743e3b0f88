/* SPDX-License-Identifier: Apache-2.0 */
/* linear_avx512.c - matrix products with AVX-512 and VNNI. Results: ref/linear_ref.c, bit for bit.
 *
 * A lane is an output. Quantised rows: vpdpbusd multiplies four unsigned weight codes of each output with four signed
 * activation codes of a row, broadcast from memory; a sum starts at minus offset times the row's sum of codes, so that it
 * comes out exact. One tile serves all types and 1 to 8 rows: the differences of types are in linear_codes_avx512.h. A
 * tile keeps its sums in registers while a strip is read once (more than one strip at once was slower: parallel streams
 * disturb the prefetcher), and unpacks a line of codes once for all its rows. More rows than a tile: the strip is walked
 * in chunks that stay in the L1 cache, sums are kept in c.
 *
 * Float rows: one fma chain per output. Float weights are widened in registers, block types a group at a time into the L1
 * cache.
 */
#include <immintrin.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/x86/flush.h"
#include "ops/x86/linear_codes_avx512.h"
#include "ops/x86/math_avx512.h"
#include "ops/unroll.h"

enum {
    TILE_ROWS = 8,    /* most rows of a tile: as many int and float sums fit the registers */
    CHUNK_GROUPS = 4, /* groups of a strip that all tiles of rows use before the next */
    AHEAD_ROWS = 4,   /* most rows of the tiles that always prefetch */
    AHEAD = 8192      /* distance in bytes of a tile's prefetches along the strip, into the L2 cache */
};

/* ---- quantised rows ------------------------------------------------------------------------------------------------ */

/* The rows of a tile at the current place of the walk. */
typedef struct rows_at {
    const unsigned char *x; /* hn_q8_group of row 0 */
    const unsigned char *parts; /* hn_q8_parts of row 0 */
    size_t stride;
} rows_at;

HN_INLINE const hn_q8_group *group_at(const rows_at x, const int i) {
    return (const hn_q8_group *)(x.x + x.stride * (size_t)i);
}

HN_INLINE const hn_q8_parts *parts_at(const rows_at x, const int i) {
    return (const hn_q8_parts *)(x.parts + x.stride * (size_t)i);
}

/* sum + line r of codes times the row's four inputs of it. Inline assembly for two reasons: gcc would load the row's
 * inputs into a register first, twice the instructions; and volatile statements keep their order, with a tile's
 * prefetches between its lines, where gcc would issue all of a group at once. Each is worth up to 10 % of a tile. */
HN_INLINE __m512i add_line(__m512i sum, __m512i codes, const rows_at x, const int i, const int b, const int r) {
    const int8_t (*quad)[4] = (const int8_t (*)[4])(group_at(x, i)->q + HN_BLOCK * b + 4 * r);
    __asm__ volatile("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes), "m"(*quad));
    return sum;
}

/* The initial value of the sum of block b, or of its part p, which subtracts the codes' offset. */
HN_INLINE __m512i start_sum(const hn_dtype t, const rows_at x, const int i, const int b, const int p) {
    const __m512i n8 = _mm512_set1_epi32(group_at(x, i)->n8[b]);
    switch (offset_of(t)) {
    case 0: return _mm512_setzero_si512();
    case 4: return _mm512_set1_epi32(parts_at(x, i)->n4[2 * b + p]);
    case 8: return n8;
    case 16: return _mm512_add_epi32(n8, n8);
    case 32: return _mm512_set1_epi32(parts_at(x, i)->n32[2 * b + p]);
    default: return _mm512_set1_epi32(group_at(x, i)->n128[b]);
    }
}

/* Whether a tile of T rows prefetches. With little arithmetic per byte, a core waits for memory anyhow and its own
 * prefetcher alone is better; with more, arithmetic and reading have to overlap. The limit was measured: with few rows
 * for types whose codes are slow to unpack. That was on AMD's Zen 4; on Intel's cores with AMX (Sapphire Rapids and
 * later) prefetching pays from one row on: `always`. */
HN_INLINE bool prefetches(const hn_dtype t, const int T, const bool always) {
    const hn_layout l = hn_layout_of(t);
    if (always || l.high || l.low < 4) return true;
    return l.low == 8 ? T > 4 : T > 1;
}

/* Prefetches the lines AHEAD of step 0..15 of group i. */
HN_INLINE void prefetch(const hn_dtype t, const unsigned char *super, int i, const int step) {
    const int bytes = (int)hn_super_bytes(hn_layout_of(t)) / groups_of(t), lines = (bytes + 63) / 64;
    HN_UNROLL for (int l = lines * step / 16; l < lines * (step + 1) / 16; l++) {
        __asm__ volatile("prefetcht1 %0" : : "m"(*(const char *)(super + AHEAD + bytes * i + 64 * l)));
    }
}

/* sum[T] with code lines [r0, end) of block b of a group. */
HN_INLINE void add_lines(const hn_dtype t, const int T, const bool always, const unsigned char *super, int i, const int b,
                         const int r0, const int end, const rows_at x, __m512i *sum) {
    const hn_layout l = hn_layout_of(t);
    const unsigned char *block = super + l.head + hn_block_bytes(l) * (size_t)(2 * i + b);
    HN_UNROLL for (int r = r0; r < end; r++) {
        if (prefetches(t, T, always)) prefetch(t, super, i, 8 * b + r);
        const __m512i codes = load_codes(t, block, r);
        HN_UNROLL for (int k = 0; k < T; k++) sum[k] = add_line(sum[k], codes, x, k, b, r);
    }
}

/* Where sums of 16 inputs fit 16 bits, as scales do, vpmaddwd and vpdpwssd multiply them if the high half of the scale is zero, which
 * it is not if it has a sign. */
HN_INLINE __m512i word_or_int(const hn_dtype t, __m512i s) {
    return hn_types[t].scales == HN_PARTS_S6 ? _mm512_and_si512(s, _mm512_set1_epi32(0xffff)) : s;
}

/* isum[T] of block b of a group: the exact sum of values and activations, in types with parts times their scales. */
HN_INLINE void sum_block(const hn_dtype t, const int T, const bool always, const unsigned char *super, int i, const int b,
                         const rows_at x, __m512i *isum) {
    HN_UNROLL for (int k = 0; k < T; k++) isum[k] = start_sum(t, x, k, b, 0);
    add_lines(t, T, always, super, i, b, 0, hn_has_parts(t) ? 4 : 8, x, isum);
    if (!hn_has_parts(t)) return;
    __m512i s = word_or_int(t, part_scale(t, super, i, b, 0)), sum[TILE_ROWS];
    HN_UNROLL for (int k = 0; k < T; k++) {
        isum[k] = hn_parts_fit_words(t) ? _mm512_madd_epi16(isum[k], s) : _mm512_mullo_epi32(isum[k], s);
        sum[k] = start_sum(t, x, k, b, 1);
    }
    add_lines(t, T, always, super, i, b, 4, 8, x, sum);
    s = word_or_int(t, part_scale(t, super, i, b, 1));
    HN_UNROLL for (int k = 0; k < T; k++) {
        isum[k] = hn_parts_fit_words(t) ? _mm512_dpwssd_epi32(isum[k], sum[k], s)
                                        : _mm512_add_epi32(isum[k], _mm512_mullo_epi32(sum[k], s));
    }
}

/* acc[T] less the minima of the parts of block b; n4 fits 16 bits too. */
HN_INLINE void take_parts_minimum(const hn_dtype t, const int T, const unsigned char *super, int i, const int b, const rows_at x,
                                  __m512 *acc) {
    const __m512i m0 = part_minimum(super, i, b, 0), m1 = part_minimum(super, i, b, 1);
    const __m512 m = block_minimum(t, super, i, b);
    HN_UNROLL for (int k = 0; k < T; k++) {
        const int32_t *n4 = parts_at(x, k)->n4 + 2 * b;
        __m512i msum = _mm512_madd_epi16(m0, _mm512_set1_epi32(n4[0]));
        msum = _mm512_dpwssd_epi32(msum, m1, _mm512_set1_epi32(n4[1]));
        acc[k] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(msum), m), _mm512_set1_ps(group_at(x, k)->d[b]), acc[k]);
    }
}

/* acc[T] after block b of a group. */
HN_INLINE void add_node(const hn_dtype t, const int T, const bool always, const unsigned char *super, int i, const int b,
                         const rows_at x, __m512 *acc) {
    __m512i isum[TILE_ROWS];
    sum_block(t, T, always, super, i, b, x, isum);
    const __m512 d = block_scale(t, super, i, b);
    HN_UNROLL for (int k = 0; k < T; k++) {
        const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(isum[k]), d);
        acc[k] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(group_at(x, k)->d[b]), acc[k]);
    }
    if (hn_has_part_minimums(t)) {
        take_parts_minimum(t, T, super, i, b, x, acc);
    } else if (hn_has_minimum(t)) {
        const __m512 m = block_minimum(t, super, i, b);
        HN_UNROLL for (int k = 0; k < T; k++) {
            const __m512 ds = _mm512_set1_ps(group_at(x, k)->ds[b]);
            acc[k] = hn_adds_minimum(t) ? _mm512_fmadd_ps(m, ds, acc[k]) : _mm512_fnmadd_ps(m, ds, acc[k]);
        }
    }
}

/* Part of a strip, from a superblock on, for the rows of a tile: c[T][16] from zero if fresh, else continued. */
typedef void tile_fn(const unsigned char *w, const unsigned char *x, const unsigned char *parts, size_t x_stride,
                     int groups, bool fresh, float *c);

HN_INLINE void run_tile(const hn_dtype t, const int T, const bool always, const unsigned char *w, rows_at x, int groups,
                        bool fresh, float *c) {
    __m512 acc[TILE_ROWS];
    HN_UNROLL for (int k = 0; k < T; k++) acc[k] = fresh ? _mm512_setzero_ps() : _mm512_load_ps(c + 16 * k);
    for (; groups > 0; groups -= groups_of(t), w += hn_super_bytes(hn_layout_of(t))) {
        const int here = groups < groups_of(t) ? groups : groups_of(t);
        for (int i = 0; i < here; i++) {
            add_node(t, T, always, w, i, 0, x, acc);
            add_node(t, T, always, w, i, 1, x, acc);
            x.x += sizeof(hn_q8_group);
            x.parts += sizeof(hn_q8_parts);
        }
    }
    HN_UNROLL for (int k = 0; k < T; k++) _mm512_store_ps(c + 16 * k, acc[k]);
}

/* By rows; ahead: those that always prefetch, for few rows. */
typedef struct tile_set {
    tile_fn *by_rows[TILE_ROWS + 1], *ahead[AHEAD_ROWS + 1];
} tile_set;

/* Not inlined, so that registers are allocated for each tile. */
#define TILE_OF(name, type, T, always)                                                                                \
    static __attribute__((noinline)) void name(const unsigned char *w, const unsigned char *x,                        \
                                               const unsigned char *parts, size_t x_stride, int groups, bool fresh,   \
                                               float *c) {                                                            \
        run_tile(HN_##type, T, always, w, (rows_at){x, parts, x_stride}, groups, fresh, c);                           \
    }
#define TILE(type, T) TILE_OF(tile_##type##_##T, type, T, false)
#define TILE_AHEAD(type, T) TILE_OF(tile_##type##_##T##_ahead, type, T, true)
#define TILES(type, ...)                                                                                              \
    TILE(type, 1) TILE(type, 2) TILE(type, 3) TILE(type, 4) TILE(type, 5) TILE(type, 6) TILE(type, 7) TILE(type, 8)   \
    TILE_AHEAD(type, 1) TILE_AHEAD(type, 2) TILE_AHEAD(type, 3) TILE_AHEAD(type, 4)                                   \
    static const tile_set tiles_##type = {{NULL, tile_##type##_1, tile_##type##_2, tile_##type##_3, tile_##type##_4,     \
                                        tile_##type##_5, tile_##type##_6, tile_##type##_7, tile_##type##_8},          \
                                       {NULL, tile_##type##_1_ahead, tile_##type##_2_ahead, tile_##type##_3_ahead,    \
                                        tile_##type##_4_ahead}};
HN_BLOCK_TYPES(TILES)

/* Every strip for all rows: in one walk if they fit a tile, else chunk by chunk in tiles of about equal size. */
static void strips_q8(hn_dtype t, const tile_set *of, const hn_strips_job *j) {
    const hn_layout l = hn_layout_of(t);
    tile_fn *const *by_rows = j->n <= AHEAD_ROWS && hn_isa_has(HN_ISA_AMX) ? of->ahead : of->by_rows;
    int groups = hn_act_groups(j->in), tiles = (j->n + TILE_ROWS - 1) / TILE_ROWS;
    int step = tiles > 1 ? CHUNK_GROUPS : groups;
    for (int s = 0; s < j->strips; s++) {
        const unsigned char *w = j->w[s];
        for (int g = 0; g < groups; g += step, w += hn_super_bytes(l) * (size_t)(CHUNK_GROUPS * HN_GROUP / l.inputs)) {
            for (int part = 0, row = 0; part < tiles; part++) {
                int rows = j->n * (part + 1) / tiles - row;
                const unsigned char *x = j->x + j->x_stride * (size_t)row;
                by_rows[rows](w, x + sizeof(hn_q8_group) * (size_t)g,
                              x + hn_act_parts_off(j->in) + sizeof(hn_q8_parts) * (size_t)g, j->x_stride,
                              groups - g < step ? groups - g : step, g == 0,
                              j->c + ((size_t)s * (size_t)j->n + (size_t)row) * HN_STRIP);
                row += rows;
            }
        }
    }
}

#define STRIPS_Q8(type, ...) static void strips_q8_##type(const hn_strips_job *j) { strips_q8(HN_##type, &tiles_##type, j); }
HN_BLOCK_TYPES(STRIPS_Q8)

/* ---- float rows ---------------------------------------------------------------------------------------------------- */

enum { FLOAT_STRIPS = 4, FEW_ROWS = 4 }; /* most strips a tile; most rows of a tile of several strips */

/* The input of a tile of S strips and T rows, and c[S][T][16] that it continues. */
typedef struct float_tile {
    const unsigned char *w[FLOAT_STRIPS];
    float factor[FLOAT_STRIPS]; /* of F8_E4M3 */
    const float *x;
    size_t x_stride, c_stride; /* floats from row to row, from strip to strip */
    int count;                 /* inputs */
    float *c;
} float_tile;

/* If one strip is read at a time, prefetches pay for these types too; with several, only for F8_E4M3. */
HN_INLINE bool float_prefetches(const int t, const int S) { return t != HN_WIDENED && (S == 1 || float_bytes(t) == 1); }

/* acc[S][T] with inputs [k, k + count), count <= 4. */
HN_INLINE void add_inputs(const int t, const int T, const int S, const float_tile *j, int k, const int count,
                          __m512 *acc) {
    const int step = (int)(HN_STRIP * float_bytes(t));
    HN_UNROLL for (int s = 0; s < S; s++) {
        const unsigned char *w = j->w[s] + step * (t == HN_BF16 ? k / 2 * 2 : k);
        __m512 v[4];
        if (float_prefetches(t, S) && count == 4) {
            HN_UNROLL for (int l = 0; l < 4 * step; l += 64) _mm_prefetch((const char *)w + AHEAD + l, _MM_HINT_T1);
        }
        HN_UNROLL for (int i = 0; i < count; i++) {
            v[i] = t == HN_BF16 ? load_of_pair(w, count == 4 ? i : k % 2)
                                : load_float(t, w + step * i, _mm512_set1_ps(j->factor[s]));
        }
        HN_UNROLL for (int i = 0; i < count; i++) {
            HN_UNROLL for (int r = 0; r < T; r++) {
                const __m512 x = _mm512_set1_ps(j->x[j->x_stride * (size_t)r + (size_t)(k + i)]);
                acc[s * T + r] = _mm512_fmadd_ps(v[i], x, acc[s * T + r]);
            }
        }
    }
}

HN_INLINE void tile_f32(const int t, const int T, const int S, const float_tile *j) {
    __m512 acc[FLOAT_STRIPS * FEW_ROWS];
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int r = 0; r < T; r++) acc[s * T + r] = _mm512_load_ps(j->c + j->c_stride * (size_t)s + 16 * r);
    }
    int k = 0;
    for (; k + 4 <= j->count; k += 4) add_inputs(t, T, S, j, k, 4, acc);
    for (; k < j->count; k++) add_inputs(t, T, S, j, k, 1, acc);
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int r = 0; r < T; r++) _mm512_store_ps(j->c + j->c_stride * (size_t)s + 16 * r, acc[s * T + r]);
    }
}

typedef void float_fn(const float_tile *j);
#define FLOAT_TILE(type, T, S)                                                                                        \
    static __attribute__((noinline)) void float_##type##_##T##x##S(const float_tile *j) { tile_f32(HN_##type, T, S, j); }
#define FEW_TILES(type, S)                                                                                            \
    FLOAT_TILE(type, 1, S) FLOAT_TILE(type, 2, S) FLOAT_TILE(type, 3, S) FLOAT_TILE(type, 4, S)
#define FEW_NAMES(type, S) NULL, float_##type##_1x##S, float_##type##_2x##S, float_##type##_3x##S, float_##type##_4x##S
#define FLOAT_TILES(type, ...)                                                                                        \
    FEW_TILES(type, 1) FEW_TILES(type, 2) FEW_TILES(type, 4)                                                          \
    FLOAT_TILE(type, 5, 1) FLOAT_TILE(type, 6, 1) FLOAT_TILE(type, 7, 1) FLOAT_TILE(type, 8, 1)                       \
    static float_fn *const floats_##type[3][TILE_ROWS + 1] = {                                                        \
        {FEW_NAMES(type, 1), float_##type##_5x1, float_##type##_6x1, float_##type##_7x1, float_##type##_8x1},         \
        {FEW_NAMES(type, 2)}, {FEW_NAMES(type, 4)}};
HN_FLOAT_TYPES(FLOAT_TILES)
FLOAT_TILES(F8_PLAIN)
FLOAT_TILES(WIDENED)
#define FLOAT_ENTRY(type, ...) [HN_##type] = floats_##type,
static float_fn *const (*const float_tiles[HN_WIDENED + 1])[TILE_ROWS + 1] = { /* [type][strips / 2][rows] */
    HN_FLOAT_TYPES(FLOAT_ENTRY) FLOAT_ENTRY(F8_PLAIN) FLOAT_ENTRY(WIDENED)};

/* Strips [s, s + strips) with the inputs of a tile, from k on, and all rows. */
static void add_floats(int t, const hn_strips_job *j, int s, int strips, float_tile *tile, int k) {
    const int tiles = (j->n + TILE_ROWS - 1) / TILE_ROWS;
    tile->x_stride = j->x_stride / sizeof(float);
    tile->c_stride = (size_t)j->n * HN_STRIP;
    for (int part = 0, row = 0; part < tiles; part++) {
        const int rows = j->n * (part + 1) / tiles - row;
        tile->x = (const float *)j->x + tile->x_stride * (size_t)row + k;
        tile->c = j->c + tile->c_stride * (size_t)s + HN_STRIP * row;
        float_tiles[t][strips / 2][rows](tile);
        row += rows;
    }
}

/* The number of strips at once: 1, 2 or 4. */
static int strips_at_once(int most, int left) { return left >= most ? most : left >= 2 ? 2 : 1; }

#define WIDEN(type, ...)                                                                                                   \
    static void widen_##type(const unsigned char *super, int i, float *dst) { widen_group(HN_##type, super, i, dst); }
HN_BLOCK_TYPES(WIDEN)
#define WIDEN_ENTRY(type, ...) [HN_##type] = widen_##type,
static void (*const widen_block_type[HN_WEIGHT_TYPES])(const unsigned char *super, int i, float *dst) = {
    HN_BLOCK_TYPES(WIDEN_ENTRY)};

/* Multiplies `count` widened inputs of every strip with those of all rows from k on. */
static void add_widened(const hn_strips_job *j, int k, int count, float (*w)[HN_GROUP * HN_STRIP]) {
    const int most = j->n == 1 ? 4 : j->n < 4 ? 2 : 1; /* strips at once: enough for four sums */
    float_tile tile = {.count = count};
    for (int s = 0, run; s < j->strips; s += run) {
        run = strips_at_once(most, j->strips - s);
        for (int i = 0; i < run; i++) tile.w[i] = (const unsigned char *)w[s + i];
        add_floats(HN_WIDENED, j, s, run, &tile, k);
    }
}

/* A group of every strip is widened to f32 in the L1 cache, then read by all rows. */
static void strips_of_blocks(hn_dtype t, const hn_strips_job *j) {
    _Alignas(64) float scratch[HN_CALL_STRIPS][HN_GROUP * HN_STRIP];
    const hn_layout l = hn_layout_of(t);
    for (int k = 0; k < j->in; k += HN_GROUP) {
        for (int s = 0; s < j->strips; s++) {
            const unsigned char *super = j->w[s] + hn_super_bytes(l) * (size_t)(k / l.inputs);
            widen_block_type[t](super, k % l.inputs / HN_GROUP, scratch[s]);
        }
        add_widened(j, k, j->in - k < HN_GROUP ? j->in - k : HN_GROUP, scratch);
    }
}

/* Widened in registers. With few rows several strips at once, which hide the latency of their sums, are faster than one
 * stream with prefetches; the limit was measured. */
static void strips_of_floats(hn_dtype t, const hn_strips_job *j) {
    const size_t head = t == HN_F8_E4M3 ? hn_f8_head(j->in) : 0, step = HN_STRIP * float_bytes(t);
    const int few = t == HN_F32 ? FEW_ROWS : t == HN_F8_E4M3 ? 1 : 3;
    for (int s = 0, run; s < j->strips; s += run) {
        run = strips_at_once(j->n > few ? 1 : t == HN_F32 && j->n > 2 ? 2 : 4, j->strips - s);
        for (int k = 0; k < j->in; k += HN_F8_TILE) {
            float_tile tile = {.count = j->in - k < HN_F8_TILE ? j->in - k : HN_F8_TILE};
            int as = t == HN_F8_E4M3 ? HN_F8_PLAIN : (int)t;
            for (int i = 0; i < run; i++) {
                tile.w[i] = j->w[s + i] + head + step * (size_t)k;
                tile.factor[i] = head ? ((const float *)j->w[s + i])[k / HN_F8_TILE] : 1;
                if (head && !f8_is_plain(tile.w[i], tile.count, tile.factor[i])) as = HN_F8_E4M3;
            }
            add_floats(as, j, s, run, &tile, k);
        }
    }
}

static void strips_f32(hn_dtype t, const hn_strips_job *j) {
    memset(j->c, 0, (size_t)(j->strips * j->n) * HN_STRIP * sizeof(float));
    if (hn_is_block_type(t)) {
        strips_of_blocks(t, j);
    } else {
        strips_of_floats(t, j);
    }
}

/* ---- bf16 rows ----------------------------------------------------------------------------------------------------- */

/* Group by group as floats, with the two of each pair swapped, so that one chain in the order of inputs is the chain of pairs. */
static void strips_bf16(const hn_strips_job *j) {
    _Alignas(64) float scratch[HN_CALL_STRIPS][HN_GROUP * HN_STRIP], rows[HN_CALL_ROWS][HN_GROUP];
    hn_strips_job part = *j;
    const unsigned modes = hn_flush_begin();
    memset(j->c, 0, (size_t)(j->strips * j->n) * HN_STRIP * sizeof(float));
    part.x = (const unsigned char *)rows;
    part.x_stride = sizeof rows[0];
    for (int k = 0; k < j->in; k += HN_GROUP) {
        const int left = (j->in - k + 1) / 2 * 2, count = left < HN_GROUP ? left : HN_GROUP;
        for (int r = 0; r < j->n; r++) {
            hn_act_swapped_bf16((const uint16_t *)(j->x + j->x_stride * (size_t)r) + k, count, rows[r]);
        }
        for (int s = 0; s < j->strips; s++) {
            const unsigned char *w = j->w[s] + (size_t)k * HN_STRIP * 2;
            for (int i = 0; i < count; i++) _mm512_store_ps(scratch[s] + HN_STRIP * (i ^ 1), load_of_pair(w, i));
        }
        add_widened(&part, 0, count, scratch);
    }
    hn_flush_end(modes);
}

/* ---- epilogues ---------------------------------------------------------------------------------------------------- */

static void store(const float *c, int n, float *y, int ldy, int cols, bool add) {
    const __mmask16 lanes = (__mmask16)((1u << cols) - 1);
    for (int r = 0; r < n; r++, c += HN_STRIP, y += ldy) {
        __m512 v = _mm512_load_ps(c);
        if (add) v = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, y), v);
        _mm512_mask_storeu_ps(y, lanes, v);
    }
}

static void store_glu(const float *gate, const float *up, int n, float *y, int ldy, int cols) {
    const __mmask16 lanes = (__mmask16)((1u << cols) - 1);
    for (int r = 0; r < n; r++, gate += HN_STRIP, up += HN_STRIP, y += ldy) {
        const __m512 g = _mm512_load_ps(gate), minus = _mm512_xor_ps(g, _mm512_set1_ps(-0.0f));
        const __m512 silu = _mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1.0f), hn_exp_avx512(minus)));
        _mm512_mask_storeu_ps(y, lanes, _mm512_mul_ps(silu, _mm512_load_ps(up)));
    }
}

#define LINEAR_TABLE hn_kernels_avx512_linear
#define LINEAR_BF16 strips_bf16
#include "ops/linear_table_tmpl.h"
