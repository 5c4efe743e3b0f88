/* SPDX-License-Identifier: Apache-2.0 */
/* certainty.h - how sure a drafter's model is of the token after a row: two numbers of the softmax at temperature 1 of the logits that it
 * has there, whatever the request's sampling makes of them. They are known before a draft is drawn, so a decision by them changes no
 * distribution (verification.md 11).
 *
 *   margin   the difference of the two largest probabilities. (The difference of their logits, by which vLLM predicts acceptance, is
 *            log(p / (p - margin)) with the largest probability p.)
 *   entropy  in nats; AdaEDL (2410.18351) stops drafting where 1 - sqrt(0.2 entropy), a bound of the acceptance, is low
 *
 * NAN, NAN: the drafter has no logits, or nobody asked (hn_propose.certainty).
 */
#ifndef HN_CERTAINTY_H
#define HN_CERTAINTY_H
#include <stdint.h>

#include "ops/vocab_ops.h"

typedef struct hn_certainty {
    float margin, entropy;
} hn_certainty;

hn_certainty hn_certainty_none(void);
/* second: the second largest logit, -infinity: there is none; sum: of e^(logit - largest). */
hn_certainty hn_certainty_of(double largest, double second, double sum, double entropy);
/* Of a row of n logits whose largest, a number, is that of `best`. */
hn_certainty hn_certainty_of_logits(const hn_vocab_ops *ops, const float *logits, int n, int32_t best);
#endif
