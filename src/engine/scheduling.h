/* SPDX-License-Identifier: Apache-2.0 */
/* scheduling.h - which sessions have a place (scheduler.c), and whether there are pages for one more (text_room.c). Results of a session do
 * not depend on when it has one. */
#ifndef HN_SCHEDULING_H
#define HN_SCHEDULING_H
#include "engine/session.h"

/* What text_room.c knows of a text: rows that it has, or is about to read; tokens that it may still get, and is expected to; pages that it
 * holds, and of these those that are nobody else's; tokens a round. */
typedef struct hn_text_room {
    int rows, left, more, held, own;
    bool paused;
    double rate;
} hn_text_room;

/* ---- scheduler.c ---- */

/* Places waiting sessions while there are places and pages: by priority, those that were preempted first, then by age, but one in eight
 * the one that waited longest. A session that fails ends alone. */
void hn_admit(hunch_engine *e);
/* Ends the sessions whose deadline has passed. */
void hn_expire(hunch_engine *e);
void hn_fail_all(hunch_engine *e, const hunch_error *why); /* ends every session */
/* Reserves pages for rows of a sequence that is no session's. If there are too few, sessions are preempted: those of the lowest priority
 * first, of these the youngest. */
hunch_status hn_reserve(hunch_engine *e, int seq, int rows, hunch_error *err);
/* Reserves pages for the session's round.n_rows. If there are too few, sessions are preempted, in that order, and wait; they are computed
 * again later, with the same result. false: this session itself was preempted, or failed. */
bool hn_make_room(hunch_session *s);
/* ---- text_room.c ---- */

/* Whether there are pages for the text beside those that have a place. */
bool hn_has_room(const hunch_engine *e, const hunch_session *s);
void hn_room_learn(hn_answer_lengths *l, size_t tokens, hunch_finish how); /* of an answer that ended */

/* Rows that the cache must hold before the session can draft: all of the prompt, because its last row decides the first token; of
 * a resumed text all but the newest token. */
static inline size_t hn_prefill_rows(const hunch_session *s) {
    return s->text.n > s->text.n_prompt ? s->text.n - 1 : s->text.n_prompt;
}
#endif
