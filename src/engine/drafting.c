/* SPDX-License-Identifier: Apache-2.0 */
/* drafting.c - the trees of a round. Without a controller every open drafter proposes all that it can, level by level, and all of it
 * is verified; with one (`auto`) the controller chooses the drafters, because every drafter's time is measured: those that cost nothing
 * are called first, one that costs passes continues while a level is worth its time, and rows not worth verifying are removed. */
#include "engine/engine.h"

/* How deep a tree may go: never past what may still be emitted (the last token is the target's own), nor the context. */
static int depth_limit(const hunch_session *s) {
    const size_t left = s->request.max_new - hn_session_emitted(s) - 1, room = (size_t)s->engine->context - s->text.n;
    const size_t d = left < room ? left : room;
    return d < (size_t)s->depth_cap ? (int)d : s->depth_cap;
}

static void show_logits(void *ctx, int level, const float *logits) {
    const hunch_session *s = ctx;
    s->on_draft(s->on_draft_user, level, logits, s->engine->model->target.arch.vocab);
}

/* One level of every tree by one drafter. Sessions at their depth limit are left out. */
static int propose_level(hn_drafter *d, hunch_session *const *s, int n, int level, bool by_levels) {
    hn_propose p[HN_MAX_TEXTS];
    int m = 0;
    if (level >= d->needs.max_depth) return 0;
    for (int i = 0; i < n; i++) {
        if (level >= depth_limit(s[i])) continue;
        p[m++] = (hn_propose){.seq = s[i]->id,
                              .text = {s[i]->text.token, (int)s[i]->text.n, (int)s[i]->text.n_prompt},
                              .tree = &s[i]->round.tree,
                              .budget = s[i]->round.tree.max_rows - s[i]->round.tree.n_rows,
                              .depth = depth_limit(s[i]),
                              .by_levels = by_levels,
                              .chain = s[i]->draft_chain,
                              .sampler = &s[i]->sampler,
                              .drawn = hn_rule_wants_dist(s[i]->request.rule),
                              .on_logits = s[i]->on_draft ? show_logits : NULL,
                              .on_logits_ctx = s[i],
                              .confidence = s[i]->draft_chain ? s[i]->draft_confidence : NULL};
    }
    return m > 0 ? d->ops->propose(d, p, m, level) : 0;
}

static void draft_everything(hunch_engine *e, hunch_session *const *s, int n) {
    int added = 1;
    for (int level = 0; added > 0 && level < HUNCH_MAX_DEPTH; level++) {
        added = 0;
        for (int d = 0; d < e->n_drafters; d++) added += propose_level(&e->drafter[d], s, n, level, false);
    }
}

enum {
    ONE_ROUND = 8
}; /* about the most rows that a round adds: a drafter that lacks more of a text was not called for a while */

/* Rows that the drafter has to read before it can draft, except those of one round. */
static int rows_behind(const hn_drafter *d, hunch_session *const *s, int n) {
    int behind = 0;
    for (int i = 0; d->ops->valid_rows && i < n; i++) {
        const int missing = (int)s[i]->text.n - d->ops->valid_rows(d, s[i]->id);
        behind += missing > ONE_ROUND ? missing : 0;
    }
    return behind;
}

/* All levels of one drafter's round. */
static void draft_at_once(hunch_engine *e, hunch_session *const *s, int n, int d) {
    const double start = hn_now();
    int added = 1, all = 0;
    for (int level = 0; added > 0 && level < HUNCH_MAX_DEPTH; level++)
        all += added = propose_level(&e->drafter[d], s, n, level, false);
    hn_controller_took(e->controller, d, n, 0, all, hn_now() - start);
}

/* A drafter's levels, while they are worth their time. */
static void draft_by_levels(hunch_engine *e, hunch_session *const *s, int n, int d, const hn_plan_seq *plan,
                            bool by_history) {
    int added = 1;
    for (int level = 0; added > 0 && level < HUNCH_MAX_DEPTH; level++) {
        if (!hn_controller_go_on(e->controller, plan, n, d, level, by_history)) return;
        const double start = hn_now();
        added = propose_level(&e->drafter[d], s, n, level, true);
        hn_controller_took(e->controller, d, n, level, added, hn_now() - start);
    }
}

static void draft_controlled(hunch_engine *e, hunch_session *const *s, int n) {
    hn_plan_seq plan[HN_MAX_TEXTS];
    int behind[HN_MAX_MODELS], d;
    bool by_history = false;
    for (int i = 0; i < n; i++) {
        plan[i] = (hn_plan_seq){s[i]->id, hn_cache_committed(e->cache, s[i]->id, 0), &s[i]->round.tree, depth_limit(s[i])};
        by_history |= hn_rule_wants_dist(s[i]->request.rule);
    }
    for (int k = 0; k < e->n_drafters; k++) behind[k] = rows_behind(&e->drafter[k], s, n);
    hn_controller_start(e->controller, plan, n, behind);
    while ((d = hn_controller_choose(e->controller, plan, n, by_history)) >= 0) {
        if (e->drafter[d].needs.cost == HN_COST_PER_LEVEL)
            draft_by_levels(e, s, n, d, plan, by_history);
        else
            draft_at_once(e, s, n, d);
    }
    hn_controller_prune(e->controller, plan, n, by_history);
}

/* Seconds of the drafters' own passes so far. */
static double draft_passes(const hunch_engine *e) {
    double seconds = 0;
    for (int d = 0; d < e->n_drafters; d++)
        if (e->drafter[d].ops->pass_s) seconds += e->drafter[d].ops->pass_s(&e->drafter[d]);
    return seconds;
}

/* Rows for each of n trees: all of them go into one pass, with logits. */
static int tree_rows(int n) {
    _Static_assert(HN_MAX_TEXTS <= HN_LOGIT_ROWS, "each has its root there at least");
    const int share = HN_LOGIT_ROWS / n;
    return share < HN_TREE_ROWS ? share : HN_TREE_ROWS;
}

void hn_draft_trees(hunch_engine *e, hunch_session *const *s, int n) {
    const double start = hn_now(), before = draft_passes(e);
    for (int i = 0; i < n; i++) hn_tree_reset(&s[i]->round.tree, s[i]->text.token[s[i]->text.n - 1], tree_rows(n));
    if (e->n_drafters == 0) return;
    if (e->controller)
        draft_controlled(e, s, n);
    else
        draft_everything(e, s, n);
    hn_note_failures(e);
    const double share = (hn_now() - start) / n, passes = (draft_passes(e) - before) / n;
    for (int i = 0; i < n; i++) {
        s[i]->round.draft_s = share;
        s[i]->round.draft_pass_s = passes;
        s[i]->stats.draft_s += share;
        s[i]->stats.draft_pass_s += passes;
        s[i]->stats.decode_s += share;
    }
}
