/* SPDX-License-Identifier: Apache-2.0 */
/* pass_head.c - the stores of a draft head: features, which are copied from the target's states before its passes, and outputs of its own
 * that later rows read; and what its layers begin with. */
#include <assert.h>
#include <stddef.h>

#include "model/pass_private.h"

typedef struct storing {
    const hn_runner *r;
    const hn_buf *states;
    int ld, n;
} storing;

static void store_states(const hn_exec *ex, const void *arg) {
    const storing *s = arg;
    const hn_runner *r = s->r;
    const hn_exec own = hn_runner_exec(ex, r);
    const hn_input_stage *d = &r->m->arch.draft_head.input;
    const hn_buf from = hn_image_at(r, offsetof(hn_row_image, store_from)),
                 to = hn_image_at(r, offsetof(hn_row_image, store_to));
    for (int k = 0; k < d->features; k++) {
        const hn_matrix state = {s->states[k], d->feature_width, s->ld};
        own.ops->gather(&own, hn_number(s->n), from, state, to, hn_columns(r->head.store, k * d->feature_width, d->feature_width));
    }
}

void hn_pass_store(hn_runner *r, const hn_buf *states, int ld, const int32_t *from, const int32_t *to, int n) {
    hn_backend *o = r->m->backend;
    storing s = {r, states, ld, n};
    assert(n >= 1 && n <= HN_MAX_ROWS);
    for (int i = 0; i < n; i++) assert(to[i] >= 0 && to[i] < r->head.store_rows);
    o->write(o, hn_image_at(r, offsetof(hn_row_image, store_from)), from, (size_t)n * sizeof *from);
    o->write(o, hn_image_at(r, offsetof(hn_row_image, store_to)), to, (size_t)n * sizeof *to);
    o->submit(o, store_states, &s);
}

size_t hn_pass_store_bytes(const hn_runner *r) {
    const hn_pass_head *h = &r->head;
    return sizeof(float) * ((size_t)h->store_rows * (size_t)h->store.ld + (size_t)h->output_rows * (size_t)h->outputs.ld);
}

hn_head_input hn_head_input_of(const hn_runner *r) {
    const hn_pass_head *h = &r->head;
    return (hn_head_input){.from = hn_image_at(r, offsetof(hn_row_image, from)),
                           .rows = h->drafts ? h->outputs : h->store,
                           .drafts = h->drafts,
                           .n_masks = hn_image_count(r, offsetof(hn_row_image, n_masks), h->n_masks),
                           .zero = hn_image_at(r, offsetof(hn_row_image, zero)),
                           .masks = hn_image_at(r, offsetof(hn_row_image, mask_row)),
                           .context = h->context,
                           .module = h->module};
}

void hn_head_keep_outputs(const hn_exec *ex, const hn_runner *r) {
    const hn_buf from = hn_image_at(r, offsetof(hn_row_image, output_row)),
                 to = hn_image_at(r, offsetof(hn_row_image, output_slot));
    const hn_output_norm norm = r->m->arch.draft_head.output.norm;
    const hn_matrix output = norm == HN_NORM_CARRIED ? r->out.carried : norm == HN_NORM_READ ? r->out.norm : r->buf.x;
    const hn_count n = hn_image_count(r, offsetof(hn_row_image, n_stored), r->head.n_output_rows);
    if (n.most > 0) ex->ops->gather(ex, n, from, output, to, r->head.outputs);
}
