/* SPDX-License-Identifier: Apache-2.0 */
/* lookahead_window.c - see lookahead_window.h. */
#include "draft/text/lookahead_window.h"

#include <assert.h>
#include <string.h>

#include "base/random.h"

/* Columns of a row, from column 0 on: those of later passes that still lack rows are further to the right. */
static int width(const hn_lookahead *x) {
    return x->columns + x->n - 2 - x->filled;
}

void hn_lookahead_begin(hn_lookahead *x, int columns, int n, const int32_t *text, int n_text, uint64_t seed) {
    assert(columns >= 1 && n >= 2 && n <= HN_LOOKAHEAD_N && n_text >= 1 && columns + n <= HN_LOOKAHEAD_COLUMNS);
    x->columns = columns;
    x->n = n;
    x->filled = 0;
    for (int c = 1; c < width(x); c++) x->cell[0][c] = text[hn_splitmix(&seed) % (uint64_t)n_text];
}

int hn_lookahead_chain(const hn_lookahead *x) {
    return width(x) - 1;
}

void hn_lookahead_push(hn_lookahead *x, hn_draft_nodes *out, float (*of_cell)(const void *ctx, int row, int column), const void *ctx) {
    x->node[0][0] = -1;
    for (int r = 0; r <= x->filled; r++)
        for (int c = r == 0; c < width(x); c++) {
            const int parent = r > 0 ? x->node[r - 1][c] : x->node[0][c - 1];
            const int node = hn_draft_nodes_push(out, parent, x->cell[r][c], of_cell(ctx, r, c));
            assert(node >= 0);
            out->stays[node] = true;
            x->node[r][c] = (int16_t)node;
        }
}

/* What the target says after each cell of the last row, column 0 first; -1: the cell was not in the tree. */
static void results_read(const hn_lookahead *x, const hn_tree *t, const int32_t *best, int n_best, int32_t *result) {
    int row = 0;
    for (int c = 0; c < width(x); c++) {
        if (c > 0 && row >= 0) row = hn_tree_child(t, row, x->cell[0][c]);
        int at = row;
        for (int r = 1; r <= x->filled && at >= 0; r++) at = hn_tree_child(t, at, x->cell[r][c]);
        result[c] = at >= 0 ? best[at * n_best] : -1;
    }
}

/* The n-gram of a column begins with the token before its row 1: the root, or a cell of row 0. */
static void pool_add(const hn_lookahead *x, int32_t root, const int32_t *result, hn_ngram_pool *pool) {
    int32_t rest[HN_LOOKAHEAD_N];
    for (int c = 0; c < x->columns; c++) {
        if (result[c] < 0) continue;
        for (int r = 1; r < x->n - 1; r++) rest[r - 1] = x->cell[r][c];
        rest[x->n - 2] = result[c];
        hn_ngram_pool_add(pool, c == 0 ? root : x->cell[0][c], rest);
    }
}

void hn_lookahead_move(hn_lookahead *x, const hn_tree *t, const int32_t *best, int n_best, hn_ngram_pool *pool) {
    int32_t result[HN_LOOKAHEAD_COLUMNS];
    const int last = x->filled, w = width(x);
    const size_t bytes = (size_t)w * sizeof result[0];
    const bool full = last == x->n - 2;
    results_read(x, t, best, n_best, result);
    if (full && pool) pool_add(x, t->token[0], result, pool);
    for (int c = 0; c < w; c++)
        if (result[c] < 0) result[c] = last == 0 && c == 0 ? t->token[0] : x->cell[last][c];
    if (full) { /* a row's own columns: what was computed after column c is one position further, as is the new root */
        for (int r = 0; r < last; r++) memcpy(x->cell[r], x->cell[r + 1], bytes);
        memcpy(x->cell[last], result, bytes);
        return;
    }
    for (int r = 0; r <= last; r++) memmove(x->cell[r], x->cell[r] + 1, bytes - sizeof result[0]);
    memcpy(x->cell[last + 1], result + 1, bytes - sizeof result[0]);
    x->filled++;
}
