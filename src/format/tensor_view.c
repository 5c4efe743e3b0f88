/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_view.c - tensors whose bytes are not stored as they are read: the matrices of GPT-OSS' experts in a folder. hn_source_read
 * gives their rows in order, in the type's own blocks, so that nothing else knows how a folder has them.
 *
 * MXFP4 is two tensors there, X_blocks [.., inputs / 32, 16], whose bytes hold neighbouring codes (low nibble first), and X_scales
 * [.., inputs / 32]; joined they are X, of blocks with codes i and i + 16 in a byte (dtype.h).
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/source_private.h"

enum { CODES = 16, BLOCK = CODES + 1 /* with its scale */, READ_BYTES = 256 << 10 };

/* ---- reading -------------------------------------------------------------------------------------------------------- */

typedef struct view_read {
    const hn_source *s;
    const hn_tensor *t;
    const hn_tensor_view *v;
    unsigned char *room; /* READ_BYTES, or what one row needs, if that is more */
    hunch_error *err;
} view_read;

static hunch_status read_at(const view_read *r, const hn_stored_part *part, size_t off, size_t bytes, unsigned char *to) {
    const hn_source_file *f = &r->s->files[part->file];
    return hn_map_read(&f->map, f->path, (size_t)(part->data - f->map.data) + off, bytes, to, r->err);
}

/* Rows `first`, first + step, ... as they are stored, n of them, `apart` rows together; each writes them to `to` one after another. */
static hunch_status read_plain(const view_read *r, size_t first, size_t n, size_t step, unsigned char *to) {
    const size_t row = r->v->row_bytes, apart = (n - 1) * step + 1;
    if (step == 1) return read_at(r, &r->v->values, first * row, n * row, to);
    hunch_status st = read_at(r, &r->v->values, first * row, apart * row, r->room);
    for (size_t i = 0; !st && i < n; i++) memcpy(to + i * row, r->room + i * step * row, row);
    return st;
}

static hunch_status read_joined(const view_read *r, size_t first, size_t n, size_t step, unsigned char *to) {
    const size_t blocks = r->v->row_bytes / BLOCK, apart = (n - 1) * step + 1;
    unsigned char *codes = r->room, *scales = r->room + apart * blocks * CODES;
    hunch_status st = read_at(r, &r->v->values, first * blocks * CODES, apart * blocks * CODES, codes);
    if (!st) st = read_at(r, &r->v->scales, first * blocks, apart * blocks, scales);
    for (size_t i = 0; !st && i < n; i++)
        for (size_t b = i * step * blocks; b < (i * step + 1) * blocks; b++, to += BLOCK)
            hn_mxfp4_join(scales[b], codes + b * CODES, to);
    return st;
}

/* The most rows that are read together: they and those between them are in r->room. */
static size_t rows_at_once(const hn_tensor_view *v) {
    const size_t rows = READ_BYTES / v->row_bytes / (v->alternating ? 2 : 1);
    return rows > 0 ? rows : 1;
}

/* The number of a row as it is stored. */
static size_t stored_row(const hn_tensor_view *v, size_t row) {
    const size_t i = row % v->rows, half = v->rows / 2;
    return row - i + (!v->alternating ? i : i < half ? 2 * i : 2 * (i - half) + 1);
}

/* n rows from `row` on, all of one matrix, and of the same half of it if rows alternate. */
static hunch_status read_rows(const view_read *r, size_t row, size_t n, unsigned char *to) {
    const hn_tensor_view *v = r->v;
    const size_t first = stored_row(v, row), step = v->alternating ? 2 : 1;
    return v->turned ? hn_turned_read(r->s, r->t, first, n, step, to, r->err)
                     : v->scales.data ? read_joined(r, first, n, step, to) : read_plain(r, first, n, step, to);
}

/* The rows until those that are stored behind it begin anew. */
static size_t rows_left(const hn_tensor_view *v, size_t row) {
    const size_t i = row % v->rows, half = v->rows / 2;
    return v->alternating && i < half ? half - i : v->rows - i;
}

/* Bytes [off, off + bytes) of one row. */
static hunch_status read_part(const view_read *r, size_t row, size_t off, size_t bytes, unsigned char *to) {
    unsigned char *whole = hn_alloc(r->v->row_bytes);
    if (!whole) return hn_fail_memory(r->err, r->t->name, r->v->row_bytes);
    hunch_status st = read_rows(r, row, 1, whole);
    if (!st) memcpy(to, whole + off, bytes);
    hn_free(whole);
    return st;
}

hunch_status hn_view_read(const hn_source *s, const hn_tensor *t, size_t off, size_t bytes, void *to, hunch_error *err) {
    const hn_tensor_view *v = t->view;
    const size_t room = v->row_bytes > READ_BYTES ? v->row_bytes : READ_BYTES;
    view_read r = {.s = s, .t = t, .v = v, .room = hn_alloc(room), .err = err};
    unsigned char *at = to;
    hunch_status st = r.room ? HUNCH_OK : hn_fail_memory(err, t->name, room);
    for (size_t done; !st && bytes > 0; off += done, bytes -= done, at += done) {
        const size_t row = off / v->row_bytes, within = off % v->row_bytes;
        size_t n = rows_left(v, row), most = rows_at_once(v);
        if (n > most) n = most;
        if (n > bytes / v->row_bytes) n = bytes / v->row_bytes;
        done = within > 0 || n == 0 ? v->row_bytes - within : n * v->row_bytes;
        if (done > bytes) done = bytes;
        st = within > 0 || n == 0 ? read_part(&r, row, within, done, at) : read_rows(&r, row, n, at);
    }
    hn_free(r.room);
    return st;
}

bool hn_tensor_rows(const hn_tensor *t, size_t row, hn_file_rows *out) {
    const hn_tensor_view *v = t->view;
    size_t row_bytes = 0, blocks;
    hn_dtype_row_bytes(t->dtype, t->dims[0], &row_bytes);
    *out = (hn_file_rows){.rows = (const unsigned char *)t->data + row * row_bytes, .row_bytes = row_bytes};
    if (!v) return true;
    if (v->turned) return false;
    const size_t step = v->alternating ? 2 : 1, first = stored_row(v, row);
    blocks = row_bytes / BLOCK;
    row_bytes = v->scales.data ? blocks * CODES : row_bytes;
    *out = (hn_file_rows){.rows = v->values.data + first * row_bytes, .row_bytes = step * row_bytes};
    if (v->scales.data) {
        out->scales = v->scales.data + first * blocks;
        out->scale_bytes = step * blocks;
    }
    return true;
}

/* ---- making them ------------------------------------------------------------------------------------------------------ */

/* A view of the tensor as it is stored, of `rows` rows a matrix. */
static hunch_status view_create(hn_tensor *t, size_t rows, size_t row_bytes, hunch_error *err) {
    if (t->view) return HUNCH_OK;
    hn_tensor_view *v = hn_zalloc(1, sizeof *v);
    if (!v) return hn_fail_memory(err, t->name, sizeof *v);
    *v = (hn_tensor_view){.values = {t->data, t->file}, .rows = rows, .row_bytes = row_bytes};
    t->view = v;
    t->data = NULL;
    return HUNCH_OK;
}

hunch_status hn_source_turn(hn_source *s, hn_tensor *t, hunch_error *err) {
    const size_t element = (size_t)hn_dtype_block_bytes(t->dtype);
    if (t->view && t->view->turned) return HUNCH_OK;
    assert(t->n_dims == 3 && hn_dtype_block(t->dtype) == 1 && !t->view);
    hunch_status st = hn_turned_open(s, err);
    if (!st) st = view_create(t, (size_t)t->dims[0], (size_t)t->dims[1] * element, err);
    if (st) return st;
    const uint64_t rows = t->dims[0];
    t->dims[0] = t->dims[1];
    t->dims[1] = rows;
    t->view->turned = true;
    return HUNCH_OK;
}

hunch_status hn_source_alternate(hn_tensor *t, hunch_error *err) {
    const int dim = t->n_dims - 2; /* that of a matrix' rows; of a list of vectors, their values */
    size_t row_bytes = 0;
    if (t->view && t->view->alternating) return HUNCH_OK;
    assert(dim >= 0 && dim < 2 && t->dims[dim] % 2 == 0);
    if (dim == 0)
        row_bytes = (size_t)hn_dtype_block_bytes(t->dtype);
    else
        hn_dtype_row_bytes(t->dtype, t->dims[0], &row_bytes);
    hunch_status st = view_create(t, (size_t)t->dims[dim], row_bytes, err);
    if (!st) t->view->alternating = true;
    return st;
}

/* ---- MXFP4 of a folder -------------------------------------------------------------------------------------------------- */

static const char blocks_end[] = "_blocks", scales_end[] = "_scales";

static bool is_blocks(const hn_tensor *t) {
    const size_t len = strlen(t->name), tail = sizeof blocks_end - 1;
    return len > tail && !strcmp(t->name + len - tail, blocks_end) && t->known && t->dtype == HN_U8 && t->n_dims == 4 &&
           t->dims[0] == CODES;
}

static bool fits(const hn_tensor *blocks, const hn_tensor *scales) {
    bool good = scales->known && scales->dtype == HN_U8 && scales->n_dims == 3;
    for (int i = 0; good && i < 3; i++) good = scales->dims[i] == blocks->dims[i + 1] && scales->dims[i] > 0;
    return good && blocks->dims[1] <= UINT64_MAX / (2 * CODES);
}

/* Makes the blocks the joined tensor, of their name without its end. */
static hunch_status join(const hn_source *s, hn_tensor *t, const hn_tensor *scales, hunch_error *err) {
    const size_t len = strlen(t->name) - (sizeof blocks_end - 1);
    if (!fits(t, scales))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensors %s and %s: expected U8 [.., 16], and U8 of the other dimensions",
                       s->path, t->name, scales->name);
    const size_t rows = (size_t)t->dims[2], row_bytes = (size_t)t->dims[1] * BLOCK;
    char *name = hn_strndup(t->name, len);
    if (!name) return hn_fail_memory(err, "a tensor's name", len + 1);
    hunch_status st = view_create(t, rows, row_bytes, err);
    if (st) {
        hn_free(name);
        return st;
    }
    t->view->scales = (hn_stored_part){scales->data, scales->file};
    hn_free((char *)(uintptr_t)t->name);
    t->name = name;
    t->dtype = HN_MXFP4;
    snprintf(t->type_name, sizeof t->type_name, "%s", hn_dtype_name(HN_MXFP4));
    t->n_dims = 3;
    t->dims[0] = t->dims[1] * 2 * CODES;
    t->dims[1] = t->dims[2];
    t->dims[2] = t->dims[3];
    t->dims[3] = 0;
    t->bytes += scales->bytes;
    return HUNCH_OK;
}

static hn_tensor *scales_of(hn_source *s, const hn_tensor *blocks) {
    char name[HN_MAX_NAME + sizeof scales_end];
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(blocks->name) - (sizeof blocks_end - 1)), blocks->name, scales_end);
    const ptrdiff_t i = hn_name_index_find(&s->by_name, name);
    return i < 0 ? NULL : &s->tensors[i];
}

/* Removes the tensors without a name. */
static void drop_unnamed(hn_source *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_tensors; i++)
        if (s->tensors[i].name) s->tensors[n++] = s->tensors[i];
    s->n_tensors = n;
}

hunch_status hn_source_join_mxfp4(hn_source *s, hunch_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_tensors; i++) n += is_blocks(&s->tensors[i]);
    if (n == 0) return HUNCH_OK;
    hn_tensor **scales = hn_zalloc(s->n_tensors, sizeof(hn_tensor *));
    hunch_status st = scales ? hn_source_index_tensors(s, err) : hn_fail_memory(err, "a list of tensors", s->n_tensors * sizeof *scales);
    for (size_t i = 0; !st && i < s->n_tensors; i++)
        if (is_blocks(&s->tensors[i])) scales[i] = scales_of(s, &s->tensors[i]);
    for (size_t i = 0; !st && i < s->n_tensors; i++)
        if (scales[i]) st = join(s, &s->tensors[i], scales[i], err);
    for (size_t i = 0; !st && i < s->n_tensors; i++) {
        if (!scales[i]) continue;
        hn_free((char *)(uintptr_t)scales[i]->name);
        scales[i]->name = NULL;
    }
    if (!st) drop_unnamed(s);
    hn_free(scales);
    return st;
}
