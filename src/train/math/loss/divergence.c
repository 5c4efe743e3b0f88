/* SPDX-License-Identifier: Apache-2.0 */
/* divergence.c - see divergence.h. With f the divergence's derivative by q, the gradient of a row's logits is q (f - Σ q f). */
#include "train/math/loss/divergence.h"

#include <assert.h>
#include <string.h>
#include <tgmath.h>

#include "train/math/product/exps.h"
#include "train/math/loss/loss.h"

enum { FEW_ROWS = 4 };
static const double least = 1e-30; /* lower limit of probabilities in logarithms */

typedef struct work {
    hn_divergence kind;
    hn_mat x, dist, dx;
    const int *dist_row;
    const hn_real *weight;
    hn_real *losses;
} work;

static const char *const names[] = {"forward", "reverse", "jsd", "tvd"};

const char *hn_divergence_name(hn_divergence kind) {
    return names[kind];
}

bool hn_divergence_named(const char *name, hn_divergence *out) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out = (hn_divergence)i;
        return true;
    }
    return false;
}

static double log_of(double p) {
    return log(p > least ? p : least);
}

/* One token's term of the divergence; *f: the derivative by q. */
static double one(hn_divergence kind, double p, double q, double *f) {
    const double middle = (p + q) / 2;
    switch (kind) {
    case HN_KL_REVERSE: {
        const double ratio = log_of(q) - log_of(p);
        *f = ratio; /* plus 1, which has no effect: distributions add up to 1 */
        return q * ratio;
    }
    case HN_JSD: {
        const double to_p = log_of(p) - log_of(middle), to_q = log_of(q) - log_of(middle);
        *f = to_q / 2;
        return (p * to_p + q * to_q) / 2;
    }
    default: *f = q > p ? 0.5 : -0.5; return fabs(p - q) / 2;
    }
}

/* e^(x - largest), as a distribution. */
static void softmax(const hn_real *x, int n, hn_real *q) {
    hn_real most = x[0];
    double sum = 0;
    for (int c = 1; c < n; c++) most = x[c] > most ? x[c] : most;
    hn_exps(q, x, most, n);
    for (int c = 0; c < n; c++) sum += (double)q[c];
    for (int c = 0; c < n; c++) q[c] = (hn_real)((double)q[c] / sum);
}

static void rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    const int n = w->x.cols;
    for (int r = first; r < end; r++) {
        hn_real *d = hn_mat_row(w->dx, r);
        double sum = 0, along = 0, f;
        w->losses[r] = 0;
        if (w->weight[r] == 0) {
            memset(d, 0, (size_t)n * sizeof *d);
            continue;
        }
        const hn_real *p = hn_mat_row(w->dist, w->dist_row ? w->dist_row[r] : r);
        softmax(hn_mat_row(w->x, r), n, d);
        for (int c = 0; c < n; c++) {
            sum += one(w->kind, (double)p[c], (double)d[c], &f);
            along += (double)d[c] * f;
        }
        for (int c = 0; c < n; c++) {
            (void)one(w->kind, (double)p[c], (double)d[c], &f);
            d[c] = (hn_real)((double)w->weight[r] * (double)d[c] * (f - along));
        }
        w->losses[r] = (hn_real)sum;
    }
}

double hn_loss_divergence(hn_workers *t, hn_divergence kind, hn_mat logits, hn_mat dist, const int *dist_row,
                          const hn_real *weight, hn_mat dlogits, hn_real *losses) {
    assert(dist.cols == logits.cols);
    if (kind == HN_KL_FORWARD) return hn_loss_soft(t, logits, dist, dist_row, true, weight, dlogits, losses);
    work w = {kind, logits, dist, dlogits, dist_row, weight, losses};
    double sum = 0;
    hn_workers_split(t, logits.rows, FEW_ROWS, rows, &w);
    for (int r = 0; r < logits.rows; r++) sum += (double)weight[r] * (double)losses[r];
    return sum;
}
