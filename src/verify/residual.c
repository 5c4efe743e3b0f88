/* SPDX-License-Identifier: Apache-2.0 */
/* residual.c - distributions of visited rows and their residuals after rejections (verification.md 2, 6 to 8). Owns the verifier's
 * stack; the rules (rule_*.c, lossy.c) choose the candidates to try. */
#include <assert.h>
#include <string.h>

#include "base/lane_sum.h"
#include "base/mem.h"
#include "verify/verify_private.h"

enum { CHUNK = 1024 };

hunch_status hn_verifier_open(hn_verifier **out, int vocab, hunch_error *err) {
    *out = hn_zalloc(1, sizeof **out);
    if (!*out) return hn_fail_memory(err, "a verifier", sizeof **out);
    (*out)->vocab = vocab;
    return HUNCH_OK;
}

void hn_verifier_close(hn_verifier **v) {
    if (!*v) return;
    hn_free((*v)->id);
    hn_free((*v)->p);
    hn_free(*v);
    *v = NULL;
}

/* Of the distributions that are on the stack at one time: traversal's are those of a path, the other rules' one row's. */
static size_t stack_limit(const hn_verifier *w, const hn_tree *t, const hn_verification *v) {
    if (v->rule == HN_RULE_GREEDY || v->rule == HN_RULE_MATCH || t->n_candidates == 0) return 0;
    const bool softmax = v->sampler->params.temperature == 0; /* which is what typical and top-m judge by there */
    const size_t rows = v->rule == HN_RULE_TRAVERSAL ? (size_t)hn_tree_depth(t) + 1 : 1;
    return rows * (size_t)(softmax ? w->vocab : hn_sampler_support_limit(v->sampler));
}

/* Nothing is copied, so memory that is only reserved is never touched. */
hunch_status hn_verifier_reserve(hn_verifier *w, const hn_tree *t, const hn_verification *v, hunch_error *err) {
    const size_t need = stack_limit(w, t, v);
    w->used = 0;
    if (need > w->cap_id) {
        hn_free(w->id);
        w->id = NULL;
        w->cap_id = 0;
    }
    if (need > w->cap_p) {
        hn_free(w->p);
        w->p = NULL;
        w->cap_p = 0;
    }
    if (!hn_grow((void **)&w->id, &w->cap_id, need, sizeof *w->id) || !hn_grow((void **)&w->p, &w->cap_p, need, sizeof *w->p))
        return hn_fail_memory(err, "the distributions of a tree", need * (sizeof *w->id + sizeof *w->p));
    return HUNCH_OK;
}

hn_history hn_row_history(const hn_walk *k, int row, int32_t path[HN_TREE_ROWS]) {
    hn_history h = k->v->committed;
    h.path = path;
    h.n_path = k->t->depth[row];
    for (int r = row; r > 0; r = k->t->parent[r]) path[k->t->depth[r] - 1] = k->t->token[r];
    return h;
}

static hn_history dist_compute(const hn_walk *k, int row, hn_residual *r) {
    int32_t path[HN_TREE_ROWS];
    hn_history h = hn_row_history(k, row, path);
    const float *logits = k->v->rows.logits(k->v->rows.ctx, row);
    if (r->softmax)
        hn_sampler_softmax(k->v->sampler, logits, &h, &r->dist);
    else
        hn_sampler_dist_lazy(k->v->sampler, logits, &h, &r->dist);
    r->dist_number = ++k->w->n_dists;
    h.path = NULL; /* local to this function */
    return h;
}

/* Allocates here, so that hn_residual_keep cannot fail. */
static hunch_status push(const hn_walk *k, int row, bool softmax, hn_residual *r) {
    hn_verifier *w = k->w;
    *r = (hn_residual){.row = row, .softmax = softmax, .at = w->used};
    const hn_history h = dist_compute(k, row, r);
    if (r->dist.n == 0)
        return hn_fail_no_token(k->v->sampler, h.n + h.n_path, k->err);
    const size_t need = w->used + (size_t)r->dist.n;
    if (!hn_grow((void **)&w->id, &w->cap_id, need, sizeof *w->id) ||
        !hn_grow((void **)&w->p, &w->cap_p, need, sizeof *w->p))
        return hn_fail_memory(k->err, "the distributions of a tree", need * (sizeof *w->id + sizeof *w->p));
    r->n = r->dist.n;
    r->p_sum = r->dist.sum;
    w->used = need;
    return HUNCH_OK;
}

hunch_status hn_residual_push(const hn_walk *k, int row, hn_residual *r) {
    return push(k, row, false, r);
}

hunch_status hn_residual_push_softmax(const hn_walk *k, int row, hn_residual *r) {
    return push(k, row, true, r);
}

static void refresh(const hn_walk *k, hn_residual *r) {
    if (!r->kept && r->dist_number != k->w->n_dists) dist_compute(k, r->row, r);
}

/* n of p from index i on: on the stack, or, of a distribution that is not listed, computed into room. */
static const double *p_chunk(const hn_walk *k, const hn_residual *r, int i, int n, double room[CHUNK]) {
    float w[CHUNK];
    if (r->kept) return k->w->p + r->at + i;
    hn_dist_weights(k->v->sampler, &r->dist, i, n, w);
    for (int j = 0; j < n; j++) room[j] = (double)w[j];
    return room;
}

/* Of a distribution that is listed. */
static void keep_listed(const hn_walk *k, hn_residual *r) {
    memcpy(k->w->id + r->at, r->dist.id, (size_t)r->n * sizeof *r->dist.id);
    for (int i = 0; i < r->n; i++) k->w->p[r->at + (size_t)i] = (double)r->dist.weight[i];
    r->kept = true;
}

void hn_residual_keep(const hn_walk *k, hn_residual *r) {
    refresh(k, r);
    if (r->kept) return;
    if (r->dist.id) {
        keep_listed(k, r);
        return;
    }
    for (int i = 0; i < r->n; i += CHUNK) p_chunk(k, r, i, r->n - i < CHUNK ? r->n - i : CHUNK, k->w->p + r->at + i);
    r->kept = r->dense = true;
}

void hn_residual_pop(const hn_walk *k, const hn_residual *r) {
    assert(r->at <= k->w->used);
    k->w->used = r->at;
}

int hn_residual_find(const hn_walk *k, const hn_residual *r, int32_t token) {
    return r->dense ? token : hn_dist_find(k->w->id + r->at, r->n, token);
}

double hn_residual_p(const hn_walk *k, hn_residual *r, int32_t token) {
    refresh(k, r);
    if (!r->kept) return (double)hn_dist_weight(k->v->sampler, &r->dist, token) / r->p_sum;
    const int i = hn_residual_find(k, r, token);
    return i < 0 ? 0 : k->w->p[r->at + (size_t)i] / r->p_sum;
}

/* ---- proposal distributions ----------------------------------------------------------------------------------------------- */

/* The indices, ascending, in c's distribution of the tokens that were drawn before c. */
static int drawn_before(const hn_tree *t, int c, int *at) {
    const hn_proposal_dist *q = t->candidate[c].q;
    int n = 0;
    for (int e = t->first[t->candidate[c].row]; e != c; e = t->candidate[e].next) {
        const int where = t->candidate[e].q == q ? hn_proposal_find(q, t->candidate[e].token) : -1;
        if (where < 0) continue;
        int i = n++;
        for (; i > 0 && at[i - 1] > where; i--) at[i] = at[i - 1];
        at[i] = where;
    }
    return n;
}

/* The sum without the missing tokens. Not by subtraction from the whole: the rest may be very small. */
static double sum_without(const hn_proposal_dist *q, const int *gone, int n) {
    double sum = 0;
    int from = 0;
    for (int i = 0; i < n; i++) {
        if (gone[i] > from) sum += hn_weights_sum(q->weight + from, gone[i] - from);
        from = gone[i] + 1;
    }
    return sum + hn_weights_sum(q->weight + from, q->n - from);
}

double hn_residual_q(const hn_walk *k, hn_residual *r, int c) {
    const hn_candidate *x = &k->t->candidate[c];
    assert(x->q && x->row == r->row && x->token >= 0 && x->token < k->w->vocab);
    if (x->without || r->q != x->q) {
        int gone[HN_TREE_CANDIDATES];
        const int n = x->without ? drawn_before(k->t, c, gone) : 0;
        r->q_sum = sum_without(x->q, gone, n);
        r->q = x->q;
    }
    return r->q_sum > 0 ? (double)hn_proposal_weight(x->q, x->token) / r->q_sum : 0;
}

/* ---- rejections -------------------------------------------------------------------------------------------------- */

/* q of n tokens from index i on; *from: position in the distribution, for the next call. */
static const float *q_chunk(const hn_walk *k, const hn_residual *r, int i, int n, int *from, float room[CHUNK]) {
    if (r->dense || !r->kept) return hn_proposal_range(r->q, from, i, n, room);
    return hn_proposal_of(r->q, from, k->w->id + r->at + i, n, room);
}

/* Sum of (a p - b q)+, over all tokens or until it is above 0; writes each term to out, unless that is NULL. */
static double excess(const hn_walk *k, const hn_residual *r, double a, double b, bool all, double *out) {
    const double of_p = a / r->p_sum, of_q = r->q_sum > 0 ? b / r->q_sum : 0;
    double sum = 0, p_room[CHUNK];
    float q_room[CHUNK];
    int from = 0;
    for (int i = 0; i < r->n && (all || !(sum > 0)); i += CHUNK) {
        const int n = r->n - i < CHUNK ? r->n - i : CHUNK;
        sum += k->v->sampler->vocab_ops->excess(p_chunk(k, r, i, n, p_room), q_chunk(k, r, i, n, &from, q_room), n, of_p,
                                            of_q, out ? out + i : NULL);
    }
    return sum;
}

double hn_residual_excess(const hn_walk *k, hn_residual *r, double a, double b) {
    refresh(k, r);
    if (!r->kept && r->dist.id) keep_listed(k, r);
    return excess(k, r, a, b, true, NULL);
}

double hn_residual_subtract(const hn_walk *k, hn_residual *r, double a, double b) {
    refresh(k, r);
    if (!r->kept && r->dist.id) keep_listed(k, r);
    if (!(excess(k, r, a, b, false, NULL) > 0)) return 0; /* P = Q up to rounding: P is left unchanged */
    r->p_sum = excess(k, r, a, b, true, k->w->p + r->at);
    if (!r->kept) r->kept = r->dense = true;
    return r->p_sum;
}

void hn_residual_exclude(const hn_walk *k, hn_residual *r, const int16_t *child, int n) {
    hn_residual_keep(k, r);
    double *p = k->w->p + r->at, kept[HN_TREE_ROWS];
    int at[HN_TREE_ROWS];
    for (int c = 0; c < n; c++) {
        at[c] = hn_residual_find(k, r, k->t->token[child[c]]);
        if (at[c] < 0) continue;
        kept[c] = p[at[c]];
        p[at[c]] = 0;
    }
    const double sum = hn_lane_sum(p, r->n);
    if (sum > 0)
        r->p_sum = sum;
    else
        for (int c = 0; c < n; c++)
            if (at[c] >= 0) p[at[c]] = kept[c];
}

/* ---- randomness (contract C3) ------------------------------------------------------------------------------------ */

static hn_random_key round_key(const hn_walk *k, uint32_t purpose) {
    return (hn_random_key){
        .seed = k->v->sampler->params.seed, .position = (uint64_t)(k->v->committed.n - 1), .purpose = purpose};
}

int32_t hn_residual_draw(const hn_walk *k, hn_residual *r) {
    const hn_rng *rng = &k->v->sampler->rng;
    hn_random_key key = round_key(k, HN_PURPOSE_RESIDUAL);
    key.number = (uint32_t)r->row;
    refresh(k, r);
    if (!r->kept && !r->dist.id && !rng->draw)
        return hn_dist_token_at(k->v->sampler, &r->dist, rng->uniform(rng->ctx, &key));
    hn_residual_keep(k, r);
    const int32_t *id = r->dense ? NULL : k->w->id + r->at;
    const int i = hn_rng_draw(rng, &key, id, k->w->p + r->at, r->n);
    assert(i >= 0);
    return id ? id[i] : i;
}

bool hn_candidate_accept(const hn_walk *k, const hn_candidate *c, double p) {
    hn_random_key key = round_key(k, HN_PURPOSE_ACCEPT);
    key.drafter = (uint32_t)c->drafter;
    key.number = (uint32_t)c->number;
    return hn_rng_accept(&k->v->sampler->rng, &key, p);
}
