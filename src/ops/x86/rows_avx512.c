/* SPDX-License-Identifier: Apache-2.0 */
/* rows_avx512.c - the row kernels with AVX-512. Results: ref/norm.c, bit for bit. */
#include <immintrin.h>
#include <math.h>

#include "ops/kernels.h"
#include "ops/x86/math_avx512.h"
#include "ops/unroll.h"

/* The first min(16, left) lanes. */
HN_INLINE __mmask16 lanes_of(int left) { return left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1); }

static float inverse_rms(const float *x, int in, float eps) {
    __m512 sum = _mm512_setzero_ps();
    for (int i = 0; i < in; i += 16) {
        const __m512 v = _mm512_maskz_loadu_ps(lanes_of(in - i), x + i);
        sum = _mm512_fmadd_ps(v, v, sum);
    }
    return 1.0f / sqrtf(hn_sum_avx512(sum) / (float)in + eps);
}

static void normalise(const float *x, const float *w, int count, float r, float *y) {
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), _mm512_set1_ps(r));
        _mm512_mask_storeu_ps(y + i, lanes, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(lanes, w + i)));
    }
}

/* The sums of a and of b, in lanes 0 and 1. */
HN_INLINE __m128i sums_of(__m512i a, __m512i b) {
    const __m256i a8 = _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
    const __m256i b8 = _mm256_add_epi32(_mm512_castsi512_si256(b), _mm512_extracti64x4_epi64(b, 1));
    const __m256i pairs = _mm256_hadd_epi32(a8, b8);
    const __m128i quads = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    return _mm_hadd_epi32(quads, quads);
}

/* 32 values, those beyond `count` zero. */
HN_INLINE void quantise_block(const float *x, int count, hn_q8_group *g, hn_q8_parts *parts, int b) {
    const __m512 lo = _mm512_maskz_loadu_ps(lanes_of(count), x);
    const __m512 hi = _mm512_maskz_loadu_ps(count > 16 ? lanes_of(count - 16) : 0, count > 16 ? x + 16 : x);
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    const __m512i top = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(lo), magnitude),
                                         _mm512_and_si512(_mm512_castps_si512(hi), magnitude));
    const union { uint32_t u; float f; } amax = {_mm512_reduce_max_epu32(top)};
    const bool finite = amax.u < 0x7f800000u, tiny = amax.f < 0x1p-100f;
    const float inverse = finite && !tiny ? 127.0f / amax.f : 0.0f;
    const __mmask16 any = inverse > 0 ? 0xffff : 0;
    const __m512 scale = _mm512_set1_ps(inverse);
    const __m512i q_lo = _mm512_maskz_cvtps_epi32(any, _mm512_mul_ps(lo, scale));
    const __m512i q_hi = _mm512_maskz_cvtps_epi32(any, _mm512_mul_ps(hi, scale));
    _mm_storeu_si128((__m128i *)(g->q + HN_BLOCK * b), _mm512_cvtepi32_epi8(q_lo));
    _mm_storeu_si128((__m128i *)(g->q + HN_BLOCK * b + 16), _mm512_cvtepi32_epi8(q_hi));
    const __m128i minus = _mm_sub_epi32(_mm_setzero_si128(), sums_of(q_lo, q_hi));
    _mm_storel_epi64((__m128i *)(parts->n4 + 2 * b), _mm_slli_epi32(minus, 2));
    _mm_storel_epi64((__m128i *)(parts->n32 + 2 * b), _mm_slli_epi32(minus, 5));
    const int32_t sum = -(_mm_cvtsi128_si32(minus) + _mm_extract_epi32(minus, 1));
    g->d[b] = !finite ? NAN : tiny ? 0.0f : amax.f / 127.0f;
    g->ds[b] = g->d[b] * (float)sum;
    g->n8[b] = -8 * sum;
    g->n128[b] = -128 * sum;
}

static void quantise(const float *x, int count, hn_q8_group *out, hn_q8_parts *parts) {
    for (; count > 0; count -= HN_GROUP, x += HN_GROUP, out++, parts++) {
        quantise_block(x, count, out, parts, 0);
        quantise_block(count > HN_BLOCK ? x + HN_BLOCK : x, count > HN_BLOCK ? count - HN_BLOCK : 0, out, parts, 1);
    }
}

static void rope_halves(float *x, const float *cs, int half) {
    for (int i = 0; i < half; i += 16) {
        const __mmask16 lanes = lanes_of(half - i);
        const __m512 c = _mm512_maskz_loadu_ps(lanes, cs + i), s = _mm512_maskz_loadu_ps(lanes, cs + half + i);
        const __m512 a = _mm512_maskz_loadu_ps(lanes, x + i), b = _mm512_maskz_loadu_ps(lanes, x + half + i);
        _mm512_mask_storeu_ps(x + i, lanes, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + half + i, lanes, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
    }
}

static void rope_pairs(float *x, const float *cs, int half) {
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    for (int i = 0; i < half; i += 8) {
        const __mmask16 pairs = half - i >= 8 ? (__mmask16)0xff : (__mmask16)((1u << (half - i)) - 1);
        const __mmask16 lanes = lanes_of(2 * (half - i));
        const __m512 c = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(pairs, cs + i));
        const __m512 s = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(pairs, cs + half + i));
        const __m512 v = _mm512_maskz_loadu_ps(lanes, x + 2 * i);
        const __m512 other = _mm512_permute_ps(v, 0xb1);
        /* even lanes v*c - other*s, odd lanes v*c + other*s */
        _mm512_mask_storeu_ps(x + 2 * i, lanes, _mm512_fmaddsub_ps(v, c, _mm512_mul_ps(other, s)));
    }
}

static void rope(float *x, const float *cs, int dims, bool interleaved) {
    if (interleaved) {
        rope_pairs(x, cs, dims / 2);
    } else {
        rope_halves(x, cs, dims / 2);
    }
}

/* Rounds to nearest even; a NaN keeps its upper bits and becomes quiet. */
static void round_bf16(const float *x, int count, uint16_t *y) {
    for (int i = 0; i < count; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(lanes_of(count - i), x + i);
        const __m512i sign = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MIN));
        const __mmask16 tiny = _mm512_cmp_ps_mask(_mm512_abs_ps(v), _mm512_set1_ps(0x1p-126f), _CMP_LT_OQ);
        v = _mm512_mask_mov_ps(v, tiny, _mm512_castsi512_ps(sign));
        _mm256_mask_storeu_epi16(y + i, lanes_of((count + 1) / 2 * 2 - i), _mm512_cvtepi32_epi16(hn_bf16_avx512(v)));
    }
}

static void to_cache(hn_dtype t, const float *x, int count, void *dst) {
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
        if (t == HN_F32) {
            _mm512_mask_storeu_ps((float *)dst + i, lanes, v);
        } else {
            const __m256i h = t == HN_F16 ? _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
                                          : _mm512_cvtepi32_epi16(hn_bf16_avx512(v));
            _mm256_mask_storeu_epi16((uint16_t *)dst + i, lanes, h);
        }
    }
}

static unsigned at_least(const float *c, int n, int cols, const float *least, uint16_t *lanes) {
    unsigned all = 0;
    for (int r = 0; r < n; r++, c += HN_STRIP) {
        lanes[r] = (uint16_t)_mm512_mask_cmp_ps_mask(lanes_of(cols), _mm512_load_ps(c), _mm512_set1_ps(least[r]), _CMP_GE_OQ);
        all |= lanes[r];
    }
    return all;
}

static void add(float *y, const float *x, int count) {
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, y + i), _mm512_maskz_loadu_ps(lanes, x + i));
        _mm512_mask_storeu_ps(y + i, lanes, sum);
    }
}

static void geglu(float *gate, const float *up, int count) {
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 x = _mm512_maskz_loadu_ps(lanes, gate + i);
        const __m512 cube = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(HN_GELU_CUBE), x), x);
        const __m512 t = _mm512_mul_ps(_mm512_set1_ps(HN_GELU_T), _mm512_fmadd_ps(cube, x, x));
        const __m512 gelu = _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), hn_exp_avx512(t)));
        _mm512_mask_storeu_ps(gate + i, lanes, _mm512_mul_ps(gelu, _mm512_maskz_loadu_ps(lanes, up + i)));
    }
}

static void exps(float *x, int count) {
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        _mm512_mask_storeu_ps(x + i, lanes, hn_exp_avx512(_mm512_maskz_loadu_ps(lanes, x + i)));
    }
}

static float exp_sum(const float *x, int count, float most) {
    const __m512 m = _mm512_set1_ps(most);
    __m512 sum = _mm512_setzero_ps();
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
        sum = _mm512_mask_add_ps(sum, _mm512_mask_cmp_ps_mask(lanes, v, m, _CMP_LE_OQ), sum, hn_exp_avx512(_mm512_sub_ps(v, m)));
    }
    return hn_sum_avx512(sum);
}

static float exp_moment(const float *x, int count, float most) {
    const __m512 m = _mm512_set1_ps(most), low = _mm512_set1_ps(HN_EXP_LO);
    __m512 sum = _mm512_setzero_ps();
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 d = _mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, x + i), m);
        const __mmask16 below = _mm512_mask_cmp_ps_mask(lanes, d, _mm512_setzero_ps(), _CMP_LE_OQ);
        sum = _mm512_mask3_fmadd_ps(hn_exp_avx512(d), d, sum, _mm512_mask_cmp_ps_mask(below, d, low, _CMP_GE_OQ));
    }
    return hn_sum_avx512(sum);
}

static void softcap(float *x, int count, float cap) {
    const __m512 c = _mm512_set1_ps(cap);
    for (int i = 0; i < count; i += 16) {
        const __mmask16 lanes = lanes_of(count - i);
        const __m512 t = _mm512_div_ps(_mm512_maskz_loadu_ps(lanes, x + i), c);
        _mm512_mask_storeu_ps(x + i, lanes, _mm512_mul_ps(c, hn_tanh_avx512(t)));
    }
}

#define ROWS_TABLE hn_kernels_avx512_rows
#include "ops/rows_table_tmpl.h"
