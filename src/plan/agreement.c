/* SPDX-License-Identifier: Apache-2.0 */
/* agreement.c - the means of agreement.h. A pair's shift is the state of an extended Kalman filter, as a text's is in acceptance.c. */
#include "plan/agreement.h"

#include <math.h>
#include <stdint.h>

static const double VARIANCE = 1;       /* of the shift between pairs, log odds */
static const double ALONE = 1.0 / 16;   /* of one alone: smaller, since its rate is being learned from the same outcomes */
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
        for (int k = 0; k < HN_ACCEPT_DRAFTERS; k++) a->of[i][k] = (hn_agreement_pair){0, i == k ? ALONE : VARIANCE, 1};
}

/* A row's of its two drafters, or of the one that is alone: where its place in the table meets itself. NULL: it has none. */
static const hn_agreement_pair *pair_of(const hn_agreement *a, const hn_agreed *x) {
    if (x->drafter < 0) return NULL;
    const int other = x->other < 0 ? x->drafter : x->other;
    return x->drafter < other ? &a->of[x->drafter][other] : &a->of[other][x->drafter];
}

double hn_agreement_rate(const hn_agreement *a, const hn_agreed *x) {
    const hn_agreement_pair *pair = pair_of(a, x);
    return pair ? x->rate * pair->factor / (1 - x->rate + x->rate * pair->factor) : x->rate;
}

void hn_agreement_learn(hn_agreement *a, const hn_agreed *x, bool accepted) {
    hn_agreement_pair *pair = (hn_agreement_pair *)(uintptr_t)pair_of(a, x);
    if (!pair) return;
    const double p = hn_agreement_rate(a, x);
    pair->variance = 1 / (1 / pair->variance + p * (1 - p));
    pair->shift += pair->variance * ((accepted ? 1 : 0) - p);
    pair->factor = exp(pair->shift);
    pair->variance += ((x->other < 0 ? ALONE : VARIANCE) - pair->variance) * DRIFT;
}
