/* SPDX-License-Identifier: Apache-2.0 */
/* tree_rows.h - the drafted rows of several trees in one list, in the order of the probability that they are on the accepted path. All
 * trees of a round share the rows of its passes, so a cut through this list gives rows to the texts that have something to propose.
 *
 * Along a path probabilities fall, so the rows before a cut are connected. Rows that drawn candidates lead to come first, whatever their
 * probability: a drawn candidate must not be left out because of its token (verification.md 11). So do those whose candidates stay. */
#ifndef HN_TREE_ROWS_H
#define HN_TREE_ROWS_H
#include "draft/tree.h"

typedef struct hn_plan_item {
    double key, p; /* sorted by key: p times the tree's weight, or above all others for a row that must stay */
    int16_t seq, row, depth;
} hn_plan_item;

/* Parents come before children even where probabilities are equal. */
static inline bool hn_plan_before(const hn_plan_item *a, const hn_plan_item *b) {
    if (a->key != b->key) return a->key > b->key;
    if (a->depth != b->depth) return a->depth < b->depth;
    return a->seq != b->seq ? a->seq < b->seq : a->row < b->row;
}

void hn_plan_sort(hn_plan_item *list, int n);
/* The same of those that must stay and the first `most` of the others: of many trees few rows fit in a pass. Returns how many these are;
 * the rest follows in no order. */
int hn_plan_sort_first(hn_plan_item *list, int n, int most);
/* Appends the rows of tree number `seq` with reach[row], the probability that it is on the accepted path, after the list's first n;
 * returns the new n. Rows of probability 0 are left out. weight: of the tree's probabilities in the order, above 0, at most 1.
 * Rows of candidates that stay, and those before them, come first; drawn_stays: drawn ones do. */
int hn_plan_list_rows(hn_plan_item *list, int n, int seq, const hn_tree *t, const double *reach, double weight, bool drawn_stays);

/* Without measured rates: the likeliest rows by the estimates of their candidates, at most `most` besides the roots, but all that drawn
 * candidates lead to, and those that stay. list: room for the rows of n trees. keep[i][row] is set for all rows of tree i. */
void hn_plan_cut_by_estimate(const hn_tree *const *trees, int n, int most, hn_plan_item *list, bool (*keep)[HN_TREE_ROWS]);
#endif
