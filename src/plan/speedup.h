/* SPDX-License-Identifier: Apache-2.0 */
/* speedup.h - the arithmetic of speculation: what a chain of K drafts gives, by rates of acceptance and costs in passes of one row
 * (Leviathan 2211.17192; docs/control.md). The controller has its own, of measured trees; this is what plans and tables are made of.
 *
 * Two numbers are called acceptance. `a` is the rate of a draft whose predecessors were right; `r` is accepted / drafted, (a + a² + ... +
 * a^K) / K, which is smaller and falls with K. A formula takes one of them, and mixing them is an error.
 */
#ifndef HN_SPEEDUP_H
#define HN_SPEEDUP_H

/* Tokens a round of K drafts that are each right with rate a if those before were. a in 0..1. */
double hn_speedup_tokens(double a, int k);
/* The factor by which a round of K drafts is faster than plain decoding: tokens / (K c + v). c: a draft's time, v: that of the pass that
 * verifies, both in passes of one row; the paper's v is 1. */
double hn_speedup_factor(double a, int k, double c, double v);
/* Arithmetic a token, relative to plain decoding; c_op: of a draft. */
double hn_speedup_operations(double a, int k, double c_op);
/* The rate of each draft of chains of K of which r were accepted. */
double hn_speedup_rate(double r, int k);
/* The c that a measured factor implies: with K drafts of which r were accepted, a mean of rounds or a whole number. What a pass of K + 1
 * rows takes beyond one row is in it. */
double hn_speedup_cost(double factor, double r, double k);
/* The K of the largest factor up to `most`; 0: none is above 1. */
int hn_speedup_depth(double a, double c, int most);
/* Experts of `count` that n rows use if each chooses `used` of them by itself. */
double hn_speedup_experts(int count, int used, double n);
#endif
