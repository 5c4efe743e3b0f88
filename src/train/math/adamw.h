/* SPDX-License-Identifier: Apache-2.0 */
/* adamw.h - the optimiser: AdamW and clipping by the norm of all gradients as in torch, and the learning rate of a step. */
#ifndef HN_ADAMW_H
#define HN_ADAMW_H
#include "train/math/workers.h"

typedef struct hn_adamw {
    double beta1, beta2, eps, decay; /* weight decay, separate from the gradient: w -= rate * decay * w */
    hn_real *mean, *square;          /* [n] moving averages, zeros at first; the caller's */
    long steps;                      /* done so far */
} hn_adamw;

/* One step of torch.optim.AdamW: updates w [n] by g [n] * factor. g is not changed: zero it for the next batch. */
void hn_adamw_step(hn_workers *t, hn_adamw *o, hn_real *w, const hn_real *g, size_t n, double factor, double rate);

/* The root of the sum of g's squares. NaN or infinity if any number is. */
double hn_gradient_norm(hn_workers *t, const hn_real *g, size_t n);
/* The factor for gradients of this norm that makes it at most `most`, as in torch.nn.utils.clip_grad_norm_. */
double hn_clip_factor(double norm, double most);

/* The rate of step 0, 1, ..: increases to `peak` in warm_up equal steps (the last of them has it), then half a cosine
 * down to `least` at step `steps` and after it. */
double hn_learning_rate(long step, long warm_up, long steps, double peak, double least);
#endif
