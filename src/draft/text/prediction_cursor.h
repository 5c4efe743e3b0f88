/* SPDX-License-Identifier: Apache-2.0 */
/* prediction_cursor.h - the position of the emitted text in a predicted one, through insertions, deletions and
 * replacements.
 *
 *   prediction   … int foo ( a , b ) …          emitted   … int bar ( a
 *                      └─ base: the first that differed          └─ off = 1 token later the position was found again:
 *                                                                   foo → bar is stored, and drafted at the next foo
 *
 * While tokens agree the cursor moves with them. When one differs, the emitted text's last tokens are searched for:
 * close to the break one agreeing token is enough, within the window two, anywhere else three; then
 * the longest agreement beyond the required one wins, of equals the nearest. Until a place is found, up to two tokens
 * are assumed to be replacements, one for one; after that the position is lost.
 *
 * The state is a function of the emitted tokens, in whatever steps they are shown.
 */
#ifndef HN_PREDICTION_CURSOR_H
#define HN_PREDICTION_CURSOR_H
#include "draft/draft_chain.h"
#include "draft/text/prediction_text.h"

enum { HN_CURSOR_SPAN = 8, HN_CURSOR_EDITS = 8, HN_CURSOR_PLACES = 4 };

/* The prediction's tokens at `at` were replaced by others, or omitted (n 0). */
typedef struct hn_cursor_edit {
    int at, len; /* len 0: none */
    int n;
    int32_t token[HN_CURSOR_SPAN];
} hn_cursor_edit;

typedef struct hn_cursor {
    int at;     /* the prediction's token that is expected next; -1: lost, or inside an edit */
    int agreed; /* tokens before it that agreed in a row */
    int base;   /* position of the last break, with `agreed_before` tokens agreeing before it */
    int agreed_before;
    int off;      /* tokens emitted since, 0: none */
    int firm;     /* position of the last break after at least four tokens agreed */
    int edit;     /* an edit that the tokens since base began to repeat, -1: none */
    float other_rate;   /* moving average: how often, when there were other places, one of them had the next token */
    float found_rate;   /* moving average: how often the token after a place that was just found agreed */
    float break_rate; /* how often one after an established place did not */
    hn_cursor_edit edits[HN_CURSOR_EDITS];
    int n_edits; /* ever; the newest HN_CURSOR_EDITS are kept */
} hn_cursor;

void hn_cursor_init(hn_cursor *c); /* at the start of the prediction, as if a few tokens had agreed */
/* Processes token emitted[i], after those before it. window: tokens on both sides of the last break. */
void hn_cursor_advance(hn_cursor *c, const hn_prediction_text *x, const int32_t *emitted, int i, int window);
/* Places of the prediction where the last four or more tokens of text [n] occur and go on with another token than `next`, and than each
 * other: the first `most`. Returns how many. */
int hn_prediction_others(const hn_prediction_text *x, const int32_t *text, int n, int32_t next, int at[HN_CURSOR_PLACES], int most);
/* The next tokens of the prediction, with the edits seen so far: up to `most` tokens, while they are likely to be reached. */
void hn_cursor_draft(const hn_cursor *c, const hn_prediction_text *x, int most, hn_draft_chain *out);
#endif
