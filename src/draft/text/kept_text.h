/* SPDX-License-Identifier: Apache-2.0 */
/* kept_text.h - a drafter's own copy of a sequence's text, for stores that learn from it when the caller's is not
 * available (observe and end do not receive the text). */
#ifndef HN_KEPT_TEXT_H
#define HN_KEPT_TEXT_H
#include "draft/drafter.h"

typedef struct hn_kept_text {
    int32_t *token;
    size_t cap;
    int n;
    int confirmed; /* the first of n that the caller has shown; the others were accepted since */
    bool whole; /* tokens of the next round follow directly on the copy */
} hn_kept_text;

void hn_kept_text_fini(hn_kept_text *k); /* usable again, empty */
/* Extends the copy to the committed text. Its first `confirmed` tokens must not have changed.
 * False: no memory; the copy stays a prefix of the text. */
bool hn_kept_text_show(hn_kept_text *k, const hn_committed_text *t);
/* Adds the tokens of a round, if the text was shown before it, until it is shown again. Idempotent. */
void hn_kept_text_observe(hn_kept_text *k, const hn_observe *o);
#endif
