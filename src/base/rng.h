/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h - the source of every random decision: numbers, acceptances, draws. Philox by default; tests replace it, to
 * enumerate all outcomes of the real code or to show that a statistic detects a wrong source. Keys: random.h, contract C3. */
#ifndef HN_COINS_H
#define HN_COINS_H
#include <stdbool.h>

#include "base/random.h"

typedef struct hn_rng {
    double (*uniform)(void *ctx, const hn_random_key *key); /* in (0, 1) */
    /* True with probability p. NULL: uniform < p. */
    bool (*accept)(void *ctx, const hn_random_key *key, double p);
    /* An index i with probability weight[i] / sum; n >= 1, weights >= 0, sum > 0. NULL: where the running sum passes
     * uniform(key) of the whole. */
    int (*draw)(void *ctx, const hn_random_key *key, const int32_t *id, const double *weight, int n);
    void *ctx;
} hn_rng;
extern const hn_rng hn_rng_philox; /* uniform: hn_random_uniform */

bool hn_rng_accept(const hn_rng *c, const hn_random_key *key, double p); /* p <= 0 never, p >= 1 always */
/* Draws an index. id: the token ids of the indices, passed on to `draw` only; may be NULL. Weights that are not above 0 are
 * never drawn. Returns -1 if no weight is above 0. */
int hn_rng_draw(const hn_rng *c, const hn_random_key *key, const int32_t *id, const double *weight, int n);
#endif
