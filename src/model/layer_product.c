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

hn_act hn_layer_joined(const hn_exec *ex, hn_count n, int each, const hn_weight *w, hn_act own, hn_act room, const hn_pass_buffers *s) {
    if (!w->ins) return own;
    const hn_act whole = hn_act_of(room, w->in, w->order.mem ? HN_ACT_F32 : ex->backend->act_forms(ex->backend, w->dtype));
    ex->ops->join_act(ex, n, each, w->ins, own, whole, s->join_room);
    return whole;
}

/* The input of matrices that have the order of the first. */
static hn_act in_order(const hn_exec *ex, hn_count n, hn_act in, const hn_linear_out *outs, int n_outs, const hn_pass_buffers *s) {
    if (!outs->w->order.mem) return in;
    const hn_act sorted = hn_act_of(s->sorted, in.in, forms_of(ex, outs, n_outs));
    ex->ops->permute(ex, n, in, outs->w->order, sorted);
    return sorted;
}

void hn_layer_product(const hn_exec *ex, hn_count n, hn_act in, const hn_linear_out *outs, int n_outs, bool add, const hn_pass_buffers *s) {
    if (outs->w->outs) { /* of ranks: one matrix */
        const hn_linear_out own = {outs->w, hn_own_columns(outs->w, outs->y)};
        const hn_act whole = hn_layer_joined(ex, n, 1, outs->w, in, s->joined, s);
        ex->ops->linear(ex, n, in_order(ex, n, whole, outs, 1, s), &own, 1, add);
        hn_layer_join(ex, n, outs->w, outs->y, s);
        return;
    }
    for (int i = 0, end; i < n_outs; i = end) {
        for (end = i + 1; end < n_outs && in_same_order(outs[i].w, outs[end].w); end++) continue;
        ex->ops->linear(ex, n, in_order(ex, n, in, outs + i, end - i, s), outs + i, end - i, add);
    }
}
