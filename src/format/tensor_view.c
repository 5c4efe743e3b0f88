/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_view.c - virtual tensors: those whose bytes are not stored as they are read. hn_source_read gives their rows in order, in the
 * type's own blocks, so that nothing else knows how a folder has them. How the rows are read from what is stored is the view's kind;
 * tensors that are several in a folder are joined when it opens, by a table (joins), to which another format adds a line.
 *
 * MXFP4 is two tensors in a folder, X_blocks [.., inputs / 32, 16], whose bytes hold neighbouring codes (low nibble first), and X_scales
 * [.., inputs / 32]; joined they are X, of blocks with codes i and i + 16 in a byte (dtype.h).
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/source_private.h"

enum { CODES = 16, BLOCK = CODES + 1 /* with its scale */, READ_BYTES = 256 << 10 };

/* ---- kinds ---------------------------------------------------------------------------------------------------------- */

typedef struct view_read {
    const hn_source *s;
    const hn_tensor *t;
    const hn_tensor_view *v;
    unsigned char *room; /* READ_BYTES, or what one row needs, if that is more; none for packed integers */
    hunch_error *err;
} view_read;

struct hn_view_kind {
    /* Rows `first`, first + step, ... as they are stored, n of them, `apart` rows together; each writes them to `to` one after another. */
    hunch_status (*read)(const view_read *r, size_t first, size_t n, size_t step, unsigned char *to);
    /* Where row `first` and, step rows apart, those after it lie in the file; NULL: nowhere as they are. */
    void (*place)(const hn_tensor_view *v, size_t first, size_t step, hn_file_rows *out);
    const char *form; /* how it is stored, for messages */
};

static hunch_status read_at(const view_read *r, const hn_stored_part *part, size_t off, size_t bytes, unsigned char *to) {
    const hn_source_file *f = &r->s->files[part->file];
    return hn_map_read(&f->map, f->path, (size_t)(part->data - f->map.data) + off, bytes, to, r->err);
}

static hunch_status read_plain(const view_read *r, size_t first, size_t n, size_t step, unsigned char *to) {
    const size_t row = r->v->row_bytes, apart = (n - 1) * step + 1;
    if (step == 1) return read_at(r, &r->v->part[0], first * row, n * row, to);
    hunch_status st = read_at(r, &r->v->part[0], first * row, apart * row, r->room);
    for (size_t i = 0; !st && i < n; i++) memcpy(to + i * row, r->room + i * step * row, row);
    return st;
}

static void place_plain(const hn_tensor_view *v, size_t first, size_t step, hn_file_rows *out) {
    *out = (hn_file_rows){.rows = v->part[0].data + first * v->row_bytes, .row_bytes = step * v->row_bytes};
}

/* By columns. */
static hunch_status read_turned(const view_read *r, size_t first, size_t n, size_t step, unsigned char *to) {
    const hn_tensor_view *v = r->v;
    const size_t columns = (size_t)r->t->dims[0];
    return hn_transposed_read(r->s, &(hn_by_columns){v->part[0], columns, v->rows, v->row_bytes / columns, 0}, first, n, step, to, r->err);
}

static hunch_status read_packed(const view_read *r, size_t first, size_t n, size_t step, unsigned char *to) {
    return hn_packed_read(r->s, r->t, first, n, step, to, r->err);
}

enum { MXFP4_CODES, MXFP4_SCALES };

static hunch_status read_mxfp4(const view_read *r, size_t first, size_t n, size_t step, unsigned char *to) {
    const size_t blocks = r->v->row_bytes / BLOCK, apart = (n - 1) * step + 1;
    unsigned char *codes = r->room, *scales = r->room + apart * blocks * CODES;
    hunch_status st = read_at(r, &r->v->part[MXFP4_CODES], first * blocks * CODES, apart * blocks * CODES, codes);
    if (!st) st = read_at(r, &r->v->part[MXFP4_SCALES], first * blocks, apart * blocks, scales);
    for (size_t i = 0; !st && i < n; i++)
        for (size_t b = i * step * blocks; b < (i * step + 1) * blocks; b++, to += BLOCK)
            hn_mxfp4_join(scales[b], codes + b * CODES, to);
    return st;
}

static void place_mxfp4(const hn_tensor_view *v, size_t first, size_t step, hn_file_rows *out) {
    const size_t blocks = v->row_bytes / BLOCK;
    *out = (hn_file_rows){.rows = v->part[MXFP4_CODES].data + first * blocks * CODES, .row_bytes = step * blocks * CODES,
                          .scales = v->part[MXFP4_SCALES].data + first * blocks, .scale_bytes = step * blocks};
}

static const hn_view_kind plain = {read_plain, place_plain, "with other rows between its own"},
                          turned = {read_turned, NULL, "by columns"}, mxfp4 = {read_mxfp4, place_mxfp4, "in two tensors"};
const hn_view_kind hn_view_packed = {read_packed, NULL, "as packed integers"};

/* ---- reading -------------------------------------------------------------------------------------------------------- */

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
    return v->kind->read(r, first, n, step, to);
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
    const size_t room = v->packed ? 0 : v->row_bytes > READ_BYTES ? v->row_bytes : READ_BYTES;
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
    size_t row_bytes = 0;
    hn_dtype_row_bytes(t->dtype, t->dims[0], &row_bytes);
    *out = (hn_file_rows){.rows = (const unsigned char *)t->data + row * row_bytes, .row_bytes = row_bytes};
    if (!v) return true;
    if (!v->kind->place) return false;
    v->kind->place(v, stored_row(v, row), v->alternating ? 2 : 1, out);
    return true;
}

const char *hn_tensor_form(const hn_tensor *t) { return t->view ? t->view->kind->form : "by rows"; }

/* ---- making them ------------------------------------------------------------------------------------------------------ */

/* A view of the tensor as it is stored, of `rows` rows a matrix. */
static hunch_status view_create(hn_tensor *t, size_t rows, size_t row_bytes, hunch_error *err) {
    if (t->view) return HUNCH_OK;
    hn_tensor_view *v = hn_zalloc(1, sizeof *v);
    if (!v) return hn_fail_memory(err, t->name, sizeof *v);
    *v = (hn_tensor_view){.kind = &plain, .part = {{t->data, t->file}}, .rows = rows, .row_bytes = row_bytes};
    t->view = v;
    t->data = NULL;
    return HUNCH_OK;
}

hunch_status hn_source_turn(hn_source *s, hn_tensor *t, hunch_error *err) {
    const size_t element = (size_t)hn_dtype_block_bytes(t->dtype);
    if (t->view && t->view->kind == &turned) return HUNCH_OK;
    assert(t->n_dims == 3 && hn_dtype_block(t->dtype) == 1 && !t->view);
    hunch_status st = hn_transposed_open(s, err);
    if (!st) st = view_create(t, (size_t)t->dims[0], (size_t)t->dims[1] * element, err);
    if (st) return st;
    const uint64_t rows = t->dims[0];
    t->dims[0] = t->dims[1];
    t->dims[1] = rows;
    t->view->kind = &turned;
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

/* ---- joining tensors of a folder --------------------------------------------------------------------------------------- */

/* Tensors X + ends[0], X + ends[1], ... that are one, X. It takes the place of the first. */
typedef struct joining {
    const hn_view_kind *kind;
    hn_dtype type;
    const char *ends[HN_VIEW_PARTS + 1]; /* the last one NULL */
    bool (*is_first)(const hn_tensor *t); /* told from another tensor of such a name */
    bool (*fits)(const hn_tensor *const *parts); /* their types and shapes belong together */
    const char *expected;                 /* what these are, for the refusal */
    void (*shape)(hn_tensor *t);          /* from that of the first part to X's */
} joining;

static bool mxfp4_is_first(const hn_tensor *t) {
    return t->known && t->dtype == HN_U8 && t->n_dims == 4 && t->dims[0] == CODES;
}

static bool mxfp4_fits(const hn_tensor *const *parts) {
    const hn_tensor *blocks = parts[MXFP4_CODES], *scales = parts[MXFP4_SCALES];
    bool good = scales->known && scales->dtype == HN_U8 && scales->n_dims == 3;
    for (int i = 0; good && i < 3; i++) good = scales->dims[i] == blocks->dims[i + 1] && scales->dims[i] > 0;
    return good && blocks->dims[1] <= UINT64_MAX / (2 * CODES);
}

static void mxfp4_shape(hn_tensor *t) {
    t->n_dims = 3;
    t->dims[0] = t->dims[1] * 2 * CODES;
    t->dims[1] = t->dims[2];
    t->dims[2] = t->dims[3];
    t->dims[3] = 0;
}

static const joining joins[] = {
    {&mxfp4, HN_MXFP4, {"_blocks", "_scales"}, mxfp4_is_first, mxfp4_fits, "U8 [.., 16], and U8 of the other dimensions", mxfp4_shape},
};

/* The parts that a tensor is the first of. */
typedef struct found_parts {
    const joining *as; /* NULL: of none */
    hn_tensor *part[HN_VIEW_PARTS];
} found_parts;

/* The length of a name without its end; 0: it has another. */
static size_t name_before(const char *name, const char *end) {
    const size_t len = strlen(name), tail = strlen(end);
    return len > tail && !strcmp(name + len - tail, end) ? len - tail : 0;
}

/* The length of X's name if a tensor is the first part of X; 0: it is none. */
static size_t begins(const hn_tensor *t, const joining *as) {
    const size_t len = name_before(t->name, as->ends[0]);
    return len && as->is_first(t) ? len : 0;
}

static bool find_parts(hn_source *s, hn_tensor *t, const joining *as, found_parts *out) {
    const size_t len = begins(t, as);
    char name[HN_MAX_NAME + 32];
    if (!len) return false;
    *out = (found_parts){.as = as, .part = {t}};
    for (int i = 1; as->ends[i]; i++) {
        snprintf(name, sizeof name, "%.*s%s", (int)len, t->name, as->ends[i]);
        const ptrdiff_t at = hn_name_index_find(&s->by_name, name);
        if (at < 0) {
            out->as = NULL;
            return false;
        }
        out->part[i] = &s->tensors[at];
    }
    return true;
}

static hunch_status refuse_parts(const hn_source *s, const found_parts *f, hunch_error *err) {
    char names[HN_VIEW_PARTS * (HN_MAX_NAME + 8)];
    size_t n = 0;
    for (int i = 0; f->as->ends[i]; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? " and " : "", f->part[i]->name);
    return hn_fail(err, HUNCH_REFUSED, "%s: tensors %s: expected %s", s->path, names, f->as->expected);
}

/* Makes the first part the joined tensor; the others lose their names. */
static hunch_status join(const hn_source *s, const found_parts *f, hunch_error *err) {
    hn_tensor *t = f->part[0];
    const size_t len = name_before(t->name, f->as->ends[0]);
    size_t row_bytes = 0;
    if (!f->as->fits((const hn_tensor *const *)f->part)) return refuse_parts(s, f, err);
    f->as->shape(t);
    if (!hn_dtype_row_bytes(f->as->type, t->dims[0], &row_bytes)) return refuse_parts(s, f, err);
    hunch_status st = view_create(t, (size_t)t->dims[1], row_bytes, err);
    if (st) return st;
    char *name = hn_strndup(t->name, len);
    if (!name) return hn_fail_memory(err, "a tensor's name", len + 1);
    hn_free((char *)(uintptr_t)t->name);
    t->name = name;
    t->view->kind = f->as->kind;
    t->dtype = f->as->type;
    snprintf(t->type_name, sizeof t->type_name, "%s", hn_dtype_name(t->dtype));
    t->bytes = row_bytes;
    for (int i = 1; i < t->n_dims; i++) t->bytes *= (size_t)t->dims[i];
    for (int i = 1; f->as->ends[i]; i++) {
        t->view->part[i] = (hn_stored_part){f->part[i]->data, f->part[i]->file};
        hn_free((char *)(uintptr_t)f->part[i]->name);
        f->part[i]->name = NULL;
    }
    return HUNCH_OK;
}

hunch_status hn_source_join(hn_source *s, hunch_error *err) {
    enum { JOINS = sizeof joins / sizeof *joins };
    bool any = false;
    hunch_status st = hn_packed_join(s, err);
    if (st) return st;
    for (size_t i = 0; i < s->n_tensors; i++)
        for (int k = 0; k < JOINS; k++) any = any || begins(&s->tensors[i], &joins[k]);
    if (!any) return HUNCH_OK;
    found_parts *found = hn_zalloc(s->n_tensors, sizeof *found);
    st = found ? hn_source_index_tensors(s, err) : hn_fail_memory(err, "a list of tensors", s->n_tensors * sizeof *found);
    for (size_t i = 0; !st && i < s->n_tensors; i++)
        for (int k = 0; k < JOINS; k++)
            if (find_parts(s, &s->tensors[i], &joins[k], &found[i])) break;
    for (size_t i = 0; !st && i < s->n_tensors; i++)
        if (found[i].as) st = join(s, &found[i], err);
    if (!st) hn_source_drop_unnamed(s);
    hn_free(found);
    return st;
}
