/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - building and checking draft trees. The terms are defined in tree.h; paths are accepted in verify/. */
#include "draft/tree.h"

#include <assert.h>
#include <stddef.h>

void hn_tree_reset(hn_tree *t, int32_t root, int max_rows) {
    t->max_rows = max_rows < 1 ? 1 : max_rows > HN_TREE_ROWS ? HN_TREE_ROWS : max_rows;
    t->n_rows = 1;
    t->n_candidates = 0;
    t->token[0] = root;
    t->source[0].list.mem = NULL;
    t->parent[0] = -1;
    t->depth[0] = 0;
    t->first[0] = t->last[0] = -1;
    t->grammar = NULL;
}

void hn_tree_constrain(hn_tree *t, hn_matcher *grammar, int32_t state) {
    t->grammar = grammar;
    t->state[0] = state;
}

/* The state after one more token; negative: the grammar forbids it. */
static int32_t state_after(const hn_tree *t, int row, int32_t token) {
    if (!t->grammar) return 0;
    return t->state[row] < 0 ? t->state[row] : hn_matcher_next(t->grammar, t->state[row], token);
}

int hn_tree_child(const hn_tree *t, int row, int32_t token) {
    assert(row >= 0 && row < t->n_rows);
    for (int c = t->first[row]; c >= 0; c = t->candidate[c].next)
        if (t->candidate[c].token == token) return t->candidate[c].child;
    return -1;
}

int32_t hn_tree_next_number(const hn_tree *t, int drafter) {
    for (int c = t->n_candidates - 1; c >= 0; c--)
        if (t->candidate[c].drafter == drafter) return t->candidate[c].number + 1;
    return 0;
}

/* The row of this path, made if there is none. -1: there is no room, or (one-hot drafts) the grammar forbids it. */
static int row_after(hn_tree *t, int row, int32_t token, bool drawn) {
    int child = token == HN_TOKEN_LATER ? -1 : hn_tree_child(t, row, token);
    if (child >= 0) return drawn || t->state[child] >= 0 ? child : -1;
    if (t->n_rows >= t->max_rows) return -1;
    const int32_t state = state_after(t, row, token);
    if (state < 0 && !drawn) return -1;
    child = t->n_rows++;
    t->token[child] = token;
    t->source[child].list.mem = NULL;
    t->parent[child] = (int16_t)row;
    t->depth[child] = (int16_t)(t->depth[row] + 1);
    t->first[child] = t->last[child] = -1;
    t->state[child] = state;
    return child;
}

static int add(hn_tree *t, int row, hn_candidate k, bool drawn) {
    if (t->n_candidates == HN_TREE_CANDIDATES) return -1;
    const int child = row_after(t, row, k.token, drawn);
    if (child < 0) return -1;
    k.row = (int16_t)row;
    k.child = (int16_t)child;
    k.next = -1;
    k.certainty = hn_certainty_none();
    k.number = hn_tree_next_number(t, k.drafter);
    const int16_t c = (int16_t)t->n_candidates++;
    t->candidate[c] = k;
    if (t->last[row] < 0)
        t->first[row] = c;
    else
        t->candidate[t->last[row]].next = c;
    t->last[row] = c;
    return child;
}

int hn_tree_add_drawn(hn_tree *t, int row, int32_t token, int drafter, float estimate, const hn_proposal_dist *q,
                      bool without) {
    return add(t, row, (hn_candidate){.token = token, .drafter = (int16_t)drafter, .estimate = estimate, .p = estimate, .q = q,
                                      .without = without}, true);
}

int hn_tree_add(hn_tree *t, int row, int32_t token, int drafter, float estimate) {
    return add(t, row, (hn_candidate){.token = token, .drafter = (int16_t)drafter, .estimate = estimate, .p = estimate}, false);
}

int hn_tree_add_later(hn_tree *t, int row, hn_token_source source, int drafter, float estimate) {
    assert(!t->grammar && source.list.mem);
    const int child = hn_tree_add(t, row, HN_TOKEN_LATER, drafter, estimate);
    if (child >= 0) t->source[child] = source;
    return child;
}

void hn_tree_fill(hn_tree *t, const int32_t *token, const int16_t *path, int n) {
    for (int r = 0; r < t->n_rows; r++) {
        t->token[r] = token[r];
        t->source[r].list.mem = NULL;
    }
    for (int c = 0; c < t->n_candidates; c++) {
        hn_candidate *k = &t->candidate[c];
        const int on = t->depth[k->child] - 1;
        k->token = token[k->child];
        if (on < n && k->row == t->parent[path[on]] && k->token == token[path[on]]) k->child = path[on];
    }
}

void hn_tree_set_certainty(hn_tree *t, int from, hn_certainty certainty) {
    for (int k = from; k < t->n_candidates; k++) t->candidate[k].certainty = certainty;
}

/* Compacts the candidates of kept rows; the lists are rebuilt in the same order. */
static void keep_candidates(hn_tree *t, const int16_t *map) {
    int n = 0;
    for (int c = 0; c < t->n_candidates; c++) {
        hn_candidate k = t->candidate[c];
        if (map[k.child] < 0) continue;
        k.row = map[k.row];
        k.child = map[k.child];
        k.next = -1;
        if (t->last[k.row] < 0)
            t->first[k.row] = (int16_t)n;
        else
            t->candidate[t->last[k.row]].next = (int16_t)n;
        t->last[k.row] = (int16_t)n;
        t->candidate[n++] = k;
    }
    t->n_candidates = n;
}

void hn_tree_keep(hn_tree *t, const bool *keep, int16_t map[HN_TREE_ROWS]) {
    int16_t own[HN_TREE_ROWS];
    int n = 0;
    if (!map) map = own;
    for (int r = 0; r < t->n_rows; r++) {
        map[r] = -1;
        if (r > 0 && !keep[r]) continue;
        assert(r == 0 || map[t->parent[r]] >= 0);
        const int16_t parent = r == 0 ? (int16_t)-1 : map[t->parent[r]];
        map[r] = (int16_t)n;
        t->token[n] = t->token[r];
        t->source[n] = t->source[r];
        t->depth[n] = t->depth[r];
        t->parent[n] = parent;
        t->first[n] = t->last[n] = -1;
        t->state[n] = t->state[r];
        n++;
    }
    t->n_rows = n;
    keep_candidates(t, map);
}

void hn_tree_rewind(hn_tree *t, int n_rows, int n_candidates) {
    assert(n_rows >= 1 && n_rows <= t->n_rows && n_candidates >= 0 && n_candidates <= t->n_candidates);
    t->n_rows = n_rows;
    t->n_candidates = n_candidates;
    for (int r = 0; r < n_rows; r++) {
        int last = -1;
        if (t->first[r] >= n_candidates) t->first[r] = -1;
        for (int c = t->first[r]; c >= 0; c = t->candidate[c].next) {
            if (t->candidate[c].next >= n_candidates) t->candidate[c].next = -1;
            last = c;
        }
        t->last[r] = (int16_t)last;
    }
}

bool hn_tree_is_chain(const hn_tree *t) {
    for (int r = 1; r < t->n_rows; r++)
        if (t->parent[r] != r - 1) return false;
    return true;
}

int hn_tree_depth(const hn_tree *t) {
    int depth = 0;
    for (int r = 1; r < t->n_rows; r++)
        if (t->depth[r] > depth) depth = t->depth[r];
    return depth;
}

/* Checks the candidates of one row: right row and child, in order of addition; marks the rows they lead to. */
static bool list_valid(const hn_tree *t, int row, bool *reached, int *seen) {
    int before = -1;
    for (int c = t->first[row]; c >= 0; c = t->candidate[c].next) {
        if (c <= before || c >= t->n_candidates) return false; /* ascending indices, so there is no cycle */
        const hn_candidate *k = &t->candidate[c];
        if (k->row != row || k->child <= row || k->child >= t->n_rows) return false;
        if (t->parent[k->child] != row || t->token[k->child] != k->token) return false;
        reached[k->child] = true;
        before = c;
        ++*seen;
    }
    return t->last[row] == before;
}

static bool numbers_valid(const hn_tree *t) {
    for (int c = 0; c < t->n_candidates; c++) {
        int32_t before = -1; /* numbers ascend; gaps are candidates that were not kept */
        for (int d = 0; d < c; d++)
            if (t->candidate[d].drafter == t->candidate[c].drafter) before = t->candidate[d].number;
        if (t->candidate[c].number <= before) return false;
    }
    return true;
}

bool hn_tree_valid(const hn_tree *t) {
    if (t->max_rows < 1 || t->max_rows > HN_TREE_ROWS || t->n_rows < 1 || t->n_rows > t->max_rows) return false;
    if (t->n_candidates < 0 || t->n_candidates > HN_TREE_CANDIDATES) return false;
    if (t->parent[0] != -1 || t->depth[0] != 0) return false;
    for (int r = 1; r < t->n_rows; r++) {
        int p = t->parent[r];
        if (p < 0 || p >= r || t->depth[r] != t->depth[p] + 1) return false;
        for (int s = 1; s < r; s++)
            if (t->parent[s] == p && t->token[s] == t->token[r]) return false; /* one path, two rows */
    }
    bool reached[HN_TREE_ROWS] = {true};
    int seen = 0;
    for (int r = 0; r < t->n_rows; r++)
        if (!list_valid(t, r, reached, &seen)) return false;
    for (int r = 0; r < t->n_rows; r++)
        if (!reached[r]) return false;
    return seen == t->n_candidates && numbers_valid(t);
}
