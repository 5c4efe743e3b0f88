/* SPDX-License-Identifier: Apache-2.0 */
/* round.h - the steps of a round, for those who take them one by one: rows of sessions are put together, run, read and reported.
 *
 *   hn_batch_add · hn_batch_run · verdicts of all sessions, by all workers · of each its hn_tree_take, or its prompt · hn_batch_end
 */
#ifndef HN_ROUND_H
#define HN_ROUND_H
#include "engine/session.h"

/* A pass that is being put together. */
typedef struct hn_batch {
    hn_row *row; /* lists of the engine, as the next four */
    hunch_session **session;
    int *cache_seq;
    int *n_certain;    /* rows of each session that will be committed whatever the verifier decides */
    bool *first_token; /* nothing was emitted before */
    int n_rows, n_logits, n_sessions;
    int n_prompt_rows;      /* of n_rows: of prompts, and of preempted texts that are read again */
    hn_cost_work work;      /* for the controller */
    double pass_s, read_at; /* seconds of the pass; when it was over */
} hn_batch;

/* An empty one: there is one at a time. */
hn_batch hn_batch_begin(hunch_engine *e);
/* Adds the session's round.n_rows rows, which are reserved (hn_make_room). */
void hn_batch_add(hn_batch *b, hunch_session *s);
/* Runs the pass. */
hunch_status hn_batch_run(hunch_engine *e, hn_batch *b, hunch_error *err);
/* Emits the session's round.verdict on its tree and commits the rows: the root's, and those of every emitted token but the newest, whose
 * row is computed with the next tree. On failure the caller fails the session. */
hunch_status hn_tree_take(hunch_session *s, hunch_error *err);
/* Feeds and reports to drafters, controller and index, releases sessions that ended, and empties the batch. */
void hn_batch_end(hunch_engine *e, hn_batch *b);
/* Whether the backend finds what the target decides of a text, without the host: it has one wait a round, and the text asks for nothing but
 * its tokens, by greedy or match. By request under match, since a device's draws are its own. */
bool hn_session_is_matched(const hunch_session *s);
/* The best token after row i of the session's tree; -1: no logit is a number. */
int32_t hn_tree_best(const hunch_session *s, int row);
/* Rows of prompts that a round reads beside decoding texts with so many rows; 0: as many as a pass takes. */
int hn_prompt_budget(const hunch_engine *e, int beside);
/* One round over the given placed and running sessions. */
hunch_status hn_round(hunch_engine *e, hunch_session *const *sessions, int n, hunch_error *err);
#endif
