/* SPDX-License-Identifier: Apache-2.0 */
/* run_history.c - see picture.h: the history of a run. */
#include <math.h>
#include <string.h>

#include "train/learn/picture.h"

/* Merges each two neighbours. */
static void halve(hn_run_history *h) {
    for (int i = 0; i < HN_RUN_MEANS / 2; i++) {
        hn_run_history_mean sum = h->mean[2 * i];
        sum.steps += h->mean[2 * i + 1].steps;
        for (int k = 0; k < HN_RUN_DRAFTS; k++) sum.loss[k] += h->mean[2 * i + 1].loss[k];
        h->mean[i] = sum;
    }
    memset(h->mean + HN_RUN_MEANS / 2, 0, sizeof h->mean / 2);
    h->width *= 2;
}

void hn_run_history_step(hn_run_history *h, const double *losses, int n, double tokens) {
    if (h->width < 1) h->width = 1;
    if (h->steps >= h->width * HN_RUN_MEANS) halve(h);
    const int at = (int)(h->steps / h->width);
    h->mean[at].steps++;
    for (int k = 0; k < n; k++) h->mean[at].loss[k] += losses[k];
    h->n_means = at + 1;
    h->steps++;
    h->tokens += tokens;
}

void hn_run_history_add_check(hn_run_history *h, const double *losses, const double *position, int n, double tau) {
    int at = (int)h->n_checks;
    if (at && h->check[at - 1].step >= h->steps) at--;
    if (at == HN_RUN_CHECKS) { /* the first and the latest are kept */
        at--;
        memmove(h->check + 1, h->check + 2, (HN_RUN_CHECKS - 2) * sizeof *h->check);
    }
    hn_run_history_check *c = &h->check[at];
    memset(c, 0, sizeof *c);
    c->step = h->steps;
    c->tau = tau;
    for (int k = 0; k < n; k++) {
        c->loss[k] = losses[k];
        c->position[k] = position[k];
    }
    h->n_checks = at + 1;
}

static bool is_count(double x, double most) {
    return x >= 0 && x <= most && x == floor(x);
}

bool hn_run_history_is_whole(const hn_run_history *h) {
    const double *all = (const double *)(const void *)h;
    for (size_t i = 0; i < sizeof *h / sizeof *all; i++)
        if (!isfinite(all[i])) return false;
    return is_count(h->n_means, HN_RUN_MEANS) && is_count(h->n_checks, HN_RUN_CHECKS) && is_count(h->width, 1e9) &&
           is_count(h->steps, h->width * HN_RUN_MEANS) && (h->n_means <= 0 || h->width >= 1);
}
