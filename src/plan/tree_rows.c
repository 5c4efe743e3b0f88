/* SPDX-License-Identifier: Apache-2.0 */
/* tree_rows.c - the list of tree_rows.h, and the cut that needs no measurements. */
#include "plan/tree_rows.h"

#include <string.h>

/* Shell's sort; a few chains in a row are nearly sorted, and short lists are inserted. */
void hn_plan_sort(hn_plan_item *list, int n) {
    static const int gaps[] = {301, 57, 10, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        const int gap = gaps[g];
        if (gap > 1 && gap * 4 > n) continue;
        for (int i = gap; i < n; i++) {
            const hn_plan_item x = list[i];
            int j = i;
            for (; j >= gap && hn_plan_before(&x, &list[j - gap]); j -= gap) list[j] = list[j - gap];
            list[j] = x;
        }
    }
}

/* Brings the first m in order to the front, in no order. */
static void select_first(hn_plan_item *list, int n, int m) {
    for (int low = 0, high = n - 1; low < high;) {
        const hn_plan_item middle = list[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (hn_plan_before(&list[i], &middle)) i++;
            while (hn_plan_before(&middle, &list[j])) j--;
            if (i > j) break;
            const hn_plan_item x = list[i];
            list[i++] = list[j];
            list[j--] = x;
        }
        if (m <= j) high = j;
        else if (m >= i) low = i;
        else return;
    }
}

int hn_plan_sort_first(hn_plan_item *list, int n, int most) {
    int first = most;
    for (int i = 0; i < n; i++) first += list[i].key > 1;
    if (first < n) select_first(list, n, first);
    const int m = first < n ? first : n;
    hn_plan_sort(list, m);
    return m;
}

/* Marks the rows that lead to candidates that stay, or are drawn, and those before them. */
static void must_stay(const hn_tree *t, bool drawn, bool *stay) {
    for (int k = 0; k < t->n_candidates; k++)
        if (t->candidate[k].stays || (drawn && t->candidate[k].q)) stay[t->candidate[k].child] = true;
    for (int r = t->n_rows - 1; r > 0; r--)
        if (stay[r]) stay[t->parent[r]] = true;
}

int hn_plan_list_rows(hn_plan_item *list, int n, int seq, const hn_tree *t, const double *reach, double weight, bool drawn_stays) {
    bool stay[HN_TREE_ROWS] = {false};
    must_stay(t, drawn_stays, stay);
    for (int r = 1; r < t->n_rows; r++)
        if (reach[r] > 0 || stay[r])
            list[n++] = (hn_plan_item){stay[r] ? 2 : weight * reach[r], reach[r], (int16_t)seq, (int16_t)r, t->depth[r]};
    return n;
}

/* Of two candidates that share a row the likelier counts. Estimates are within 0..1, but a drafter may be wrong. */
static void reach_by_estimate(const hn_tree *t, double reach[HN_TREE_ROWS]) {
    double best[HN_TREE_ROWS] = {0};
    for (int k = 0; k < t->n_candidates; k++) {
        const hn_candidate *a = &t->candidate[k];
        const double p = (double)a->estimate;
        if (p > best[a->child]) best[a->child] = p < 1 ? p : 1;
    }
    reach[0] = 1;
    for (int r = 1; r < t->n_rows; r++) reach[r] = best[r] * reach[t->parent[r]];
}

void hn_plan_cut_by_estimate(const hn_tree *const *trees, int n, int most, hn_plan_item *list, bool (*keep)[HN_TREE_ROWS]) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        double reach[HN_TREE_ROWS];
        memset(keep[i], 0, sizeof keep[i]);
        keep[i][0] = true;
        reach_by_estimate(trees[i], reach);
        m = hn_plan_list_rows(list, m, i, trees[i], reach, 1, true);
    }
    m = hn_plan_sort_first(list, m, most);
    for (int k = 0; k < m && (k < most || list[k].key > 1); k++) keep[list[k].seq][list[k].row] = true;
}
