/* SPDX-License-Identifier: Apache-2.0 */
/* kept_text.h - a drafter's own copy of a sequence's text, for stores that learn from it when the caller's is not at
 * hand (observe and end are not shown the text). */
#ifndef HN_KEPT_TEXT_H
#define HN_KEPT_TEXT_H
#include "draft/drafter.h"

typedef struct hn_kept_text {
    int32_t *token;
    size_t cap;
    int n;
    int sure;   /* the first of n that the caller has shown; the others were accepted since */
    bool whole; /* what the next round emits follows on the copy */
} hn_kept_text;

void hn_kept_text_fini(hn_kept_text *k); /* usable again, empty */
/* Brings the copy up to the committed text. What it holds of `sure` must not have changed (hn_kept_text_cut tells it).
 * False: no memory; the copy stays a beginning of the text. */
bool hn_kept_text_show(hn_kept_text *k, const hn_committed_text *t);
/* Adds what a round emitted, if the text was shown before it, until it is shown again. Twice is once. */
void hn_kept_text_observe(hn_kept_text *k, const hn_observe *o);
void hn_kept_text_cut(hn_kept_text *k, int n); /* only the first n stay */
#endif
