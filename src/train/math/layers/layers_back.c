/* SPDX-License-Identifier: Apache-2.0 */
/* layers_back.c - linear, embedding, rotation, SwiGLU and sums; the norm is norm_back.c. */
#include "train/math/layers/layers_back.h"

#include <assert.h>
#include <string.h>
#include <tgmath.h>

#include "train/math/product/exps.h"
#include "train/math/product/product.h"
#include "train/math/train_private.h"

/* ---- linear ------------------------------------------------------------------------------------------------------ */

typedef struct bias_work {
    hn_mat y;
    const hn_real *bias;
    hn_real *dbias;
} bias_work;

static void add_bias(void *arg, int rank, int first, int end) {
    (void)rank;
    const bias_work *w = arg;
    for (int r = first; r < end; r++) {
        hn_real *y = hn_mat_row(w->y, r);
        for (int c = 0; c < w->y.cols; c++) y[c] += w->bias[c];
    }
}

/* Columns [first, end), rows ascending. */
static void sum_columns(void *arg, int rank, int first, int end) {
    (void)rank;
    const bias_work *w = arg;
    for (int r = 0; r < w->y.rows; r++) {
        const hn_real *y = hn_mat_row(w->y, r);
        for (int c = first; c < end; c++) w->dbias[c] += y[c];
    }
}

void hn_linear(hn_workers *t, hn_mat x, hn_mat w, const hn_real *bias, hn_mat y) {
    hn_product(t, HN_ABT, x, w, y, false);
    if (bias) hn_workers_split(t, y.rows, HN_SOME_ROWS, add_bias, &(bias_work){y, bias, NULL});
}

void hn_linear_back(hn_workers *t, hn_mat dy, hn_mat x, hn_mat w, hn_mat dx, bool add, hn_mat dw, hn_real *dbias) {
    if (dx.p) hn_product(t, HN_AB, dy, w, dx, add);
    if (dw.p) hn_product(t, HN_ATB, dy, x, dw, true);
    if (dbias) hn_workers_split(t, dy.cols, HN_SOME_COLS, sum_columns, &(bias_work){dy, NULL, dbias});
}

/* ---- embedding --------------------------------------------------------------------------------------------------- */

typedef struct embed_work {
    hn_mat table, rows;
    const int *ids;
} embed_work;

static void gather(void *arg, int rank, int first, int end) {
    (void)rank;
    const embed_work *w = arg;
    for (int r = first; r < end; r++) {
        assert(w->ids[r] >= 0 && w->ids[r] < w->table.rows);
        memcpy(hn_mat_row(w->rows, r), hn_mat_row(w->table, w->ids[r]), (size_t)w->rows.cols * sizeof(hn_real));
    }
}

/* By columns: repeated tokens are added in the order of the rows. */
static void scatter(void *arg, int rank, int first, int end) {
    (void)rank;
    const embed_work *w = arg;
    for (int r = 0; r < w->rows.rows; r++) {
        const hn_real *from = hn_mat_row(w->rows, r);
        hn_real *to = hn_mat_row(w->table, w->ids[r]);
        for (int c = first; c < end; c++) to[c] += from[c];
    }
}

void hn_embed(hn_workers *t, hn_mat table, const int *ids, hn_mat y) {
    assert(table.cols == y.cols);
    hn_workers_split(t, y.rows, HN_SOME_ROWS, gather, &(embed_work){table, y, ids});
}

void hn_embed_back(hn_workers *t, hn_mat dy, const int *ids, hn_mat dtable) {
    assert(dtable.cols == dy.cols);
    hn_workers_split(t, dy.cols, HN_SOME_COLS, scatter, &(embed_work){dtable, dy, ids});
}

/* ---- rotation ---------------------------------------------------------------------------------------------------- */

typedef struct rotate_work {
    hn_mat x;
    int head_dim, later;
    double theta, sign;
    const int *position;
} rotate_work;

static void rotate_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const rotate_work *w = arg;
    const int half = w->head_dim / 2;
    for (int i = 0; i < half; i++) {
        const double turn = pow(w->theta, -2.0 * i / w->head_dim);
        for (int r = first; r < end; r++) {
            const double angle = (double)(w->position[r] + w->later) * turn;
            const hn_real c = (hn_real)cos(angle), s = (hn_real)(w->sign * sin(angle));
            hn_real *x = hn_mat_row(w->x, r) + i;
            for (int h = 0; h < w->x.cols; h += w->head_dim) {
                const hn_real a = x[h], b = x[h + half];
                x[h] = a * c - b * s;
                x[h + half] = b * c + a * s;
            }
        }
    }
}

void hn_rotate(hn_workers *t, hn_mat x, int head_dim, double theta, const int *position, int later) {
    assert(x.cols % head_dim == 0 && head_dim % 2 == 0);
    hn_workers_split(t, x.rows, HN_SOME_ROWS, rotate_rows, &(rotate_work){x, head_dim, later, theta, 1, position});
}

void hn_rotate_back(hn_workers *t, hn_mat dx, int head_dim, double theta, const int *position, int later) {
    assert(dx.cols % head_dim == 0 && head_dim % 2 == 0);
    hn_workers_split(t, dx.rows, HN_SOME_ROWS, rotate_rows, &(rotate_work){dx, head_dim, later, theta, -1, position});
}

/* ---- SwiGLU ------------------------------------------------------------------------------------------------------ */

enum { EXPS = 128 }; /* gates at a time */

typedef struct swiglu_work {
    hn_mat gate, up, y, dgate, dup; /* y: forwards the output, backwards its gradient */
} swiglu_work;

/* 1 / (1 + e^-g) of EXPS gates or fewer. */
static void sigmoids(const hn_real *gate, int n, hn_real *s) {
    for (int c = 0; c < n; c++) s[c] = -gate[c];
    hn_exps(s, s, 0, n);
    for (int c = 0; c < n; c++) s[c] = 1 / (1 + s[c]);
}

static void swiglu_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const swiglu_work *w = arg;
    for (int r = first; r < end; r++) {
        const hn_real *gate = hn_mat_row(w->gate, r), *up = hn_mat_row(w->up, r);
        hn_real *y = hn_mat_row(w->y, r), s[EXPS];
        for (int at = 0; at < w->y.cols; at += EXPS) {
            const int n = w->y.cols - at < EXPS ? w->y.cols - at : EXPS;
            sigmoids(gate + at, n, s);
            for (int c = 0; c < n; c++) y[at + c] = gate[at + c] * s[c] * up[at + c];
        }
    }
}

/* d silu(g) / dg = s (1 + g (1 - s)), s = 1 / (1 + e^-g). */
static void swiglu_back_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const swiglu_work *w = arg;
    for (int r = first; r < end; r++) {
        const hn_real *gate = hn_mat_row(w->gate, r), *up = hn_mat_row(w->up, r), *dy = hn_mat_row(w->y, r);
        hn_real *dgate = hn_mat_row(w->dgate, r), *dup = hn_mat_row(w->dup, r), sigmoid[EXPS];
        for (int at = 0; at < w->y.cols; at += EXPS) {
            const int n = w->y.cols - at < EXPS ? w->y.cols - at : EXPS;
            sigmoids(gate + at, n, sigmoid);
            for (int i = 0; i < n; i++) {
                const int c = at + i;
                const hn_real g = gate[c], s = sigmoid[i], u = up[c];
                dup[c] = dy[c] * g * s;
                dgate[c] = dy[c] * u * s * (1 + g * (1 - s));
            }
        }
    }
}

void hn_swiglu(hn_workers *t, hn_mat gate, hn_mat up, hn_mat y) {
    hn_workers_split(t, y.rows, HN_SOME_ROWS, swiglu_rows, &(swiglu_work){.gate = gate, .up = up, .y = y});
}

void hn_swiglu_back(hn_workers *t, hn_mat dy, hn_mat gate, hn_mat up, hn_mat dgate, hn_mat dup) {
    hn_workers_split(t, dy.rows, HN_SOME_ROWS, swiglu_back_rows, &(swiglu_work){gate, up, dy, dgate, dup});
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

typedef struct sum_work {
    hn_mat a, b, y;
} sum_work;

static void sum_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const sum_work *w = arg;
    for (int r = first; r < end; r++) {
        const hn_real *a = hn_mat_row(w->a, r), *b = hn_mat_row(w->b, r);
        hn_real *y = hn_mat_row(w->y, r);
        for (int c = 0; c < w->y.cols; c++) y[c] = a[c] + b[c];
    }
}

void hn_sum(hn_workers *t, hn_mat a, hn_mat b, hn_mat y) {
    hn_workers_split(t, y.rows, HN_SOME_ROWS, sum_rows, &(sum_work){a, b, y});
}
