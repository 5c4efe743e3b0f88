/* SPDX-License-Identifier: Apache-2.0 */
/* common_tokens.h - the tokens that a head of a reduced vocabulary drafts: the commonest of the target's own words, the target's special
 * ones always among them. */
#ifndef HN_COMMON_TOKENS_H
#define HN_COMMON_TOKENS_H
#include "engine/engine.h"
#include "train/features.h"

typedef struct hn_common_tokens {
    int n;
    int32_t *ids;    /* [n] rising: the target's token of each output */
    int32_t *first;  /* [n] the same, special ones first, then the commonest, of equally common ones the smaller id */
    int32_t *output; /* [target's vocabulary] of each token, -1: none */
    double coverage; /* of the target's own words: how many they are, 0..1 */
} hn_common_tokens;

/* n: at most the vocabulary. */
hunch_status hn_common_tokens_choose(hn_common_tokens *c, hunch_model *m, const hn_features_read *f, int n,
                                     hunch_error *err);
void hn_common_tokens_free(hn_common_tokens *c); /* zeroed is fine; also behind a failure */
#endif
