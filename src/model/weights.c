/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - the plan of a load: finds and checks every tensor, and determines every matrix's place in one block of
 * huge pages, or in the file. A mapped model's plan has places for vectors and factors only; its matrices are packed
 * strip by strip whenever they are needed (ops/cpu_linear.c). The load itself: weights_load.c. */
#include "model/weights.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/tensor_rows.h"
#include "ops/pack.h"

enum { ALIGN = 64 };

static size_t align_up(size_t n) {
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
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

/* Whether the plan lacks a tensor. Then it is never loaded. */
static bool lacks(const hn_plan *p) {
    return p->missing && p->missing->n > 0;
}

static hunch_status refuse_rows(const hn_plan *p, const hn_tensor *t, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: rows of %d %s, expected whole blocks of a weight type",
                   hn_source_path(p->src), t->name, (int)t->dims[0], hn_dtype_name(t->dtype));
}

/* Finds a tensor by its name and shape; NULL: it is missing, and was added to the list. */
static hunch_status need_tensor(hn_plan *p, const char *name, int n_dims, uint64_t in, uint64_t out, hn_tensor **t,
                                hunch_error *err) {
    size_t row;
    *t = NULL;
    if (p->missing && !hn_source_find(p->src, name)) {
        const hunch_status st = hn_quantised_refuse(p->src, name, "is missing", err);
        return st ? st : hn_name_list_add(p->missing, name, err);
    }
    hunch_status st = hn_source_need(p->src, name, n_dims, in, out, t, err);
    if (st) return st;
    if ((*t)->dtype >= HN_WEIGHT_TYPES || !hn_dtype_row_bytes((*t)->dtype, in, &row)) return refuse_rows(p, *t, err);
    return HUNCH_OK;
}

/* The same for a tensor of dims[2] matrices. */
static hunch_status need_matrices(hn_plan *p, const char *name, const uint64_t dims[3], hn_tensor **t, hunch_error *err) {
    size_t row;
    if (dims[2] == 1) return need_tensor(p, name, 2, dims[0], dims[1], t, err);
    *t = NULL;
    if (p->missing && !hn_source_find(p->src, name)) return hn_name_list_add(p->missing, name, err);
    hunch_status st = hn_source_need_shape(p->src, name, 3, dims, t, err);
    if (st || hn_dtype_row_bytes((*t)->dtype, dims[0], &row)) return st;
    return refuse_rows(p, *t, err);
}

/* The vector of a head, or a table of three dimensions; a vector may have further dimensions of 1. */
static hunch_status need_vector(hn_plan *p, const char *name, hn_tensor_id id, uint64_t dims[2], hn_tensor **t, hunch_error *err) {
    const hn_tensor *there = hn_source_find(p->src, name);
    uint64_t three[3] = {0, 1, 1};
    const bool sides = hn_arch_dims(&p->m->arch, id, three) == 3;
    if (there && (sides || there->n_dims == 3)) return hn_source_need_shape(p->src, name, 3, three, t, err);
    if (sides && !p->missing) return hn_source_need_shape(p->src, name, 3, three, t, err);
    return need_tensor(p, name, 1, dims[0], 1, t, err);
}

/* dims: its shape. */
static hunch_status find_tensor(hn_plan *p, hn_tensor_id id, uint64_t dims[2], hn_tensor **t, hunch_error *err) {
    char room[128];
    const char *name = hn_arch_name(&p->m->arch, id, room), *other = hn_tensor_row_of(id.role)->other;
    hn_arch_shape(&p->m->arch, id, dims);
    if (other && p->m->arch.files.form == HN_SOURCE_GGUF && !(name && hn_source_find(p->src, name)) && hn_source_find(p->src, other))
        name = other;
    if (!name)
        return hn_fail(err, HUNCH_REFUSED, "%s: a head of this form has no such norms as its folder asks for", hn_source_path(p->src));
    const bool vector = hn_role_is_vector(id.role);
    if (vector && id.role >= HN_ROLES_OF_MODELS) return need_vector(p, name, id, dims, t, err);
    uint64_t across[2];
    const hn_tensor *there = hn_source_find(p->src, name);
    if (hn_arch_vector_across(&p->m->arch, id, across) && there && there->n_dims > 1)
        return need_tensor(p, name, 2, across[0], across[1], t, err);
    return need_tensor(p, name, vector && hn_role_kind_of(id.role) != HN_IS_EXPERT_VECTORS ? 1 : 2, dims[0], dims[1], t, err);
}

static void plan_vector(hn_plan *p, hn_tensor *t, hn_part part, float times, float more, hn_buf *dst) {
    p->item[p->n++] = (hn_placement){.tensor = t, .vector = dst, .first = part.first, .out = part.count, .runs = part.runs,
                                     .times = times, .more = more, .off = hn_plan_room(p, (size_t)part.count * sizeof(float))};
    p->m->parameters += (uint64_t)part.count;
}

static hn_row_order row_order_of(const hn_arch *a, hn_role role, int layer) {
    if (!a->files.rows_in_pairs || !hn_role_is_rotated(role) || a->layer[layer].rotation == HN_NO_ROTATION) return (hn_row_order){0, 0};
    const hn_rotation *rotation = &a->rotation[a->layer[layer].rotation];
    assert(rotation->first == 0);
    return (hn_row_order){a->layer[layer].head_dim, rotation->dims};
}

hunch_status hn_plan_vector(hn_plan *p, hn_tensor_id id, hn_part part, hn_buf *dst, hunch_error *err) {
    const hn_arch *a = &p->m->arch;
    uint64_t dims[2];
    hn_tensor *t;
    if (!hn_arch_has(a, id.role, id.k)) return HUNCH_OK;
    hunch_status st = find_tensor(p, id, dims, &t, err);
    if (st || !t) return st;
    if (!part.count) part.count = (int)dims[0];
    plan_vector(p, t, part, hn_arch_vector_times(a, id), hn_arch_vector_more(a, id.role), dst);
    p->item[p->n - 1].order = row_order_of(a, id.role, id.k);
    if (a->files.form == HN_SOURCE_HF) p->item[p->n - 1].change = hn_role_change(id.role);
    return HUNCH_OK;
}

hunch_status hn_plan_norm(hn_plan *p, hn_tensor_id id, hn_norm *to, hunch_error *err) {
    const hn_arch *a = &p->m->arch;
    const float own = hn_tensor_row_of(id.role)->eps;
    if (!hn_arch_has(a, id.role, id.k)) return HUNCH_OK;
    to->kind = hn_arch_norms(a);
    to->eps = own > 0 ? own : a->norm_eps;
    return hn_plan_vector(p, id, (hn_part){0, 0, NULL}, &to->w, err);
}

hunch_status hn_plan_expert_vectors(hn_plan *p, hn_role role, int layer, hn_part part, hn_buf *dst, hunch_error *err) {
    uint64_t dims[2];
    hn_tensor *t;
    if (!hn_arch_has(&p->m->arch, role, layer)) return HUNCH_OK;
    hunch_status st = find_tensor(p, (hn_tensor_id){role, layer, 0}, dims, &t, err);
    if (st || !t) return st;
    if (!part.count) part.count = (int)dims[0];
    const int vectors = (int)dims[1];
    p->item[p->n++] = (hn_placement){.tensor = t, .vector = dst, .first = part.first, .out = part.count, .vectors = vectors, .times = 1,
                                     .off = hn_plan_room(p, (size_t)part.count * (size_t)vectors * sizeof(float))};
    p->m->parameters += (uint64_t)part.count * (uint64_t)vectors;
    return HUNCH_OK;
}

hunch_status hn_plan_convolution(hn_plan *p, hn_role role, int layer, hn_part part, hn_buf *dst, hunch_error *err) {
    const hn_arch *a = &p->m->arch;
    uint64_t dims[3];
    char name[128];
    hn_tensor *t;
    if (!hn_arch_has(a, role, layer)) return HUNCH_OK;
    hn_arch_tensor_name(a, role, layer, name);
    hn_arch_tensor_shape(a, role, layer, dims);
    const int count = (int)dims[0] * (part.count ? part.count : (int)dims[1]);
    const bool folder = a->files.form == HN_SOURCE_HF;
    if (folder) {
        dims[2] = dims[1];
        dims[1] = 1;
    }
    if (p->missing && !hn_source_find(p->src, name)) return hn_name_list_add(p->missing, name, err);
    hunch_status st = hn_source_need_shape(p->src, name, folder ? 3 : 2, dims, &t, err);
    if (st) return st;
    plan_vector(p, t, (hn_part){part.first * (int)t->dims[0], count, part.runs}, 1, 0, dst);
    p->item[p->n - 1].change = HN_CHANGE_TAPS;
    return HUNCH_OK;
}

/* Whether each run of its rows is whole strips, which are packed where they lie. */
static bool has_whole_strips(const hn_runs *r) {
    for (int i = 0; r && i < r->n; i++)
        if (r->count[i] % HN_STRIP) return false;
    return true;
}

bool hn_plan_stays_in_file(const hn_plan *p, const hn_weight *w) {
    if (!has_whole_strips(w->stored.runs)) return false;
    return p->mapped || w->by_row || (p->mapped_experts && w->experts > 0 && !w->of_heads);
}

/* Of a backend that cannot read this matrix. */
static hunch_status refuse_matrix(const hn_plan *p, const hn_tensor *t, const char *what, hunch_error *err) {
    char all[300];
    snprintf(all, sizeof all, "products by tensor %.200s, which %s", t->name, what);
    return hn_model_refuse(p->m, hn_source_path(p->src), all, err);
}

/* Determines the place of a matrix in the block of memory, which is allocated later. */
static hunch_status place_matrix(hn_plan *p, const hn_tensor *t, bool pair, hn_weight *w, hunch_error *err) {
    const hn_backend *b = p->m->backend;
    const size_t one = b->matrix_bytes(b, w->dtype, w->out, w->in);
    size_t bytes, total;
    if (one == 0) {
        char what[64];
        snprintf(what, sizeof what, "has type %s", hn_dtype_name(w->dtype));
        return refuse_matrix(p, t, what, err);
    }
    if (hn_plan_stays_in_file(p, w) && !b->stored_room) return refuse_matrix(p, t, "stays in its file", err);
    if (hn_plan_stays_in_file(p, w)) {
        const size_t room = b->stored_room(b, w->dtype, w->in);
        if (p->stored_room < room) p->stored_room = room;
        return HUNCH_OK;
    }
    if (!hn_mul_size(one, (size_t)(w->experts > 0 ? w->experts : 1), &bytes) || !hn_add_size(p->bytes, align_up(bytes), &total))
        return hn_fail_memory(err, t->name, SIZE_MAX);
    w->place = b->place(b, w->dtype, w->in, (hn_buf){NULL, hn_plan_room(p, bytes)});
    if (pair && !lacks(p)) b->pair(b, &p->last->place, &w->place);
    p->last = w;
    return HUNCH_OK;
}

size_t hn_plan_factors(const hn_tensor *t) {
    const size_t across = ((size_t)t->dims[0] + HN_F8_TILE - 1) / HN_F8_TILE, down = ((size_t)t->dims[1] + HN_F8_TILE - 1) / HN_F8_TILE;
    return across * down * (t->n_dims > 2 ? (size_t)t->dims[2] : 1);
}

/* Room for the factors of a matrix that stays in its file: where they begin. */
static size_t place_factors(hn_plan *p, const hn_placement *it) {
    const size_t first = p->factors;
    if (it->factors.values) p->factors += align_up(hn_plan_factors(it->tensor) * sizeof(float)) / sizeof(float);
    return first;
}

/* The type that a matrix is packed in: its own, or the plan's if its rows are whole blocks of that. */
static hn_dtype packed_type(const hn_plan *p, const hn_tensor *t, int in) {
    size_t row;
    if (!p->convert || t->dtype > HN_BF16) return t->dtype;
    return hn_dtype_row_bytes(p->as, (uint64_t)in, &row) ? p->as : HN_BF16;
}

/* Adds a matrix to the work of a pass of one row: `used` of those of experts or heads, or 1. stored: whether the pass reads the file's
 * rows. */
static void count_matrix(hn_plan *p, const hn_tensor *t, const hn_weight *w, int used, bool stored) {
    const uint64_t matrices = w->experts > 0 ? (uint64_t)w->experts : 1, out = (uint64_t)w->out, in = (uint64_t)w->in;
    const uint64_t packed = hn_packed_bytes(p->m, w);
    size_t row = 0;
    hn_dtype_row_bytes(t->dtype, t->dims[0], &row);
    const uint64_t in_file = row * in * out / t->dims[0], bytes = stored ? in_file : packed;
    p->stored += in_file * matrices;
    if (w->experts > 0 && !w->of_heads) {
        hn_file_rows rows;
        p->experts_load |= !hn_tensor_rows(t, 0, &rows);
        p->experts_memory = p->experts_load ? 0 : p->experts_memory + packed * matrices;
        p->experts_stored = p->experts_load ? 0 : p->experts_stored + in_file * matrices;
        p->m->expert_bytes += bytes; /* of all layers; model.c divides it */
    }
    p->m->parameters += in * out * matrices;
    p->m->weight_bytes += bytes * (uint64_t)used;
    p->m->macs_per_row += (double)in * (double)out * used;
}

static hunch_status check_factors(const hn_plan *p, const hn_tensor *t, const hn_tensor *factors, hn_part part, hunch_error *err) {
    int odd = part.first % HN_STRIP;
    for (int i = 0; part.runs && i < part.runs->n; i++) odd |= (part.runs->first[i] | part.runs->count[i]) % HN_STRIP;
    if (!factors || !odd) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: row %d begins a matrix, expected a multiple of %d for %s",
                   hn_source_path(p->src), t->name, part.first, HN_STRIP, t->type_name);
}

/* Only experts' rows may be apart from each other in the file. */
static hunch_status check_stays(const hn_plan *p, const hn_tensor *t, const hn_weight *w, hunch_error *err) {
    hn_file_rows rows;
    if (!hn_plan_stays_in_file(p, w) || !t->view || (w->experts > 0 && hn_tensor_rows(t, 0, &rows))) return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: tensor %s is stored %s, and cannot stay in the file: expected a GGUF, which hunch convert makes of "
                   "the folder",
                   hn_source_path(p->src), t->name, hn_tensor_form(t));
}

static hn_weight weight_of(const hn_plan *p, const hn_tensor *t, int out, int experts) {
    const int in = (int)t->dims[0];
    const hn_dtype type = packed_type(p, t, in);
    return (hn_weight){.dtype = type, .out = out, .in = in, .experts = experts};
}

static hunch_status plan_matrix(hn_plan *p, hn_tensor *t, hn_part part, bool pair, hn_weight *w, hunch_error *err) {
    hn_placement it = {.tensor = t, .weight = w, .first = part.first, .out = part.count, .runs = part.runs};
    hunch_status st = hn_quantised_fp8(p->src, t, 1, &it.factors, err);
    if (!st) st = check_factors(p, t, it.factors.values, part, err);
    if (st) return st;
    *w = weight_of(p, t, part.count, 0);
    w->stored.runs = part.runs;
    st = check_stays(p, t, w, err);
    if (!st) st = place_matrix(p, t, pair, w, err);
    if (st) return st;
    if (hn_plan_stays_in_file(p, w)) it.off = place_factors(p, &it);
    p->item[p->n++] = it;
    count_matrix(p, t, w, 1, hn_plan_stays_in_file(p, w));
    return HUNCH_OK;
}

/* The tensor of expert e, or of all; the first one determines the type. */
static hunch_status plan_expert(hn_plan *p, hn_role role, int layer, int e, int matrices, hn_part part, hn_weight *w,
                               hunch_error *err) {
    char name[128];
    uint64_t dims[3];
    hn_placement it = {.weight = w, .first = part.first, .out = part.count, .expert = e, .matrices = matrices};
    hn_arch_expert_name(&p->m->arch, role, layer, e, name);
    hn_arch_tensor_shape(&p->m->arch, role, layer, dims);
    dims[2] = (uint64_t)matrices;
    hunch_status st = need_matrices(p, name, dims, &it.tensor, err);
    if (st || !it.tensor) return st;
    st = hn_quantised_fp8(p->src, it.tensor, matrices, &it.factors, err);
    if (!st) st = check_stays(p, it.tensor, w, err);
    if (!st) st = check_factors(p, it.tensor, it.factors.values, part, err);
    if (st) return st;
    if (hn_plan_stays_in_file(p, w)) it.off = place_factors(p, &it);
    p->item[p->n++] = it;
    return HUNCH_OK;
}

hunch_status hn_plan_experts(hn_plan *p, hn_role role, int layer, hn_part part, bool pair, hn_weight *w, hunch_error *err) {
    const hn_arch *a = &p->m->arch;
    const hn_expert_desc *d = &a->layer[layer].experts;
    const int matrices = hn_arch_matrices(a, role, layer), begun = p->n;
    uint64_t dims[3];
    hunch_status st = HUNCH_OK;
    hn_arch_tensor_shape(a, role, layer, dims);
    if (!part.count) part.count = (int)dims[1];
    w->experts = d->count;
    for (int e = 0; !st && e < d->count; e += matrices) st = plan_expert(p, role, layer, e, matrices, part, w, err);
    if (st || p->n == begun) return st;
    const hn_tensor *t = p->item[begun].tensor;
    for (int i = begun; i < p->n; i++)
        if (p->item[i].tensor->dtype != t->dtype)
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has type %s, %s has %s: expected one type of all experts of a layer",
                           hn_source_path(p->src), p->item[i].tensor->name, p->item[i].tensor->type_name, t->name, t->type_name);
    *w = weight_of(p, t, part.count, d->count);
    w->phase = hn_role_phase(role);
    st = place_matrix(p, t, pair, w, err);
    if (!st) count_matrix(p, t, w, d->used, hn_plan_stays_in_file(p, w));
    return st;
}

/* ---- matrices of heads ------------------------------------------------------------------------------------------------ */

static hn_dtype wide_type(const hn_plan *p) {
    return p->m->backend->f32 ? HN_F32 : HN_BF16;
}

/* The factors of 8-bit floats are multiplied in while loading, if a strip of a head may have rows of two blocks. */
static hunch_status widen_heads(const hn_plan *p, const hn_tensor *t, int first, int each, hn_weight *w, hunch_error *err) {
    if (hn_plan_stays_in_file(p, w))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: row %d of %d of a head, expected multiples of %d for %s that stay in the file",
                       hn_source_path(p->src), t->name, first, each, HN_STRIP, t->type_name);
    w->dtype = wide_type(p);
    return HUNCH_OK;
}

/* The matrices of all heads, in a tensor of their own or as rows of one with others, whose matrices are `each` rows apart. */
static hunch_status plan_head_rows(hn_plan *p, hn_tensor *t, hn_part part, int each, hn_part heads, hn_weight *w, hunch_error *err) {
    const bool some = t->n_dims == 3 && heads.count < (int)t->dims[2];
    hn_placement it = {.tensor = t, .weight = w, .first = part.first + heads.first * each, .out = part.count, .matrices = heads.count,
                       .each = each};
    *w = weight_of(p, t, part.count, heads.count);
    w->of_heads = true;
    hunch_status st = hn_quantised_fp8(p->src, t, t->n_dims == 3 ? (int)t->dims[2] : 1, &it.factors, err);
    if (!st && some && it.factors.values) st = refuse_matrix(p, t, "has factors of some of its heads", err);
    if (!st && it.factors.values && (part.first % HN_STRIP || each % HN_STRIP)) st = widen_heads(p, t, part.first, each, w, err);
    if (!st) st = check_stays(p, t, w, err);
    if (!st) st = place_matrix(p, t, false, w, err);
    if (st) return st;
    if (hn_plan_stays_in_file(p, w)) it.off = place_factors(p, &it);
    p->item[p->n++] = it;
    count_matrix(p, t, w, heads.count, hn_plan_stays_in_file(p, w));
    return HUNCH_OK;
}

/* The type that exchanged rows and columns have: the tensor's, if a row of the result can have it without rounding. */
static hn_dtype transposed_type(const hn_plan *p, const hn_tensor *t, int in, int each) {
    if (t->dtype <= HN_BF16) return packed_type(p, t, in);
    if (t->dtype == HN_F8_E4M3 && in % HN_F8_TILE == 0 && each % HN_F8_TILE == 0) return HN_F8_E4M3;
    return wide_type(p);
}

/* The same, with rows and columns of each matrix exchanged: they are in memory also if others stay in the file. */
static hunch_status plan_transposed(hn_plan *p, hn_tensor *t, int in, int each, hn_part heads, hn_weight *w, hunch_error *err) {
    hn_placement it = {.tensor = t, .weight = w, .first = heads.first * each, .out = in, .matrices = heads.count, .each = each,
                       .transposed = true};
    const hn_dtype type = transposed_type(p, t, in, each);
    const int out = (int)t->dims[0];
    size_t bytes;
    *w = (hn_weight){.dtype = type, .out = out, .in = in, .experts = heads.count, .of_heads = true};
    hunch_status st = hn_quantised_fp8(p->src, t, 1, &it.factors, err);
    if (st) return st;
    const hn_backend *b = p->m->backend;
    if (!hn_mul_size(b->matrix_bytes(b, type, out, in), (size_t)heads.count, &bytes)) return hn_fail_memory(err, t->name, SIZE_MAX);
    w->place = b->place(b, type, in, (hn_buf){NULL, hn_plan_room(p, bytes)});
    p->item[p->n++] = it;
    count_matrix(p, t, w, heads.count, false);
    return HUNCH_OK;
}

hunch_status hn_plan_split_heads(hn_plan *p, hn_role role, int layer, hn_part heads, hn_weight *w, hunch_error *err) {
    uint64_t dims[3];
    char name[128];
    hn_tensor *t;
    hn_arch_tensor_name(&p->m->arch, role, layer, name);
    hn_arch_tensor_shape(&p->m->arch, role, layer, dims);
    dims[2] = (uint64_t)p->m->arch.layer[layer].heads;
    const hn_tensor *rows = hn_source_find(p->src, name);
    hunch_status st = rows && rows->n_dims == 2 /* ik_llama.cpp's */ ? need_tensor(p, name, 2, dims[0], dims[1] * dims[2], &t, err)
                                                                     : need_matrices(p, name, dims, &t, err);
    if (!st && t) st = plan_head_rows(p, t, (hn_part){0, (int)dims[1], NULL}, (int)dims[1], heads, w, err);
    w->phase = hn_role_phase(role);
    return st;
}

hunch_status hn_plan_heads(hn_plan *p, hn_tensor_id id, hn_part part, hn_part heads, hn_weight *transposed, hn_weight *rows,
                           hunch_error *err) {
    const int each = part.first + part.count;
    uint64_t dims[2];
    hn_tensor *t;
    hunch_status st = find_tensor(p, id, dims, &t, err);
    if (st || !t) return st;
    st = plan_transposed(p, t, part.first, each, heads, transposed, err);
    if (!st) st = plan_head_rows(p, t, part, each, heads, rows, err);
    transposed->phase = hn_role_phase(id.role);
    rows->phase = HN_PHASE_O;
    return st;
}

/* Whether a matrix of this role is multiplied by hn_layer_product (layers.h), which puts its inputs in order. */
static bool reads_in_order(hn_role role) {
    switch (role) {
    case HN_ROLE_Q: case HN_ROLE_K: case HN_ROLE_V: case HN_ROLE_QKV: case HN_ROLE_HEADS_GATE: case HN_ROLE_O:
    case HN_ROLE_GATE: case HN_ROLE_UP: case HN_ROLE_GATE_UP: case HN_ROLE_DOWN: return true;
    default: return false;
    }
}

/* The place of an order: that of the matrix before, if it is the same, as those of q, k and v mostly are; or a new one. */
static void plan_order(hn_plan *p, const int32_t *inputs, hn_weight *w) {
    hn_placement *it = &p->item[p->n - 1], *last = &p->item[p->sorted];
    const size_t bytes = (size_t)w->in * sizeof *inputs;
    const bool same = last->inputs && last->weight->in == w->in && memcmp(last->inputs, inputs, bytes) == 0;
    w->order = same ? last->weight->order : (hn_buf){NULL, hn_plan_room(p, bytes)};
    it->inputs = inputs;
    p->sorted = p->n - 1;
    if (w->in > p->m->sorted_width) p->m->sorted_width = w->in;
}

hunch_status hn_plan_matrix(hn_plan *p, hn_tensor_id id, hn_part part, bool pair, hn_weight *w, hunch_error *err) {
    const int32_t *inputs = NULL;
    uint64_t dims[2];
    hn_tensor *t;
    hunch_status st = find_tensor(p, id, dims, &t, err);
    if (st || !t) return st;
    if (!part.count) part.count = (int)dims[1];
    if (reads_in_order(id.role) && p->m->backend->ops->permute) st = hn_source_sort(t, &inputs, err);
    /* products with orders of their own are apart, and an order lies behind its matrix */
    if (!st) st = plan_matrix(p, t, part, pair && !inputs && !p->item[p->n - 1].inputs, w, err);
    if (!st) p->item[p->n - 1].order = row_order_of(&p->m->arch, id.role, id.k);
    if (!st && inputs) plan_order(p, inputs, w);
    w->phase = hn_role_phase(id.role);
    return st;
}

hunch_status hn_plan_table(hn_plan *p, hn_role role, hn_weight *w, hunch_error *err) {
    hn_placement it = {.weight = w};
    uint64_t dims[2];
    size_t row;
    hunch_status st = find_tensor(p, (hn_tensor_id){role, 0, 0}, dims, &it.tensor, err);
    if (!st && it.tensor && !p->m->backend->stored_room) st = refuse_matrix(p, it.tensor, "stays in its file", err);
    if (st || !it.tensor) return st;
    *w = (hn_weight){.dtype = it.tensor->dtype, .out = (int)dims[1], .in = (int)dims[0], .by_row = true, .phase = hn_role_phase(role)};
    st = hn_quantised_fp8(p->src, it.tensor, 1, &it.factors, err);
    if (!st) st = check_stays(p, it.tensor, w, err);
    if (st) return st;
    it.out = w->out;
    it.off = place_factors(p, &it);
    p->item[p->n++] = it;
    hn_dtype_row_bytes(w->dtype, dims[0], &row);
    p->table += row * dims[1];
    p->m->parameters += dims[0] * dims[1];
    return HUNCH_OK;
}
