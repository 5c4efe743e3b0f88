/* SPDX-License-Identifier: Apache-2.0 */
/* lanes_tmpl.h - the body of lanes*.c: define LANES_BYTES (of a vector) and LANES_TABLE (its name), then include.
 *
 * Noise is Philox 4x32-10 with the packing of base/random.c. The token is the last counter word and only the second
 * output word is wanted, so what the first two rounds make of the other words is computed once a block, and the last
 * round needs one product. A word sits in the low half of a 64-bit lane, where the 32 x 32 product wants it; the high
 * halves hold rubbish that nobody reads. Even and odd tokens run in two vectors and are woven together at the end.
 *
 * No guards: a file is compiled for one level and includes this once.
 */
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vf __attribute__((vector_size(LANES_BYTES)));
typedef int32_t vi __attribute__((vector_size(LANES_BYTES)));
typedef uint32_t vu __attribute__((vector_size(LANES_BYTES)));
typedef uint64_t vq __attribute__((vector_size(LANES_BYTES)));
enum { LANES = LANES_BYTES / 4 };

static inline vf vf_all(float x) { return x - (vf){0}; }
static inline vq vq_all(uint64_t x) { return x + (vq){0}; }
static inline vf vf_load(const float *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline vf vf_if(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

/* ---- weights ---------------------------------------------------------------------------------------------------- */

/* e^z for z in [-87, 0], 0 below and for NaN: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2]. */
static inline vf weight(vf z) {
    const vf round = vf_all(12582912.0f); /* 1.5 * 2^23: the sum's low bits are the nearest integer */
    vi in = z >= vf_all(-87.0f);
    vf c = vf_if(in, z, vf_all(0));
    vf t = c * 1.44269504f + round, n = t - round;
    vf r = (c - n * 0.693359375f) - n * -2.12194440e-4f; /* ln 2 in two parts, the first exact times n */
    vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r) * r + r + 1.0f;
    vi power = ((vi)t - (vi)round + 127) << 23;
    return vf_if(in, p * (vf)power, vf_all(0));
}

static inline vf weights_vector(vf l, float max, float scale) {
    return vf_if(l == vf_all(max), vf_all(1), weight((l - max) * scale)); /* max may be +inf */
}

static void lanes_weights(const float *l, int n, float max, float scale, float *w) {
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf v = weights_vector(vf_load(l + i), max, scale);
        memcpy(w + i, &v, sizeof v);
    }
    if (i < n) {
        vf v = {0};
        memcpy(&v, l + i, (size_t)(n - i) * sizeof *l);
        v = weights_vector(v, max, scale);
        memcpy(w + i, &v, (size_t)(n - i) * sizeof *w);
    }
}

/* ---- noise ------------------------------------------------------------------------------------------------------ */

/* Products of the low halves. */
static inline vq product(vq a, vq b) {
#if defined(__AVX512F__) && LANES_BYTES == 64
    return (vq)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && LANES_BYTES == 32
    return (vq)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && LANES_BYTES == 16
    return (vq)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xFFFFFFFFu) * (b & 0xFFFFFFFFu);
#endif
}

enum { ROUNDS = 10 };
static const uint32_t MUL_A = 0xD2511F53u, MUL_C = 0xCD9E8D57u, STEP_A = 0x9E3779B9u, STEP_C = 0xBB67AE85u;

static uint32_t high(uint32_t x, uint32_t y) { return (uint32_t)((uint64_t)x * y >> 32); }

/* The words that do not depend on the token: of round 1, and of round 2. */
typedef struct noise {
    uint32_t b1, c1, c2, d2, k0, k1;
} noise;

static noise noise_begin(const hn_random_key *key) {
    uint32_t k0 = (uint32_t)key->seed, k1 = (uint32_t)(key->seed >> 32);
    uint32_t x = (uint32_t)key->position, z = key->number & 0xFFFF;
    uint32_t y = (uint32_t)(key->position >> 32 & 0xFF) | (key->purpose & 0xFF) << 8 | (key->drafter & 0xFF) << 16;
    uint32_t a1 = high(z, MUL_C) ^ y ^ k0, d1 = x * MUL_A;
    noise s = {.b1 = z * MUL_C, .c1 = high(x, MUL_A) ^ k1, .k0 = k0 + STEP_A, .k1 = k1 + STEP_C};
    s.c2 = high(a1, MUL_A) ^ d1 ^ s.k1;
    s.d2 = a1 * MUL_A;
    return s;
}

/* Second output words (low halves) for the tokens in the lanes. */
static inline vq noise_lanes(const noise *s, vq token) {
    uint32_t k0 = s->k0, k1 = s->k1;
    const vq mul_a = vq_all(MUL_A), mul_c = vq_all(MUL_C);
    vq q = product(token ^ vq_all(s->c1), mul_c);
    vq a = (q >> 32) ^ vq_all(s->b1 ^ k0), b = q, c = vq_all(s->c2), d = vq_all(s->d2);
    for (int r = 3; r < ROUNDS; r++) {
        k0 += STEP_A, k1 += STEP_C;
        vq p = product(a, mul_a);
        q = product(c, mul_c);
        a = (q >> 32) ^ b ^ vq_all(k0);
        b = q;
        c = (p >> 32) ^ d ^ vq_all(k1);
        d = p;
    }
    return product(c, mul_c);
}

/* ---- the race --------------------------------------------------------------------------------------------------- */

enum { VECTORS = HN_LANES_BLOCK / LANES };

/* Noise for even and odd tokens, and which lanes may have -log(u) < time * w; time carries the margin for rounding. */
static inline vi may_win(const noise *s, vq even, vq odd, vf w, float time) {
    const vu word = (vu)((noise_lanes(s, even) & 0xFFFFFFFFu) | noise_lanes(s, odd) << 32);
    /* word is the upper half of u's bits: (2^32 - 1 - word) / 2^32 <= 1 - u <= -log(u), and halving keeps it in the range
     * of signed conversion */
    const vf least = __builtin_convertvector((vi)(~word >> 1), vf) * 0x1p-31f;
    return least < w * time;
}

static inline uint64_t mask_of(const vi may[VECTORS]) {
    vi any = {0};
    uint64_t mask = 0;
    int found = 0;
    for (int i = 0; i < VECTORS; i++) any |= may[i];
    for (int i = 0; i < LANES; i++) found |= any[i];
    for (int i = 0; found && i < HN_LANES_BLOCK; i++) mask |= (uint64_t)(may[i / LANES][i % LANES] & 1) << i;
    return mask;
}

static uint64_t lanes_race(const float l[HN_LANES_BLOCK], float max, float scale, float time, const hn_random_key *key,
                           uint32_t first, float w[HN_LANES_BLOCK]) {
    const noise s = noise_begin(key);
    vq even;
    for (int i = 0; i < LANES / 2; i++) even[i] = first + 2 * (uint32_t)i;
    vi may[VECTORS];
    for (int i = 0; i < VECTORS; i++, even += LANES) {
        vf weights = weights_vector(vf_load(l + i * LANES), max, scale);
        memcpy(w + i * LANES, &weights, sizeof weights);
        may[i] = may_win(&s, even, even + 1, weights, time * 1.001f);
    }
    return mask_of(may);
}

static uint64_t lanes_race_ids(const int32_t id[HN_LANES_BLOCK], const float w[HN_LANES_BLOCK], float time,
                               const hn_random_key *key) {
    const noise s = noise_begin(key);
    vi may[VECTORS];
    for (int i = 0; i < VECTORS; i++) {
        vq pair; /* an even token in the low half, an odd one in the high half */
        memcpy(&pair, id + i * LANES, sizeof pair);
        may[i] = may_win(&s, pair, pair >> 32, vf_load(w + i * LANES), time * 1.001f);
    }
    return mask_of(may);
}

const hn_lanes LANES_TABLE = {lanes_weights, lanes_race, lanes_race_ids};
