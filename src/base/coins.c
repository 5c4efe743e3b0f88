/* SPDX-License-Identifier: Apache-2.0 */
/* coins.c - see coins.h. The target's own draw, with which drafters couple, is a race (sample/sampler.c). */
#include "base/coins.h"

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

/* The index at which the running sum passes u of the whole. */
static int index_at(const double *weight, int n, double u) {
    double sum = 0, passed = 0;
    int last = -1;
    for (int i = 0; i < n; i++) sum += weight[i] > 0 ? weight[i] : 0;
    for (int i = 0; i < n; i++) {
        if (!(weight[i] > 0)) continue;
        passed += weight[last = i];
        if (passed > sum * u) break;
    }
    return last;
}

int hn_coins_draw(const hn_coins *c, const hn_random_key *key, const int32_t *id, const double *weight, int n) {
    bool any = false;
    for (int i = 0; i < n && !any; i++) any = weight[i] > 0;
    if (!any) return -1;
    return c->draw ? c->draw(c->ctx, key, id, weight, n) : index_at(weight, n, c->uniform(c->ctx, key));
}
