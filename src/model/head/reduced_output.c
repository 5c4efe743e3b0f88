/* SPDX-License-Identifier: Apache-2.0 */
/* reduced_output.c - copies the rows of chosen tokens into a packed matrix of their own: those of a packed matrix lane
 * by lane; rows of a mapped model's file are copied and packed. */
#include "model/head/reduced_output.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "ops/pack.h"

typedef struct pick_job {
    const hn_ops *ops;
    const hn_weight *whole;
    const int32_t *ids;
    hn_reduced_output *out;
    unsigned char *rows; /* the chosen rows as stored; NULL: the matrix is packed */
} pick_job;

static void pick(void *arg, int rank, int ranks) {
    (void)ranks;
    const pick_job *j = arg;
    const hn_ops *o = j->ops;
    const hn_weight *w = &j->out->w;
    hn_claim c = hn_claim_begin(o->pool, rank, hn_strips(w->out));
    for (int s; (s = hn_claim_next(&c)) >= 0;) {
        const hn_buf dst = hn_at(w->data, w->strip_stride * (size_t)s);
        if (j->rows)
            o->pack_strip(o, w->dtype, w->out, w->in, j->rows, j->whole->stored.row_bytes, NULL, s * HN_STRIP, dst);
        else
            o->pick_strip(o, j->whole, j->ids, w->out, s * HN_STRIP, dst);
    }
    hn_barrier(o->pool, rank);
}

static hunch_status copy_stored(pick_job *j, int n, hunch_error *err) {
    const hn_stored *s = &j->whole->stored;
    const size_t bytes = s->row_bytes * (size_t)n;
    if (!s->rows) return HUNCH_OK;
    j->rows = hn_alloc(bytes);
    if (!j->rows) return hn_fail_memory(err, "chosen rows of the output", bytes);
    for (int i = 0; i < n; i++)
        memcpy(j->rows + s->row_bytes * (size_t)i, (const unsigned char *)s->rows + s->row_bytes * (size_t)j->ids[i],
               s->row_bytes);
    return HUNCH_OK;
}

hunch_status hn_reduce_output(const hn_ops *o, const hn_weight *whole, const int32_t *ids, int n, hn_reduced_output *out,
                              hunch_error *err) {
    const size_t strip = o->strip_bytes(whole->dtype, whole->in), rows = strip * (size_t)hn_strips(n);
    pick_job j = {.ops = o, .whole = whole, .ids = ids, .out = out};
    assert(n >= 1 && n <= whole->out);
    *out = (hn_reduced_output){.w = {.dtype = whole->dtype, .out = n, .in = whole->in, .strip_stride = strip, .phase = whole->phase}};
    if (whole->dtype == HN_F8_E4M3)
        return hn_fail(err, HUNCH_REFUSED, "output matrix of %s: its rows share factors, expected another type to choose from",
                       hn_dtype_name(whole->dtype));
    hunch_status st = copy_stored(&j, n, err);
    out->bytes = rows + (size_t)n * sizeof *ids;
    if (!st) st = o->mem_create(o, out->bytes, &out->mem, err);
    if (!st) {
        out->w.data.mem = out->ids.mem = out->mem;
        out->ids.off = rows;
        o->write(o, out->ids, ids, (size_t)n * sizeof *ids);
        hn_pool_run(o->pool, pick, &j);
    }
    hn_free(j.rows);
    return st;
}

void hn_reduced_output_free(const hn_ops *o, hn_reduced_output *out) {
    o->mem_free(o, out->mem);
    memset(out, 0, sizeof *out);
}
