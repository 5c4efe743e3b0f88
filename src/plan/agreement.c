/* SPDX-License-Identifier: Apache-2.0 */
/* agreement.c - the means of agreement.h. A pair's shift is the state of an extended Kalman filter, as a text's is in acceptance.c. */
#include "plan/agreement.h"

#include <math.h>

static const double VARIANCE = 1;       /* of the shift between pairs, log odds */
static const double DRIFT = 1.0 / 1024; /* of VARIANCE - variance: what an outcome adds */

void hn_agreed_add(hn_agreed *x, int drafter, double rate) {
    if (x->drafter < 0 || rate > x->rate) {
        if (x->drafter != drafter) x->other = x->drafter, x->of_other = x->rate;
        x->drafter = drafter, x->rate = rate;
    } else if (drafter != x->drafter && (x->other < 0 || rate > x->of_other)) {
        x->other = drafter, x->of_other = rate;
    }
}

void hn_agreement_init(hn_agreement *a) {
    for (int i = 0; i < HN_ACCEPT_DRAFTERS; i++)
        for (int k = 0; k < HN_ACCEPT_DRAFTERS; k++) a->of[i][k] = (hn_agreement_pair){0, VARIANCE, 1};
}

static int smaller(const hn_agreed *x) {
    return x->drafter < x->other ? x->drafter : x->other;
}

static int larger(const hn_agreed *x) {
    return x->drafter < x->other ? x->other : x->drafter;
}

double hn_agreement_rate(const hn_agreement *a, const hn_agreed *x) {
    if (x->drafter < 0 || x->other < 0) return x->rate;
    const double factor = a->of[smaller(x)][larger(x)].factor;
    return x->rate * factor / (1 - x->rate + x->rate * factor);
}

void hn_agreement_learn(hn_agreement *a, const hn_agreed *x, bool accepted) {
    if (x->drafter < 0 || x->other < 0) return;
    hn_agreement_pair *pair = &a->of[smaller(x)][larger(x)];
    const double p = hn_agreement_rate(a, x);
    pair->variance = 1 / (1 / pair->variance + p * (1 - p));
    pair->shift += pair->variance * ((accepted ? 1 : 0) - p);
    pair->factor = exp(pair->shift);
    pair->variance += (VARIANCE - pair->variance) * DRIFT;
}
