/* SPDX-License-Identifier: Apache-2.0 */
/* head_force.h - key `force` of draft heads: the head runs, then its tokens are replaced on purpose, by those of the plain text or by
 * wrong ones, to separate the cost of a head from its quality. force=A[/B...]: the likeliest token is right with probability A, the second
 * with B, and so on, and these are the head's estimates. */
#ifndef HN_HEAD_FORCE_H
#define HN_HEAD_FORCE_H
#include "base/random.h"
#include "draft/drafter.h"

enum { HN_FORCED_RANKS = 16 };

/* How often the candidate of each rank is right; falling, their sum at most 1. n 0: not given. */
typedef struct hn_forced_rates {
    int n;
    double of_rank[HN_FORCED_RANKS];
} hn_forced_rates;

/* HUNCH_USAGE names the spec and its key. */
hunch_status hn_forced_rates_read(hn_forced_rates *r, hn_spec *spec, hunch_error *err);
/* Whether the rates take the place of the head's own estimates. Not if there are none, or if no rank is ever right: a worthless head's
 * estimates are its own. */
bool hn_forced_rates_are_estimates(const hn_forced_rates *r);
/* If so, replaces the estimates of n tokens, best first, by the rates; ranks without one keep a part of theirs. */
void hn_forced_rates_estimate(const hn_forced_rates *r, float *prob, int n);

/* The plain text of a sequence, for a forced head. */
typedef struct hn_head_oracle {
    int32_t *token; /* the plain continuation of the prompt; owned; NULL: none */
    int n;
    hn_random_key key; /* of the next choice */
} hn_head_oracle;

hunch_status hn_head_oracle_begin(hn_head_oracle *o, const hn_begin *b,
                                  hunch_error *err); /* replaces the previous one */
void hn_head_oracle_end(hn_head_oracle *o);          /* zeroed is fine */
/* Replaces tokens among the n after a path of `depth` tokens that was right so far: one of them, whose rank is drawn by the rates,
 * by the right one, or none; the first, if it is another, by a wrong one; others that are right become wrong. Returns the rank after
 * which the text can still be right, -1: none. */
int hn_head_oracle_force(hn_head_oracle *o, const hn_propose *p, const hn_forced_rates *rates, int drafter, int vocab, int depth,
                         int32_t *token, int n);
#endif
