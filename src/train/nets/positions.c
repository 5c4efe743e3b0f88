/* SPDX-License-Identifier: Apache-2.0 */
/* positions.c - see positions.h. */
#include "train/nets/positions.h"

#include <assert.h>
#include <string.h>

void hn_one_wait_lay_out(hn_one_wait *a, int most_rows, hn_room *r) {
    a->row = hn_room_take(r, (size_t)most_rows, sizeof *a->row);
    a->dist_row = hn_room_take(r, (size_t)most_rows, sizeof *a->dist_row);
    a->token = hn_room_take(r, (size_t)most_rows, sizeof *a->token);
    a->weight = hn_room_mat(r, most_rows, 1).p;
    a->losses = hn_room_mat(r, most_rows, 1).p;
}

void hn_one_wait_pick(hn_one_wait *a, const hn_net_batch *b, int k, double share) {
    double all = 0;
    a->n = 0;
    for (int text = 0; text < b->texts; text++)
        for (int i = b->start[text]; i + k < b->start[text + 1]; i++) {
            if (b->weight[i + k] == 0) continue;
            a->row[a->n] = i;
            a->dist_row[a->n] = b->dist_row ? b->dist_row[i + k] : i + k;
            a->weight[a->n++] = b->weight[i + k];
            all += (double)b->weight[i + k];
        }
    for (int n = 0; n < a->n; n++) a->weight[n] = (hn_real)((double)a->weight[n] * share / all);
}

void hn_one_wait_tokens(hn_one_wait *a, const hn_net_batch *b, int j) {
    for (int n = 0; n < a->n; n++) a->token[n] = b->token[a->row[n] + j];
}

void hn_one_wait_copy(const hn_one_wait *a, hn_mat from, hn_mat to) {
    assert(from.cols == to.cols && to.rows >= a->n);
    for (int n = 0; n < a->n; n++)
        memcpy(hn_mat_row(to, n), hn_mat_row(from, a->row[n]), (size_t)from.cols * sizeof(hn_real));
}
