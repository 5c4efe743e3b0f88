/* SPDX-License-Identifier: Apache-2.0 */
/* residual.c - laws of visited rows and what rejections leave of them (verification.md 2, 6 to 8). Owns the verifier's
 * stack; which candidates are tried, and when, is the rules' business (rule_*.c, lossy.c). */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "verify/verify_private.h"

enum { LANES = 8 };

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

hn_history hn_row_history(const hn_walk *k, int row, int32_t path[HN_TREE_ROWS]) {
    hn_history h = k->v->committed;
    h.path = path;
    h.n_path = k->t->depth[row];
    for (int r = row; r > 0; r = k->t->parent[r]) path[k->t->depth[r] - 1] = k->t->token[r];
    return h;
}

/* Room is made here, so that keeping cannot fail. */
hunch_status hn_residual_push(const hn_walk *k, int row, hn_residual *r) {
    hn_verifier *w = k->w;
    int32_t path[HN_TREE_ROWS];
    const hn_history h = hn_row_history(k, row, path);
    *r = (hn_residual){.row = row, .at = w->used};
    hn_sampler_look(k->v->sampler, k->v->rows.logits(k->v->rows.ctx, row), &h, &r->law);
    if (r->law.n == 0)
        return hn_fail(k->err, HUNCH_FAILED, "no token can be drawn at position %d: every logit is NaN or -inf",
                       h.n + h.n_path);
    const size_t need = w->used + (size_t)r->law.n;
    if (!hn_grow((void **)&w->id, &w->cap_id, need, sizeof *w->id) ||
        !hn_grow((void **)&w->p, &w->cap_p, need, sizeof *w->p))
        return hn_fail_memory(k->err, "the laws of a tree", need * (sizeof *w->id + sizeof *w->p));
    r->n = r->law.n;
    r->p_sum = r->law.sum;
    w->used = need;
    return HUNCH_OK;
}

void hn_residual_keep(const hn_walk *k, hn_residual *r) {
    if (r->kept) return;
    hn_law_fill(k->v->sampler, &r->law);
    r->n = r->law.n;
    memcpy(k->w->id + r->at, r->law.id, (size_t)r->n * sizeof *r->law.id);
    for (int i = 0; i < r->n; i++) k->w->p[r->at + (size_t)i] = (double)r->law.weight[i];
    r->kept = true;
}

void hn_residual_pop(const hn_walk *k, const hn_residual *r) {
    assert(r->at <= k->w->used);
    k->w->used = r->at;
}

double hn_residual_p(const hn_walk *k, const hn_residual *r, int32_t token) {
    if (!r->kept) return (double)hn_law_weight(k->v->sampler, &r->law, token) / r->p_sum;
    const int i = hn_law_find(k->w->id + r->at, r->n, token);
    return i < 0 ? 0 : k->w->p[r->at + (size_t)i] / r->p_sum;
}

/* ---- proposal laws ----------------------------------------------------------------------------------------------- */

/* The tokens that were gone when c was drawn, in rising order. */
static int drawn_before(const hn_tree *t, int c, int32_t *token) {
    int n = 0;
    for (int e = t->first[t->candidate[c].row]; e != c; e = t->candidate[e].next) {
        if (t->candidate[e].q != t->candidate[c].q) continue;
        int i = n++;
        for (; i > 0 && token[i - 1] > t->candidate[e].token; i--) token[i] = token[i - 1];
        token[i] = t->candidate[e].token;
    }
    return n;
}

/* Summed around the missing tokens, not subtracted from the whole: what is left may be very little. */
static double sum_without(const float *q, int vocab, const int32_t *gone, int n) {
    double sum = 0;
    int from = 0;
    for (int i = 0; i < n; i++) {
        if (gone[i] > from) sum += hn_weights_sum(q + from, gone[i] - from);
        from = gone[i] + 1;
    }
    return sum + hn_weights_sum(q + from, vocab - from);
}

double hn_residual_q(const hn_walk *k, hn_residual *r, int c) {
    const hn_candidate *x = &k->t->candidate[c];
    assert(x->q && x->row == r->row && x->token >= 0 && x->token < k->w->vocab);
    if (x->without || r->q != x->q) {
        int32_t gone[HN_TREE_CANDIDATES];
        const int n = x->without ? drawn_before(k->t, c, gone) : 0;
        r->q_sum = sum_without(x->q, k->w->vocab, gone, n);
        r->q = x->q;
    }
    return r->q_sum > 0 ? (double)x->q[x->token] / r->q_sum : 0;
}

/* ---- rejections -------------------------------------------------------------------------------------------------- */

double hn_residual_excess(const hn_walk *k, hn_residual *r, double a, double b) {
    hn_residual_keep(k, r);
    const double *p = k->w->p + r->at, of_p = a / r->p_sum, of_q = r->q_sum > 0 ? b / r->q_sum : 0;
    const int32_t *id = k->w->id + r->at;
    const float *q = r->q;
    double lane[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= r->n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const double left = of_p * p[i + j] - of_q * (double)q[id[i + j]];
            lane[j] += left > 0 ? left : 0;
        }
    for (; i < r->n; i++) {
        const double left = of_p * p[i] - of_q * (double)q[id[i]];
        sum += left > 0 ? left : 0;
    }
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

double hn_residual_subtract(const hn_walk *k, hn_residual *r, double a, double b) {
    const double sum = hn_residual_excess(k, r, a, b);
    if (!(sum > 0)) return 0; /* P = Q up to rounding: P itself is as good */
    double *p = k->w->p + r->at;
    const double of_p = a / r->p_sum, of_q = r->q_sum > 0 ? b / r->q_sum : 0;
    const int32_t *id = k->w->id + r->at;
    for (int i = 0; i < r->n; i++) {
        const double left = of_p * p[i] - of_q * (double)r->q[id[i]];
        p[i] = left > 0 ? left : 0;
    }
    r->p_sum = sum;
    return sum;
}

void hn_residual_exclude(const hn_walk *k, hn_residual *r, const int16_t *child, int n) {
    hn_residual_keep(k, r);
    double *p = k->w->p + r->at, kept[HN_TREE_ROWS], sum = 0;
    int at[HN_TREE_ROWS];
    for (int c = 0; c < n; c++) {
        at[c] = hn_law_find(k->w->id + r->at, r->n, k->t->token[child[c]]);
        if (at[c] < 0) continue;
        kept[c] = p[at[c]];
        p[at[c]] = 0;
    }
    for (int i = 0; i < r->n; i++) sum += p[i];
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
    hn_random_key key = round_key(k, HN_PURPOSE_RESIDUAL);
    hn_residual_keep(k, r);
    const int32_t *id = k->w->id + r->at;
    const double *p = k->w->p + r->at;
    key.number = (uint32_t)r->row;
    const int i = hn_coins_draw(&k->v->sampler->coins, &key, id, p, r->n);
    assert(i >= 0);
    return id[i];
}

bool hn_candidate_coin(const hn_walk *k, const hn_candidate *c, double p) {
    hn_random_key key = round_key(k, HN_PURPOSE_COIN);
    key.drafter = (uint32_t)c->drafter;
    key.number = (uint32_t)c->number;
    return hn_coins_accept(&k->v->sampler->coins, &key, p);
}
