/* SPDX-License-Identifier: Apache-2.0 */
/* linear_avx512bf16.c - products of bf16 rows and bf16 weights by vdpbf16ps, which is exactly the step that
 * ref/linear_ref.c defines: the odd product of a pair first, each sum rounded, no denormals. The rest of this level is
 * AVX-512's.
 *
 * A lane is an output, a line of the strip a pair of inputs, multiplied by each row's pair as it is broadcast from memory.
 * The multiplier needs a cycle per line and row, and memory four or more per line: a strip is read once for up to 12 rows.
 */
#include <immintrin.h>

#include "ops/kernels.h"
#include "ops/unroll.h"

enum {
    TILE_ROWS = 12,    /* most rows of a tile: with 16, the addresses do not fit the registers, and it takes 8 % longer */
    CHUNK_LINES = 128, /* lines of a strip that all tiles of rows use before the next */
    AHEAD = 8192       /* distance in bytes of a tile's prefetches along the strip, into the L2 cache */
};

/* sum + the pairs of a line times a row's pair. Inline assembly because gcc would load the row's pair into a register first. */
HN_INLINE __m512 add_pair(__m512 sum, __m512i line, const unsigned char *x) {
    const uint16_t (*pair)[2] = (const uint16_t (*)[2])x;
    __asm__ volatile("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(line), "m"(*pair));
    return sum;
}

/* Some lines of a strip for the rows of a tile: c[T][16] from zero if fresh, else continued. */
typedef void tile_fn(const unsigned char *w, const unsigned char *x, size_t x_stride, int lines, bool fresh, float *c);

HN_INLINE void run_tile(const int T, const unsigned char *w, const unsigned char *x, size_t x_stride, int lines, bool fresh,
                        float *c) {
    __m512 acc[TILE_ROWS];
    HN_UNROLL for (int k = 0; k < T; k++) acc[k] = fresh ? _mm512_setzero_ps() : _mm512_load_ps(c + HN_STRIP * k);
    for (int i = 0; i < lines; i++, w += 64, x += 4) {
        const __m512i line = _mm512_load_si512(w);
        __asm__ volatile("prefetcht1 %0" : : "m"(*(const char *)(w + AHEAD)));
        HN_UNROLL for (int k = 0; k < T; k++) acc[k] = add_pair(acc[k], line, x + x_stride * (size_t)k);
    }
    HN_UNROLL for (int k = 0; k < T; k++) _mm512_store_ps(c + HN_STRIP * k, acc[k]);
}

#define TILE(T)                                                                                                       \
    static __attribute__((noinline)) void tile_##T(const unsigned char *w, const unsigned char *x, size_t x_stride,   \
                                                   int lines, bool fresh, float *c) {                                 \
        run_tile(T, w, x, x_stride, lines, fresh, c);                                                                 \
    }
#define ALL_TILES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
ALL_TILES(TILE)
#define NAME(T) , tile_##T
static tile_fn *const tiles[TILE_ROWS + 1] = {NULL ALL_TILES(NAME)};

static void strips_bf16(const hn_strips_job *j) {
    const int lines = (j->in + 1) / 2, parts = (j->n + TILE_ROWS - 1) / TILE_ROWS, step = parts > 1 ? CHUNK_LINES : lines;
    for (int s = 0; s < j->strips; s++) {
        for (int i = 0; i < lines; i += step) {
            for (int part = 0, row = 0; part < parts; part++) {
                const int rows = j->n * (part + 1) / parts - row;
                tiles[rows](j->w[s] + 64 * (size_t)i, j->x + j->x_stride * (size_t)row + 4 * (size_t)i, j->x_stride,
                            lines - i < step ? lines - i : step, i == 0,
                            j->c + ((size_t)s * (size_t)j->n + (size_t)row) * HN_STRIP);
                row += rows;
            }
        }
    }
}

void hn_kernels_avx512bf16_linear(struct hn_kernels *k) {
    k->linear_bf16 = strips_bf16;
}
