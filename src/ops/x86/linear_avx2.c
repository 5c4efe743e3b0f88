/* SPDX-License-Identifier: Apache-2.0 */
/* linear_avx2.c - matrix products with AVX2 and FMA. Results: ref/linear_ref.c, bit for bit.
 *
 * A lane is an output; the 16 outputs of a strip are two registers. vpmaddubsw adds neighbouring products in 16 bits:
 * 4-bit codes (at most 15) leave room for the whole block, 8 * 2 * 15 * 127 < 2^15; 8-bit ones are made signed and
 * split in magnitude and sign, so that a pair (at most 2 * 128 * 127 < 2^15) fits, and are widened after each product.
 * Float sums of a tile wait in c between blocks, which leaves the registers to the integer ones.
 */
#include <immintrin.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/x86/math_avx2.h"
#include "ops/x86/unroll.h"

enum {
    TILE_ROWS = 4,    /* most rows a tile */
    CHUNK_GROUPS = 4, /* groups of a strip that all tiles of rows use before the next */
    AHEAD = 8192,     /* bytes ahead of its place in a strip that a tile asks for, into the L2 cache */
    FLOAT_ROWS = 3
};

HN_INLINE __m256i load_line(const void *p) { return _mm256_load_si256((const __m256i *)p); }
HN_INLINE __m256 load_half(const unsigned char *p) { return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)p)); }

/* ---- quantised rows ------------------------------------------------------------------------------------------------ */

HN_INLINE __m256i quad_at(const hn_q8_group *x, const int b, const int r) {
    int v;
    memcpy(&v, x->q + HN_BLOCK * b + 4 * r, sizeof v);
    return _mm256_set1_epi32(v);
}

/* sum[T][2]: block sums of 4-bit codes. codes: 256 bytes */
HN_INLINE void block_sums_4(const int T, const unsigned char *codes, const hn_q8_group *const *x, const int b,
                            __m256i *sum) {
    const __m256i nibble = _mm256_set1_epi8(15);
    HN_UNROLL for (int i = 0; i < 2 * T; i++) sum[i] = _mm256_setzero_si256();
    HN_UNROLL for (int r = 0; r < 8; r++) {
        __m256i w0 = load_line(codes + 64 * (r % 4)), w1 = load_line(codes + 64 * (r % 4) + 32);
        w0 = _mm256_and_si256(r < 4 ? w0 : _mm256_srli_epi16(w0, 4), nibble);
        w1 = _mm256_and_si256(r < 4 ? w1 : _mm256_srli_epi16(w1, 4), nibble);
        HN_UNROLL for (int i = 0; i < T; i++) {
            const __m256i quad = quad_at(x[i], b, r);
            sum[2 * i] = _mm256_add_epi16(sum[2 * i], _mm256_maddubs_epi16(w0, quad));
            sum[2 * i + 1] = _mm256_add_epi16(sum[2 * i + 1], _mm256_maddubs_epi16(w1, quad));
            HN_SETTLE(sum[2 * i]);
            HN_SETTLE(sum[2 * i + 1]);
        }
    }
    HN_UNROLL for (int i = 0; i < 2 * T; i++) sum[i] = _mm256_madd_epi16(sum[i], _mm256_set1_epi16(1));
}

/* sum[T][2]: block sums of 8-bit weights, their offset removed. codes: 512 bytes */
HN_INLINE void block_sums_8(const int T, const unsigned char *codes, const hn_q8_group *const *x, const int b,
                            __m256i *sum) {
    const __m256i offset = _mm256_set1_epi8((char)0x80), one = _mm256_set1_epi16(1);
    HN_UNROLL for (int i = 0; i < 2 * T; i++) sum[i] = _mm256_setzero_si256();
    HN_UNROLL for (int r = 0; r < 8; r++) {
        const __m256i w0 = _mm256_xor_si256(load_line(codes + 64 * r), offset);
        const __m256i w1 = _mm256_xor_si256(load_line(codes + 64 * r + 32), offset);
        const __m256i a0 = _mm256_abs_epi8(w0), a1 = _mm256_abs_epi8(w1);
        HN_UNROLL for (int i = 0; i < T; i++) {
            const __m256i quad = quad_at(x[i], b, r);
            const __m256i p0 = _mm256_maddubs_epi16(a0, _mm256_sign_epi8(quad, w0));
            const __m256i p1 = _mm256_maddubs_epi16(a1, _mm256_sign_epi8(quad, w1));
            sum[2 * i] = _mm256_add_epi32(sum[2 * i], _mm256_madd_epi16(p0, one));
            sum[2 * i + 1] = _mm256_add_epi32(sum[2 * i + 1], _mm256_madd_epi16(p1, one));
            HN_SETTLE(sum[2 * i]);
            HN_SETTLE(sum[2 * i + 1]);
        }
    }
}

/* Block b of a group for T rows: c[T][16] continued. */
HN_INLINE void block_q8(const hn_dtype t, const int T, const unsigned char *group, const hn_q8_group *const *x,
                        const int b, float *c) {
    __m256i sum[2 * TILE_ROWS];
    const unsigned char *codes = group + hn_group_head(t) + (t == HN_Q8_0 ? 512 : 256) * b;
    if (t == HN_Q8_0) {
        block_sums_8(T, codes, x, b, sum);
    } else {
        block_sums_4(T, codes, x, b, sum);
    }
    HN_UNROLL for (int h = 0; h < 2; h++) {
        const __m256 d = load_half(group + 32 * b + 16 * h);
        const __m256 m = t == HN_Q4_1 ? load_half(group + 64 + 32 * b + 16 * h) : d;
        HN_UNROLL for (int i = 0; i < T; i++) {
            __m256i isum = sum[2 * i + h];
            if (t == HN_Q4_0) isum = _mm256_add_epi32(isum, _mm256_set1_epi32(x[i]->n8[b]));
            const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(isum), d);
            __m256 acc = _mm256_load_ps(c + 16 * i + 8 * h);
            acc = _mm256_fmadd_ps(scaled, _mm256_set1_ps(x[i]->d[b]), acc);
            if (t == HN_Q4_1) acc = _mm256_fmadd_ps(m, _mm256_set1_ps(x[i]->ds[b]), acc);
            _mm256_store_ps(c + 16 * i + 8 * h, acc);
        }
    }
}

typedef void tile_fn(const unsigned char *w, const unsigned char *x, size_t x_stride, int groups, float *c);

HN_INLINE void tile_q8(const hn_dtype t, const int T, const unsigned char *w, const unsigned char *x, size_t x_stride,
                       int groups, float *c) {
    for (int g = 0; g < groups; g++, w += hn_group_bytes(t), x += sizeof(hn_q8_group)) {
        const hn_q8_group *row[TILE_ROWS];
        for (size_t l = 0; l < hn_group_bytes(t) && T > 1; l += 64) { /* one row: the core's own prefetcher does better */
            _mm_prefetch((const char *)w + AHEAD + l, _MM_HINT_T1);
        }
        HN_UNROLL for (int i = 0; i < T; i++) row[i] = (const hn_q8_group *)(x + x_stride * (size_t)i);
        block_q8(t, T, w, row, 0, c);
        block_q8(t, T, w, row, 1, c);
    }
}

#define TILE(type, T)                                                                                                 \
    static __attribute__((noinline)) void tile_##type##_##T(const unsigned char *w, const unsigned char *x,           \
                                                            size_t x_stride, int groups, float *c) {                  \
        tile_q8(HN_##type, T, w, x, x_stride, groups, c);                                                             \
    }
#define TILES(type)                                                                                                   \
    TILE(type, 1) TILE(type, 2) TILE(type, 3) TILE(type, 4)                                                           \
    static tile_fn *const tiles_##type[TILE_ROWS + 1] = {NULL, tile_##type##_1, tile_##type##_2, tile_##type##_3,     \
                                                         tile_##type##_4};
TILES(Q4_0)
TILES(Q4_1)
TILES(Q8_0)

static void strips_q8(hn_dtype t, tile_fn *const *by_rows, const hn_strips_job *j) {
    int groups = hn_act_groups(j->in), tiles = (j->n + TILE_ROWS - 1) / TILE_ROWS;
    int step = tiles > 1 ? CHUNK_GROUPS : groups;
    memset(j->c, 0, (size_t)j->strips * (size_t)j->n * HN_STRIP * sizeof(float));
    for (int s = 0; s < j->strips; s++) {
        for (int g = 0; g < groups; g += step) {
            for (int part = 0, row = 0; part < tiles; part++) {
                int rows = j->n * (part + 1) / tiles - row;
                by_rows[rows](j->w[s] + hn_group_bytes(t) * (size_t)g,
                              j->x + j->x_stride * (size_t)row + sizeof(hn_q8_group) * (size_t)g, j->x_stride,
                              groups - g < step ? groups - g : step,
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

/* 8 weights of one input of a block type, from their half of its line of four inputs. */
HN_INLINE __m256 dequantise(const hn_dtype t, __m256i line, const int shift, __m256 d, __m256 m) {
    __m256i code = _mm256_and_si256(_mm256_srli_epi32(line, shift), _mm256_set1_epi32(t == HN_Q8_0 ? 255 : 15));
    if (t == HN_Q4_1) return _mm256_add_ps(_mm256_mul_ps(d, _mm256_cvtepi32_ps(code)), m);
    code = _mm256_sub_epi32(code, _mm256_set1_epi32(t == HN_Q8_0 ? 128 : 8));
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(code));
}

/* Half h (8 outputs) of block b of a group as f32, [32][16] at dst. */
HN_INLINE void widen_block(const hn_dtype t, const unsigned char *group, const int b, const int h, float *dst) {
    const __m256 d = load_half(group + 32 * b + 16 * h);
    const __m256 m = t == HN_Q4_1 ? load_half(group + 64 + 32 * b + 16 * h) : d;
    const unsigned char *codes = group + hn_group_head(t) + (t == HN_Q8_0 ? 512 : 256) * b + 32 * h;
    for (int r = 0; r < (t == HN_Q8_0 ? 8 : 4); r++) {
        const __m256i line = load_line(codes + 64 * r);
        HN_UNROLL for (int i = 0; i < 4; i++) {
            _mm256_store_ps(dst + (4 * r + i) * HN_STRIP + 8 * h, dequantise(t, line, 8 * i, d, m));
            if (t != HN_Q8_0) {
                _mm256_store_ps(dst + (16 + 4 * r + i) * HN_STRIP + 8 * h, dequantise(t, line, 8 * i + 4, d, m));
            }
        }
    }
}

HN_INLINE void widen_group(const hn_dtype t, const unsigned char *group, float *dst) {
    HN_UNROLL for (int b = 0; b < 2; b++) {
        HN_UNROLL for (int h = 0; h < 2; h++) widen_block(t, group, b, h, dst + HN_BLOCK * HN_STRIP * b);
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
        for (int i = 0; i < 2 * count; i++) _mm256_store_ps(scratch + 8 * i, load_half(half + 16 * i));
        break;
    case HN_BF16:
        for (int i = 0; i < 2 * count; i++) {
            __m256i v = _mm256_cvtepu16_epi32(_mm_load_si128((const __m128i *)(half + 16 * i)));
            _mm256_store_si256((__m256i *)(scratch + 8 * i), _mm256_slli_epi32(v, 16));
        }
        break;
    default: return (const float *)strip + (size_t)k * HN_STRIP;
    }
    return scratch;
}

/* c[S][T] continued with `count` inputs of S widened strips and T rows. */
HN_INLINE void tile_f32(const int T, const int S, const float *const *w, const float *x, size_t x_stride, int count,
                        float *c, size_t c_stride) {
    __m256 acc[12];
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int i = 0; i < 2 * T; i++) acc[2 * s * T + i] = _mm256_load_ps(c + c_stride * (size_t)s + 8 * i);
    }
    for (int k = 0; k < count; k++) {
        HN_UNROLL for (int s = 0; s < S; s++) {
            const __m256 w0 = _mm256_load_ps(w[s] + 16 * k), w1 = _mm256_load_ps(w[s] + 16 * k + 8);
            HN_UNROLL for (int i = 0; i < T; i++) {
                const __m256 a = _mm256_set1_ps(x[x_stride * (size_t)i + (size_t)k]);
                __m256 *sum = acc + 2 * (s * T + i);
                sum[0] = _mm256_fmadd_ps(w0, a, sum[0]);
                sum[1] = _mm256_fmadd_ps(w1, a, sum[1]);
            }
        }
    }
    HN_UNROLL for (int s = 0; s < S; s++) {
        HN_UNROLL for (int i = 0; i < 2 * T; i++) _mm256_store_ps(c + c_stride * (size_t)s + 8 * i, acc[2 * s * T + i]);
    }
}

typedef void float_fn(const float *const *w, const float *x, size_t x_stride, int count, float *c, size_t c_stride);
#define FLOAT_TILE(T, S)                                                                                              \
    static __attribute__((noinline)) void float_##T##x##S(const float *const *w, const float *x, size_t x_stride,     \
                                                          int count, float *c, size_t c_stride) {                     \
        tile_f32(T, S, w, x, x_stride, count, c, c_stride);                                                           \
    }
FLOAT_TILE(1, 1)
FLOAT_TILE(2, 1)
FLOAT_TILE(3, 1)
FLOAT_TILE(1, 2)
FLOAT_TILE(2, 2)
FLOAT_TILE(3, 2)
FLOAT_TILE(1, 4)
static float_fn *const float_tiles[3][FLOAT_ROWS + 1] = {{NULL, float_1x1, float_2x1, float_3x1},
                                                         {NULL, float_1x2, float_2x2, float_3x2},
                                                         {NULL, float_1x4, NULL, NULL}};

/* One widened chunk of all strips for `rows` rows: as many strips at once as there is a tile for. */
static void float_chunk(const float *const *w, int strips, int rows, const float *x, size_t x_stride, int count,
                        float *c, size_t c_stride) {
    for (int s = 0; s < strips;) {
        int wide = rows == 1 ? 2 : 1;
        while (s + (1 << wide) > strips) wide--;
        float_tiles[wide][rows](w + s, x, x_stride, count, c + c_stride * (size_t)s, c_stride);
        s += 1 << wide;
    }
}

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
            int rows = j->n * (part + 1) / parts - row;
            float_chunk(w, j->strips, rows, (const float *)j->x + x_stride * (size_t)row + k, x_stride, count,
                        j->c + 16 * row, c_stride);
            row += rows;
        }
    }
}

/* ---- epilogues ---------------------------------------------------------------------------------------------------- */

static void store(const float *c, int n, float *y, int ldy, int cols, bool add) {
    const __m256i lanes[2] = {hn_first_avx2(cols), hn_first_avx2(cols - 8)};
    for (int r = 0; r < n; r++, c += HN_STRIP, y += ldy) {
        HN_UNROLL for (int h = 0; h < 2; h++) {
            if (cols <= 8 * h) break;
            __m256 v = _mm256_load_ps(c + 8 * h);
            if (add) v = _mm256_add_ps(_mm256_maskload_ps(y + 8 * h, lanes[h]), v);
            _mm256_maskstore_ps(y + 8 * h, lanes[h], v);
        }
    }
}

static void store_glu(const float *gate, const float *up, int n, float *y, int ldy, int cols) {
    const __m256i lanes[2] = {hn_first_avx2(cols), hn_first_avx2(cols - 8)};
    for (int r = 0; r < n; r++, gate += HN_STRIP, up += HN_STRIP, y += ldy) {
        HN_UNROLL for (int h = 0; h < 2; h++) {
            if (cols <= 8 * h) break;
            const __m256 g = _mm256_load_ps(gate + 8 * h), minus = _mm256_xor_ps(g, _mm256_set1_ps(-0.0f));
            const __m256 silu = _mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0f), hn_exp_avx2(minus)));
            _mm256_maskstore_ps(y + 8 * h, lanes[h], _mm256_mul_ps(silu, _mm256_load_ps(up + 8 * h)));
        }
    }
}

#define LINEAR_TABLE hn_kernels_avx2_linear
#include "ops/linear_table_tmpl.h"
