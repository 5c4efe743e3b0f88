/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - opens models of any format; tensors by name, typed metadata.
 *
 * The files are read by gguf.c, gguf_split.c, hf.c, safetensors.c and torch.c; describe.c writes the JSON of `hunch inspect`.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/find.h"
#include "format/other_names.h"
#include "format/quantised.h"
#include "format/source_private.h"
#include "format/weights_file.h"

/* ---- open and close ------------------------------------------------------------------------------------------- */

typedef hunch_status (*source_reader)(hn_source *s, const char *path, hunch_error *err);

static hunch_status source_open(hn_source **out, const char *path, hn_source_kind kind, source_reader reader,
                                hunch_error *err) {
    *out = NULL;
    hn_source *s = hn_zalloc(1, sizeof *s);
    if (s == NULL)
        return hn_fail_memory(err, "a model file's description", sizeof *s);
    s->kind = kind;
    s->path = hn_strdup(path);
    hunch_status status = s->path == NULL ? hn_fail_memory(err, "a path", strlen(path) + 1) : reader(s, path, err);
    if (!status)
        status = hn_source_index_tensors(s, err);
    if (status) {
        hn_source_close(&s);
        return status;
    }
    *out = s;
    return HUNCH_OK;
}

hunch_status hn_source_open(hn_source **out, const char *path, hunch_error *err) {
    char *found;
    *out = NULL;
    hunch_status status = hn_model_find(&found, path, err);
    if (status)
        return status;
    status = hn_is_folder(found) ? source_open(out, found, HN_SOURCE_HF, hn_hf_read, err)
                                 : source_open(out, found, HN_SOURCE_GGUF, hn_gguf_read, err);
    hn_free(found);
    return status;
}

hunch_status hn_source_open_head(hn_source **out, const char *path, hunch_error *err) {
    char *found;
    *out = NULL;
    if (hn_is_weights_file(path) && hn_is_file(path))
        return source_open(out, path, HN_SOURCE_HF, hn_hf_read_file, err);
    hunch_status status = hn_model_find(&found, path, err);
    if (status)
        return status;
    status = hn_is_folder(found) ? source_open(out, found, HN_SOURCE_HF, hn_hf_read_head, err)
                                 : source_open(out, found, HN_SOURCE_GGUF, hn_gguf_read, err);
    hn_free(found);
    return status;
}

hunch_status hn_source_open_safetensors(hn_source **out, const char *path, hunch_error *err) {
    return source_open(out, path, HN_SOURCE_HF, hn_safetensors_read, err);
}

hunch_status hn_source_open_config(hn_source **out, const char *path, hunch_error *err) {
    return source_open(out, path, HN_SOURCE_HF, hn_hf_read_config, err);
}

void hn_source_trim(hn_source *s) {
    hn_transposed_trim(s);
    for (size_t i = 0; i < s->n_metas; i++) {
        hn_free(s->metas[i].key);
        hn_free(s->metas[i].text);
        hn_free(s->metas[i].array.strings);
    }
    for (size_t i = 0; i < HN_HF_DOCUMENTS; i++) {
        json_decref(s->documents[i]);
        s->documents[i] = NULL;
    }
    hn_name_index_fini(&s->by_key);
    hn_free(s->metas);
    s->metas = NULL;
    s->n_metas = s->cap_metas = 0;
    for (size_t i = 0; i < s->n_files; i++)
        hn_map_drop_head(&s->files[i].map);
}

void hn_source_close(hn_source **source) {
    hn_source *s = *source;
    if (s == NULL)
        return;
    hn_source_trim(s);
    hn_transposed_close(s);
    for (size_t i = 0; i < s->n_tensors; i++) {
        hn_free((char *)(uintptr_t)s->tensors[i].name);
        if (s->tensors[i].view)
            hn_packed_free(s->tensors[i].view->packed);
        hn_free(s->tensors[i].view);
    }
    for (size_t i = 0; i < s->n_files; i++) {
        hn_map_close(&s->files[i].map);
        hn_free(s->files[i].path);
    }
    hn_name_index_fini(&s->by_name);
    hn_free(s->tensors);
    hn_free(s->files);
    hn_free(s->path);
    hn_free(s);
    *source = NULL;
}

/* ---- used by the readers ---------------------------------------------------------------------------------------- */

hunch_status hn_source_add_file(hn_source *s, const char *path, hn_source_file **file, hunch_error *err) {
    if (!hn_grow((void **)&s->files, &s->cap_files, s->n_files + 1, sizeof *s->files))
        return hn_fail_memory(err, "the list of files", (s->n_files + 1) * sizeof *s->files);
    hn_source_file *f = &s->files[s->n_files];
    *f = (hn_source_file){.path = hn_strdup(path)};
    if (f->path == NULL)
        return hn_fail_memory(err, "a path", strlen(path) + 1);
    hunch_status status = hn_map_open(&f->map, path, err);
    if (status) {
        hn_free(f->path);
        return status;
    }
    s->n_files++;
    *file = f;
    return HUNCH_OK;
}

hunch_status hn_source_add_tensor(hn_source *s, const char *file, const char *name, size_t len, hn_tensor **out,
                                  hunch_error *err) {
    if (len == 0 || len > HN_MAX_NAME || !hn_name_is_printable(name, len))
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: the name of tensor %zu (%zu bytes) is empty, too long or not printable; expected 1 to %d "
                       "bytes of UTF-8",
                       file, s->n_tensors, len, HN_MAX_NAME);
    if (!hn_grow((void **)&s->tensors, &s->cap_tensors, s->n_tensors + 1, sizeof *s->tensors))
        return hn_fail_memory(err, "the list of tensors", (s->n_tensors + 1) * sizeof *s->tensors);
    char *copy = hn_strndup(name, len);
    if (copy == NULL)
        return hn_fail_memory(err, "a tensor's name", len + 1);
    hn_tensor *t = &s->tensors[s->n_tensors++];
    *t = (hn_tensor){.name = copy, .file = s->n_files - 1};
    *out = t;
    return HUNCH_OK;
}

static int tensor_compare_place(const void *a, const void *b) {
    const hn_tensor *x = *(const hn_tensor *const *)a, *y = *(const hn_tensor *const *)b;
    uintptr_t px = (uintptr_t)x->data, py = (uintptr_t)y->data;
    if (px != py)
        return px < py ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

hunch_status hn_source_check_overlap(const hn_source *s, size_t first, const char *file, hunch_error *err) {
    size_t n = s->n_tensors - first;
    const hn_tensor **order = hn_zalloc(n, sizeof *order);
    if (order == NULL)
        return hn_fail_memory(err, "the order of tensors", n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = &s->tensors[first + i];
    if (n > 1)
        qsort(order, n, sizeof *order, tensor_compare_place);
    hunch_status status = HUNCH_OK;
    for (size_t i = 1; i < n && !status; i++)
        if ((uintptr_t)order[i]->data - (uintptr_t)order[i - 1]->data < order[i - 1]->bytes)
            status = hn_fail(err, HUNCH_REFUSED, "%s: tensors %s and %s overlap; expected each to have its own bytes",
                             file, order[i - 1]->name, order[i]->name);
    hn_free(order);
    return status;
}

/* The path of the file that contains the tensor, for messages. */
static const char *tensor_path(const hn_source *s, const hn_tensor *t) {
    return s->files[t->file].path;
}

static const char *tensor_name_of(const void *items, size_t i) {
    return ((const hn_tensor *)items)[i].name;
}

hunch_status hn_source_index_tensors(hn_source *s, hunch_error *err) {
    hn_name_index_fini(&s->by_name); /* an index of shards needed it before */
    if (!hn_name_index_init(&s->by_name, s->tensors, s->n_tensors, tensor_name_of))
        return hn_fail_memory(err, "the index of tensors", s->n_tensors * sizeof(hn_name));
    size_t first, second;
    if (hn_name_index_duplicate(&s->by_name, &first, &second))
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: tensor %s appears twice (as number %zu and %zu); expected each name once",
                       tensor_path(s, &s->tensors[second]), s->tensors[first].name, first, second);
    return HUNCH_OK;
}

void hn_source_drop_unnamed(hn_source *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_tensors; i++)
        if (s->tensors[i].name)
            s->tensors[n++] = s->tensors[i];
    s->n_tensors = n;
}

hunch_status hn_source_files(const hn_source *s, void (*each)(void *user, const char *file), void *user,
                             hunch_error *err) {
    for (size_t i = 0; i < s->n_files; i++)
        each(user, s->files[i].path);
    return s->kind == HN_SOURCE_HF ? hn_hf_files(s->path, each, user, err) : HUNCH_OK;
}

/* ---- tensors ------------------------------------------------------------------------------------------------ */

hn_source_kind hn_source_get_kind(const hn_source *s) {
    return s->kind;
}

const char *hn_source_path(const hn_source *s) {
    return s->path;
}

const char *hn_source_architecture(const hn_source *s) {
    return s->architecture != NULL ? s->architecture : "";
}

size_t hn_source_tensor_count(const hn_source *s) {
    return s->n_tensors;
}

hn_tensor *hn_source_tensor(hn_source *s, size_t i) {
    return i < s->n_tensors ? &s->tensors[i] : NULL;
}

/* The number of a tensor in the list, by its name or another one; HN_NO_NAME: there is none. */
static ptrdiff_t tensor_index(const hn_source *s, const char *name) {
    char other[HN_MAX_NAME + 1];
    const ptrdiff_t i = hn_name_index_find(&s->by_name, name);
    if (i >= 0 || s->architecture == NULL || !hn_other_tensor(s->architecture, name, other, sizeof other)) return i;
    return hn_name_index_find(&s->by_name, other);
}

const hn_tensor *hn_source_find(const hn_source *s, const char *name) {
    ptrdiff_t i = tensor_index(s, name);
    return i < 0 ? NULL : &s->tensors[i];
}

hn_tensor *hn_source_take(hn_source *s, const char *name) {
    ptrdiff_t i = tensor_index(s, name);
    if (i < 0) return NULL;
    s->tensors[i].used = true;
    return &s->tensors[i];
}

void hn_shape_text(char *out, size_t size, const uint64_t *dims, int n_dims) {
    size_t len = 0;
    out[0] = '\0';
    for (int i = 0; i < n_dims && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%" PRIu64, i ? ", " : "[", dims[i]);
    if (len < size)
        snprintf(out + len, size - len, "%s", n_dims ? "]" : "[]");
}

static bool shape_equal(const hn_tensor *t, const uint64_t *dims, int n_dims) {
    for (int i = 0; i < HN_MAX_DIMS; i++)
        if ((i < t->n_dims ? t->dims[i] : 1) != (i < n_dims ? dims[i] : 1))
            return false;
    return true;
}

static hunch_status missing_refuse(const hn_source *s, const char *name, const char *shape, hunch_error *err) {
    hunch_status status = hn_quantised_refuse(s, name, "is missing", err);
    return status ? status
                  : hn_fail(err, HUNCH_REFUSED, "%s: tensor %s is missing; expected it with shape %s", s->path, name, shape);
}

static hunch_status type_refuse(const hn_source *s, const hn_tensor *t, hunch_error *err) {
    char wrong[64], types[256] = "";
    snprintf(wrong, sizeof wrong, "has type %s", t->type_name);
    hunch_status status = hn_quantised_refuse(s, t->name, wrong, err);
    if (status)
        return status;
    for (int i = 0; i < HN_WEIGHT_TYPES; i++)
        snprintf(types + strlen(types), sizeof types - strlen(types), "%s%s", i ? ", " : "", hn_dtype_name((hn_dtype)i));
    return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has type %s; models run with weights of these types: %s",
                   tensor_path(s, t), t->name, t->type_name, types);
}

static hunch_status shape_refuse(const hn_source *s, const hn_tensor *t, const char *want, hunch_error *err) {
    char have[96], wrong[128];
    hn_shape_text(have, sizeof have, t->dims, t->n_dims);
    snprintf(wrong, sizeof wrong, "has shape %s", have);
    hunch_status status = strstr(t->name, "_scale_inv") != NULL ? hn_quantised_refuse(s, t->name, wrong, err) : HUNCH_OK;
    return status ? status
                  : hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has shape %s; expected %s", tensor_path(s, t), t->name, have, want);
}

hunch_status hn_source_need_shape(hn_source *s, const char *name, int n_dims, const uint64_t *dims, hn_tensor **out,
                                  hunch_error *err) {
    char want[96];
    assert(n_dims >= 1 && n_dims <= HN_MAX_DIMS);
    hn_shape_text(want, sizeof want, dims, n_dims);
    *out = NULL;
    hn_tensor *t = hn_source_take(s, name);
    if (t == NULL)
        return missing_refuse(s, name, want, err);
    if (!t->known || t->dtype >= HN_WEIGHT_TYPES)
        return type_refuse(s, t, err);
    if (!shape_equal(t, dims, n_dims))
        return shape_refuse(s, t, want, err);
    *out = t;
    return HUNCH_OK;
}

hunch_status hn_source_need(hn_source *s, const char *name, int n_dims, uint64_t dim0, uint64_t dim1, hn_tensor **out,
                            hunch_error *err) {
    const uint64_t dims[2] = {dim0, dim1};
    assert(n_dims <= 2);
    return hn_source_need_shape(s, name, n_dims, dims, out, err);
}

hunch_status hn_source_read(const hn_source *s, const hn_tensor *t, size_t off, size_t bytes, void *to,
                            hunch_error *err) {
    const hn_source_file *f = &s->files[t->file];
    if (t->view)
        return hn_view_read(s, t, off, bytes, to, err);
    return hn_map_read(&f->map, f->path, (size_t)((const unsigned char *)t->data - f->map.data) + off, bytes, to, err);
}

hunch_status hn_source_same(const hn_source *s, const hn_tensor *a, const hn_tensor *b, bool *same, hunch_error *err) {
    enum { PIECE = 64 << 10 };
    *same = strcmp(a->type_name, b->type_name) == 0 && shape_equal(a, b->dims, b->n_dims) && a->bytes == b->bytes &&
            a->dtype != HN_F8_E4M3; /* whose factors are other tensors */
    if (!*same || (a->data == b->data && !a->view && !b->view)) /* a checkpoint of PyTorch stores them once */
        return HUNCH_OK;
    unsigned char *room = hn_alloc(2 * PIECE);
    hunch_status status = room != NULL ? HUNCH_OK : hn_fail_memory(err, b->name, 2 * PIECE);
    for (size_t at = 0, n; !status && *same && at < a->bytes; at += n) {
        n = a->bytes - at < PIECE ? a->bytes - at : PIECE;
        status = hn_source_read(s, a, at, n, room, err);
        if (!status)
            status = hn_source_read(s, b, at, n, room + PIECE, err);
        *same = !status && memcmp(room, room + PIECE, n) == 0;
    }
    hn_free(room);
    return status;
}

bool hn_tensor_has_integers(const hn_tensor *t) {
    return t->known &&
           (t->dtype == HN_I64 || t->dtype == HN_I32 || t->dtype == HN_I16 || t->dtype == HN_I8 || t->dtype == HN_U8);
}

/* Element i of stored integers. */
static int64_t integer_at(hn_dtype type, const unsigned char *data, size_t i) {
    int64_t i64;
    int32_t i32;
    int16_t i16;
    switch (type) {
    case HN_I64: memcpy(&i64, data + i * sizeof i64, sizeof i64); return i64;
    case HN_I32: memcpy(&i32, data + i * sizeof i32, sizeof i32); return i32;
    case HN_I16: memcpy(&i16, data + i * sizeof i16, sizeof i16); return i16;
    case HN_I8: return (int8_t)data[i];
    default: return data[i];
    }
}

hunch_status hn_source_read_integers(const hn_source *s, const hn_tensor *t, size_t n, int64_t least, int64_t most,
                                     int64_t *to, hunch_error *err) {
    enum { PIECE = 4096 };
    unsigned char piece[PIECE * sizeof *to];
    char have[96];
    if (!hn_tensor_has_integers(t))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has type %s; expected integers or booleans",
                       tensor_path(s, t), t->name, t->type_name);
    if (!shape_equal(t, (uint64_t[2]){n, 1}, 1)) {
        hn_shape_text(have, sizeof have, t->dims, t->n_dims);
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s has shape %s; expected [%zu]", tensor_path(s, t), t->name,
                       have, n);
    }
    const size_t bytes = (size_t)hn_dtype_block_bytes(t->dtype);
    for (size_t from = 0; from < n; from += PIECE) {
        const size_t some = n - from < PIECE ? n - from : PIECE;
        hunch_status status = hn_source_read(s, t, from * bytes, some * bytes, piece, err);
        if (status)
            return status;
        for (size_t i = 0; i < some; i++) {
            to[from + i] = integer_at(t->dtype, piece, i);
            if (to[from + i] < least || to[from + i] > most)
                return hn_fail(err, HUNCH_REFUSED,
                               "%s: element %zu of tensor %s is %" PRId64 "; expected %" PRId64 " to %" PRId64,
                               tensor_path(s, t), from + i, t->name, to[from + i], least, most);
        }
    }
    return HUNCH_OK;
}

hunch_status hn_source_check(const hn_source *s, hunch_error *err) {
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < s->n_files && !status; i++)
        status = hn_map_check(&s->files[i].map, s->files[i].path, err);
    return status;
}

/* ---- metadata ------------------------------------------------------------------------------------------------ */

static hunch_status value_find(const hn_source *s, const char *key, hn_value *v, bool *found, hunch_error *err) {
    *found = false;
    if (s->kind == HN_SOURCE_HF) return hn_hf_value(s, key, v, found, err);
    char other[HN_MAX_NAME + 1];
    ptrdiff_t i = hn_name_index_find(&s->by_key, key);
    if (i < 0 && s->architecture != NULL && hn_other_key(s->architecture, key, other, sizeof other))
        i = hn_name_index_find(&s->by_key, other);
    if (i >= 0) {
        *v = s->metas[i].value;
        if (v->kind == HN_VALUE_ARRAY)
            v->array = &s->metas[i].array;
        *found = true;
    }
    return HUNCH_OK;
}

static hunch_status value_refuse(const hn_source *s, const char *key, const hn_value *v, const char *expected,
                                 hunch_error *err) {
    static const char *const kinds[] = {"", "", "", "a boolean", "a string", "an array", "an object"};
    char text[64];
    if (v->kind == HN_VALUE_UINT)
        snprintf(text, sizeof text, "%" PRIu64, v->u);
    else if (v->kind == HN_VALUE_INT)
        snprintf(text, sizeof text, "%" PRId64, v->i);
    else if (v->kind == HN_VALUE_FLOAT)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %g; expected %s", s->path, key, v->f, expected);
    else
        snprintf(text, sizeof text, "%s", kinds[v->kind]);
    return hn_fail(err, HUNCH_REFUSED, "%s: %s is %s; expected %s", s->path, key, text, expected);
}

size_t hn_source_meta_count(const hn_source *s) {
    return s->n_metas;
}

hn_source_meta hn_source_get_meta(const hn_source *s, size_t i) {
    const hn_meta *m = &s->metas[i];
    return (hn_source_meta){m->key, m->type, m->raw, m->raw_bytes};
}

hunch_status hn_source_u64(const hn_source *s, const char *key, uint64_t *out, bool *found, hunch_error *err) {
    hn_value v;
    hunch_status status = value_find(s, key, &v, found, err);
    if (status || !*found)
        return status;
    if (v.kind == HN_VALUE_UINT)
        *out = v.u;
    else if (v.kind == HN_VALUE_FLOAT && v.f >= 0 && v.f <= 9007199254740992.0 && v.f == floor(v.f))
        *out = (uint64_t)v.f;
    else
        return value_refuse(s, key, &v, "a whole number, 0 or more", err);
    return HUNCH_OK;
}

hunch_status hn_source_f64(const hn_source *s, const char *key, double *out, bool *found, hunch_error *err) {
    hn_value v;
    hunch_status status = value_find(s, key, &v, found, err);
    if (status || !*found)
        return status;
    if (v.kind == HN_VALUE_UINT)
        *out = (double)v.u;
    else if (v.kind == HN_VALUE_INT)
        *out = (double)v.i;
    else if (v.kind == HN_VALUE_FLOAT && isfinite(v.f))
        *out = v.f;
    else
        return value_refuse(s, key, &v, "a finite number", err);
    return HUNCH_OK;
}

hunch_status hn_source_bool(const hn_source *s, const char *key, bool *out, bool *found, hunch_error *err) {
    hn_value v;
    hunch_status status = value_find(s, key, &v, found, err);
    if (status || !*found)
        return status;
    if (v.kind != HN_VALUE_BOOL)
        return value_refuse(s, key, &v, "true or false", err);
    *out = v.b;
    return HUNCH_OK;
}

hunch_status hn_source_str(const hn_source *s, const char *key, const char **out, size_t *len, bool *found,
                           hunch_error *err) {
    hn_value v;
    hunch_status status = value_find(s, key, &v, found, err);
    if (status || !*found)
        return status;
    if (v.kind != HN_VALUE_STRING)
        return value_refuse(s, key, &v, "a string", err);
    *out = v.str;
    if (len != NULL)
        *len = v.len;
    return HUNCH_OK;
}

/* ---- arrays -------------------------------------------------------------------------------------------------- */

hunch_status hn_source_array(const hn_source *s, const char *key, const hn_array **out, hunch_error *err) {
    *out = NULL;
    if (s->kind != HN_SOURCE_GGUF)
        return HUNCH_OK;
    hn_value v;
    bool found;
    hunch_status status = value_find(s, key, &v, &found, err);
    if (status || !found)
        return status;
    if (v.kind != HN_VALUE_ARRAY)
        return value_refuse(s, key, &v, "an array", err);
    if (v.array->type == HN_GGUF_ARRAY)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is an array of arrays; expected one of numbers or strings", s->path,
                       key);
    *out = v.array;
    return HUNCH_OK;
}

size_t hn_array_count(const hn_array *a) {
    return a->count;
}

bool hn_array_is_strings(const hn_array *a) {
    return a->type == HN_GGUF_STRING;
}

const char *hn_array_string(const hn_array *a, size_t i, size_t *len) {
    if (a->type != HN_GGUF_STRING || i >= a->count) {
        *len = 0;
        return "";
    }
    *len = a->strings[i].len;
    return a->strings[i].bytes;
}
