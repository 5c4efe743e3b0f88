/* SPDX-License-Identifier: Apache-2.0 */
/* acceptance.h - how often a drafter's candidates are accepted, given that their row was reached.
 *
 * Counts are kept by drafter, class of depth and class of the drafter's own estimate (by log odds), once for all texts and
 * once for each running text. A rate is made in three steps, each shrunk towards the one before:
 *   the drafter's estimate → the count of all texts → moved by the text's shift → the text's own count.
 * The shift is one number for each (text, drafter), in log odds: how much better or worse the drafter is in this text than in
 * others. A few outcomes move it, and it applies to depths and classes that the text has not seen yet.
 * Only candidates whose row was reached count (a rate per round would be censored by the depth). Counts of a text decay with each
 * round, and the variance of its shift grows: a text changes, and a drafter may become bad or good in it.
 */
#ifndef HN_ACCEPTANCE_H
#define HN_ACCEPTANCE_H
#include <stdbool.h>

#include "base/status.h"

enum { HN_ACCEPT_DRAFTERS = 16, HN_ACCEPT_DEPTHS = 6, HN_ACCEPT_CLASSES = 10 };

typedef struct hn_accept_count {
    float tried, accepted; /* decaying */
} hn_accept_count;
typedef struct hn_acceptance {
    hn_accept_count count[HN_ACCEPT_DRAFTERS][HN_ACCEPT_DEPTHS][HN_ACCEPT_CLASSES];
    struct {
        double shift, variance; /* in log odds; of a text only */
        double factor;       /* exp(shift) */
    } text[HN_ACCEPT_DRAFTERS];
} hn_acceptance;

void hn_acceptance_init(hn_acceptance *a);
/* depth of the candidate from 1; estimate: the drafter's own, 0..1. own may be NULL (no text of its own yet). Within
 * (0, 1). */
double hn_acceptance_rate(const hn_acceptance *all, const hn_acceptance *own, int drafter, int depth, double estimate);
void hn_acceptance_learn(hn_acceptance *all, hn_acceptance *own, int drafter, int depth, double estimate,
                         bool accepted);
/* The rate at a depth over all estimates: the rate that is known before anything is drawn. */
double hn_acceptance_at(const hn_acceptance *all, const hn_acceptance *own, int drafter, int depth);
/* After each round of the text: decays its counts, of the first n drafters. */
void hn_acceptance_round(hn_acceptance *own, int n_drafters);
#endif
