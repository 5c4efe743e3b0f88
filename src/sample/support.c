/* SPDX-License-Identifier: Apache-2.0 */
/* support.c - from processed logits to the support of the distribution and its weights, without sorting a vocabulary.
 *
 * The exact distribution. m = largest logit that is not NaN. Every token has the weight w = e^((l - m) / T) in float32, computed
 * by vocab_ops.h; T enters as one float32 reciprocal. Then, in this order,
 *   top-n-sigma  keeps logits of at least m - n·σ, σ the standard deviation of the finite logits;
 *   top-k        keeps the k tokens of largest logit, ties to the lowest id;
 *   typical      keeps the shortest run of tokens in order of ascending |z - mean of z|, z = (l - m) / T (ties: ascending
 *                id), whose masses reach typical_p times the sum. -log P(x) and the entropy are both the same affine
 *                function, of z and of its mean, so this is the distance of 2202.00666;
 *   top-p        keeps the shortest run of tokens in order of descending weight (ties: ascending id) whose masses reach p
 *                times the sum over the remaining tokens. The mass is the weight rounded to a multiple of 2^-34: sums of
 *                such numbers are exact in a double in any order;
 *   min-p        keeps weights of at least min_p times the largest left;
 *   XTC          if it acts, drops the tokens of at least xtc_threshold times the sum of masses except the least likely of
 *                them, ties to the lowest id.
 * P(x) = w(x) / sum of the kept weights. So the distribution is a function of the logits and parameters alone.
 *
 * Shortcuts below change no result. The largest logit of each bucket of 64 tokens is found first; after that
 *   - a threshold, of logits or of weights, skips whole buckets, and only tokens above it are processed;
 *   - the k-th largest of those bucket maxima is such a threshold for top-k, if there are k buckets;
 *   - so is, for top-p, (1-p)·sum/V less a unit of mass: the last token kept and all after it have more than (1-p)·sum
 *     together, and there are at most V of them. Nor is a token without mass in the set;
 *   - the end of a run is found without sorting (runs.h).
 * Candidates stay in order of ascending id.
 */
#include "sample/support.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "sample/runs.h"

enum { LANES = 16 }; /* partial sums, so that the compiler vectorises loops; results do not depend on the level */

/* 1/T saturates for tiny temperatures: every logit below the largest then has weight 0. */
float hn_sampler_scale(const hn_sampler *s) {
    double scale = 1.0 / s->params.temperature;
    return scale < 1e38 ? (float)scale : 1e38f;
}

static double mass_sum(const hn_sampler *s, int n) {
    return (double)s->vocab_ops->tally(s->value, s->value, n, 0).mass * HN_MASS_UNIT;
}

/* The smallest float that is not below x: for a float v, v >= x is equivalent to v >= this. */
static float float_above(double x) {
    const float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

/* No logit below this has a weight of `least` > 0 or more. The margins are for rounding. */
static float logit_floor(const hn_sampler *s, float max, double least) {
    const double lowest = -87.1; /* logits below have weight 0 */
    if (max == INFINITY) return -INFINITY;
    return max - fabsf(max) * 1e-6f + (float)((fmax(log(least), lowest) - 0.01) / (double)hn_sampler_scale(s));
}

/* ---- truncation by logits --------------------------------------------------------------------------------------- */

/* The smallest logit that top-n-sigma keeps. */
static double sigma_floor(const hn_sampler *s, const float *l, float max) {
    double count, sum, squares;
    if (max == INFINITY) return INFINITY;
    s->vocab_ops->spread(l, s->vocab, max, &count, &sum, &squares);
    const double mean = sum / count, variance = fmax(squares / count - mean * mean, 0);
    return (double)max - s->params.top_n_sigma * sqrt(variance);
}

static bool top_k_cuts(const hn_sampler *s) { return s->params.top_k > 0 && s->params.top_k < s->vocab; }

/* Applies top-n-sigma and top-k: ids and logits into id and value. */
static int cut_by_logit(hn_sampler *s, const float *l, float max) {
    const int k = s->params.top_k, buckets = hn_vocab_buckets(s->vocab);
    float least = -FLT_MAX; /* -inf cannot be drawn */
    if (s->params.top_n_sigma > 0) least = float_above(fmax(sigma_floor(s, l, max), -(double)FLT_MAX));
    if (top_k_cuts(s) && k <= buckets) least = fmaxf(least, hn_run_floor(s->vocab_ops, s->bucket, buckets, k, max));
    const int n = s->vocab_ops->gather(l, s->vocab, s->bucket, least, s->id, s->value);
    if (!top_k_cuts(s) || n <= k) return n;
    return hn_run_cut(s->vocab_ops, &(hn_run){s->id, s->value, s->value, n, true, k, least, max});
}

/* ---- cuts by probability ---------------------------------------------------------------------------------------- */

/* A key that descends with an ascending distance >= 0: bits of positive floats are ordered like integers. */
static float key_of_distance(float distance) {
    uint32_t bits;
    float key;
    memcpy(&bits, &distance, sizeof bits);
    bits = 0x7F800000 - bits;
    memcpy(&key, &bits, sizeof key);
    return key;
}

/* 0 for a token that cannot be drawn, so that it adds nothing. max may be +inf. */
static inline double z_of(float w, float logit, float max, float scale) {
    return w == 0 || logit == max ? 0 : (double)((logit - max) * scale);
}

/* The mean of z under n weights. */
static double z_mean(const float *w, const float *l, int n, float max, float scale) {
    double sum[LANES] = {0}, weight[LANES] = {0};
    for (int i = 0; i < n; i += LANES) {
        const int end = n - i < LANES ? n - i : LANES;
        for (int j = 0; j < end; j++) {
            sum[j] += (double)w[i + j] * z_of(w[i + j], l[i + j], max, scale);
            weight[j] += (double)w[i + j];
        }
    }
    for (int j = 1; j < LANES; j++) sum[0] += sum[j], weight[0] += weight[j];
    return sum[0] / weight[0];
}

/* Locally typical sampling over n weighted candidates with their logits as keys. Tokens that cannot be drawn come last: the run
 * ends before them. */
static int typical_cut(hn_sampler *s, int n, float max) {
    const float scale = hn_sampler_scale(s);
    const double mean = z_mean(s->value, s->key, n, max, scale);
    for (int i = 0; i < n; i++) {
        const float distance = (float)fabs(z_of(s->value[i], s->key[i], max, scale) - mean);
        s->key[i] = key_of_distance(s->value[i] > 0 ? distance : INFINITY);
    }
    const double target = s->params.typical_p * mass_sum(s, n);
    return hn_run_cut(s->vocab_ops, &(hn_run){s->id, s->value, s->key, n, false, target, 0, INFINITY});
}

static float largest(const float *w, int n) {
    float most = 0;
    for (int i = 0; i < n; i++) most = w[i] > most ? w[i] : most;
    return most;
}

/* The least weight that top-p and min-p may keep; sum: of masses, most: the largest weight. */
static float probability_floor(const hn_sampler *s, double sum, float most) {
    const hunch_sampling *p = &s->params;
    double least = fmax(p->min_p * (double)most, (double)FLT_TRUE_MIN);
    if (p->top_p < 1) least = fmax(least, fmax((1 - p->top_p) * sum / s->vocab - HN_MASS_UNIT, 0x1p-36));
    return float_above(least);
}

/* top-p over n weighted candidates none of which is below `least`. */
static int top_p_cut(hn_sampler *s, int n, double sum, float least) {
    if (s->params.top_p == 1) return n;
    return hn_run_cut(s->vocab_ops, &(hn_run){s->id, s->value, s->value, n, false, s->params.top_p * sum, least, 1});
}

/* top-p and min-p over n weighted candidates, the largest of weight `most`. */
static int cut_by_probability(hn_sampler *s, int n, float most) {
    const double sum = s->params.top_p < 1 ? mass_sum(s, n) : 0;
    const float least = probability_floor(s, sum, most);
    return top_p_cut(s, s->vocab_ops->keep(s->value, n, least, s->id, s->value), sum, least);
}

/* The same over all tokens. */
static int gather_by_probability(hn_sampler *s, const float *l, float max) {
    const float scale = hn_sampler_scale(s);
    double sum = 0;
    if (s->params.top_p < 1) /* less than half a unit has no mass */
        sum = (double)s->vocab_ops->mass(l, s->vocab, s->bucket, logit_floor(s, max, 0x1p-35), max, scale) * HN_MASS_UNIT;
    const float least = probability_floor(s, sum, 1);
    int n = s->vocab_ops->gather(l, s->vocab, s->bucket, logit_floor(s, max, (double)least), s->id, s->value);
    s->vocab_ops->weights(s->value, n, max, scale, s->value);
    n = s->vocab_ops->keep(s->value, n, least, s->id, s->value);
    return top_p_cut(s, n, sum, least);
}

/* The first index from i on with a weight of at least this; n: none. */
static int next_from(const float *w, int i, int n, float least) {
    for (; i < n; i += HN_VOCAB_BUCKET) {
        const int stop = n - i < HN_VOCAB_BUCKET ? n : i + HN_VOCAB_BUCKET;
        int any = 0;
        for (int j = i; j < stop; j++) any |= w[j] >= least;
        if (any) break;
    }
    while (i < n && !(w[i] >= least)) i++;
    return i < n ? i : n;
}

static int xtc_cut(hn_sampler *s, int n) {
    const float least = float_above(s->params.xtc_threshold * mass_sum(s, n));
    int stays = n; /* the least likely of those at or above the threshold, the first of equal ones */
    for (int i = next_from(s->value, 0, n, least); i < n; i = next_from(s->value, i + 1, n, least))
        if (stays == n || s->value[i] < s->value[stays]) stays = i;
    int kept = 0, from = 0;
    for (int i = 0; i < n; from = i + 1) { /* moves the candidates up to the next one that is dropped */
        i = next_from(s->value, from, n, least);
        if (i == stays) i = next_from(s->value, i + 1, n, least);
        memmove(s->id + kept, s->id + from, (size_t)(i - from) * sizeof *s->id);
        memmove(s->value + kept, s->value + from, (size_t)(i - from) * sizeof *s->value);
        kept += i - from;
    }
    return kept;
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

static bool typical_cuts(const hn_sampler *s) { return s->params.typical_p > 0 && s->params.typical_p < 1; }

bool hn_support_is_all(const hn_sampler *s) {
    const hunch_sampling *p = &s->params;
    return !top_k_cuts(s) && !typical_cuts(s) && p->top_n_sigma == 0 && p->top_p == 1 && p->min_p == 0;
}

float hn_support_maxima(hn_sampler *s, const float *l) { return s->vocab_ops->maxima(l, s->vocab, s->bucket); }

int32_t hn_support_best(const hn_sampler *s, const float *l, float max) {
    int b = 0;
    while (s->bucket[b] != max) b++;
    int32_t i = b * HN_VOCAB_BUCKET;
    while (l[i] != max) i++;
    return i;
}

int hn_support_build(hn_sampler *s, const float *l, float max, bool xtc) {
    const bool upper = top_k_cuts(s) || s->params.top_n_sigma > 0, typical = typical_cuts(s);
    assert(max > -INFINITY);
    int n;
    if (!upper && !typical) {
        n = gather_by_probability(s, l, max);
    } else {
        n = upper ? cut_by_logit(s, l, max)
                  : s->vocab_ops->gather(l, s->vocab, s->bucket, logit_floor(s, max, (double)FLT_TRUE_MIN), s->id, s->value);
        if (typical) memcpy(s->key, s->value, (size_t)n * sizeof *s->key);
        s->vocab_ops->weights(s->value, n, max, hn_sampler_scale(s), s->value);
        if (typical) n = typical_cut(s, n, max);
        n = cut_by_probability(s, n, typical ? largest(s->value, n) : 1);
    }
    return xtc ? xtc_cut(s, n) : n;
}
