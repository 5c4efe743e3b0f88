/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c - see rng.h. The target's own draw, which drafters couple with, is a race of exponentials (sample/sampler.c). */
#include "base/rng.h"

#include <stddef.h>

static double uniform_philox(void *ctx, const hn_random_key *key) {
    (void)ctx;
    return hn_random_uniform(key);
}
const hn_rng hn_rng_philox = {uniform_philox, NULL, NULL, NULL};

bool hn_rng_accept(const hn_rng *c, const hn_random_key *key, double p) {
    if (!(p > 0)) return false;
    if (p >= 1) return true;
    return c->accept ? c->accept(c->ctx, key, p) : c->uniform(c->ctx, key) < p;
}

/* Sum of up to BLOCK weights, without those that are not above 0: in eight lanes, so that the compiler vectorises the loop. */
enum { LANES = 8, BLOCK = 64 };
static double block_sum(const double *weight, int n) {
    double lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += weight[i + j] > 0 ? weight[i + j] : 0;
    for (; i < n; i++) lane[0] += weight[i] > 0 ? weight[i] : 0;
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

/* The index at which the running sum passes u of the whole. */
static int index_at(const double *weight, int n, double u) {
    double sum = 0, before = 0, passed = 0;
    int block = n, last = -1;
    for (int i = 0; i < n; i += BLOCK) sum += block_sum(weight + i, n - i < BLOCK ? n - i : BLOCK);
    for (int i = 0; i < n && passed <= sum * u; i += BLOCK) { /* finds its block, or the last block with a weight */
        const double more = block_sum(weight + i, n - i < BLOCK ? n - i : BLOCK);
        if (!(more > 0)) continue;
        block = i;
        before = passed;
        passed += more;
    }
    passed = before;
    for (int i = block; i < n && i < block + BLOCK && passed <= sum * u; i++)
        if (weight[i] > 0) passed += weight[last = i];
    return last;
}

int hn_rng_draw(const hn_rng *c, const hn_random_key *key, const int32_t *id, const double *weight, int n) {
    if (!c->draw) return index_at(weight, n, c->uniform(c->ctx, key));
    bool any = false;
    for (int i = 0; i < n && !any; i++) any = weight[i] > 0;
    return any ? c->draw(c->ctx, key, id, weight, n) : -1;
}
