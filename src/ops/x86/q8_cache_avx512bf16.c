/* SPDX-License-Identifier: Apache-2.0 */
/* q8_cache_avx512bf16.c - attention over a Q8_0 cache in products of bf16: code * scale, rounded, 32 numbers at a time, two dims of 16
 * positions or two positions of 16 dims; copied in the layout of BF16 for many queries, else multiplied at once. */
#include <immintrin.h>
#include <string.h>

#include "ops/kernels.h"
#include "ops/unroll.h"
#include "ops/x86/attention_ahead.h"
#include "ops/x86/flush.h"

enum {
    CHUNKS = 4,      /* of keys at once: whole lines of pages of 64 rows */
    VALUE_BLOCKS = 2 /* of 32 dims at once */
};

HN_INLINE __m512 times(const unsigned char *codes, __m512 scale) {
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes))), scale);
}

/* 16 pairs, rounded. */
HN_INLINE __m512i pairs_of(__m512 first, __m512 second) {
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
                                           18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

/* Keys of P chunks from c on, in one block of dims that share a scale; k: the next pair of dims. */
typedef struct key_block {
    const unsigned char *k[CHUNKS];
    size_t stride[CHUNKS];
    __m512 scale[CHUNKS];
} key_block;

HN_INLINE key_block block_begin(const int P, const hn_keys *keys, hn_fetch *fetch, int c, int number) {
    key_block b;
    HN_UNROLL for (int p = 0; p < P; p++) {
        b.stride[p] = (size_t)keys->k_stride[c + p];
        b.scale[p] = _mm512_loadu_ps(keys->k_scale[c + p] + b.stride[p] * (size_t)number);
        b.k[p] = (const unsigned char *)keys->k[c + p] + b.stride[p] * HN_KV_SCALED * (size_t)number;
    }
    hn_keys_fetch(keys, fetch, P); /* as many as scales */
    return b;
}

/* Pair j of the block's dims, of each chunk. */
HN_INLINE void block_pair(const int P, key_block *b, const hn_keys *keys, hn_fetch *fetch, int j, __m512i *pair) {
    if (P == CHUNKS || j % 2) hn_keys_fetch(keys, fetch, P == CHUNKS ? 2 : 1);
    HN_UNROLL for (int p = 0; p < P; p++) {
        pair[p] = pairs_of(times(b->k[p], b->scale[p]), times(b->k[p] + b->stride[p], b->scale[p]));
        b->k[p] += 2 * b->stride[p];
    }
}

/* P chunks from c on. */
HN_INLINE void copy_keys(const int P, const hn_keys *from, int c, int dim, hn_fetch *fetch, unsigned char *to) {
    const size_t chunk = hn_kv_bytes(HN_BF16, dim, HN_KEY_CHUNK);
    for (int number = 0; number < dim / HN_KV_SCALED; number++) {
        key_block b = block_begin(P, from, fetch, c, number);
        for (int j = 0; j < HN_KV_SCALED / 2; j++, to += 64) {
            __m512i pair[CHUNKS];
            block_pair(P, &b, from, fetch, j, pair);
            HN_UNROLL for (int p = 0; p < P; p++) _mm512_store_si512(to + chunk * (size_t)p, pair[p]);
        }
    }
}

static __attribute__((noinline)) void copy_keys_of_1(const hn_keys *from, int c, int dim, hn_fetch *fetch, unsigned char *to) {
    copy_keys(1, from, c, dim, fetch, to);
}
static __attribute__((noinline)) void copy_keys_of_4(const hn_keys *from, int c, int dim, hn_fetch *fetch, unsigned char *to) {
    copy_keys(CHUNKS, from, c, dim, fetch, to);
}

static void keys_q8_to_bf16(const hn_keys *from, int c0, int c1, int dim, unsigned char *to) {
    const size_t chunk = hn_kv_bytes(HN_BF16, dim, HN_KEY_CHUNK);
    hn_fetch fetch = hn_fetch_begin(from->ahead, 0);
    const unsigned modes = hn_flush_begin();
    int c = c0;
    for (; c + CHUNKS <= c1; c += CHUNKS, to += CHUNKS * chunk) copy_keys_of_4(from, c, dim, &fetch, to);
    for (; c < c1; c++, to += chunk) copy_keys_of_1(from, c, dim, &fetch, to);
    hn_flush_end(modes);
    hn_fetch_end(from->ahead, &fetch);
}

static __attribute__((noinline)) void copy_values(const hn_keys *from, int c, int dim, hn_fetch *fetch, unsigned char *to) {
    const int blocks = dim / HN_KV_SCALED;
    const unsigned char *v = from->v[c];
    const float *scale = from->v_scale[c];
    for (int p = 0; p < HN_KEY_CHUNK / 2; p++, v += 2 * dim, scale += 2 * blocks) {
        for (int b = 0; b < blocks; b++, to += 128) {
            const __m512 first = _mm512_set1_ps(scale[b]), second = _mm512_set1_ps(scale[blocks + b]);
            const unsigned char *at = v + HN_KV_SCALED * b;
            hn_keys_fetch(from, fetch, p ? 1 : 2); /* scales too */
            _mm512_store_si512(to, pairs_of(times(at, first), times(at + dim, second)));
            _mm512_store_si512(to + 64, pairs_of(times(at + 16, first), times(at + dim + 16, second)));
        }
    }
}

static void values_q8_to_bf16(const hn_keys *from, int c0, int c1, int dim, unsigned char *to) {
    const size_t chunk = hn_kv_bytes(HN_BF16, dim, HN_KEY_CHUNK);
    hn_fetch fetch = hn_fetch_begin(from->ahead, 0);
    const unsigned modes = hn_flush_begin();
    for (int c = c0; c < c1; c++, to += chunk) copy_values(from, c, dim, &fetch, to);
    hn_flush_end(modes);
    hn_fetch_end(from->ahead, &fetch);
}

/* ---- products ------------------------------------------------------------------------------------------------------ */

HN_INLINE __m512bh one_pair(const uint16_t *pair) {
    int bits;
    memcpy(&bits, pair, sizeof bits);
    return (__m512bh)_mm512_set1_epi32(bits);
}

/* T queries x P chunks. */
HN_INLINE void score_tile(const int T, const int P, const hn_keys *keys, hn_fetch *fetch, int c, const uint16_t *const *q, int dim,
                          float scale, float *s) {
    __m512 acc[HN_CODE_QUERIES * CHUNKS];
    HN_UNROLL for (int i = 0; i < T * P; i++) acc[i] = _mm512_setzero_ps();
    for (int number = 0; number < dim / HN_KV_SCALED; number++) {
        key_block b = block_begin(P, keys, fetch, c, number);
        for (int j = 0; j < HN_KV_SCALED / 2; j++) {
            __m512i pair[CHUNKS];
            block_pair(P, &b, keys, fetch, j, pair);
            HN_UNROLL for (int i = 0; i < T; i++) {
                const __m512bh x = one_pair(q[i] + HN_KV_SCALED * number + 2 * j);
                HN_UNROLL for (int p = 0; p < P; p++) acc[i * P + p] = _mm512_dpbf16_ps(acc[i * P + p], (__m512bh)pair[p], x);
            }
        }
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        HN_UNROLL for (int p = 0; p < P; p++) {
            _mm512_storeu_ps(s + i * HN_KEY_SPAN + (c + p) * HN_KEY_CHUNK, _mm512_mul_ps(acc[i * P + p], _mm512_set1_ps(scale)));
        }
    }
}

/* One pair of positions and B blocks of dims; `seen`: the halves of pairs that count. */
HN_INLINE void value_pair(const int T, const int B, const unsigned char *v, const float *scale, int dim, uint32_t seen, const uint16_t *e,
                          __m512 *acc) {
    const int blocks = dim / HN_KV_SCALED;
    __m512bh x[2 * VALUE_BLOCKS];
    HN_UNROLL for (int j = 0; j < 2 * B; j++) {
        const __m512 first = _mm512_set1_ps(scale[j / 2]), second = _mm512_set1_ps(scale[blocks + j / 2]);
        __m512i pair = pairs_of(times(v + 16 * j, first), times(v + dim + 16 * j, second));
        if (seen != UINT32_MAX) pair = _mm512_and_si512(pair, _mm512_set1_epi32((int)seen));
        x[j] = (__m512bh)pair;
    }
    HN_UNROLL for (int i = 0; i < T; i++) {
        const __m512bh w = one_pair(e + i * HN_KEY_SPAN);
        HN_UNROLL for (int j = 0; j < 2 * B; j++) acc[2 * B * i + j] = _mm512_dpbf16_ps(acc[2 * B * i + j], x[j], w);
    }
}

/* T queries x B blocks of dims from d0 on. */
HN_INLINE void value_tile(const int T, const int B, const hn_keys *keys, hn_fetch *fetch, int lo, int hi, const uint16_t *e, int dim,
                          int d0, float *o, int ldo) {
    const int blocks = dim / HN_KV_SCALED;
    __m512 acc[HN_CODE_QUERIES * 2 * VALUE_BLOCKS];
    HN_UNROLL for (int i = 0; i < T * 2 * B; i++) acc[i] = _mm512_loadu_ps(o + i / (2 * B) * ldo + d0 + 16 * (i % (2 * B)));
    for (int p = lo / 2 * 2; p < hi; p += 2) {
        const int in_chunk = p % HN_KEY_CHUNK;
        const unsigned char *v = (const unsigned char *)keys->v[p / HN_KEY_CHUNK] + in_chunk * dim + d0;
        const float *scale = keys->v_scale[p / HN_KEY_CHUNK] + in_chunk * blocks + d0 / HN_KV_SCALED;
        const uint32_t seen = (p < lo ? 0xffff0000 : UINT32_MAX) & (p + 1 == hi ? 0x0000ffff : UINT32_MAX);
        hn_keys_fetch(keys, fetch, in_chunk ? B : 2 * B); /* scales too */
        if (seen == UINT32_MAX) {
            value_pair(T, B, v, scale, dim, UINT32_MAX, e + p, acc);
        } else {
            value_pair(T, B, v, scale, dim, seen, e + p, acc);
        }
    }
    HN_UNROLL for (int i = 0; i < T * 2 * B; i++) _mm512_storeu_ps(o + i / (2 * B) * ldo + d0 + 16 * (i % (2 * B)), acc[i]);
}

typedef void score_fn(const hn_keys *keys, hn_fetch *fetch, int c, const uint16_t *const *q, int dim, float scale, float *s);
typedef void value_fn(const hn_keys *keys, hn_fetch *fetch, int lo, int hi, const uint16_t *e, int dim, int d0, float *o, int ldo);
#define TILES(T)                                                                                                                   \
    static __attribute__((noinline)) void score_##T##x1(const hn_keys *keys, hn_fetch *fetch, int c, const uint16_t *const *q,       \
                                                        int dim, float scale, float *s) {                                          \
        score_tile(T, 1, keys, fetch, c, q, dim, scale, s);                                                                        \
    }                                                                                                                              \
    static __attribute__((noinline)) void score_##T##x4(const hn_keys *keys, hn_fetch *fetch, int c, const uint16_t *const *q,       \
                                                        int dim, float scale, float *s) {                                          \
        score_tile(T, CHUNKS, keys, fetch, c, q, dim, scale, s);                                                                   \
    }                                                                                                                              \
    static __attribute__((noinline)) void value_##T##x1(const hn_keys *keys, hn_fetch *fetch, int lo, int hi, const uint16_t *e,     \
                                                        int dim, int d0, float *o, int ldo) {                                      \
        value_tile(T, 1, keys, fetch, lo, hi, e, dim, d0, o, ldo);                                                                 \
    }                                                                                                                              \
    static __attribute__((noinline)) void value_##T##x2(const hn_keys *keys, hn_fetch *fetch, int lo, int hi, const uint16_t *e,     \
                                                        int dim, int d0, float *o, int ldo) {                                      \
        value_tile(T, VALUE_BLOCKS, keys, fetch, lo, hi, e, dim, d0, o, ldo);                                                      \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)
static score_fn *const score_fns[2][HN_CODE_QUERIES + 1] = {{NULL, score_1x1, score_2x1, score_3x1, score_4x1},
                                                            {NULL, score_1x4, score_2x4, score_3x4, score_4x4}};
static value_fn *const value_fns[2][HN_CODE_QUERIES + 1] = {{NULL, value_1x1, value_2x1, value_3x1, value_4x1},
                                                            {NULL, value_1x2, value_2x2, value_3x2, value_4x2}};

static void scores_q8_bf16(const hn_keys *keys, int c0, int c1, const uint16_t *const *q, int nq, int dim, float scale, float *s) {
    hn_fetch fetch = hn_fetch_begin(keys->ahead, 0);
    int c = c0;
    const unsigned modes = hn_flush_begin();
    for (; c + CHUNKS <= c1; c += CHUNKS) score_fns[1][nq](keys, &fetch, c, q, dim, scale, s);
    for (; c < c1; c++) score_fns[0][nq](keys, &fetch, c, q, dim, scale, s);
    hn_flush_end(modes);
    hn_fetch_end(keys->ahead, &fetch);
}

static void values_q8_bf16(const hn_keys *keys, int lo, int hi, const uint16_t *e, int nq, int dim, float *o, int ldo) {
    const int wide = VALUE_BLOCKS * HN_KV_SCALED;
    hn_fetch fetch = hn_fetch_begin(keys->ahead, 0);
    int d = 0;
    const unsigned modes = hn_flush_begin();
    for (; d + wide <= dim; d += wide) value_fns[1][nq](keys, &fetch, lo, hi, e, dim, d, o, ldo);
    for (; d < dim; d += HN_KV_SCALED) value_fns[0][nq](keys, &fetch, lo, hi, e, dim, d, o, ldo);
    hn_flush_end(modes);
    hn_fetch_end(keys->ahead, &fetch);
}

void hn_kernels_avx512bf16_q8_cache(struct hn_kernels *k) {
    k->q8_as_bf16 = true;
    k->keys_q8_to_bf16 = keys_q8_to_bf16;
    k->values_q8_to_bf16 = values_q8_to_bf16;
    k->scores_q8_bf16 = scores_q8_bf16;
    k->values_q8_bf16 = values_q8_bf16;
}
