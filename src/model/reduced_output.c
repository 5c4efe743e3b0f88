/* SPDX-License-Identifier: Apache-2.0 */
/* reduced_output.c - copies the packed rows of chosen tokens into a matrix of their own. */
#include "model/reduced_output.h"

#include <assert.h>
#include <string.h>

typedef struct pick_job {
    const hn_model *m;
    const int32_t *ids;
    hn_reduced_output *out;
} pick_job;

static int strips(int n) { return (n + HN_STRIP - 1) / HN_STRIP; }

static void pick(void *arg, int rank, int ranks) {
    (void)ranks;
    const pick_job *j = arg;
    const hn_ops *o = &j->m->ops;
    const hn_weight *w = &j->out->w;
    hn_claim c = hn_claim_begin(o->pool, rank, strips(w->out));
    for (int s; (s = hn_claim_next(&c)) >= 0;)
        o->pick_strip(o, &j->m->output, j->ids, w->out, s * HN_STRIP, hn_at(w->data, w->strip_stride * (size_t)s));
    hn_barrier(o->pool, rank);
}

hunch_status hn_model_reduce_output(const hn_model *m, const int32_t *ids, int n, hn_reduced_output *out,
                                    hunch_error *err) {
    const hn_weight *whole = &m->output;
    const size_t strip = m->ops.strip_bytes(whole->dtype, whole->in), rows = strip * (size_t)strips(n);
    assert(n >= 1 && n <= whole->out);
    *out = (hn_reduced_output){.w = {whole->dtype, n, whole->in, {NULL, 0}, strip}};
    hunch_status st = m->ops.mem_create(&m->ops, rows + (size_t)n * sizeof *ids, &out->mem, err);
    if (st) return st;
    out->w.data.mem = out->ids.mem = out->mem;
    out->ids.off = rows;
    m->ops.write(&m->ops, out->ids, ids, (size_t)n * sizeof *ids);
    pick_job j = {m, ids, out};
    hn_pool_run(m->pool, pick, &j);
    return HUNCH_OK;
}

void hn_reduced_output_free(const hn_model *m, hn_reduced_output *out) {
    m->ops.mem_free(&m->ops, out->mem);
    memset(out, 0, sizeof *out);
}
