/* SPDX-License-Identifier: Apache-2.0 */
/* rule_ratio.c - top-down verification: the candidates of a row are tried in the order in which they were drawn, each with
 * min(1, p/q), p being the residual after the rejected ones before it (verification.md 2, 6.1, 6.2, 8.3). One-hot rows use
 * the point-mass rule (6.3).
 *
 * Candidates drawn with replacement may be equal and then share a row. This needs no special case: the residual of a
 * rejected token is 0, so its second candidate is rejected too.
 */
#include "verify/verify_private.h"

/* The row of the first accepted candidate, or -1 and the residual in r. */
static int try_drawn(const hn_walk *k, hn_residual *r) {
    for (int c = k->t->first[r->row]; c >= 0; c = k->t->candidate[c].next) {
        const hn_candidate *x = &k->t->candidate[c];
        const double q = hn_residual_q(k, r, c), p = hn_residual_p(k, r, x->token);
        if (q > 0 && hn_candidate_accept(k, x, p / q)) return x->child;
        hn_residual_subtract(k, r, 1, 1);
    }
    return -1;
}

/* One random number for the row selects a child with the child's own probability. The same distribution as drawing the target's token and
 * following it. */
static int try_points(const hn_walk *k, hn_residual *r) {
    const hn_candidate *first = &k->t->candidate[k->t->first[r->row]];
    int16_t child[HN_TREE_ROWS];
    bool seen[HN_TREE_ROWS] = {false};
    double below = 0;
    int n = 0;
    for (int c = k->t->first[r->row]; c >= 0; c = k->t->candidate[c].next) {
        const hn_candidate *x = &k->t->candidate[c];
        if (seen[x->child]) continue;
        seen[x->child] = true;
        child[n++] = x->child;
        below += hn_residual_p(k, r, x->token);
        if (hn_candidate_accept(k, first, below)) return x->child;
    }
    hn_residual_exclude(k, r, child, n);
    return -1;
}

hunch_status hn_verify_ratio(const hn_walk *k) {
    const hn_tree *t = k->t;
    for (int row = 0;;) {
        hn_residual r;
        hunch_status st = hn_residual_push(k, row, &r);
        if (st) return st;
        const int first = t->first[row];
        int child = -1;
        if (first >= 0) child = t->candidate[first].q ? try_drawn(k, &r) : try_points(k, &r);
        if (child < 0) {
            hn_verdict_draw(k, &r);
            return HUNCH_OK;
        }
        hn_residual_pop(k, &r);
        row = child;
    }
}
