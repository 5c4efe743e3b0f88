/* SPDX-License-Identifier: Apache-2.0 */
/* lossy.c - see lossy.h (verification.md 5).
 *
 *   lenience   candidates in order, each accepted with min(1, p/(L q)), the next token from the residual N((p - L q)+);
 *              at temperature 0 a child is good if it is at least L times as likely as the best token
 *   typical    a child is good if P(x) > min(epsilon, alpha e^-H(P)) (2401.10774); at temperature 0 it is greedy
 *   top-m      a child is good if it is among the M likeliest, ties to the lowest id
 *
 * With rules of good children the longest path of good ones is accepted, of equally long ones the likeliest, and the next
 * token is drawn from the distribution after it. At temperature 0, where there is no distribution, tokens are judged by the softmax of the
 * processed logits, and the next token is the best.
 */
#include "verify/lossy.h"

#include <math.h>

bool hn_rule_is_lossy(hn_rule rule) {
    return rule >= HN_RULE_LENIENCE;
}

hunch_status hn_lossy_choose(const hunch_lossy *l, double temperature, hn_rule *out, hunch_error *err) {
    switch (l->rule) {
    case HUNCH_LOSSY_LENIENCE:
        *out = HN_RULE_LENIENCE;
        if (l->a > 0 && l->a <= 1) return HUNCH_OK;
        return hn_fail(err, HUNCH_USAGE, "lossy lenience %g, expected a number above 0, up to 1", l->a);
    case HUNCH_LOSSY_TYPICAL:
        *out = temperature == 0 ? HN_RULE_GREEDY : HN_RULE_TYPICAL;
        if (l->a > 0 && l->a <= 1 && l->b > 0 && l->b <= 1) return HUNCH_OK;
        return hn_fail(err, HUNCH_USAGE, "lossy typical %g,%g, expected two numbers above 0, up to 1", l->a, l->b);
    case HUNCH_LOSSY_TOP_M:
        *out = HN_RULE_TOP_M;
        if (l->a >= 1 && l->a <= 1e6 && l->a == floor(l->a)) return HUNCH_OK;
        return hn_fail(err, HUNCH_USAGE, "lossy top-m %g, expected a whole number from 1 to 1000000", l->a);
    default: return hn_fail(err, HUNCH_USAGE, "lossy rule %d, expected lenience, typical or top-m", (int)l->rule);
    }
}

/* ---- lenience with a distribution ----------------------------------------------------------------------------------------- */

/* True if candidate c is accepted; else r is the residual. One-hot candidates have q = 1. */
static bool accept_lenient(const hn_walk *k, hn_residual *r, int c) {
    const hn_candidate *x = &k->t->candidate[c];
    const double q = x->q ? hn_residual_q(k, r, c) : 1, p = hn_residual_p(k, r, x->token);
    if (q > 0 && hn_candidate_accept(k, x, p / (k->v->a * q))) return true;
    if (x->q)
        hn_residual_subtract(k, r, 1, k->v->a);
    else
        hn_residual_exclude(k, r, &x->child, 1); /* p < L: its residual is 0 */
    return false;
}

static hunch_status walk_lenient(const hn_walk *k) {
    for (int row = 0;;) {
        hn_residual r;
        hunch_status st = hn_residual_push(k, row, &r);
        if (st) return st;
        int c = k->t->first[row];
        while (c >= 0 && !accept_lenient(k, &r, c)) c = k->t->candidate[c].next;
        if (c < 0) {
            hn_verdict_draw(k, &r);
            return HUNCH_OK;
        }
        hn_residual_pop(k, &r);
        row = k->t->candidate[c].child;
    }
}

/* ---- good children ----------------------------------------------------------------------------------------------- */

/* The distribution that a row's children are judged by, as a list; at temperature 0 the softmax of the processed logits. */
static hunch_status push_judged(const hn_walk *k, int row, hn_residual *r) {
    const bool greedy = k->v->sampler->params.temperature == 0;
    const hunch_status st = greedy ? hn_residual_push_softmax(k, row, r) : hn_residual_push(k, row, r);
    if (!st) hn_residual_keep(k, r);
    return st;
}

static double entropy(const double *p, int n, double sum) {
    double h = 0;
    for (int i = 0; i < n; i++) h -= p[i] / sum * log(p[i] / sum + 1e-5);
    return h;
}

/* The number of tokens of the support before this one. */
static int rank_of(const hn_walk *k, const hn_residual *r, int32_t token) {
    const double *p = k->w->p + r->at;
    const int at = hn_residual_find(k, r, token);
    int rank = 0;
    for (int i = 0; i < r->n; i++) rank += p[i] > p[at] || (p[i] == p[at] && i < at);
    return rank;
}

static bool is_good(const hn_walk *k, hn_residual *r, int32_t token, double least) {
    const double p = hn_residual_p(k, r, token);
    if (!(p > 0)) return false;
    if (k->v->rule == HN_RULE_TOP_M) return rank_of(k, r, token) < k->v->a;
    return k->v->rule == HN_RULE_TYPICAL ? p > least : p >= least;
}

/* The probability that a good child of the row needs. */
static double threshold(const hn_walk *k, const hn_residual *r) {
    const double *p = k->w->p + r->at;
    double best = 0;
    if (k->v->rule == HN_RULE_TYPICAL) return fmin(k->v->a, k->v->b * exp(-entropy(p, r->n, r->p_sum)));
    for (int i = 0; i < r->n; i++) best = p[i] > best ? p[i] : best;
    return k->v->a * best / r->p_sum;
}

/* Marks the good children of a row with the log-likelihood of their paths. */
static hunch_status mark_children(const hn_walk *k, int row, double *score) {
    const hn_tree *t = k->t;
    hn_residual r;
    if (t->first[row] < 0) return HUNCH_OK;
    hunch_status st = push_judged(k, row, &r);
    if (st) return st;
    const double least = threshold(k, &r);
    for (int c = t->first[row]; c >= 0; c = t->candidate[c].next) {
        const int32_t token = t->candidate[c].token;
        if (is_good(k, &r, token, least)) score[t->candidate[c].child] = score[row] + log(hn_residual_p(k, &r, token));
    }
    hn_residual_pop(k, &r);
    return HUNCH_OK;
}

static hunch_status longest_good_path(const hn_walk *k) {
    const hn_tree *t = k->t;
    double score[HN_TREE_ROWS];
    int best = 0;
    for (int row = 0; row < t->n_rows; row++) score[row] = row ? -INFINITY : 0;
    for (int row = 0; row < t->n_rows; row++) { /* parents precede children */
        if (score[row] == -INFINITY) continue;
        if (t->depth[row] > t->depth[best] || (t->depth[row] == t->depth[best] && score[row] > score[best])) best = row;
        hunch_status st = mark_children(k, row, score);
        if (st) return st;
    }
    if (k->v->sampler->params.temperature == 0) {
        hn_verdict_path(k, best);
        return hn_row_draw(k, best, &k->out->next);
    }
    hn_residual r;
    hunch_status st = hn_residual_push(k, best, &r);
    if (!st) hn_verdict_draw(k, &r);
    return st;
}

hunch_status hn_verify_lossy(const hn_walk *k) {
    const bool dist = k->v->rule == HN_RULE_LENIENCE && k->v->sampler->params.temperature > 0;
    return dist ? walk_lenient(k) : longest_good_path(k);
}
