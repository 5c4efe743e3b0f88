/* SPDX-License-Identifier: Apache-2.0 */
/* product_avx512bf16.c - a tile of 12 x 32 sums of pairs of bf16. */
#include <immintrin.h>

#include "ops/unroll.h"
#include "train/math/x86/product_pack_bf16.h"
#include "train/math/product/product_tile.h"

enum { ROWS = 12, COLS = 32 };

static void tile(int n, const void *a, const void *b, hn_tile_out out) {
    const int *x = a, *y = b; /* pairs */
    __m512 sum[ROWS][2];
    HN_UNROLL for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    for (int k = 0; k < n; k += 2, x += ROWS, y += COLS) {
        const __m512bh y0 = (__m512bh)_mm512_load_si512(y), y1 = (__m512bh)_mm512_load_si512(y + 16);
        HN_UNROLL for (int i = 0; i < ROWS; i++) {
            const __m512bh pair = (__m512bh)_mm512_set1_epi32(x[i]);
            sum[i][0] = _mm512_dpbf16_ps(sum[i][0], pair, y0);
            sum[i][1] = _mm512_dpbf16_ps(sum[i][1], pair, y1);
        }
    }
    _Alignas(64) float square[ROWS][COLS];
    HN_UNROLL for (int i = 0; i < ROWS; i++) {
        _mm512_store_ps(square[i], sum[i][0]);
        _mm512_store_ps(square[i] + 16, sum[i][1]);
    }
    hn_tile_write(square[0], COLS, out);
}

const hn_product_kernel hn_product_avx512bf16 = {
    HN_ISA_AVX512BF16, HN_PRODUCTS_BF16, ROWS, COLS, 2, 2, 512, 2, hn_pack_bf16, tile};
