/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_ops_tmpl.h - the body of vocab_ops*.c: define LANES_BYTES (size of a vector) and VOCAB_OPS_TABLE (name of the table), then include.
 *
 * Noise is Philox 4x32-10 with the packing of base/random.c. The token is the last counter word and only the second
 * output word is needed, so the first two rounds of the other words are computed once for a bucket, and the last round
 * needs one product. A word is in the low half of a 64-bit lane, as the 32 x 32 product needs it; the high halves are
 * unused. Even and odd tokens are in two vectors, which are interleaved at the end.
 *
 * No guards: a file is compiled for one level and includes this once.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef float vf __attribute__((vector_size(LANES_BYTES)));
typedef int32_t vi __attribute__((vector_size(LANES_BYTES)));
typedef uint32_t vu __attribute__((vector_size(LANES_BYTES)));
typedef uint64_t vq __attribute__((vector_size(LANES_BYTES)));
typedef double vd __attribute__((vector_size(LANES_BYTES)));
#define ALWAYS_INLINE static inline __attribute__((always_inline)) /* for a loop that is compiled twice, by a constant */
enum { LANES = LANES_BYTES / 4, VECTORS = HN_VOCAB_BUCKET / LANES };

static inline vf vf_all(float x) { return x - (vf){0}; }
static inline vq vq_all(uint64_t x) { return x + (vq){0}; }
static inline vf vf_load(const float *p) {
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline vf vf_if(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

/* The larger of a and b; b if a is NaN. */
static inline vf vf_max(vf a, vf b) {
#if defined(__AVX512F__) && LANES_BYTES == 64
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__) && LANES_BYTES == 32
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__) && LANES_BYTES == 16
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    return vf_if(a > b, a, b);
#endif
}

/* The largest lane; no lane is NaN. */
static inline float vf_largest(vf v) {
#if defined(__AVX512F__) && LANES_BYTES == 64
    return _mm512_reduce_max_ps((__m512)v);
#else
    float lane[LANES], most;
    memcpy(lane, &v, sizeof v);
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) lane[i] = lane[i] > lane[i + n] ? lane[i] : lane[i + n];
    most = lane[0];
    return most;
#endif
}

/* The mask of a comparison: a bit for each lane. */
static inline unsigned bits_of(vi mask) {
#if defined(__AVX512F__) && LANES_BYTES == 64
    return _mm512_movepi32_mask((__m512i)mask);
#elif defined(__AVX2__) && LANES_BYTES == 32
    return (unsigned)_mm256_movemask_ps((__m256)mask);
#elif defined(__SSE2__) && LANES_BYTES == 16
    return (unsigned)_mm_movemask_ps((__m128)mask);
#else
    unsigned bits = 0;
    for (int i = 0; i < LANES; i++) bits |= (unsigned)(mask[i] & 1) << i;
    return bits;
#endif
}

/* Lanes as doubles: the lower half of them, the upper half. */
static inline vd vd_low(vf v) {
#if defined(__AVX512F__) && LANES_BYTES == 64
    return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
#elif defined(__AVX2__) && LANES_BYTES == 32
    return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
#elif defined(__SSE2__) && LANES_BYTES == 16
    return (vd)_mm_cvtps_pd((__m128)v);
#else
    vd d;
    for (int i = 0; i < LANES / 2; i++) d[i] = (double)v[i];
    return d;
#endif
}
static inline vd vd_high(vf v) {
#if defined(__AVX512F__) && LANES_BYTES == 64
    return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
#elif defined(__AVX2__) && LANES_BYTES == 32
    return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
#elif defined(__SSE2__) && LANES_BYTES == 16
    return (vd)_mm_cvtps_pd(_mm_movehl_ps((__m128)v, (__m128)v));
#else
    vd d;
    for (int i = 0; i < LANES / 2; i++) d[i] = (double)v[LANES / 2 + i];
    return d;
#endif
}

/* The bucket that begins at i; an incomplete one is copied to room and filled up with `rest`. */
static inline const float *bucket_at(const float *l, int i, int n, float rest, float room[HN_VOCAB_BUCKET]) {
    if (n - i >= HN_VOCAB_BUCKET) return l + i;
    memcpy(room, l + i, (size_t)(n - i) * sizeof *l);
    for (int j = n - i; j < HN_VOCAB_BUCKET; j++) room[j] = rest;
    return room;
}

/* ---- the largest ------------------------------------------------------------------------------------------------- */

static inline vf bucket_max(const float *p, vf most) {
    for (int i = 0; i < HN_VOCAB_BUCKET; i += LANES) most = vf_max(vf_load(p + i), most);
    return most;
}

static float lanes_maxima(const float *l, int n, float *bucket) {
    float room[HN_VOCAB_BUCKET], most = -INFINITY;
    for (int i = 0; i < n; i += HN_VOCAB_BUCKET) {
        const float x = vf_largest(bucket_max(bucket_at(l, i, n, -INFINITY, room), vf_all(-INFINITY)));
        bucket[i / HN_VOCAB_BUCKET] = x;
        most = x > most ? x : most;
    }
    return most;
}

static int32_t lanes_argmax(const float *l, int n) {
    float room[HN_VOCAB_BUCKET], best = -INFINITY;
    int at = -1;
    for (int i = 0; i < n; i += HN_VOCAB_BUCKET) {
        const vf m = bucket_max(bucket_at(l, i, n, -INFINITY, room), vf_all(-INFINITY));
        if (!bits_of(m > vf_all(best))) continue;
        best = vf_largest(m);
        at = i;
    }
    if (at < 0) return -1;
    while (l[at] != best) at++;
    return at;
}

/* ---- a mask of tokens --------------------------------------------------------------------------------------------- */

/* All ones in the lanes whose bit is set. */
static inline vi lanes_of(uint32_t bits) {
    vi place;
    for (int i = 0; i < LANES; i++) place[i] = i;
    return ((((vi){0} + (int32_t)bits) >> place) & 1) != 0;
}

static void lanes_mask(const float *l, const uint64_t *bits, int n, float *out) {
    const vf none = vf_all(-INFINITY);
    for (int i = 0; i < n; i += HN_VOCAB_BUCKET) {
        const uint64_t in = bits[i / HN_VOCAB_BUCKET];
        for (int j = i; j < i + HN_VOCAB_BUCKET && j < n; j += LANES) {
            const size_t bytes = (size_t)(n - j < LANES ? n - j : LANES) * sizeof *l;
            vf v = {0};
            memcpy(&v, l + j, bytes == sizeof v ? sizeof v : bytes);
            v = vf_if(lanes_of((uint32_t)(in >> (j - i)) & ((1u << (LANES - 1)) * 2 - 1)), v, none);
            memcpy(out + j, &v, bytes == sizeof v ? sizeof v : bytes);
        }
    }
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

/* x where z is at least `low`, else 0. */
static inline vf vf_from(vf z, float low, vf x) {
#if defined(__AVX512F__) && LANES_BYTES == 64
    return (vf)_mm512_maskz_mov_ps(_mm512_cmp_ps_mask((__m512)z, _mm512_set1_ps(low), _CMP_GE_OQ), (__m512)x);
#else
    return (vf)((z >= vf_all(low)) & (vi)x);
#endif
}

/* e^z for z in [-87, 0], 0 below and for NaN: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2]. */
static inline vf weight(vf z) {
    const vf round = vf_all(12582912.0f); /* 1.5 * 2^23: the sum's low bits are the nearest integer */
    vf c = vf_max(z, vf_all(-87.0f));
    vf t = c * 1.44269504f + round, n = t - round;
    vf r = (c - n * 0.693359375f) - n * -2.12194440e-4f; /* ln 2 in two parts, the first exact times n */
    vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r) * r + r + 1.0f;
    return vf_from(z, -87.0f, (vf)((vu)p + ((vu)t << 23))); /* n is added to the exponent: nothing here is denormal */
}

/* infinite: max is +inf, and inf - inf must be 0. e^0 is exactly 1. */
static inline vf weights_vector(vf l, float max, float scale, bool infinite) {
    const vf w = weight((l - max) * scale);
    return infinite ? vf_if(l == vf_all(max), vf_all(1), w) : w;
}

ALWAYS_INLINE void weights_loop(const float *l, int n, float max, float scale, bool infinite, float *w) {
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf v = weights_vector(vf_load(l + i), max, scale, infinite);
        memcpy(w + i, &v, sizeof v);
    }
    if (i < n) {
        vf v = {0};
        memcpy(&v, l + i, (size_t)(n - i) * sizeof *l);
        v = weights_vector(v, max, scale, infinite);
        memcpy(w + i, &v, (size_t)(n - i) * sizeof *w);
    }
}

static void lanes_weights(const float *l, int n, float max, float scale, float *w) {
    if (max == INFINITY) weights_loop(l, n, max, scale, true, w);
    else weights_loop(l, n, max, scale, false, w);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

enum { SUMS = 16, PARTS = 2 * SUMS / LANES }; /* lanes of a sum of doubles, and their number of vectors */

static inline void sums_add(vd sum[PARTS], const vf v[SUMS / LANES]) {
    for (int k = 0; k < SUMS / LANES; k++) {
        sum[2 * k] += vd_low(v[k]);
        sum[2 * k + 1] += vd_high(v[k]);
    }
}

static inline double sums_end(const vd part[PARTS]) {
    double lane[SUMS], sum = 0;
    memcpy(lane, part, sizeof lane);
    for (int j = 0; j < SUMS; j++) sum += lane[j];
    return sum;
}

/* A weight added to HN_MASS_ROUND has its mass in the low bits, so the bits of such numbers are summed, and the bits of the
 * constant are subtracted at the end. */
static inline vq mass_add(vq mass, vf w) {
    return mass + (vq)(vd_low(w) + HN_MASS_ROUND) + (vq)(vd_high(w) + HN_MASS_ROUND);
}

static inline int64_t mass_end(vq mass, int64_t added) {
    uint64_t sum = 0, bits;
    for (int i = 0; i < LANES / 2; i++) sum += mass[i];
    const double round = HN_MASS_ROUND;
    memcpy(&bits, &round, sizeof bits);
    return (int64_t)(sum - (uint64_t)added * bits);
}

static double lanes_sum(const float *w, int n) {
    vd sum[PARTS] = {{0}};
    float room[HN_VOCAB_BUCKET];
    for (int i = 0; i < n; i += HN_VOCAB_BUCKET) {
        const float *p = bucket_at(w, i, n, 0, room);
        for (int j = 0; j < HN_VOCAB_BUCKET; j += SUMS) {
            vf v[SUMS / LANES];
            memcpy(v, p + j, sizeof v);
            sums_add(sum, v);
        }
    }
    return sums_end(sum);
}

/* The sum of weigh_loop: of masses or of weights. */
typedef union weighed {
    int64_t mass;
    double sum;
} weighed;

ALWAYS_INLINE weighed weigh_loop(const float *l, int n, const float *bucket, float floor, float max, float scale,
                                 bool infinite, bool masses) {
    vd sum[PARTS] = {{0}};
    vq mass = {0};
    int64_t added = 0;
    float room[HN_VOCAB_BUCKET];
    for (int i = 0; i < n; i += HN_VOCAB_BUCKET) {
        if (bucket && bucket[i / HN_VOCAB_BUCKET] < floor) continue;
        const float *p = bucket_at(l, i, n, -INFINITY, room);
        for (int j = 0; j < HN_VOCAB_BUCKET; j += SUMS) {
            vf w[SUMS / LANES];
            for (int k = 0; k < SUMS / LANES; k++) {
                w[k] = weights_vector(vf_load(p + j + k * LANES), max, scale, infinite);
                if (masses) mass = mass_add(mass, w[k]);
            }
            if (!masses) sums_add(sum, w);
        }
        added += HN_VOCAB_BUCKET;
    }
    return masses ? (weighed){.mass = mass_end(mass, added)} : (weighed){.sum = sums_end(sum)};
}

static double lanes_weigh(const float *l, int n, float max, float scale) {
    return max == INFINITY ? weigh_loop(l, n, NULL, 0, max, scale, true, false).sum
                           : weigh_loop(l, n, NULL, 0, max, scale, false, false).sum;
}

static int64_t lanes_mass(const float *l, int n, const float *bucket, float floor, float max, float scale) {
    return max == INFINITY ? weigh_loop(l, n, bucket, floor, max, scale, true, true).mass
                           : weigh_loop(l, n, bucket, floor, max, scale, false, true).mass;
}

ALWAYS_INLINE hn_tally tally_loop(const float *key, const float *w, int n, float least, bool weighs) {
    vi count = {0};
    vq mass = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vi in = vf_load(key + i) >= vf_all(least);
        count -= in;
        if (weighs) mass = mass_add(mass, (vf)(in & (vi)vf_load(w + i)));
    }
    hn_tally t = {.mass = weighs ? mass_end(mass, i) : 0};
    for (int k = 0; k < LANES; k++) t.count += count[k];
    for (; i < n; i++) {
        t.count += key[i] >= least;
        if (weighs && key[i] >= least) t.mass += (int64_t)(hn_mass_of(w[i]) / HN_MASS_UNIT);
    }
    return t;
}

static hn_tally lanes_tally(const float *key, const float *w, int n, float least) {
    return w ? tally_loop(key, w, n, least, true) : tally_loop(key, w, n, least, false);
}

static double lanes_excess(const double *p, const float *q, int n, double of_p, double of_q, double *out) {
    vd sum[PARTS] = {{0}};
    double lane[SUMS], tail[SUMS] = {0};
    int i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS / LANES; k++) {
            const vf v = vf_load(q + i + k * LANES);
            vd part[2];
            memcpy(part, p + i + k * LANES, sizeof part);
            for (int h = 0; h < 2; h++) {
                const vd left = of_p * part[h] - of_q * (h ? vd_high(v) : vd_low(v));
                part[h] = (vd)((vq)left & (vq)(left > 0));
                sum[2 * k + h] += part[h];
            }
            if (out) memcpy(out + i + k * LANES, part, sizeof part);
        }
    for (int j = 0; i < n; i++, j++) {
        const double left = of_p * p[i] - of_q * (double)q[i];
        tail[j] = left > 0 ? left : 0;
        if (out) out[i] = tail[j];
    }
    double all = 0;
    memcpy(lane, sum, sizeof lane);
    for (int j = 0; j < SUMS; j++) all += lane[j] + tail[j];
    return all;
}

static void lanes_spread(const float *l, int n, float max, double *count, double *sum, double *squares) {
    vd sums[PARTS] = {{0}}, square[PARTS] = {{0}};
    vi numbers = {0};
    float room[HN_VOCAB_BUCKET];
    for (int i = 0; i < n; i += HN_VOCAB_BUCKET) {
        const float *p = bucket_at(l, i, n, -INFINITY, room);
        for (int j = 0; j < HN_VOCAB_BUCKET; j += LANES) {
            const vf v = vf_load(p + j);
            const vi in = v > vf_all(-INFINITY);
            const vf x = vf_if(in, v, vf_all(max)); /* NaN and infinities add 0 */
            const vd low = (double)max - vd_low(x), high = (double)max - vd_high(x);
            const int k = j / LANES % (SUMS / LANES) * 2;
            numbers -= in;
            sums[k] += low, sums[k + 1] += high;
            square[k] += low * low, square[k + 1] += high * high;
        }
    }
    *count = 0;
    for (int k = 0; k < LANES; k++) *count += numbers[k];
    *sum = sums_end(sums);
    *squares = sums_end(square);
}

/* ---- above a threshold ------------------------------------------------------------------------------------------- */

/* Packs the lanes of id and value whose bit is set to the front of to_id and to_value; the rest of a vector there is
 * overwritten. Returns their number. */
static inline int pack(unsigned bits, vi id, vf value, int32_t *to_id, float *to_value) {
#if defined(__AVX512F__) && LANES_BYTES == 64
    const __m512i ids = _mm512_maskz_compress_epi32((__mmask16)bits, (__m512i)id);
    const __m512 values = _mm512_maskz_compress_ps((__mmask16)bits, (__m512)value);
    _mm512_storeu_si512(to_id, ids);
    _mm512_storeu_ps(to_value, values);
    return __builtin_popcount(bits);
#else
    int n = 0;
    for (; bits; bits &= bits - 1, n++) {
        to_id[n] = id[__builtin_ctz(bits)];
        to_value[n] = value[__builtin_ctz(bits)];
    }
    return n;
#endif
}

/* No more is written than was read, so that it works in place. */
static int lanes_gather(const float *l, int n, const float *bucket, float least, int32_t *id, float *value) {
    vi first;
    int kept = 0, i = 0;
    for (int j = 0; j < LANES; j++) first[j] = j;
    for (; i + HN_VOCAB_BUCKET <= n; i += HN_VOCAB_BUCKET) {
        if (bucket && bucket[i / HN_VOCAB_BUCKET] < least) continue;
        for (int j = i; j < i + HN_VOCAB_BUCKET; j += LANES) {
            const vf v = vf_load(l + j);
            const unsigned bits = bits_of(v >= vf_all(least));
            if (bits) kept += pack(bits, first + j, v, id + kept, value + kept);
        }
    }
    for (; i < n; i++) {
        const float v = l[i];
        if (v >= least) id[kept] = i, value[kept++] = v;
    }
    return kept;
}

ALWAYS_INLINE int keep_loop(float *key, int n, float least, int32_t *id, float *value, bool own_key) {
    int kept = 0, i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vf k = vf_load(key + i), v = own_key ? vf_load(value + i) : k;
        const unsigned bits = bits_of(k >= vf_all(least));
        vi ids;
        memcpy(&ids, id + i, sizeof ids);
        if (own_key) pack(bits, ids, k, id + kept, key + kept);
        kept += pack(bits, ids, v, id + kept, value + kept);
    }
    for (; i < n; i++) {
        const float k = key[i];
        const float v = value[i];
        if (!(k >= least)) continue;
        id[kept] = id[i];
        key[kept] = k;
        value[kept++] = v;
    }
    return kept;
}

static int lanes_keep(float *key, int n, float least, int32_t *id, float *value) {
    return key == value ? keep_loop(key, n, least, id, value, false) : keep_loop(key, n, least, id, value, true);
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

/* The words after rounds 1 and 2 that do not depend on the token. */
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

/* A lower bound of -log(u) from the upper half of its random number: (2^32 - 1 - word) / 2^32 <= 1 - u <= -log(u), halved to
 * keep it in the range of signed numbers. Even and odd tokens are in two vectors. */
static inline vi rest_of(const noise *s, vq even, vq odd) {
    const vu word = (vu)((noise_lanes(s, even) & 0xFFFFFFFFu) | noise_lanes(s, odd) << 32);
    return (vi)(~word >> 1);
}

/* The lanes that may have -log(u) < time * w; time includes the margin for rounding. */
static inline vi may_win(vi rest, vf w, float time) { return __builtin_convertvector(rest, vf) * 0x1p-31f < w * time; }

static int lanes_race(const float *l, int n, const float *most, int bucket, float max, float scale, float time,
                      const hn_random_key *key, uint64_t *may, float w[HN_VOCAB_BUCKET]) {
    const noise s = noise_begin(key);
    const int buckets = hn_vocab_buckets(n);
    vq tokens;
    for (int i = 0; i < LANES / 2; i++) tokens[i] = 2 * (uint64_t)i;
    for (; bucket < buckets; bucket++) {
        const float bound = most[bucket] * time * 1.002f; /* of time * w; rest is rounded down */
        if (bound < 0x1p-54f) continue;                  /* e >= 2^-53 */
        const int32_t limit = bound < 1 ? (int32_t)(bound * 0x1p31f) : INT32_MAX;
        vq even = tokens + (uint64_t)bucket * HN_VOCAB_BUCKET;
        vi rest[VECTORS], any = {0};
        for (int i = 0; i < VECTORS; i++, even += LANES) {
            rest[i] = rest_of(&s, even, even + 1);
            any |= rest[i] <= limit;
        }
        if (!bits_of(any)) continue;
        float room[HN_VOCAB_BUCKET];
        const float *p = bucket_at(l, bucket * HN_VOCAB_BUCKET, n, -INFINITY, room); /* weight 0: no bit */
        *may = 0;
        for (int i = 0; i < VECTORS; i++) {
            const vf weights = weights_vector(vf_load(p + i * LANES), max, scale, true);
            memcpy(w + i * LANES, &weights, sizeof weights);
            *may |= (uint64_t)bits_of(may_win(rest[i], weights, time * 1.001f)) << (i * LANES);
        }
        if (*may) break;
    }
    return bucket;
}

static uint64_t lanes_race_ids(const int32_t id[HN_VOCAB_BUCKET], const float w[HN_VOCAB_BUCKET], float time,
                               const hn_random_key *key) {
    const noise s = noise_begin(key);
    uint64_t mask = 0;
    for (int i = 0; i < VECTORS; i++) {
        vq pair; /* an even token in the low half, an odd one in the high half */
        memcpy(&pair, id + i * LANES, sizeof pair);
        const vi may = may_win(rest_of(&s, pair, pair >> 32), vf_load(w + i * LANES), time * 1.001f);
        mask |= (uint64_t)bits_of(may) << (i * LANES);
    }
    return mask;
}

const hn_vocab_ops VOCAB_OPS_TABLE = {
    .maxima = lanes_maxima, .argmax = lanes_argmax, .mask = lanes_mask,     .weights = lanes_weights, .weigh = lanes_weigh,
    .mass = lanes_mass,     .tally = lanes_tally,   .sum = lanes_sum,       .excess = lanes_excess,   .gather = lanes_gather,
    .keep = lanes_keep,     .spread = lanes_spread, .race = lanes_race,     .race_ids = lanes_race_ids};
