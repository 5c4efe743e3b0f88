/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h - what a training run was like, kept small enough for each checkpoint, and an SVG of it: losses of training and of held-out
 * texts, and how often drafts were right in the engine. Nothing of it depends on a clock, so that a run that was ended and went on leaves
 * the picture of an undisturbed one. */
#ifndef HN_PICTURE_H
#define HN_PICTURE_H
#include <stdbool.h>

#include "base/status.h"

enum { HN_RUN_DRAFTS = 16, HN_RUN_MEANS = 128, HN_RUN_CHECKS = 32 };

/* Sums over some steps, one behind the other. */
typedef struct hn_run_history_mean {
    double steps, loss[HN_RUN_DRAFTS];
} hn_run_history_mean;

typedef struct hn_run_history_check {
    double step, tau;               /* tokens a round */
    double loss[HN_RUN_DRAFTS];     /* of the held-out texts */
    double position[HN_RUN_DRAFTS]; /* rounds in which the draft at this depth was right, of all */
} hn_run_history_check;

/* All zero: nothing yet. Doubles alone: the same run has the same bytes. */
typedef struct hn_run_history {
    double steps, tokens;
    double width, n_means; /* steps of each mean but the last */
    double n_checks;
    hn_run_history_mean mean[HN_RUN_MEANS];
    hn_run_history_check check[HN_RUN_CHECKS];
} hn_run_history;

/* One step: losses [n], n at most HN_RUN_DRAFTS. Where there are more steps than means, each is of twice as many. */
void hn_run_history_step(hn_run_history *h, const double *losses, int n, double tokens);
/* A check behind the last step; of two behind the same one the later counts. losses, position [n]. */
void hn_run_history_judge(hn_run_history *h, const double *losses, const double *position, int n, double tau);
/* Of bytes from a file: can it be read without leaving it? */
bool hn_run_history_is_whole(const hn_run_history *h);

typedef struct hn_picture_about {
    const char *head;  /* its name, any bytes */
    int drafts, steps; /* in a row that it learns; steps that are planned */
    double best;       /* tokens a round of the head that is kept */
    double step_cost;  /* bytes of weights that a draft step reads, of those of a pass; 0: not known */
} hn_picture_about;

/* The file is there whole or not at all. */
hunch_status hn_picture_write(const hn_run_history *h, const hn_picture_about *about, const char *path,
                              hunch_error *err);
#endif
