/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees_likely.c - trees of the likeliest paths that are grown level by level: EAGLE-2's and OPT-Tree's (head_trees.h). */
#include <math.h>

#include "draft/head/trees/head_trees_private.h"

/* The next frontier. OPT-Tree's shrinks, and is empty if the newest level was not worth it. */
static void advance(const hn_head_trees *t, hn_head_seq_tree *s) {
    if (t->form == HN_TREE_OPT)
        hn_opt_advance(&s->beam, t->total, t->gain, &s->expected);
    else
        hn_beam_advance(&s->beam);
}

/* Adds the children of a frontier node. */
static void beam_children(hn_head_round *c, const hn_propose *p, int at, int row) {
    hn_head_trees *t = c->t;
    hn_head_seq_tree *s = &t->seq[p->seq];
    int32_t token[HN_MOST_TOPK];
    float prob[HN_MOST_TOPK];
    const int m = hn_head_choose(c, p, row, NULL, t->topk, token, prob);
    const int first = s->beam.n;
    if (t->forced && at == s->spine && m > 0) {
        const int right = hn_head_force(c, p, s, token, m);
        s->spine = right >= 0 ? first + right : HN_NONE - 1;
    }
    hn_beam_add(&s->beam, at, token, prob, m);
    if (m > 0) s->beam.node[first].confidence = isnan(c->confidence) ? 0 : (float)c->confidence;
    for (int k = first; k < s->beam.n; k++) s->beam.node[k].certainty = c->certainty;
}

/* Takes a node's row, or a mask: the level of the whole frontier. A beam node's place among draft rows and outputs is that of its pass. */
static void take_beam(hn_head_round *c, int i, int mask, int row) {
    hn_head_trees *t = c->t;
    const hn_propose *p = &c->p[t->of[i]];
    hn_head_seq_tree *s = &t->seq[p->seq];
    const int at = t->place[i];
    const bool counts = hn_head_row_confident(c, p, row);
    if (mask > 0) {
        c->level = mask;
        advance(t, s);
        for (int k = 0; counts && k < s->beam.n_frontier; k++) beam_children(c, p, s->beam.frontier[k], row);
        return;
    }
    if (t->at_once) c->level = 0;
    if (at == HN_ROOT) {
        s->root.kept = t->node[i].kept;
        s->root.output = t->node[i].output;
    } else {
        s->beam.node[at].kept = t->node[i].kept;
        s->beam.node[at].output = t->node[i].output;
    }
    if (counts) beam_children(c, p, at, row);
}

static int row_of(const hn_beam *b, const int16_t *row, int i) {
    return b->node[i].parent < 0 ? 0 : row[b->node[i].parent];
}

/* Adds the best nodes, in the order of creation, instead of those that were the best before the newest level. */
static void add_best(hn_head_round *c, hn_propose *p) {
    hn_head_seq_tree *s = &c->t->seq[p->seq];
    const hn_beam *b = &s->beam;
    const int room = p->budget + p->tree->n_rows - s->rows, total = c->t->total < room ? c->t->total : room;
    int list[HN_TREE_ROWS];
    int16_t *row = c->t->row;
    const int n = hn_beam_best(b, total, list);
    hn_tree_rewind(p->tree, s->rows, s->candidates);
    for (int i = 0; i < n; i++) {
        const hn_beam_node *k = &b->node[list[i]];
        if (exp((double)k->score) < c->t->min_p) continue; /* its children are not probable enough either */
        const int behind = row_of(b, row, list[i]);
        const int at = behind < 0 ? HN_NONE : hn_tree_add(p->tree, behind, k->token, c->d->index, k->p);
        row[list[i]] = (int16_t)at;
        if (at < 0) continue; /* the grammar forbids it, and what follows it; or there is no room for any */
        hn_tree_set_certainty(p->tree, p->tree->n_candidates - 1, k->certainty);
        c->confidence = k->confidence > 0 ? (double)k->confidence : NAN;
        hn_head_set_estimate(c, p->tree);
        c->added += list[i] >= s->newest; /* if none of the newest level is among the best, none after it can be */
    }
    p->budget = room - (p->tree->n_rows - s->rows);
}

/* Lists the frontier nodes of all sequences whose trees may have one more level. */
static int list_frontier(hn_head_round *c, int n) {
    hn_head_trees *t = c->t;
    int m = 0;
    for (int i = 0; i < n; i++) {
        const hn_head_seq_tree *s = &t->seq[c->p[i].seq];
        if (c->level >= c->p[i].depth || s->beam.n == 0) continue;
        for (int k = 0; k < s->beam.n_frontier; k++) {
            const hn_beam_node *b = &s->beam.node[s->beam.frontier[k]], *parent = &s->beam.node[b->parent < 0 ? 0 : b->parent];
            if (exp((double)b->score) < t->min_p) continue;
            t->of[m] = i;
            t->place[m] = s->beam.frontier[k];
            t->node[m++] = (hn_head_node){c->p[i].seq, b->token, 0, b->parent < 0 ? s->root.kept : parent->kept,
                                         b->parent < 0 ? s->root.output : parent->output, NULL};
        }
    }
    return m;
}

static void grow_roots(hn_head_round *c, int n) {
    for (int i = 0; i < n; i++) {
        hn_head_seq_tree *s = &c->t->seq[c->p[i].seq];
        hn_beam_start(&s->beam);
        s->spine = HN_ROOT;
        s->expected = 0;
        s->newest = 0;
        s->rows = c->p[i].tree->n_rows;
        s->candidates = c->p[i].tree->n_candidates;
    }
    c->take = take_beam;
    hn_head_run_roots(c, n);
}

/* Level c->level of all beams, after the previous one. False: there is none. */
static bool grow_level(hn_head_round *c, int n) {
    hn_head_trees *t = c->t;
    for (int i = 0; i < n; i++) {
        hn_head_seq_tree *s = &t->seq[c->p[i].seq];
        advance(t, s);
        s->newest = s->beam.n;
    }
    const int m = list_frontier(c, n);
    c->take = take_beam;
    if (m > 0) hn_head_level(t->head, t->node, m, hn_head_take_rows, c);
    return m > 0;
}

/* A tree is computed as a whole, because its nodes are known only at the end; or, if levels are decided on one by one, at each level the
 * tree is made as if that were the last. */
int hn_head_propose_likely(hn_head_round *c, int n) {
    hn_head_trees *t = c->t;
    const bool whole = !t->at_once && !(n > 0 && c->p[0].by_levels);
    if (c->level > 0) {
        if (!grow_level(c, n)) return 0;
    } else {
        grow_roots(c, n);
        for (c->level = 1; whole && c->level < t->depth && grow_level(c, n); c->level++) {}
        for (int i = 0; whole && i < n; i++) t->seq[c->p[i].seq].newest = 0; /* all of it is new */
    }
    for (int i = 0; i < n; i++) add_best(c, &c->p[i]);
    return c->added;
}
