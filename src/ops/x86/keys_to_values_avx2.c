/* SPDX-License-Identifier: Apache-2.0 */
/* keys_to_values_avx2.c - keys of 16 positions in the layout of values (ops/kv.h): rows and columns of blocks change places. */
#include <immintrin.h>

#include "ops/kernels.h"
#include "ops/unroll.h"

/* Two rows of two dims, of four pairs of rows: [row][dim] to [dim][row]. */
HN_INLINE __m256i load_pairs(const unsigned char *k) {
    const __m256i order = _mm256_set_epi8(15, 14, 11, 10, 13, 12, 9, 8, 7, 6, 3, 2, 5, 4, 1, 0, 15, 14, 11, 10, 13, 12, 9, 8, 7, 6, 3, 2,
                                          5, 4, 1, 0);
    return _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)(const void *)k), order);
}

HN_INLINE void put(unsigned char *to, __m256i x) {
    _mm256_storeu_si256((__m256i *)(void *)to, x);
}

/* Four pairs of dims and four pairs of rows. */
HN_INLINE void block_of_four(const unsigned char *k, size_t step, unsigned char *v, size_t row) {
    const __m256i a = load_pairs(k), b = load_pairs(k + step), c = load_pairs(k + 2 * step), d = load_pairs(k + 3 * step);
    const __m256i even_ab = _mm256_unpacklo_epi64(a, b), odd_ab = _mm256_unpackhi_epi64(a, b), even_cd = _mm256_unpacklo_epi64(c, d),
                  odd_cd = _mm256_unpackhi_epi64(c, d);
    put(v, _mm256_permute2x128_si256(even_ab, even_cd, 0x20));
    put(v + row, _mm256_permute2x128_si256(odd_ab, odd_cd, 0x20));
    put(v + 2 * row, _mm256_permute2x128_si256(even_ab, even_cd, 0x31));
    put(v + 3 * row, _mm256_permute2x128_si256(odd_ab, odd_cd, 0x31));
}

static void keys_to_values_bf16(const unsigned char *k, size_t step, int dim, unsigned char *v) {
    const size_t row = 4 * (size_t)dim;
    int j = 0;
    for (; j + 4 <= dim / 2; j += 4)
        for (int half = 0; half < 2; half++) block_of_four(k + step * (size_t)j + half * 32, step, v + 4 * row * (size_t)half + 8 * j, row);
    hn_keys_to_values_bf16(k, step, dim, j, v);
}

/* Bytes of 16 dims and 16 rows: four times the first half of the vectors is mixed with the second one. */
HN_INLINE void block_of_bytes(const unsigned char *k, size_t step, unsigned char *v, size_t row) {
    __m128i x[16], y[16];
    for (int i = 0; i < 16; i++) x[i] = _mm_loadu_si128((const __m128i *)(const void *)(k + step * (size_t)i));
    for (int times = 0; times < 4; times++) {
        for (int i = 0; i < 8; i++) {
            y[2 * i] = _mm_unpacklo_epi8(x[i], x[i + 8]);
            y[2 * i + 1] = _mm_unpackhi_epi8(x[i], x[i + 8]);
        }
        for (int i = 0; i < 16; i++) x[i] = y[i];
    }
    for (int i = 0; i < 16; i++) _mm_storeu_si128((__m128i *)(void *)(v + row * (size_t)i), x[i]);
}

static void keys_to_values_q8(const unsigned char *k, size_t step, int dim, unsigned char *v) {
    for (int d = 0; d < dim; d += 16) block_of_bytes(k + step * (size_t)d, step, v + d, (size_t)dim);
}

void hn_kernels_avx2_keys(struct hn_kernels *k) {
    k->keys_to_values_bf16 = keys_to_values_bf16;
    k->keys_to_values_q8 = keys_to_values_q8;
}
