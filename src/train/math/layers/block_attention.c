/* SPDX-License-Identifier: Apache-2.0 */
/* block_attention.c - several consecutive blocks together with the keys of their text as small products, and each row's
 * own keys one by one. The arithmetic is that of attention_back.c; a piece of work is a text and a head forwards, a
 * text and a key head backwards. */
#include "train/math/layers/block_attention.h"

#include <assert.h>
#include <tgmath.h>

#include "train/math/layers/attention_rows.h"
#include "train/math/product/product.h"

/* Whole blocks of one text, of at most HN_ATTENTION_BLOCK rows together, and one head. */
typedef struct some {
    const hn_block_attention *a;
    const hn_text_block *block;
    int blocks, first, rows; /* rows [first, first + rows) of those of all blocks */
    int start, keys;         /* rows [start, start + keys) of the texts: all that any of these blocks sees */
    int head;
    hn_mat weights; /* [rows][keys] */
    hn_real *own;   /* [rows][HN_MOST_BLOCK] */
} some;

typedef struct work {
    hn_workers *workers;
    const hn_block_attention *a;
    const hn_block_gradients *d;
    hn_mat y, dy;
    hn_real *log_sums;
    const hn_real *saved; /* log_sums, backwards */
} work;

/* One row of a block. */
typedef struct row {
    int at;         /* among the rows of `some` */
    int sees;       /* keys of the text */
    int own, n_own; /* rows of all blocks whose keys it sees: [own, own + n_own) */
} row;

static row row_of(const some *s, const hn_text_block *b, int i) {
    return (row){b->first - s->first + i, b->sees, b->first, s->a->ahead ? b->rows : i + 1};
}

static hn_mat of_head(const some *s, hn_mat m) {
    return hn_mat_cols(hn_mat_part(m, s->first, s->rows), s->head * s->a->head_dim, s->a->head_dim);
}

static int key_column(const some *s) {
    return s->head / (s->a->heads / s->a->kv_heads) * s->a->head_dim;
}

static hn_mat of_keys(const some *s, hn_mat m) {
    return hn_mat_cols(hn_mat_part(m, s->start, s->keys), key_column(s), s->a->head_dim);
}

/* The head's part of a key or a value of a block's row. */
static hn_real *own_of(const some *s, hn_mat m, int of) {
    return hn_mat_row(m, of) + key_column(s);
}

static hn_real scale_of(const hn_block_attention *a) {
    return 1 / sqrt((hn_real)a->head_dim);
}

static some some_of(const work *w, int text, int head, int block, hn_real *scratch) {
    const hn_block_attention *a = w->a;
    some s = {.a = a, .block = a->block + block, .first = a->block[block].first, .start = a->start[text], .head = head};
    for (; block + s.blocks < a->of[text + 1]; s.blocks++) {
        const hn_text_block *b = &s.block[s.blocks];
        if (s.rows + b->rows > HN_ATTENTION_BLOCK) break;
        assert(b->first == s.first + s.rows && b->rows <= HN_MOST_BLOCK && b->sees > 0);
        s.rows += b->rows;
        if (b->sees > s.keys) s.keys = b->sees;
    }
    s.own = scratch;
    s.weights = hn_mat_of(scratch + HN_ATTENTION_BLOCK * HN_MOST_BLOCK, s.rows, s.keys);
    return s;
}

/* Scores of all keys in place of the weights. */
static void scores(hn_workers *t, int rank, const some *s) {
    const hn_block_attention *a = s->a;
    const hn_mat q = of_head(s, a->q);
    const hn_real scale = scale_of(a);
    hn_product_alone(t, rank, HN_ABT, q, of_keys(s, a->k), s->weights, false);
    for (int b = 0; b < s->blocks; b++) {
        for (int i = 0; i < s->block[b].rows; i++) {
            const row r = row_of(s, &s->block[b], i);
            hn_real *text = hn_mat_row(s->weights, r.at);
            for (int c = 0; c < r.sees; c++) text[c] *= scale;
            for (int j = 0; j < r.n_own; j++)
                s->own[r.at * HN_MOST_BLOCK + j] =
                    scale * hn_row_dot(hn_mat_row(q, r.at), own_of(s, a->own_k, r.own + j), a->head_dim);
        }
    }
}

static void weights_of(const some *s, row r, hn_real log_of_sum) {
    hn_row_weights(hn_mat_row(s->weights, r.at), r.sees, s->keys, s->own + r.at * HN_MOST_BLOCK, r.n_own, log_of_sum);
}

static size_t sum_at(const some *s, row r) {
    return (size_t)(s->first + r.at) * (size_t)s->a->heads + (size_t)s->head;
}

static void forward_some(const work *w, int rank, const some *s) {
    const hn_block_attention *a = s->a;
    const hn_mat y = of_head(s, w->y);
    scores(w->workers, rank, s);
    for (int b = 0; b < s->blocks; b++) {
        for (int i = 0; i < s->block[b].rows; i++) {
            const row r = row_of(s, &s->block[b], i);
            const hn_real l =
                hn_row_log_sum(hn_mat_row(s->weights, r.at), r.sees, s->own + r.at * HN_MOST_BLOCK, r.n_own);
            w->log_sums[sum_at(s, r)] = l;
            weights_of(s, r, l);
        }
    }
    hn_product_alone(w->workers, rank, HN_AB, s->weights, of_keys(s, a->v), y, false);
    for (int b = 0; b < s->blocks; b++) {
        for (int i = 0; i < s->block[b].rows; i++) {
            const row r = row_of(s, &s->block[b], i);
            for (int j = 0; j < r.n_own; j++)
                hn_row_add(hn_mat_row(y, r.at), s->own[r.at * HN_MOST_BLOCK + j], own_of(s, a->own_v, r.own + j),
                           a->head_dim);
        }
    }
}

static void forward_pieces(void *arg, int rank, int first, int end) {
    const work *w = arg;
    for (int piece = first; piece < end; piece++) {
        const int text = piece / w->a->heads, head = piece % w->a->heads;
        for (int block = w->a->of[text], next; block < w->a->of[text + 1]; block = next) {
            const some s = some_of(w, text, head, block, w->workers->scratch[rank]);
            next = block + s.blocks;
            forward_some(w, rank, &s);
        }
    }
}

/* The part of a row's own keys in the gradients. Adds to dq. */
static void own_back(const work *w, const some *s, row r, const hn_real *q, const hn_real *dy, hn_real delta,
                     hn_real *dq) {
    const hn_block_attention *a = s->a;
    const int n = a->head_dim;
    for (int j = 0; j < r.n_own; j++) {
        const hn_real p = s->own[r.at * HN_MOST_BLOCK + j];
        const hn_real dp = hn_row_dot(dy, own_of(s, a->own_v, r.own + j), n), ds = p * (dp - delta) * scale_of(a);
        hn_row_add(dq, ds, own_of(s, a->own_k, r.own + j), n);
        hn_row_add(own_of(s, w->d->own_k, r.own + j), ds, q, n);
        hn_row_add(own_of(s, w->d->own_v, r.own + j), p, dy, n);
    }
}

/* ds: room for [rows][keys]. */
static void backward_some(const work *w, int rank, const some *s, hn_mat ds) {
    const hn_block_attention *a = s->a;
    const hn_mat q = of_head(s, a->q), y = of_head(s, w->y), dy = of_head(s, w->dy), dq = of_head(s, w->d->q);
    hn_real delta[HN_ATTENTION_BLOCK];
    scores(w->workers, rank, s);
    for (int b = 0; b < s->blocks; b++)
        for (int i = 0; i < s->block[b].rows; i++) {
            const row r = row_of(s, &s->block[b], i);
            weights_of(s, r, w->saved[sum_at(s, r)]);
        }
    hn_product_alone(w->workers, rank, HN_ATB, s->weights, dy, of_keys(s, w->d->v), true);
    hn_product_alone(w->workers, rank, HN_ABT, dy, of_keys(s, a->v), ds, false);
    for (int i = 0; i < s->rows; i++) {
        const hn_real *p = hn_mat_row(s->weights, i);
        hn_real *d = hn_mat_row(ds, i);
        delta[i] = hn_row_dot(hn_mat_row(dy, i), hn_mat_row(y, i), a->head_dim);
        for (int c = 0; c < s->keys; c++) d[c] = p[c] * (d[c] - delta[i]) * scale_of(a);
    }
    hn_product_alone(w->workers, rank, HN_AB, ds, of_keys(s, a->k), dq, false);
    hn_product_alone(w->workers, rank, HN_ATB, ds, q, of_keys(s, w->d->k), true);
    for (int b = 0; b < s->blocks; b++)
        for (int i = 0; i < s->block[b].rows; i++) {
            const row r = row_of(s, &s->block[b], i);
            own_back(w, s, r, hn_mat_row(q, r.at), hn_mat_row(dy, r.at), delta[r.at], hn_mat_row(dq, r.at));
        }
}

static void backward_pieces(void *arg, int rank, int first, int end) {
    const work *w = arg;
    const hn_block_attention *a = w->a;
    const int group = a->heads / a->kv_heads;
    for (int piece = first; piece < end; piece++) {
        const int text = piece / a->kv_heads, at = piece % a->kv_heads;
        for (int head = at * group; head < (at + 1) * group; head++) {
            for (int block = a->of[text], next; block < a->of[text + 1]; block = next) {
                hn_real *scratch = w->workers->scratch[rank];
                const some s = some_of(w, text, head, block, scratch);
                next = block + s.blocks;
                backward_some(w, rank, &s, hn_mat_of(scratch + w->workers->scratch_count / 2, s.rows, s.keys));
            }
        }
    }
}

static void check(const hn_workers *t, const hn_block_attention *a) {
    assert(a->heads % a->kv_heads == 0);
    for (int i = 0; i < a->texts; i++) assert(t->scratch_count >= hn_attention_scratch(a->start[i + 1] - a->start[i]));
}

void hn_block_attend(hn_workers *t, const hn_block_attention *a, hn_mat y, hn_real *log_sums) {
    check(t, a);
    work w = {.workers = t, .a = a, .y = y, .log_sums = log_sums};
    hn_workers_split(t, a->texts * a->heads, 1, forward_pieces, &w);
}

void hn_block_attend_back(hn_workers *t, const hn_block_attention *a, hn_mat y, const hn_real *log_sums, hn_mat dy,
                          const hn_block_gradients *d) {
    check(t, a);
    work w = {.workers = t, .a = a, .d = d, .y = y, .dy = dy, .saved = log_sums};
    hn_workers_split(t, a->texts * a->kv_heads, 1, backward_pieces, &w);
}
