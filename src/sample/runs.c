/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c - see runs.h. Sums of masses are exact, so the end of a run does not depend on the order of the additions. */
#include "sample/runs.h"

#include <math.h>
#include <string.h>

/* The rank of a float: ascending with the key, consecutive for adjacent floats. */
static int64_t order_of(float key) {
    int32_t bits;
    key += 0.0f; /* -0 is 0 */
    memcpy(&bits, &key, sizeof bits);
    return bits < 0 ? bits ^ INT32_MAX : bits;
}
/* The inverse; NaN above infinity, which no key reaches. */
static float key_at(int64_t order) {
    const int32_t bits = order < 0 ? (int32_t)order ^ INT32_MAX : (int32_t)order;
    float key;
    memcpy(&key, &bits, sizeof key);
    return key;
}

enum { NEAR = 64 }; /* up to this many are sorted */

/* The run ends at a key of rank [lo, hi); those of rank hi and above add up to `above`. */
typedef struct range {
    int64_t lo, hi;
    double above;
} range;

/* Narrows the range until it has few keys, or equal ones. value: summed by mass; NULL: keys are counted. */
static range run_narrow(const hn_vocab_ops *vocab_ops, const float *key, const float *value, int n, double target, float low,
                        float high) {
    range r = {order_of(low), order_of(high) + 1, 0};
    int64_t from_lo = n, from_hi = 0;
    while (r.hi - r.lo > 1 && from_lo - from_hi > NEAR) {
        const int64_t middle = r.lo + (r.hi - r.lo) / 2;
        const hn_tally t = vocab_ops->tally(key, value, n, key_at(middle));
        const double sum = value ? (double)t.mass * HN_MASS_UNIT : (double)t.count;
        if (sum >= target)
            r.lo = middle, from_lo = t.count;
        else
            r.hi = middle, from_hi = t.count, r.above = sum;
    }
    return r;
}

/* The first index from i on whose key is below `end`; n: none. */
static int next_below(const float *key, int i, int n, float end) {
    for (; i < n; i += HN_VOCAB_BUCKET) {
        const int stop = n - i < HN_VOCAB_BUCKET ? n : i + HN_VOCAB_BUCKET;
        int below = 0;
        for (int j = i; j < stop; j++) below |= !(key[j] >= end);
        if (below) break;
    }
    while (i < n && key[i] >= end) i++;
    return i < n ? i : n;
}

static double amount(const hn_run *r, int i) { return r->count ? 1 : hn_mass_of(r->value[i]); }

/* Index of the last of the run; -1: it takes all. Those below hi are equal, or few. */
static int run_last(const hn_run *r, int n, const range *g) {
    const float end = key_at(g->hi);
    const bool equal = g->hi - g->lo == 1;
    int near[NEAR], found = 0;
    double sum = g->above;
    for (int i = next_below(r->key, 0, n, end); i < n; i = next_below(r->key, i + 1, n, end)) {
        if (equal) {
            sum += amount(r, i);
            if (sum >= r->target) return i;
            continue;
        }
        int at = found++;
        for (; at > 0 && r->key[near[at - 1]] < r->key[i]; at--) near[at] = near[at - 1];
        near[at] = i;
    }
    for (int k = 0; k < found; k++) {
        sum += amount(r, near[k]);
        if (sum >= r->target) return near[k];
    }
    return -1;
}

int hn_run_cut(const hn_vocab_ops *vocab_ops, const hn_run *r) {
    const range g = run_narrow(vocab_ops, r->key, r->count ? NULL : r->value, r->n, r->target, r->low, r->high);
    const int n = vocab_ops->keep(r->key, r->n, key_at(g.lo), r->id, r->value);
    const int last = run_last(r, n, &g);
    if (last < 0) return n;
    /* up to `last` the keys of at least `worst` stay, after it only larger ones */
    const float worst = r->key[last];
    const int after = last + 1;
    const int kept = vocab_ops->keep(r->key, after, worst, r->id, r->value);
    const int more =
        vocab_ops->keep(r->key + after, n - after, key_at(order_of(worst) + 1), r->id + after, r->value + after);
    memmove(r->id + kept, r->id + after, (size_t)more * sizeof *r->id);
    memmove(r->value + kept, r->value + after, (size_t)more * sizeof *r->value);
    return kept + more;
}

float hn_run_floor(const hn_vocab_ops *vocab_ops, const float *key, int n, int least, float high) {
    return key_at(run_narrow(vocab_ops, key, NULL, n, least, -INFINITY, high).lo);
}
