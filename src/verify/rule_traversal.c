/* SPDX-License-Identifier: Apache-2.0 */
/* rule_traversal.c - traversal verification of one drafter's drawn tree (2505.12398; verification.md 8.4): whole paths are
 * tested from the leaves up, so a path may be accepted as a whole although top-down rules stop at its first bad token. On a
 * chain it is block verification.
 *
 * Equal candidates drawn with replacement share a row and its subtree. The later one has no effect: its token was rejected
 * with p < q, so its residual is 0.
 */
#include "verify/verify_private.h"

typedef struct node {
    int row;
    int from;   /* candidate of this row, -1: the root */
    int next;   /* candidate to try, -1: none left */
    bool known; /* `left` is initialised */
    double a;
    hn_residual left;
} node;

static hunch_status node_init(const hn_walk *k, node *n) {
    if (n->known) return HUNCH_OK;
    hunch_status st = hn_residual_push(k, n->row, &n->left);
    if (st) return st;
    n->known = true;
    return HUNCH_OK;
}

/* Makes the child node of the next candidate of n. */
static hunch_status node_child(const hn_walk *k, node *n, node *child) {
    hunch_status st = node_init(k, n);
    if (st) return st;
    const int c = n->next;
    const hn_candidate *x = &k->t->candidate[c];
    const double q = hn_residual_q(k, &n->left, c), p = hn_residual_p(k, &n->left, x->token);
    const double a = q > 0 ? n->a * p / q : 0;
    *child = (node){.row = x->child, .from = c, .next = a > 0 ? k->t->first[x->child] : -1, .a = a < 1 ? a : 1};
    return HUNCH_OK;
}

/* The child of candidate c was rejected: subtracts its share from n. */
static void node_reject(const hn_walk *k, node *n, int c) {
    const double z = hn_residual_subtract(k, &n->left, n->a, 1);
    n->a = n->a < 1 ? z / (z + 1 - n->a) : 1;
    n->next = k->t->candidate[c].next;
}

hunch_status hn_verify_traversal(const hn_walk *k) {
    node path[HN_TREE_ROWS];
    int top = 0;
    path[0] = (node){.row = 0, .from = -1, .next = k->t->first[0], .a = 1};
    for (;;) {
        node *n = &path[top];
        if (n->next >= 0) {
            hunch_status st = node_child(k, n, &path[top + 1]);
            if (st) return st;
            top++;
        } else if (top == 0 || hn_candidate_accept(k, &k->t->candidate[n->from], n->a)) {
            hunch_status st = node_init(k, n);
            if (st) return st;
            hn_verdict_draw(k, &n->left);
            return HUNCH_OK;
        } else {
            if (n->known) hn_residual_pop(k, &n->left);
            node_reject(k, &path[--top], n->from);
        }
    }
}
