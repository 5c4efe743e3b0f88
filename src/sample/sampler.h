/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - the target's law D(logits, parameters) → P, and one draw from it.
 *
 * Order of processors: temperature, top-k, top-p, min-p. The draw is an exponential race: the token x of the support
 * with the smallest e_x / P(x), e_x ~ Exp(1) keyed by (seed, position, HN_PURPOSE_TARGET, token id), so a drafter that
 * draws with the same noise later couples with it and changes no text (verification.md 4, 10; 2408.07978).
 * Ties (top-k cut, greedy) go to the lowest id. NaN logits never win; a row of NaN or -inf alone is an error.
 */
#ifndef HN_SAMPLER_H
#define HN_SAMPLER_H
#include "base/random.h"
#include "base/status.h"
#include "sample/lanes.h"

/* The source of random numbers; tests replace it. uniform returns a value in (0, 1). */
typedef struct hn_coins {
    double (*uniform)(void *ctx, const hn_random_key *key);
    void *ctx;
} hn_coins;
extern const hn_coins hn_coins_philox;

typedef struct hn_sampler {
    hunch_sampling params;
    hn_coins coins;
    int vocab;
    const hn_lanes *lanes; /* the best level's; all give the same results */
    /* workspace, owned: candidates of the support */
    int32_t *id;   /* [vocab] */
    float *value;  /* [vocab] */
} hn_sampler;

/* Parameters out of range are HUNCH_USAGE, naming the parameter and its range. */
hunch_status hn_sampling_check(const hunch_sampling *p, hunch_error *err);
hunch_status hn_sampler_init(hn_sampler *s, const hunch_sampling *p, int vocab, hunch_error *err);
void hn_sampler_fini(hn_sampler *s);

/* The token that plain decoding emits at `position` (index of the emitted token in the sequence, prompt included).
 * logits: [vocab], not changed. greedy_hint: the argmax if the caller has it, else -1.
 * Returns -1 if no token can be drawn (all logits NaN or -inf). */
int32_t hn_sampler_draw(hn_sampler *s, const float *logits, uint64_t position, int32_t greedy_hint);

/* The law itself: P over the whole vocabulary into p [vocab] (tests, log-probabilities). Sums to 1 in float accuracy. */
void hn_sampler_law(hn_sampler *s, const float *logits, double *p);
#endif
