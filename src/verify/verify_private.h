/* SPDX-License-Identifier: Apache-2.0 */
/* verify_private.h - what the files of the verification rules share: one verification under way, and residuals.
 *
 * A residual is what may still be drawn at a row: P at first, less what candidates stood for once they were rejected. It
 * begins as the sampler's law, of which a token costs no look at the others, and is not copied while nothing is taken away; then
 * it lies on the verifier's stack, over P's support alone: where P is 0 nothing is left of P - Q. The sampler forgets a law
 * when it is asked for the next; a residual that is wanted again and was not kept asks again.
 */
#ifndef HN_VERIFY_PRIVATE_H
#define HN_VERIFY_PRIVATE_H
#include "verify/verify.h"

struct hn_verifier {
    int vocab;
    uint64_t looks; /* how often the sampler was asked for a law */
    size_t used;    /* of the stack */
    int32_t *id;
    double *p;
    size_t cap_id, cap_p;
};

typedef struct hn_walk {
    hn_verifier *w;
    const hn_tree *t;
    const hn_verification *v;
    hn_verdict *out;
    hunch_error *err;
} hn_walk;

/* The rules, one a file. Each fills the verdict. */
hunch_status hn_verify_ratio(const hn_walk *k);
hunch_status hn_verify_block(const hn_walk *k);
hunch_status hn_verify_traversal(const hn_walk *k);

/* ---- residual.c -------------------------------------------------------------------------------------------------- */

typedef struct hn_residual {
    int row;
    bool kept;  /* on the stack at `at`: P(id[i]) = p[i] / p_sum */
    bool dense; /* and there id[i] would be i: ids are not written */
    hn_law law; /* what it is before that */
    uint64_t look; /* the law is the sampler's as long as this is its latest */
    size_t at;
    int n;
    double p_sum, q_sum;
    const hn_proposal_law *q; /* what hn_residual_q looked at last, without what was drawn before */
} hn_residual;

/* The tokens before the one that a row decides. path: room for the row's own. */
hn_history hn_row_history(const hn_walk *k, int row, int32_t path[HN_TREE_ROWS]);
/* P of a row, on top of the stack. HUNCH_FAILED if there is none, HUNCH_NO_MEMORY. */
hunch_status hn_residual_push(const hn_walk *k, int row, hn_residual *r);
void hn_residual_keep(const hn_walk *k, hn_residual *r);      /* onto the stack */
void hn_residual_pop(const hn_walk *k, const hn_residual *r); /* and all above it */
double hn_residual_p(const hn_walk *k, hn_residual *r, int32_t token); /* what is left for it, of 1 */
/* Of one that is kept: the index of a token in it, -1: it is not in the support. Rising with the token. */
int hn_residual_find(const hn_walk *k, const hn_residual *r, int32_t token);
/* Looks at the law that drawn candidate c of the row came from: Q, without its earlier siblings if it was drawn without
 * replacement. Returns its probability there; 0 where there is no law. */
double hn_residual_q(const hn_walk *k, hn_residual *r, int c);
/* Sum of (a p - b q)+ over that law. An earlier sibling counts as if it were still in q: it was refused when its p was
 * below its q, so its p is 0 and the sum is the same. */
double hn_residual_excess(const hn_walk *k, hn_residual *r, double a, double b);
/* p <- N((a p - b q)+), where a law is left; returns that sum. */
double hn_residual_subtract(const hn_walk *k, hn_residual *r, double a, double b);
/* p <- N(p without the tokens of these child rows), where a law is left. */
void hn_residual_exclude(const hn_walk *k, hn_residual *r, const int16_t *child, int n);
int32_t hn_residual_draw(const hn_walk *k, hn_residual *r); /* keyed by the round's root and the row */
bool hn_candidate_coin(const hn_walk *k, const hn_candidate *c, double p);

/* ---- verify.c ---------------------------------------------------------------------------------------------------- */

void hn_verdict_path(const hn_walk *k, int row); /* everything of the verdict but next: the path to row was accepted */
/* The same, and next drawn from what is left at that row. */
void hn_verdict_draw(const hn_walk *k, hn_residual *r);
/* The token that plain decoding emits behind a row. */
hunch_status hn_row_draw(const hn_walk *k, int row, int32_t *token);
#endif
