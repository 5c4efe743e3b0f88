/* SPDX-License-Identifier: Apache-2.0 */
/* controller.c - `auto`, see controller.h. cost.c estimates what a pass costs, acceptance.c how likely a candidate is,
 * drafter_gain.c what a drafter brings; this file updates them and cuts the trees.
 *
 * Every choice is one list of rows with their probabilities, sorted, and one cut through it (controller_cuts.c): the rows
 * before it are verified. controller_select.c chooses which drafters are called at all.
 *
 * Rows that were cut are learned from too: under greedy and match the target's token at a row that was reached decides of every
 * candidate there whether it would have been accepted (and under the point-mass rule it does so on average). So the trees are
 * kept as they were before the cut and read again when the token is known: it is the root of the next round's tree. Trying a
 * drafter then costs only the drafter's time.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "plan/controller_private.h"

hunch_status hn_controller_open(hn_controller **out, const hn_draft_cost *kinds, int n_drafters, int max_seqs,
                                hunch_error *err) {
    assert(n_drafters >= 0 && max_seqs >= 1);
    *out = NULL;
    if (n_drafters > HN_ACCEPT_DRAFTERS)
        return hn_fail(err, HUNCH_USAGE, "auto: %d drafters, expected at most %d", n_drafters, HN_ACCEPT_DRAFTERS);
    const size_t n = (size_t)max_seqs;
    hn_controller *c = hn_zalloc(1, sizeof *c);
    if (!c) return hn_fail_memory(err, "controller", sizeof *c);
    c->text = hn_zalloc(n, sizeof *c->text);
    c->rate = hn_zalloc(n, sizeof *c->rate);
    c->reach = hn_zalloc(n, sizeof *c->reach);
    c->ahead = hn_zalloc(n, sizeof *c->ahead);
    c->frontier = hn_zalloc(n, sizeof *c->frontier);
    c->list = hn_zalloc(n, HN_PLAN_LIST * sizeof *c->list);
    c->base = hn_zalloc(n, sizeof *c->base);
    c->price = hn_zalloc(n, sizeof *c->price);
    c->report = hn_zalloc(n, sizeof *c->report);
    if (!c->text || !c->rate || !c->reach || !c->ahead || !c->frontier || !c->list || !c->base || !c->price || !c->report) {
        hn_controller_close(&c);
        return hn_fail_memory(err, "controller", n * sizeof *c->text);
    }
    c->n_drafters = n_drafters;
    c->max_seqs = max_seqs;
    c->n_seconds = HN_COST_ROWS;
    c->by_level = HN_PLAN_NONE;
    c->added_part = c->own = 1;
    for (int d = 0; d < n_drafters; d++) {
        c->drafter[d].kind = kinds[d];
        c->drafter[d].most_levels = HN_PLAN_AHEAD;
    }
    hn_cost_init(&c->cost);
    hn_controller_forget(c);
    *out = c;
    return HUNCH_OK;
}

void hn_controller_close(hn_controller **c) {
    if (!*c) return;
    hn_free((*c)->text);
    hn_free((*c)->rate);
    hn_free((*c)->reach);
    hn_free((*c)->ahead);
    hn_free((*c)->frontier);
    hn_free((*c)->list);
    hn_free((*c)->base);
    hn_free((*c)->price);
    hn_free((*c)->report);
    hn_free(*c);
    *c = NULL;
}

void hn_controller_limit(hn_controller *c, int drafter, int levels) {
    assert(drafter >= 0 && drafter < c->n_drafters && levels >= 1);
    if (levels < HN_PLAN_AHEAD) c->drafter[drafter].most_levels = levels;
}

void hn_controller_stays(hn_controller *c, int drafter) {
    assert(drafter >= 0 && drafter < c->n_drafters);
    c->drafter[drafter].stays = true;
}

void hn_controller_begin(hn_controller *c, int seq) {
    assert(seq >= 0 && seq < c->max_seqs);
    hn_plan_text *x = &c->text[seq];
    hn_acceptance_init(&x->own);
    hn_drafter_gain_begin(&x->gains, &c->gains);
    memset(&x->growth, 0, sizeof x->growth);
    memset(x->called, 0, sizeof x->called);
    x->last_tree.row = HN_PLAN_NONE;
}

void hn_controller_forget(hn_controller *c) {
    hn_acceptance_init(&c->all);
    hn_agreement_init(&c->agreement);
    memset(&c->gains, 0, sizeof c->gains);
    memset(&c->growth, 0, sizeof c->growth);
    c->trials_open = false; /* anew: every drafter may be tried */
    for (int i = 0; i < c->max_seqs; i++) hn_controller_begin(c, i);
}

hn_cost *hn_controller_cost(hn_controller *c) {
    return &c->cost;
}

/* ---- learning ---- */

/* n drafts of a row that was reached. Of each child that two drafters propose it is learned what their agreement tells; before the rates
 * of the two are. */
static void agreement_learn(hn_controller *c, const hn_plan_text *x, const hn_round_draft *draft, int n) {
    hn_agreed by[HN_TREE_ROWS];
    const bool others = hn_plan_several_called(c);
    for (int k = 0; k < n; k++) by[draft[k].child] = HN_AGREED_NONE;
    for (int k = 0; k < n; k++) {
        const hn_round_draft *a = &draft[k];
        if (a->drawn) continue;
        const double rate = hn_acceptance_rate(&c->all, &x->own, a->drafter, a->depth, (double)a->estimate);
        hn_agreed_add(&by[a->child], a->drafter, rate);
    }
    for (int k = 0; k < n; k++) {
        hn_agreed *of = &by[draft[k].child];
        if (of->drafter != draft[k].drafter || (of->other < 0 && !others)) continue;
        hn_agreement_learn(&c->agreement, of, draft[k].outcome == HN_ACCEPTED);
        *of = HN_AGREED_NONE; /* once */
    }
}

static void rates_learn(hn_controller *c, hn_plan_text *x, const hn_round_drafts *r) {
    for (int i = 0, end; i < r->n_reached; i = end) {
        for (end = i + 1; end < r->n_reached && r->draft[end].row == r->draft[i].row; end++) {}
        agreement_learn(c, x, r->draft + i, end - i);
        for (int k = i; k < end; k++) {
            const hn_round_draft *d = &r->draft[k];
            hn_acceptance_learn(&c->all, &x->own, d->drafter, d->depth, (double)d->estimate, d->outcome == HN_ACCEPTED);
        }
    }
}

/* The row was reached and the target's token there is known: learns whether the candidates that were cut would have been accepted. Those
 * whose tokens were to be known later were cut before. */
static void last_tree_learn(hn_controller *c, hn_plan_text *x, int row, int32_t token) {
    const hn_tree *t = &x->last_tree.tree;
    for (int k = t->first[row]; k >= 0; k = t->candidate[k].next)
        if (!x->last_tree.kept[t->candidate[k].child] && t->candidate[k].token != HN_TOKEN_LATER)
            hn_acceptance_learn(&c->all, &x->own, t->candidate[k].drafter, t->depth[row] + 1, (double)t->candidate[k].estimate,
                                t->candidate[k].token == token);
}

/* Follows the accepted path through the tree as it was before the cut. */
static void last_tree_follow(hn_controller *c, hn_plan_text *x, const hn_round_drafts *r) {
    hn_plan_last_tree *w = &x->last_tree;
    for (int k = 0; k < r->n_reached && w->row >= 0; k++) {
        if (r->draft[k].outcome != HN_ACCEPTED || !r->draft[k].first) continue;
        last_tree_learn(c, x, w->row, r->draft[k].token);
        w->row = hn_tree_child(&w->tree, w->row, r->draft[k].token);
    }
}

/* The roots of the new trees are the tokens that the target gave after the last paths. */
static void roots_learn(hn_controller *c, const hn_plan_seq *s, int n) {
    for (int i = 0; i < n; i++) {
        hn_plan_text *x = &c->text[s[i].seq];
        assert(s[i].seq >= 0 && s[i].seq < c->max_seqs);
        if (x->last_tree.row < 0 || x->last_tree.root_used) continue;
        last_tree_learn(c, x, x->last_tree.row, s[i].tree->token[0]);
        x->last_tree.row = hn_tree_child(&x->last_tree.tree, x->last_tree.row, s[i].tree->token[0]);
        x->last_tree.root_used = true;
    }
}

void hn_controller_start(hn_controller *c, const hn_plan_seq *s, int n, const hn_plan_round *r) {
    assert(n >= 1 && n <= c->max_seqs && r->rows >= n && r->rows <= HN_PLAN_MOST_ROWS);
    c->most_rows = r->rows;
    c->beside = r->beside;
    roots_learn(c, s, n);
    for (int d = 0; d < c->n_drafters; d++) {
        hn_plan_drafter *x = &c->drafter[d];
        x->before = x->why;
        x->why = HN_NOT_CALLED;
        x->best = (hunch_choice){0};
        x->behind = r->behind[d];
        x->texts = 0;
        for (int i = 0; i < n; i++) x->texts += hn_plan_has(&s[i], d);
        x->levels = 0;
        x->spent = 0;
        x->level_cost.asked = 0;
    }
    if (c->value > 0) c->last_value = c->value;
    c->by_level = HN_PLAN_NONE;
    c->stepped = false;
    c->levels = 0;
    c->spent = c->cheap = c->trials = c->value = 0;
    c->round++;
}

/* A trial is charged for what it loses, not for its time: rows that it alone proposed count. */
static void trial_learn(hn_controller *c, const hn_round_drafts *r, int drafter) {
    int rows = 0, accepted = 0;
    for (int k = 0; k < r->n; k++) {
        const hn_round_draft *d = &r->draft[k];
        if (d->drafter != drafter || !d->alone || !d->first) continue;
        rows++;
        accepted += d->outcome == HN_ACCEPTED;
    }
    hn_plan_trial_saved(c, drafter, rows, accepted);
}

static void yields_learn(hn_controller *c, hn_plan_text *x, const hn_round_drafts *r) {
    for (int d = 0; d < c->n_drafters; d++) {
        if (!x->called[d]) continue;
        x->result[d].got = hn_round_followed(&r->drafter[d]);
        if (c->drafter[d].why == HN_CALLED_TRIED) trial_learn(c, r, d);
        hn_drafter_gain_learn(&c->gains, &x->gains, d, &x->result[d]);
        x->called[d] = false;
    }
}

void hn_controller_observe(hn_controller *c, int seq, const hn_round_drafts *r) {
    assert(seq >= 0 && seq < c->max_seqs);
    hn_plan_text *x = &c->text[seq];
    rates_learn(c, x, r);
    last_tree_follow(c, x, r);
    x->last_tree.root_used = false;
    hn_drafter_gain_pass(&x->gains, c->n_drafters);
    yields_learn(c, x, r);
    hn_acceptance_round(&x->own, c->n_drafters);
}

/* Copies only the used part of a tree. */
static void tree_copy(hn_tree *to, const hn_tree *from) {
    const size_t rows = (size_t)from->n_rows;
    to->n_rows = from->n_rows;
    to->n_candidates = from->n_candidates;
    to->max_rows = from->max_rows;
    memcpy(to->token, from->token, rows * sizeof *to->token);
    memcpy(to->parent, from->parent, rows * sizeof *to->parent);
    memcpy(to->depth, from->depth, rows * sizeof *to->depth);
    memcpy(to->first, from->first, rows * sizeof *to->first);
    memcpy(to->last, from->last, rows * sizeof *to->last);
    memcpy(to->candidate, from->candidate, (size_t)from->n_candidates * sizeof *to->candidate);
}

/* ---- the cut ---- */

static void tree_cut(hn_controller *c, const hn_plan_seq *s, int i, hn_plan_cut k) {
    hn_tree *t = s[i].tree;
    hn_plan_last_tree *w = &c->text[s[i].seq].last_tree;
    int n = 1;
    memset(w->kept, 0, sizeof w->kept);
    w->kept[0] = true;
    for (int m = 0; m < k.rows; m++) {
        if (c->list[m].seq != i) continue;
        w->kept[c->list[m].row] = true;
        n++;
    }
    for (int d = 0; d < c->n_drafters; d++) c->text[s[i].seq].result[d].verified = n > 1;
    if (n == t->n_rows) return;
    tree_copy(&w->tree, t);
    w->row = 0;
    w->root_used = false;
    hn_tree_keep(t, w->kept, NULL);
}

/* Reads the expected gain of a drafter's tree from the front of the list that was made of it alone. */
static void results_read(hn_controller *c, const hn_plan_seq *s, int n, int drafter, int rows) {
    for (int i = 0; i < n; i++) {
        c->text[s[i].seq].called[drafter] = hn_plan_has(&s[i], drafter);
        c->text[s[i].seq].result[drafter] = (hn_drafter_gain_round){.levels = c->drafter[drafter].levels};
    }
    for (int m = 0; m < rows; m++) {
        hn_drafter_gain_round *r = &c->text[s[c->list[m].seq].seq].result[drafter];
        r->rows++;
        r->gain += c->list[m].p;
        if (c->list[m].depth > r->depth) r->depth = c->list[m].depth;
    }
}

/* Evaluates each drafter that was called alone; its yield is learned when the outcome is known. */
static void drafters_read(hn_controller *c, const hn_plan_seq *s, int n, bool by_history, int sole) {
    for (int d = 0; d < c->n_drafters; d++) {
        const hn_plan_drafter *x = &c->drafter[d];
        if (x->why == HN_NOT_CALLED) continue;
        const double call = hn_plan_level_cost_call(c, d, hn_cost_of_draft(&c->cost, d, x->texts));
        const bool by_levels = x->kind == HN_COST_PER_LEVEL;
        double drafting = x->why == HN_CALLED_CHEAP || isnan(call) ? 0 : call;
        if (by_levels) drafting = x->spent;
        const hn_plan_cut k = hn_plan_trees_cut(c, s, n, d, by_history, drafting);
        if (by_levels) hn_plan_levels_learn(c, s, n, d);
        results_read(c, s, n, d, k.rows);
        if (sole == HN_PLAN_SEVERAL || k.rows == 0) hn_plan_note_alone(c, n, d, k, drafting); /* else it is the choice itself */
    }
}

void hn_controller_prune(hn_controller *c, const hn_plan_seq *s, int n, bool by_history) {
    c->n_report = 0;
    hn_plan_by_level_ends(c);
    if (!hn_plan_curve(c, s, n)) return; /* nothing is known of the machine: any pass is informative */
    const double spent = c->spent;
    const int sole = hn_plan_sole(s, n);
    hn_plan_rates(c, s, n, by_history);
    hn_plan_note_plain(c, n);
    drafters_read(c, s, n, by_history, sole);
    hn_plan_note_uncalled(c, n);
    hn_plan_cut best = hn_plan_trees_cut(c, s, n, HN_PLAN_ANY, by_history, spent);
    c->gain = best.gain;
    const bool measured = hn_plan_plain_due(c) && !c->stepped;
    if (measured) best = hn_plan_best_cut(c, c->list, 0, n, spent);
    c->since_plain = best.rows > 0 ? c->since_plain + 1 : 0;
    hn_plan_note_chosen(c, n, best, sole, by_history, measured);
    c->n_report = n;
    const double more = hn_plan_on_curve(c, c->seconds, n + best.rows) - hn_plan_on_curve(c, c->seconds, n);
    c->each_row = best.rows > 0 ? more / best.rows : 0;
    hn_plan_trials_allow(c, n, best.seconds);
    for (int i = 0; i < n; i++) tree_cut(c, s, i, best);
}
