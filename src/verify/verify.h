/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - (tree, target logits, distribution) → accepted path and one more token. Lossless (contract C1) except for the rules of
 * lossy.h.
 *
 *   greedy     the argmax of each row (verification.md 3, 8.2)
 *   match      the target's own draw of each position, followed while a candidate carries it (4, 10)
 *   ratio      acceptance tests against q, then the residual (2, 6.1, 6.2, 8.3); at rows whose candidates are all one-hot
 *              the point-mass rule (6.3)
 *   block      block verification of a drawn chain (7)
 *   traversal  leaf to root on a drawn tree (8.4)
 *
 * greedy and match take any tree, and the emitted tokens do not depend on it. The others use each candidate's q and are exact
 * only if the tree has all drawn candidates of a row, in the order in which they were drawn: hn_rule_fits. Distributions are computed
 * for the rows that a walk visits, from each row's own history.
 */
#ifndef HN_VERIFY_H
#define HN_VERIFY_H
#include "base/threads.h"
#include "draft/tree.h"
#include "sample/sampler.h"

typedef enum hn_rule {
    HN_RULE_GREEDY,
    HN_RULE_MATCH,
    HN_RULE_RATIO,
    HN_RULE_BLOCK,
    HN_RULE_TRAVERSAL,
    HN_RULE_LENIENCE, /* lossy.c, from here on */
    HN_RULE_TYPICAL,
    HN_RULE_TOP_M
} hn_rule;

/* Resolves the options: default = greedy at temperature 0, else match; every lossless rule at temperature 0 is greedy.
 * HUNCH_USAGE: greedy with a temperature; a lossy rule with a verify option, or with parameters out of range. */
hunch_status hn_rule_choose(hunch_verify option, const hunch_lossy *lossy, const hunch_sampling *p, hn_rule *out,
                            hunch_error *err);
const char *hn_rule_name(hn_rule rule);
/* True: drafters should give candidates drawn from a q; false: they should draw with the target's noise. */
bool hn_rule_wants_dist(hn_rule rule);

/* Properties of the trees of an open drafter. */
typedef struct hn_rule_drafter {
    const char *name;
    bool has_dist, branches;
} hn_rule_drafter;
/* Checks that the rule is lossless on all trees of these drafters together: ratio: one drafter with a distribution alone, or any
 * number without; block: one drafter with a distribution that does not branch, alone; traversal: one drafter with a distribution, alone.
 * HUNCH_USAGE otherwise, naming rule and drafters. */
hunch_status hn_rule_check(hn_rule rule, const hn_rule_drafter *d, int n, hunch_error *err);
/* The same of one tree (asserted before verifying). */
bool hn_rule_fits(hn_rule rule, const hn_tree *t);

typedef struct hn_verdict {
    int n_accepted;                    /* rows of the path after the root */
    int16_t path[HN_TREE_ROWS];        /* their rows, in order */
    int16_t drafter_of[HN_TREE_ROWS];  /* drafter of each: highest estimate among its candidates, ties to the lower index */
    int32_t next;                      /* the target's token after them */
    int16_t next_row;                  /* the row whose logits drew it */
} hn_verdict;

/* logits(ctx, row): float [vocab] of a tree row; may be NULL if only greedy(ctx, row) is needed and known: the rule is greedy
 * and no processor changes logits. greedy(ctx, row): its argmax; -1: unknown, or no logit is above -inf; the function may be
 * NULL if every row has logits. */
typedef struct hn_logits_source {
    const float *(*logits)(void *ctx, int row);
    int32_t (*greedy)(void *ctx, int row);
    void *ctx;
} hn_logits_source;

/* Buffers of verification, for one thread of control; initially small, they grow as a rule needs. */
typedef struct hn_verifier hn_verifier;
hunch_status hn_verifier_open(hn_verifier **out, int vocab, hunch_error *err);
void hn_verifier_close(hn_verifier **v);

typedef struct hn_verification {
    hn_rule rule;
    double a, b;          /* of a lossy rule (hunch_lossy) */
    hn_sampler *sampler;  /* distribution and random numbers */
    hn_history committed; /* the text; its newest token is the root: n - 1 is the position of the round's root in C3 */
    hn_logits_source rows;
} hn_verification;
/* HUNCH_FAILED if a row has no drawable token, HUNCH_NO_MEMORY. */
hunch_status hn_verify_tree(hn_verifier *w, const hn_tree *t, const hn_verification *v, hn_verdict *out,
                            hunch_error *err);
/* The verdict that the path to a row was accepted, and then this token: of a tree that a backend verified. */
void hn_verdict_at(hn_verdict *out, const hn_tree *t, int row, int32_t next);
/* The error of a row after which no token can be drawn. */
hunch_status hn_fail_no_token(const hn_sampler *s, int position, hunch_error *err);
/* Allocates what hn_verify_tree needs at most for this tree, so that it cannot fail for lack of memory. HUNCH_NO_MEMORY; the
 * verifier can be used then as before. */
hunch_status hn_verifier_reserve(hn_verifier *w, const hn_tree *t, const hn_verification *v, hunch_error *err);

/* ---- verify_trees.c: several texts at a time ---- */

/* A verifier for each worker of a pool. */
typedef struct hn_verifiers hn_verifiers;
/* The pool is borrowed. */
hunch_status hn_verifiers_open(hn_verifiers **out, hn_pool *pool, int vocab, hunch_error *err);
void hn_verifiers_close(hn_verifiers **v);

/* One text's tree. */
typedef struct hn_verify_job {
    const hn_tree *tree;
    hn_verification how;
    hn_verdict *out;
    bool whole_rows; /* its rows have all logits; else it is decided by their best tokens alone, which takes next to no time */
    /* filled: */
    hunch_status status; /* as hn_verify_tree's; the error is there if it is not HUNCH_OK */
    hunch_error error;
    double seconds;      /* of one worker */
} hn_verify_job;
/* hn_verify_tree for n texts, each with a sampler of its own: the workers take those with whole rows, the caller does the others. The
 * verdicts are those of one text after the other. Workers allocate nothing whose lack would fail a text: a text that cannot be given
 * what hn_verifier_reserve allocates fails alone, whichever worker would have taken it. */
void hn_verify_trees(hn_verifiers *v, hn_verify_job *const *job, int n);
#endif
