/* SPDX-License-Identifier: Apache-2.0 */
/* sim_round.c - what a policy can do in a round: let a drafter add a level to all trees. */
#include <stdlib.h>

#include "base/least.h"
#include "plan/tree_rows.h"
#include "simulate.h"

/* The last token is the target's own. */
int sim_depth_limit(const sim_text *t) {
    return t->answer->n - 2 - t->at;
}

static int rows_of(const sim_round *r) {
    int rows = 0;
    for (int i = 0; i < r->n; i++) rows += r->text[i]->tree.n_rows;
    return rows;
}

/* The recorded drafts of this depth whose parents are in the tree. */
static int level_add(sim_text *t, int drafter, int depth, int budget) {
    const sim_position *p = &t->answer->at[drafter][t->at];
    int added = 0;
    for (int k = 0; k < p->n; k++) {
        const sim_draft *f = &p->draft[k];
        if (depth == 1) t->row_of[drafter][k] = -1;
        const int from = f->parent < 0 ? 0 : t->row_of[drafter][f->parent];
        if (f->depth != depth || from < 0 || added == budget || t->tree.n_rows == t->tree.max_rows) continue;
        t->row_of[drafter][k] = (int16_t)hn_tree_add(&t->tree, from, f->token, drafter, f->estimate);
        added += t->row_of[drafter][k] >= 0;
    }
    return added;
}

/* One that needs passes takes the time of one for all texts, which grows with them as the model's does; others their time for each. */
static double level_seconds(const sim_round *r, int drafter, int level, int texts) {
    const sim_curve *c = &r->data->curve;
    double sum = 0;
    for (int i = 0; i < r->n; i++) {
        const sim_position *p = &r->text[i]->answer->at[drafter][r->text[i]->at];
        if (r->data->kind[drafter] == HN_COST_PER_LEVEL) sum += p->levels > 0 ? p->seconds / p->levels : p->seconds;
        else if (level == 0) sum += p->seconds;
    }
    if (r->data->kind[drafter] != HN_COST_PER_LEVEL) return sum;
    return sum / r->n * sim_pass(c, texts, 1, 0, c->context[0]) / sim_pass(c, 1, 1, 0, c->context[0]);
}

int sim_propose(sim_round *r, int drafter, int level) {
    const int left = hn_most(r->most_rows - rows_of(r), 0);
    const bool by_level = r->data->kind[drafter] == HN_COST_PER_LEVEL;
    int added = 0, texts = 0;
    for (int i = 0; i < r->n; i++) texts += level < sim_depth_limit(r->text[i]);
    for (int i = 0; i < r->n; i++)
        if (level < sim_depth_limit(r->text[i]))
            added += level_add(r->text[i], drafter, level + 1, by_level ? hn_most(left / hn_most(texts, 1), 1) : HN_TREE_ROWS);
    if (texts > 0) r->drafting += level_seconds(r, drafter, level, texts);
    return added;
}
