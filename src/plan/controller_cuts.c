/* SPDX-License-Identifier: Apache-2.0 */
/* controller_cuts.c - rows in the order of the probability that they are on the accepted path, and the best cut through
 * them. The trees of a round, one drafter's part of them, and what a drafter might draw are such lists. */
#include "base/least.h"
#include "plan/controller_private.h"

static const double MIN_RATIO = 1.02;  /* value of drafting to that of plain decoding: less is not drafted */
static const double NEAR_BEST = 0.995; /* of choices of at least this part of the best value the one of fewest rows is taken */
static const double OPTIMISM = 0.7;    /* standard deviations by which an uncertain cost is lowered, see hn_cost_curve */

double hn_plan_on_curve(const double *seconds, double rows) {
    const int passes = (int)(rows / HN_COST_ROWS);
    const double rest = rows - passes * HN_COST_ROWS;
    const int whole = (int)rest;
    return passes * seconds[HN_COST_ROWS] + seconds[whole] + (rest - whole) * (seconds[whole + 1] - seconds[whole]);
}

bool hn_plan_curve(hn_controller *c, const hn_plan_seq *s, int n) {
    double context = 0;
    for (int i = 0; i < n; i++) context += s[i].context;
    return n > 0 && hn_cost_curve(&c->cost, (int)(context / n), c->seconds, c->optimistic, OPTIMISM);
}

void hn_plan_rates(hn_controller *c, const hn_plan_seq *s, int n, bool by_history) {
    for (int i = 0; i < n; i++) {
        const hn_tree *t = s[i].tree;
        const hn_acceptance *own = &c->text[s[i].seq].own;
        for (int k = 0; k < t->n_candidates; k++) {
            const hn_candidate *a = &t->candidate[k];
            const int depth = t->depth[a->child];
            c->rate[i][k] =
                (float)(by_history && a->q ? hn_acceptance_at(&c->all, own, a->drafter, depth)
                                           : hn_acceptance_rate(&c->all, own, a->drafter, depth, (double)a->estimate));
        }
    }
}

void hn_plan_reach(hn_controller *c, int i, const hn_tree *t, int only) {
    double best[HN_TREE_ROWS] = {0};
    for (int k = 0; k < t->n_candidates; k++) {
        const hn_candidate *a = &t->candidate[k];
        if (only == HN_PLAN_ANY || a->drafter == only)
            best[a->child] = hn_plan_larger(best[a->child], (double)c->rate[i][k]);
    }
    c->reach[i][0] = 1;
    for (int r = 1; r < t->n_rows; r++) c->reach[i][r] = best[r] * c->reach[i][t->parent[r]];
}

static int list_trees(hn_controller *c, const hn_plan_seq *s, int n, int only, bool by_history) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        hn_plan_reach(c, i, s[i].tree, only);
        m = hn_plan_list_rows(c->list, m, i, s[i].tree, c->reach[i], by_history);
    }
    return m;
}

hn_plan_cut hn_plan_best_cut(const hn_controller *c, const hn_plan_item *list, int n_list, int n, double spent) {
    double value[HN_PLAN_MOST_ROWS + 1], tokens = n, best = 0;
    int first = 0, last = 0;
    while (first < n_list && list[first].key > 1) tokens += list[first++].p;
    const int room = hn_most(c->most_rows - n - first, 0), most = hn_least(n_list - first, room);
    for (int m = 0; m <= most; m++) {
        if (m > 0) tokens += list[first + m - 1].p;
        value[m] = tokens / (hn_plan_on_curve(c->optimistic, n + first + m) + spent);
        best = hn_plan_larger(best, value[m]);
    }
    if (best >= value[0] * MIN_RATIO)
        while (value[last] < best * NEAR_BEST) last++;
    return (hn_plan_cut){first + last, hn_plan_on_curve(c->seconds, n + first + last) + spent, value[last],
                         value[last] / value[0] - 1};
}

hn_plan_cut hn_plan_trees_cut(hn_controller *c, const hn_plan_seq *s, int n, int only, bool by_history, double spent) {
    const int m = list_trees(c, s, n, only, by_history);
    hn_plan_sort(c->list, m);
    return hn_plan_best_cut(c, c->list, m, n, spent);
}
