/* SPDX-License-Identifier: Apache-2.0 */
/* head_force.h - key `force` of draft heads: the head runs, then its tokens are replaced on purpose, by those of the plain text or by
 * wrong ones, to separate the cost of a head from its quality. */
#ifndef HN_HEAD_FORCE_H
#define HN_HEAD_FORCE_H
#include "base/random.h"
#include "draft/drafter.h"

/* The plain text of a sequence, for a forced head. */
typedef struct hn_head_oracle {
    int32_t *token; /* the plain continuation of the prompt; owned; NULL: none */
    int n;
    hn_random_key key; /* of the next choice */
} hn_head_oracle;

hunch_status hn_head_oracle_begin(hn_head_oracle *o, const hn_begin *b,
                                  hunch_error *err); /* replaces the previous one */
void hn_head_oracle_end(hn_head_oracle *o);          /* zeroed is fine */
/* Replaces the first of n tokens after a path of `depth` tokens that was right so far: by the right one with probability `accept`, else by
 * a wrong one; others that are right become wrong. Returns whether the text can still be right after the first. */
bool hn_head_oracle_force(hn_head_oracle *o, const hn_propose *p, double accept, int drafter, int vocab, int depth,
                          int32_t *token, int n);
#endif
