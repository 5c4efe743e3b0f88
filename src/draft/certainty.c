/* SPDX-License-Identifier: Apache-2.0 */
/* certainty.c - see certainty.h. */
#include "draft/certainty.h"

#include <math.h>

#include "base/least.h"

hn_certainty hn_certainty_none(void) {
    return (hn_certainty){NAN, NAN};
}

hn_certainty hn_certainty_of(double largest, double second, double sum, double entropy) {
    return (hn_certainty){(float)((1 - exp(second - largest)) / sum), (float)entropy};
}

hn_certainty hn_certainty_of_logits(const hn_vocab_ops *ops, const float *logits, int n, int32_t best) {
    enum { CHUNK = 1024 };
    const float largest = logits[best];
    float weight[CHUNK], second = -INFINITY;
    double sum = 0, moment = 0; /* of d e^d, d = logit - largest */
    for (int from = 0; from < n; from += CHUNK) {
        const int m = hn_least(n - from, CHUNK);
        ops->weights(logits + from, m, largest, 1, weight);
        for (int i = 0; i < m; i++) {
            if (!(weight[i] > 0)) continue;
            sum += (double)weight[i];
            moment += (double)weight[i] * ((double)logits[from + i] - (double)largest);
            if (logits[from + i] > second && from + i != best) second = logits[from + i];
        }
    }
    return hn_certainty_of((double)largest, (double)second, sum, log(sum) - moment / sum);
}
