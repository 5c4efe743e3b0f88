/* SPDX-License-Identifier: Apache-2.0 */
/* coins.c - see coins.h. The sampler has a faster race of its own over a whole vocabulary (sample/sampler.c), with the
 * same result. */
#include "base/coins.h"

#include <math.h>
#include <stddef.h>

static double uniform_philox(void *ctx, const hn_random_key *key) {
    (void)ctx;
    return hn_random_uniform(key);
}
const hn_coins hn_coins_philox = {uniform_philox, NULL, NULL, NULL};

bool hn_coins_accept(const hn_coins *c, const hn_random_key *key, double p) {
    if (!(p > 0)) return false;
    if (p >= 1) return true;
    return c->accept ? c->accept(c->ctx, key, p) : c->uniform(c->ctx, key) < p;
}

static int race(const hn_coins *c, hn_random_key key, const int32_t *id, const double *weight, int n) {
    int winner = -1;
    double best = INFINITY;
    for (int i = 0; i < n; i++) {
        if (!(weight[i] > 0)) continue;
        key.token = (uint32_t)(id ? id[i] : i);
        const double u = c->uniform(c->ctx, &key);
        if ((1 - u) * 0.999 >= best * weight[i]) continue; /* -log(u) >= 1 - u: it cannot win, and needs no logarithm */
        const double time = -log(u) / weight[i];
        if (winner < 0 || time < best) { /* the first may weigh so little that its time is infinite */
            best = time;
            winner = i;
        }
    }
    return winner;
}

int hn_coins_draw(const hn_coins *c, const hn_random_key *key, const int32_t *id, const double *weight, int n) {
    if (!c->draw) return race(c, *key, id, weight, n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += weight[i] > 0 ? weight[i] : 0;
    return sum > 0 ? c->draw(c->ctx, key, id, weight, n) : -1;
}
