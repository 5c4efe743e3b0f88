/* SPDX-License-Identifier: Apache-2.0 */
/* controller_cuts.c - rows in the order of the probability that they are on the accepted path, and the best cut through
 * them. The trees of a round, one drafter's part of them, and what a drafter might draw are such lists. */
#include <math.h>

#include "base/least.h"
#include "plan/controller_private.h"

static const double MIN_RATIO = 1.02;  /* value of drafting to that of plain decoding: less is not drafted */
static const double NEAR_BEST = 0.995; /* of choices of at least this part of the best value the one of fewest rows is taken */
static const double LEAST_PRICE = 0.01; /* of a row, in parts of a pass of one row */
static const double BESIDE_ROUNDS = 32, ADDED_ROUNDS = 8; /* of the means about prompts in passes */
static const double LEAST_ADDED = 0.25; /* of a round's time alone, what it adds to a pass with prompts */
enum { SLOPE_ROWS = 16 };               /* over which what a row adds to a pass is measured */
static const double OPTIMISM = 0.7;    /* standard deviations by which an uncertain cost is lowered, see hn_cost_curve */

double hn_plan_on_curve(const hn_controller *c, const double *seconds, double rows) {
    const int whole = hn_least((int)rows, c->n_seconds - 1);
    return seconds[whole] + (rows - whole) * (seconds[whole + 1] - seconds[whole]);
}

/* A row costs what it adds to the pass, and what it reads of its own text. */
static void prices_read(hn_controller *c, const hn_plan_seq *s, int n, double mean) {
    const int from = hn_least(n, HN_COST_ROWS / 2), to = hn_least(from + SLOPE_ROWS, HN_COST_ROWS);
    const double again = hn_cost_of_again(&c->cost), row = (c->seconds[to] - c->seconds[from]) / (to - from) - again * mean;
    double cheapest = INFINITY;
    for (int i = 0; i < n; i++) {
        c->price[i].more = again * (s[i].reads - mean);
        c->price[i].weight = hn_plan_larger(row, LEAST_PRICE * c->seconds[1]) + again * s[i].reads; /* its price, so far */
        cheapest = hn_least_double(cheapest, c->price[i].weight);
    }
    for (int i = 0; i < n; i++) c->price[i].weight = cheapest / c->price[i].weight;
}

/* Prompts are read whatever is drafted. If their part of the pass counted, drafts would seem cheap beside it. What a token is worth is the
 * time of the row that it saves in a later round: of one without prompts its part of the whole pass, of one with prompts what a row adds
 * to that. So a round's own time is between what its texts take alone and what they add to a pass with prompts, by how many of the newest
 * rounds had some; and further rows take what they add to the pass that there is. */
static double own_part(hn_controller *c, int n, double alone) {
    if (c->own_round == c->round) return c->own;
    c->own_round = c->round;
    c->beside_part += ((c->beside.prompt > 0) - c->beside_part) / BESIDE_ROUNDS;
    if (c->beside.prompt > 0) {
        const double added = n > 1 ? (c->seconds[n] - c->seconds[1]) * n / (n - 1) : c->seconds[2] - c->seconds[1];
        c->added_part += (hn_least_double(hn_plan_larger(added / alone, LEAST_ADDED), 1) - c->added_part) / ADDED_ROUNDS;
    }
    return c->own = 1 - c->beside_part * (1 - c->added_part);
}

static void prompts_leave(hn_controller *c, const hn_cost_round *with, int n) {
    double alone[HN_PLAN_MOST_ROWS + 1], hoped[HN_PLAN_MOST_ROWS + 1];
    double seconds = c->seconds[n], optimistic = c->optimistic[n];
    hn_cost_round r = *with;
    r.beside = (hn_cost_work){0};
    if (c->beside.prompt > 0 && hn_cost_curve(&c->cost, &r, alone, hoped, OPTIMISM)) seconds = alone[n], optimistic = hoped[n];
    const double own = own_part(c, n, seconds);
    const double less = c->seconds[n] - own * seconds, hoped_less = c->optimistic[n] - own * optimistic;
    for (int rows = 1; rows <= c->n_seconds && less != 0; rows++) {
        c->seconds[rows] = hn_plan_larger(c->seconds[rows] - less, own * seconds / n);
        c->optimistic[rows] = hn_plan_larger(c->optimistic[rows] - hoped_less, own * optimistic / n);
    }
}

bool hn_plan_curve(hn_controller *c, const hn_plan_seq *s, int n) {
    hn_cost_round r = {.texts = n, .beside = c->beside, .most = c->most_rows};
    for (int i = 0; i < n; i++) r.reads += s[i].reads / n;
    if (n == 0 || !hn_cost_curve(&c->cost, &r, c->seconds, c->optimistic, OPTIMISM)) return false;
    c->n_seconds = hn_most(c->most_rows, HN_COST_ROWS);
    prompts_leave(c, &r, n);
    prices_read(c, s, n, r.reads);
    return true;
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

bool hn_plan_several_called(const hn_controller *c) {
    int called = 0;
    for (int d = 0; d < c->n_drafters; d++) called += c->drafter[d].why != HN_NOT_CALLED;
    return called > 1;
}

/* Drawn candidates agree with nobody: their values must not decide. */
void hn_plan_reach(hn_controller *c, int i, const hn_tree *t, int only) {
    hn_agreed by[HN_TREE_ROWS];
    double drawn[HN_TREE_ROWS] = {0};
    const bool others = hn_plan_several_called(c);
    for (int r = 1; r < t->n_rows; r++) by[r] = HN_AGREED_NONE;
    for (int k = 0; k < t->n_candidates; k++) {
        const hn_candidate *a = &t->candidate[k];
        const double rate = (double)c->rate[i][k];
        if (only != HN_PLAN_ANY && a->drafter != only) continue;
        if (a->q)
            drawn[a->child] = hn_plan_larger(drawn[a->child], rate);
        else
            hn_agreed_add(&by[a->child], a->drafter, rate);
    }
    c->reach[i][0] = 1;
    for (int r = 1; r < t->n_rows; r++) {
        const bool counts = only == HN_PLAN_ANY && (by[r].other >= 0 || others); /* else it does not matter who else proposes it */
        const double rate = counts ? hn_agreement_rate(&c->agreement, &by[r]) : by[r].rate;
        c->reach[i][r] = hn_plan_larger(drawn[r], rate) * c->reach[i][t->parent[r]];
    }
}

int hn_plan_list_tree(hn_controller *c, int i, const hn_tree *t, bool by_history, int n) {
    return hn_plan_list_rows(c->list, n, i, t, c->reach[i], c->price[i].weight, by_history);
}

static int list_trees(hn_controller *c, const hn_plan_seq *s, int n, int only, bool by_history) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        hn_plan_reach(c, i, s[i].tree, only);
        m = hn_plan_list_tree(c, i, s[i].tree, by_history, m);
    }
    return m;
}

hn_plan_cut hn_plan_best_cut(const hn_controller *c, const hn_plan_item *list, int n_list, int n, double spent) {
    double value[HN_PLAN_MOST_ROWS + 1], more[HN_PLAN_MOST_ROWS + 1], tokens = n, own = spent, best = 0;
    int first = 0, last = 0;
    for (; first < n_list && list[first].key > 1; first++) {
        tokens += list[first].p;
        own += c->price[list[first].seq].more;
    }
    const int room = hn_most(c->most_rows - n - first, 0), most = hn_least(n_list - first, room);
    for (int m = 0; m <= most; m++) {
        if (m > 0) {
            tokens += list[first + m - 1].p;
            own += c->price[list[first + m - 1].seq].more;
        }
        more[m] = own;
        value[m] = tokens / (hn_plan_on_curve(c, c->optimistic, n + first + m) + own);
        best = hn_plan_larger(best, value[m]);
    }
    if (best >= value[0] * MIN_RATIO)
        while (value[last] < best * NEAR_BEST) last++;
    return (hn_plan_cut){first + last, hn_plan_on_curve(c, c->seconds, n + first + last) + more[last], value[last],
                         value[last] / value[0] - 1};
}

hn_plan_cut hn_plan_trees_cut(hn_controller *c, const hn_plan_seq *s, int n, int only, bool by_history, double spent) {
    const int m = hn_plan_sort_first(c->list, list_trees(c, s, n, only, by_history), c->most_rows - n);
    return hn_plan_best_cut(c, c->list, m, n, spent);
}
