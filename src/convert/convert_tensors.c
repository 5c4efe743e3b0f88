/* SPDX-License-Identifier: Apache-2.0 */
/* convert_tensors.c - the tensors of a GGUF: each is declared, then written, in one order. One is made of pieces: rows of a folder's
 * tensors as they are stored, or changed on the way by one of a few means. Experts and heads have a piece each, other tensors are one. */
#include "convert/convert_private.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "format/quantised.h"
#include "model/head/head.h"
#include "model/mixers.h"

/* ---- changes on the way --------------------------------------------------------------------------------------------------- */

/* The change of items (tensor_rows.h), and of values. */
typedef struct change {
    hn_tensor_change of;
    bool floats; /* written as F32: value + more, or -e^value */
    bool decay;
    float more;
} change;

/* A tensor of the GGUF. */
typedef struct written {
    char name[128];
    hn_dtype type;
    int n_dims;
    uint64_t dims[3];
    int pieces;
    change by;
} written;

/* Items [first, first + items) of a folder's tensor. */
typedef struct piece {
    hn_tensor *tensor;
    size_t first, items, bytes; /* bytes: of an item, as stored */
} piece;

/* Where an item of the folder is in the GGUF; of HN_HALVED the opposite. */
static size_t place_of(const hn_tensor_change *c, size_t i) {
    const size_t size = (size_t)c->size, first = (size_t)c->first;
    if (c->way == HN_PAIRED || c->way == HN_HALVED) {
        const size_t r = i % size;
        return r < first ? i : i - r + first + (size_t)hn_paired_row((int)(r - first), c->dims);
    }
    if (i < first) return i;
    const size_t keys = (size_t)c->keys, each = (size_t)c->each, head = (i - first) / size;
    return first + (head % each * keys + head / each) * size + (i - first) % size;
}

/* items of `bytes` each, of `columns` numbers. */
static void move_items(const hn_tensor_change *c, size_t items, size_t bytes, size_t columns, const char *from, char *to) {
    const size_t one = bytes / columns;
    for (size_t i = 0; i < items; i++) {
        if (c->way == HN_PAIRED || c->way == HN_TILED) memcpy(to + place_of(c, i) * bytes, from + i * bytes, bytes);
        if (c->way == HN_HALVED) memcpy(to + i * bytes, from + place_of(c, i) * bytes, bytes);
        for (size_t k = 0; c->way == HN_TILED_COLUMNS && k < columns; k++)
            memcpy(to + i * bytes + place_of(c, k) * one, from + i * bytes + k * one, one);
        for (size_t k = 0; c->way == HN_TRANSPOSED && k < columns; k++)
            memcpy(to + (k * items + i) * one, from + i * bytes + k * one, one);
    }
}

/* ---- which one a role has -------------------------------------------------------------------------------------------------- */

static change change_of(const hn_conversion *c, hn_tensor_id t) {
    const hn_arch *a = &c->arch;
    const hn_role role = t.role;
    const hn_layer_desc *l = hn_role_of_layer(role) ? &a->layer[t.k] : NULL;
    change by = {0};
    bool asked = false;
    for (int k = 0; l && k < hn_layer_mixers(l) && by.of.way == HN_AS_STORED; k++) {
        const hn_mixer_desc *mixer = &l->mixer[k];
        if (!mixer->kind->change) continue;
        by.of = mixer->kind->change(a, l, mixer, role);
        asked = true;
    }
    /* a head with steps says in its GGUF what its rows are */
    const bool pairs = (a->files.rows_in_pairs && !hn_head_steps(&a->draft_head)) || a->family->folder_pairs;
    if (!asked && a->family->pairs != pairs && hn_role_is_rotated(role))
        by.of = (hn_tensor_change){.way = pairs ? HN_HALVED : HN_PAIRED, .size = l->head_dim, .dims = a->rotation[0].dims};
    by.floats = hn_role_is_vector(role);
    by.decay = hn_role_change(role) == HN_CHANGE_DECAY;
    by.more = hn_arch_vector_more(a, role);
    return by;
}

static hunch_status refuse_form(const hn_conversion *c) {
    return hn_fail(c->err, HUNCH_REFUSED, "%s: a head of this form has no such norms as its folder asks for", hn_source_path(c->src));
}

/* ---- pieces ---------------------------------------------------------------------------------------------------------------- */

/* The folder's role that has the rows of a GGUF's, and the first of its rows: one may have those of two. */
static hn_role source_of(const hn_arch *a, hn_role role, int layer, size_t *first) {
    const hn_tensor_row *r = hn_tensor_row_of(role);
    *first = r->from_row ? (size_t)r->from_row(a, &a->layer[layer], (hn_tensor_id){role, layer, 0}) : 0;
    if (r->from) return r->from;
    for (int joint = 0; joint < HN_ROLES_OF_MODELS && !hn_arch_has(a, role, layer); joint++) {
        const hn_role *parts = hn_role_parts((hn_role)joint);
        for (int k = 0; parts && hn_arch_has(a, (hn_role)joint, layer) && k < 3 && parts[k]; k++) {
            uint64_t part[2];
            hn_arch_tensor_shape(a, role, layer, part);
            if (parts[k] == role) *first = (size_t)k * (size_t)part[hn_role_is_vector(role) ? 0 : 1];
            if (parts[k] == role) return (hn_role)joint;
        }
    }
    return role;
}

/* Finds piece number e of a tensor of a GGUF, which becomes w. */
static hunch_status piece_find(hn_conversion *c, const written *w, hn_tensor_id t, int e, piece *p) {
    const hn_arch *a = &c->arch;
    const hn_role_kind kind = hn_role_kind_of(t.role);
    const bool layers = hn_role_of_layer(t.role), value = hn_role_is_vector(t.role) && kind != HN_IS_CONVOLUTION;
    size_t first = 0;
    const hn_tensor_id from = {layers ? source_of(a, t.role, t.k, &first) : t.role, t.k, t.block};
    const int matrices = kind == HN_IS_OF_EXPERTS ? hn_arch_matrices(a, from.role, t.k) : 1;
    uint64_t dims[3], shape[2], part[2];
    char name[128];
    int n_dims = hn_arch_dims(a, from, dims);
    hn_arch_shape(a, from, shape);
    hn_arch_shape(a, t, part);
    if (layers)
        hn_arch_expert_name(a, from.role, t.k, e, name);
    else if (!hn_arch_name(a, from, name))
        return refuse_form(c);
    if (kind == HN_IS_OF_EXPERTS && matrices == 1) n_dims = 2;
    if (kind == HN_IS_CONVOLUTION) {
        n_dims = 3;
        dims[2] = dims[1];
        dims[1] = 1;
    }
    const hunch_status st = hn_source_need_shape(c->src, name, n_dims, dims, &p->tensor, c->err);
    if (st) return st;
    const size_t heads = kind == HN_IS_OF_HEADS ? (size_t)a->layer[t.k].heads : 1;
    const size_t each = (value ? (size_t)shape[0] : (size_t)shape[1]) / heads; /* items of one of `many` */
    const size_t many = matrices > 1 ? (size_t)matrices : kind == HN_IS_EXPERT_VECTORS ? (size_t)shape[1] : heads;
    p->items = (size_t)part[value || w->by.of.way == HN_TRANSPOSED ? 0 : 1];
    p->first = (many > 1 ? (size_t)e * each : 0) + first;
    p->bytes = p->tensor->bytes / (each * many);
    return HUNCH_OK;
}

/* ---- declaring ---------------------------------------------------------------------------------------------------------------- */

/* A GGUF has no type of 8-bit floats; or the folder is not read, for that reason. */
static hunch_status refuse_fp8(hn_conversion *c, const hn_tensor *t) {
    hn_fp8_factors factors;
    const hunch_status status = hn_quantised_fp8(c->src, t, t->n_dims > 2 ? (int)t->dims[2] : 1, &factors, c->err);
    return status ? status
                  : hn_fail(c->err, HUNCH_REFUSED,
                            "%s: tensor %s: a GGUF has no 8-bit floats; expected another type, or run the folder as it is",
                            hn_source_path(c->src), t->name);
}

/* first: the first piece's tensor. */
static hunch_status check_piece(hn_conversion *c, const written *w, const piece *p, const hn_tensor *first) {
    const hn_tensor *t = p->tensor;
    const char *path = hn_source_path(c->src);
    if (w->by.floats) return HUNCH_OK;
    if (w->by.of.way == HN_TRANSPOSED && t->dtype > HN_BF16)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: tensor %s has type %s: its rows are exchanged with its columns, expected floats", path,
                       t->name, t->type_name);
    if (t->dtype == HN_F8_E4M3) return refuse_fp8(c, t);
    if (w->by.of.way == HN_TILED_COLUMNS && t->dtype > HN_BF16)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: tensor %s: columns of %s are not moved, expected floats", path, t->name,
                       hn_dtype_name(t->dtype));
    if (t->dtype == first->dtype) return HUNCH_OK;
    return hn_fail(c->err, HUNCH_REFUSED, "%s: tensor %s has type %s: expected one type of all experts of a layer", path, t->name,
                   t->type_name);
}

/* What a tensor becomes. */
static hunch_status written_as(const hn_conversion *c, hn_tensor_id t, written *w) {
    const hn_arch named = {.family = c->arch.family,
                           .files = {.form = HN_SOURCE_GGUF, .body = "", .head = "", .first_layer = "", .first_block = c->first_layer,
                                     .head_form = c->to}};
    const hn_role_kind kind = hn_role_kind_of(t.role);
    *w = (written){.by = change_of(c, t)};
    w->n_dims = hn_arch_dims(&c->arch, t, w->dims);
    w->pieces = kind == HN_IS_EXPERT_VECTORS ? (int)w->dims[1] : w->n_dims == 3 && !w->by.floats ? (int)w->dims[2] : 1;
    if (hn_arch_vector_across(&c->arch, t, w->dims)) w->n_dims = 2;
    return hn_arch_name(&named, t, w->name) ? HUNCH_OK : refuse_form(c);
}

static hunch_status declare(hn_conversion *c, written *w, const hn_tensor *t) {
    w->type = w->by.floats ? HN_F32 : w->n_dims > 2 ? t->dtype : hn_conversion_type(c, t);
    return hn_gguf_declare(c->w, w->name, w->type, w->n_dims, w->dims, c->err);
}

static hunch_status declare_pieces(hn_conversion *c, hn_tensor_id t, written *w) {
    const hn_tensor *first = NULL;
    hunch_status st = HUNCH_OK;
    for (int e = 0; e < w->pieces && !st; e++) {
        piece p;
        st = piece_find(c, w, t, e, &p);
        if (st) break;
        if (first == NULL) first = p.tensor;
        c->total += p.items * p.bytes;
        st = check_piece(c, w, &p, first);
    }
    return st ? st : declare(c, w, first);
}

/* ---- writing -------------------------------------------------------------------------------------------------------------- */

/* Counts bytes of weights that were written, and reports them unless status is an error; returns status. */
static hunch_status done(hn_conversion *c, size_t bytes, hunch_status status) {
    c->done += bytes;
    if (!status && c->progress != NULL) c->progress(c->user, c->done, c->total);
    return status;
}

/* As it is stored, through a small buffer. */
static hunch_status piece_copy(hn_conversion *c, const piece *p) {
    enum { ROOM = 1 << 20 };
    const size_t first = p->first * p->bytes, bytes = p->items * p->bytes;
    void *buffer = hn_alloc(ROOM);
    hunch_status st = buffer ? HUNCH_OK : hn_fail_memory(c->err, p->tensor->name, ROOM);
    for (size_t at = 0; !st && at < bytes; at += ROOM) {
        const size_t n = bytes - at < ROOM ? bytes - at : ROOM;
        st = hn_source_read(c->src, p->tensor, first + at, n, buffer, c->err);
        if (!st) st = hn_gguf_data_piece(c->w, buffer, n, c->err);
    }
    hn_free(buffer);
    return st;
}

/* Reads the piece as it is stored, or in the type that is written; *bytes of an item then. To be freed with hn_free. */
static hunch_status piece_read(hn_conversion *c, const written *w, const piece *p, char **out, size_t *bytes) {
    const hn_tensor *t = p->tensor;
    const size_t size = p->items * p->bytes, n = size / (size_t)hn_dtype_block_bytes(t->dtype) * (size_t)hn_dtype_block(t->dtype);
    size_t all = 0;
    *bytes = p->bytes;
    if (!w->by.floats && w->type != t->dtype) {
        const hunch_status st = hn_conversion_read_as(c, t, w->type, (void **)out, &all);
        *bytes = all / p->items;
        return st;
    }
    *out = hn_alloc(size);
    hunch_status st = *out ? hn_source_read(c->src, t, p->first * p->bytes, size, *out, c->err) : hn_fail_memory(c->err, t->name, size);
    float *f = !st && w->by.floats ? hn_alloc(n * sizeof *f) : NULL;
    if (!st && w->by.floats && !f) st = hn_fail_memory(c->err, t->name, n * sizeof *f);
    if (!f) return st;
    hn_dequantise(t->dtype, *out, n, f);
    for (size_t i = 0; i < n; i++) f[i] = w->by.decay ? (float)-exp((double)f[i]) : w->by.more != 0 ? f[i] + w->by.more : f[i];
    hn_free(*out);
    *out = (char *)f;
    *bytes = n / p->items * sizeof *f;
    return HUNCH_OK;
}

static hunch_status piece_write(hn_conversion *c, const written *w, const piece *p) {
    char *read = NULL, *moved = NULL;
    size_t bytes = 0;
    if (w->by.of.way == HN_AS_STORED && !w->by.floats && w->type == p->tensor->dtype) return piece_copy(c, p);
    hunch_status st = piece_read(c, w, p, &read, &bytes);
    if (!st && w->by.of.way != HN_AS_STORED) {
        moved = hn_alloc(p->items * bytes);
        if (moved)
            move_items(&w->by.of, p->items, bytes, w->by.floats ? 1 : (size_t)p->tensor->dims[0], read, moved);
        else
            st = hn_fail_memory(c->err, p->tensor->name, p->items * bytes);
    }
    if (!st) st = hn_gguf_data_piece(c->w, moved ? moved : read, p->items * bytes, c->err);
    hn_free(moved);
    hn_free(read);
    return st;
}

static hunch_status begin(hn_conversion *c, written *w, const hn_tensor *t) {
    size_t row = 0, rows = 1;
    w->type = w->by.floats ? HN_F32 : w->n_dims > 2 ? t->dtype : hn_conversion_type(c, t);
    hn_dtype_row_bytes(w->type, w->dims[0], &row);
    for (int i = 1; i < w->n_dims; i++) rows *= (size_t)w->dims[i];
    return hn_gguf_data_begin(c->w, row * rows, c->err);
}

static hunch_status write_pieces(hn_conversion *c, hn_tensor_id t, written *w) {
    hunch_status st = HUNCH_OK;
    for (int e = 0; e < w->pieces && !st; e++) {
        piece p;
        st = piece_find(c, w, t, e, &p);
        if (!st && e == 0) st = begin(c, w, p.tensor);
        if (!st) st = done(c, p.items * p.bytes, piece_write(c, w, &p));
    }
    return st;
}

/* A head's tokens, as a GGUF has them: ids, not offsets; or the outputs of the places of clusters. */
static hunch_status visit_list(hn_conversion *c, const int32_t *list, const written *w, bool write) {
    const size_t n = (size_t)w->dims[0];
    if (!list) return HUNCH_OK;
    if (!write) return hn_gguf_declare(c->w, w->name, HN_I64, 1, w->dims, c->err);
    int64_t *ids = hn_alloc(n * sizeof *ids);
    if (!ids) return hn_fail_memory(c->err, w->name, n * sizeof *ids);
    for (size_t i = 0; i < n; i++) ids[i] = list[i];
    const hunch_status st = hn_gguf_data(c->w, ids, n * sizeof *ids, c->err);
    hn_free(ids);
    return st;
}

static hunch_status visit(hn_conversion *c, hn_tensor_id t, bool write) {
    written w;
    const hunch_status st = written_as(c, t, &w);
    if (st) return st;
    if (hn_role_kind_of(t.role) == HN_IS_LIST) return visit_list(c, t.role == HN_HEAD_IDS ? c->ids : c->order, &w, write);
    return write ? write_pieces(c, t, &w) : declare_pieces(c, t, &w);
}

/* ---- all of them --------------------------------------------------------------------------------------------------------- */

/* Whether a GGUF has the parts of what the folder has as one. */
static bool is_taken_apart(const hn_conversion *c, hn_role joint, int layer) {
    return hn_arch_has(&c->arch, joint, layer) &&
           (joint == HN_ROLE_SHARED_GATE_UP || (joint == HN_ROLE_GATE_UP && c->arch.files.gate_up_apart));
}

/* Whether a GGUF of the model has it: there the experts' matrices of a kind are one tensor, gate and up separate (unless they are beside a
 * dense half), and so are their biases; and the two matrices of heads. */
static bool role_written(const hn_conversion *c, hn_role role, int layer) {
    const hn_layer_desc *l = &c->arch.layer[layer];
    const hn_role_kind kind = hn_role_kind_of(role);
    const bool one = l->ffn == HN_FFN_BESIDE;
    const hn_tensor_row *r = hn_tensor_row_of(role);
    if (r->folder || is_taken_apart(c, role, layer)) return false;
    if ((role == HN_ROLE_GATE || role == HN_ROLE_UP) && is_taken_apart(c, HN_ROLE_GATE_UP, layer)) return true;
    if ((role == HN_ROLE_SHARED_GATE || role == HN_ROLE_SHARED_UP) && is_taken_apart(c, HN_ROLE_SHARED_GATE_UP, layer)) return true;
    if (r->from) return hn_arch_has(&c->arch, role, layer) || hn_arch_has(&c->arch, r->from, layer);
    if (kind != HN_IS_OF_EXPERTS && kind != HN_IS_EXPERT_VECTORS) return hn_arch_has(&c->arch, role, layer);
    if (!hn_layer_has_experts(l) || (kind == HN_IS_EXPERT_VECTORS && !l->experts.biases)) return false;
    if (role == HN_ROLE_EXPERT_GATE_UP_BIAS) return false;
    return role == HN_ROLE_EXPERT_GATE_UP ? one : (role != HN_ROLE_EXPERT_GATE && role != HN_ROLE_EXPERT_UP) || !one;
}

static hunch_status visit_layers(hn_conversion *c, bool write) {
    hunch_status st = HUNCH_OK;
    for (int layer = 0; layer < c->arch.layers; layer++)
        for (hn_role role = 0; role < HN_ROLES_OF_MODELS && !st; role++)
            if (hn_role_of_layer(role) && role_written(c, role, layer)) st = visit(c, (hn_tensor_id){role, layer, 0}, write);
    return st;
}

/* A model's modules of multi-token prediction (head_own.c) are the last layers of its GGUF. If they share tensors, each gets a copy, as in
 * other GGUF files. */
static hunch_status visit_own(hn_conversion *c, bool write) {
    const hn_arch model = c->arch;
    hunch_status st = HUNCH_OK;
    if (c->own.layers == 0) return HUNCH_OK;
    c->arch = c->own;
    c->to = &hn_head_own_gguf;
    c->first_layer = model.layers;
    for (int k = 0; k < c->own.layers; k++)
        for (hn_role part = HN_HEAD_FC; part < HN_ROLES_OF_STEPS && !st; part++)
            if (hn_arch_has(&c->own, part, 0)) st = visit(c, (hn_tensor_id){part, k, 0}, write);
    if (!st) st = visit_layers(c, write);
    c->arch = model;
    c->to = NULL;
    c->first_layer = 0;
    return st;
}

hunch_status hn_conversion_visit(hn_conversion *c, bool write) {
    hn_tensor_id t = {0, -1, 0};
    hunch_status st = HUNCH_OK;
    while (!st && hn_arch_next(&c->arch, &t)) st = visit(c, t, write);
    if (!st) st = visit_layers(c, write);
    if (!st) st = visit_own(c, write);
    return st ? st : hn_conversion_visit_tables(c, write);
}
