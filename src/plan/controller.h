/* SPDX-License-Identifier: Apache-2.0 */
/* controller.h - `auto`: decides each round, from measured cost and measured acceptance, which drafted rows are verified,
 * which drafters are called, and how deep one that costs passes of its own drafts. Drafting nothing is always a choice
 * (contract C5), and every drafter's time is part of the value of the choice that calls it.
 *
 * value of a choice = Σ over sequences (1 + Σ probability that each drafted row is on the accepted path) / seconds of the
 * round. Rows of all texts are taken in order of that probability up to the number of best value (TETRIS 2502.15197, goodput 2406.14066);
 * along a path probabilities fall, so the rows that are taken are connected. A row of a text with a long context costs more, and
 * comes later by as much. Rows of prompts in the pass change the price of drafted rows, and are no part of the round's own time.
 *
 *   round:  start → (choose → one drafter's round, or its levels while go_on → took)* → prune → the pass → hn_cost_pass,
 *           observe
 * The next round's roots show the target's tokens where trees were cut, so candidates that are not verified are learned from,
 * too; drafters that cost time and have no expected gain are tried now and then, all together at a loss of at most 1 % of the time; and
 * a round without drafts now and then, at most 0.5 %, keeps the measured time of plain decoding up to date.
 *
 * It never looks at text, and its decisions may depend on candidates' values, so it serves trees under greedy and match
 * alone, or under any rule if `by_history` is set: then it decides before anything is drawn, from past rounds only.
 */
#ifndef HN_CONTROLLER_H
#define HN_CONTROLLER_H
#include "draft/drafter.h"
#include "draft/round_drafts.h"
#include "plan/acceptance.h"
#include "plan/cost.h"

typedef struct hn_controller hn_controller;

/* kinds[d]: whether drafter d spends its time per level or per round (hn_needs). */
hunch_status hn_controller_open(hn_controller **out, const hn_draft_cost *kinds, int n_drafters, int max_seqs,
                                hunch_error *err);
void hn_controller_close(hn_controller **c);
/* Limits the levels of a drafter; the default is no limit. */
void hn_controller_limit(hn_controller *c, int drafter, int levels);
/* Its candidates stay (hn_candidate): whatever its own time is, calling it costs rows. */
void hn_controller_stays(hn_controller *c, int drafter);
/* Of HN_COST_PER_ROUND, and fewer levels take less time. */
void hn_controller_saves(hn_controller *c, int drafter);
void hn_controller_begin(hn_controller *c, int seq); /* a new text: its own estimates start from those of all texts */
void hn_controller_forget(hn_controller *c);         /* drops acceptance estimates, keeps costs */
hn_cost *hn_controller_cost(hn_controller *c);       /* to which the engine reports the time of passes */

typedef struct hn_plan_seq {
    int seq, context; /* committed rows */
    hn_tree *tree;
    int depth_limit; /* no deeper level may be drafted */
    double reads;    /* keys and values that a row of it reads, in the unit of hn_cost_work */
    uint32_t without; /* bit d: drafter d is not called for it */
} hn_plan_seq;

typedef struct hn_plan_round {
    int rows;          /* most rows of all trees together, roots included */
    const int *behind; /* rows of text that each drafter has to read, over all sequences, before it can draft; 0: no more than a
                          round adds */
    hn_cost_work beside; /* rows of prompts that are expected in the same pass */
} hn_plan_round;

void hn_controller_start(hn_controller *c, const hn_plan_seq *s, int n, const hn_plan_round *r);
/* The drafter to call next, for all sequences together but those without it; -1: no more. */
int hn_controller_choose(hn_controller *c, const hn_plan_seq *s, int n, bool by_history);
/* How many levels, at most `most`, such a drafter is to draft for a text; asked for once in a call. Others: `most`. */
int hn_controller_levels(hn_controller *c, int seq, int drafter, int most);
/* Before each level of a drafter of HN_COST_PER_LEVEL: whether that level is worth its time. */
bool hn_controller_go_on(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int level, bool by_history);
/* The time that such a drafter took for n sequences, after each level, or another after all its levels (as level 0), and how many
 * candidates it added. */
void hn_controller_took(hn_controller *c, int drafter, int n, int level, int added, double seconds);
/* Removes the rows that are not worth verifying from the trees. by_history: drawn candidates stay. */
void hn_controller_prune(hn_controller *c, const hn_plan_seq *s, int n, bool by_history);
/* What was considered for sequence i of the last round's list, for `run --why`: plain decoding, each drafter alone, the expected
 * gain of those that were not called, and several drafters together (drafter -2). Points into the controller until the next
 * round. *chosen is the index of the choice, *reason why another may have better numbers. Returns 0 as long as no pass was timed. */
int hn_controller_considered(const hn_controller *c, int i, const hunch_choice **list, int *chosen, hunch_reason *reason);

/* What was verified and accepted. Drafts that were not reached are not counted (censoring). */
void hn_controller_observe(hn_controller *c, int seq, const hn_round_drafts *r);
#endif
