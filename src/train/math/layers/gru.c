/* SPDX-License-Identifier: Apache-2.0 */
/* gru.c - see gru.h. */
#include "train/math/layers/gru.h"

#include <tgmath.h>

#include "train/math/train_private.h"

typedef struct work {
    hn_mat gates, own, s, next; /* next: the new state, backwards its gradient */
    hn_mat ds;
} work;

static hn_real sigmoid(hn_real x) {
    return 1 / (1 + exp(-x));
}

static void step_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    const int n = w->s.cols;
    for (int row = first; row < end; row++) {
        const hn_real *own = hn_mat_row(w->own, row), *s = hn_mat_row(w->s, row);
        hn_real *gate = hn_mat_row(w->gates, row), *next = hn_mat_row(w->next, row);
        for (int c = 0; c < n; c++) {
            const hn_real r = sigmoid(gate[c] + own[c]), u = sigmoid(gate[n + c] + own[n + c]);
            const hn_real m = tanh(gate[2 * n + c] + r * own[2 * n + c]);
            gate[c] = r;
            gate[n + c] = u;
            gate[2 * n + c] = m;
            next[c] = m + u * (s[c] - m);
        }
    }
}

static void back_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    const int n = w->s.cols;
    for (int row = first; row < end; row++) {
        const hn_real *s = hn_mat_row(w->s, row), *dnext = hn_mat_row(w->next, row);
        hn_real *gate = hn_mat_row(w->gates, row), *own = hn_mat_row(w->own, row), *ds = hn_mat_row(w->ds, row);
        for (int c = 0; c < n; c++) {
            const hn_real d = dnext[c], r = gate[c], u = gate[n + c], m = gate[2 * n + c];
            const hn_real dm = d * (1 - u) * (1 - m * m);
            ds[c] += d * u;
            gate[c] = dm * own[2 * n + c] * r * (1 - r);
            gate[n + c] = d * (s[c] - m) * u * (1 - u);
            gate[2 * n + c] = dm;
            own[c] = gate[c];
            own[n + c] = gate[n + c];
            own[2 * n + c] = dm * r;
        }
    }
}

void hn_gru_step(hn_workers *t, hn_mat gates, hn_mat own, hn_mat s, hn_mat next) {
    hn_workers_split(t, next.rows, HN_SOME_ROWS, step_rows, &(work){.gates = gates, .own = own, .s = s, .next = next});
}

void hn_gru_step_back(hn_workers *t, hn_mat dnext, hn_mat gates, hn_mat own, hn_mat s, hn_mat ds) {
    hn_workers_split(t, dnext.rows, HN_SOME_ROWS, back_rows, &(work){.gates = gates, .own = own, .s = s, .next = dnext, .ds = ds});
}
