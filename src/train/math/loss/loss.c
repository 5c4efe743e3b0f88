/* SPDX-License-Identifier: Apache-2.0 */
/* loss.c - one row of logits at a time: largest, sum of exp, then loss and gradient. */
#include "train/math/loss/loss.h"

#include <assert.h>
#include <string.h>
#include <tgmath.h>

#include "train/math/product/exps.h"

enum { FEW_ROWS = 4 }; /* a row has a vocabulary */

typedef struct loss_work {
    hn_mat x, target, dx;
    const int *ids, *dist_row;
    const hn_real *weight;
    hn_real *losses;
    bool kl;
} loss_work;

/* e^(x - largest) in e; their sum; in *log_sum log of the sum of e^x. e may be x. */
static double exp_row(const hn_real *x, int n, hn_real *e, double *log_sum) {
    hn_real most = x[0];
    for (int c = 1; c < n; c++) most = x[c] > most ? x[c] : most;
    hn_exps(e, x, most, n);
    double sum = 0;
    for (int c = 0; c < n; c++) sum += (double)e[c];
    *log_sum = (double)most + log(sum);
    return sum;
}

static bool masked(const loss_work *w, int r) {
    if (w->weight[r] != 0) return false;
    memset(hn_mat_row(w->dx, r), 0, (size_t)w->x.cols * sizeof(hn_real));
    w->losses[r] = 0;
    return true;
}

static void hard_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const loss_work *w = arg;
    for (int r = first; r < end; r++) {
        if (masked(w, r)) continue;
        assert(w->ids[r] >= 0 && w->ids[r] < w->x.cols);
        const double chosen = (double)hn_mat_row(w->x, r)[w->ids[r]];
        hn_real *d = hn_mat_row(w->dx, r);
        double log_sum;
        const hn_real scale = (hn_real)((double)w->weight[r] / exp_row(hn_mat_row(w->x, r), w->x.cols, d, &log_sum));
        for (int c = 0; c < w->x.cols; c++) d[c] *= scale;
        d[w->ids[r]] -= w->weight[r];
        w->losses[r] = (hn_real)(log_sum - chosen);
    }
}

/* Σ p x, Σ p, and with kl Σ p log p. */
static void soft_sums(const hn_real *x, const hn_real *p, int n, bool kl, double *along, double *mass,
                      double *negentropy) {
    *along = *mass = *negentropy = 0;
    for (int c = 0; c < n; c++) {
        *along += (double)p[c] * (double)x[c];
        *mass += (double)p[c];
        if (kl && p[c] > 0) *negentropy += (double)(p[c] * log(p[c]));
    }
}

static void soft_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const loss_work *w = arg;
    const int n = w->x.cols;
    for (int r = first; r < end; r++) {
        if (masked(w, r)) continue;
        const hn_real *p = hn_mat_row(w->target, w->dist_row ? w->dist_row[r] : r), weight = w->weight[r];
        hn_real *d = hn_mat_row(w->dx, r);
        double along, mass, negentropy, log_sum;
        soft_sums(hn_mat_row(w->x, r), p, n, w->kl, &along, &mass, &negentropy);
        const hn_real scale = (hn_real)((double)weight * mass / exp_row(hn_mat_row(w->x, r), n, d, &log_sum));
        for (int c = 0; c < n; c++) d[c] = d[c] * scale - weight * p[c];
        w->losses[r] = (hn_real)(mass * log_sum - along + negentropy);
    }
}

static void smooth_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const loss_work *w = arg;
    const int n = w->x.cols;
    for (int r = first; r < end; r++) {
        if (masked(w, r)) continue;
        const hn_real *x = hn_mat_row(w->x, r), *y = hn_mat_row(w->target, r), scale = w->weight[r] / (hn_real)n;
        hn_real *dx = hn_mat_row(w->dx, r);
        double sum = 0;
        for (int c = 0; c < n; c++) {
            const hn_real d = x[c] - y[c], size = fabs(d);
            sum += (double)(size < 1 ? d * d / 2 : size - (hn_real)0.5);
            dx[c] = scale * (size < 1 ? d : d > 0 ? 1 : -1);
        }
        w->losses[r] = (hn_real)(sum / n);
    }
}

static double weighted(const loss_work *w) {
    double sum = 0;
    for (int r = 0; r < w->x.rows; r++) sum += (double)w->weight[r] * (double)w->losses[r];
    return sum;
}

double hn_loss_hard(hn_workers *t, hn_mat logits, const int *ids, const hn_real *weight, hn_mat dlogits, hn_real *losses) {
    loss_work w = {.x = logits, .dx = dlogits, .ids = ids, .weight = weight, .losses = losses};
    hn_workers_split(t, logits.rows, FEW_ROWS, hard_rows, &w);
    return weighted(&w);
}

double hn_loss_soft(hn_workers *t, hn_mat logits, hn_mat dist, const int *dist_row, bool kl, const hn_real *weight,
                    hn_mat dlogits, hn_real *losses) {
    assert(dist.cols == logits.cols);
    loss_work w = {.x = logits, .target = dist, .dx = dlogits, .weight = weight, .losses = losses, .kl = kl};
    w.dist_row = dist_row;
    hn_workers_split(t, logits.rows, FEW_ROWS, soft_rows, &w);
    return weighted(&w);
}

double hn_loss_smooth_l1(hn_workers *t, hn_mat x, hn_mat target, const hn_real *weight, hn_mat dx, hn_real *losses) {
    loss_work w = {.x = x, .target = target, .dx = dx, .weight = weight, .losses = losses};
    hn_workers_split(t, x.rows, FEW_ROWS, smooth_rows, &w);
    return weighted(&w);
}

/* ---- distributions of the target ------------------------------------------------------------------------------------------ */

typedef struct dist_work {
    hn_mat logits, dist;
    const int *kept;
    hn_real *inside, *covered;
} dist_work;

static hn_real largest(const hn_real *x, int n) {
    hn_real most = x[0];
    for (int c = 1; c < n; c++) most = x[c] > most ? x[c] : most;
    return most;
}

static void dist_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const dist_work *w = arg;
    const int n = w->dist.cols;
    for (int r = first; r < end; r++) {
        const hn_real *x = hn_mat_row(w->logits, r);
        hn_real *p = hn_mat_row(w->dist, r);
        for (int j = 0; j < n; j++) {
            assert(!w->kept || (w->kept[j] >= 0 && w->kept[j] < w->logits.cols));
            p[j] = x[w->kept ? w->kept[j] : j];
        }
        const hn_real most = largest(x, w->logits.cols);
        if (w->inside) w->inside[r] = largest(p, n) == most;
        double log_sum, all = 0;
        const hn_real scale = (hn_real)(1 / exp_row(p, n, p, &log_sum));
        for (int j = 0; j < n; j++) p[j] *= scale;
        if (!w->covered) continue;
        for (int c = 0; c < w->logits.cols; c++) all += (double)exp(x[c] - most);
        w->covered[r] = (hn_real)exp(log_sum - (double)most - log(all));
    }
}

void hn_target_dist(hn_workers *t, hn_mat logits, const int *kept, hn_mat dist, hn_real *inside, hn_real *covered) {
    assert(kept || dist.cols == logits.cols);
    hn_workers_split(t, logits.rows, FEW_ROWS, dist_rows, &(dist_work){logits, dist, kept, inside, covered});
}
