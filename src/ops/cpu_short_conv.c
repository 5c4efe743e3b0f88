/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_short_conv.c - gated short convolutions on the CPU. Ranks take columns, of all rows: those that a row reads were written by the same
 * rank, in the order of the pass, parents before children. */
#include "ops/short_conv.h"

#include <assert.h>

#include "ops/cpu_mem.h"
#include "ops/kernels.h"

/* Where the last `taps` rows of row i's path have their numbers, the oldest first; NULL: before the text. */
static void rows_before(const hn_rows *rows, int i, int taps, const hn_input_pages *p, int from, const float *m[HN_MOST_TAPS]) {
    const int seq = hn_host_i32(rows->seq)[i], position = hn_host_i32(rows->position)[i];
    for (int t = 0; t < taps; t++) {
        const int at = position - taps + 1 + t;
        m[t] = at < 0 ? NULL : hn_host_inputs_of(p, seq, hn_host_slot(rows, i, at)) + from;
    }
}

void hn_cpu_short_conv(const hn_exec *ex, const hn_rows *rows, const hn_short_conv *c, const hn_input_pages *kept, hn_matrix x) {
    const int n = hn_cpu_number(rows->n), width = x.cols / 3, strips = (width + HN_STRIP - 1) / HN_STRIP;
    const struct hn_kernels *k = hn_cpu(ex)->kernels;
    const float *bias = c->bias.mem ? hn_host_f32(c->bias) : NULL;
    int first, last;
    assert(c->taps <= HN_MOST_TAPS && rows->slot.mem);
    hn_share(ex, strips, &first, &last);
    const int from = first * HN_STRIP, end = last * HN_STRIP < width ? last * HN_STRIP : width;
    for (int i = 0; i < n && from < end; i++) {
        const float *m[HN_MOST_TAPS];
        float *row = hn_host_row(x, i), *own = hn_host_inputs_of(kept, hn_host_i32(rows->seq)[i], hn_host_i32(rows->slot)[i]);
        for (int d = from; d < end; d++) own[d] = row[d] * row[2 * width + d];
        rows_before(rows, i, c->taps, kept, from, m);
        k->gated_taps(m, c->taps, hn_host_f32(c->w) + from, width, bias ? bias + from : NULL, end - from, row + width + from);
    }
    hn_cpu_barrier(ex);
}
