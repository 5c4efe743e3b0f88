/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_gain.h - the expected result of calling a drafter, known before it is called: the drafted tokens that its tree is expected to
 * gain and the rows that it takes, after pruning, as the mean of its past rounds, including those in which it proposed nothing.
 *
 * acceptance.h is about one candidate. A tree has several at a row, and a drafter proposes much in one round and nothing in the
 * next, so the value of a round is not the rate of one candidate by depth, but the mean value of its trees after their rows were
 * chosen. Kept once for all texts and once for each running one, which starts with the values of all texts. Expectations that did
 * not come true count less: the fraction that did is kept too, so a drafter with high estimates that are wrong is recognised after
 * a few rounds, before its rates are known.
 */
#ifndef HN_DRAFTER_GAIN_H
#define HN_DRAFTER_GAIN_H
#include "plan/acceptance.h"

typedef struct hn_drafter_gain_sums {
    float rounds, rows, depth, levels, gain; /* decaying; gain: drafted tokens that were expected to be accepted */
    float expected, got;             /* the same for trees that were verified, and the tokens that were accepted */
} hn_drafter_gain_sums;
typedef struct hn_drafter_gain {
    hn_drafter_gain_sums of[HN_ACCEPT_DRAFTERS];
} hn_drafter_gain;

/* One round of one text in which the drafter was called. */
typedef struct hn_drafter_gain_round {
    int rows, depth; /* of its tree, drafted, worth verifying; 0: it proposed nothing */
    double gain;     /* tokens that these are expected to gain */
    bool verified;   /* its rows were verified: `got` of them were accepted */
    int got;
    int levels;      /* drafted, of one that is decided on level by level */
} hn_drafter_gain_round;

typedef struct hn_drafter_gain_mean {
    double rows, depth, levels, gain; /* of the next round, of one text; gain <= rows */
} hn_drafter_gain_mean;

void hn_drafter_gain_begin(hn_drafter_gain *own, const hn_drafter_gain *all); /* a new text: starts with a few rounds of all texts' means */
void hn_drafter_gain_learn(hn_drafter_gain *all, hn_drafter_gain *own, int drafter, const hn_drafter_gain_round *r);
/* After each round of the text: decays its sums, of the first n drafters. */
void hn_drafter_gain_pass(hn_drafter_gain *own, int n_drafters);
/* Zeros as long as it was never called. */
hn_drafter_gain_mean hn_drafter_gain_of(const hn_drafter_gain *all, const hn_drafter_gain *own, int drafter);
#endif
