/* SPDX-License-Identifier: Apache-2.0 */
/* coins.h - the source of every random decision: numbers, acceptances, draws. Philox by default; tests replace it, to
 * enumerate all outcomes of the real code or to show that a statistic detects a wrong source. Keys: random.h, contract C3. */
#ifndef HN_COINS_H
#define HN_COINS_H
#include <stdbool.h>

#include "base/random.h"

typedef struct hn_coins {
    double (*uniform)(void *ctx, const hn_random_key *key); /* in (0, 1) */
    /* True with probability p. NULL: uniform < p. */
    bool (*accept)(void *ctx, const hn_random_key *key, double p);
    /* An index i with probability weight[i] / sum; n >= 1, weights >= 0, sum > 0. NULL: where the running sum passes
     * uniform(key) of the whole. */
    int (*draw)(void *ctx, const hn_random_key *key, const int32_t *id, const double *weight, int n);
    void *ctx;
} hn_coins;
extern const hn_coins hn_coins_philox; /* uniform: hn_random_uniform */

bool hn_coins_accept(const hn_coins *c, const hn_random_key *key, double p); /* p <= 0 never, p >= 1 always */
/* Draws an index. id: the token ids of the indices, passed on to `draw` only; may be NULL. Weights that are not above 0 are
 * never drawn. Returns -1 if no weight is above 0. */
int hn_coins_draw(const hn_coins *c, const hn_random_key *key, const int32_t *id, const double *weight, int n);
#endif
