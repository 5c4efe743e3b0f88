/* SPDX-License-Identifier: Apache-2.0 */
/* lookahead_window.h - the window of lookahead decoding (arXiv 2402.02057): guesses of W columns, positions after the text's newest token,
 * in N - 1 rows, of which each was computed one pass later than the row before it.
 *
 *              column  0      1      2     ..  W-1
 *   row 0            root → (0,1) → (0,2) → ..        a chain after the root
 *   row 1            (1,0)  (1,1)  (1,2)              each after the cell above it
 *   ..                 |      |      |
 *   row N-2
 *   next             what the target says after row N-2: with its column it is an n-gram of N tokens
 *
 * The cells are rows of the draft tree like any others, and may be accepted. After a pass every row moves up, the target's tokens
 * become the last one, and all columns move by one, whatever was accepted. Until the window is full it has fewer rows, and wider ones: row
 * 0 begins with W + N - 3 cells, and each of the first N - 2 passes adds a row.
 */
#ifndef HN_LOOKAHEAD_WINDOW_H
#define HN_LOOKAHEAD_WINDOW_H
#include "draft/draft_nodes.h"
#include "draft/text/ngram_pool.h"

enum { HN_LOOKAHEAD_N = 16, HN_LOOKAHEAD_COLUMNS = HN_TREE_ROWS + HN_LOOKAHEAD_N };

typedef struct hn_lookahead {
    int columns, n; /* W, N */
    int filled;     /* the last row that there is, 0..N-2 */
    int32_t cell[HN_LOOKAHEAD_N - 1][HN_LOOKAHEAD_COLUMNS]; /* [row][column]; (0, 0) is the root's */
    int16_t node[HN_LOOKAHEAD_N - 1][HN_LOOKAHEAD_COLUMNS]; /* of the round's draft; -1: none */
} hn_lookahead;

/* Row 0 alone, of tokens of the text that the seed chooses. columns >= 1, 2 <= n <= HN_LOOKAHEAD_N. */
void hn_lookahead_begin(hn_lookahead *x, int columns, int n, const int32_t *text, int n_text, uint64_t seed);
/* Adds its cells to a draft after `root`; of_cell gives the estimate of a cell. */
void hn_lookahead_push(hn_lookahead *x, hn_draft_nodes *out, float (*of_cell)(const void *ctx, int row, int column), const void *ctx);
/* The pass is over: t is the tree that was verified, best [t->n_rows][n_best]. Adds the n-grams of a full window to the pool (NULL: to
 * none), moves it, and fills its last row. A cell that was not in the tree is taken to say its own token again. */
void hn_lookahead_move(hn_lookahead *x, const hn_tree *t, const int32_t *best, int n_best, hn_ngram_pool *pool);
/* Cells of row 0: the first that are pushed. */
int hn_lookahead_chain(const hn_lookahead *x);
#endif
