/* SPDX-License-Identifier: Apache-2.0 */
/* drafting.c - the trees of a round. Without a controller every open drafter proposes all that it can, level by level, and all of it
 * is verified; with one (`auto`) the controller chooses the drafters, because every drafter's time is measured: those that cost nothing
 * are called first, one that costs passes continues while a level is worth its time, and rows not worth verifying are removed.
 *
 * Every text may propose a whole tree. If all trees together have more rows than the round's passes take, the likeliest are kept, by the
 * controller's rates or, without one, by the drafters' estimates: rows go to the texts that have something to propose. What was drawn is
 * kept whatever it is (verification.md 11), so there a text has its share of the rows that are left before each level is drawn, and more
 * texts than rows draw by turns; the same share limits drafters that pay for each row that they propose. */
#include <string.h>

#include "base/least.h"
#include "engine/drafting.h"
#include "engine/pass_costs.h"
#include "engine/round.h"
#include "plan/tree_rows.h"
#include "sample/constraint.h"

/* The sessions whose trees are made. */
typedef struct drafting {
    hunch_engine *e;
    hunch_session *const *s;
    int n;
    int rows; /* most of all trees together, roots included */
    hn_cost_work beside;         /* in the pass */
    const hn_draft_probe *probe; /* NULL: none */
    bool (*out)[HN_MAX_MODELS];  /* by session and drafter: a further level could not be kept */
    bool ahead;                  /* the round waits once: all its trees are verified by the backend */
} drafting;

/* How deep a tree may go: never past what may still be emitted (the last token is the target's own), nor the context. */
static int depth_limit(const drafting *g, int i) {
    const hunch_session *s = g->s[i];
    const size_t left = s->request.max_new - hn_session_emitted(s) - 1, room = (size_t)g->e->context - s->text.n;
    const size_t d = left < room ? left : room, most = (size_t)(g->probe ? g->probe->depth : s->request.draft_depth);
    return (int)(d < most ? d : most);
}

static bool may_propose(const drafting *g, int i, int drafter) {
    const hn_session_request *r = &g->s[i]->request;
    const hn_drafter *d = &g->e->drafter[drafter];
    return (r->drafters >> drafter & 1) && !(d->needs.for_grammar && (!r->grammar || hn_gives_way(g->e, d, r->rule)));
}

/* The drafters that may not propose for a text: bits of their indices. */
static uint32_t others_of(const drafting *g, int i) {
    uint32_t bits = 0;
    for (int d = 0; d < g->e->n_drafters; d++) bits |= (uint32_t)!may_propose(g, i, d) << d;
    return bits;
}

/* The texts for which a drafter may propose. */
static int texts_of(const drafting *g, int drafter) {
    int n = 0;
    for (int i = 0; i < g->n; i++) n += may_propose(g, i, drafter);
    return n;
}

static int rows_of_trees(const drafting *g) {
    int rows = 0;
    for (int i = 0; i < g->n; i++) rows += g->s[i]->round.tree.n_rows;
    return rows;
}

/* The likeliest rows that the round's passes take, by estimate. */
static bool (*cut_by_estimate(const drafting *g))[HN_TREE_ROWS] {
    const hn_text_lists *l = &g->e->list;
    for (int i = 0; i < g->n; i++) l->tree[i] = &g->s[i]->round.tree;
    hn_plan_cut_by_estimate(l->tree, g->n, g->rows - g->n, g->e->cut, l->keep);
    return l->keep;
}

/* The drafter has rows at this depth of the tree, none of which is kept: those after them are less likely, and cannot be. */
static bool all_cut(const hn_tree *t, const bool *keep, int drafter, int depth) {
    bool any = false;
    for (int k = 0; k < t->n_candidates; k++) {
        const hn_candidate *c = &t->candidate[k];
        if (c->drafter != drafter || t->depth[c->child] != depth) continue;
        if (keep[c->child]) return false;
        any = true;
    }
    return any;
}

/* Leaves sessions out of the further levels of a drafter that pays for each level, if these could not be kept. */
static void leave_out(drafting *g, const hn_drafter *d, int level) {
    if (level == 0 || d->needs.cost != HN_COST_PER_LEVEL || rows_of_trees(g) <= g->rows) return;
    bool (*keep)[HN_TREE_ROWS] = cut_by_estimate(g);
    for (int i = 0; i < g->n; i++) g->out[i][d->index] |= all_cut(&g->s[i]->round.tree, keep[i], d->index, level);
}

static bool draws(const drafting *g, int i, const hn_drafter *d) {
    return d->needs.has_dist && hn_rule_wants_dist(g->s[i]->request.rule);
}

/* Rows that this drafter may add. share: of the rows that are left. */
static int budget_of(const drafting *g, int i, const hn_drafter *d, int share) {
    const hn_tree *t = &g->s[i]->round.tree;
    const int room = t->max_rows - t->n_rows;
    if (d->needs.stays || draws(g, i, d)) return hn_least(room, share);
    return d->needs.cost == HN_COST_PER_LEVEL ? hn_least(room, hn_most(share, 1)) : room;
}

/* The k-th of m texts has so many of the rows that are left: what the others' equal parts leave over goes round, so that of more texts than
 * rows each draws in its turn. */
static int share_of(const hunch_engine *e, int left, int k, int m) {
    return left / m + ((k + m - e->draw_turn % m) % m < left % m);
}

/* Levels that the drafter is asked for. */
static int levels_of(const drafting *g, int i, int drafter) {
    const int most = hn_least(depth_limit(g, i), g->e->drafter[drafter].needs.max_depth);
    return g->e->controller && !g->probe ? hn_controller_levels(g->e->controller, g->s[i]->id, drafter, most) : most;
}

static hn_propose proposal_of(const drafting *g, int i, int drafter, int budget, bool by_levels) {
    hunch_session *s = g->s[i];
    hn_propose p = {.seq = s->id,
                    .text = {s->text.token, (int)s->text.n, (int)s->text.n_prompt},
                    .tree = &s->round.tree,
                    .budget = budget,
                    .depth = levels_of(g, i, drafter),
                    .by_levels = by_levels,
                    .ahead = g->ahead,
                    .sampler = &s->sampler,
                    .certainty = s->request.on_round || g->probe,
                    .drawn = hn_rule_wants_dist(s->request.rule)};
    if (!g->probe) return p;
    p.chain = g->probe->chain;
    p.on_logits = g->probe->on_logits;
    p.on_logits_ctx = g->probe->on_logits_ctx;
    p.confidence = g->probe->confidence;
    return p;
}

/* What the model reads of its file for the newest rows is fetched while drafters go on. */
static void expect_rows(hunch_session *s) {
    hn_session_round *r = &s->round;
    for (; r->expected < r->tree.n_rows; r->expected++)
        if (r->tree.token[r->expected] != HN_TOKEN_LATER) hn_pass_expect(s->engine->runner, r->tree.token[r->expected]);
}

/* What the drafter's calls of this round took so far. */
static double *calls_s(const drafting *g, int drafter) {
    return &g->e->drafting.drafter[drafter].calls_s;
}

/* One level of every tree by one drafter. Sessions at their depth limit are left out, and those that it may not propose for. */
static int propose_level(drafting *g, int drafter, int level, bool by_levels) {
    hn_drafter *d = &g->e->drafter[drafter];
    hn_propose *p = g->e->list.propose;
    int *of = g->e->list.proposing, m = 0;
    const double start = hn_now();
    if (level >= d->needs.max_depth) return 0;
    leave_out(g, d, level);
    for (int i = 0; i < g->n; i++)
        if (may_propose(g, i, drafter) && level < depth_limit(g, i) && !g->out[i][drafter]) of[m++] = i;
    const int left = hn_most(g->rows - rows_of_trees(g), 0);
    int n = 0;
    for (int k = 0; k < m; k++) {
        const int budget = budget_of(g, of[k], d, draws(g, of[k], d) ? share_of(g->e, left, k, m) : left / m);
        g->out[of[k]][drafter] |= budget == 0 && draws(g, of[k], d); /* it has no turn in this round */
        if (!g->out[of[k]][drafter]) p[n++] = proposal_of(g, of[k], drafter, budget, by_levels);
    }
    if (m > 0) g->e->draw_turn = (g->e->draw_turn + left % m) % HN_MAX_TEXTS;
    const int added = n > 0 ? d->ops->propose(d, p, n, level) : 0;
    for (int i = 0; added > 0 && i < g->n; i++) expect_rows(g->s[i]);
    *calls_s(g, drafter) += hn_now() - start;
    return added;
}

static void draft_everything(drafting *g) {
    int added = 1;
    for (int level = 0; added > 0 && level < HUNCH_MAX_DEPTH; level++) {
        added = 0;
        for (int d = 0; d < g->e->n_drafters; d++) added += propose_level(g, d, level, false);
    }
    if (rows_of_trees(g) <= g->rows) return;
    bool (*keep)[HN_TREE_ROWS] = cut_by_estimate(g);
    for (int i = 0; i < g->n; i++) hn_tree_keep(&g->s[i]->round.tree, keep[i], NULL);
}

enum {
    ONE_ROUND = 8
}; /* about the most rows that a round adds: a drafter that lacks more of a text was not called for a while */

/* Rows that the drafter has to read before it can draft, except those of one round. */
static int rows_behind(const drafting *g, int drafter) {
    const hn_drafter *d = &g->e->drafter[drafter];
    int behind = 0;
    for (int i = 0; d->ops->valid_rows && i < g->n; i++) {
        if (!may_propose(g, i, drafter)) continue;
        const int missing = (int)g->s[i]->text.n - d->ops->valid_rows(d, g->s[i]->id);
        behind += missing > ONE_ROUND ? missing : 0;
    }
    return behind;
}

/* The time that a drafter's levels took; ahead, of those with passes, when these are over: in the next round. */
static void took(const drafting *g, int d, int level, int added, double seconds) {
    const hn_drafter *x = &g->e->drafter[d];
    hn_late_levels *late = &g->e->late[d];
    if (!g->ahead || !x->ops->pass_s || added == 0) {
        hn_controller_took(g->e->controller, d, texts_of(g, d), level, added, seconds);
        return;
    }
    if (late->n == 0) late->texts = texts_of(g, d);
    late->added[late->n] = added;
    late->seconds[late->n++] = seconds;
}

/* Of the round before: each level has an equal part of the passes. */
static void tell_late(hunch_engine *e) {
    for (int d = 0; d < e->n_drafters; d++) {
        hn_late_levels *late = &e->late[d];
        const double passes = e->drafter[d].ops->pass_s ? e->drafter[d].ops->pass_s(&e->drafter[d]) : 0;
        for (int k = 0; k < late->n; k++)
            hn_controller_took(e->controller, d, late->texts, k, late->added[k], late->seconds[k] + (passes - late->passes) / late->n);
        late->n = 0;
        late->passes = passes;
    }
}

/* All levels of one drafter's round. */
static void draft_at_once(drafting *g, int d) {
    int added = 1, all = 0;
    for (int level = 0; added > 0 && level < HUNCH_MAX_DEPTH; level++)
        all += added = propose_level(g, d, level, false);
    took(g, d, 0, all, *calls_s(g, d));
}

/* A drafter's levels, while they are worth their time. */
static void draft_by_levels(drafting *g, int d, const hn_plan_seq *plan, bool by_history) {
    hn_controller *c = g->e->controller;
    int added = 1;
    for (int level = 0; added > 0 && level < HUNCH_MAX_DEPTH; level++) {
        if (!hn_controller_go_on(c, plan, g->n, d, level, by_history)) return;
        const double before = *calls_s(g, d);
        added = propose_level(g, d, level, true);
        took(g, d, level, added, *calls_s(g, d) - before);
    }
}

static void draft_controlled(drafting *g) {
    hunch_engine *e = g->e;
    hn_plan_seq *plan = e->list.plan;
    int behind[HN_MAX_MODELS], d;
    bool by_history = false;
    for (int i = 0; i < g->n; i++) {
        const int id = g->s[i]->id, rows = hn_cache_committed(e->cache, id, 0);
        plan[i] = (hn_plan_seq){id, rows, &g->s[i]->round.tree, depth_limit(g, i), hn_reads(e, rows),
                                others_of(g, i)};
        by_history |= hn_rule_wants_dist(g->s[i]->request.rule);
    }
    for (int k = 0; k < e->n_drafters; k++) behind[k] = rows_behind(g, k);
    if (e->model->target.backend->one_wait) tell_late(e);
    hn_controller_start(e->controller, plan, g->n, &(hn_plan_round){g->rows, behind, g->beside});
    while ((d = hn_controller_choose(e->controller, plan, g->n, by_history)) >= 0) {
        if (e->drafter[d].needs.cost == HN_COST_PER_LEVEL)
            draft_by_levels(g, d, plan, by_history);
        else
            draft_at_once(g, d);
    }
    hn_controller_prune(e->controller, plan, g->n, by_history);
}

/* Begins or ends the times of a round: seconds of passes are those after it less those before. */
static void note_passes(const drafting *g, bool end) {
    hn_drafting_times *t = &g->e->drafting;
    for (int d = 0; d < g->e->n_drafters; d++) {
        const double so_far = g->e->drafter[d].ops->pass_s ? g->e->drafter[d].ops->pass_s(&g->e->drafter[d]) : 0;
        t->drafter[d].pass_s = so_far - t->drafter[d].pass_s;
        if (end) t->pass_s += t->drafter[d].pass_s;
    }
}

/* Rows of the trees of n texts, roots included: those of one tree, or so many beside the roots if these take more than half of them. */
static int rows_of_round(int n) {
    return n <= HN_TREE_ROWS / 2 ? HN_TREE_ROWS : n + HN_TREE_ROWS;
}

/* The root alone: the newest token, whose text may have a grammar. */
static void tree_start(hunch_session *s) {
    hn_tree *t = &s->round.tree;
    hn_tree_reset(t, s->text.token[s->text.n - 1], hn_least(HN_TREE_ROWS, 1 + s->request.draft_rows));
    if (!hn_sampler_matcher(&s->sampler)) return;
    const hn_history h = {s->text.token, (int)s->text.n, (int)s->text.n_prompt, NULL, 0};
    hn_tree_constrain(t, hn_sampler_matcher(&s->sampler), hn_sampler_state(&s->sampler, &h));
}

void hn_draft_trees(hunch_engine *e, hunch_session *const *s, int n, const hn_cost_work *beside, const hn_draft_probe *probe) {
    drafting g = {.e = e, .s = s, .n = n, .rows = rows_of_round(n), .beside = beside ? *beside : (hn_cost_work){0}, .probe = probe,
                  .out = e->list.out};
    const double start = hn_now();
    e->drafting = (hn_drafting_times){.texts = n};
    g.ahead = e->model->target.backend->one_wait && !probe;
    for (int i = 0; i < n; i++) {
        tree_start(s[i]);
        g.ahead = g.ahead && hn_session_is_matched(s[i]);
    }
    if (e->n_drafters == 0) return; /* the pass follows at once */
    for (int d = 0; d < e->n_drafters; d++) e->drafting.drafter[d].texts = texts_of(&g, d);
    note_passes(&g, false);
    for (int i = 0; i < n; i++) {
        s[i]->round.expected = 0;
        expect_rows(s[i]);
    }
    memset(g.out, 0, (size_t)n * sizeof *g.out);
    if (e->controller)
        draft_controlled(&g);
    else
        draft_everything(&g);
    hn_note_failures(e);
    note_passes(&g, true);
    e->drafting.all_s = hn_now() - start;
    e->stats.draft_s += e->drafting.all_s;
    const double share = e->drafting.all_s / n, passes = e->drafting.pass_s / n;
    for (int i = 0; i < n; i++) {
        s[i]->stats.draft_s += share;
        s[i]->stats.draft_pass_s += passes;
        s[i]->stats.decode_s += share;
    }
}
