/* SPDX-License-Identifier: Apache-2.0 */
/* prediction_text.h - the text that a caller expects, and the positions of its sequences of three tokens. Read-only after
 * init. */
#ifndef HN_PREDICTION_TEXT_H
#define HN_PREDICTION_TEXT_H
#include "base/status.h"

enum { HN_ANCHOR = 3 };

typedef struct hn_prediction_text {
    int32_t *token; /* [n] */
    int n;
    int32_t *head; /* [mask + 1] first end of an anchor with this hash, -1: none */
    int32_t *next; /* [n + 1] by the end of an anchor: the next one with its hash, -1: none */
    uint32_t mask;
} hn_prediction_text;

/* Copies the tokens. HUNCH_NO_MEMORY: nothing is left behind. */
hunch_status hn_prediction_text_init(hn_prediction_text *x, const int32_t *token, int n, hunch_error *err);
void hn_prediction_text_fini(hn_prediction_text *x); /* zeroed is fine */
/* The first and the next place whose last tokens may be these three (compare them), as the end of the three; -1: no
 * more. */
int hn_prediction_text_first(const hn_prediction_text *x, const int32_t anchor[HN_ANCHOR]);
int hn_prediction_text_next(const hn_prediction_text *x, int end);
#endif
