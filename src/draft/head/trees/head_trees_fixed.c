/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees_fixed.c - chains and trees of a fixed shape, a level at a time (head_trees.h). */
#include <math.h>
#include <string.h>

#include "draft/head/trees/head_trees_private.h"

static hn_drafted *drafted_at(hn_head_seq_tree *s, int i) {
    return i == HN_ROOT ? &s->root : &s->node[i];
}

/* How many candidates of node i the shape has. */
static int children_of(const hn_shape *shape, int i) {
    int n = 0;
    for (int k = 0; k < shape->n; k++)
        if (shape->node[k].parent == i && shape->node[k].rank >= n) n = shape->node[k].rank + 1;
    return n;
}

/* The tokens from the root to node i, in order; returns how many. */
static int path_of(const hn_head_seq_tree *s, int i, int32_t token[HN_TREE_ROWS]) {
    const int n = i == HN_ROOT ? 0 : s->shape->node[i].depth;
    for (int k = n - 1; k >= 0; k--, i = s->shape->node[i].parent) token[k] = s->node[i].token;
    return n;
}

/* Puts the tokens of ranks 0..n-1 in their places of the shape; row[rank]: their rows in the tree, NULL: to be added. spine: the
 * rank that `force` made right, HN_NONE: none. */
static void place_children(hn_head_round *c, hn_propose *p, hn_head_seq_tree *s, int at, const int32_t *token, const float *prob,
                           const int16_t *rows, int n, int spine) {
    const int parent_row = drafted_at(s, at)->row;
    for (int k = 0; k < s->shape->n; k++) {
        const int rank = s->shape->node[k].rank;
        if (s->shape->node[k].parent != at || rank >= n) continue;
        int row = rows ? rows[rank] : HN_NONE;
        if (!rows && (p->budget > 0 || hn_tree_child(p->tree, parent_row, token[rank]) >= 0)) {
            const int before = p->tree->n_rows;
            row = hn_tree_add(p->tree, parent_row, token[rank], c->d->index, prob[rank]);
            p->budget -= p->tree->n_rows - before;
        }
        if (row < 0) continue;
        if (!rows && rank == 0) hn_head_set_estimate(c, p->tree);
        s->node[k] = (hn_drafted){.token = token[rank],
                               .row = (int16_t)row,
                               .spine = rank == spine,
                               .path = drafted_at(s, at)->path * prob[rank]};
        c->added++;
    }
}

static void draw_children(hn_head_round *c, hn_propose *p, hn_head_seq_tree *s, int at, int from, const hn_history *h,
                          int n) {
    hn_head_trees *t = c->t;
    int32_t token[HN_TREE_ROWS];
    int16_t row[HN_TREE_ROWS];
    float prob[HN_TREE_ROWS];
    const float *logits = hn_head_logits(t->head, from, c->worker), *value;
    const double sum = hn_head_sum(t->head, from);
    (void)hn_head_best(t->head, from, &value);
    if ((double)drafted_at(s, at)->path / sum < t->min_p) return; /* known before a draw: the draw follows q */
    const hn_draft_dist *dist = hn_draft_dist_make(&t->dists, p->seq, at + 1, p->sampler, logits, h);
    if (!dist) return;
    const int before = p->tree->n_rows, m = hn_draft_dist_draw(&t->dists, dist, p, c->d->index, drafted_at(s, at)->row, n, row, c->worker);
    p->budget -= p->tree->n_rows - before;
    for (int i = 0; i < m; i++) {
        token[i] = p->tree->token[row[i]];
        prob[i] = (float)(exp((double)logits[token[i]] - (double)value[0]) / sum);
    }
    place_children(c, p, s, at, token, prob, row, m, HN_NONE);
}

/* Adds the children of node `at`: their tokens are the best ones of the row, which nobody reads now. */
static void add_later(hn_head_round *c, hn_propose *p, hn_head_seq_tree *s, int at, int from) {
    const hn_drafted *parent = drafted_at(s, at);
    for (int k = 0; k < s->shape->n; k++) {
        const int rank = s->shape->node[k].rank;
        if (s->shape->node[k].parent != at || rank >= c->t->topk || p->budget == 0) continue;
        const hn_token_source source = hn_head_source(c->t->head, from, rank);
        const int row = hn_tree_add_later(p->tree, parent->row, source, c->d->index, hn_head_later_estimate(rank));
        if (row < 0) return;
        p->budget--;
        s->node[k] = (hn_drafted){.token = HN_TOKEN_LATER, .row = (int16_t)row};
        c->added++;
    }
}

/* Adds the children of node `at` of the shape, from the logits of a row. */
static void take_children(hn_head_round *c, hn_propose *p, hn_head_seq_tree *s, int at, int row) {
    hn_head_trees *t = c->t;
    const int n = children_of(s->shape, at);
    if (t->ahead) {
        add_later(c, p, s, at, row);
        return;
    }
    int32_t token[HN_TREE_ROWS], path[HN_TREE_ROWS];
    float prob[HN_TREE_ROWS];
    const hn_history h = {p->text.token, p->text.n, p->text.n_prompt, path, path_of(s, at, path)};
    if (p->drawn && t->dist) {
        draw_children(c, p, s, at, row, &h, n);
        return;
    }
    int m = hn_head_choose(c, p, row, &h, n, token, prob);
    while (m > 0 && (double)(drafted_at(s, at)->path * prob[m - 1]) < t->min_p) m--;
    const int spine = t->forced && drafted_at(s, at)->spine && m > 0 ? hn_head_force(c, p, s, token, m) : HN_NONE;
    place_children(c, p, s, at, token, prob, NULL, m, spine);
}

/* Whether node `at` has a row of the tree at this level, and children in the shape. */
static bool wants_children(const hn_propose *p, hn_head_seq_tree *s, int at, int level) {
    const int depth = at == HN_ROOT ? 0 : s->shape->node[at].depth;
    return depth == level && drafted_at(s, at)->row >= 0 && children_of(s->shape, at) > 0 &&
           hn_propose_has_room(p, drafted_at(s, at)->row);
}

/* Whether node `at` is a descendant of another. */
static bool is_descendant(const hn_shape *shape, int at, int other) {
    while (at != HN_ROOT && at != other) at = shape->node[at].parent;
    return at == other;
}

/* The row of a node was computed, or a mask, or a further row of its block: adds its children, or those of all its descendants of that
 * level. */
static void take_node(hn_head_round *c, int i, int mask, int row) {
    hn_head_trees *t = c->t;
    hn_propose *p = &c->p[t->of[i]];
    hn_head_seq_tree *s = &t->seq[p->seq];
    c->level = c->base + mask;
    if (t->block > 1 && (c->level >= p->depth || c->level >= s->shape->depth)) return;
    if (p->on_logits && s->shape->widest == 1) p->on_logits(p->on_logits_ctx, c->level, hn_head_logits(t->head, row, c->worker));
    const bool counts = hn_head_row_confident(c, p, row);
    const int from = p->tree->n_candidates;
    if (mask == 0) {
        hn_drafted *node = drafted_at(s, t->place[i]);
        node->kept = t->node[i].kept;
        node->output = t->node[i].output;
        if (counts) take_children(c, p, s, t->place[i], row);
    }
    for (int at = 0; mask > 0 && counts && at < s->shape->n; at++)
        if (wants_children(p, s, at, c->level) && is_descendant(s->shape, at, t->place[i])) take_children(c, p, s, at, row);
    hn_tree_set_certainty(p->tree, from, c->certainty);
}

/* The distributions that take_node makes: of the node, or of the nodes of a level after it. */
static bool reserve_node(hn_head_round *c, int i, int mask) {
    hn_head_trees *t = c->t;
    const hn_propose *p = &c->p[t->of[i]];
    const hn_shape *shape = t->seq[p->seq].shape;
    bool there = true;
    if (!p->drawn || !t->dist) return true;
    if (mask == 0) return hn_draft_dist_reserve(&t->dists, p->seq, t->place[i] + 1, p->sampler);
    for (int at = 0; there && at < shape->n; at++)
        if (shape->node[at].depth == c->base + mask && children_of(shape, at) > 0 && is_descendant(shape, at, t->place[i]))
            there = hn_draft_dist_reserve(&t->dists, p->seq, at + 1, p->sampler);
    return there;
}

static void round_start(hn_head_trees *t, const hn_propose *p) {
    hn_head_seq_tree *s = &t->seq[p->seq];
    s->shape = t->ahead ? &t->later : p->chain ? &t->chain : &t->shape;
    s->root = (hn_drafted){.token = p->text.token[p->text.n - 1], .row = 0, .spine = true, .path = 1};
    for (int k = 0; k < s->shape->n; k++) s->node[k].row = HN_NONE;
}

/* The tokens of the block that ends with node `at`; returns the node before them. */
static int block_of(const hn_head_trees *t, hn_head_seq_tree *s, int at, int32_t *path) {
    for (int k = t->block - 1; k >= 0; k--, at = s->shape->node[at].parent) path[k] = s->node[at].token;
    return at;
}

/* Lists the nodes of a level that are expanded; returns how many. */
static int list_level(hn_head_round *c, int n, int *text_n) {
    hn_head_trees *t = c->t;
    int m = 0;
    for (int i = 0; i < n; i++) {
        hn_propose *p = &c->p[i];
        hn_head_seq_tree *s = &t->seq[p->seq];
        for (int at = c->base ? 0 : HN_ROOT; at < s->shape->n; at++) {
            if (c->base >= p->depth || !wants_children(p, s, at, c->base)) continue;
            int32_t *path = t->path + (size_t)m * (size_t)(t->block > 1 ? t->block : 1);
            const hn_drafted *node = drafted_at(s, at), *before = NULL;
            if (at != HN_ROOT) before = drafted_at(s, t->block > 1 ? block_of(t, s, at, path) : s->shape->node[at].parent);
            t->of[m] = i;
            t->place[m] = at;
            if (at == HN_ROOT) text_n[m] = p->text.n;
            if (t->ahead) t->head->source[m] = p->tree->source[node->row];
            t->node[m++] = (hn_head_node){p->seq, node->token, before ? 0 : hn_head_masks(t, p, s->shape->depth),
                                           before ? before->kept : -1, before ? before->output : -1, path};
        }
    }
    return m;
}

/* A level of trees of fixed shape; for heads that continue by blocks all levels. */
int hn_head_propose_fixed(hn_head_round *c, int n) {
    hn_head_trees *t = c->t;
    int *text_n = t->text_n;
    if ((t->at_once || t->block > 1) && c->level > 0) return 0;
    c->take = take_node;
    c->reserve = reserve_node;
    for (int i = 0; i < n && c->level == 0; i++) round_start(t, &c->p[i]);
    for (int m; (m = list_level(c, n, text_n)) > 0;) {
        if (c->base == 0)
            hn_head_roots(t->head, t->node, text_n, m, hn_head_take_rows, c);
        else if (!hn_head_keeps_lists(t->head, m))
            return c->added;
        else
            hn_head_level(t->head, t->node, m, hn_head_take_rows, c);
        if (t->block <= 1) break;
        c->base += t->block;
    }
    return c->added;
}
