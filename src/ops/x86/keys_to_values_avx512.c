/* SPDX-License-Identifier: Apache-2.0 */
/* keys_to_values_avx512.c - keys of 16 positions in the layout of values: eight pairs of dims and eight pairs of rows at once. */
#include <immintrin.h>

#include "ops/kernels.h"
#include "ops/unroll.h"

/* Two rows of two dims, of eight pairs of rows: [row][dim] to [dim][row]. */
HN_INLINE __m512i load_pairs(const unsigned char *k) {
    const __m512i order = _mm512_broadcast_i32x4(_mm_set_epi8(15, 14, 11, 10, 13, 12, 9, 8, 7, 6, 3, 2, 5, 4, 1, 0));
    return _mm512_shuffle_epi8(_mm512_loadu_si512(k), order);
}

/* Pairs of rows 2 i + odd from every second quarter of the eight dims. */
HN_INLINE void put_pairs(const __m512i quarter[4], unsigned char *v, size_t row) {
    const __m512i a = _mm512_shuffle_i64x2(quarter[0], quarter[1], 0x88), b = _mm512_shuffle_i64x2(quarter[2], quarter[3], 0x88),
                  c = _mm512_shuffle_i64x2(quarter[0], quarter[1], 0xdd), d = _mm512_shuffle_i64x2(quarter[2], quarter[3], 0xdd);
    _mm512_storeu_si512(v, _mm512_shuffle_i64x2(a, b, 0x88));
    _mm512_storeu_si512(v + 2 * row, _mm512_shuffle_i64x2(c, d, 0x88));
    _mm512_storeu_si512(v + 4 * row, _mm512_shuffle_i64x2(a, b, 0xdd));
    _mm512_storeu_si512(v + 6 * row, _mm512_shuffle_i64x2(c, d, 0xdd));
}

static void keys_to_values_bf16(const unsigned char *k, size_t step, int dim, unsigned char *v) {
    const size_t row = 4 * (size_t)dim;
    int j = 0;
    for (; j + 8 <= dim / 2; j += 8) {
        __m512i even[4], odd[4];
        for (int i = 0; i < 4; i++) {
            const __m512i a = load_pairs(k + step * (size_t)(j + 2 * i)), b = load_pairs(k + step * (size_t)(j + 2 * i + 1));
            even[i] = _mm512_unpacklo_epi64(a, b);
            odd[i] = _mm512_unpackhi_epi64(a, b);
        }
        put_pairs(even, v + 8 * j, row);
        put_pairs(odd, v + 8 * j + row, row);
    }
    hn_keys_to_values_bf16(k, step, dim, j, v);
}

void hn_kernels_avx512_keys(struct hn_kernels *k) {
    k->keys_to_values_bf16 = keys_to_values_bf16;
}
