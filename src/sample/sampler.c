/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.c - the law after a history, one draw from it, and log-probabilities. processors.c changes logits, support.c computes
 * the law; verify.c uses the draw.
 *
 * A draw is a race over the support. Shortcuts that change no result:
 *   - e = -log(u) >= 1 - u, so a token with 1 - u >= best·w cannot win the race and needs no logarithm; the upper half of
 *     its random number bounds u from above, which a vector loop tests for 64 ids at once;
 *   - u <= 1 - 2^-53, so a block of 64 logits too low to win with the luckiest u needs no random numbers;
 *   - the largest weight of a block is computed first, and the others only if one of its tokens may win.
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
    s->block = hn_zalloc((size_t)hn_lanes_blocks(s->vocab), sizeof *s->block);
    if (typical > 0 && typical < 1) s->key = hn_zalloc(vocab, sizeof *s->key);
    return s->id && s->value && s->block && (s->key || typical == 0 || typical == 1);
}

hunch_status hn_sampler_init(hn_sampler *s, const hunch_sampling *p, int vocab, hunch_error *err) {
    memset(s, 0, sizeof *s);
    hunch_status st = hn_sampling_check(p, vocab, err);
    if (st) return st;
    s->params = *p;
    s->params.dry_breakers = NULL;
    s->params.n_dry_breakers = 0;
    s->coins = hn_coins_philox;
    s->vocab = vocab;
    s->lanes = hn_lanes_best();
    if (!workspace_alloc(s)) st = hn_fail_memory(err, "a sampler", (size_t)vocab * (sizeof *s->id + sizeof *s->value));
    if (!st) st = hn_processors_init(s, err);
    if (st) hn_sampler_fini(s);
    return st;
}

void hn_sampler_fini(hn_sampler *s) {
    hn_processors_fini(s);
    hn_free(s->id);
    hn_free(s->value);
    hn_free(s->block);
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
    double u = r->s->coins.uniform(r->s->coins.ctx, &r->key);
    if ((1 - u) * 0.999 >= r->time * (double)w) return;
    double time = -log(u) / (double)w;
    if (time < r->time || (time == r->time && id < r->winner)) {
        r->time = time;
        r->winner = id;
    }
}

/* The race over all tokens, with the noise of hn_coins_philox. Replaces the largest logits of blocks by their weights. */
static void race_all(race *r, const float *l, float max, int32_t best) {
    const hn_sampler *s = r->s;
    const float scale = hn_sampler_scale(s);
    const int blocks = hn_lanes_blocks(s->vocab);
    s->lanes->weights(s->block, blocks, max, scale, s->block);
    race_enter(r, best, 1.0f); /* first: it rules out most others */
    for (int b = 0;; b++) {
        float w[HN_LANES_BLOCK];
        uint64_t may;
        b = s->lanes->race(l, s->vocab, s->block, b, max, scale, (float)r->time, &r->key, &may, w);
        if (b == blocks) return;
        for (; may; may &= may - 1) {
            const int i = __builtin_ctzll(may);
            if (b * HN_LANES_BLOCK + i != best) race_enter(r, b * HN_LANES_BLOCK + i, w[i]);
        }
    }
}

/* The race over the support, with the noise of hn_coins_philox. */
static void race_support(race *r, int n) {
    const hn_sampler *s = r->s;
    int best = 0;
    for (int i = 1; i < n; i++) best = s->value[i] > s->value[best] ? i : best;
    race_enter(r, s->id[best], s->value[best]);
    for (int first = 0; first < n; first += HN_LANES_BLOCK) {
        const int left = n - first < HN_LANES_BLOCK ? n - first : HN_LANES_BLOCK;
        int32_t id[HN_LANES_BLOCK] = {0};
        float w[HN_LANES_BLOCK] = {0};
        memcpy(id, s->id + first, (size_t)left * sizeof *id);
        memcpy(w, s->value + first, (size_t)left * sizeof *w); /* beyond the end weights are 0: no bit */
        uint64_t may = s->lanes->race_ids(id, w, (float)r->time, &r->key);
        for (; may; may &= may - 1) race_enter(r, id[__builtin_ctzll(may)], w[__builtin_ctzll(may)]);
    }
}

/* The draw by a replaced coins.draw, which takes doubles: only in tests. */
static int32_t draw_replaced(const hn_sampler *s, const hn_random_key *key, int n) {
    double *weight = hn_zalloc((size_t)n, sizeof *weight);
    if (!weight) return -1;
    for (int i = 0; i < n; i++) weight[i] = (double)s->value[i];
    const int i = hn_coins_draw(&s->coins, key, s->id, weight, n);
    hn_free(weight);
    return i < 0 ? -1 : s->id[i];
}

/* ---- law and draw ----------------------------------------------------------------------------------------------- */

static bool xtc_acts(const hn_sampler *s, uint64_t position) {
    const hn_random_key key = {.seed = s->params.seed, .position = position, .purpose = HN_PURPOSE_XTC};
    return s->params.xtc_probability > 0 && hn_coins_accept(&s->coins, &key, s->params.xtc_probability);
}

static uint64_t position_of(const hn_history *h) { return (uint64_t)h->n + (uint64_t)h->n_path; }

bool hn_sampler_takes_best(const hn_sampler *s) { return s->params.temperature == 0 && !s->processed; }

int32_t hn_sampler_draw(hn_sampler *s, const float *logits, const hn_history *h, int32_t greedy_hint) {
    assert(greedy_hint < s->vocab);
    if (s->params.temperature == 0) return hn_processors_best(s, logits, h, greedy_hint);
    const float *l = hn_processors_apply(s, logits, h);
    const float max = hn_support_maxima(s, l);
    if (max == -INFINITY) return -1;
    race r = {.s = s, .time = INFINITY, .winner = -1,
              .key = {.seed = s->params.seed, .position = position_of(h), .purpose = HN_PURPOSE_TARGET}};
    const bool xtc = xtc_acts(s, r.key.position);
    const bool philox = !s->coins.draw && s->coins.uniform == hn_coins_philox.uniform;
    if (philox && !xtc && hn_support_is_all(s)) {
        race_all(&r, l, max, hn_support_best(s, l, max));
        return r.winner;
    }
    const int n = hn_support_build(s, l, max, xtc);
    if (s->coins.draw) return draw_replaced(s, &r.key, n);
    if (philox) race_support(&r, n);
    else
        for (int i = 0; i < n; i++) race_enter(&r, s->id[i], s->value[i]);
    return r.winner;
}

/* The law if only temperature changes the logits': a token's weight can be computed without the others. */
static void law_of_all(const hn_sampler *s, const float *l, float max, float scale, hn_law *out) {
    *out = (hn_law){.logits = l, .max = max, .scale = scale, .n = s->vocab,
                    .sum = s->lanes->weigh(l, s->vocab, max, scale)};
}

void hn_sampler_softmax(hn_sampler *s, const float *logits, const hn_history *h, hn_law *out) {
    const float *l = hn_processors_apply(s, logits, h), max = hn_support_maxima(s, l);
    *out = (hn_law){.n = 0};
    if (max > -INFINITY) law_of_all(s, l, max, 1, out);
}

void hn_sampler_law_lazy(hn_sampler *s, const float *logits, const hn_history *h, hn_law *out) {
    const float *l = hn_processors_apply(s, logits, h), max = hn_support_maxima(s, l);
    *out = (hn_law){.id = s->id, .weight = s->value};
    if (max == -INFINITY) return;
    if (s->params.temperature == 0) {
        s->id[0] = hn_support_best(s, l, max);
        s->value[0] = 1;
        out->n = 1;
        out->sum = 1;
        return;
    }
    const bool xtc = xtc_acts(s, position_of(h));
    if (!xtc && hn_support_is_all(s)) {
        law_of_all(s, l, max, hn_sampler_scale(s), out);
        return;
    }
    out->n = hn_support_build(s, l, max, xtc);
    out->sum = s->lanes->sum(s->value, out->n);
}

void hn_law_list(hn_sampler *s, hn_law *law) {
    if (law->id) return;
    law->id = s->id;
    law->weight = s->value;
    law->n = hn_support_build(s, law->logits, law->max, false);
}

void hn_sampler_law(hn_sampler *s, const float *logits, const hn_history *h, hn_law *out) {
    hn_sampler_law_lazy(s, logits, h, out);
    if (out->n > 0) hn_law_list(s, out);
}

int hn_law_find(const int32_t *id, int n, int32_t token) {
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

void hn_law_weights(const hn_sampler *s, const hn_law *law, int first, int n, float *w) {
    s->lanes->weights(law->logits + first, n, law->max, law->scale, w);
}

float hn_law_weight(const hn_sampler *s, const hn_law *law, int32_t token) {
    if (law->id) {
        const int i = hn_law_find(law->id, law->n, token);
        return i < 0 ? 0 : law->weight[i];
    }
    float w;
    hn_law_weights(s, law, token, 1, &w);
    return w;
}

int32_t hn_law_token_at(const hn_sampler *s, const hn_law *law, double u) {
    float w[HN_LANES_BLOCK];
    double before = 0, passed = 0;
    int block = 0;
    int32_t last = -1;
    for (int i = 0; i < law->n && passed <= law->sum * u; i += HN_LANES_BLOCK) { /* finds its block, or the last one with weight */
        const int n = law->n - i < HN_LANES_BLOCK ? law->n - i : HN_LANES_BLOCK;
        const double more = s->lanes->weigh(law->logits + i, n, law->max, law->scale);
        if (!(more > 0)) continue;
        block = i;
        before = passed;
        passed += more;
    }
    const int n = law->n - block < HN_LANES_BLOCK ? law->n - block : HN_LANES_BLOCK;
    hn_law_weights(s, law, block, n, w);
    passed = before;
    for (int i = 0; i < n && passed <= law->sum * u; i++)
        if (w[i] > 0) passed += (double)w[i], last = block + i;
    return last;
}

/* The constants that convert logits to log-probabilities. False: no token can be drawn. */
static bool softmax_of(const float *logits, int vocab, float *max, double *log_sum) {
    const hn_lanes *lanes = hn_lanes_best();
    const int32_t best = lanes->argmax(logits, vocab);
    if (best < 0) return false;
    *max = logits[best];
    *log_sum = log(lanes->weigh(logits, vocab, *max, 1));
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
