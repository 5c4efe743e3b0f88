/* SPDX-License-Identifier: Apache-2.0 */
/* common_tokens.h - the tokens that a head with a reduced vocabulary drafts: the most frequent ones in the target's
 * answers, and always the target's special tokens. */
#ifndef HN_COMMON_TOKENS_H
#define HN_COMMON_TOKENS_H
#include "engine/engine.h"
#include "train/data/features.h"

typedef struct hn_common_tokens {
    int n;
    int32_t *ids;    /* [n] ascending: the target's token of each output */
    int32_t *first;  /* [n] the same, special ones first, then by frequency, ties by the smaller id */
    int32_t *output; /* [target's vocabulary] output of each token, -1: none */
    double coverage; /* their share in the tokens of the target's answers, 0..1 */
} hn_common_tokens;

/* n: at most the vocabulary. */
hunch_status hn_common_tokens_choose(hn_common_tokens *c, hunch_model *m, const hn_features_read *f, int n,
                                     hunch_error *err);
void hn_common_tokens_free(hn_common_tokens *c); /* zeroed is fine; also after a failure */
#endif
