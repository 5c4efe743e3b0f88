/* SPDX-License-Identifier: Apache-2.0 */
/* draft_dist.c - distributions that drafts are drawn from, and the draws. Verification uses them in verify/residual.c. */
#include "draft/draft_dist.h"

#include <assert.h>
#include <string.h>

#include "base/least.h"
#include "base/mem.h"

hunch_status hn_draft_dists_open(hn_draft_dists *l, int vocab, int seqs, int slots, int workers, hunch_error *err) {
    *l = (hn_draft_dists){.vocab = vocab, .slots = slots, .n = (size_t)seqs * (size_t)slots, .workers = workers};
    l->dist = hn_zalloc(l->n, sizeof *l->dist);
    l->left = hn_zalloc((size_t)workers, sizeof *l->left);
    return l->dist && l->left ? HUNCH_OK : hn_fail_memory(err, "the distributions of drafts", l->n * sizeof *l->dist);
}

void hn_draft_dists_close(hn_draft_dists *l) {
    for (size_t i = 0; l->dist && i < l->n; i++) {
        hn_free(l->dist[i].id);
        hn_free(l->dist[i].weight);
    }
    for (int i = 0; l->left && i < l->workers; i++) hn_free(l->left[i].weight);
    hn_free(l->dist);
    hn_free(l->left);
    *l = (hn_draft_dists){0};
}

/* Half a vocabulary with its ids takes as much memory as the whole without, and lookup in the whole is faster. */
static bool is_dense(const hn_draft_dists *l, int n) {
    return n > l->vocab / 2;
}

bool hn_draft_dist_reserve(hn_draft_dists *l, int seq, int slot, const hn_sampler *s) {
    hn_draft_dist *x = &l->dist[seq * l->slots + slot];
    const int most = hn_sampler_support_limit(s);
    const size_t weights = (size_t)(is_dense(l, most) ? l->vocab : most), ids = (size_t)hn_least(most, l->vocab / 2);
    for (int i = 0; i < l->workers; i++)
        if (!hn_grow((void **)&l->left[i].weight, &l->left[i].cap, weights, sizeof *l->left[i].weight)) return false;
    return hn_grow((void **)&x->weight, &x->cap_weight, weights, sizeof *x->weight) &&
           hn_grow((void **)&x->id, &x->cap_id, ids, sizeof *x->id);
}

static bool make_dense(hn_draft_dist *x, const hn_dist *dist, int vocab) {
    const size_t n = (size_t)vocab;
    if (!hn_grow((void **)&x->weight, &x->cap_weight, n, sizeof *x->weight)) return false;
    memset(x->weight, 0, n * sizeof *x->weight);
    for (int i = 0; i < dist->n; i++) x->weight[dist->id[i]] = dist->weight[i];
    x->q = (hn_proposal_dist){vocab, NULL, x->weight};
    return true;
}

static bool make_sparse(hn_draft_dist *x, const hn_dist *dist) {
    const size_t n = (size_t)dist->n;
    if (!hn_grow((void **)&x->weight, &x->cap_weight, n, sizeof *x->weight) ||
        !hn_grow((void **)&x->id, &x->cap_id, n, sizeof *x->id))
        return false;
    memcpy(x->weight, dist->weight, n * sizeof *x->weight);
    memcpy(x->id, dist->id, n * sizeof *x->id);
    x->q = (hn_proposal_dist){dist->n, x->id, x->weight};
    return true;
}

const hn_draft_dist *hn_draft_dist_make(hn_draft_dists *l, int seq, int slot, hn_sampler *s, const float *logits,
                                      const hn_history *h) {
    hn_dist dist;
    assert(slot >= 0 && slot < l->slots && (size_t)(seq * l->slots + slot) < l->n);
    hn_draft_dist *x = &l->dist[seq * l->slots + slot];
    hn_sampler_dist(s, logits, h, &dist);
    if (dist.n < 1) return NULL;
    x->sum = dist.sum;
    return (is_dense(l, dist.n) ? make_dense(x, &dist, l->vocab) : make_sparse(x, &dist)) ? x : NULL;
}

/* ---- draws --------------------------------------------------------------------------------------------------------- */

/* How many candidates with new rows the tree still has room for. */
static int room_of(const hn_propose *p) {
    const hn_tree *t = p->tree;
    return hn_least(p->budget, hn_least(t->max_rows - t->n_rows, HN_TREE_CANDIDATES - t->n_candidates));
}

/* The n largest weights, descending; 0 after the last. */
static void largest(const hn_proposal_dist *q, int n, float most[HN_TREE_ROWS]) {
    for (int i = 0; i < n; i++) most[i] = 0;
    for (int i = 0; i < q->n; i++) {
        if (!(q->weight[i] > most[n - 1])) continue;
        int j = n - 1;
        for (; j > 0 && most[j - 1] < q->weight[i]; j--) most[j] = most[j - 1];
        most[j] = q->weight[i];
    }
}

/* Draws one of the remaining tokens; -1: none is left. */
static int draw_one(const double *left, const hn_proposal_dist *q, const hn_propose *p, int drafter) {
    const hn_random_key key = {.seed = p->sampler->params.seed,
                               .position = (uint64_t)p->text.n - 1,
                               .purpose = HN_PURPOSE_PROPOSAL,
                               .drafter = (uint32_t)drafter,
                               .number = (uint32_t)hn_tree_next_number(p->tree, drafter)};
    return hn_rng_draw(&p->sampler->rng, &key, q->id, left, q->n);
}

int hn_draft_dist_draw(hn_draft_dists *l, const hn_draft_dist *dist, const hn_propose *p, int drafter, int row, int n,
                      int16_t child[HN_TREE_ROWS], int worker) {
    const hn_proposal_dist *q = &dist->q;
    double **left = &l->left[worker].weight;
    float most[HN_TREE_ROWS];
    int drawn = 0;
    n = hn_least(n, room_of(p));
    if (n < 1 || !hn_grow((void **)left, &l->left[worker].cap, (size_t)q->n, sizeof **left)) return 0;
    largest(q, n, most);
    for (int i = 0; i < q->n; i++) (*left)[i] = (double)q->weight[i];
    for (; drawn < n; drawn++) {
        const int at = draw_one(*left, q, p, drafter);
        if (at < 0) break;
        const int32_t token = q->id ? q->id[at] : at;
        const int made = hn_tree_add_drawn(p->tree, row, token, drafter, (float)((double)most[drawn] / dist->sum), q, n > 1);
        assert(made >= 0);
        child[drawn] = (int16_t)made;
        (*left)[at] = 0;
    }
    return drawn;
}
