/* SPDX-License-Identifier: Apache-2.0 */
/* vocab_ops.h - the sampler's loops over a whole vocabulary, vectorised: largest logits, weights and their sums, tokens above a
 * threshold, and the filter of the race of the draw.
 *
 * One body (vocab_ops_tmpl.h) compiled for each level. Integers and single IEEE operations throughout, and sums in one fixed
 * order, so every level gives the same bits and differs in speed alone; vocab_ops_test.c compares the levels, plain loops and
 * base/random.h.
 *
 * A vocabulary is processed in buckets of 64 tokens. The largest logit of each bucket is found once; by it most later loops
 * skip a bucket without reading it.
 */
#ifndef HN_VOCAB_OPS_H
#define HN_VOCAB_OPS_H
#include <stdbool.h>

#include "base/cpu.h"
#include "base/random.h"

enum { HN_VOCAB_BUCKET = 64 };
static inline int hn_vocab_buckets(int n) { return (n + HN_VOCAB_BUCKET - 1) / HN_VOCAB_BUCKET; }

/* Masses are weights rounded to multiples of 2^-34 and counted in these units: their sums are exact in any order. */
#define HN_MASS_UNIT 0x1p-34
#define HN_MASS_ROUND 0x1.8p18 /* the last bit of a number of this size is one unit */
static inline double hn_mass_of(float w) { return ((double)w + HN_MASS_ROUND) - HN_MASS_ROUND; }
typedef struct hn_tally {
    int64_t count, mass;
} hn_tally;

/* `bucket`: the output of maxima for the same l and n; buckets whose largest is below the threshold are skipped. NULL: none. */
typedef struct hn_vocab_ops {
    /* The largest of each bucket, -inf if it has no number; returns the largest of all. */
    float (*maxima)(const float *l, int n, float *bucket);
    /* Lowest index of the largest; -1: all are NaN or -inf. */
    int32_t (*argmax)(const float *l, int n);
    /* out[i] = l[i] where bit i % 64 of bits[i / 64] is set, else -inf. In place is fine. */
    void (*mask)(const float *l, const uint64_t *bits, int n, float *out);
    /* w[i] = e^((l[i] - max) * scale), float32 within 2 units in the last place; 1 where l is max; 0 for NaN and below
     * e^-87. In place is fine. scale > 0, no l above max. */
    void (*weights)(const float *l, int n, float max, float scale, float *w);
    /* weigh: sum of these weights, in 16 lanes by position, then over the lanes. mass: their mass, of buckets that reach `floor`. */
    double (*weigh)(const float *l, int n, float max, float scale);
    int64_t (*mass)(const float *l, int n, const float *bucket, float floor, float max, float scale);
    /* Count, and mass of the weights, of elements with key >= least. w in [0, 1]; NULL: no mass. */
    hn_tally (*tally)(const float *key, const float *w, int n, float least);
    double (*sum)(const float *w, int n); /* in the order of weigh */
    /* Sum of (of_p p - of_q q)+, in 16 lanes by position; the terms are written to out unless that is NULL. out may be p. */
    double (*excess)(const double *p, const float *q, int n, double of_p, double of_q, double *out);
    /* Indices and values with l >= least, in order; returns their number. Room for n; value may be l. */
    int (*gather)(const float *l, int n, const float *bucket, float least, int32_t *id, float *value);
    /* The same for id[i], value[i] and key[i] with key[i] >= least, in place. key may be value. */
    int (*keep)(float *key, int n, float least, int32_t *id, float *value);
    /* Of the numbers among l: count, sum and sum of squares of max - l, each in 16 lanes by position. max < inf. */
    void (*spread)(const float *l, int n, float max, double *count, double *sum, double *squares);
    /* The first bucket from `bucket` on with a token that may have -log(u) < time * its weight, u being hn_random_uniform of the
     * key with that token; hn_vocab_buckets(n): none. Bit i of *may is set if the bucket's token i may, and w has the weights. A
     * token with a clear bit certainly does not. most: the largest weight of each bucket. */
    int (*race)(const float *l, int n, const float *most, int bucket, float max, float scale, float time,
                const hn_random_key *key, uint64_t *may, float w[HN_VOCAB_BUCKET]);
    /* The same bits for a list of tokens and their weights. */
    uint64_t (*race_ids)(const int32_t id[HN_VOCAB_BUCKET], const float w[HN_VOCAB_BUCKET], float time,
                         const hn_random_key *key);
} hn_vocab_ops;

extern const hn_vocab_ops hn_vocab_ops_ref;
#ifdef __x86_64__
extern const hn_vocab_ops hn_vocab_ops_avx2, hn_vocab_ops_avx512;
#endif
double hn_weights_sum(const float *w, int n); /* `sum` of the best level */

const hn_vocab_ops *hn_vocab_ops_for(hn_isa isa); /* a level that the machine has */
const hn_vocab_ops *hn_vocab_ops_best(void);      /* of the best level, detected once */
#endif
