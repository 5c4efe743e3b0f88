/* SPDX-License-Identifier: Apache-2.0 */
/* support.h - the tokens that can be drawn and their weights: temperature, top-n-sigma, top-k, typical, top-p, min-p and XTC
 * over processed logits. Internal to the sampler. */
#ifndef HN_SUPPORT_H
#define HN_SUPPORT_H
#include "sample/sampler.h"

/* 1/T as used for weights. */
float hn_sampler_scale(const hn_sampler *s);
/* True if no parameter but XTC, if that acts, drops tokens. */
bool hn_support_is_all(const hn_sampler *s);

/* The largest logit; writes those of all buckets to s->bucket, which the calls below read. -inf: nothing can be drawn. */
float hn_support_maxima(hn_sampler *s, const float *l);
int32_t hn_support_best(const hn_sampler *s, const float *l, float max); /* lowest id of the largest, max > -inf */
/* Writes ids and weights of the support to s->id and s->value, by ascending id; returns their number, at least 1. xtc: XTC acts
 * at this position. max > -inf, temperature > 0. */
int hn_support_build(hn_sampler *s, const float *l, float max, bool xtc);
#endif
