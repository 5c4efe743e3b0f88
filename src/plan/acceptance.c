/* SPDX-License-Identifier: Apache-2.0 */
/* acceptance.c - the estimates of acceptance.h. A text's shift is the state of an extended Kalman filter for one logistic
 * parameter: prior N(0, TEXT_VARIANCE), and each outcome moves it by variance × (outcome - expected), so it adapts fast at first,
 * then slowly, and fast again after a pause. It does not decay to 0 by itself: rows that were cut are learned from too
 * (controller.c), and a drafter that is bad in this text would be paid for again and again.
 */
#include "plan/acceptance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const double PRIOR_WEIGHT = 3;        /* outcomes that a drafter's estimate counts against those of all texts */
static const double DEPTH_WEIGHT = 10;       /* outcomes that the previous depth counts against those of a depth */
static const double TEXT_WEIGHT = 24;        /* outcomes that the shifted rate counts against those of the text */
static const double TEXT_VARIANCE = 1.5;     /* variance of the shift between texts, log odds */
static const double FIRST_GUESS = 0.7;       /* of hn_acceptance_at without data: high enough that a drafter is tried */
static const double DRIFT = 1.0 / 64;        /* of TEXT_VARIANCE - variance: what a round adds to the variance */
static const float KEEP_ALL = 1 - 1.0f / 512;  /* an outcome */
static const float KEEP_COUNT = 1 - 1.0f / 16; /* an outcome of a text */
static const float KEEP_OWN = 1 - 1.0f / 64;   /* a round */

void hn_acceptance_init(hn_acceptance *a) {
    memset(a, 0, sizeof *a);
    for (int d = 0; d < HN_ACCEPT_DRAFTERS; d++) {
        a->text[d].variance = TEXT_VARIANCE;
        a->text[d].factor = 1;
    }
}

/* 1 | 2 | 3 | 4, 5 | 6 to 9 | deeper */
static int depth_class(int depth) {
    return depth <= 3 ? depth - 1 : depth <= 5 ? 3 : depth <= 9 ? 4 : 5;
}

static double inside(double p) {
    return p > 0.005 ? p < 0.995 ? p : 0.995 : 0.005; /* NaN as well */
}

/* p moved by a factor of its odds. */
static double shifted(double p, double factor) {
    return p * factor / (1 - p + p * factor);
}

/* Boundaries with equal steps in log odds: high estimates are resolved as finely as middle ones. */
static int estimate_class(double estimate) {
    static const double upper[HN_ACCEPT_CLASSES - 1] = {0.10, 0.21, 0.39, 0.60, 0.78, 0.89, 0.95, 0.977, 0.990};
    int c = 0;
    while (c < HN_ACCEPT_CLASSES - 1 && !(estimate < upper[c])) c++;
    return c;
}

static double shrunk(hn_accept_count k, double towards, double belief) {
    return ((double)k.accepted + belief * towards) / ((double)k.tried + belief);
}

/* Over all texts. The rate of a depth is shrunk towards that of the previous depth, the first towards the drafter's estimate. */
static double rate_of_all(const hn_acceptance *all, int drafter, int at, int bin, double estimate) {
    double rate = inside(estimate);
    for (int i = 0; i <= at; i++) rate = shrunk(all->count[drafter][i][bin], rate, i == 0 ? PRIOR_WEIGHT : DEPTH_WEIGHT);
    return inside(rate);
}

double hn_acceptance_rate(const hn_acceptance *all, const hn_acceptance *own, int drafter, int depth, double estimate) {
    assert(drafter >= 0 && drafter < HN_ACCEPT_DRAFTERS && depth >= 1);
    const int at = depth_class(depth), bin = estimate_class(estimate);
    const double rate = rate_of_all(all, drafter, at, bin, estimate);
    if (!own) return rate;
    return inside(shrunk(own->count[drafter][at][bin], shifted(rate, own->text[drafter].factor), TEXT_WEIGHT));
}

static void count(hn_accept_count *k, bool accepted, float keep) {
    k->tried = k->tried * keep + 1;
    k->accepted = k->accepted * keep + (accepted ? 1 : 0);
}

void hn_acceptance_learn(hn_acceptance *all, hn_acceptance *own, int drafter, int depth, double estimate,
                         bool accepted) {
    assert(drafter >= 0 && drafter < HN_ACCEPT_DRAFTERS && depth >= 1);
    const int at = depth_class(depth), bin = estimate_class(estimate);
    if (own) {
        double *shift = &own->text[drafter].shift, *variance = &own->text[drafter].variance;
        double *factor = &own->text[drafter].factor;
        const double p = shifted(rate_of_all(all, drafter, at, bin, estimate), *factor);
        *variance = 1 / (1 / *variance + p * (1 - p));
        *shift += *variance * ((accepted ? 1 : 0) - p);
        *factor = exp(*shift);
        count(&own->count[drafter][at][bin], accepted, KEEP_COUNT);
    }
    count(&all->count[drafter][at][bin], accepted, KEEP_ALL);
}

static hn_accept_count over_classes(const hn_acceptance *a, int drafter, int at) {
    hn_accept_count sum = {0};
    for (int bin = 0; bin < HN_ACCEPT_CLASSES; bin++) {
        sum.tried += a->count[drafter][at][bin].tried;
        sum.accepted += a->count[drafter][at][bin].accepted;
    }
    return sum;
}

double hn_acceptance_at(const hn_acceptance *all, const hn_acceptance *own, int drafter, int depth) {
    assert(drafter >= 0 && drafter < HN_ACCEPT_DRAFTERS && depth >= 1);
    const int at = depth_class(depth);
    double rate = FIRST_GUESS;
    for (int i = 0; i <= at; i++) rate = shrunk(over_classes(all, drafter, i), rate, i == 0 ? PRIOR_WEIGHT : DEPTH_WEIGHT);
    if (own) rate = shrunk(over_classes(own, drafter, at), shifted(rate, own->text[drafter].factor), TEXT_WEIGHT);
    return inside(rate);
}

void hn_acceptance_round(hn_acceptance *own, int n_drafters) {
    assert(n_drafters <= HN_ACCEPT_DRAFTERS);
    hn_accept_count *k = &own->count[0][0][0];
    for (int i = 0; i < n_drafters * HN_ACCEPT_DEPTHS * HN_ACCEPT_CLASSES; i++) {
        const float keep = k[i].tried > 1e-3f ? KEEP_OWN : 0; /* never down to denormal numbers */
        k[i].tried *= keep;
        k[i].accepted *= keep;
    }
    for (int d = 0; d < n_drafters; d++) own->text[d].variance += (TEXT_VARIANCE - own->text[d].variance) * DRIFT;
}
