/* SPDX-License-Identifier: Apache-2.0 */
/* controller.h - `auto`: decides each round, from measured cost and measured acceptance, which drafted rows are verified,
 * which drafters are asked, and how far one that costs passes of its own goes. Nothing at all is always a choice (contract
 * C5), and every drafter's time is part of the choice that asks it.
 *
 * value of a choice = Σ over sequences (1 + Σ probability that each drafted row is on the accepted path) / seconds of the
 * round. Rows are taken in order of that probability up to the number of best value (TETRIS 2502.15197, goodput 2406.14066);
 * along a path probabilities fall, so what is taken is connected.
 *
 *   round:  start → (choose → one drafter's round, or its levels while go_on → took)* → prune → the pass → hn_cost_pass,
 *           observe
 *
 * The next round's roots tell what the target said where trees were cut, so candidates that are not verified teach too;
 * drafters that cost and promise nothing are tried now and then, all together for at most 1 % of the time; and a round
 * without drafts now and then, at most 0.5 %, keeps the time of plain decoding known.
 *
 * It never looks at text, and its decisions may depend on candidates' values, so it serves trees under greedy and match
 * alone, or under any rule if `by_history` is set: then it decides before anything is drawn, from past rounds only.
 */
#ifndef HN_CONTROLLER_H
#define HN_CONTROLLER_H
#include "draft/drafter.h"
#include "draft/tree.h"
#include "plan/acceptance.h"
#include "plan/cost.h"

typedef struct hn_controller hn_controller;

/* kinds[d]: what the time of drafter d is spent on (hn_needs). */
hunch_status hn_controller_open(hn_controller **out, const hn_draft_cost *kinds, int n_drafters, int max_seqs,
                                hunch_error *err);
void hn_controller_close(hn_controller **c);
/* Drafter d has no more than so many levels; else they are thought to be unlimited. */
void hn_controller_limit(hn_controller *c, int drafter, int levels);
void hn_controller_begin(hn_controller *c, int seq); /* a new text: its own estimates start from everybody's */
void hn_controller_forget(hn_controller *c);         /* acceptance estimates go, costs stay */
hn_cost *hn_controller_cost(hn_controller *c);       /* the engine tells it the time of passes */

typedef struct hn_plan_seq {
    int seq, context; /* committed rows */
    hn_tree *tree;
    int depth_limit; /* no deeper level may be drafted */
} hn_plan_seq;

/* A round begins. behind[d]: rows of text that drafter d has to read, over all sequences, before it can draft; 0: no more
 * than a round adds. */
void hn_controller_start(hn_controller *c, const hn_plan_seq *s, int n, const int *behind);
/* The drafter that is asked next, for all sequences together; -1: no more of them. */
int hn_controller_choose(hn_controller *c, const hn_plan_seq *s, int n, bool by_history);
/* Before each level of a drafter that is decided on level by level: is that level worth it? */
bool hn_controller_go_on(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int level, bool by_history);
/* What it took, of such a drafter after each level, of another after all its levels (as level 0), and how many candidates
 * came of it. */
void hn_controller_took(hn_controller *c, int drafter, int n, int level, int added, double seconds);
/* Takes the rows that are not worth verifying out of the trees. by_history: drawn candidates stay. */
void hn_controller_prune(hn_controller *c, const hn_plan_seq *s, int n, bool by_history);
/* What was considered for sequence i of the last round's list, for `run --why`: plain decoding, each drafter alone, what
 * those had promised that were not asked, and several drafters together (drafter -2). Points into the controller until the next round.
 * *chosen is its index. 0: nothing, as long as no pass was timed. */
int hn_controller_considered(const hn_controller *c, int i, const hunch_choice **list, int *chosen);

/* What was verified and accepted: n_accepted rows of the path behind the root. A candidate whose row was not reached says
 * nothing (censoring). */
void hn_controller_observe(hn_controller *c, int seq, const hn_tree *t, const int16_t *path, int n_accepted);
#endif
