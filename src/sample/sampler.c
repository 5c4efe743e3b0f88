/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c - the target's law and one draw from it. Which rule uses the draw stands in verify.c.
 *
 * The law, exactly. m = largest logit that is no NaN. Every token has the weight w = e^((l - m) / T) in float32, computed
 * by lanes.h; T enters as one float32 reciprocal. Then, in this order,
 *   top-k  keeps the k tokens of largest logit, ties to the lowest id;
 *   top-p  keeps the shortest run of tokens in order of falling weight (ties: rising id) whose masses reach p times the
 *          sum over what top-k left. The mass is the weight rounded to a multiple of 2^-34: sums of such numbers are exact
 *          in a double, so no order of summation has to be kept;
 *   min-p  keeps weights of at least min_p (the largest weight is 1).
 * P(x) = w(x) / sum of the kept weights. So the law is a function of the logits and parameters alone.
 *
 * Shortcuts below change no result:
 *   - a token of weight under (1-p)·sum/V, less a unit of mass, is never in the top-p set: the last token kept and all
 *     behind it hold more than (1-p)·sum together, and there are at most V of them. Nor is one without mass;
 *   - top-p finds the bucket of weights (exponent and three bits) where the run ends, and sorts that bucket alone;
 *   - e = -log(u) >= 1 - u, so a token with 1 - u >= best·w cannot win the race and needs no logarithm; the upper half of
 *     its random number bounds u from above, which a vector loop tests for 64 ids at once;
 *   - u <= 1 - 2^-53, so a block of logits too low to win with the luckiest u needs no random numbers.
 */
#include "sample/sampler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

static double uniform_philox(void *ctx HN_UNUSED, const hn_random_key *key) {
    return hn_random_uniform(key);
}
const hn_coins hn_coins_philox = {uniform_philox, NULL};

/* ---- parameters ----------------------------------------------------------------------------------------------------- */

hunch_status hn_sampling_check(const hunch_sampling *p, hunch_error *err) {
    if (!(p->temperature >= 0 && p->temperature <= 1000))
        return hn_fail(err, HUNCH_USAGE, "temperature=%g, expected a number from 0 (greedy) to 1000", p->temperature);
    if (p->top_k < 0) return hn_fail(err, HUNCH_USAGE, "top_k=%d, expected 0 (off) or more", p->top_k);
    if (!(p->top_p > 0 && p->top_p <= 1))
        return hn_fail(err, HUNCH_USAGE, "top_p=%g, expected a number above 0, up to 1 (off)", p->top_p);
    if (!(p->min_p >= 0 && p->min_p <= 1))
        return hn_fail(err, HUNCH_USAGE, "min_p=%g, expected a number from 0 (off) to 1", p->min_p);
    return HUNCH_OK;
}

hunch_status hn_sampler_init(hn_sampler *s, const hunch_sampling *p, int vocab, hunch_error *err) {
    memset(s, 0, sizeof *s);
    hunch_status st = hn_sampling_check(p, err);
    if (st) return st;
    s->params = *p;
    s->coins = hn_coins_philox;
    s->vocab = vocab;
    s->lanes = hn_lanes_for(hn_isa_best());
    s->id = hn_zalloc((size_t)vocab, sizeof *s->id);
    s->value = hn_zalloc((size_t)vocab, sizeof *s->value);
    if (!s->id || !s->value) {
        hn_sampler_fini(s);
        return hn_fail_memory(err, "a sampler", (size_t)vocab * (sizeof *s->id + sizeof *s->value));
    }
    return HUNCH_OK;
}

void hn_sampler_fini(hn_sampler *s) {
    hn_free(s->id);
    hn_free(s->value);
    memset(s, 0, sizeof *s);
}

/* ---- weights ---------------------------------------------------------------------------------------------------------- */

enum { LANES = 16 };

/* Lowest id of the largest logit; -1: nothing but NaN and -inf. */
static int32_t argmax(const float *l, int n) {
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

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* 1/T; tiny temperatures saturate, and every logit below the largest then weighs 0. */
static float scale_of(const hn_sampler *s) {
    double scale = 1.0 / s->params.temperature;
    return scale < 1e38 ? (float)scale : 1e38f;
}

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

/* ---- the support -------------------------------------------------------------------------------------------------------- */

/* A heap of pairs (id, value). `up` says whether a stands nearer to the root than b. */
typedef struct pairs {
    int32_t *id;
    float *value;
} pairs;
typedef bool (*heap_order)(float va, int32_t ia, float vb, int32_t ib);
static bool better(float va, int32_t ia, float vb, int32_t ib) { return va > vb || (va == vb && ia < ib); }
static bool worse(float va, int32_t ia, float vb, int32_t ib) { return better(vb, ib, va, ia); }

static void pair_swap(pairs h, int a, int b) {
    int32_t id = h.id[a];
    float value = h.value[a];
    h.id[a] = h.id[b], h.value[a] = h.value[b];
    h.id[b] = id, h.value[b] = value;
}

static void heap_sink(pairs h, int at, int n, heap_order up) {
    for (int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && up(h.value[child + 1], h.id[child + 1], h.value[child], h.id[child])) child++;
        if (!up(h.value[child], h.id[child], h.value[at], h.id[at])) return;
        pair_swap(h, child, at);
    }
}

static void heap_build(pairs h, int n, heap_order up) {
    for (int i = n / 2 - 1; i >= 0; i--) heap_sink(h, i, n, up);
}

static bool any_above(const float *l, int n, float threshold) {
    int any = 0;
    for (int i = 0; i < n; i++) any |= l[i] > threshold;
    return any;
}

/* The k largest logits as a heap, the worst at its root: an id in ascending order enters only by a larger logit.
 * Ids and logits go to id and value; returns how many (fewer than k if the rest is NaN or -inf). */
static int top_k_select(hn_sampler *s, const float *l, int k) {
    enum { BLOCK = 64 };
    const pairs h = {s->id, s->value};
    int n = 0, i = 0;
    for (; i < s->vocab && n < k; i++)
        if (l[i] > -INFINITY) s->id[n] = i, s->value[n++] = l[i];
    if (n < k) return n;
    heap_build(h, n, worse);
    while (i < s->vocab) {
        int end = i + BLOCK < s->vocab ? i + BLOCK : s->vocab;
        if (!any_above(l + i, end - i, s->value[0])) i = end;
        for (; i < end; i++)
            if (l[i] > s->value[0]) {
                s->id[0] = i, s->value[0] = l[i];
                heap_sink(h, 0, n, worse);
            }
    }
    return n;
}

/* Weights fall into buckets by exponent and three bits; 1 is the highest. */
enum { BUCKET_SHIFT = 20, BUCKETS = (0x3F800000 >> BUCKET_SHIFT) + 1 };
static int bucket_of(float w) { return (int)(bits_of(w) >> BUCKET_SHIFT); }

/* Moves the pairs of [from, n) whose bucket is at least `least` to its front; returns where they end. */
static int bucket_gather(pairs h, int from, int n, int least) {
    for (int i = from; i < n; i++)
        if (bucket_of(h.value[i]) >= least) pair_swap(h, i, from++);
    return from;
}

/* Brings the run of best pairs whose masses reach `target` to the front; returns its length. */
static int top_p_cut(hn_sampler *s, int n, double target) {
    const pairs h = {s->id, s->value};
    double mass[BUCKETS] = {0}, sum = 0;
    for (int i = 0; i < n; i++) mass[bucket_of(h.value[i])] += mass_of(h.value[i]);
    int last = BUCKETS - 1; /* the bucket where the run ends */
    for (; last > 0 && sum + mass[last] < target; last--) sum += mass[last];
    int kept = bucket_gather(h, 0, n, last + 1);
    const pairs end = {h.id + kept, h.value + kept};
    int left = bucket_gather(h, kept, n, last) - kept;
    /* pop the best of the last bucket one by one behind the others */
    heap_build(end, left, better);
    int popped = 0;
    for (; popped < left && sum < target; popped++) {
        sum += mass_of(end.value[0]);
        pair_swap(end, 0, left - 1 - popped);
        heap_sink(end, 0, left - 1 - popped, better);
    }
    for (int i = 0; i < popped && i < left - 1 - i; i++) pair_swap(end, i, left - 1 - i);
    return kept + popped;
}

/* Keeps the pairs of weight > 0 and >= least. With ids == false the values stand at their token ids, ids are made. */
static int support_filter(hn_sampler *s, int n, double least, bool ids) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        float w = s->value[i];
        s->id[kept] = ids ? s->id[i] : i;
        s->value[kept] = w;
        kept += w > 0 && (double)w >= least;
    }
    return kept;
}

/* Ids and weights of the support into id and value; returns how many. best: the argmax. */
static int support_build(hn_sampler *s, const float *l, int32_t best) {
    const hunch_sampling *p = &s->params;
    bool top_k = p->top_k > 0 && p->top_k < s->vocab;
    int n = top_k ? top_k_select(s, l, p->top_k) : s->vocab;
    s->lanes->weights(top_k ? s->value : l, n, l[best], scale_of(s), s->value);
    double least = p->min_p, target = 0;
    if (p->top_p < 1) {
        double sum = mass_sum(s->value, n), never = (1 - p->top_p) * sum / s->vocab - 0x1p-34;
        target = p->top_p * sum;
        least = fmax(least, fmax(never, 0x1p-36));
    }
    n = support_filter(s, n, least, top_k);
    return p->top_p < 1 ? top_p_cut(s, n, target) : n;
}

/* ---- the race ------------------------------------------------------------------------------------------------------------- */

typedef struct race {
    hn_sampler *s;
    hn_random_key key;
    double time;    /* of the winner so far */
    int32_t winner;
} race;

static void race_enter(race *r, int32_t id, float w) {
    r->key.token = (uint32_t)id;
    double u = r->s->coins.uniform(r->s->coins.ctx, &r->key);
    if ((1 - u) * 0.999 >= r->time * (double)w) return;
    double time = -log(u) / (double)w;
    if (time < r->time || (time == r->time && id < r->winner)) {
        r->time = time;
        r->winner = id;
    }
}

/* No token at or below this logit can win any more: e >= 2^-53. The margins are for rounding. */
static float race_floor(const race *r, float max) {
    if (max == INFINITY) return -INFINITY; /* other tokens may weigh 1 too */
    return max - fabsf(max) * 1e-6f + (float)((log(0x1p-53 / r->time) - 0.01) * r->s->params.temperature);
}

/* The race over all tokens with the noise of hn_coins_philox. */
static void race_all(race *r, const float *l, int32_t best) {
    const float max = l[best], scale = scale_of(r->s);
    race_enter(r, best, 1.0f); /* first: it makes most others impossible */
    float lowest = race_floor(r, max);
    for (int first = 0; first < r->s->vocab; first += HN_LANES_BLOCK) {
        int n = r->s->vocab - first < HN_LANES_BLOCK ? r->s->vocab - first : HN_LANES_BLOCK;
        if (!any_above(l + first, n, lowest)) continue;
        float w[HN_LANES_BLOCK], tail[HN_LANES_BLOCK];
        const float *block = l + first;
        if (n < HN_LANES_BLOCK) {
            memcpy(tail, block, (size_t)n * sizeof *l);
            for (int i = n; i < HN_LANES_BLOCK; i++) tail[i] = -INFINITY; /* weighs nothing: no bit */
            block = tail;
        }
        uint64_t may = r->s->lanes->race(block, max, scale, (float)r->time, &r->key, (uint32_t)first, w);
        if (!may) continue;
        for (int i = 0; i < n; i++)
            if (may >> i & 1 && first + i != best) race_enter(r, first + i, w[i]);
        lowest = race_floor(r, max);
    }
}

int32_t hn_sampler_draw(hn_sampler *s, const float *logits, uint64_t position, int32_t greedy_hint) {
    assert(greedy_hint < s->vocab);
    const hunch_sampling *p = &s->params;
    int32_t best = greedy_hint >= 0 ? greedy_hint : argmax(logits, s->vocab);
    if (best < 0 || p->temperature == 0) return best;
    race r = {.s = s, .time = INFINITY, .winner = -1,
              .key = {.seed = p->seed, .position = position, .purpose = HN_PURPOSE_TARGET}};
    bool all = (p->top_k == 0 || p->top_k >= s->vocab) && p->top_p == 1 && p->min_p == 0;
    if (all && s->coins.uniform == uniform_philox) {
        race_all(&r, logits, best);
        return r.winner;
    }
    int n = support_build(s, logits, best);
    for (int i = 0; i < n; i++) race_enter(&r, s->id[i], s->value[i]);
    return r.winner;
}

static double weights_sum(const float *w, int n) {
    double lane[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += (double)w[i + j];
    for (; i < n; i++) sum += (double)w[i];
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

void hn_sampler_law(hn_sampler *s, const float *logits, double *p) {
    memset(p, 0, (size_t)s->vocab * sizeof *p);
    int32_t best = argmax(logits, s->vocab);
    if (best < 0) return;
    if (s->params.temperature == 0) {
        p[best] = 1;
        return;
    }
    int n = support_build(s, logits, best);
    double sum = weights_sum(s->value, n);
    for (int i = 0; i < n; i++) p[s->id[i]] = (double)s->value[i] / sum;
}
