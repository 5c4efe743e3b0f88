/* SPDX-License-Identifier: Apache-2.0 */
/* agreement.h - how much likelier a token is because two drafters propose it, and how much less likely because one does alone, though
 * others could have: a drafter's rate is the mean of both. Of each pair, and of each drafter alone, a shift in log odds of the likelier
 * one's rate, measured over all texts. One of which nothing is known, and a pair that copies from the same place, have none.
 */
#ifndef HN_AGREEMENT_H
#define HN_AGREEMENT_H
#include "plan/acceptance.h"

typedef struct hn_agreement_pair {
    double shift, variance, factor; /* in log odds; exp(shift) */
} hn_agreement_pair;

typedef struct hn_agreement {
    hn_agreement_pair of[HN_ACCEPT_DRAFTERS][HN_ACCEPT_DRAFTERS]; /* [the smaller][the larger]; [a][a]: alone */
} hn_agreement;

/* A row's candidates: the likeliest of its drafters, and the next one. */
typedef struct hn_agreed {
    int drafter, other; /* -1: none */
    double rate, of_other;
} hn_agreed;
static const hn_agreed HN_AGREED_NONE = {-1, -1, 0, 0};

void hn_agreed_add(hn_agreed *x, int drafter, double rate);

void hn_agreement_init(hn_agreement *a);
/* The rate of a row that these propose, and no others do. Within (0, 1) if the rates are. */
double hn_agreement_rate(const hn_agreement *a, const hn_agreed *x);
void hn_agreement_learn(hn_agreement *a, const hn_agreed *x, bool accepted);
#endif
