/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c - the distribution after a history, one draw from it, and log-probabilities. processors.c changes logits, support.c computes
 * the distribution; verify.c uses the draw.
 *
 * A draw is a race over the support. Shortcuts that change no result:
 *   - e = -log(u) >= 1 - u, so a token with 1 - u >= best·w cannot win the race and needs no logarithm; the upper half of
 *     its random number bounds u from above, which a vector loop tests for 64 ids at once;
 *   - u <= 1 - 2^-53, so a bucket of 64 logits too low to win with the luckiest u needs no random numbers;
 *   - the largest weight of a bucket is computed first, and the others only if one of its tokens may win.
 */
#include "sample/sampler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "sample/processors.h"
#include "sample/support.h"

/* ---- life ------------------------------------------------------------------------------------------------------- */

static bool workspace_alloc(hn_sampler *s) {
    const size_t vocab = (size_t)s->vocab;
    const double typical = s->params.typical_p;
    s->id = hn_zalloc(vocab, sizeof *s->id);
    s->value = hn_zalloc(vocab, sizeof *s->value);
    s->bucket = hn_zalloc((size_t)hn_vocab_buckets(s->vocab), sizeof *s->bucket);
    if (typical > 0 && typical < 1) s->key = hn_zalloc(vocab, sizeof *s->key);
    return s->id && s->value && s->bucket && (s->key || typical == 0 || typical == 1);
}

hunch_status hn_sampler_init(hn_sampler *s, const hunch_sampling *p, int vocab, hunch_error *err) {
    memset(s, 0, sizeof *s);
    s->params = *p;
    s->params.dry_breakers = NULL;
    s->params.n_dry_breakers = 0;
    s->rng = hn_rng_philox;
    s->vocab = vocab;
    s->vocab_ops = hn_vocab_ops_best();
    hunch_status st = HUNCH_OK;
    if (!workspace_alloc(s)) st = hn_fail_memory(err, "a sampler", (size_t)vocab * (sizeof *s->id + sizeof *s->value));
    if (!st) st = hn_processors_init(s, err);
    if (st) hn_sampler_fini(s);
    return st;
}

size_t hn_sampler_bytes(const hn_sampler *s) {
    const size_t vocab = (size_t)s->vocab;
    if (vocab == 0) return 0;
    return vocab * (sizeof *s->id + sizeof *s->value + (s->key ? sizeof *s->key : 0)) + hn_processors_bytes(s, false);
}

size_t hn_sampler_most_bytes(int vocab) {
    const hn_sampler s = {.vocab = vocab};
    return (size_t)vocab * (sizeof *s.id + sizeof *s.value + sizeof *s.key) + hn_processors_bytes(&s, true);
}

void hn_sampler_fini(hn_sampler *s) {
    hn_processors_fini(s);
    hn_free(s->id);
    hn_free(s->value);
    hn_free(s->bucket);
    hn_free(s->key);
    memset(s, 0, sizeof *s);
}

/* ---- the race --------------------------------------------------------------------------------------------------- */

typedef struct race {
    hn_sampler *s;
    hn_random_key key;
    double time;    /* e / weight of the winner so far */
    int32_t winner;
} race;

static void race_enter(race *r, int32_t id, float w) {
    r->key.token = (uint32_t)id;
    double u = r->s->rng.uniform(r->s->rng.ctx, &r->key);
    if ((1 - u) * 0.999 >= r->time * (double)w) return;
    double time = -log(u) / (double)w;
    if (time < r->time || (time == r->time && id < r->winner)) {
        r->time = time;
        r->winner = id;
    }
}

/* The race over all tokens, with the noise of hn_rng_philox. Replaces the largest logits of buckets by their weights. */
static void race_all(race *r, const float *l, float max, int32_t best) {
    const hn_sampler *s = r->s;
    const float scale = hn_sampler_scale(s);
    const int buckets = hn_vocab_buckets(s->vocab);
    s->vocab_ops->weights(s->bucket, buckets, max, scale, s->bucket);
    race_enter(r, best, 1.0f); /* first: it rules out most others */
    for (int b = 0;; b++) {
        float w[HN_VOCAB_BUCKET];
        uint64_t may;
        b = s->vocab_ops->race(l, s->vocab, s->bucket, b, max, scale, (float)r->time, &r->key, &may, w);
        if (b == buckets) return;
        for (; may; may &= may - 1) {
            const int i = __builtin_ctzll(may);
            if (b * HN_VOCAB_BUCKET + i != best) race_enter(r, b * HN_VOCAB_BUCKET + i, w[i]);
        }
    }
}

/* The race over the support, with the noise of hn_rng_philox. */
static void race_support(race *r, int n) {
    const hn_sampler *s = r->s;
    int best = 0;
    for (int i = 1; i < n; i++) best = s->value[i] > s->value[best] ? i : best;
    race_enter(r, s->id[best], s->value[best]);
    for (int first = 0; first < n; first += HN_VOCAB_BUCKET) {
        const int left = n - first < HN_VOCAB_BUCKET ? n - first : HN_VOCAB_BUCKET;
        int32_t id[HN_VOCAB_BUCKET] = {0};
        float w[HN_VOCAB_BUCKET] = {0};
        memcpy(id, s->id + first, (size_t)left * sizeof *id);
        memcpy(w, s->value + first, (size_t)left * sizeof *w); /* beyond the end weights are 0: no bit */
        uint64_t may = s->vocab_ops->race_ids(id, w, (float)r->time, &r->key);
        for (; may; may &= may - 1) race_enter(r, id[__builtin_ctzll(may)], w[__builtin_ctzll(may)]);
    }
}

/* The draw by a replaced rng.draw, which takes doubles: only in tests. */
static int32_t draw_replaced(const hn_sampler *s, const hn_random_key *key, int n) {
    double *weight = hn_zalloc((size_t)n, sizeof *weight);
    if (!weight) return -1;
    for (int i = 0; i < n; i++) weight[i] = (double)s->value[i];
    const int i = hn_rng_draw(&s->rng, key, s->id, weight, n);
    hn_free(weight);
    return i < 0 ? -1 : s->id[i];
}

/* ---- distribution and draw ----------------------------------------------------------------------------------------------- */

static bool xtc_acts(const hn_sampler *s, uint64_t position) {
    const hn_random_key key = {.seed = s->params.seed, .position = position, .purpose = HN_PURPOSE_XTC};
    return s->params.xtc_probability > 0 && hn_rng_accept(&s->rng, &key, s->params.xtc_probability);
}

bool hn_sampler_takes_best(const hn_sampler *s, uint64_t position) {
    return s->params.temperature == 0 && !hn_processors_act(s, position);
}

bool hn_sampler_is_plain(const hn_sampler *s) {
    const hunch_sampling *p = &s->params;
    const bool typical = p->typical_p > 0 && p->typical_p < 1;
    return !hn_processors_act(s, 0) && !s->n_forbidden && p->xtc_probability == 0 && p->top_n_sigma == 0 && !typical;
}

hn_draw hn_sampler_describe(const hn_sampler *s, uint64_t position) {
    const hunch_sampling *p = &s->params;
    return (hn_draw){.seed = p->seed, .position = position, .top_p = p->top_p, .min_p = p->min_p,
                     .scale = p->temperature > 0 ? hn_sampler_scale(s) : 0, .top_k = p->top_k};
}

int hn_sampler_support_limit(const hn_sampler *s) {
    if (s->params.temperature == 0) return 1;
    return s->params.top_k > 0 && s->params.top_k < s->vocab ? s->params.top_k : s->vocab;
}

int32_t hn_sampler_draw(hn_sampler *s, const float *logits, const hn_history *h, int32_t greedy_hint) {
    assert(greedy_hint < s->vocab);
    if (s->params.temperature == 0) return hn_processors_best(s, logits, h, greedy_hint);
    const float *l = hn_processors_apply(s, logits, h);
    const float max = hn_support_maxima(s, l);
    if (max == -INFINITY) return -1;
    race r = {.s = s, .time = INFINITY, .winner = -1,
              .key = {.seed = s->params.seed, .position = hn_history_position(h), .purpose = HN_PURPOSE_TARGET}};
    const bool xtc = xtc_acts(s, r.key.position);
    const bool philox = !s->rng.draw && s->rng.uniform == hn_rng_philox.uniform;
    if (philox && !xtc && hn_support_is_all(s)) {
        race_all(&r, l, max, hn_support_best(s, l, max));
        return r.winner;
    }
    const int n = hn_support_build(s, l, max, xtc);
    if (s->rng.draw) return draw_replaced(s, &r.key, n);
    if (philox) race_support(&r, n);
    else
        for (int i = 0; i < n; i++) race_enter(&r, s->id[i], s->value[i]);
    return r.winner;
}

/* The distribution if only temperature changes the logits': a token's weight can be computed without the others. */
static void dist_of_all(const hn_sampler *s, const float *l, float max, float scale, hn_dist *out) {
    *out = (hn_dist){.logits = l, .max = max, .scale = scale, .n = s->vocab,
                    .sum = s->vocab_ops->weigh(l, s->vocab, max, scale)};
}

void hn_sampler_softmax(hn_sampler *s, const float *logits, const hn_history *h, hn_dist *out) {
    const float *l = hn_processors_apply(s, logits, h), max = hn_support_maxima(s, l);
    *out = (hn_dist){.n = 0};
    if (max > -INFINITY) dist_of_all(s, l, max, 1, out);
}

void hn_sampler_dist_lazy(hn_sampler *s, const float *logits, const hn_history *h, hn_dist *out) {
    const float *l = hn_processors_apply(s, logits, h), max = hn_support_maxima(s, l);
    *out = (hn_dist){.id = s->id, .weight = s->value};
    if (max == -INFINITY) return;
    if (s->params.temperature == 0) {
        s->id[0] = hn_support_best(s, l, max);
        s->value[0] = 1;
        out->n = 1;
        out->sum = 1;
        return;
    }
    const bool xtc = xtc_acts(s, hn_history_position(h));
    if (!xtc && hn_support_is_all(s)) {
        dist_of_all(s, l, max, hn_sampler_scale(s), out);
        return;
    }
    out->n = hn_support_build(s, l, max, xtc);
    out->sum = s->vocab_ops->sum(s->value, out->n);
}

void hn_dist_list(hn_sampler *s, hn_dist *dist) {
    if (dist->id) return;
    dist->id = s->id;
    dist->weight = s->value;
    dist->n = hn_support_build(s, dist->logits, dist->max, false);
}

void hn_sampler_dist(hn_sampler *s, const float *logits, const hn_history *h, hn_dist *out) {
    hn_sampler_dist_lazy(s, logits, h, out);
    if (out->n > 0) hn_dist_list(s, out);
}

int hn_dist_find(const int32_t *id, int n, int32_t token) {
    int low = 0, left = n;
    if (token < n && id[token] == token) return token; /* the whole vocabulary */
    while (left > 0) {
        const int half = left / 2;
        if (id[low + half] < token)
            low += half + 1, left -= half + 1;
        else
            left = half;
    }
    return low < n && id[low] == token ? low : -1;
}

void hn_dist_weights(const hn_sampler *s, const hn_dist *dist, int first, int n, float *w) {
    s->vocab_ops->weights(dist->logits + first, n, dist->max, dist->scale, w);
}

float hn_dist_weight(const hn_sampler *s, const hn_dist *dist, int32_t token) {
    if (dist->id) {
        const int i = hn_dist_find(dist->id, dist->n, token);
        return i < 0 ? 0 : dist->weight[i];
    }
    float w;
    hn_dist_weights(s, dist, token, 1, &w);
    return w;
}

int32_t hn_dist_token_at(const hn_sampler *s, const hn_dist *dist, double u) {
    float w[HN_VOCAB_BUCKET];
    double before = 0, passed = 0;
    int bucket = 0;
    int32_t last = -1;
    for (int i = 0; i < dist->n && passed <= dist->sum * u; i += HN_VOCAB_BUCKET) { /* finds its bucket, or the last one with weight */
        const int n = dist->n - i < HN_VOCAB_BUCKET ? dist->n - i : HN_VOCAB_BUCKET;
        const double more = s->vocab_ops->weigh(dist->logits + i, n, dist->max, dist->scale);
        if (!(more > 0)) continue;
        bucket = i;
        before = passed;
        passed += more;
    }
    const int n = dist->n - bucket < HN_VOCAB_BUCKET ? dist->n - bucket : HN_VOCAB_BUCKET;
    hn_dist_weights(s, dist, bucket, n, w);
    passed = before;
    for (int i = 0; i < n && passed <= dist->sum * u; i++)
        if (w[i] > 0) passed += (double)w[i], last = bucket + i;
    return last;
}

/* The constants that convert logits to log-probabilities. False: no token can be drawn. */
static bool softmax_of(const float *logits, int vocab, float *max, double *log_sum) {
    const hn_vocab_ops *vocab_ops = hn_vocab_ops_best();
    const int32_t best = vocab_ops->argmax(logits, vocab);
    if (best < 0) return false;
    *max = logits[best];
    *log_sum = log(vocab_ops->weigh(logits, vocab, *max, 1));
    return true;
}

static double logprob_of(float l, float max, double log_sum) {
    if (!(l > -INFINITY)) return -INFINITY;
    return (l == max ? 0 : (double)l - (double)max) - log_sum; /* max may be +inf */
}

double hn_logprob(const float *logits, int vocab, int32_t token) {
    float max;
    double log_sum;
    return softmax_of(logits, vocab, &max, &log_sum) ? logprob_of(logits[token], max, log_sum) : NAN;
}

void hn_logprob_top(const float *logits, int vocab, hunch_logprob *top, int n) {
    int found = 0;
    for (int32_t i = 0; i < vocab; i++) {
        const float l = isnan(logits[i]) ? -INFINITY : logits[i];
        if (found == n && !(l > top[n - 1].logprob)) continue;
        int at = found < n ? found++ : n - 1;
        for (; at > 0 && l > top[at - 1].logprob; at--) top[at] = top[at - 1];
        top[at] = (hunch_logprob){i, l};
    }
    float max;
    double log_sum;
    const bool is = softmax_of(logits, vocab, &max, &log_sum);
    for (int i = 0; i < n; i++) top[i].logprob = is ? (float)logprob_of(top[i].logprob, max, log_sum) : NAN;
}
