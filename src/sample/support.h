/* SPDX-License-Identifier: Apache-2.0 */
/* support.h - which tokens can be drawn, and how likely each is: temperature, top-n-sigma, top-k, typical, top-p, min-p
 * and XTC over processed logits. The sampler's own. */
#ifndef HN_SUPPORT_H
#define HN_SUPPORT_H
#include "sample/sampler.h"

/* Lowest id of the largest logit; -1: nothing but NaN and -inf. */
int32_t hn_argmax(const float *l, int n);
/* 1/T as weights are made with it. */
float hn_sampler_scale(const hn_sampler *s);
/* Is any of n logits above this? A loop for vectors. */
bool hn_any_above(const float *l, int n, float threshold);

/* No processor but temperature, and XTC where it acts, takes tokens away. */
bool hn_support_is_all(const hn_sampler *s);
/* Ids and weights of the support into s->id and s->value, in no order; returns how many, at least 1. best: the argmax of l,
 * not -1; xtc: XTC acts at this position. Temperature > 0. */
int hn_support_build(hn_sampler *s, const float *l, int32_t best, bool xtc);
#endif
