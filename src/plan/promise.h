/* SPDX-License-Identifier: Apache-2.0 */
/* promise.h - what asking a drafter brings, known before it is asked: the drafted tokens that its tree is expected to gain,
 * the rows that it takes, after pruning, as the mean of its past rounds, of those too in which it had nothing to say.
 *
 * acceptance.h speaks of one candidate. A tree has several at a row, and a drafter is sure in one round and silent in the
 * next, so what a round of it is worth is not the rate of one candidate by depth; what its trees were worth after their
 * rows had been chosen is. Kept once for all texts and once for each running one, which begins as the others were. An
 * expectation that did not come true counts less: the part of it that did is kept too, so one that is sure of itself and
 * wrong is known after a few rounds, before its rates are.
 */
#ifndef HN_PROMISE_H
#define HN_PROMISE_H
#include "plan/acceptance.h"

typedef struct hn_promise_sums {
    float rounds, rows, depth, levels, gain; /* fading; gain: drafted tokens that were expected to be accepted */
    float expected, got;             /* the same of the trees that were verified, and what was accepted */
} hn_promise_sums;
typedef struct hn_promise {
    hn_promise_sums of[HN_ACCEPT_DRAFTERS];
} hn_promise;

/* One round of one text in which the drafter was asked. */
typedef struct hn_promise_round {
    int rows, depth; /* of its tree, drafted, worth verifying; 0: it had nothing to say */
    double gain;     /* tokens that these are expected to gain */
    bool verified;   /* rows were: `got` says how many of its own were accepted */
    int got;
    int levels;      /* that it drafted, of one that is decided on level by level */
} hn_promise_round;

typedef struct hn_promised {
    double rows, depth, levels, gain; /* of the next round, of one text; gain <= rows */
} hn_promised;

void hn_promise_begin(hn_promise *own, const hn_promise *all); /* a new text: a few rounds as all texts' are */
void hn_promise_learn(hn_promise *all, hn_promise *own, int drafter, const hn_promise_round *r);
/* A round of the text went by; for the first n drafters. */
void hn_promise_pass(hn_promise *own, int n_drafters);
/* Zeros, as long as it was never asked. */
hn_promised hn_promise_of(const hn_promise *all, const hn_promise *own, int drafter);
#endif
