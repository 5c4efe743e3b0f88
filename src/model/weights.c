/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - loading: from checked tensors to packed strips in one block of huge pages, or to rows that stay in the file.
 *
 * First a plan is made (every matrix: its tensor, its place), then memory is taken once, then all workers read and pack one
 * matrix after another, strip by strip, so that loading peaks little above the weights and a file that is cut short
 * meanwhile is an error. A mapped model's
 * plan has places for vectors and factors only; its matrices are packed strip by strip whenever they are needed
 * (ops/cpu_linear.c).
 */
#include "model/weights.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ops/pack.h"

enum { ALIGN = 64 };

static size_t align_up(size_t n) {
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

hunch_status hn_plan_begin(hn_plan *p, hn_model *m, hn_source *src, bool mapped, size_t room, hunch_error *err) {
    *p = (hn_plan){.m = m, .src = src, .mapped = mapped, .item = hn_zalloc(room, sizeof *p->item)};
    return p->item ? HUNCH_OK : hn_fail_memory(err, "the list of tensors", room * sizeof *p->item);
}

void hn_plan_end(hn_plan *p) {
    hn_free(p->item);
    *p = (hn_plan){0};
}

size_t hn_plan_room(hn_plan *p, size_t bytes) {
    const size_t off = p->bytes;
    p->bytes += align_up(bytes);
    return off;
}

/* ---- the plan ------------------------------------------------------------------------------------------------------- */

/* Has the plan gone on without a tensor? Then it is never loaded. */
static bool lacks(const hn_plan *p) {
    return p->missing && p->missing->n > 0;
}

/* A tensor by its name and shape; NULL: it is missing, which was noted. */
static hunch_status need_tensor(hn_plan *p, const char *name, int n_dims, uint64_t in, uint64_t out, hn_tensor **t,
                                hunch_error *err) {
    size_t row;
    *t = NULL;
    if (p->missing && !hn_source_look(p->src, name)) return hn_name_list_add(p->missing, name, err);
    hunch_status st = hn_source_need(p->src, name, n_dims, in, out, t, err);
    if (st) return st;
    if ((*t)->dtype >= HN_WEIGHT_TYPES || !hn_dtype_row_bytes((*t)->dtype, in, &row))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: rows of %d %s, expected whole blocks of a weight type",
                       hn_source_path(p->src), name, (int)in, hn_dtype_name((*t)->dtype));
    return HUNCH_OK;
}

/* dims: its shape. */
static hunch_status find_tensor(hn_plan *p, hn_role role, int layer, uint64_t dims[2], hn_tensor **t, hunch_error *err) {
    char name[128];
    hn_arch_tensor_name(&p->m->arch, role, layer, name);
    hn_arch_tensor_shape(&p->m->arch, role, layer, dims);
    return need_tensor(p, name, hn_role_is_vector(role) ? 1 : 2, dims[0], dims[1], t, err);
}

/* The factors of a matrix of 8-bit floats: X.weight_scale_inv, [inputs / 128, outputs / 128] (DeepSeek-V3's format). */
static hunch_status find_factors(hn_plan *p, const hn_tensor *t, hn_tensor **factors, hunch_error *err) {
    char name[160];
    *factors = NULL;
    if (t->dtype != HN_F8_E4M3) return HUNCH_OK;
    snprintf(name, sizeof name, "%.120s_scale_inv", t->name);
    return hn_source_need(p->src, name, 2, (t->dims[0] + HN_F8_BLOCK - 1) / HN_F8_BLOCK,
                          (t->dims[1] + HN_F8_BLOCK - 1) / HN_F8_BLOCK, factors, err);
}

static void plan_vector(hn_plan *p, hn_tensor *t, hn_part part, float times, float more, hn_buf *dst) {
    p->item[p->n++] = (hn_placement){.tensor = t, .vector = dst, .first = part.first, .out = part.count, .times = times,
                                     .more = more, .off = hn_plan_room(p, (size_t)part.count * sizeof(float))};
    p->m->parameters += (uint64_t)part.count;
}

static hn_turn turn_of(const hn_arch *a, hn_role role, int layer) {
    return (hn_turn){a->rows_in_pairs && hn_role_turns(role) ? a->layer[layer].head_dim : 0, a->rope_dims};
}

/* Where the file has row i. */
static int row_in_file(hn_turn turn, int i) {
    return turn.size ? i - i % turn.size + hn_paired_row(i % turn.size, turn.dims) : i;
}

hunch_status hn_plan_vector(hn_plan *p, hn_role role, int layer, hn_part part, hn_buf *dst, hunch_error *err) {
    const hn_arch *a = &p->m->arch;
    const bool ends_branch = hn_role_ends_branch(role); /* what scales the product scales it too */
    uint64_t dims[2];
    hn_tensor *t;
    if (!hn_arch_has(a, role, layer)) return HUNCH_OK;
    hunch_status st = find_tensor(p, role, layer, dims, &t, err);
    if (st || !t) return st;
    if (!part.count) part.count = (int)dims[0];
    plan_vector(p, t, part, ends_branch ? a->residual_scale : 1, hn_arch_vector_more(a, role), dst);
    p->item[p->n - 1].turn = turn_of(a, role, layer);
    if (a->form == HN_SOURCE_HF) p->item[p->n - 1].change = hn_role_change(role);
    return HUNCH_OK;
}

hunch_status hn_plan_convolution(hn_plan *p, hn_role role, int layer, hn_buf *dst, hunch_error *err) {
    const hn_arch *a = &p->m->arch;
    uint64_t dims[3];
    char name[128];
    hn_tensor *t;
    if (!hn_arch_has(a, role, layer)) return HUNCH_OK;
    hn_arch_tensor_name(a, role, layer, name);
    hn_arch_tensor_shape(a, role, layer, dims);
    const int count = (int)(dims[0] * dims[1]);
    const bool folder = a->form == HN_SOURCE_HF;
    if (folder) {
        dims[2] = dims[1];
        dims[1] = 1;
    }
    if (p->missing && !hn_source_look(p->src, name)) return hn_name_list_add(p->missing, name, err);
    hunch_status st = hn_source_need_shape(p->src, name, folder ? 3 : 2, dims, &t, err);
    if (st) return st;
    plan_vector(p, t, (hn_part){0, count}, 1, 0, dst);
    p->item[p->n - 1].change = HN_CHANGE_TAPS;
    return HUNCH_OK;
}

hunch_status hn_plan_named_vector(hn_plan *p, const char *name, int count, hn_buf *dst, hunch_error *err) {
    hn_tensor *t;
    const hn_tensor *there = hn_source_look(p->src, name);
    const bool one_row = there && there->n_dims == 2 && there->dims[1] == 1, one_sheet = there && there->n_dims == 3;
    const uint64_t dims[3] = {(uint64_t)count, 1, 1};
    hunch_status st = one_sheet ? hn_source_need_shape(p->src, name, 3, dims, &t, err)
                                : need_tensor(p, name, one_row ? 2 : 1, (uint64_t)count, 1, &t, err);
    if (!st && t) plan_vector(p, t, (hn_part){0, count}, 1, 0, dst);
    return st;
}

/* The place of a matrix's strips, or of a mapped one's factors. */
static hunch_status place_matrix(hn_plan *p, hn_placement *it, bool pair, hunch_error *err) {
    hn_weight *w = it->weight;
    const size_t strip = w->strip_stride;
    size_t bytes, total;
    if (p->strips < strip) p->strips = strip;
    if (p->mapped) {
        it->off = hn_plan_room(p, it->factors ? (size_t)(it->factors->dims[0] * it->factors->dims[1]) * sizeof(float) : 0);
        return HUNCH_OK;
    }
    if (!hn_mul_size(strip, (size_t)hn_strips(w->out), &bytes) || !hn_add_size(p->bytes, align_up(bytes), &total))
        return hn_fail_memory(err, it->tensor->name, SIZE_MAX);
    it->off = hn_plan_room(p, bytes);
    if (pair && !lacks(p)) {
        hn_placement *first = it - 1;
        it->off = first->off + strip;
        first->weight->strip_stride += strip;
        w->strip_stride = first->weight->strip_stride;
    }
    return HUNCH_OK;
}

/* The type that a matrix is packed in: its own, or the plan's where its rows are whole blocks of that. */
static hn_dtype packed_type(const hn_plan *p, const hn_tensor *t, int in) {
    size_t row;
    if (!p->convert || t->dtype > HN_BF16) return t->dtype;
    return hn_dtype_row_bytes(p->as, (uint64_t)in, &row) ? p->as : HN_BF16;
}

static hunch_status plan_matrix(hn_plan *p, hn_tensor *t, hn_part part, bool pair, hn_weight *w, hunch_error *err) {
    hn_tensor *factors = NULL;
    hunch_status st = find_factors(p, t, &factors, err);
    if (!st && factors && part.first % HN_STRIP)
        st = hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: row %d begins a matrix, expected a multiple of %d for %s",
                     hn_source_path(p->src), t->name, part.first, HN_STRIP, t->type_name);
    if (st) return st;
    const int in = (int)t->dims[0], out = part.count;
    const hn_dtype type = packed_type(p, t, in);
    const size_t strip = p->m->ops.strip_bytes(type, in);
    *w = (hn_weight){.dtype = type, .out = out, .in = in, .strip_stride = strip};
    p->item[p->n] = (hn_placement){.tensor = t, .weight = w, .first = part.first, .out = out, .factors = factors};
    st = place_matrix(p, &p->item[p->n], pair, err);
    if (st) return st;
    p->n++;
    size_t row = 0;
    hn_dtype_row_bytes(t->dtype, (uint64_t)in, &row);
    p->stored += row * (uint64_t)out;
    p->m->parameters += (uint64_t)in * (uint64_t)out;
    p->m->weight_bytes += p->mapped ? row * (size_t)out : strip * (size_t)hn_strips(w->out);
    p->m->macs_per_row += (double)in * out;
    return HUNCH_OK;
}

hunch_status hn_plan_matrix(hn_plan *p, hn_role role, int layer, hn_part part, bool pair, hn_weight *w, hunch_error *err) {
    uint64_t dims[2];
    hn_tensor *t;
    hunch_status st = find_tensor(p, role, layer, dims, &t, err);
    if (st || !t) return st;
    if (!part.count) part.count = (int)dims[1];
    st = plan_matrix(p, t, part, pair, w, err);
    if (!st) p->item[p->n - 1].turn = turn_of(&p->m->arch, role, layer);
    w->phase = hn_role_phase(role);
    return st;
}

hunch_status hn_plan_named_rows(hn_plan *p, const char *name, int in, int out, hn_part part, hn_weight *w, hunch_error *err) {
    hn_tensor *t;
    hunch_status st = need_tensor(p, name, 2, (uint64_t)in, (uint64_t)out, &t, err);
    return st || !t ? st : plan_matrix(p, t, part, false, w, err);
}

hunch_status hn_plan_named_matrix(hn_plan *p, const char *name, int in, int out, hn_weight *w, hunch_error *err) {
    return hn_plan_named_rows(p, name, in, out, (hn_part){0, out}, w, err);
}

/* ---- the load ------------------------------------------------------------------------------------------------------- */

typedef struct pack_job {
    const hn_ops *ops;
    hn_source *src;
    const hn_tensor *tensor;
    const hn_weight *w;
    hn_stored from;      /* rows NULL */
    hn_turn turn;
    unsigned char *rows; /* [ranks][HN_STRIP] of them, as the file has them; then, where that is another type, as floats */
    size_t rank_bytes;   /* of each rank */
    bool finite;         /* refuse what is not */
    atomic_int failed;   /* the rank that could not read, 1 more than its number; the first one tells why */
    hunch_status status; /* its */
    hunch_error *err;
} pack_job;

/* Rows of strip s into the rank's place. */
static hunch_status read_strip(const pack_job *j, int s, unsigned char *to, hunch_error *err) {
    const int row = s * HN_STRIP, left = j->w->out - row, n = left < HN_STRIP ? left : HN_STRIP;
    const size_t bytes = j->from.row_bytes;
    hunch_status st = HUNCH_OK;
    if (!j->turn.size) return hn_source_read(j->src, j->tensor, (size_t)(j->from.first + row) * bytes, (size_t)n * bytes, to, err);
    for (int i = 0; !st && i < n; i++)
        st = hn_source_read(j->src, j->tensor, (size_t)row_in_file(j->turn, j->from.first + row + i) * bytes, bytes,
                            to + (size_t)i * bytes, err);
    return st;
}

static hunch_status not_finite(const hn_source *src, const hn_tensor *t, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: a value is not finite", hn_source_path(src), t->name);
}

static bool all_finite(const float *f, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(f[i])) return false;
    return true;
}

/* The rows of strip s, that lie as the file has them at `rows`, in the type that the matrix is packed in: *from,
 * *row_bytes apart. There is room behind them for as many rows of floats and one more. */
static hunch_status convert_strip(const pack_job *j, int s, unsigned char *rows, const unsigned char **from, size_t *row_bytes,
                                  hunch_error *err) {
    const int left = j->w->out - s * HN_STRIP, n = left < HN_STRIP ? left : HN_STRIP, in = j->w->in;
    unsigned char *to = rows + (size_t)HN_STRIP * j->from.row_bytes;
    float *f = (float *)(void *)(to + (size_t)HN_STRIP * (size_t)in * sizeof(float));
    const bool same = j->w->dtype == j->tensor->dtype;
    *from = rows;
    *row_bytes = j->from.row_bytes;
    if (same && !j->finite) return HUNCH_OK;
    for (int i = 0; i < n; i++) {
        hn_dequantise(j->tensor->dtype, rows + (size_t)i * j->from.row_bytes, (size_t)in, f);
        if (j->finite && !all_finite(f, (size_t)in)) return not_finite(j->src, j->tensor, err);
        if (same) continue;
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
    hn_claim c = hn_claim_begin(j->ops->pool, rank, hn_strips(j->w->out));
    for (int s; (s = hn_claim_next(&c)) >= 0;) {
        hunch_error why;
        int nobody = 0;
        if (atomic_load_explicit(&j->failed, memory_order_relaxed)) continue;
        const unsigned char *from;
        size_t row_bytes;
        if (read_strip(j, s, rows, &why) || convert_strip(j, s, rows, &from, &row_bytes, &why)) {
            if (!atomic_compare_exchange_strong(&j->failed, &nobody, rank + 1)) continue;
            j->status = why.status;
            if (j->err) *j->err = why;
            continue;
        }
        j->ops->pack_strip(j->ops, j->w->dtype, j->w->out - s * HN_STRIP, j->w->in, from, row_bytes,
                           hn_stored_factors(&j->from, j->w->in, s * HN_STRIP), 0,
                           hn_at(j->w->data, (size_t)s * j->w->strip_stride));
    }
    hn_barrier(j->ops->pool, rank);
}

static hunch_status pack_all(hn_plan *p, const hn_placement *it, const hn_stored *from, hunch_error *err) {
    const bool converted = it->weight->dtype != it->tensor->dtype;
    const bool finite = p->finite && it->tensor->dtype <= HN_BF16;
    const size_t floats = converted || finite ? (HN_STRIP + 1) * (size_t)it->weight->in * sizeof(float) : 0;
    const size_t rank_bytes = align_up(HN_STRIP * from->row_bytes + floats), room = (size_t)hn_pool_threads(p->m->pool) * rank_bytes;
    pack_job j = {.rank_bytes = rank_bytes, .finite = finite, .ops = &p->m->ops, .src = p->src, .tensor = it->tensor, .w = it->weight, .from = *from, .turn = it->turn, .err = err};
    j.rows = hn_alloc(room);
    if (!j.rows) return hn_fail_memory(err, it->tensor->name, room);
    hn_pool_run(p->m->pool, pack_matrix, &j);
    hn_free(j.rows);
    return atomic_load(&j.failed) ? j.status : HUNCH_OK;
}

/* The tensor's first n values, as floats. To be freed with hn_free. */
static hunch_status read_values(const hn_source *src, const hn_tensor *t, size_t n, float **out, hunch_error *err) {
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

/* Of a vector: one of rows that the file has in pairs. */
static hunch_status turn_values(hn_turn turn, float *f, int n, hunch_error *err) {
    float *copy = hn_alloc((size_t)n * sizeof *copy);
    if (!copy) return hn_fail_memory(err, "a vector", (size_t)n * sizeof *copy);
    memcpy(copy, f, (size_t)n * sizeof *copy);
    for (int i = 0; i < n; i++) f[i] = copy[row_in_file(turn, i)];
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

static hunch_status load_vector(hn_plan *p, const hn_placement *it, hunch_error *err) {
    float *f;
    hunch_status st = read_values(p->src, it->tensor, (size_t)(it->first + it->out), &f, err);
    if (st) return st;
    float *own = f + it->first;
    if (p->finite && !all_finite(own, (size_t)it->out)) st = not_finite(p->src, it->tensor, err);
    if (!st && it->turn.size) st = turn_values(it->turn, own, it->out, err);
    if (!st && it->change == HN_CHANGE_TAPS) st = put_taps_first(own, (int)it->tensor->dims[0], it->out, err);
    if (st) {
        hn_free(f);
        return st;
    }
    for (int i = 0; i < it->out; i++) own[i] = it->times * own[i] + it->more;
    for (int i = 0; i < it->out && it->change == HN_CHANGE_DECAY; i++) own[i] = (float)-exp((double)own[i]);
    *it->vector = (hn_buf){p->m->weights, it->off};
    p->m->ops.write(&p->m->ops, *it->vector, own, (size_t)it->out * sizeof *own);
    hn_free(f);
    return HUNCH_OK;
}

/* Packs it, or says where its rows are. */
static hunch_status load_matrix(hn_plan *p, const hn_placement *it, hunch_error *err) {
    const hn_ops *o = &p->m->ops;
    const hn_buf place = {p->m->weights, it->off};
    const size_t n_factors = it->factors ? (size_t)(it->factors->dims[0] * it->factors->dims[1]) : 0;
    hn_stored from = {.first = it->first};
    float *factors = NULL;
    hunch_status st = it->factors ? read_values(p->src, it->factors, n_factors, &factors, err) : HUNCH_OK;
    if (st) return st;
    hn_dtype_row_bytes(it->tensor->dtype, (uint64_t)it->weight->in, &from.row_bytes);
    if (p->mapped) {
        from.rows = (const char *)it->tensor->data + (size_t)it->first * from.row_bytes;
        if (factors) o->write(o, place, factors, n_factors * sizeof *factors);
        from.factors = factors ? o->view(o, place) : NULL;
        it->weight->stored = from;
    } else {
        from.factors = factors;
        it->weight->data = place;
        st = pack_all(p, it, &from, err);
    }
    hn_free(factors);
    return st;
}

/* The model's one block. Asked for before it is taken: a system that runs out later kills without a word. */
static hunch_status take_memory(hn_plan *p, hunch_error *err) {
    hn_model *m = p->m;
    const size_t ranks = (size_t)hn_pool_threads(m->pool), left = hn_memory_left();
    const size_t strips_off = hn_plan_room(p, p->mapped ? p->strips * HN_RANK_STRIPS * ranks : 0);
    hunch_status st = p->bytes > left ? HUNCH_NO_MEMORY : m->ops.mem_create(&m->ops, p->bytes, &m->weights, err);
    if (st == HUNCH_NO_MEMORY)
        return hn_fail(err, st, "%s: its weights need %zu bytes of memory, %zu are available%s", hn_source_path(p->src),
                       p->bytes, left, p->mapped ? "" : "; --mapped leaves them in the file");
    if (st) return st;
    if (p->mapped) { /* else what a head borrows of a mapped target is packed where that packs it */
        m->ops.strips = (hn_buf){m->weights, strips_off};
        m->ops.strip_room = p->strips;
    }
    m->bytes = (hn_model_bytes){p->bytes, p->stored};
    return HUNCH_OK;
}

hunch_status hn_plan_load(hn_plan *p, const hn_model_load *load, hunch_error *err) {
    hunch_status st = take_memory(p, err);
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
    return hn_source_check(p->src, err); /* all of it is of one and the same file */
}
