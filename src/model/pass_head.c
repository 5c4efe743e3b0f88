/* SPDX-License-Identifier: Apache-2.0 */
/* pass_head.c - the stores of a draft head: features, which are copied from the target's states before its passes, and outputs of its own
 * that later rows read. */
#include <assert.h>
#include <stddef.h>

#include "model/pass_private.h"

static void store_states(void *arg, int rank, int ranks) {
    const hn_runner *r = arg;
    const hn_exec ex = {r->ops, rank, ranks};
    const hn_head_desc *d = &r->m->arch.draft_head;
    const hn_buf from = hn_at(r->image_buf, offsetof(hn_row_image, store_from)),
                 to = hn_at(r->image_buf, offsetof(hn_row_image, store_to));
    for (int k = 0; k < d->features; k++) {
        const hn_matrix state = {r->states[k], d->feature_width, r->ld_states};
        ex.ops->gather(&ex, r->n_stored, from, state, to, hn_columns(r->store, k * d->feature_width, d->feature_width));
    }
}

void hn_pass_store(hn_runner *r, const hn_buf *states, int ld, const int32_t *from, const int32_t *to, int n) {
    const hn_ops *o = &r->m->ops;
    assert(n >= 1 && n <= HN_MAX_ROWS);
    for (int i = 0; i < n; i++) assert(to[i] >= 0 && to[i] < r->store_rows);
    o->write(o, hn_at(r->image_buf, offsetof(hn_row_image, store_from)), from, (size_t)n * sizeof *from);
    o->write(o, hn_at(r->image_buf, offsetof(hn_row_image, store_to)), to, (size_t)n * sizeof *to);
    r->states = states;
    r->ld_states = ld;
    r->n_stored = n;
    hn_pool_run(o->pool, store_states, r);
}

/* Stores outputs of a draft head that later rows read. */
void hn_head_keep_outputs(const hn_exec *ex, const hn_runner *r) {
    const hn_buf from = hn_at(r->image_buf, offsetof(hn_row_image, output_row)),
                 to = hn_at(r->image_buf, offsetof(hn_row_image, output_slot));
    if (r->n_output_rows > 0)
        ex->ops->gather(ex, r->n_output_rows, from, r->m->arch.draft_head.norm_output ? r->out_norm : r->buf.x, to, r->outputs);
}
