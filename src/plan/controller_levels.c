/* SPDX-License-Identifier: Apache-2.0 */
/* controller_levels.c - drafters that are decided on level by level: each level is a pass of the drafter, run while its expected gain is
 * worth its time. A chain's next level is one node, by the rate of its depth (acceptance.h); that of a branching drafter is the expected
 * nodes after each row of the newest level, by the rates of each rank (tree_growth.h). In both cases the likeliest nodes of the levels to
 * come are merged into the sorted list of the rows that exist, and the best cut through all of them gives the value of those levels: so
 * the probability that a level adds is weighed against the pass of the drafter and against the rows of the target's pass that it would
 * fill.
 *
 * One level may pay only together with the next one, so several are considered; this ends at a level that gains less than its own time
 * would otherwise, for those after it gain less still.
 */
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "plan/controller_private.h"

/* ---- levels to come ---- */

void hn_plan_rates_ahead(const hn_controller *c, const hn_plan_text *x, int drafter, int depth, hn_plan_rates_of *out) {
    out->n = hn_tree_growth_at(&c->growth, &x->growth, drafter, depth, out->rate);
    if (out->n > 1) return;
    out->n = 1;
    out->rate[0] = hn_acceptance_at(&c->all, &x->own, drafter, depth);
}

static void ahead_read_depth(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int depth) {
    const int levels = c->drafter[drafter].most_levels;
    for (int i = 0; i < n; i++) {
        const hn_plan_text *x = &c->text[s[i].seq];
        const int most = !hn_plan_has(&s[i], drafter) ? 0 : levels < s[i].depth_limit ? levels : s[i].depth_limit;
        if (depth > most)
            c->ahead[i][depth].n = 0;
        else
            hn_plan_rates_ahead(c, x, drafter, depth, &c->ahead[i][depth]);
    }
}

/* The rates up to this depth; they stay the same for a round. */
static void ahead_read(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int depth) {
    if (c->ahead_of != drafter || c->ahead_round != c->round) c->ahead_depths = 0;
    c->ahead_of = drafter;
    c->ahead_round = c->round;
    while (c->ahead_depths < depth) ahead_read_depth(c, s, n, drafter, ++c->ahead_depths);
}

/* Keeps only the `most` likeliest. */
static void front_put(hn_plan_frontier *f, double p, int most) {
    if (f->n == most && p <= f->p[most - 1]) return;
    int at = f->n < most ? f->n++ : most - 1;
    for (; at > 0 && f->p[at - 1] < p; at--) f->p[at] = f->p[at - 1];
    f->p[at] = p;
}

static void front_sum(hn_plan_frontier *f) {
    f->mass = 0;
    for (int k = 0; k < f->n; k++) f->mass += f->p[k];
}

/* The level after `from`. */
static void front_grow(hn_plan_frontier *to, const hn_plan_frontier *from, const hn_plan_rates_of *a, int most) {
    to->n = 0;
    for (int k = 0; k < from->n; k++)
        for (int r = 0; r < a->n; r++) {
            const double p = from->p[k] * a->rate[r];
            if (p <= 0 || (to->n == most && p <= to->p[most - 1])) break;
            front_put(to, p, most);
        }
    front_sum(to);
}

/* The next level of all sequences; returns its expected gain. */
static double fronts_grow(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int depth) {
    const int most = hn_least((c->most_rows - n) / n, HN_PLAN_FRONTIER); /* as the engine shares them out: drafting.c */
    double mass = 0;
    ahead_read(c, s, n, drafter, depth);
    for (int i = 0; i < n; i++) {
        c->frontier[i][depth].n = 0;
        c->frontier[i][depth].mass = 0;
        if (most > 0) front_grow(&c->frontier[i][depth], &c->frontier[i][depth - 1], &c->ahead[i][depth], most);
        mass += c->frontier[i][depth].mass;
    }
    return mass;
}

/* Merges a level's nodes into a sorted list; returns its new length. stay: what is drafted will be verified. */
static int list_front(hn_controller *c, int i, int depth, bool stay, int n) {
    const hn_plan_frontier *f = &c->frontier[i][depth];
    const int all = n + f->n;
    for (int to = all, a = n - 1, b = f->n - 1; b >= 0;) {
        const hn_plan_item x = {stay ? 2 : f->p[b] * c->price[i].weight, f->p[b], (int16_t)i, HN_PLAN_NONE, (int16_t)depth};
        if (a >= 0 && hn_plan_before(&x, &c->list[a])) {
            c->list[--to] = c->list[a--];
        } else {
            c->list[--to] = x;
            b--;
        }
    }
    return all;
}

/* ---- before it is called ---- */

static double tree_gain(const hn_controller *c, int i, const hn_tree *t) {
    double sum = 0;
    for (int r = 1; r < t->n_rows; r++) sum += c->reach[i][r];
    return sum;
}

/* The drafter adds this many levels to each sequence; a sequence whose tree has a larger expected gain keeps its tree. */
static hn_plan_cut levels_cut(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int levels, bool by_history) {
    int m = 0;
    for (int i = 0; i < n; i++) {
        double gain = 0;
        for (int d = 1; d <= levels; d++) gain += c->frontier[i][d].mass;
        c->base[i].takes = gain > tree_gain(c, i, s[i].tree);
        if (!c->base[i].takes) m = hn_plan_list_tree(c, i, s[i].tree, false, m);
    }
    m = hn_plan_sort_first(c->list, m, c->most_rows - n);
    for (int i = 0; i < n; i++)
        for (int d = 1; d <= levels && c->base[i].takes; d++) m = list_front(c, i, d, by_history, m);
    return hn_plan_best_cut(c, c->list, m, n, c->spent + hn_plan_levels_price(c, drafter, levels));
}

double hn_plan_levels_value(hn_controller *c, const hn_plan_seq *s, int n, int drafter, bool by_history) {
    const double call = hn_cost_of_draft_level(&c->cost, drafter, c->drafter[drafter].texts);
    hn_plan_cut best = {0};
    const int deepest = hn_plan_deepest(s, n);
    int levels = 0;
    for (int i = 0; i < n; i++) c->frontier[i][0] = (hn_plan_frontier){1, {1}, 1};
    for (int k = 1; k <= deepest; k++) {
        const double mass = fronts_grow(c, s, n, drafter, k);
        const hn_plan_cut one = levels_cut(c, s, n, drafter, k, by_history);
        if (one.value > best.value) {
            best = one;
            levels = k;
        } else if (mass <= best.value * call) {
            break;
        }
    }
    c->drafter[drafter].best = (hunch_choice){drafter, best.rows, levels, best.value * best.seconds, best.seconds};
    return best.value;
}

/* ---- before each of its levels ---- */

/* Reads the rows after which the next level would be added. */
static void tips_read(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int level) {
    for (int i = 0; i < n; i++) {
        const hn_tree *t = s[i].tree;
        hn_plan_frontier *f = &c->frontier[i][level];
        bool tip[HN_TREE_ROWS] = {false};
        f->n = 0;
        for (int k = 0; k < t->n_candidates; k++) {
            const hn_candidate *a = &t->candidate[k];
            if (a->drafter != drafter || t->depth[a->child] != level || tip[a->child] ||
                !(c->reach[i][a->child] > 0))
                continue;
            tip[a->child] = true;
            front_put(f, c->reach[i][a->child], HN_PLAN_FRONTIER);
        }
        front_sum(f);
    }
}

/* Are more levels after the first `level` ones worth their time? */
static bool level_pays(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int level, bool by_history) {
    const double before = c->spent + hn_plan_levels_price(c, drafter, level),
                 call = hn_cost_of_draft_level(&c->cost, drafter, c->drafter[drafter].texts);
    int m = 0;
    hn_plan_rates(c, s, n, by_history);
    for (int i = 0; i < n; i++) {
        hn_plan_reach(c, i, s[i].tree, HN_PLAN_ANY);
        m = hn_plan_list_tree(c, i, s[i].tree, by_history, m);
    }
    m = hn_plan_sort_first(c->list, m, c->most_rows - n);
    const double stop = hn_plan_best_cut(c, c->list, m, n, before).value;
    tips_read(c, s, n, drafter, level);
    for (int d = level + 1, deepest = hn_plan_deepest(s, n); d <= deepest; d++) {
        const double mass = fronts_grow(c, s, n, drafter, d);
        for (int i = 0; i < n; i++) m = list_front(c, i, d, by_history, m);
        if (hn_plan_best_cut(c, c->list, m, n, before + (d - level) * call).value > stop) return true;
        if (mass <= stop * call) return false;
    }
    return false;
}

bool hn_controller_go_on(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int level, bool by_history) {
    const hn_plan_drafter *d = &c->drafter[drafter];
    if (drafter != c->by_level || level >= hn_plan_deepest(s, n) || level >= d->most_levels) return false;
    if (level > 0) {
        if (!hn_plan_curve(c, s, n)) return false;
        const bool tried = d->why == HN_CALLED_TRIED, timed = hn_cost_knows_level(&c->cost, drafter, d->texts);
        if (tried && timed && !(d->trial_budget >= hn_cost_of_draft_level(&c->cost, drafter, d->texts))) return false;
        /* else it is drafted to be timed: it may cost much less than the first */
        if ((!tried || timed) && !level_pays(c, s, n, drafter, level, by_history)) return false;
    }
    c->levels = level + 1;
    return true;
}

/* ---- learning from its levels ---- */

/* Adds a row and the candidates after it. */
static void row_learn(const hn_controller *c, int i, const hn_tree *t, int drafter, int row, hn_tree_growth_level *l) {
    const double reach = c->reach[i][row];
    int rank = 0;
    l->reached += (float)reach;
    for (int k = t->first[row]; k >= 0; k = t->candidate[k].next) {
        if (t->candidate[k].drafter != drafter) continue;
        if (rank < HN_TREE_GROWTH_RANKS) l->of_rank[rank++] += (float)(reach * (double)c->rate[i][k]);
    }
}

void hn_plan_levels_learn(hn_controller *c, const hn_plan_seq *s, int n, int drafter) {
    for (int i = 0; i < n; i++) {
        if (!hn_plan_has(&s[i], drafter)) continue;
        const hn_tree *t = s[i].tree;
        hn_tree_growth_level level[HN_TREE_GROWTH_DEPTHS] = {{0}};
        for (int r = 0; r < t->n_rows; r++)
            if (t->depth[r] < c->drafter[drafter].levels && t->depth[r] < HN_TREE_GROWTH_DEPTHS && c->reach[i][r] > 0)
                row_learn(c, i, t, drafter, r, &level[t->depth[r]]);
        for (int d = 0; d < HN_TREE_GROWTH_DEPTHS; d++)
            hn_tree_growth_learn(&c->growth, &c->text[s[i].seq].growth, drafter, d + 1, &level[d]);
    }
}
