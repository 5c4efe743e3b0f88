/* SPDX-License-Identifier: Apache-2.0 */
/* head_force.h - key `force` of draft heads: the head runs, then its tokens are replaced on purpose, by what the plain text says or by
 * what is wrong, to tell what a head costs from how good it is. */
#ifndef HN_HEAD_FORCE_H
#define HN_HEAD_FORCE_H
#include "base/random.h"
#include "draft/drafter.h"

/* What a forced head knows of a sequence. */
typedef struct hn_head_oracle {
    int32_t *token; /* the plain continuation of the prompt; owned; NULL: none */
    int n;
    hn_random_key key; /* of the next choice */
} hn_head_oracle;

hunch_status hn_head_oracle_begin(hn_head_oracle *o, const hn_begin *b,
                                  hunch_error *err); /* in the place of what it was */
void hn_head_oracle_end(hn_head_oracle *o);          /* zeroed is fine */
/* Replaces the first of n tokens behind a path of `depth` tokens that was right so far: by the right one with probability `accept`, else by
 * a wrong one; what else is right becomes wrong. Returns whether the text can still be right behind the first. */
bool hn_head_oracle_force(hn_head_oracle *o, const hn_propose *p, double accept, int drafter, int vocab, int depth,
                          int32_t *token, int n);
#endif
