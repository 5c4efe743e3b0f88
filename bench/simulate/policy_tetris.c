/* SPDX-License-Identifier: Apache-2.0 */
/* policy_tetris.c - TETRIS (2502.15197): every text drafts to a fixed depth; of all drafts as many are verified as a fixed capacity of rows
 * holds, those with the largest product of the drafter's own estimates. The cut looks at the drafted tokens' probabilities, so it is not
 * lossless under ratio and block. */
#include <stdlib.h>

#include "plan/tree_rows.h"
#include "simulate.h"

typedef struct tetris {
    sim_settings s;
    hn_plan_item list[SIM_TEXTS * HN_TREE_ROWS];
    bool keep[SIM_TEXTS][HN_TREE_ROWS];
} tetris;

static void *open(const sim_data *d, const sim_settings *s) {
    (void)d;
    tetris *t = sim_alloc(sizeof *t);
    t->s = *s;
    return t;
}

static void draft(void *state, sim_round *r) {
    tetris *t = state;
    const hn_tree *tree[SIM_TEXTS];
    for (int level = 0; level < t->s.depth && sim_propose(r, t->s.drafter, level) > 0; level++) {}
    for (int i = 0; i < r->n; i++) tree[i] = &r->text[i]->tree;
    const int room = (int)t->s.capacity - r->n;
    hn_plan_cut_by_estimate(tree, r->n, room > 0 ? room : 0, t->list, t->keep);
    for (int i = 0; i < r->n; i++) hn_tree_keep(&r->text[i]->tree, t->keep[i], NULL);
}

const sim_policy sim_tetris = {"tetris", "the likeliest drafts of all texts, as many as a fixed number of rows holds", false,
                               open, free, NULL, draft, NULL};
