/* SPDX-License-Identifier: Apache-2.0 */
/* processors.h - what changes single logits before a law is made of them: logit bias, penalties, DRY. The sampler's own;
 * what cuts the law down is support.h. */
#ifndef HN_PROCESSORS_H
#define HN_PROCESSORS_H
#include "sample/sampler.h"

/* Allocates what s->params ask for and copies the bias. On failure hn_processors_fini frees the rest. */
hunch_status hn_processors_init(hn_sampler *s, hunch_error *err);
void hn_processors_fini(hn_sampler *s);

/* The logits behind this history: `logits` themselves if no processor changes any, else s->processed. */
const float *hn_processors_apply(hn_sampler *s, const float *logits, const hn_history *h);
/* hint: the argmax of `logits`, or -1. Returns the argmax of the logits behind this history, -1 if none is a number. */
int32_t hn_processors_best(hn_sampler *s, const float *logits, const hn_history *h, int32_t hint);
#endif
