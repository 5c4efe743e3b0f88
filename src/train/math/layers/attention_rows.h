/* SPDX-License-Identifier: Apache-2.0 */
/* attention_rows.h - attention of one row: over a run of keys whose scores are adjacent, and some keys of its own. For
 * attention_back.c and block_attention.c only. */
#ifndef HN_ATTENTION_ROWS_H
#define HN_ATTENTION_ROWS_H
#include <tgmath.h>

#include "train/math/product/exps.h"

enum { HN_ATTENTION_BLOCK = 64, HN_ATTENTION_EXPS = 128 }; /* queries together; weights that are summed at a time */

static inline hn_real hn_row_dot(const hn_real *a, const hn_real *b, int n) {
    hn_real sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static inline void hn_row_add(hn_real *y, hn_real factor, const hn_real *x, int n) {
    for (int i = 0; i < n; i++) y[i] += factor * x[i];
}

/* log of the sum of e^score over n > 0 scores and n_own others. */
static inline hn_real hn_row_log_sum(const hn_real *s, int n, const hn_real *own, int n_own) {
    hn_real most = s[0], sum = 0, e[HN_ATTENTION_EXPS];
    for (int c = 1; c < n; c++) most = s[c] > most ? s[c] : most;
    for (int j = 0; j < n_own; j++) most = own[j] > most ? own[j] : most;
    for (int c = 0; c < n; c += HN_ATTENTION_EXPS) {
        const int some = n - c < HN_ATTENTION_EXPS ? n - c : HN_ATTENTION_EXPS;
        hn_exps(e, s + c, most, some);
        for (int j = 0; j < some; j++) sum += e[j];
    }
    for (int j = 0; j < n_own; j++) sum += exp(own[j] - most);
    return most + log(sum);
}

/* Replaces scores by weights; those from n to `all` are 0. */
static inline void hn_row_weights(hn_real *s, int n, int all, hn_real *own, int n_own, hn_real log_of_sum) {
    hn_exps(s, s, log_of_sum, n);
    for (int c = n; c < all; c++) s[c] = 0;
    hn_exps(own, own, log_of_sum, n_own);
}
#endif
