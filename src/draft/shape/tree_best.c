/* SPDX-License-Identifier: Apache-2.0 */
/* tree_best.c - the likeliest paths through levels that do not depend on each other, best first (head_tree.h), and JetSpec's tree of such
 * levels.
 *
 * The next node is the root's best, or the best sibling or the first child of a node that was taken: nothing else can be as
 * likely. So a heap holds at most two candidates a node, and a tree of N nodes costs N log N. */
#include <assert.h>
#include <math.h>

#include "draft/shape/head_tree.h"

typedef struct candidate {
    float score;
    int16_t parent, rank, depth;
} candidate;

typedef struct heap {
    const hn_best_tree *tree;
    candidate at[2 * HN_TREE_ROWS];
    int n;
} heap;

/* Compares the ranks at equal depths of two different paths of one length: the difference nearest the root decides. */
static bool path_before(const hn_best_tree *t, candidate a, candidate b) {
    int x = a.parent, y = b.parent;
    bool before = a.rank < b.rank;
    while (x != y) { /* the deciding rank is the one nearest the root */
        if (t->node[x].rank != t->node[y].rank) before = t->node[x].rank < t->node[y].rank;
        x = t->node[x].parent;
        y = t->node[y].parent;
    }
    return before;
}

static bool is_before(const heap *h, candidate a, candidate b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.depth != b.depth) return a.depth < b.depth;
    return path_before(h->tree, a, b);
}

static void push(heap *h, candidate c) {
    int i = h->n++;
    if (!(c.score > -INFINITY)) { /* impossible paths are not drafted */
        h->n--;
        return;
    }
    for (; i > 0 && is_before(h, c, h->at[(i - 1) / 2]); i = (i - 1) / 2) h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = c;
}

static candidate pop(heap *h) {
    const candidate first = h->at[0], last = h->at[--h->n];
    int i = 0;
    for (int k = 1; k < h->n; k = 2 * i + 1) {
        if (k + 1 < h->n && is_before(h, h->at[k + 1], h->at[k])) k++;
        if (!is_before(h, h->at[k], last)) break;
        h->at[i] = h->at[k];
        i = k;
    }
    h->at[i] = last;
    return first;
}

static void push_rank(heap *h, const hn_tree_level *level, int levels, int parent, int rank) {
    const int depth = parent < 0 ? 1 : h->tree->node[parent].depth + 1;
    if (depth > levels || rank >= level[depth - 1].n) return;
    const float before = parent < 0 ? 0 : h->tree->score[parent];
    push(h, (candidate){before + level[depth - 1].log_p[rank], (int16_t)parent, (int16_t)rank, (int16_t)depth});
}

void hn_best_tree_make(hn_best_tree *t, const hn_tree_level *level, int levels, int total, float least) {
    heap h = {.tree = t};
    assert(levels <= HN_TREE_ROWS - 1 && total <= HN_TREE_ROWS - 1);
    t->n = 0;
    push_rank(&h, level, levels, -1, 0);
    while (t->n < total && h.n > 0) {
        const candidate c = pop(&h);
        if (c.score < least) break;
        const int i = t->n++;
        t->node[i] = (hn_shape_node){c.parent, c.rank, c.depth};
        t->score[i] = c.score;
        push_rank(&h, level, levels, c.parent, c.rank + 1);
        push_rank(&h, level, levels, i, 0);
    }
}

/* Its successors of all ranks; each may be the next one that gets some: then `parent` of its candidate is the node itself. */
static void expand(heap *h, hn_best_tree *t, const hn_tree_level *l, int at, int depth, int total, float least) {
    const float before = at < 0 ? 0 : t->score[at];
    for (int rank = 0; rank < l->n && t->n < total; rank++) {
        const float score = before + l->log_p[rank];
        if (!(score > -INFINITY) || score < least) return; /* nor are later ones */
        const int i = t->n++;
        t->node[i] = (hn_shape_node){(int16_t)at, (int16_t)rank, (int16_t)depth};
        t->score[i] = score;
        push(h, (candidate){score, (int16_t)i, (int16_t)rank, (int16_t)depth});
    }
}

void hn_expanded_tree_make(hn_best_tree *t, const hn_tree_level *level, int levels, int total, float least) {
    heap h = {.tree = t};
    assert(levels <= HN_TREE_ROWS - 1 && total <= HN_TREE_ROWS - 1);
    t->n = 0;
    if (levels > 0) expand(&h, t, &level[0], -1, 1, total, least);
    while (t->n < total && h.n > 0) {
        const candidate c = pop(&h);
        if (c.depth < levels) expand(&h, t, &level[c.depth], c.parent, c.depth + 1, total, least);
    }
}
