/* SPDX-License-Identifier: Apache-2.0 */
/* round_drafts.c - see round_drafts.h. */
#include "draft/round_drafts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { NOBODY = -1, SEVERAL = -2 };

/* Adds the candidates of a row. next: its accepted child, 0: none; reached: it is on the path. owner: whose each row is so far. */
static void add_row(hn_round_drafts *r, const hn_tree *t, int row, bool reached, int next, bool with_q, int16_t owner[HN_TREE_ROWS]) {
    int16_t rank[HN_MAX_MODELS] = {0};
    for (int k = t->first[row]; k >= 0; k = t->candidate[k].next) {
        const hn_candidate *c = &t->candidate[k];
        int16_t *whose = &owner[c->child];
        assert(c->drafter >= 0 && c->drafter < HN_MAX_MODELS);
        r->draft[r->n++] = (hn_round_draft){.token = c->token,
                                            .row = c->row,
                                            .child = c->child,
                                            .made = c->child,
                                            .depth = t->depth[c->child],
                                            .drafter = c->drafter,
                                            .rank = rank[c->drafter]++,
                                            .first = *whose == NOBODY,
                                            .drawn = c->q != NULL,
                                            .outcome = !reached ? HN_NOT_REACHED : c->child == next ? HN_ACCEPTED : HN_REJECTED,
                                            .estimate = c->estimate,
                                            .p = c->p,
                                            .certainty = c->certainty,
                                            .q = c->q && with_q ? hn_proposal_probability(c->q, c->token) : NAN};
        *whose = *whose == NOBODY || *whose == c->drafter ? c->drafter : SEVERAL;
    }
}

/* A row whose candidates have become those of another row of the same path. */
static void find_made(hn_round_drafts *r, const hn_tree *t, int row) {
    for (int k = 0; k < r->n; k++) {
        hn_round_draft *d = &r->draft[k];
        if (d->first || d->made != d->child || d->row != t->parent[row] || d->token != t->token[row]) continue;
        d->made = (int16_t)row;
        return;
    }
}

static void count(hn_round_drafts *r, hn_round_draft *x, const int16_t *owner) {
    hn_round_drafter *d = &r->drafter[x->drafter];
    x->alone = owner[x->child] == x->drafter;
    d->drafted++;
    d->drafted_first += x->row == 0;
    if (x->depth > d->levels) d->levels = x->depth;
    if (d->levels > r->depth) r->depth = d->levels;
    if (x->outcome == HN_ACCEPTED) d->accepted_at |= (uint64_t)1 << (x->depth - 1);
}

void hn_round_drafts_make(hn_round_drafts *r, const hn_tree *t, const int16_t *path, int n_accepted, bool with_q) {
    int16_t owner[HN_TREE_ROWS];
    bool reached[HN_TREE_ROWS] = {false};
    for (int i = 0; i < HN_TREE_ROWS; i++) owner[i] = NOBODY;
    r->n_rows = t->n_rows;
    r->n_accepted = n_accepted;
    r->n = r->depth = 0;
    memset(r->drafter, 0, sizeof r->drafter);
    for (int i = 0; i <= n_accepted; i++) {
        const int row = i == 0 ? 0 : path[i - 1];
        reached[row] = true;
        add_row(r, t, row, true, i < n_accepted ? path[i] : 0, with_q, owner);
    }
    r->n_reached = r->n;
    for (int row = 0; row < t->n_rows; row++)
        if (!reached[row]) add_row(r, t, row, false, 0, with_q, owner);
    for (int row = 1; row < t->n_rows; row++)
        if (owner[row] == NOBODY) find_made(r, t, row);
    for (int k = 0; k < r->n; k++) count(r, &r->draft[k], owner);
}

void hn_round_drafts_times(hn_round_drafts *r, const hn_drafting_times *of_all) {
    for (int d = 0; d < HN_MAX_MODELS; d++) {
        hn_round_drafter *x = &r->drafter[d];
        const int texts = of_all->drafter[d].texts;
        x->calls_s = of_all->drafter[d].calls_s;
        x->pass_s = of_all->drafter[d].pass_s;
        x->share_s = texts > 0 ? x->calls_s / texts : 0;
    }
    r->draft_s = of_all->all_s / of_all->texts;
    r->draft_pass_s = of_all->pass_s / of_all->texts;
}

int hn_round_followed(const hn_round_drafter *d) {
    return __builtin_ctzll(~d->accepted_at); /* no tree has 64 levels */
}
