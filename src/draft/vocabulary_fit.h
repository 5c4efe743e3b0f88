/* SPDX-License-Identifier: Apache-2.0 */
/* vocabulary_fit.h - whether the token ids of two models mean the same. Required for a drafter with a vocabulary of its own
 * (contract C6). */
#ifndef HN_VOCABULARY_FIT_H
#define HN_VOCABULARY_FIT_H
#include "text/tokenizer/tokenizer.h"

typedef struct hn_vocabulary {
    const char *name;              /* of the model, for the message; NULL or empty: none */
    int size;                      /* logits of a row: at least the tokenizer's tokens, the rest is padding */
    const hn_tokenizer *tokenizer; /* NULL: none */
} hn_vocabulary;

/* HUNCH_OK if every id stands for the same bytes in both, or is padding in both: sizes may differ by padding. Without a
 * tokenizer on either side the sizes must be equal. HUNCH_REFUSED names both and the first difference. */
hunch_status hn_vocabulary_fit(const hn_vocabulary *target, const hn_vocabulary *draft, hunch_error *err);
#endif
