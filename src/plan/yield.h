/* SPDX-License-Identifier: Apache-2.0 */
/* yield.h - the expected result of calling a drafter, known before it is called: the drafted tokens that its tree is expected to
 * gain and the rows that it takes, after pruning, as the mean of its past rounds, including those in which it proposed nothing.
 *
 * acceptance.h is about one candidate. A tree has several at a row, and a drafter proposes much in one round and nothing in the
 * next, so the value of a round is not the rate of one candidate by depth, but the mean value of its trees after their rows were
 * chosen. Kept once for all texts and once for each running one, which starts with the values of all texts. Expectations that did
 * not come true count less: the fraction that did is kept too, so a drafter with high estimates that are wrong is recognised after
 * a few rounds, before its rates are known.
 */
#ifndef HN_YIELD_H
#define HN_YIELD_H
#include "plan/acceptance.h"

typedef struct hn_yield_sums {
    float rounds, rows, depth, levels, gain; /* decaying; gain: drafted tokens that were expected to be accepted */
    float expected, got;             /* the same for trees that were verified, and the tokens that were accepted */
} hn_yield_sums;
typedef struct hn_yield {
    hn_yield_sums of[HN_ACCEPT_DRAFTERS];
} hn_yield;

/* One round of one text in which the drafter was called. */
typedef struct hn_yield_round {
    int rows, depth; /* of its tree, drafted, worth verifying; 0: it proposed nothing */
    double gain;     /* tokens that these are expected to gain */
    bool verified;   /* its rows were verified: `got` of them were accepted */
    int got;
    int levels;      /* drafted, of one that is decided on level by level */
} hn_yield_round;

typedef struct hn_yield_mean {
    double rows, depth, levels, gain; /* of the next round, of one text; gain <= rows */
} hn_yield_mean;

void hn_yield_begin(hn_yield *own, const hn_yield *all); /* a new text: starts with a few rounds of all texts' means */
void hn_yield_learn(hn_yield *all, hn_yield *own, int drafter, const hn_yield_round *r);
/* After each round of the text: decays its sums, of the first n drafters. */
void hn_yield_pass(hn_yield *own, int n_drafters);
/* Zeros as long as it was never called. */
hn_yield_mean hn_yield_of(const hn_yield *all, const hn_yield *own, int drafter);
#endif
