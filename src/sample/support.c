/* SPDX-License-Identifier: Apache-2.0 */
/* support.c - from processed logits to the support of the law and its weights, without sorting a vocabulary.
 *
 * The law, exactly. m = largest logit that is no NaN. Every token has the weight w = e^((l - m) / T) in float32, computed
 * by lanes.h; T enters as one float32 reciprocal. Then, in this order,
 *   top-n-sigma  keeps logits of at least m - n·σ, σ the standard deviation of the finite logits;
 *   top-k        keeps the k tokens of largest logit, ties to the lowest id;
 *   typical      keeps the shortest run of tokens in order of rising |z - mean of z|, z = (l - m) / T (ties: rising id),
 *                whose masses reach typical_p times the sum. -log P(x) and the entropy are both the same affine function,
 *                of z and of its mean, so this is the distance of 2202.00666;
 *   top-p        keeps the shortest run of tokens in order of falling weight (ties: rising id) whose masses reach p times
 *                the sum over what is left. The mass is the weight rounded to a multiple of 2^-34: sums of such numbers are
 *                exact in a double, so no order of summation has to be kept;
 *   min-p        keeps weights of at least min_p times the largest left;
 *   XTC          where it acts, drops the tokens of at least xtc_threshold times the sum of masses but the least likely of
 *                them, ties to the lowest id.
 * P(x) = w(x) / sum of the kept weights. So the law is a function of the logits and parameters alone.
 *
 * Shortcuts below change no result:
 *   - top-n-sigma and top-k both keep an upper end of the logits, so whichever is cheaper comes first;
 *   - a token of weight under (1-p)·sum/V, less a unit of mass, is never in the top-p set: the last token kept and all
 *     behind it hold more than (1-p)·sum together, and there are at most V of them. Nor is one without mass;
 *   - a run ends in one bucket of its key (exponent and three bits), and only that bucket is sorted.
 */
#include "sample/support.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = 16 }; /* partial sums and maxima, so that loops become vectors; results do not depend on the level */

int32_t hn_argmax(const float *l, int n) {
    float lane[LANES], best = -INFINITY;
    for (int j = 0; j < LANES; j++) lane[j] = -INFINITY;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] = l[i + j] > lane[j] ? l[i + j] : lane[j]; /* NaN compares false */
    for (; i < n; i++) best = l[i] > best ? l[i] : best;
    for (int j = 0; j < LANES; j++) best = lane[j] > best ? lane[j] : best;
    if (best == -INFINITY) return -1;
    for (i = 0; l[i] != best; i++) {}
    return i;
}

bool hn_any_above(const float *l, int n, float threshold) {
    int any = 0;
    for (int i = 0; i < n; i++) any |= l[i] > threshold;
    return any;
}

/* Tiny temperatures saturate, and every logit below the largest then weighs 0. */
float hn_sampler_scale(const hn_sampler *s) {
    double scale = 1.0 / s->params.temperature;
    return scale < 1e38 ? (float)scale : 1e38f;
}

/* ---- masses ----------------------------------------------------------------------------------------------------- */

/* A weight in multiples of 2^-34. A sum of such numbers is exact in any order while it stays under 2^19. */
static inline double mass_of(float w) {
    const double round = 0x1.8p18; /* the sum's last bit counts 2^-34 */
    return ((double)w + round) - round;
}

static double mass_sum(const float *w, int n) {
    double lane[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += mass_of(w[i + j]);
    for (; i < n; i++) sum += mass_of(w[i]);
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

/* ---- candidates ------------------------------------------------------------------------------------------------- */

/* Candidates in parallel arrays; those of larger key come first, ties by id. The key may be the weight itself. */
typedef struct candidates {
    int32_t *id;
    float *weight, *key;
} candidates;
/* Says whether candidate a stands nearer to the root of a heap than b. */
typedef bool (*heap_order)(const candidates *c, int a, int b);
static bool better(const candidates *c, int a, int b) {
    return c->key[a] > c->key[b] || (c->key[a] == c->key[b] && c->id[a] < c->id[b]);
}
static bool worse(const candidates *c, int a, int b) { return better(c, b, a); }

static void swap(const candidates *c, int a, int b) {
    const int32_t id = c->id[a];
    const float weight = c->weight[a], key = c->key[a];
    c->id[a] = c->id[b], c->weight[a] = c->weight[b], c->key[a] = c->key[b];
    c->id[b] = id, c->weight[b] = weight, c->key[b] = key;
}

static void heap_sink(const candidates *c, int at, int n, heap_order up) {
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && up(c, child + 1, child)) child++;
        if (!up(c, child, at)) return;
        swap(c, child, at);
    }
}

static void heap_build(const candidates *c, int n, heap_order up) {
    for (int i = n / 2 - 1; i >= 0; i--) heap_sink(c, i, n, up);
}

/* Keys are 0 or above and fall into buckets by exponent and three bits. */
enum { BUCKET_SHIFT = 20, BUCKETS = (0x7F800000 >> BUCKET_SHIFT) + 1 };
static int bucket_of(float key) {
    uint32_t bits;
    memcpy(&bits, &key, sizeof bits);
    return (int)(bits >> BUCKET_SHIFT);
}

/* Moves the candidates of [from, n) whose bucket is at least `least` to its front; returns where they end. */
static int bucket_gather(const candidates *c, int from, int n, int least) {
    for (int i = from; i < n; i++)
        if (bucket_of(c->key[i]) >= least) swap(c, i, from++);
    return from;
}

/* Brings the shortest run of first candidates whose masses reach `target` to the front; returns its length. */
static int run_cut(candidates c, int n, double target) {
    double mass[BUCKETS] = {0}, sum = 0;
    int last = 0; /* from the first bucket to the one where the run ends */
    for (int i = 0; i < n; i++) {
        const int bucket = bucket_of(c.key[i]);
        mass[bucket] += mass_of(c.weight[i]);
        last = bucket > last ? bucket : last;
    }
    for (; last > 0 && sum + mass[last] < target; last--) sum += mass[last];
    const int kept = bucket_gather(&c, 0, n, last + 1);
    const candidates end = {c.id + kept, c.weight + kept, c.key + kept};
    const int left = bucket_gather(&c, kept, n, last) - kept;
    /* pop the best of the last bucket one by one behind the others */
    heap_build(&end, left, better);
    int popped = 0;
    for (; popped < left && sum < target; popped++) {
        sum += mass_of(end.weight[0]);
        swap(&end, 0, left - 1 - popped);
        heap_sink(&end, 0, left - 1 - popped, better);
    }
    for (int i = 0; i < popped && i < left - 1 - i; i++) swap(&end, i, left - 1 - i);
    return kept + popped;
}

/* ---- an upper end of the logits --------------------------------------------------------------------------------- */

/* The smallest float that is not below x: v >= x and v >= this say the same of a float v. */
static float float_above(double x) {
    const float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

/* Candidates of at least `least` to the front of id and value, in order; returns how many. from: their values, s->value or
 * another array. ids == false: values stand at their token ids, ids are made. */
static int floor_filter(hn_sampler *s, const float *from, int n, double least, bool ids) {
    enum { BLOCK = 64 };
    const float lowest = float_above(least);
    int kept = 0;
    for (int i = 0; i < n; i += BLOCK) {
        const int end = n - i < BLOCK ? n : i + BLOCK;
        int above = 0;
        for (int j = i; j < end; j++) above += from[j] >= lowest;
        for (int j = i; above > 0 && j < end; j++) {
            const float v = from[j];
            s->id[kept] = ids ? s->id[j] : j;
            s->value[kept] = v;
            kept += v >= lowest;
        }
    }
    return kept;
}

/* The k largest logits as a heap, the worst at its root: an id in ascending order enters only by a larger logit.
 * Ids and logits go to id and value; returns how many (fewer than k if the rest is NaN or -inf). */
static int top_k_select(hn_sampler *s, const float *l, int k) {
    enum { BLOCK = 64 };
    const candidates c = {s->id, s->value, s->value};
    int n = 0, i = 0;
    for (; i < s->vocab && n < k; i++)
        if (l[i] > -INFINITY) s->id[n] = i, s->value[n++] = l[i];
    if (n < k) return n;
    heap_build(&c, n, worse);
    while (i < s->vocab) {
        int end = i + BLOCK < s->vocab ? i + BLOCK : s->vocab;
        if (!hn_any_above(l + i, end - i, s->value[0])) i = end;
        for (; i < end; i++)
            if (l[i] > s->value[0]) {
                s->id[0] = i, s->value[0] = l[i];
                heap_sink(&c, 0, n, worse);
            }
    }
    return n;
}

/* The smallest logit that top-n-sigma keeps. */
static double sigma_floor(const hn_sampler *s, const float *l, float max) {
    double count[LANES] = {0}, sum[LANES] = {0}, squares[LANES] = {0};
    if (max == INFINITY) return INFINITY;
    for (int i = 0; i < s->vocab; i += LANES) {
        const int n = s->vocab - i < LANES ? s->vocab - i : LANES;
        for (int j = 0; j < n; j++) {
            const double in = l[i + j] > -INFINITY, x = l[i + j] > -INFINITY ? (double)max - (double)l[i + j] : 0;
            count[j] += in;
            sum[j] += x;
            squares[j] += x * x;
        }
    }
    for (int j = 1; j < LANES; j++) count[0] += count[j], sum[0] += sum[j], squares[0] += squares[j];
    const double mean = sum[0] / count[0], variance = fmax(squares[0] / count[0] - mean * mean, 0);
    return (double)max - s->params.top_n_sigma * sqrt(variance);
}

static bool top_k_cuts(const hn_sampler *s) { return s->params.top_k > 0 && s->params.top_k < s->vocab; }

/* Applies top-n-sigma and top-k: ids and logits into id and value. */
static int upper_end(hn_sampler *s, const float *l, float max) {
    const bool sigma = s->params.top_n_sigma > 0;
    const double least = sigma ? sigma_floor(s, l, max) : -INFINITY;
    if (!top_k_cuts(s)) return floor_filter(s, l, s->vocab, least, false);
    const int n = top_k_select(s, l, s->params.top_k);
    return sigma ? floor_filter(s, s->value, n, least, true) : n;
}

/* ---- cuts by probability ---------------------------------------------------------------------------------------- */

/* Keys of falling order for what is sorted by a rising distance >= 0: bits of positive floats are ordered like integers. */
static float key_of_distance(float distance) {
    uint32_t bits;
    float key;
    memcpy(&bits, &distance, sizeof bits);
    bits = 0x7F800000 - bits;
    memcpy(&key, &bits, sizeof key);
    return key;
}

/* 0 for what cannot be drawn, so that it adds nothing. max may be +inf. */
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

/* Locally typical sampling over n weighted candidates with their logits as keys. What cannot be drawn comes last: the run
 * ends before it. */
static int typical_cut(hn_sampler *s, int n, float max) {
    const float scale = hn_sampler_scale(s);
    const double mean = z_mean(s->value, s->key, n, max, scale);
    for (int i = 0; i < n; i++) {
        const float distance = (float)fabs(z_of(s->value[i], s->key[i], max, scale) - mean);
        s->key[i] = key_of_distance(s->value[i] > 0 ? distance : INFINITY);
    }
    return run_cut((candidates){s->id, s->value, s->key}, n, s->params.typical_p * mass_sum(s->value, n));
}

static float largest(const float *w, int n) {
    float most = 0;
    for (int i = 0; i < n; i++) most = w[i] > most ? w[i] : most;
    return most;
}

/* top-p and min-p over n weighted candidates, the largest of weight `most`. */
static int probable_cut(hn_sampler *s, int n, float most, bool ids) {
    const hunch_sampling *p = &s->params;
    double least = p->min_p * (double)most, target = 0;
    if (p->top_p < 1) {
        double sum = mass_sum(s->value, n), never = (1 - p->top_p) * sum / s->vocab - 0x1p-34;
        target = p->top_p * sum;
        least = fmax(least, fmax(never, 0x1p-36));
    }
    n = floor_filter(s, s->value, n, fmax(least, (double)FLT_TRUE_MIN), ids);
    return p->top_p < 1 ? run_cut((candidates){s->id, s->value, s->value}, n, target) : n;
}

static int xtc_cut(hn_sampler *s, int n) {
    const double least = s->params.xtc_threshold * mass_sum(s->value, n);
    int above = -1; /* the least likely of those at or above the threshold */
    for (int i = 0; i < n; i++) {
        if ((double)s->value[i] < least) continue;
        const bool lower = above < 0 || s->value[i] < s->value[above];
        if (lower || (s->value[i] == s->value[above] && s->id[i] < s->id[above])) above = i;
    }
    if (above < 0) return n;
    const int32_t id = s->id[above];
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const int32_t token = s->id[i];
        const float w = s->value[i];
        s->id[kept] = token;
        s->value[kept] = w;
        kept += (double)w < least || token == id;
    }
    return kept;
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

static bool typical_cuts(const hn_sampler *s) { return s->params.typical_p > 0 && s->params.typical_p < 1; }

bool hn_support_is_all(const hn_sampler *s) {
    const hunch_sampling *p = &s->params;
    return !top_k_cuts(s) && !typical_cuts(s) && p->top_n_sigma == 0 && p->top_p == 1 && p->min_p == 0;
}

int hn_support_build(hn_sampler *s, const float *l, int32_t best, bool xtc) {
    const float max = l[best];
    float most = 1;
    bool ids = top_k_cuts(s) || s->params.top_n_sigma > 0;
    int n = ids ? upper_end(s, l, max) : s->vocab;
    if (typical_cuts(s)) memcpy(s->key, ids ? s->value : l, (size_t)n * sizeof *l);
    s->lanes->weights(ids ? s->value : l, n, max, hn_sampler_scale(s), s->value);
    if (typical_cuts(s)) {
        for (int i = 0; !ids && i < n; i++) s->id[i] = i;
        n = typical_cut(s, n, max);
        most = largest(s->value, n);
        ids = true;
    }
    n = probable_cut(s, n, most, ids);
    return xtc ? xtc_cut(s, n) : n;
}
