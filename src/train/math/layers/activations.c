/* SPDX-License-Identifier: Apache-2.0 */
/* activations.c - see activations.h. */
#include "train/math/layers/activations.h"

#include <tgmath.h>

#include "train/math/product/exps.h"
#include "train/math/train_private.h"

enum { SOME = 128 }; /* numbers at a time */

typedef struct work {
    hn_mat z, x, y; /* y: forwards the output, backwards the gradient of z; x: the added matrix, or the gradient of the output */
    const hn_real *bias;
    hn_mat dy, dx; /* gradients of the gated values and their input */
    bool add;
} work;

/* 1 / (1 + e^-z) of SOME numbers or fewer. */
static void sigmoids(const hn_real *z, int n, hn_real *s) {
    for (int c = 0; c < n; c++) s[c] = -z[c];
    hn_exps(s, s, 0, n);
    for (int c = 0; c < n; c++) s[c] = 1 / (1 + s[c]);
}

static int piece(const work *w, int at) {
    return w->z.cols - at < SOME ? w->z.cols - at : SOME;
}

static void silu_add_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    hn_real s[SOME];
    for (int r = first; r < end; r++)
        for (int at = 0; at < w->z.cols; at += SOME) {
            const hn_real *z = hn_mat_row(w->z, r) + at, *x = hn_mat_row(w->x, r) + at;
            hn_real *y = hn_mat_row(w->y, r) + at;
            const int n = piece(w, at);
            sigmoids(z, n, s);
            for (int c = 0; c < n; c++) y[c] = x[c] + z[c] * s[c];
        }
}

static void silu_back_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    hn_real s[SOME];
    for (int r = first; r < end; r++)
        for (int at = 0; at < w->z.cols; at += SOME) {
            const hn_real *z = hn_mat_row(w->z, r) + at, *dy = hn_mat_row(w->x, r) + at;
            hn_real *dz = hn_mat_row(w->y, r) + at;
            const int n = piece(w, at);
            sigmoids(z, n, s);
            for (int c = 0; c < n; c++) dz[c] = dy[c] * s[c] * (1 + z[c] * (1 - s[c]));
        }
}

void hn_silu_add(hn_workers *t, hn_mat z, hn_mat x, hn_mat y) {
    hn_workers_split(t, y.rows, HN_SOME_ROWS, silu_add_rows, &(work){.z = z, .x = x, .y = y});
}

void hn_silu_back(hn_workers *t, hn_mat dy, hn_mat z, hn_mat dz) {
    hn_workers_split(t, dz.rows, HN_SOME_ROWS, silu_back_rows, &(work){.z = z, .x = dy, .y = dz});
}

static const hn_real root_half = (hn_real)0.70710678118654752440;

static void gelu_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    for (int r = first; r < end; r++) {
        const hn_real *z = hn_mat_row(w->z, r);
        hn_real *y = hn_mat_row(w->y, r);
        for (int c = 0; c < w->z.cols; c++) {
            const hn_real x = z[c] + w->bias[c];
            y[c] = x * (1 + erf(x * root_half)) / 2;
        }
    }
}

/* gelu'(x) = (1 + erf(x / sqrt 2)) / 2 + x e^(-x^2 / 2) / sqrt(2 pi) */
static void gelu_back_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    const hn_real density = (hn_real)0.39894228040143267794;
    for (int r = first; r < end; r++) {
        const hn_real *z = hn_mat_row(w->z, r), *dy = hn_mat_row(w->x, r);
        hn_real *dz = hn_mat_row(w->y, r);
        for (int c = 0; c < w->z.cols; c++) {
            const hn_real x = z[c] + w->bias[c];
            dz[c] = dy[c] * ((1 + erf(x * root_half)) / 2 + x * density * exp(-x * x / 2));
        }
    }
}

void hn_gelu(hn_workers *t, hn_mat z, const hn_real *bias, hn_mat y) {
    hn_workers_split(t, y.rows, HN_SOME_ROWS, gelu_rows, &(work){.z = z, .y = y, .bias = bias});
}

void hn_gelu_back(hn_workers *t, hn_mat dy, hn_mat z, const hn_real *bias, hn_mat dz) {
    hn_workers_split(t, dz.rows, HN_SOME_ROWS, gelu_back_rows, &(work){.z = z, .x = dy, .y = dz, .bias = bias});
}

/* ---- gates --------------------------------------------------------------------------------------------------------------- */

static void gated_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    hn_real s[SOME];
    for (int r = first; r < end; r++)
        for (int at = 0; at < w->z.cols; at += SOME) {
            const hn_real *x = hn_mat_row(w->x, r) + at;
            hn_real *y = hn_mat_row(w->y, r) + at;
            const int n = piece(w, at);
            sigmoids(hn_mat_row(w->z, r) + at, n, s);
            for (int c = 0; c < n; c++) y[c] = s[c] * x[c] + (w->add ? y[c] : 0);
        }
}

static void gated_back_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    hn_real s[SOME];
    for (int r = first; r < end; r++)
        for (int at = 0; at < w->z.cols; at += SOME) {
            const hn_real *x = hn_mat_row(w->x, r) + at, *dy = hn_mat_row(w->dy, r) + at;
            hn_real *dgate = hn_mat_row(w->y, r) + at, *dx = hn_mat_row(w->dx, r) + at;
            const int n = piece(w, at);
            sigmoids(hn_mat_row(w->z, r) + at, n, s);
            for (int c = 0; c < n; c++) {
                const hn_real d = dy[c];
                dgate[c] = d * x[c] * s[c] * (1 - s[c]);
                dx[c] = d * s[c] + (w->add ? dx[c] : 0);
            }
        }
}

void hn_gated(hn_workers *t, hn_mat gate, hn_mat x, hn_mat y, bool add) {
    hn_workers_split(t, y.rows, HN_SOME_ROWS, gated_rows, &(work){.z = gate, .x = x, .y = y, .add = add});
}

void hn_gated_back(hn_workers *t, hn_mat dy, hn_mat gate, hn_mat x, hn_mat dgate, hn_mat dx, bool add) {
    hn_workers_split(t, dy.rows, HN_SOME_ROWS, gated_back_rows, &(work){.z = gate, .x = x, .y = dgate, .dy = dy, .dx = dx, .add = add});
}
