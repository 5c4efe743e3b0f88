/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_loss.c - a row at a time: the best clusters, then the loss of the tokens in them, then that of the clusters. */
#include "train/math/loss/cluster_loss.h"

#include <assert.h>
#include <string.h>
#include <tgmath.h>

#include "train/math/product/exps.h"

enum { FEW_ROWS = 4, CHUNK = 256 };

typedef struct cluster_work {
    hn_mat x, scores, dist, dx, dscores;
    const hn_token_clusters *c;
    const int *dist_row;
    const hn_real *weight;
    hn_real *losses;
} cluster_work;

/* The clusters of a row, best first. */
static void choose(const hn_token_clusters *c, const hn_real *score, int *best) {
    int n = 0;
    for (int i = 0; i < c->count; i++) {
        if (n == c->used && !(score[i] > score[best[n - 1]])) continue;
        int at = n < c->used ? n++ : n - 1;
        for (; at > 0 && score[i] > score[best[at - 1]]; at--) best[at] = best[at - 1];
        best[at] = i;
    }
}

/* e^(x - most) of a cluster's tokens in e; returns their sum. */
static double exps_of(const int *token, int n, const hn_real *x, hn_real most, hn_real *e) {
    double sum = 0;
    for (int i = 0; i < n; i++) e[i] = x[token[i]];
    hn_exps(e, e, most, n);
    for (int i = 0; i < n; i++) sum += (double)e[i];
    return sum;
}

/* Of the tokens in the best clusters. dx may be x: a number is read before its gradient is written. */
static double tokens_loss(const hn_token_clusters *c, const int *best, const hn_real *x, const hn_real *p, int vocab, hn_real weight,
                          hn_real *dx) {
    const int size = vocab / c->count;
    hn_real e[CHUNK], most = x[c->order[best[0] * size]];
    double along = 0, mass = 0, sum = 0;
    bool inside[HN_MOST_CLUSTERS] = {false};
    for (int k = 0; k < c->used; k++) {
        const int *token = c->order + best[k] * size;
        inside[best[k]] = true;
        for (int i = 0; i < size; i++) {
            most = x[token[i]] > most ? x[token[i]] : most;
            along += (double)p[token[i]] * (double)x[token[i]];
            mass += (double)p[token[i]];
        }
    }
    for (int k = 0; k < c->used; k++)
        for (int from = 0; from < size; from += CHUNK) {
            const int *token = c->order + best[k] * size + from, n = size - from < CHUNK ? size - from : CHUNK;
            sum += exps_of(token, n, x, most, e);
            for (int i = 0; i < n; i++) dx[token[i]] = e[i];
        }
    const hn_real scale = (hn_real)((double)weight * mass / sum);
    for (int k = 0; k < c->count; k++)
        for (int i = k * size; i < (k + 1) * size; i++)
            dx[c->order[i]] = inside[k] ? dx[c->order[i]] * scale - weight * p[c->order[i]] : 0;
    return mass * ((double)most + log(sum)) - along;
}

/* Of the clusters; d may be `score`. */
static double clusters_loss(const hn_token_clusters *c, const hn_real *score, const hn_real *p, int vocab, hn_real weight, hn_real *d) {
    const int size = vocab / c->count;
    hn_real mass[HN_MOST_CLUSTERS], most = score[0];
    double along = 0, all = 0, sum = 0;
    for (int k = 0; k < c->count; k++) {
        double part = 0;
        for (int i = k * size; i < (k + 1) * size; i++) part += (double)p[c->order[i]];
        mass[k] = (hn_real)part;
        along += part * (double)score[k];
        all += part;
        most = score[k] > most ? score[k] : most;
    }
    hn_exps(d, score, most, c->count);
    for (int k = 0; k < c->count; k++) sum += (double)d[k];
    const hn_real scale = (hn_real)((double)weight * all / sum);
    for (int k = 0; k < c->count; k++) d[k] = d[k] * scale - weight * mass[k];
    return all * ((double)most + log(sum)) - along;
}

static void cluster_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const cluster_work *w = arg;
    const int vocab = w->x.cols;
    int best[HN_MOST_CLUSTERS];
    for (int r = first; r < end; r++) {
        hn_real *dx = hn_mat_row(w->dx, r), *ds = hn_mat_row(w->dscores, r);
        const hn_real *score = hn_mat_row(w->scores, r), *p = hn_mat_row(w->dist, w->dist_row ? w->dist_row[r] : r);
        w->losses[r] = 0;
        if (w->weight[r] == 0) {
            memset(dx, 0, (size_t)vocab * sizeof *dx);
            memset(ds, 0, (size_t)w->c->count * sizeof *ds);
            continue;
        }
        choose(w->c, score, best);
        const double tokens = tokens_loss(w->c, best, hn_mat_row(w->x, r), p, vocab, w->weight[r], dx);
        w->losses[r] = (hn_real)(tokens + clusters_loss(w->c, score, p, vocab, w->weight[r], ds));
    }
}

double hn_loss_clusters(hn_workers *t, hn_mat logits, hn_mat scores, const hn_token_clusters *c, hn_mat dist, const int *dist_row,
                        const hn_real *weight, hn_mat dlogits, hn_mat dscores, hn_real *losses) {
    assert(c->count >= 1 && c->count <= HN_MOST_CLUSTERS && c->used >= 1 && c->used <= c->count && logits.cols % c->count == 0);
    assert(dist.cols == logits.cols && scores.cols == c->count && scores.rows == logits.rows);
    cluster_work w = {logits, scores, dist, dlogits, dscores, c, dist_row, weight, losses};
    hn_workers_split(t, logits.rows, FEW_ROWS, cluster_rows, &w);
    double sum = 0;
    for (int r = 0; r < logits.rows; r++) sum += (double)weight[r] * (double)losses[r];
    return sum;
}
