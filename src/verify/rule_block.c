/* SPDX-License-Identifier: Apache-2.0 */
/* rule_block.c - block verification of one drawn chain (Sun et al. 2403.10444; verification.md 7), the lossless rule that
 * accepts most of a single chain. Row i of the chain has P and Q of the token at depth i + 1.
 *
 *   w_0 = 1,  w_i = min(1, w_{i-1} P(d_i)/Q(d_i))
 *   Z_i = sum (w_i P - Q)+ at row i,  h_i = Z_i / (Z_i + 1 - w_i),  h_K = w_K
 *   accepted: up to the *last* i whose random number falls below h_i; the next token from N((w_A P - Q)+) at row A, from P at row K
 */
#include "verify/verify_private.h"

typedef struct chain {
    int n;                  /* rows 0..n-1 have w > 0 */
    double w[HN_TREE_ROWS]; /* w[i], h[i]: of the prefix of i tokens */
    double h[HN_TREE_ROWS];
} chain;

/* After a token that the target never draws every w is 0, and so is every h. */
static hunch_status weigh(const hn_walk *k, chain *b) {
    b->w[0] = 1;
    b->n = 0;
    while (b->n < k->t->n_rows - 1 && b->w[b->n] > 0) {
        const int i = b->n, c = k->t->first[i];
        hn_residual r;
        hunch_status st = hn_residual_push(k, i, &r);
        if (st) return st;
        const double q = hn_residual_q(k, &r, c), p = hn_residual_p(k, &r, k->t->candidate[c].token);
        const double z = b->w[i] < 1 ? hn_residual_excess(k, &r, b->w[i], 1) : 0;
        b->h[i] = b->w[i] < 1 ? z / (z + 1 - b->w[i]) : 1;
        const double w = q > 0 ? b->w[i] * p / q : 0;
        b->w[i + 1] = w < 1 ? w : 1;
        b->n++;
        hn_residual_pop(k, &r);
    }
    b->h[b->n] = b->w[b->n];
    return HUNCH_OK;
}

hunch_status hn_verify_block(const hn_walk *k) {
    chain b;
    hn_residual r;
    hunch_status st = weigh(k, &b);
    if (st) return st;
    int a = b.n; /* the last success is the first one from the end */
    while (a > 0 && !hn_candidate_accept(k, &k->t->candidate[k->t->first[a - 1]], b.h[a])) a--;
    st = hn_residual_push(k, a, &r);
    if (st) return st;
    if (k->t->first[a] >= 0) {
        hn_residual_q(k, &r, k->t->first[a]);
        hn_residual_subtract(k, &r, b.w[a], 1);
    }
    hn_verdict_draw(k, &r);
    return HUNCH_OK;
}
