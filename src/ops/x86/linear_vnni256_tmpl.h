/* SPDX-License-Identifier: Apache-2.0 */
/* linear_vnni256_tmpl.h - products of quantised rows with vpdpbusd on vectors of 256 bits: four unsigned weight codes of
 * each output times four signed codes of a row, summed in 32 bits at once. Results: ref/linear_ref.c, bit for bit.
 *
 * All but the sums of integers is shared with AVX2 (linear_256_tmpl.h). Codes are used unchanged; a sum starts at minus
 * their offset times the row's sum of codes, so that it is exact.
 *
 * A file that includes this defines LINEAR_DOT, the intrinsic in its VEX or EVEX form, and LINEAR_TABLE.
 */
#include "ops/x86/linear_256_tmpl.h"

/* The offset that makes all values of codes unsigned. */
HN_INLINE int unsigned_by(const hn_dtype t) { return hn_has_large_values(t) ? 128 : hn_offset_of(t); }

/* The initial value of the sum of block b, or of its part p. */
HN_INLINE __m256i start_sum(const hn_dtype t, const hn_q8_group *x, const hn_q8_parts *parts, const int b, const int p) {
    const __m256i n8 = _mm256_set1_epi32(x->n8[b]);
    switch (unsigned_by(t)) {
    case 0: return _mm256_setzero_si256();
    case 4: return _mm256_set1_epi32(parts->n4[2 * b + p]);
    case 8: return n8;
    case 12: return _mm256_add_epi32(n8, _mm256_srai_epi32(n8, 1));
    case 16: return _mm256_slli_epi32(n8, 1);
    case 32: return _mm256_set1_epi32(parts->n32[2 * b + p]);
    default: return _mm256_set1_epi32(x->n128[b]);
    }
}

/* The sum of part p times its scale. */
HN_INLINE __m256i scaled_part(const hn_dtype t, __m256i sum, __m256i scales, const int p) {
    if (!hn_parts_fit_words(t)) return _mm256_mullo_epi32(sum, hn_one_of_pair_avx2(scales, p));
    const __m256i word = p ? _mm256_srli_epi32(scales, 16) : _mm256_and_si256(scales, _mm256_set1_epi32(0xffff));
    return _mm256_madd_epi16(sum, word);
}

HN_INLINE void block_sums(const hn_dtype t, const int T, const int H, const unsigned char *codes, const tile_rows *rows,
                          const int b, const hn_scales *scales, __m256i *sum) {
    const int lines = hn_has_parts(t) ? 4 : 8; /* of one sum */
    __m256i some[2 * TILE_ROWS], w[2];
    HN_UNROLL for (int r = 0; r < 8; r++) {
        HN_UNROLL for (int h = 0; h < H; h++) w[h] = hn_values_avx2(t, codes + 32 * h, r, unsigned_by(t));
        HN_UNROLL for (int i = 0; i < T; i++) {
            const __m256i quad = quad_at(rows->x[i], b, r);
            HN_UNROLL for (int h = 0; h < H; h++) {
                const int k = H * i + h;
                if (r % lines == 0) some[k] = start_sum(t, rows->x[i], rows->parts[i], b, r / lines);
                some[k] = LINEAR_DOT(some[k], w[h], quad);
                if ((r + 1) % lines != 0) continue;
                const __m256i part = hn_has_parts(t) ? scaled_part(t, some[k], scales[h].parts, r / lines) : some[k];
                sum[k] = r < lines ? part : _mm256_add_epi32(sum[k], part);
            }
        }
    }
}

#define LINEAR_ONLY_Q8
#include "ops/linear_table_tmpl.h"
