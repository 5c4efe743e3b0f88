/* SPDX-License-Identifier: Apache-2.0 */
/* explorer_for_tests.h - random numbers that take every outcome in turn, so that the real code can be enumerated: run it until
 * explorer_next returns false, weighting each run with explorer.p; the weights of all runs add up to 1.
 *
 * It models keys, not calls: a random number used twice keeps the interval that is left after its first outcomes, and a repeated draw
 * gives the same outcome. So noise that is used again, in the same round or the next, changes the distribution. Include after
 * cmocka. */
#ifndef HN_EXPLORER_FOR_TESTS_H
#define HN_EXPLORER_FOR_TESTS_H
#include <string.h>

#include "base/rng.h"

enum { EXPLORER_CHOICES = 128, EXPLORER_OPTIONS = 8 };

typedef struct explorer {
    double p; /* of this run so far */
    int at;   /* choices made in this run */
    int n;    /* choices whose outcome is fixed */
    struct {
        int taken, options;
        double p[EXPLORER_OPTIONS];
    } choice[EXPLORER_CHOICES];
    int n_accepts, n_draws;
    struct {
        hn_random_key key;
        double low, high; /* interval of its uniform */
    } accept[EXPLORER_CHOICES];
    struct {
        hn_random_key key;
        int n, result;
        int32_t id[EXPLORER_OPTIONS];
        double weight[EXPLORER_OPTIONS];
    } drawn[EXPLORER_CHOICES];
} explorer;

/* To be called before each run. */
static inline void explorer_begin(explorer *x) {
    x->p = 1;
    x->at = x->n_accepts = x->n_draws = 0;
}

/* To be called after each run: true if there is another one. */
static inline bool explorer_next(explorer *x) {
    x->n = x->at;
    while (x->n > 0) {
        int i = x->n - 1, o = x->choice[i].taken + 1;
        while (o < x->choice[i].options && !(x->choice[i].p[o] > 0)) o++;
        x->choice[i].taken = o;
        if (o < x->choice[i].options) return true;
        x->n--;
    }
    return false;
}

static inline int explorer_choose(explorer *x, const double *p, int options) {
    assert_true(x->at < EXPLORER_CHOICES && options <= EXPLORER_OPTIONS);
    const int i = x->at++;
    if (i >= x->n) {
        memcpy(x->choice[i].p, p, (size_t)options * sizeof *p);
        x->choice[i].options = options;
        x->choice[i].taken = 0;
        while (!(p[x->choice[i].taken] > 0)) x->choice[i].taken++;
        x->n = x->at;
    }
    x->p *= p[x->choice[i].taken];
    return x->choice[i].taken;
}

static inline double explorer_uniform(void *ctx, const hn_random_key *key) {
    (void)ctx;
    fail_msg("a bare number was asked for, purpose %u", key->purpose);
    return 0;
}

static inline bool explorer_accept(void *ctx, const hn_random_key *key, double p) {
    explorer *x = ctx;
    int c = 0;
    while (c < x->n_accepts && memcmp(&x->accept[c].key, key, sizeof *key)) c++;
    if (c == x->n_accepts) {
        assert_true(c < EXPLORER_CHOICES);
        x->accept[x->n_accepts++].key = *key;
        x->accept[c].low = 0, x->accept[c].high = 1;
    }
    if (p <= x->accept[c].low) return false;
    if (p >= x->accept[c].high) return true;
    const double yes = (p - x->accept[c].low) / (x->accept[c].high - x->accept[c].low), both[] = {yes, 1 - yes};
    const bool accepted = explorer_choose(x, both, 2) == 0;
    *(accepted ? &x->accept[c].high : &x->accept[c].low) = p;
    return accepted;
}

static inline int explorer_draw(void *ctx, const hn_random_key *key, const int32_t *id, const double *weight, int n) {
    explorer *x = ctx;
    double p[EXPLORER_OPTIONS], sum = 0;
    assert_true(n <= EXPLORER_OPTIONS);
    for (int d = 0; d < x->n_draws; d++) {
        if (memcmp(&x->drawn[d].key, key, sizeof *key)) continue;
        assert_int_equal(x->drawn[d].n, n); /* another distribution with the same noise: not modelled */
        for (int i = 0; i < n; i++) assert_int_equal(x->drawn[d].id[i], id ? id[i] : i);
        assert_memory_equal(x->drawn[d].weight, weight, (size_t)n * sizeof *weight);
        return x->drawn[d].result;
    }
    for (int i = 0; i < n; i++) sum += weight[i];
    for (int i = 0; i < n; i++) p[i] = weight[i] / sum;
    const int d = x->n_draws++;
    assert_true(d < EXPLORER_CHOICES);
    x->drawn[d].key = *key;
    x->drawn[d].n = n;
    for (int i = 0; i < n; i++) x->drawn[d].id[i] = id ? id[i] : i;
    memcpy(x->drawn[d].weight, weight, (size_t)n * sizeof *weight);
    return x->drawn[d].result = explorer_choose(x, p, n);
}

static inline hn_rng explorer_rng(explorer *x) {
    return (hn_rng){explorer_uniform, explorer_accept, explorer_draw, x};
}
#endif
