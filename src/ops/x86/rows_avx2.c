/* SPDX-License-Identifier: Apache-2.0 */
/* rows_avx2.c - the row kernels with AVX2, FMA and F16C. Results: ref/norm.c, bit for bit. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/x86/math_avx2.h"
#include "ops/unroll.h"

static float inverse_rms(const float *x, int in, float eps) {
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    int i = 0;
    for (; i + 16 <= in; i += 16) {
        HN_UNROLL for (int h = 0; h < 2; h++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * h);
            sum[h] = _mm256_fmadd_ps(v, v, sum[h]);
        }
    }
    HN_UNROLL for (int h = 0; h < 2; h++) {
        if (i + 8 * h >= in) break;
        const __m256 v = hn_load_avx2(x + i + 8 * h, in - i - 8 * h);
        sum[h] = _mm256_fmadd_ps(v, v, sum[h]);
    }
    return 1.0f / sqrtf(hn_sum_avx2(sum[0], sum[1]) / (float)in + eps);
}

static void normalise(const float *x, const float *w, int count, float r, float *y) {
    for (int i = 0; i < count; i += 8) {
        const __m256 v = _mm256_mul_ps(hn_load_avx2(x + i, count - i), _mm256_set1_ps(r));
        hn_store_avx2(y + i, count - i, _mm256_mul_ps(v, hn_load_avx2(w + i, count - i)));
    }
}

static void add(float *y, const float *x, int count) {
    for (int i = 0; i < count; i += 8) {
        const __m256 sum = _mm256_add_ps(hn_load_avx2(y + i, count - i), hn_load_avx2(x + i, count - i));
        hn_store_avx2(y + i, count - i, sum);
    }
}

static void geglu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 8) {
        const __m256 x = hn_load_avx2(gate + i, count - i);
        const __m256 cube = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(HN_GELU_CUBE), x), x);
        const __m256 t = _mm256_mul_ps(_mm256_set1_ps(HN_GELU_T), _mm256_fmadd_ps(cube, x, x));
        const __m256 gelu = _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), hn_exp_avx2(t)));
        hn_store_avx2(gate + i, count - i, _mm256_mul_ps(gelu, hn_load_avx2(up + i, count - i)));
    }
}

static void exps(float *x, int count) {
    for (int i = 0; i < count; i += 8) hn_store_avx2(x + i, count - i, hn_exp_avx2(hn_load_avx2(x + i, count - i)));
}

static float exp_sum(const float *x, int count, float most) {
    const __m256 m = _mm256_set1_ps(most);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int i = 0; i < count; i += 8) {
        const __m256 v = hn_load_avx2(x + i, count - i), below = _mm256_cmp_ps(v, m, _CMP_LE_OQ);
        const __m256 lanes = _mm256_and_ps(below, _mm256_castsi256_ps(hn_first_avx2(count - i)));
        sum[i / 8 % 2] = _mm256_add_ps(sum[i / 8 % 2], _mm256_and_ps(hn_exp_avx2(_mm256_sub_ps(v, m)), lanes));
    }
    return hn_sum_avx2(sum[0], sum[1]);
}

static float exp_moment(const float *x, int count, float most) {
    const __m256 m = _mm256_set1_ps(most), low = _mm256_set1_ps(HN_EXP_LO);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int i = 0; i < count; i += 8) {
        const __m256 d = _mm256_sub_ps(hn_load_avx2(x + i, count - i), m);
        const __m256 within = _mm256_and_ps(_mm256_cmp_ps(d, low, _CMP_GE_OQ), _mm256_cmp_ps(d, _mm256_setzero_ps(), _CMP_LE_OQ));
        const __m256 lanes = _mm256_and_ps(within, _mm256_castsi256_ps(hn_first_avx2(count - i)));
        sum[i / 8 % 2] = _mm256_fmadd_ps(_mm256_and_ps(hn_exp_avx2(d), lanes), _mm256_and_ps(d, lanes), sum[i / 8 % 2]);
    }
    return hn_sum_avx2(sum[0], sum[1]);
}

static void softcap(float *x, int count, float cap) {
    const __m256 c = _mm256_set1_ps(cap);
    for (int i = 0; i < count; i += 8) {
        const __m256 t = _mm256_div_ps(hn_load_avx2(x + i, count - i), c);
        hn_store_avx2(x + i, count - i, _mm256_mul_ps(c, hn_tanh_avx2(t)));
    }
}

HN_INLINE uint32_t max_u32(__m256i v) {
    __m128i a = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    a = _mm_max_epu32(a, _mm_shuffle_epi32(a, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(a, _mm_shuffle_epi32(a, 0xb1)));
}

/* The sums of the lanes of a, and of b. */
HN_INLINE void sum_i32(__m256i a, __m256i b, int32_t *sum) {
    __m256i v = _mm256_hadd_epi32(a, b); /* in each 128-bit half two lanes from a, two from b */
    v = _mm256_hadd_epi32(v, v);
    const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    sum[0] = _mm_cvtsi128_si32(both);
    sum[1] = _mm_extract_epi32(both, 1);
}

/* 32 values */
static void quantise_block(const float *x, hn_q8_group *g, hn_q8_parts *parts, int b) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i top = _mm256_setzero_si256(), q[4];
    HN_UNROLL for (int i = 0; i < 4; i++) {
        top = _mm256_max_epu32(top, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + 8 * i)), magnitude));
    }
    const union { uint32_t u; float f; } amax = {max_u32(top)};
    const bool finite = amax.u < 0x7f800000u, tiny = amax.f < 0x1p-100f;
    const float inverse = finite && !tiny ? 127.0f / amax.f : 0.0f;
    const __m256i any = _mm256_set1_epi32(inverse > 0 ? -1 : 0);
    HN_UNROLL for (int i = 0; i < 4; i++) {
        q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(inverse)));
        q[i] = _mm256_and_si256(q[i], any);
    }
    int32_t part[2];
    sum_i32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]), part);
    /* packs works inside 128-bit halves: the order of dwords is 0 4 1 5 2 6 3 7 */
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *)(g->q + HN_BLOCK * b), _mm256_permutevar8x32_epi32(packed, order));
    g->d[b] = !finite ? NAN : tiny ? 0.0f : amax.f / 127.0f;
    hn_q8_set_sums(g, parts, b, part);
}

static void quantise_group(const float *x, hn_q8_group *g, hn_q8_parts *parts) {
    quantise_block(x, g, parts, 0);
    quantise_block(x + HN_BLOCK, g, parts, 1);
}

static void quantise(const float *x, int count, hn_q8_group *out, hn_q8_parts *parts) {
    for (; count >= HN_GROUP; count -= HN_GROUP, x += HN_GROUP) quantise_group(x, out++, parts++);
    if (count > 0) { /* zeros beyond the end have no effect */
        float last[HN_GROUP] = {0};
        memcpy(last, x, (size_t)count * sizeof *x);
        quantise_group(last, out, parts);
    }
}

static void rope_halves(float *x, const float *cs, int half) {
    for (int i = 0; i < half; i += 8) {
        const __m256 c = hn_load_avx2(cs + i, half - i), s = hn_load_avx2(cs + half + i, half - i);
        const __m256 a = hn_load_avx2(x + i, half - i), b = hn_load_avx2(x + half + i, half - i);
        hn_store_avx2(x + i, half - i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        hn_store_avx2(x + half + i, half - i, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
    }
}

static void rope_pairs(float *x, const float *cs, int half) {
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    for (int i = 0; i < half; i += 4) {
        const __m256i pairs = hn_first_avx2(half - i < 4 ? half - i : 4);
        const __m256 c = _mm256_permutevar8x32_ps(_mm256_maskload_ps(cs + i, pairs), twice);
        const __m256 s = _mm256_permutevar8x32_ps(_mm256_maskload_ps(cs + half + i, pairs), twice);
        const __m256 v = hn_load_avx2(x + 2 * i, 2 * (half - i));
        const __m256 other = _mm256_permute_ps(v, 0xb1);
        /* even lanes v*c - other*s, odd lanes v*c + other*s */
        hn_store_avx2(x + 2 * i, 2 * (half - i), _mm256_fmaddsub_ps(v, c, _mm256_mul_ps(other, s)));
    }
}

static void rope(float *x, const float *cs, int dims, bool interleaved) {
    if (interleaved) {
        rope_pairs(x, cs, dims / 2);
    } else {
        rope_halves(x, cs, dims / 2);
    }
}

HN_INLINE __m128i to_half(hn_dtype t, __m256 v) {
    if (t == HN_F16) return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256i r = hn_bf16_avx2(v);
    return _mm_packus_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}

HN_INLINE __m128i to_bf16_flushed(__m256 v) {
    const __m256 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f)), size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
    return to_half(HN_BF16, _mm256_blendv_ps(v, sign, _mm256_cmp_ps(size, _mm256_set1_ps(0x1p-126f), _CMP_LT_OQ)));
}

static void round_bf16(const float *x, int count, uint16_t *y) {
    int i = 0;
    for (; i + 8 <= count; i += 8) _mm_storeu_si128((__m128i *)(y + i), to_bf16_flushed(_mm256_loadu_ps(x + i)));
    if (i < count) {
        uint16_t last[8];
        _mm_storeu_si128((__m128i *)last, to_bf16_flushed(_mm256_maskload_ps(x + i, hn_first_avx2(count - i))));
        memcpy(y + i, last, (size_t)((count + 1) / 2 * 2 - i) * sizeof *y);
    }
}

static void to_cache(hn_dtype t, const float *x, int count, void *dst) {
    if (t == HN_F32) {
        memcpy(dst, x, (size_t)count * sizeof *x);
        return;
    }
    uint16_t *half = dst;
    int i = 0;
    for (; i + 8 <= count; i += 8) _mm_storeu_si128((__m128i *)(half + i), to_half(t, _mm256_loadu_ps(x + i)));
    if (i < count) {
        uint16_t last[8];
        _mm_storeu_si128((__m128i *)last, to_half(t, _mm256_maskload_ps(x + i, hn_first_avx2(count - i))));
        memcpy(half + i, last, (size_t)(count - i) * sizeof *half);
    }
}

static unsigned at_least(const float *c, int n, int cols, const float *least, uint16_t *lanes) {
    unsigned all = 0;
    for (int r = 0; r < n; r++, c += HN_STRIP) {
        const __m256 bound = _mm256_set1_ps(least[r]);
        const int low = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_load_ps(c), bound, _CMP_GE_OQ));
        const int high = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_load_ps(c + 8), bound, _CMP_GE_OQ));
        lanes[r] = (uint16_t)((low | high << 8) & ((1 << cols) - 1));
        all |= lanes[r];
    }
    return all;
}

#define ROWS_TABLE hn_kernels_avx2_rows
#include "ops/rows_table_tmpl.h"
