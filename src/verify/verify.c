/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - the choice of a rule, the walk of greedy and match, and the verdicts of all rules. The other rules:
 * rule_ratio.c, rule_block.c, rule_traversal.c, lossy.c. The distribution of a row: sample/sampler.c.
 *
 * Under greedy and match the token after a row is drawn from that row's logits with the noise of its position alone, so it
 * is the token that plain decoding emits there; the tree only decides whether the row of that token was evaluated in the
 * same pass. The other rules use the noise of the round (contract C3). A tree of the root alone is plain decoding under
 * every rule: the same text as without drafters.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sample/constraint.h"
#include "verify/lossy.h"
#include "verify/verify_private.h"

/* ---- choice of a rule -------------------------------------------------------------------------------------------- */

hunch_status hn_rule_choose(hunch_verify option, const hunch_lossy *lossy, const hunch_sampling *p, hn_rule *out,
                            hunch_error *err) {
    static const hn_rule rules[] = {
        [HUNCH_VERIFY_DEFAULT] = HN_RULE_MATCH, [HUNCH_VERIFY_GREEDY] = HN_RULE_GREEDY,
        [HUNCH_VERIFY_MATCH] = HN_RULE_MATCH,   [HUNCH_VERIFY_RATIO] = HN_RULE_RATIO,
        [HUNCH_VERIFY_BLOCK] = HN_RULE_BLOCK,   [HUNCH_VERIFY_TRAVERSAL] = HN_RULE_TRAVERSAL};
    if ((unsigned)option >= sizeof rules / sizeof *rules)
        return hn_fail(err, HUNCH_USAGE, "verification %d, expected greedy, match, ratio, block or traversal",
                       (int)option);
    if (lossy && lossy->rule != HUNCH_LOSSLESS) {
        if (option != HUNCH_VERIFY_DEFAULT)
            return hn_fail(err, HUNCH_USAGE, "verification '%s' together with a lossy rule, expected one of them",
                           hn_rule_name(rules[option]));
        return hn_lossy_choose(lossy, p->temperature, out, err);
    }
    if (option == HUNCH_VERIFY_GREEDY && p->temperature != 0)
        return hn_fail(err, HUNCH_USAGE,
                       "verification 'greedy' at temperature %g, expected temperature 0 or another rule",
                       p->temperature);
    *out = p->temperature == 0 ? HN_RULE_GREEDY : rules[option];
    return HUNCH_OK;
}

const char *hn_rule_name(hn_rule rule) {
    static const char *const names[] = {"greedy",    "match",    "ratio",   "block",
                                        "traversal", "lenience", "typical", "top-m"};
    return names[rule];
}

bool hn_rule_wants_dist(hn_rule rule) {
    return rule == HN_RULE_RATIO || rule == HN_RULE_BLOCK || rule == HN_RULE_TRAVERSAL || rule == HN_RULE_LENIENCE;
}

static const char *rule_needs(hn_rule rule) {
    switch (rule) {
    case HN_RULE_RATIO: return "one drafter with a distribution alone, or any number without";
    case HN_RULE_BLOCK: return "one drafter with a distribution, alone, that drafts chains";
    default: return "one drafter with a distribution, alone";
    }
}

hunch_status hn_rule_check(hn_rule rule, const hn_rule_drafter *d, int n, hunch_error *err) {
    bool any_dist = false, fits = true;
    char names[600] = "";
    for (int i = 0; i < n; i++) {
        any_dist |= d[i].has_dist;
        const size_t len = strlen(names);
        snprintf(names + len, sizeof names - len, "%s'%s'%s", i ? " + " : "", d[i].name,
                 d[i].has_dist ? d[i].branches ? " (branches)" : "" : " (no distribution)");
    }
    if (n == 0 || rule == HN_RULE_GREEDY || rule == HN_RULE_MATCH || hn_rule_is_lossy(rule)) return HUNCH_OK;
    if (rule == HN_RULE_RATIO)
        fits = n == 1 || !any_dist;
    else
        fits = n == 1 && any_dist && (rule == HN_RULE_TRAVERSAL || !d[0].branches);
    if (fits) return HUNCH_OK;
    return hn_fail(err, HUNCH_USAGE, "verification '%s' cannot verify drafts of %s, expected %s", hn_rule_name(rule),
                   names, rule_needs(rule));
}

/* True if all candidates of a row were drawn from one distribution, in one way, or none was drawn. */
static bool row_is_pure(const hn_tree *t, int row) {
    if (t->first[row] < 0) return true;
    const hn_candidate *first = &t->candidate[t->first[row]];
    for (int c = first->next; c >= 0; c = t->candidate[c].next) {
        const hn_candidate *x = &t->candidate[c];
        if (x->q != first->q || (x->q && (x->drafter != first->drafter || x->without != first->without))) return false;
    }
    return true;
}

bool hn_rule_fits(hn_rule rule, const hn_tree *t) {
    if (rule == HN_RULE_GREEDY || rule == HN_RULE_MATCH || hn_rule_is_lossy(rule)) return true;
    for (int row = 0; row < t->n_rows; row++)
        if (!row_is_pure(t, row)) return false;
    for (int c = 0; c < t->n_candidates && rule != HN_RULE_RATIO; c++)
        if (!t->candidate[c].q || t->candidate[c].drafter != t->candidate[0].drafter) return false;
    return rule != HN_RULE_BLOCK || (hn_tree_is_chain(t) && t->n_candidates == t->n_rows - 1);
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

/* The drafter that is credited with a row of the path. */
static int16_t drafter_of_row(const hn_tree *t, int child) {
    const hn_candidate *best = NULL;
    for (int c = t->first[t->parent[child]]; c >= 0; c = t->candidate[c].next) {
        const hn_candidate *k = &t->candidate[c];
        if (k->child != child) continue;
        if (!best || k->estimate > best->estimate || (k->estimate == best->estimate && k->drafter < best->drafter))
            best = k;
    }
    assert(best);
    return best->drafter;
}

static void path_to(hn_verdict *out, const hn_tree *t, int row) {
    out->n_accepted = t->depth[row];
    out->next_row = (int16_t)row;
    for (int r = row; r > 0; r = t->parent[r]) {
        out->path[t->depth[r] - 1] = (int16_t)r;
        out->drafter_of[t->depth[r] - 1] = drafter_of_row(t, r);
    }
}

void hn_verdict_path(const hn_walk *k, int row) {
    path_to(k->out, k->t, row);
}

void hn_verdict_at(hn_verdict *out, const hn_tree *t, int row, int32_t next) {
    path_to(out, t, row);
    out->next = next;
}

void hn_verdict_draw(const hn_walk *k, hn_residual *r) {
    hn_verdict_path(k, r->row);
    k->out->next = hn_residual_draw(k, r);
}

/* ---- greedy and match -------------------------------------------------------------------------------------------- */

hunch_status hn_fail_no_token(const hn_sampler *s, int position, hunch_error *err) {
    if (hn_sampler_is_stuck(s))
        return hn_fail(err, HUNCH_NO_MEMORY, "the grammar has too many states at position %d: expected a simpler one", position);
    if (hn_sampler_matcher(s))
        return hn_fail(err, HUNCH_FAILED, "no token that the grammar allows can be drawn at position %d", position);
    if (s->constraint)
        return hn_fail(err, HUNCH_FAILED, "no token that the budget of thinking allows can be drawn at position %d", position);
    return hn_fail(err, HUNCH_FAILED, "no token can be drawn at position %d: every logit is NaN or -inf", position);
}

hunch_status hn_row_draw(const hn_walk *k, int row, int32_t *token) {
    const hn_logits_source *src = &k->v->rows;
    int32_t path[HN_TREE_ROWS];
    const hn_history h = hn_row_history(k, row, path);
    const int32_t hint = src->greedy ? src->greedy(src->ctx, row) : -1;
    const float *logits = src->logits(src->ctx, row);
    *token = logits ? hn_sampler_draw(k->v->sampler, logits, &h, hint) : hint;
    if (*token >= 0) return HUNCH_OK;
    return hn_fail_no_token(k->v->sampler, h.n + h.n_path, k->err);
}

static hunch_status walk_match(const hn_walk *k) {
    for (int row = 0;;) {
        int32_t token;
        hunch_status st = hn_row_draw(k, row, &token);
        if (st && row > 0 && hn_sampler_is_stuck(k->v->sampler)) { /* what was drawn before stays, so drafts do not shorten the text */
            hn_verdict_path(k, k->t->parent[row]);
            k->out->next = k->t->token[row];
            return HUNCH_OK;
        }
        if (st) return st;
        const int child = hn_tree_child(k->t, row, token);
        if (child < 0) {
            hn_verdict_path(k, row);
            k->out->next = token;
            return HUNCH_OK;
        }
        row = child;
    }
}

hunch_status hn_verify_tree(hn_verifier *w, const hn_tree *t, const hn_verification *v, hn_verdict *out,
                            hunch_error *err) {
    assert(hn_rule_fits(v->rule, t) && v->committed.n > 0);
    assert(v->rule != HN_RULE_GREEDY || v->sampler->params.temperature == 0);
    const hn_walk k = {w, t, v, out, err};
    w->used = 0;
    if (t->n_candidates == 0) return walk_match(&k);
    switch (v->rule) {
    case HN_RULE_RATIO: return hn_verify_ratio(&k);
    case HN_RULE_BLOCK: return hn_verify_block(&k);
    case HN_RULE_TRAVERSAL: return hn_verify_traversal(&k);
    case HN_RULE_LENIENCE:
    case HN_RULE_TYPICAL:
    case HN_RULE_TOP_M: return hn_verify_lossy(&k);
    default: return walk_match(&k);
    }
}
