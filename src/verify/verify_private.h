/* SPDX-License-Identifier: Apache-2.0 */
/* verify_private.h - shared by the files of the verification rules: the state of one verification, and residuals.
 *
 * A residual is the distribution that can still be drawn at a row: P at first, reduced by each rejected candidate. It begins
 * as the sampler's distribution, of which single tokens can be read without the others, and is copied only when something is subtracted:
 * then it is on the verifier's stack, over P's support alone, as P - Q is not positive elsewhere. The sampler keeps only its
 * latest distribution; a residual that was not copied and is needed again computes its distribution again.
 */
#ifndef HN_VERIFY_PRIVATE_H
#define HN_VERIFY_PRIVATE_H
#include "verify/verify.h"

struct hn_verifier {
    int vocab;
    uint64_t n_dists; /* number of distributions that the sampler computed */
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

/* The rules, one in each file. Each fills the verdict. */
hunch_status hn_verify_ratio(const hn_walk *k);
hunch_status hn_verify_block(const hn_walk *k);
hunch_status hn_verify_traversal(const hn_walk *k);

/* ---- residual.c -------------------------------------------------------------------------------------------------- */

typedef struct hn_residual {
    int row;
    bool softmax; /* P is the softmax of the row's processed logits, not the sampler's distribution */
    bool kept;  /* on the stack at `at`: P(id[i]) = p[i] / p_sum */
    bool dense; /* kept, and id[i] would be i: ids are not written */
    hn_dist dist; /* the sampler's distribution, before it is kept */
    uint64_t dist_number; /* number of the distribution; it is valid as long as that is the sampler's latest */
    size_t at;
    int n;
    double p_sum, q_sum;
    const hn_proposal_dist *q; /* the distribution of the last hn_residual_q; q_sum is without tokens drawn before */
} hn_residual;

/* The tokens before the one that follows a row. path: room for the row's own path. */
hn_history hn_row_history(const hn_walk *k, int row, int32_t path[HN_TREE_ROWS]);
/* P of a row, on top of the stack. HUNCH_FAILED if there is none, HUNCH_NO_MEMORY. */
hunch_status hn_residual_push(const hn_walk *k, int row, hn_residual *r);
hunch_status hn_residual_push_softmax(const hn_walk *k, int row, hn_residual *r); /* the same of softmax(processed logits) */
void hn_residual_keep(const hn_walk *k, hn_residual *r);      /* copies it to the stack */
void hn_residual_pop(const hn_walk *k, const hn_residual *r); /* and all above it */
double hn_residual_p(const hn_walk *k, hn_residual *r, int32_t token); /* normalised */
/* Of one that is kept: the index of a token in it, -1: it is not in the support. Ascending with the token. */
int hn_residual_find(const hn_walk *k, const hn_residual *r, int32_t token);
/* Selects the distribution that candidate c of the row was drawn from: Q, without its earlier siblings if it was drawn without
 * replacement. Returns its probability there; 0 if it has no distribution. */
double hn_residual_q(const hn_walk *k, hn_residual *r, int c);
/* Sum of (a p - b q)+ over that distribution. Earlier siblings are not removed from q: they were rejected, with p below q, so their p
 * is 0 and the sum is the same. */
double hn_residual_excess(const hn_walk *k, hn_residual *r, double a, double b);
/* p <- N((a p - b q)+), unless the sum is 0; returns the sum. */
double hn_residual_subtract(const hn_walk *k, hn_residual *r, double a, double b);
/* p <- N(p without the tokens of these child rows), unless nothing is left. */
void hn_residual_exclude(const hn_walk *k, hn_residual *r, const int16_t *child, int n);
int32_t hn_residual_draw(const hn_walk *k, hn_residual *r); /* keyed by the round's root and the row */
bool hn_candidate_accept(const hn_walk *k, const hn_candidate *c, double p);

/* ---- verify.c ---------------------------------------------------------------------------------------------------- */

void hn_verdict_path(const hn_walk *k, int row); /* fills the verdict except next: the path to row was accepted */
/* The same, and draws next from the residual of that row. */
void hn_verdict_draw(const hn_walk *k, hn_residual *r);
/* The token that plain decoding emits after a row. */
hunch_status hn_row_draw(const hn_walk *k, int row, int32_t *token);
#endif
