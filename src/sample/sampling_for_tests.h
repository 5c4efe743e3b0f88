/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_for_tests.h - for tests of the sampler: random logits and parameters, samplers that must open, a distribution as an array over
 * the vocabulary. Include after cmocka. */
#ifndef HN_SAMPLING_FOR_TESTS_H
#define HN_SAMPLING_FOR_TESTS_H
#include <math.h>
#include <string.h>

#include "sample/dist_for_tests.h"
#include "sample/sampler.h"

static inline double unit(uint64_t *seed) { return (double)(hn_splitmix(seed) >> 11) * 0x1p-53; }
static inline int below(uint64_t *seed, int n) { return (int)(hn_splitmix(seed) % (uint64_t)n); }

static inline void sampler_open(hn_sampler *s, hunch_sampling p, int vocab) {
    hunch_error err = {0};
    if (hn_sampler_init(s, &p, vocab, &err)) fail_msg("%s", err.message);
}

/* A history of this length whose tokens are not read. */
static inline hn_history at(int position) { return (hn_history){.n = position, .n_prompt = position}; }

/* Logits like a model's, on a coarse grid half of the time so that there are ties; now and then NaN and -inf. */
static inline void logits_make(uint64_t *seed, float *l, int n, bool odd) {
    const bool grid = below(seed, 2);
    const double spread = 1 + 12 * unit(seed);
    for (int i = 0; i < n; i++) {
        const double x = (unit(seed) + unit(seed) + unit(seed) - 1.5) * spread;
        l[i] = (float)(grid ? rint(2 * x) / 2 : x);
        if (odd && below(seed, 50) == 0) l[i] = below(seed, 2) ? NAN : -INFINITY;
    }
}

/* Temperature, and each of the cuts with probability 1 in `rare`. */
static inline hunch_sampling cuts_make(uint64_t *seed, int vocab, int rare) {
    hunch_sampling p = {.temperature = .05 + 2 * unit(seed), .top_p = 1, .seed = hn_splitmix(seed)};
    if (!below(seed, rare)) p.top_k = 1 + below(seed, vocab + 2);
    if (!below(seed, rare)) p.top_p = below(seed, 4) ? .3 + .699 * unit(seed) : unit(seed) + 1e-9;
    if (!below(seed, rare)) p.min_p = .3 * unit(seed) * unit(seed);
    if (!below(seed, rare)) p.top_n_sigma = .2 + 3 * unit(seed);
    if (!below(seed, rare)) p.typical_p = .2 + .79 * unit(seed);
    if (!below(seed, rare))
        p.xtc_probability = below(seed, 2) ? 1 : unit(seed), p.xtc_threshold = .01 + .49 * unit(seed);
    return p;
}

/* The distribution over the whole vocabulary; returns the size of its support. */
static inline int dist_spread(hn_sampler *s, const float *logits, const hn_history *h, double *p) {
    hn_dist dist;
    hn_sampler_dist(s, logits, h, &dist);
    memset(p, 0, (size_t)s->vocab * sizeof *p);
    for (int i = 0; i < dist.n; i++) {
        assert_in_range(dist.id[i], 0, s->vocab - 1);
        assert_true(dist.weight[i] > 0 && p[dist.id[i]] == 0);
        p[dist.id[i]] = (double)dist.weight[i] / dist.sum;
    }
    return dist.n;
}

/* XTC's random number at a position, by its key. */
static inline bool xtc_expected(const hunch_sampling *q, int position) {
    const hn_random_key key = {.seed = q->seed, .position = (uint64_t)position, .purpose = HN_PURPOSE_XTC};
    return hn_random_uniform(&key) < q->xtc_probability;
}

/* got equals want up to the float32 rounding of weights, which is relative. */
static inline bool dists_agree(const double *got, const double *want, int vocab) {
    double sum = 0;
    for (int i = 0; i < vocab; i++) {
        const double z = want[i] > 0 ? log(want[i]) : 0;
        if (fabs(got[i] - want[i]) > (2e-6 - 4e-7 * z) * want[i] + 1e-36) return false;
        sum += got[i];
    }
    return fabs(sum - 1) < 1e-9;
}
#endif
