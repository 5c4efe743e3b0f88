/* SPDX-License-Identifier: Apache-2.0 */
/* adamw.h - the optimiser: AdamW and clipping by the norm of all gradients as torch has them, and the learning rate of
 * a step. */
#ifndef HN_ADAMW_H
#define HN_ADAMW_H
#include "train/team.h"

typedef struct hn_adamw {
    double beta1, beta2, eps, decay; /* decay of weights, apart from the gradient: w -= rate * decay * w */
    hn_real *mean, *square;          /* [n] moving averages, zeros at first; the caller's */
    long steps;                      /* that were taken */
} hn_adamw;

/* One step of torch.optim.AdamW: w [n] from g [n] * factor. g is not written: zero it for the next batch. */
void hn_adamw_step(hn_team *t, hn_adamw *o, hn_real *w, const hn_real *g, size_t n, double factor, double rate);

/* The root of the sum of g's squares. A NaN or an infinity anywhere makes it one. */
double hn_norm(hn_team *t, const hn_real *g, size_t n);
/* What gradients of this norm are multiplied by so that it becomes at most `most`, as torch.nn.utils.clip_grad_norm_
 * does. */
double hn_clip_factor(double norm, double most);

/* Of step 0, 1, ..: rising to `peak` in warm_up equal steps (the last of them has it), then half a cosine down to
 * `least`, which the step `steps` has and all after it. */
double hn_learning_rate(long step, long warm_up, long steps, double peak, double least);
#endif
