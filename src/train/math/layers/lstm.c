/* SPDX-License-Identifier: Apache-2.0 */
/* lstm.c - see lstm.h. */
#include "train/math/layers/lstm.h"

#include <tgmath.h>

#include "train/math/train_private.h"

typedef struct work {
    hn_mat gates, h, dgates; /* h: the output, backwards its gradient */
} work;

static hn_real sigmoid(hn_real x) {
    return 1 / (1 + exp(-x));
}

static void output_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    const int n = w->h.cols;
    for (int r = first; r < end; r++) {
        const hn_real *gate = hn_mat_row(w->gates, r);
        hn_real *h = hn_mat_row(w->h, r);
        for (int c = 0; c < n; c++) h[c] = sigmoid(gate[3 * n + c]) * tanh(sigmoid(gate[c]) * tanh(gate[2 * n + c]));
    }
}

static void back_rows(void *arg, int rank, int first, int end) {
    (void)rank;
    const work *w = arg;
    const int n = w->h.cols;
    for (int r = first; r < end; r++) {
        const hn_real *gate = hn_mat_row(w->gates, r), *dh = hn_mat_row(w->h, r);
        hn_real *d = hn_mat_row(w->dgates, r);
        for (int c = 0; c < n; c++) {
            const hn_real in = sigmoid(gate[c]), fresh = tanh(gate[2 * n + c]), out = sigmoid(gate[3 * n + c]), cell = tanh(in * fresh);
            const hn_real dcell = dh[c] * out * (1 - cell * cell);
            d[c] = dcell * fresh * in * (1 - in);
            d[n + c] = 0;
            d[2 * n + c] = dcell * in * (1 - fresh * fresh);
            d[3 * n + c] = dh[c] * cell * out * (1 - out);
        }
    }
}

void hn_lstm_output(hn_workers *t, hn_mat gates, hn_mat h) {
    hn_workers_split(t, h.rows, HN_SOME_ROWS, output_rows, &(work){.gates = gates, .h = h});
}

void hn_lstm_output_back(hn_workers *t, hn_mat dh, hn_mat gates, hn_mat dgates) {
    hn_workers_split(t, dh.rows, HN_SOME_ROWS, back_rows, &(work){.gates = gates, .h = dh, .dgates = dgates});
}
