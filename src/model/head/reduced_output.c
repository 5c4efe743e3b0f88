/* SPDX-License-Identifier: Apache-2.0 */
/* reduced_output.c - copies the rows of chosen tokens into a packed matrix of their own: those of a packed matrix lane
 * by lane; rows of a mapped model's file are copied and packed. */
#include "model/head/reduced_output.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "ops/pack.h"

typedef struct reduction {
    const hn_model *m;
    const hn_weight *whole;
    const int32_t *ids;
    const hn_reduced_output *out;
    unsigned char *rows; /* the chosen rows as stored; NULL: the matrix is packed */
} reduction;

static void pack_rows(void *arg, int rank, int ranks) {
    (void)ranks;
    const reduction *j = arg;
    hn_backend *b = j->m->backend;
    const size_t row = j->whole->stored.row_bytes;
    hn_claim c = hn_claim_begin(j->m->pool, rank, hn_strips(j->out->w.out));
    for (int s; (s = hn_claim_next(&c)) >= 0;) b->pack(b, &j->out->w, 0, s * HN_STRIP, j->rows + row * (size_t)(s * HN_STRIP), row, NULL);
    hn_barrier(j->m->pool, rank);
}

static void pick_rows(const hn_exec *ex, const void *arg) {
    const reduction *j = arg;
    ex->ops->pick_rows(ex, j->whole, j->out->ids, &j->out->w);
}

static hunch_status copy_stored(reduction *j, int n, hunch_error *err) {
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

hunch_status hn_reduce_output(const hn_model *m, const hn_weight *whole, const int32_t *ids, int n, hn_reduced_output *out,
                              hunch_error *err) {
    hn_backend *b = m->backend;
    const size_t rows = b->matrix_bytes(b, whole->dtype, n, whole->in);
    reduction j = {.m = m, .whole = whole, .ids = ids, .out = out};
    assert(n >= 1 && n <= whole->out);
    *out = (hn_reduced_output){.w = {.dtype = whole->dtype, .out = n, .in = whole->in, .phase = whole->phase}};
    if (whole->dtype == HN_F8_E4M3)
        return hn_fail(err, HUNCH_REFUSED, "output matrix of %s: its rows share factors, expected another type to choose from",
                       hn_dtype_name(whole->dtype));
    hunch_status st = copy_stored(&j, n, err);
    out->bytes = rows + (size_t)n * sizeof *ids;
    if (!st) st = b->mem_create(b, HN_MEM_WEIGHTS, out->bytes, &out->mem, err);
    if (!st) {
        out->w.place = b->place(b, whole->dtype, whole->in, (hn_buf){out->mem, 0});
        out->ids = (hn_buf){out->mem, rows};
        b->write(b, out->ids, ids, (size_t)n * sizeof *ids);
        if (j.rows)
            hn_pool_run(m->pool, pack_rows, &j);
        else
            hn_backend_run(b, pick_rows, &j);
    }
    hn_free(j.rows);
    return st;
}

void hn_reduced_output_free(const hn_model *m, hn_reduced_output *out) {
    m->backend->mem_free(m->backend, out->mem);
    memset(out, 0, sizeof *out);
}
