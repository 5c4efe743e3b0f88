/* SPDX-License-Identifier: Apache-2.0 */
/* support.h - which tokens can be drawn, and how likely each is: temperature, top-n-sigma, top-k, typical, top-p, min-p
 * and XTC over processed logits. The sampler's own. */
#ifndef HN_SUPPORT_H
#define HN_SUPPORT_H
#include "sample/sampler.h"

/* 1/T as weights are made with it. */
float hn_sampler_scale(const hn_sampler *s);
/* No processor but temperature, and XTC where it acts, takes tokens away. */
bool hn_support_is_all(const hn_sampler *s);

/* The largest logit, and those of all blocks into s->block, which the calls below read; -inf: nothing can be drawn. */
float hn_support_look(hn_sampler *s, const float *l);
int32_t hn_support_best(const hn_sampler *s, const float *l, float max); /* lowest id of the largest, max > -inf */
/* Ids and weights of the support into s->id and s->value, by rising id; returns how many, at least 1. xtc: XTC acts at this
 * position. max > -inf, temperature > 0. */
int hn_support_build(hn_sampler *s, const float *l, float max, bool xtc);
#endif
