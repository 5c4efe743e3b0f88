/* SPDX-License-Identifier: Apache-2.0 */
/* verify_trees.c - the trees of several texts, verified by all workers of a pool. A verdict depends on the text's own tree, logits and
 * sampler alone (contract C3), so it does not matter which worker makes it. One text's tree is one worker's: its walk goes from row to
 * row. */
#include "base/clock.h"
#include "base/mem.h"
#include "verify/verify.h"

struct hn_verifiers {
    hn_pool *pool;
    int n;
    hn_verifier *of[]; /* [n] by rank */
};

hunch_status hn_verifiers_open(hn_verifiers **out, hn_pool *pool, int vocab, hunch_error *err) {
    const int n = hn_pool_threads(pool);
    const size_t bytes = sizeof **out + (size_t)n * sizeof(hn_verifier *);
    hn_verifiers *v = *out = hn_zalloc(1, bytes);
    if (!v) return hn_fail_memory(err, "verifiers", bytes);
    v->pool = pool;
    hunch_status st = HUNCH_OK;
    for (; !st && v->n < n; v->n++) st = hn_verifier_open(&v->of[v->n], vocab, err);
    if (st) hn_verifiers_close(out);
    return st;
}

void hn_verifiers_close(hn_verifiers **v) {
    if (!*v) return;
    for (int i = 0; i < (*v)->n; i++) hn_verifier_close(&(*v)->of[i]);
    hn_free(*v);
    *v = NULL;
}

static void verify_one(hn_verifier *w, hn_verify_job *j) {
    const double start = hn_now();
    j->status = hn_verify_tree(w, j->tree, &j->how, j->out, &j->error);
    j->seconds = hn_now() - start;
}

/* What the workers share. */
typedef struct shared_jobs {
    hn_verifiers *v;
    hn_verify_job *const *job;
    int n;
} shared_jobs;

/* Jobs that have their memory. */
static void verify_rank(void *arg, int rank, int ranks HN_UNUSED) {
    const shared_jobs *s = arg;
    hn_claim c = hn_claim_begin(s->v->pool, rank, s->n);
    for (int i; (i = hn_claim_next(&c)) >= 0;)
        if (s->job[i]->whole_rows && !s->job[i]->status) verify_one(s->v->of[rank], s->job[i]);
}

/* Of all verifiers, because any of them may get the job. */
static void reserve(const hn_verifiers *v, hn_verify_job *j) {
    j->status = HUNCH_OK;
    j->seconds = 0;
    for (int i = 0; !j->status && i < v->n; i++) j->status = hn_verifier_reserve(v->of[i], j->tree, &j->how, &j->error);
}

void hn_verify_trees(hn_verifiers *v, hn_verify_job *const *job, int n) {
    shared_jobs s = {v, job, n};
    int n_whole = 0;
    for (int i = 0; i < n; i++) n_whole += job[i]->whole_rows;
    const bool together = v->n > 1 && n_whole > 1;
    for (int i = 0; i < n; i++) {
        if (together && job[i]->whole_rows)
            reserve(v, job[i]);
        else
            verify_one(v->of[0], job[i]);
    }
    if (together) hn_pool_run(v->pool, verify_rank, &s);
}
