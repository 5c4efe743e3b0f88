/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_heads.c - products with a matrix for each head: the rows of the matrices of latent attention. A strip's arithmetic is that of
 * a plain matrix (cpu_linear.c).
 *
 * The inputs of a head in all rows are put beside each other first, so that a head's weights are read once for all of them.
 */
#include <assert.h>
#include <string.h>

#include "ops/cpu_linear.h"
#include "ops/kernels.h"

static float *head_at(hn_head_columns m, int row, int head) { return hn_host_row(m.rows, row) + head * m.step; }

/* The inputs of all heads of rows [first, first + n), as rows head * n + i of the room; the rest is copied. */
static void put_heads(const hn_exec *ex, int first, int n, const hn_weight *w, hn_head_columns x, int rest, const hn_act *room,
                      hn_head_columns y) {
    int from, to;
    hn_share(ex, w->experts * n, &from, &to);
    for (int item = from; item < to; item++) {
        const int head = item / n, row = first + item % n;
        const float *in = head_at(x, row, head);
        hn_cpu_put_inputs(hn_cpu(ex), in, w->in, room, hn_cpu_weight_form(hn_cpu(ex), w), item, 0);
        if (rest) memcpy(head_at(y, row, head) + w->out, in + w->in, (size_t)rest * sizeof *in);
    }
    hn_cpu_barrier(ex);
}

static void multiply_heads(const hn_exec *ex, int first, int n, const hn_weight *w, const hn_act *room, hn_head_columns y) {
    const int strips = hn_strips(w->out);
    const int unit = hn_cpu_unit_strips(ex, w, n, strips * w->experts), units = (strips + unit - 1) / unit;
    hn_claim claim = hn_cpu_claim(ex, units * w->experts);
    for (int i; (i = hn_claim_next(&claim)) >= 0;) {
        const int head = i / units, s = i % units * unit;
        const hn_cpu_span span = {.a = room, .from = head * n, .to = first, .n = n, .expert = head};
        const hn_linear_out out = {w, hn_columns(y.rows, head * y.step, w->out)};
        hn_cpu_run_strips(ex, &span, &out, s, s + unit < strips ? s + unit : strips, false);
    }
    hn_cpu_barrier(ex);
}

void hn_cpu_heads_linear(const hn_exec *ex, hn_count count, const hn_weight *w, hn_head_columns x, int rest, hn_act room,
                         hn_head_columns y) {
    const int n = hn_cpu_number(count);
    const hn_act in = {room.data, w->in, room.max_rows, hn_cpu_weight_form(hn_cpu(ex), w)};
    const int most = room.max_rows / w->experts;
    assert(n >= 1 && w->experts >= 1 && most >= 1 && w->in <= room.in && x.step >= w->in + rest && y.step >= w->out + rest);
    for (int first = 0; first < n; first += most) {
        const int rows = n - first < most ? n - first : most;
        put_heads(ex, first, rows, w, x, rest, &in, y);
        multiply_heads(ex, first, rows, w, &in, y);
    }
}
