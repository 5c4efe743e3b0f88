/* SPDX-License-Identifier: Apache-2.0 */
/* linear_avx512.c - matrix products with AVX-512 and VNNI. Results: ref/linear_ref.c, bit for bit.
 *
 * A lane is an output. Quantised rows: vpdpbusd multiplies four unsigned weight codes of each output with four signed
 * activation codes of a row, broadcast from memory; the sum of a block starts at minus offset times the row's block sum,
 * so that it comes out exact. A tile of T rows keeps its sums in registers while a strip streams by once (more than one
 * strip at once was slower: streams in parallel confuse the prefetcher). More rows than a tile: the strip is walked in
 * chunks that stay in the L1 cache, sums wait in c.
 *
 * Float rows: a chunk of up to 64 inputs of each strip is widened to f32 in the L1 cache (unless it is f32 already),
 * then one fma chain an output, with enough strips at once to hide its latency.
 */
#include <immintrin.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/x86/math_avx512.h"
#include "ops/x86/unroll.h"

enum {
    TILE_ROWS = 8,    /* most rows a tile: as many int and float sums fit the registers */
    CHUNK_GROUPS = 4, /* groups of a strip that all tiles of rows use before the next */
    AHEAD = 8192      /* bytes ahead of its place in a strip that a tile asks for, into the L2 cache */
};

/* ---- quantised rows ------------------------------------------------------------------------------------------------ */

HN_INLINE __m512 load_half(const unsigned char *p) {
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)p));
}

/* Line r (0..7) of codes of block b: 16 outputs x 4 inputs, unsigned. */
HN_INLINE __m512i load_codes(const hn_dtype t, const unsigned char *codes, const int b, const int r) {
    if (t == HN_Q8_0) return _mm512_load_si512(codes + 512 * b + 64 * r);
    __m512i v = _mm512_load_si512(codes + 256 * b + 64 * (r % 4));
    return _mm512_and_si512(r < 4 ? v : _mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}

HN_INLINE __m512i start_sum(const hn_dtype t, const hn_q8_group *x, const int b) {
    if (t == HN_Q4_1) return _mm512_setzero_si512();
    return _mm512_set1_epi32(t == HN_Q8_0 ? x->n128[b] : x->n8[b]);
}

HN_INLINE const hn_q8_group *row_at(const unsigned char *x, size_t x_stride, const int i) {
    return (const hn_q8_group *)(x + x_stride * (size_t)i);
}

HN_INLINE int quad_at(const hn_q8_group *x, const int b, const int r) {
    int v;
    memcpy(&v, x->q + HN_BLOCK * b + 4 * r, sizeof v);
    return v;
}

/* Whether a tile of T rows asks for what the strip will hold some time ahead. With one row (8-bit: two) a core waits for
 * memory anyhow and its own prefetcher does better alone; with more, arithmetic and reading have to overlap. */
HN_INLINE bool prefetches(const hn_dtype t, const int T) { return T > (t == HN_Q8_0 ? 2 : 1); }

/* acc[T] after `groups` groups of a strip. x: T rows, x_stride bytes apart. */
HN_INLINE void tile_q8(const hn_dtype t, const int T, const unsigned char *w, const unsigned char *x, size_t x_stride,
                       int groups, __m512 *acc) {
    const int lines = (int)hn_group_bytes(t) / 64;
    for (int g = 0; g < groups; g++, w += hn_group_bytes(t)) {
        const size_t x_off = (size_t)g * sizeof(hn_q8_group);
        HN_UNROLL for (int b = 0; b < 2; b++) {
            __m512i sum[TILE_ROWS];
            HN_UNROLL for (int i = 0; i < T; i++) sum[i] = start_sum(t, row_at(x + x_off, x_stride, i), b);
            HN_UNROLL for (int r = 0; r < 8; r++) {
                if (prefetches(t, T)) { /* the group's lines spread evenly over its 16 steps */
                    const int step = 8 * b + r;
                    HN_UNROLL for (int l = lines * step / 16; l < lines * (step + 1) / 16; l++) {
                        _mm_prefetch((const char *)w + AHEAD + 64 * l, _MM_HINT_T1);
                    }
                }
                const __m512i codes = load_codes(t, w + hn_group_head(t), b, r);
                HN_UNROLL for (int i = 0; i < T; i++) {
                    const __m512i quad = _mm512_set1_epi32(quad_at(row_at(x + x_off, x_stride, i), b, r));
                    sum[i] = _mm512_dpbusd_epi32(sum[i], codes, quad);
                }
            }
            const __m512 d = load_half(w + 32 * b), m = t == HN_Q4_1 ? load_half(w + 64 + 32 * b) : d;
            HN_UNROLL for (int i = 0; i < T; i++) {
                const hn_q8_group *row = row_at(x + x_off, x_stride, i);
                const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[i]), d);
                acc[i] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(row->d[b]), acc[i]);
                if (t == HN_Q4_1) acc[i] = _mm512_fmadd_ps(m, _mm512_set1_ps(row->ds[b]), acc[i]);
            }
        }
    }
}

/* Part of a strip for the rows of a tile: c[T][16] from zero where fresh, else continued. */
typedef void tile_fn(const unsigned char *w, const unsigned char *x, size_t x_stride, int groups, bool fresh, float *c);

HN_INLINE void run_tile(const hn_dtype t, const int T, const unsigned char *w, const unsigned char *x, size_t x_stride,
                        int groups, bool fresh, float *c) {
    __m512 acc[TILE_ROWS];
    HN_UNROLL for (int i = 0; i < T; i++) acc[i] = fresh ? _mm512_setzero_ps() : _mm512_load_ps(c + 16 * i);
    tile_q8(t, T, w, x, x_stride, groups, acc);
    HN_UNROLL for (int i = 0; i < T; i++) _mm512_store_ps(c + 16 * i, acc[i]);
}

/* Not inlined, so that each tile has its own registers. */
#define TILE(type, T)                                                                                                 \
    static __attribute__((noinline)) void tile_##type##_##T(const unsigned char *w, const unsigned char *x,           \
                                                            size_t x_stride, int groups, bool fresh, float *c) {      \
        run_tile(HN_##type, T, w, x, x_stride, groups, fresh, c);                                                     \
    }
#define TILES(type)                                                                                                   \
    TILE(type, 1) TILE(type, 2) TILE(type, 3) TILE(type, 4) TILE(type, 5) TILE(type, 6) TILE(type, 7) TILE(type, 8)   \
    static tile_fn *const tiles_##type[TILE_ROWS + 1] = {                                                             \
        NULL,           tile_##type##_1, tile_##type##_2, tile_##type##_3, tile_##type##_4,                           \
        tile_##type##_5, tile_##type##_6, tile_##type##_7, tile_##type##_8};
TILES(Q4_0)
TILES(Q4_1)
TILES(Q8_0)

/* Every strip for all rows: in one walk where they fit a tile, else chunk by chunk in tiles of about equal size. */
static void strips_q8(hn_dtype t, tile_fn *const *by_rows, const hn_strips_job *j) {
    int groups = hn_act_groups(j->in), tiles = (j->n + TILE_ROWS - 1) / TILE_ROWS;
    int step = tiles > 1 ? CHUNK_GROUPS : groups;
    for (int s = 0; s < j->strips; s++) {
        for (int g = 0; g < groups; g += step) {
            for (int part = 0, row = 0; part < tiles; part++) {
                int rows = j->n * (part + 1) / tiles - row;
                by_rows[rows](j->w[s] + hn_group_bytes(t) * (size_t)g,
                              j->x + j->x_stride * (size_t)row + sizeof(hn_q8_group) * (size_t)g, j->x_stride,
                              groups - g < step ? groups - g : step, g == 0,
                              j->c + ((size_t)s * (size_t)j->n + (size_t)row) * HN_STRIP);
                row += rows;
            }
        }
    }
}

static void strips_q8_q4_0(const hn_strips_job *j) { strips_q8(HN_Q4_0, tiles_Q4_0, j); }
static void strips_q8_q4_1(const hn_strips_job *j) { strips_q8(HN_Q4_1, tiles_Q4_1, j); }
static void strips_q8_q8_0(const hn_strips_job *j) { strips_q8(HN_Q8_0, tiles_Q8_0, j); }

/* ---- float rows ---------------------------------------------------------------------------------------------------- */

enum { FLOAT_ROWS = 6 };

/* 16 weights of one input of a block type, from its line of four inputs. */
HN_INLINE __m512 dequantise(const hn_dtype t, __m512i line, const int shift, __m512 d, __m512 m) {
    __m512i code = _mm512_and_si512(_mm512_srli_epi32(line, (unsigned)shift), _mm512_set1_epi32(t == HN_Q8_0 ? 255 : 15));
    if (t == HN_Q4_1) return _mm512_add_ps(_mm512_mul_ps(d, _mm512_cvtepi32_ps(code)), m);
    code = _mm512_sub_epi32(code, _mm512_set1_epi32(t == HN_Q8_0 ? 128 : 8));
    return _mm512_mul_ps(d, _mm512_cvtepi32_ps(code));
}

/* Group g of a strip as f32 [64][16]. */
HN_INLINE void widen_group(const hn_dtype t, const unsigned char *group, float *dst) {
    for (int b = 0; b < 2; b++, dst += HN_BLOCK * HN_STRIP) {
        const __m512 d = load_half(group + 32 * b), m = t == HN_Q4_1 ? load_half(group + 64 + 32 * b) : d;
        const unsigned char *codes = group + hn_group_head(t) + (t == HN_Q8_0 ? 512 : 256) * b;
        for (int r = 0; r < (t == HN_Q8_0 ? 8 : 4); r++) {
            const __m512i line = _mm512_load_si512(codes + 64 * r);
            HN_UNROLL for (int c = 0; c < 4; c++) {
                _mm512_store_ps(dst + (4 * r + c) * HN_STRIP, dequantise(t, line, 8 * c, d, m));
                if (t != HN_Q8_0) {
                    _mm512_store_ps(dst + (16 + 4 * r + c) * HN_STRIP, dequantise(t, line, 8 * c + 4, d, m));
                }
            }
        }
    }
}

/* Inputs [k, k + count) of a strip as f32 [count][16]; k a multiple of 64. Scratch holds a group. */
static const float *widen(hn_dtype t, const unsigned char *strip, int k, int count, float *scratch) {
    const unsigned char *group = strip + (hn_is_block_type(t) ? hn_group_bytes(t) * (size_t)(k / HN_GROUP) : 0);
    const unsigned char *half = strip + (size_t)k * HN_STRIP * 2;
    switch (t) {
    case HN_Q4_0: widen_group(HN_Q4_0, group, scratch); break;
    case HN_Q4_1: widen_group(HN_Q4_1, group, scratch); break;
    case HN_Q8_0: widen_group(HN_Q8_0, group, scratch); break;
    case HN_F16:
        for (int i = 0; i < count; i++) _mm512_store_ps(scratch + 16 * i, load_half(half + 32 * i));
        break;
    case HN_BF16:
        for (int i = 0; i < count; i++) {
            __m512i v = _mm512_cvtepu16_epi32(_mm256_load_si256((const __m256i *)(half + 32 * i)));
            _mm512_store_si512(scratch + 16 * i, _mm512_slli_epi32(v, 16));
        }
        break;
    default: return (const float *)strip + (size_t)k * HN_STRIP;
    }
    return scratch;
}

/* c[S][T] continued with `count` inputs of S widened strips and T rows. */
HN_INLINE void tile_f32(const int T, const int S, const float *const *w, const float *x, size_t x_stride, int count,
                        float *c, size_t c_stride) {
    __m512 acc[4 * FLOAT_ROWS];
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int i = 0; i < T; i++) acc[s * T + i] = _mm512_load_ps(c + c_stride * (size_t)s + 16 * i);
    }
    for (int k = 0; k < count; k++) {
        __m512 v[4];
        HN_UNROLL for (int s = 0; s < S; s++) v[s] = _mm512_load_ps(w[s] + 16 * k);
        HN_UNROLL for (int i = 0; i < T; i++) {
            const __m512 a = _mm512_set1_ps(x[x_stride * (size_t)i + (size_t)k]);
            HN_UNROLL for (int s = 0; s < S; s++) acc[s * T + i] = _mm512_fmadd_ps(v[s], a, acc[s * T + i]);
        }
    }
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int i = 0; i < T; i++) _mm512_store_ps(c + c_stride * (size_t)s + 16 * i, acc[s * T + i]);
    }
}

typedef void float_fn(const float *const *w, const float *x, size_t x_stride, int count, float *c, size_t c_stride);
#define FLOAT_TILE(T, S)                                                                                              \
    static __attribute__((noinline)) void float_##T##x##S(const float *const *w, const float *x, size_t x_stride,     \
                                                          int count, float *c, size_t c_stride) {                     \
        tile_f32(T, S, w, x, x_stride, count, c, c_stride);                                                           \
    }
#define FLOAT_TILES(T) FLOAT_TILE(T, 1) FLOAT_TILE(T, 2) FLOAT_TILE(T, 3) FLOAT_TILE(T, 4)
FLOAT_TILES(1)
FLOAT_TILES(2)
FLOAT_TILES(3)
FLOAT_TILES(4)
FLOAT_TILES(5)
FLOAT_TILES(6)
#define FLOAT_ROW(T) {NULL, float_##T##x1, float_##T##x2, float_##T##x3, float_##T##x4}
static float_fn *const float_tiles[FLOAT_ROWS + 1][HN_CALL_STRIPS + 1] = {
    {NULL}, FLOAT_ROW(1), FLOAT_ROW(2), FLOAT_ROW(3), FLOAT_ROW(4), FLOAT_ROW(5), FLOAT_ROW(6)};

static void strips_f32(hn_dtype t, const hn_strips_job *j) {
    _Alignas(64) float scratch[HN_CALL_STRIPS][HN_GROUP * HN_STRIP];
    size_t x_stride = j->x_stride / sizeof(float), c_stride = (size_t)j->n * HN_STRIP;
    int parts = (j->n + FLOAT_ROWS - 1) / FLOAT_ROWS;
    memset(j->c, 0, (size_t)j->strips * c_stride * sizeof(float));
    for (int k = 0; k < j->in; k += HN_GROUP) {
        int count = j->in - k < HN_GROUP ? j->in - k : HN_GROUP;
        const float *w[HN_CALL_STRIPS];
        for (int s = 0; s < j->strips; s++) w[s] = widen(t, j->w[s], k, count, scratch[s]);
        for (int part = 0, row = 0; part < parts; part++) {
            int rows = (j->n * (part + 1)) / parts - row;
            float_tiles[rows][j->strips](w, (const float *)j->x + x_stride * (size_t)row + k, x_stride, count,
                                         j->c + 16 * row, c_stride);
            row += rows;
        }
    }
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
#include "ops/linear_table_tmpl.h"
