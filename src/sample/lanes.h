/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - the sampler's loops over a whole vocabulary, written in vectors: largest logits, weights and their sums, who lies
 * above a threshold, and a first look at a race.
 *
 * One body (lanes_tmpl.h) compiled a level. Integers and single IEEE operations throughout, and sums in one fixed order, so
 * every level gives the same bits and the choice is of speed alone; lanes_test.c holds the levels, plain loops and
 * base/random.h together.
 *
 * A vocabulary is looked at in blocks of 64 tokens. The largest logits of its blocks, found once, are what most later loops
 * need to know of a block: that it holds nothing for them.
 */
#ifndef HN_LANES_H
#define HN_LANES_H
#include <stdbool.h>

#include "base/cpu.h"
#include "base/random.h"

enum { HN_LANES_BLOCK = 64 };
static inline int hn_lanes_blocks(int n) { return (n + HN_LANES_BLOCK - 1) / HN_LANES_BLOCK; }

/* Masses are weights rounded to multiples of 2^-34 and counted in them: their sums are exact, so no order is to be kept. */
#define HN_MASS_UNIT 0x1p-34
#define HN_MASS_ROUND 0x1.8p18 /* the last bit of a number of this size counts one */
static inline double hn_mass_of(float w) { return ((double)w + HN_MASS_ROUND) - HN_MASS_ROUND; }
typedef struct hn_tally {
    int64_t count, mass;
    double sum; /* of the weights themselves: 16 lanes by position, then lane after lane */
} hn_tally;

/* `block`: what maxima gave of the same l and n; blocks whose largest lies below the threshold are passed over. NULL: none. */
typedef struct hn_lanes {
    /* The largest of each block, -inf where there is no number; returns the largest of all. */
    float (*maxima)(const float *l, int n, float *block);
    /* Lowest index of the largest; -1: nothing but NaN and -inf. */
    int32_t (*argmax)(const float *l, int n);
    /* w[i] = e^((l[i] - max) * scale), float32 within 2 units in the last place; 1 where l is max; 0 for NaN and below
     * e^-87. In place is fine. scale > 0, no l above max. */
    void (*weights)(const float *l, int n, float max, float scale, float *w);
    /* Mass and sum of these weights, of the blocks that reach `floor`; no count. */
    hn_tally (*weigh)(const float *l, int n, const float *block, float floor, float max, float scale);
    /* Count, and mass of the weights, where key >= least. w in [0, 1]; NULL: no mass. No sum. */
    hn_tally (*tally)(const float *key, const float *w, int n, float least);
    double (*sum)(const float *w, int n);
    /* Sum of (of_p p - of_q q)+, 16 lanes by position; each into out unless that is NULL. out may be p. */
    double (*excess)(const double *p, const float *q, int n, double of_p, double of_q, double *out);
    /* Indices and values where l >= least, in order; returns how many. Room for n; value may be l. */
    int (*gather)(const float *l, int n, const float *block, float least, int32_t *id, float *value);
    /* The same of id[i], value[i] and key[i] where key[i] >= least, in place. key may be value. */
    int (*keep)(float *key, int n, float least, int32_t *id, float *value);
    /* Of the numbers among l: how many, and sum and sum of squares of max - l, each 16 lanes by position. max < inf. */
    void (*spread)(const float *l, int n, float max, double *count, double *sum, double *squares);
    /* The first block from `block` on in which some token might have -log(u) < time * its weight, u being hn_random_uniform of
     * the key with that token; hn_lanes_blocks(n): none. Then bit i of *may says it of the block's token i, and w has the
     * weights. A bit that is clear is sure. most: of each block the largest weight. */
    int (*race)(const float *l, int n, const float *most, int block, float max, float scale, float time,
                const hn_random_key *key, uint64_t *may, float w[HN_LANES_BLOCK]);
    /* The bits of tokens anywhere, whose weights are known. */
    uint64_t (*race_ids)(const int32_t id[HN_LANES_BLOCK], const float w[HN_LANES_BLOCK], float time,
                         const hn_random_key *key);
} hn_lanes;

extern const hn_lanes hn_lanes_ref;
#ifdef __x86_64__
extern const hn_lanes hn_lanes_avx2, hn_lanes_avx512;
#endif
double hn_weights_sum(const float *w, int n); /* `sum` of the best level */

const hn_lanes *hn_lanes_for(hn_isa isa); /* one that the machine has */
const hn_lanes *hn_lanes_best(void);      /* of the best level, which is asked for once */
#endif
