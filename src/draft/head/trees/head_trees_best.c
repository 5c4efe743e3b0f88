/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees_best.c - the tree of the likeliest paths, best first, of a head whose root gives all levels, and JetSpec's (tree_best.c): the
 * levels' tokens are read once, and the tree is made from them. */
#include <assert.h>
#include <math.h>

#include "draft/head/trees/head_trees_private.h"

/* Reads the tokens of the next level. */
static void take_level(hn_head_round *c, int i, int mask, int row) {
    hn_head_trees *t = c->t;
    const hn_propose *p = &c->p[t->of[i]];
    hn_head_seq_tree *s = &t->seq[p->seq];
    hn_level_tokens *l = &s->level[mask];
    if (mask != s->n_levels || mask >= t->depth) return; /* after a level without a token */
    c->level = mask;
    hn_head_level_certainty(c, p, mask, row);
    l->n = hn_head_choose(c, p, row, NULL, t->topk, l->token, l->p);
    if (l->n == 0) return;
    if (t->forced && s->spine == 0 && hn_head_force(c, p, s, l->token, l->n) < 0) s->spine = HN_NONE;
    for (int k = 0; k < l->n; k++) l->log_p[k] = logf(l->p[k]);
    s->n_levels++;
}

static void add_tree(hn_head_round *c, hn_propose *p) {
    const hn_head_trees *t = c->t;
    const hn_head_seq_tree *s = &t->seq[p->seq];
    hn_tree_level level[HN_TREE_ROWS - 1];
    hn_best_tree best;
    int16_t at[HN_TREE_ROWS - 1];
    assert(s->n_levels <= p->depth); /* no more were wanted */
    for (int l = 0; l < s->n_levels; l++) level[l] = (hn_tree_level){s->level[l].n, s->level[l].log_p};
    const int total = t->total < p->budget ? t->total : p->budget;
    if (t->form == HN_TREE_EXPANDED)
        hn_expanded_tree_make(&best, level, s->n_levels, total, (float)log(t->min_p));
    else
        hn_best_tree_make(&best, level, s->n_levels, total, (float)log(t->min_p));
    for (int i = 0; i < best.n; i++) {
        const hn_shape_node n = best.node[i];
        const hn_level_tokens *l = &s->level[n.depth - 1];
        const int behind = n.parent < 0 ? 0 : at[n.parent];
        at[i] = HN_NONE;
        if (behind < 0) continue;
        at[i] = (int16_t)hn_tree_add(p->tree, behind, l->token[n.rank], c->d->index, l->p[n.rank]);
        if (at[i] < 0) continue; /* the grammar forbids it, and what follows it */
        hn_head_set_level_certainty(c, p);
        c->added++;
    }
}

int hn_head_propose_best(hn_head_round *c, int n) {
    hn_head_trees *t = c->t;
    for (int i = 0; i < n; i++) t->seq[c->p[i].seq].n_levels = t->seq[c->p[i].seq].spine = 0;
    c->take = take_level;
    hn_head_run_roots(c, n);
    for (int i = 0; i < n; i++) add_tree(c, &c->p[i]);
    return c->added;
}
