/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - the target's distribution D(logits, history, parameters) → P, and one draw from it.
 *
 * Order of processors: the text's grammar and budget of thinking (constraint.h), logit bias, penalties (repetition, frequency,
 * presence), DRY, forbidden tokens, temperature, top-n-sigma, top-k, typical, top-p, min-p, XTC. Temperature 0 takes the largest
 * processed logit. The draw is an exponential race: the token x of the support with the smallest e_x / P(x), e_x ~ Exp(1) keyed by
 * (seed, position, HN_PURPOSE_TARGET, token id), so a drafter that draws with the same noise couples with it and changes no text
 * (verification.md 4, 10; 2408.07978). Ties (top-k cut, greedy) go to the lowest id. NaN logits never win; a row of NaN or -inf alone
 * is an error.
 *
 * Processors that depend on earlier tokens read them from an hn_history, so a row after a drafted path is processed with that
 * path's own history, and nothing has to be undone when a draft is rejected (verification.md 9). Any history may follow any
 * other; one that continues the last one's text costs least. DRY counts a repetition of over 1,024 tokens as one of 1,024, and
 * never penalises a breaker.
 */
#ifndef HN_SAMPLER_H
#define HN_SAMPLER_H
#include "base/rng.h"
#include "base/status.h"
#include "ops/ops.h"
#include "ops/vocab_ops.h"

/* The tokens before the one that is drawn: the committed text, then the drafted path of the row. The position of the
 * drawn token is n + n_path. */
typedef struct hn_history {
    const int32_t *text;
    int n, n_prompt; /* the first n_prompt of n are the prompt */
    const int32_t *path;
    int n_path;
} hn_history;

/* Of the token that is drawn. */
static inline uint64_t hn_history_position(const hn_history *h) {
    return (uint64_t)h->n + (uint64_t)h->n_path;
}

/* P by its support: P(id[i]) = weight[i] / sum, weight[i] > 0, ids ascending. Owned by the sampler, valid until its next call.
 * n == 0: nothing can be drawn. At temperature 0: one id. */
typedef struct hn_dist {
    const int32_t *id; /* NULL: not listed yet (hn_dist_list); n is no less than the support then */
    const float *weight;
    int n;
    double sum;
    const float *logits; /* of a distribution that is not listed: weights are e^((l - max) scale) */
    float max, scale;
} hn_dist;

struct hn_penalties;  /* counts of the committed text (processors.c) */
struct hn_constraint; /* constraint.c */

typedef struct hn_sampler {
    hunch_sampling params; /* bias is copied, dry_breakers are not kept: both may be freed after init */
    hn_rng rng;
    int vocab;
    bool grows; /* the text of each call begins with that of the call before, so that it is not compared: set after init */
    const hn_vocab_ops *vocab_ops; /* the best level's; all give the same results */
    /* workspace, owned: candidates of the support */
    int32_t *id;  /* [vocab] */
    float *value; /* [vocab] */
    float *bucket; /* [hn_vocab_buckets(vocab)] largest logit of each 64 */
    float *key;   /* [vocab], only for typical_p: the keys of candidates */
    hunch_bias *bias;               /* [params.n_bias] */
    int32_t *forbidden;             /* [n_forbidden] of hn_sampler_forbid */
    int n_forbidden;
    uint64_t forbidden_before;      /* position */
    float *processed;               /* [vocab], only if a processor changes logits */
    struct hn_penalties *penalties; /* only if one looks at the history */
    struct hn_constraint *constraint; /* only if its texts obey a grammar (constraint.h) */
} hn_sampler;

/* Parameters out of range, or contradictory, are HUNCH_USAGE, naming the parameter and its range. vocab: bias on an id
 * outside 0..vocab-1 is refused; 0: ids are not checked. */
hunch_status hn_sampling_check(const hunch_sampling *p, int vocab, hunch_error *err);
/* p was checked. */
hunch_status hn_sampler_init(hn_sampler *s, const hunch_sampling *p, int vocab, hunch_error *err);
void hn_sampler_fini(hn_sampler *s);
size_t hn_sampler_bytes(const hn_sampler *s);  /* of its lists by token: nearly all that it has */
size_t hn_sampler_most_bytes(int vocab);       /* of one with every parameter */
size_t hn_processors_bytes(const hn_sampler *s, bool all); /* of those lists that processors.c has; all: as if each were there */
/* DRY's sequence breakers as tokens: bit id % 8 of breakers[id / 8], [(vocab + 7) / 8] bytes, copied. Without this call no
 * token breaks a sequence. */
hunch_status hn_sampler_breakers(hn_sampler *s, const uint8_t *breakers, hunch_error *err);
bool hn_sampler_wants_breakers(const hn_sampler *s); /* DRY is on */

/* These tokens have probability 0 at all positions before this one, but where a grammar allows no other; copied. Once a sampler. */
hunch_status hn_sampler_forbid(hn_sampler *s, const int32_t *token, int n, uint64_t before, hunch_error *err);

/* True if the drawn token is always the argmax of the raw logits from this position on: temperature 0 and no processor. */
bool hn_sampler_takes_best(const hn_sampler *s, uint64_t position);

/* True if temperature, top-k, top-p and min-p are all that changes a distribution, at any position: those of hn_draw (ops.h). */
bool hn_sampler_is_plain(const hn_sampler *s);
/* What such a sampler draws the token of this position from, for a backend that draws. */
hn_draw hn_sampler_describe(const hn_sampler *s, uint64_t position);

/* The token that plain decoding emits after this history. logits: [vocab], not changed. greedy_hint: the argmax of
 * logits if the caller has it, else -1. Returns -1 if no token can be drawn (all logits NaN or -inf). */
int32_t hn_sampler_draw(hn_sampler *s, const float *logits, const hn_history *h, int32_t greedy_hint);

/* An upper limit of the number of tokens in the support of any distribution after any logits. */
int hn_sampler_support_limit(const hn_sampler *s);

/* The distribution after this history. */
void hn_sampler_dist(hn_sampler *s, const float *logits, const hn_history *h, hn_dist *out);
/* The same, but if all tokens are in its support, without a list of it: for callers that need only a few tokens. The logits
 * must stay valid until hn_dist_list or the last use. */
void hn_sampler_dist_lazy(hn_sampler *s, const float *logits, const hn_history *h, hn_dist *out);
void hn_dist_list(hn_sampler *s, hn_dist *dist); /* makes the list */
/* The softmax of the processed logits over all tokens, whatever the temperature and the truncations are; without a list, for hn_dist_list
 * makes that of the distribution. */
void hn_sampler_softmax(hn_sampler *s, const float *logits, const hn_history *h, hn_dist *out);
/* The weight of a token in any distribution, 0 if it is not in the support. */
float hn_dist_weight(const hn_sampler *s, const hn_dist *dist, int32_t token);
int hn_dist_find(const int32_t *id, int n, int32_t token); /* its index among ascending ids, -1: none */
/* For a distribution that is not listed: the weights of tokens first..first+n-1; the token at which the running sum of all passes u
 * times the whole. */
void hn_dist_weights(const hn_sampler *s, const hn_dist *dist, int first, int n, float *w);
int32_t hn_dist_token_at(const hn_sampler *s, const hn_dist *dist, double u);

/* Natural log of softmax(logits)[token], before any processing: the reported log-probability. -inf for a token of logit -inf;
 * NaN if no token can be drawn. */
double hn_logprob(const float *logits, int vocab, int32_t token);
/* Those of the n likeliest tokens, n at most vocab: likeliest first, equal ones by their ids. */
void hn_logprob_top(const float *logits, int vocab, hunch_logprob *top, int n);
#endif
