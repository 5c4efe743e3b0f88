/* SPDX-License-Identifier: Apache-2.0 */
/* layer_product.c - products of a layer by matrices some of which have their inputs in an order of their own: GPTQ's act order, whose
 * groups of inputs stand together in memory. And of those that ranks divide (split.h), whose inputs and results are joined. */
#include "model/layers.h"

static bool in_same_order(const hn_weight *a, const hn_weight *b) { return a->order.mem == b->order.mem && a->order.off == b->order.off; }

static int forms_of(const hn_exec *ex, const hn_linear_out *outs, int n_outs) {
    int forms = 0;
    for (int k = 0; k < n_outs; k++) forms |= ex->backend->act_forms(ex->backend, outs[k].w->dtype);
    return forms;
}

/* A matrix that has the own slice of outputs, and may read what has to be joined. */
static void run_slice(const hn_exec *ex, hn_count n, hn_act in, const hn_linear_out *out, bool add, const hn_pass_buffers *s) {
    const hn_slices *ins = out->w->ins, *outs = out->w->outs;
    const hn_linear_out own = {out->w, hn_columns(out->y, hn_own_first(outs), hn_own_count(outs))};
    const hn_act whole = hn_act_of(s->joined, out->w->in, forms_of(ex, out, 1));
    ex->ops->join_act(ex, n, ins, in, whole, s->join_room);
    ex->ops->linear(ex, n, whole, &own, 1, add);
    ex->ops->join(ex, n, outs, hn_columns(out->y, 0, outs->first[outs->ranks]), s->join_room);
}

void hn_layer_product(const hn_exec *ex, hn_count n, hn_act in, const hn_linear_out *outs, int n_outs, bool add, const hn_pass_buffers *s) {
    if (outs->w->outs) {
        run_slice(ex, n, in, outs, add, s);
        return;
    }
    for (int i = 0, end; i < n_outs; i = end) {
        const hn_weight *first = outs[i].w;
        hn_act read = in;
        for (end = i + 1; end < n_outs && in_same_order(first, outs[end].w); end++) continue;
        if (first->order.mem) {
            read = hn_act_of(s->sorted, in.in, forms_of(ex, outs + i, end - i));
            ex->ops->permute(ex, n, in, first->order, read);
        }
        ex->ops->linear(ex, n, read, outs + i, end - i, add);
    }
}
