/* SPDX-License-Identifier: Apache-2.0 */
/* prefixes.h - rows that texts share (shared_rows.c), and values that were asked for of a prompt's rows (prompt_rows.c). */
#ifndef HN_PREFIXES_H
#define HN_PREFIXES_H
#include "engine/session.h"

/* ---- shared_rows.c ---- */

/* Adds the pages that became full to the prefix index. */
void hn_session_publish(hunch_session *s);
/* The same for a text that gives its place back: its last page too, which is not full, so that what continues it computes new rows only. */
void hn_session_publish_end(hunch_session *s);
/* Computes the pending rows of drafters, of all these texts together, so that a text that continues one of them finds them. */
void hn_flush_pending(hunch_engine *e, hunch_session *const *s, int n);
/* The same for texts of which a drafter has not computed all rows that they share with this one, which is about to restore them. */
void hn_flush_alike(const hunch_session *s);
/* Whether a placed session is about to compute rows that this one shares. Then it waits for them: answers to one prompt, or prompts
 * with one system message, are computed once. */
bool hn_shared_rows_pending(const hunch_engine *e, hunch_session *s);

/* ---- prompt_rows.c ---- */

/* The values that were requested of the prompt's rows. */
hunch_status hn_prompt_values_open(hunch_session *s, const hunch_request *r, hunch_error *err);
void hn_prompt_values_fini(hn_session_text *t);
/* Rows that it may take from the prefix index: those whose values it has, if it was asked for any, else all. */
size_t hn_prompt_shared_rows(const hunch_session *s);
/* Whether it needs all logits of this row of the prompt, or its state. */
bool hn_prompt_wants_logits(const hunch_session *s, size_t row);
bool hn_prompt_wants_state(const hunch_session *s, size_t row);
/* Takes what it needs of the rows that the last pass computed. */
void hn_prompt_rows_read(hunch_session *s);
#endif
