/* SPDX-License-Identifier: Apache-2.0 */
/* layer_product.c - products of a layer by matrices some of which have their inputs in an order of their own: GPTQ's act order, whose
 * groups of inputs stand together in memory. */
#include "model/layers.h"

static bool in_same_order(const hn_weight *a, const hn_weight *b) { return a->order.mem == b->order.mem && a->order.off == b->order.off; }

void hn_layer_product(const hn_exec *ex, hn_count n, hn_act in, const hn_linear_out *outs, int n_outs, bool add, const hn_pass_buffers *s) {
    for (int i = 0, end; i < n_outs; i = end) {
        const hn_weight *first = outs[i].w;
        hn_act read = in;
        for (end = i + 1; end < n_outs && in_same_order(first, outs[end].w); end++) continue;
        if (first->order.mem) {
            int forms = 0;
            for (int k = i; k < end; k++) forms |= ex->backend->act_forms(ex->backend, outs[k].w->dtype);
            read = hn_act_of(s->sorted, in.in, forms);
            ex->ops->permute(ex, n, in, first->order, read);
        }
        ex->ops->linear(ex, n, read, outs + i, end - i, add);
    }
}
