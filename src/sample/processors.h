/* SPDX-License-Identifier: Apache-2.0 */
/* processors.h - the processors that change single logits: logit bias, penalties, DRY, forbidden tokens. Internal to the sampler;
 * truncation is in support.h. */
#ifndef HN_PROCESSORS_H
#define HN_PROCESSORS_H
#include "sample/sampler.h"

/* Allocates the memory that s->params need and copies the bias. On failure hn_processors_fini frees the rest. */
hunch_status hn_processors_init(hn_sampler *s, hunch_error *err);
void hn_processors_fini(hn_sampler *s);

/* Whether any of them may change the logits of this position, or of a later one. */
bool hn_processors_act(const hn_sampler *s, uint64_t position);
/* The logits after this history: `logits` themselves if no processor changes any, else s->processed. */
const float *hn_processors_apply(hn_sampler *s, const float *logits, const hn_history *h);
/* hint: the argmax of `logits`, or -1. Returns the argmax of the processed logits, -1 if none is a number. */
int32_t hn_processors_best(hn_sampler *s, const float *logits, const hn_history *h, int32_t hint);
#endif
