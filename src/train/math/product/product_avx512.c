/* SPDX-License-Identifier: Apache-2.0 */
/* product_avx512.c - a tile of 12 x 32 sums in 24 of 32 registers. */
#include <immintrin.h>

#include "ops/unroll.h"
#include "train/math/product/product_tile.h"

enum { ROWS = 12, COLS = 32 };

static void tile(int n, const void *a, const void *b, hn_tile_out out) {
    const float *x = a, *y = b;
    __m512 sum[ROWS][2];
    HN_UNROLL for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    for (int k = 0; k < n; k++, x += ROWS, y += COLS) {
        const __m512 y0 = _mm512_load_ps(y), y1 = _mm512_load_ps(y + 16);
        HN_UNROLL for (int i = 0; i < ROWS; i++) {
            const __m512 one = _mm512_set1_ps(x[i]);
            sum[i][0] = _mm512_fmadd_ps(one, y0, sum[i][0]);
            sum[i][1] = _mm512_fmadd_ps(one, y1, sum[i][1]);
        }
    }
    _Alignas(64) float square[ROWS][COLS];
    HN_UNROLL for (int i = 0; i < ROWS; i++) {
        _mm512_store_ps(square[i], sum[i][0]);
        _mm512_store_ps(square[i] + 16, sum[i][1]);
    }
    hn_tile_write(square[0], COLS, out);
}

const hn_product_kernel hn_product_avx512 = {HN_ISA_AVX512, HN_PRODUCTS_F32, ROWS,          COLS, 1, 1,
                                             256,           sizeof(float),   hn_pack_plain, tile};
