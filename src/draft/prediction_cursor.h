/* SPDX-License-Identifier: Apache-2.0 */
/* prediction_cursor.h - where in a predicted text the emitted one stands, through insertions, deletions and
 * replacements.
 *
 *   prediction   … int foo ( a , b ) …          emitted   … int bar ( a
 *                      └─ base: the first that differed          └─ off = 1 token later the thread was found again:
 *                                                                   foo → bar is kept, and drafted at the next foo
 *
 * While tokens agree the cursor moves with them. Where one differs, the emitted text's last tokens are looked for: a
 * few tokens from where the thread broke one agreeing token will do, within the window two, anywhere else three; then
 * the longest agreement beyond what it needs wins, of equals the nearest. Until something is found, up to two tokens
 * are taken for replacements, one for one; after that the thread is lost.
 *
 * The state is a function of the emitted tokens, however many at a time are shown.
 */
#ifndef HN_PREDICTION_CURSOR_H
#define HN_PREDICTION_CURSOR_H
#include "draft/draft_chain.h"
#include "draft/prediction_text.h"

enum { HN_CURSOR_SPAN = 8, HN_CURSOR_EDITS = 8 };

/* The prediction's tokens at `at` were replaced by others, or left out (n 0). */
typedef struct hn_cursor_edit {
    int at, len; /* len 0: none */
    int n;
    int32_t token[HN_CURSOR_SPAN];
} hn_cursor_edit;

typedef struct hn_cursor {
    int at;     /* the prediction's token that is expected next; -1: lost, or inside an edit */
    int agreed; /* tokens before it that agreed in a row */
    int base;   /* where the thread broke last, with `held` tokens agreeing before it */
    int held;
    int off;      /* tokens emitted since, 0: it is followed */
    int firm;     /* where it broke last after a good many tokens agreed */
    int edit;     /* an edit that the tokens since base began to repeat, -1: none */
    float luck;   /* how often the token behind a place that was just found agreed, lately */
    float breaks; /* how often one behind a firm place did not */
    hn_cursor_edit edits[HN_CURSOR_EDITS];
    int n_edits; /* ever; the newest HN_CURSOR_EDITS are kept */
} hn_cursor;

void hn_cursor_init(hn_cursor *c); /* at the start of the prediction, which is trusted as if a few tokens had agreed */
/* Token emitted[i] came; those before were shown. window: tokens on both sides of where the thread broke. */
void hn_cursor_advance(hn_cursor *c, const hn_prediction_text *x, const int32_t *emitted, int i, int window);
/* What the prediction says next, with the edits seen so far: up to `most` tokens, while they are likely to be reached.
 * */
void hn_cursor_draft(const hn_cursor *c, const hn_prediction_text *x, int most, hn_draft_chain *out);
#endif
