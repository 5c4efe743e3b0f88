/* SPDX-License-Identifier: Apache-2.0 */
/* weights_load.c - loads a plan (weights.c): memory is allocated once, then all workers read and pack one matrix after
 * another, strip by strip, so that loading needs little more memory than the weights, and a file that is truncated
 * meanwhile is an error. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/least.h"
#include "base/mem.h"
#include "model/weights.h"
#include "ops/pack.h"

enum { ALIGN = 64 };

static size_t align_up(size_t n) {
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* The file's number of row i of rows in pairs. */
static int row_in_pairs(hn_row_order order, int i) {
    return order.size ? i - i % order.size + hn_paired_row(i % order.size, order.dims) : i;
}

typedef struct pack_job {
    hn_backend *b;
    hn_pool *pool;
    hn_source *src;
    const hn_tensor *tensor;
    const hn_weight *w;
    hn_stored from;      /* rows NULL */
    hn_row_order order;
    int expert, matrices;  /* in a weight of experts: the matrices of this tensor */
    size_t each; /* rows from a matrix to the next */
    size_t matrix_factors;
    unsigned char *rows; /* [ranks][HN_STRIP] [HN_STRIP] rows as in the file, then as floats if the type differs */
    size_t rank_bytes;   /* of each rank */
    bool finite;         /* refuse other values */
    atomic_int failed;   /* 1 + the rank that could not read; the first one sets the error */
    hunch_status status; /* its */
    hunch_error *err;
} pack_job;

/* The tensor's row that is the first of a matrix. */
static size_t matrix_row(const pack_job *j, int matrix) {
    return (size_t)matrix * j->each + (size_t)j->from.first;
}

static size_t rows_apart(const hn_placement *it) {
    return it->each > 0 ? (size_t)it->each : (size_t)it->tensor->dims[1];
}

/* The number of factors of each matrix; 0: there are none, or matrices are rows of one tensor and find theirs by the row. */
static size_t factors_of_matrix(const hn_placement *it) {
    if (it->each > 0 && it->tensor->n_dims == 2) return 0;
    return it->factors.values ? hn_plan_factors(it->tensor) / (size_t)(it->matrices > 0 ? it->matrices : 1) : 0;
}

/* The tensor's row of row i of a matrix that has an order or runs. */
static size_t row_in_file(const pack_job *j, int i) {
    return (size_t)(j->from.runs ? hn_run_row(j->from.runs, i) : row_in_pairs(j->order, j->from.first + i));
}

/* Reads the rows of strip s of a matrix to the rank's buffer. */
static hunch_status read_strip(const pack_job *j, int matrix, int s, unsigned char *to, hunch_error *err) {
    const int row = s * HN_STRIP, left = j->w->out - row, n = left < HN_STRIP ? left : HN_STRIP;
    const size_t bytes = j->from.row_bytes;
    hunch_status st = HUNCH_OK;
    if (!j->order.size && !j->from.runs)
        return hn_source_read(j->src, j->tensor, (matrix_row(j, matrix) + (size_t)row) * bytes, (size_t)n * bytes, to, err);
    for (int i = 0; !st && i < n; i++)
        st = hn_source_read(j->src, j->tensor, row_in_file(j, row + i) * bytes, bytes, to + (size_t)i * bytes, err);
    return st;
}

hunch_status hn_plan_not_finite(const hn_source *src, const hn_tensor *t, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: a value is not finite", hn_source_path(src), t->name);
}

bool hn_plan_all_finite(const float *f, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(f[i])) return false;
    return true;
}

/* The factors of a row of a matrix. */
static const float *factors_of(const pack_job *j, int matrix, int row) {
    hn_stored from = j->from;
    if (j->matrix_factors == 0) from.first = (int)matrix_row(j, matrix);
    const float *first = hn_stored_factors(&from, j->w->in, row);
    return first ? first + j->matrix_factors * (size_t)matrix : NULL;
}

/* Converts the rows of strip s, at `rows` as in the file, to the type that the matrix is packed in: *from, *row_bytes
 * apart. The buffer has room after them for as many rows of floats and one more. */
static hunch_status convert_strip(const pack_job *j, int matrix, int s, unsigned char *rows, const unsigned char **from,
                                  size_t *row_bytes, hunch_error *err) {
    const int left = j->w->out - s * HN_STRIP, n = left < HN_STRIP ? left : HN_STRIP, in = j->w->in;
    unsigned char *to = rows + (size_t)HN_STRIP * j->from.row_bytes;
    float *f = (float *)(void *)(to + (size_t)HN_STRIP * (size_t)in * sizeof(float));
    const bool same = j->w->dtype == j->tensor->dtype;
    *from = rows;
    *row_bytes = j->from.row_bytes;
    if (same && !j->finite) return HUNCH_OK;
    for (int i = 0; i < n; i++) {
        hn_dequantise(j->tensor->dtype, rows + (size_t)i * j->from.row_bytes, (size_t)in, f);
        if (j->finite && !hn_plan_all_finite(f, (size_t)in)) return hn_plan_not_finite(j->src, j->tensor, err);
        if (same) continue;
        const float *by = factors_of(j, matrix, s * HN_STRIP + i);
        for (int c = 0; by && c < in; c++) f[c] *= by[c / HN_F8_TILE];
        hn_dtype_row_bytes(j->w->dtype, (uint64_t)in, row_bytes);
        hn_quantise(j->w->dtype, f, (size_t)in, to + (size_t)i * *row_bytes);
        *from = to;
    }
    return HUNCH_OK;
}

static void pack_matrix(void *arg, int rank, int ranks) {
    (void)ranks;
    pack_job *j = arg;
    unsigned char *rows = j->rows + (size_t)rank * j->rank_bytes;
    const int strips = hn_strips(j->w->out);
    hn_claim c = hn_claim_begin(j->pool, rank, strips * j->matrices);
    for (int i; (i = hn_claim_next(&c)) >= 0;) {
        const int s = i % strips, matrix = i / strips;
        hunch_error why;
        int nobody = 0;
        if (atomic_load_explicit(&j->failed, memory_order_relaxed)) continue;
        const unsigned char *from;
        size_t row_bytes;
        if (read_strip(j, matrix, s, rows, &why) || convert_strip(j, matrix, s, rows, &from, &row_bytes, &why)) {
            if (!atomic_compare_exchange_strong(&j->failed, &nobody, rank + 1)) continue;
            j->status = why.status;
            if (j->err) *j->err = why;
            continue;
        }
        j->b->pack(j->b, j->w, j->expert + matrix, s * HN_STRIP, from, row_bytes,
                   j->w->dtype == HN_F8_E4M3 ? factors_of(j, matrix, s * HN_STRIP) : NULL);
    }
    hn_barrier(j->pool, rank);
}

static hunch_status pack_all(hn_plan *p, const hn_placement *it, const hn_stored *from, hunch_error *err) {
    const bool converted = it->weight->dtype != it->tensor->dtype;
    const bool finite = p->finite && it->tensor->dtype <= HN_BF16;
    const size_t floats = converted || finite ? (HN_STRIP + 1) * (size_t)it->weight->in * sizeof(float) : 0;
    const size_t rank_bytes = align_up(HN_STRIP * from->row_bytes + floats), room = (size_t)hn_pool_threads(p->m->pool) * rank_bytes;
    pack_job j = {.rank_bytes = rank_bytes,
                  .finite = finite,
                  .b = p->m->backend,
                  .pool = p->m->pool,
                  .src = p->src,
                  .tensor = it->tensor,
                  .w = it->weight,
                  .from = *from,
                  .order = it->order,
                  .expert = it->expert,
                  .matrices = it->matrices > 0 ? it->matrices : 1,
                  .each = rows_apart(it),
                  .matrix_factors = factors_of_matrix(it),
                  .err = err};
    j.rows = hn_alloc(room);
    if (!j.rows) return hn_fail_memory(err, it->tensor->name, room);
    hn_pool_run(p->m->pool, pack_matrix, &j);
    hn_free(j.rows);
    return atomic_load(&j.failed) ? j.status : HUNCH_OK;
}

/* Reads the tensor's first n values as floats. To be freed with hn_free. */
hunch_status hn_plan_read_values(const hn_source *src, const hn_tensor *t, size_t n, float **out, hunch_error *err) {
    float *f = hn_alloc(n * sizeof *f);
    void *stored = hn_alloc(t->bytes);
    hunch_status st = f && stored ? hn_source_read(src, t, 0, t->bytes, stored, err)
                                  : hn_fail_memory(err, t->name, n * sizeof *f + t->bytes);
    if (!st) hn_dequantise(t->dtype, stored, n, f);
    hn_free(stored);
    if (st) hn_free(f);
    *out = st ? NULL : f;
    return st;
}

hunch_status hn_plan_read_factors(const hn_plan *p, const hn_placement *it, float **out, hunch_error *err) {
    const hn_tensor *t = it->factors.values;
    const size_t n = hn_plan_factors(it->tensor);
    size_t stored = 1;
    float *f;
    *out = NULL;
    for (int i = 0; i < t->n_dims; i++) stored *= (size_t)t->dims[i];
    hunch_status st = hn_plan_read_values(p->src, t, stored, &f, err);
    for (size_t i = 0; !st && it->factors.inverse && i < stored; i++) f[i] = 1 / f[i];
    if (!st && it->factors.inverse && !hn_plan_all_finite(f, stored)) st = hn_plan_not_finite(p->src, t, err);
    if (!st && stored < n) { /* one, for all blocks */
        float *all = hn_alloc(n * sizeof *all);
        if (!all) st = hn_fail_memory(err, t->name, n * sizeof *all);
        for (size_t i = 0; all && i < n; i++) all[i] = f[0];
        hn_free(f);
        f = all;
    }
    if (st) hn_free(f);
    *out = st ? NULL : f;
    return st;
}

/* Reorders a vector of values for rows that the file has in pairs. */
static hunch_status reorder_values(hn_row_order order, float *f, int n, hunch_error *err) {
    float *copy = hn_alloc((size_t)n * sizeof *copy);
    if (!copy) return hn_fail_memory(err, "a vector", (size_t)n * sizeof *copy);
    memcpy(copy, f, (size_t)n * sizeof *copy);
    for (int i = 0; i < n; i++) f[i] = copy[row_in_pairs(order, i)];
    hn_free(copy);
    return HUNCH_OK;
}

/* [channels][taps] as [taps][channels] */
static hunch_status put_taps_first(float *f, int taps, int count, hunch_error *err) {
    float *copy = hn_alloc((size_t)count * sizeof *copy);
    if (!copy) return hn_fail_memory(err, "a convolution", (size_t)count * sizeof *copy);
    memcpy(copy, f, (size_t)count * sizeof *copy);
    for (int i = 0; i < count; i++) f[i % taps * (count / taps) + i / taps] = copy[i];
    hn_free(copy);
    return HUNCH_OK;
}

/* Each expert's own part of a tensor of vectors, one after another. */
static hunch_status load_vectors(hn_plan *p, const hn_placement *it, hunch_error *err) {
    const size_t each = (size_t)it->tensor->dims[0], own = (size_t)it->out, n = own * (size_t)it->vectors;
    float *f;
    hunch_status st = hn_plan_read_values(p->src, it->tensor, each * (size_t)it->vectors, &f, err);
    if (st) return st;
    for (size_t e = 0; e < (size_t)it->vectors; e++) memmove(f + e * own, f + e * each + it->first, own * sizeof *f);
    if (p->finite && !hn_plan_all_finite(f, n)) st = hn_plan_not_finite(p->src, it->tensor, err);
    *it->vector = (hn_buf){p->m->weights, it->off};
    if (!st) p->m->backend->write(p->m->backend, *it->vector, f, n * sizeof *f);
    hn_free(f);
    return st;
}

/* Instead of a tensor's values those of runs of its rows of `each`, one behind another. */
static hunch_status collect_runs(const hn_runs *r, size_t each, int n, float **f, hunch_error *err) {
    float *own = hn_alloc((size_t)n * sizeof *own), *to = own;
    if (!own) return hn_fail_memory(err, "a vector", (size_t)n * sizeof *own);
    for (int i = 0; i < r->n; to += each * (size_t)r->count[i++])
        memcpy(to, *f + each * (size_t)r->first[i], each * (size_t)r->count[i] * sizeof *own);
    hn_free(*f);
    *f = own;
    return HUNCH_OK;
}

static hunch_status load_vector(hn_plan *p, const hn_placement *it, hunch_error *err) {
    if (it->vectors > 0) return load_vectors(p, it, err);
    const size_t each = it->change == HN_CHANGE_TAPS ? (size_t)it->tensor->dims[0] : 1;
    size_t values = (size_t)(it->first + it->out);
    float *f;
    for (int i = 0; it->runs && i < it->runs->n; i++)
        values = hn_most_size(values, each * (size_t)(it->runs->first[i] + it->runs->count[i]));
    hunch_status st = hn_plan_read_values(p->src, it->tensor, values, &f, err);
    if (st) return st;
    if (it->runs) st = collect_runs(it->runs, each, it->out, &f, err);
    float *own = f + it->first;
    if (!st && p->finite && !hn_plan_all_finite(own, (size_t)it->out)) st = hn_plan_not_finite(p->src, it->tensor, err);
    if (!st && it->order.size) st = reorder_values(it->order, own, it->out, err);
    if (!st && it->change == HN_CHANGE_TAPS) st = put_taps_first(own, (int)it->tensor->dims[0], it->out, err);
    if (st) {
        hn_free(f);
        return st;
    }
    for (int i = 0; i < it->out; i++) own[i] = it->times * own[i] + it->more;
    for (int i = 0; i < it->out && it->change == HN_CHANGE_DECAY; i++) own[i] = (float)-exp((double)own[i]);
    *it->vector = (hn_buf){p->m->weights, it->off};
    p->m->backend->write(p->m->backend, *it->vector, own, (size_t)it->out * sizeof *own);
    hn_free(f);
    return HUNCH_OK;
}

/* Leaves the matrix in the file, and stores the place of its rows. */
static void leave_in_file(hn_plan *p, const hn_placement *it, hn_stored *from) {
    hn_file_rows at;
    hn_tensor_rows(it->tensor, (size_t)it->first, &at);
    from->rows = at.rows;
    it->weight->place = p->stored_place;
    if (it->matrices == 0) it->weight->stored = *from;
    for (int i = 0; i < it->matrices; i++) {
        hn_stored *to = p->each + (size_t)(it->expert + i);
        hn_tensor_rows(it->tensor, (size_t)i * rows_apart(it) + (size_t)it->first, &at);
        *to = *from;
        to->rows = at.rows;
        to->row_bytes = at.row_bytes;
        to->scales = at.scales;
        to->scale_bytes = at.scale_bytes;
        if (to->factors && factors_of_matrix(it) == 0) to->first += i * it->each;
        if (to->factors) to->factors += factors_of_matrix(it) * (size_t)i;
    }
    if (it->expert + it->matrices < it->weight->experts || it->matrices == 0) return;
    it->weight->each = p->each;
    p->each += it->weight->experts;
}

/* Packs the matrix, or leaves it in the file. */
static hunch_status load_matrix(hn_plan *p, const hn_placement *it, hunch_error *err) {
    if (it->transposed) return hn_load_heads(p, it, err);
    const size_t n_factors = it->factors.values ? hn_plan_factors(it->tensor) : 0;
    hn_stored from = {.first = it->first, .runs = it->runs};
    float *factors = NULL;
    hunch_status st = it->factors.values ? hn_plan_read_factors(p, it, &factors, err) : HUNCH_OK;
    if (st) return st;
    hn_dtype_row_bytes(it->tensor->dtype, (uint64_t)it->weight->in, &from.row_bytes);
    if (hn_plan_stays_in_file(p, it->weight)) {
        if (factors) from.factors = memcpy(p->m->factors + it->off, factors, n_factors * sizeof *factors);
        leave_in_file(p, it, &from);
    } else {
        from.factors = factors;
        it->weight->place.at.mem = p->m->weights;
        if (it->inputs) {
            it->weight->order.mem = p->m->weights;
            p->m->backend->write(p->m->backend, it->weight->order, it->inputs, (size_t)it->weight->in * sizeof *it->inputs);
        }
        st = pack_all(p, it, &from, err);
    }
    hn_free(factors);
    return st;
}

/* Allocates the model's block. The available memory is checked before: a system that runs out later kills the process without a message. */
static hunch_status take_memory(hn_plan *p, hunch_error *err) {
    hn_model *m = p->m;
    hn_backend *b = m->backend;
    const size_t left = hn_backend_memory_left(b), room_at = hn_plan_room(p, p->stored_room), factors = p->factors * sizeof(float);
    hunch_status st = p->bytes > left ? HUNCH_NO_MEMORY : b->mem_create(b, HN_MEM_WEIGHTS, p->bytes, &m->weights, err);
    if (st == HUNCH_NO_MEMORY)
        return hn_fail(err, st, "%s: its weights need %zu bytes of memory, %zu are available%s", hn_source_path(p->src),
                       p->bytes, left, p->mapped ? "" : m->expert_layers == 0 ? "; --mapped leaves them in the file"
                       : p->mapped_experts ? "; --mapped leaves all in the file"
                                           : "; --mapped-experts leaves experts in the file, --mapped all");
    if (st) return st;
    if (p->stored_room > 0) p->stored_place = b->place_stored(b, (hn_buf){m->weights, room_at}, p->stored_room);
    if (factors > 0) m->factors = hn_alloc(factors);
    if (factors > 0 && !m->factors) return hn_fail_memory(err, "factors of matrices", factors);
    const uint64_t stays = p->mapped ? p->stored : p->mapped_experts ? p->experts_stored : 0;
    m->bytes = (hn_model_bytes){p->bytes + factors, stays, p->experts_memory, p->experts_stored, p->table};
    return HUNCH_OK;
}

/* Allocates the places of matrices of experts and heads that stay in the file. */
static hunch_status take_places(hn_plan *p, hunch_error *err) {
    size_t room = 0;
    for (int i = 0; i < p->n; i++) room += (size_t)p->item[i].matrices;
    if (room == 0 || !(p->mapped || p->mapped_experts)) return HUNCH_OK;
    p->each = p->m->each = hn_zalloc(room, sizeof *p->each);
    return p->each ? HUNCH_OK : hn_fail_memory(err, "places of matrices", room * sizeof *p->each);
}

hunch_status hn_plan_load(hn_plan *p, const hn_model_load *load, hunch_error *err) {
    hunch_status st = take_memory(p, err);
    if (!st) st = take_places(p, err);
    if (st) return st;
    uint64_t done = 0, total = 0;
    for (int i = 0; i < p->n; i++) total += p->item[i].tensor->bytes;
    for (int i = 0; i < p->n; i++) {
        const hn_placement *it = &p->item[i];
        st = it->vector ? load_vector(p, it, err) : load_matrix(p, it, err);
        if (st) return st;
        done += it->tensor->bytes;
        if (load->progress) load->progress(load->progress_user, done, total);
    }
    return hn_source_check(p->src, err); /* everything was read from the same file */
}
