/* SPDX-License-Identifier: Apache-2.0 */
/* norm_back.c - RMS norm. With n = x * inverse, the normed row, and d = dy * gain:
 *     dx = inverse * (d - n * mean(d n)),  dgain = sum over rows of dy n. */
#include <tgmath.h>

#include "train/math/layers/layers_back.h"
#include "train/math/train_private.h"

typedef struct norm_work {
    hn_mat x, y, dx; /* y: forwards the output, backwards its gradient */
    const hn_real *gain;
    hn_real *inverse, *dgain;
    const hn_real *saved; /* inverse, backwards */
    hn_real eps;
    bool add;
} norm_work;

/* Sums of long rows of floats use 16 separate sums, for precision and for vectors. */
enum { LANES = 16 };

static hn_real sum_lanes(hn_real lane[LANES]) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

static hn_real mean_square(const hn_real *x, int n) {
    hn_real lane[LANES] = {0};
    for (int c = 0; c < n; c++) lane[c % LANES] += x[c] * x[c];
    return sum_lanes(lane) / (hn_real)n;
}

static void norm_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const norm_work *w = arg;
    for (int r = first; r < end; r++) {
        const hn_real *x = hn_mat_row(w->x, r);
        hn_real *y = hn_mat_row(w->y, r);
        const hn_real inverse = w->inverse[r] = 1 / sqrt(mean_square(x, w->x.cols) + w->eps);
        for (int c = 0; c < w->x.cols; c++) y[c] = x[c] * inverse * w->gain[c];
    }
}

static void norm_back_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const norm_work *w = arg;
    const int n = w->x.cols;
    for (int r = first; r < end; r++) {
        const hn_real *x = hn_mat_row(w->x, r), *dy = hn_mat_row(w->y, r), inverse = w->saved[r];
        hn_real *dx = hn_mat_row(w->dx, r), lane[LANES] = {0};
        for (int c = 0; c < n; c++) lane[c % LANES] += dy[c] * w->gain[c] * x[c];
        const hn_real along = sum_lanes(lane) * inverse * inverse / (hn_real)n;
        for (int c = 0; c < n; c++) {
            const hn_real d = inverse * (dy[c] * w->gain[c] - x[c] * along);
            dx[c] = w->add ? dx[c] + d : d;
        }
    }
}

static void gain_columns(void *arg, int rank, int first, int end) {
    (void)rank;
    const norm_work *w = arg;
    for (int r = 0; r < w->x.rows; r++) {
        const hn_real *x = hn_mat_row(w->x, r), *dy = hn_mat_row(w->y, r), inverse = w->saved[r];
        for (int c = first; c < end; c++) w->dgain[c] += dy[c] * x[c] * inverse;
    }
}

void hn_rms_norm(hn_workers *t, hn_mat x, const hn_real *gain, hn_real eps, hn_mat y, hn_real *inverse) {
    hn_workers_split(t, x.rows, HN_SOME_ROWS, norm_rows,
                  &(norm_work){.x = x, .y = y, .gain = gain, .inverse = inverse, .eps = eps});
}

void hn_rms_norm_back(hn_workers *t, hn_mat dy, hn_mat x, const hn_real *gain, const hn_real *inverse, hn_mat dx, bool add,
                      hn_real *dgain) {
    norm_work w = {.x = x, .y = dy, .dx = dx, .gain = gain, .saved = inverse, .dgain = dgain, .add = add};
    if (dgain) hn_workers_split(t, x.cols, HN_SOME_COLS, gain_columns, &w); /* before dx, which may be dy */
    if (dx.p) hn_workers_split(t, x.rows, HN_SOME_ROWS, norm_back_rows, &w);
}
