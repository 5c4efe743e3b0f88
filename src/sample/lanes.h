/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - the sampler's loops over a whole vocabulary, written in vectors: weights, and a first look at a race.
 *
 * One body (lanes_tmpl.h) compiled a level. Integers and single IEEE operations throughout, so every level gives the same
 * bits and the choice is of speed alone; lanes_test.c holds the levels and base/random.h together.
 */
#ifndef HN_LANES_H
#define HN_LANES_H
#include "base/cpu.h"
#include "base/random.h"

enum { HN_LANES_BLOCK = 64 };

typedef struct hn_lanes {
    /* w[i] = e^((l[i] - max) * scale), float32 within 2 units in the last place; 1 where l is max; 0 for NaN and below
     * e^-87. In place is fine. scale > 0, no l above max. */
    void (*weights)(const float *l, int n, float max, float scale, float *w);
    /* The weights of tokens first .. first+63, and which of them (bit i) might have -log(u) < time * w, u being
     * hn_random_uniform of the key with that token. A bit that is clear is sure. */
    uint64_t (*race)(const float l[HN_LANES_BLOCK], float max, float scale, float time, const hn_random_key *key,
                     uint32_t first, float w[HN_LANES_BLOCK]);
    /* The same for tokens anywhere, whose weights are known. */
    uint64_t (*race_ids)(const int32_t id[HN_LANES_BLOCK], const float w[HN_LANES_BLOCK], float time,
                         const hn_random_key *key);
} hn_lanes;

extern const hn_lanes hn_lanes_ref;
#ifdef __x86_64__
extern const hn_lanes hn_lanes_avx2, hn_lanes_avx512;
#endif
/* Sum in double, in one fixed order. */
double hn_weights_sum(const float *w, int n);

const hn_lanes *hn_lanes_for(hn_isa isa); /* one that the machine has */
const hn_lanes *hn_lanes_best(void);      /* of the best level, which is asked for once */
#endif
