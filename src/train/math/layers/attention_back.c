/* SPDX-License-Identifier: Apache-2.0 */
/* attention_back.c - blocks of queries with the keys before them, as small products; a block's own steps one by one.
 *
 * For a block, with P its weights and all below the diagonal of step 0:
 *     forwards    S = Q Kᵀ, P = e^(S / sqrt(d) - log sum), Y = P V
 *     backwards   dP = dY Vᵀ, δ = Σ dY Y a row, dS = P (dP - δ) / sqrt(d),
 *                 dQ = dS K, dK += dSᵀ Q, dV += Pᵀ dY
 * Forwards a piece of work is a text and a head, backwards a text and a key head, to whose gradients no other piece adds.
 * */
#include "train/math/layers/attention_back.h"

#include <assert.h>
#include <tgmath.h>

#include "train/math/layers/attention_rows.h"
#include "train/math/product/product.h"

/* One block of one head. */
typedef struct block {
    const hn_attention *a;
    int first, rows,
        keys; /* queries are rows [first, first + rows); keys of step 0 are rows [first + rows - keys, first + rows) */
    int head;
    hn_mat weights; /* [rows][keys]; zero above the diagonal */
    hn_real *own;   /* [rows][step]: weights of the own steps 1.. */
} block;

typedef struct attend_work {
    hn_workers *workers;
    const hn_attention *a;
    const hn_attention_gradients *d;
    hn_mat y, dy;
    hn_real *log_sums;
    const hn_real *saved; /* log_sums, backwards */
} attend_work;

/* Weights and their gradients, and both of own steps. */
size_t hn_attention_scratch(int rows) {
    return 2 * (size_t)HN_ATTENTION_BLOCK * ((size_t)rows + HN_MOST_STEPS);
}

static hn_mat of_head(const block *b, hn_mat m, int head) {
    return hn_mat_cols(hn_mat_part(m, b->first, b->rows), head * b->a->head_dim, b->a->head_dim);
}

static int key_head(const block *b) {
    return b->head / (b->a->heads / b->a->kv_heads);
}

static hn_mat of_keys(const block *b, hn_mat m) {
    return hn_mat_cols(hn_mat_part(m, b->first + b->rows - b->keys, b->keys), key_head(b) * b->a->head_dim,
                       b->a->head_dim);
}

static hn_real scale_of(const hn_attention *a) {
    return 1 / sqrt((hn_real)a->head_dim);
}

/* Keys of step 0 that query i of the block sees. */
static int seen(const block *b, int i) {
    return b->keys - b->rows + i + 1;
}

/* Scores of all keys, in place of the weights. */
static void scores(hn_workers *t, int rank, const block *b) {
    const hn_attention *a = b->a;
    const hn_mat q = of_head(b, a->q, b->head);
    const hn_real scale = scale_of(a);
    hn_product_alone(t, rank, HN_ABT, q, of_keys(b, a->k[0]), b->weights, false);
    for (int i = 0; i < b->rows; i++) {
        hn_real *s = hn_mat_row(b->weights, i);
        for (int c = 0; c < seen(b, i); c++) s[c] *= scale;
        for (int j = 1; j <= a->step; j++)
            b->own[i * a->step + j - 1] =
                scale * hn_row_dot(hn_mat_row(q, i), hn_mat_row(of_head(b, a->k[j], key_head(b)), i), a->head_dim);
    }
}

/* log of the sum of e^score of row i. */
static hn_real log_sum(const block *b, int i) {
    return hn_row_log_sum(hn_mat_row(b->weights, i), seen(b, i), b->own + i * b->a->step, b->a->step);
}

static void scores_to_weights(const block *b, int i, hn_real log_of_sum) {
    hn_row_weights(hn_mat_row(b->weights, i), seen(b, i), b->keys, b->own + i * b->a->step, b->a->step, log_of_sum);
}

static block block_of(const attend_work *w, int text, int head, int first, hn_real *scratch) {
    const hn_attention *a = w->a;
    const int start = a->start[text], left = a->start[text + 1] - first;
    block b = {.a = a, .first = first, .rows = left < HN_ATTENTION_BLOCK ? left : HN_ATTENTION_BLOCK, .head = head};
    b.keys = first + b.rows - start;
    b.own = scratch;
    b.weights = hn_mat_of(scratch + HN_ATTENTION_BLOCK * HN_MOST_STEPS, b.rows, b.keys);
    return b;
}

static void forward_block(const attend_work *w, int rank, const block *b) {
    const hn_attention *a = b->a;
    const hn_mat y = of_head(b, w->y, b->head);
    scores(w->workers, rank, b);
    for (int i = 0; i < b->rows; i++) {
        const hn_real l = log_sum(b, i);
        w->log_sums[(size_t)(b->first + i) * (size_t)a->heads + (size_t)b->head] = l;
        scores_to_weights(b, i, l);
    }
    hn_product_alone(w->workers, rank, HN_AB, b->weights, of_keys(b, a->v[0]), y, false);
    for (int i = 0; i < b->rows; i++)
        for (int j = 1; j <= a->step; j++)
            hn_row_add(hn_mat_row(y, i), b->own[i * a->step + j - 1], hn_mat_row(of_head(b, a->v[j], key_head(b)), i),
                       a->head_dim);
}

static void forward_pieces(void *arg, int rank, int first, int end) {
    const attend_work *w = arg;
    for (int piece = first; piece < end; piece++) {
        const int text = piece / w->a->heads, head = piece % w->a->heads;
        for (int row = w->a->start[text]; row < w->a->start[text + 1]; row += HN_ATTENTION_BLOCK) {
            const block b = block_of(w, text, head, row, w->workers->scratch[rank]);
            forward_block(w, rank, &b);
        }
    }
}

/* The part of row i's own steps in the gradients. Adds to dq. */
static void own_back(const attend_work *w, const block *b, int i, const hn_real *dy, hn_real delta, hn_real *dq) {
    const hn_attention *a = b->a;
    const int n = a->head_dim, at = key_head(b);
    const hn_real *q = hn_mat_row(of_head(b, a->q, b->head), i);
    for (int j = 1; j <= a->step; j++) {
        const hn_real p = b->own[i * a->step + j - 1];
        const hn_real dp = hn_row_dot(dy, hn_mat_row(of_head(b, a->v[j], at), i), n),
                      ds = p * (dp - delta) * scale_of(a);
        hn_row_add(dq, ds, hn_mat_row(of_head(b, a->k[j], at), i), n);
        hn_row_add(hn_mat_row(of_head(b, w->d->k[j], at), i), ds, q, n);
        hn_row_add(hn_mat_row(of_head(b, w->d->v[j], at), i), p, dy, n);
    }
}

static void backward_block(const attend_work *w, int rank, const block *b, hn_mat ds) {
    const hn_attention *a = b->a;
    const hn_mat q = of_head(b, a->q, b->head), y = of_head(b, w->y, b->head), dy = of_head(b, w->dy, b->head);
    const hn_mat dq = of_head(b, w->d->q, b->head);
    hn_real delta[HN_ATTENTION_BLOCK];
    scores(w->workers, rank, b);
    for (int i = 0; i < b->rows; i++)
        scores_to_weights(b, i, w->saved[(size_t)(b->first + i) * (size_t)a->heads + (size_t)b->head]);
    hn_product_alone(w->workers, rank, HN_ATB, b->weights, dy, of_keys(b, w->d->v[0]), true);
    hn_product_alone(w->workers, rank, HN_ABT, dy, of_keys(b, a->v[0]), ds, false);
    for (int i = 0; i < b->rows; i++) {
        const hn_real *p = hn_mat_row(b->weights, i);
        hn_real *d = hn_mat_row(ds, i);
        delta[i] = hn_row_dot(hn_mat_row(dy, i), hn_mat_row(y, i), a->head_dim);
        for (int c = 0; c < b->keys; c++) d[c] = p[c] * (d[c] - delta[i]) * scale_of(a);
    }
    hn_product_alone(w->workers, rank, HN_AB, ds, of_keys(b, a->k[0]), dq, false);
    hn_product_alone(w->workers, rank, HN_ATB, ds, q, of_keys(b, w->d->k[0]), true);
    for (int i = 0; i < b->rows; i++) own_back(w, b, i, hn_mat_row(dy, i), delta[i], hn_mat_row(dq, i));
}

static void backward_pieces(void *arg, int rank, int first, int end) {
    const attend_work *w = arg;
    const hn_attention *a = w->a;
    const int group = a->heads / a->kv_heads;
    for (int piece = first; piece < end; piece++) {
        const int text = piece / a->kv_heads, at = piece % a->kv_heads;
        for (int head = at * group; head < (at + 1) * group; head++) {
            for (int row = a->start[text]; row < a->start[text + 1]; row += HN_ATTENTION_BLOCK) {
                hn_real *scratch = w->workers->scratch[rank];
                const block b = block_of(w, text, head, row, scratch);
                backward_block(w, rank, &b, hn_mat_of(scratch + w->workers->scratch_count / 2, b.rows, b.keys));
            }
        }
    }
}

static void check(const hn_workers *t, const hn_attention *a) {
    assert(a->heads % a->kv_heads == 0 && a->step >= 0 && a->step < HN_MOST_STEPS);
    for (int i = 0; i < a->texts; i++) assert(t->scratch_count >= hn_attention_scratch(a->start[i + 1] - a->start[i]));
}

void hn_attend(hn_workers *t, const hn_attention *a, hn_mat y, hn_real *log_sums) {
    check(t, a);
    attend_work w = {.workers = t, .a = a, .y = y, .log_sums = log_sums};
    hn_workers_split(t, a->texts * a->heads, 1, forward_pieces, &w);
}

void hn_attend_back(hn_workers *t, const hn_attention *a, hn_mat y, const hn_real *log_sums, hn_mat dy,
                    const hn_attention_gradients *d) {
    check(t, a);
    attend_work w = {.workers = t, .a = a, .d = d, .y = y, .dy = dy, .saved = log_sums};
    hn_workers_split(t, a->texts * a->kv_heads, 1, backward_pieces, &w);
}
