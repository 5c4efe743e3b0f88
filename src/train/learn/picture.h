/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h - the history of a training run, small enough for each checkpoint, and an SVG plot of it: losses of
 * training and of held-out texts, and acceptance in the engine. It does not depend on a clock, so that an interrupted
 * run gives the same plot as an uninterrupted one. */
#ifndef HN_PICTURE_H
#define HN_PICTURE_H
#include <stdbool.h>

#include "base/status.h"

enum { HN_RUN_DRAFTS = 16, HN_RUN_MEANS = 128, HN_RUN_CHECKS = 32 };

/* Sums over some consecutive steps. */
typedef struct hn_run_history_mean {
    double steps, loss[HN_RUN_DRAFTS];
} hn_run_history_mean;

typedef struct hn_run_history_check {
    double step, tau; /* tokens per round */
    double loss[HN_RUN_DRAFTS];     /* of the held-out texts */
    double position[HN_RUN_DRAFTS]; /* share of rounds in which the draft at this depth was accepted */
} hn_run_history_check;

/* All zero: empty. Only doubles: the same run has the same bytes. */
typedef struct hn_run_history {
    double steps, tokens;
    double width, n_means; /* steps of each mean but the last */
    double n_checks;
    hn_run_history_mean mean[HN_RUN_MEANS];
    hn_run_history_check check[HN_RUN_CHECKS];
} hn_run_history;

/* One step: losses [n], n at most HN_RUN_DRAFTS. If there are more steps than means, each mean is over twice as many. */
void hn_run_history_step(hn_run_history *h, const double *losses, int n, double tokens);
/* A check after the last step; the later of two after the same step replaces the earlier. losses, position [n]. */
void hn_run_history_add_check(hn_run_history *h, const double *losses, const double *position, int n, double tau);
/* Whether a history read from a file has valid counts. */
bool hn_run_history_is_whole(const hn_run_history *h);

typedef struct hn_picture_about {
    const char *head;  /* its name, any bytes */
    int drafts, steps; /* drafts that it learns in a row; planned steps */
    double best;       /* tokens per round of the best head */
    double step_cost;  /* bytes of weights that a draft step reads, relative to those of a pass; 0: unknown */
} hn_picture_about;

/* The file is written completely or not at all. */
hunch_status hn_picture_write(const hn_run_history *h, const hn_picture_about *about, const char *path,
                              hunch_error *err);
#endif
