/* SPDX-License-Identifier: Apache-2.0 */
/* product_avx2.c - a tile of 6 x 16 sums in twelve registers. */
#include <immintrin.h>

#include "ops/unroll.h"
#include "train/math/product/product_tile.h"

enum { ROWS = 6, COLS = 16 };

static void tile(int n, const void *a, const void *b, hn_tile_out out) {
    const float *x = a, *y = b;
    __m256 sum[ROWS][2];
    HN_UNROLL for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    for (int k = 0; k < n; k++, x += ROWS, y += COLS) {
        const __m256 y0 = _mm256_load_ps(y), y1 = _mm256_load_ps(y + 8);
        HN_UNROLL for (int i = 0; i < ROWS; i++) {
            const __m256 one = _mm256_broadcast_ss(x + i);
            sum[i][0] = _mm256_fmadd_ps(one, y0, sum[i][0]);
            sum[i][1] = _mm256_fmadd_ps(one, y1, sum[i][1]);
        }
    }
    _Alignas(32) float square[ROWS][COLS];
    HN_UNROLL for (int i = 0; i < ROWS; i++) {
        _mm256_store_ps(square[i], sum[i][0]);
        _mm256_store_ps(square[i] + 8, sum[i][1]);
    }
    hn_tile_write(square[0], COLS, out);
}

const hn_product_kernel hn_product_avx2 = {HN_ISA_AVX2, HN_PRODUCTS_F32, ROWS,          COLS, 1, 1,
                                           256,         sizeof(float),   hn_pack_plain, tile};
