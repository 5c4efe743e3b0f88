/* SPDX-License-Identifier: Apache-2.0 */
/* gguf.c - reads the head of a GGUF file, version 2 or 3, little endian, and checks all of it (contract C6).
 *
 *     "GGUF" u32 version  u64 tensors  u64 keys
 *     keys:    string key, u32 type, value          string: u64 length, bytes
 *     tensors: string name, u32 n, u64 dims[n], u32 type, u64 offset from the start of the data
 *     padding to general.alignment (32), then the data
 *
 * Nothing is allocated for a count before the file is known to have enough bytes for it, and no page of the tensors' data is
 * touched. Writing: gguf_writer.c; models in several files: gguf_split.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "format/source_private.h"

/* Real files have under 20 MB of metadata (a large vocabulary and its merges), 100 keys and 100,000 tensors. */
static const uint64_t GGUF_MAX_HEAD = (uint64_t)256 << 20; /* strings in arrays take two to three times that */
static const uint64_t GGUF_MAX_COUNT = 1000000;
static const uint64_t GGUF_MAX_KEY = 65535;
static const uint64_t GGUF_MAX_ALIGNMENT = 1 << 20;
enum { GGUF_MAX_NESTING = 4, GGUF_MIN_META = 8 + 1 + 4 + 1, GGUF_MIN_TENSOR = 8 + 1 + 4 + 4 + 8 };

static const struct {
    const char *name;
    size_t bytes;
} GGUF_TYPES[HN_GGUF_TYPES] = {
    [HN_GGUF_U8] = {"u8", 1},       [HN_GGUF_I8] = {"i8", 1},     [HN_GGUF_U16] = {"u16", 2},
    [HN_GGUF_I16] = {"i16", 2},     [HN_GGUF_U32] = {"u32", 4},   [HN_GGUF_I32] = {"i32", 4},
    [HN_GGUF_F32] = {"f32", 4},     [HN_GGUF_BOOL] = {"bool", 1}, [HN_GGUF_STRING] = {"string", 0},
    [HN_GGUF_ARRAY] = {"array", 0}, [HN_GGUF_U64] = {"u64", 8},   [HN_GGUF_I64] = {"i64", 8},
    [HN_GGUF_F64] = {"f64", 8},
};

size_t hn_gguf_type_bytes(uint32_t type) {
    return type < HN_GGUF_TYPES ? GGUF_TYPES[type].bytes : 0;
}

const char *hn_gguf_type_name(uint32_t type) {
    return type < HN_GGUF_TYPES ? GGUF_TYPES[type].name : "unknown";
}

static uint64_t little_endian(const unsigned char *p, size_t bytes) {
    uint64_t x = 0;
    for (size_t i = bytes; i-- > 0;)
        x = x << 8 | p[i];
    return x;
}

/* ---- a cursor over the header ----------------------------------------------------------------------------------- */

typedef struct cursor {
    hn_map *map;
    const unsigned char *data;
    size_t size, at;
    const char *path;
    char what[160]; /* what is being read, for messages */
    hunch_error *err;
} cursor;

static hunch_status cursor_take(cursor *c, uint64_t bytes, const unsigned char **out) {
    *out = c->data;
    if (bytes > c->size - c->at)
        return hn_fail(c->err, HUNCH_REFUSED,
                       "%s: the file ends inside %s: %" PRIu64 " bytes expected at byte %zu, %zu left", c->path,
                       c->what, bytes, c->at, c->size - c->at);
    *out = c->data + c->at;
    c->at += (size_t)bytes;
    if (c->at > GGUF_MAX_HEAD)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: the head of the file is larger than %" PRIu64 " MiB", c->path,
                       GGUF_MAX_HEAD >> 20);
    return hn_map_copy_head(c->map, c->path, c->at, c->err);
}

static hunch_status cursor_u32(cursor *c, uint32_t *out) {
    const unsigned char *p;
    hunch_status status = cursor_take(c, sizeof *out, &p);
    if (!status)
        *out = (uint32_t)little_endian(p, sizeof *out);
    return status;
}

static hunch_status cursor_u64(cursor *c, uint64_t *out) {
    const unsigned char *p;
    hunch_status status = cursor_take(c, sizeof *out, &p);
    if (!status)
        *out = little_endian(p, sizeof *out);
    return status;
}

static hunch_status cursor_text(cursor *c, hn_gguf_string *out) {
    uint64_t len;
    const unsigned char *p;
    hunch_status status = cursor_u64(c, &len);
    if (!status)
        status = cursor_take(c, len, &p);
    if (!status)
        *out = (hn_gguf_string){(const char *)p, (size_t)len};
    return status;
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static hn_value value_of_int(int64_t i) {
    if (i < 0)
        return (hn_value){.kind = HN_VALUE_INT, .i = i};
    return (hn_value){.kind = HN_VALUE_UINT, .u = (uint64_t)i};
}

static double float_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static double double_of_bits(uint64_t bits) {
    double f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

bool hn_gguf_number(uint32_t type, const unsigned char *p, hn_value *out) {
    uint64_t u = little_endian(p, hn_gguf_type_bytes(type));
    switch (type) {
    case HN_GGUF_U8:
    case HN_GGUF_U16:
    case HN_GGUF_U32:
    case HN_GGUF_U64: *out = (hn_value){.kind = HN_VALUE_UINT, .u = u}; return true;
    case HN_GGUF_I8: *out = value_of_int((int8_t)u); return true;
    case HN_GGUF_I16: *out = value_of_int((int16_t)u); return true;
    case HN_GGUF_I32: *out = value_of_int((int32_t)u); return true;
    case HN_GGUF_I64: *out = value_of_int((int64_t)u); return true;
    case HN_GGUF_F32: *out = (hn_value){.kind = HN_VALUE_FLOAT, .f = float_of_bits((uint32_t)u)}; return true;
    case HN_GGUF_F64: *out = (hn_value){.kind = HN_VALUE_FLOAT, .f = double_of_bits(u)}; return true;
    case HN_GGUF_BOOL: *out = (hn_value){.kind = HN_VALUE_BOOL, .b = u == 1}; return u <= 1;
    default: return false;
    }
}

double hn_array_number(const hn_array *a, size_t i) {
    hn_value v = {.kind = HN_VALUE_FLOAT, .f = 0};
    size_t bytes = hn_gguf_type_bytes(a->type);
    if (bytes == 0 || i >= a->count)
        return 0;
    hn_gguf_number(a->type, a->data + i * bytes, &v);
    switch (v.kind) {
    case HN_VALUE_UINT: return (double)v.u;
    case HN_VALUE_INT: return (double)v.i;
    case HN_VALUE_BOOL: return v.b ? 1 : 0;
    default: return v.f;
    }
}

/* Type and count of an array; its smallest possible size is checked, so that the count can be allocated. */
static hunch_status array_head(cursor *c, uint32_t *type, uint64_t *count) {
    hunch_status status = cursor_u32(c, type);
    if (!status)
        status = cursor_u64(c, count);
    if (status)
        return status;
    if (*type >= HN_GGUF_TYPES)
        return hn_fail(c->err, HUNCH_REFUSED,
                       "%s: the elements of %s have the unknown type %" PRIu32 "; expected 0 to %d", c->path, c->what,
                       *type, HN_GGUF_TYPES - 1);
    size_t least = *type == HN_GGUF_STRING ? 8 : *type == HN_GGUF_ARRAY ? 12 : GGUF_TYPES[*type].bytes;
    size_t left = (c->size < GGUF_MAX_HEAD ? c->size : (size_t)GGUF_MAX_HEAD) - c->at; /* the size of a sparse file is no limit */
    if (*count > left / least)
        return hn_fail(c->err, HUNCH_REFUSED,
                       "%s: %s has %" PRIu64 " elements, more than the %zu bytes left of a head can hold", c->path,
                       c->what, *count, left);
    return HUNCH_OK;
}

/* Skips a nested array to find its size. depth: its nesting level. */
static hunch_status array_skip(cursor *c, uint32_t type, uint64_t count, int depth) {
    const unsigned char *p;
    hn_gguf_string text;
    hunch_status status = HUNCH_OK;
    if (type != HN_GGUF_STRING && type != HN_GGUF_ARRAY)
        return cursor_take(c, count * GGUF_TYPES[type].bytes, &p);
    if (depth > GGUF_MAX_NESTING)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: %s nests arrays deeper than %d", c->path, c->what, GGUF_MAX_NESTING);
    for (uint64_t i = 0; i < count && !status; i++) {
        uint32_t inner;
        uint64_t n;
        if (type == HN_GGUF_STRING) {
            status = cursor_text(c, &text);
        } else {
            status = array_head(c, &inner, &n);
            if (!status)
                status = array_skip(c, inner, n, depth + 1);
        }
    }
    return status;
}

static hunch_status array_read(cursor *c, hn_array *a) {
    uint64_t count;
    hunch_status status = array_head(c, &a->type, &count);
    if (status)
        return status;
    a->count = (size_t)count;
    a->data = c->data + c->at;
    if (a->type != HN_GGUF_STRING)
        return array_skip(c, a->type, count, 1);
    a->strings = hn_zalloc(a->count, sizeof *a->strings);
    if (a->strings == NULL)
        return hn_fail_memory(c->err, c->what, a->count * sizeof *a->strings);
    for (size_t i = 0; i < a->count && !status; i++)
        status = cursor_text(c, &a->strings[i]);
    return status;
}

static hunch_status meta_read_value(cursor *c, hn_meta *m) {
    if (m->type >= HN_GGUF_TYPES)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: %s has the unknown type %" PRIu32 "; expected 0 to %d", c->path,
                       c->what, m->type, HN_GGUF_TYPES - 1);
    if (m->type == HN_GGUF_ARRAY) {
        m->value.kind = HN_VALUE_ARRAY;
        return array_read(c, &m->array);
    }
    if (m->type == HN_GGUF_STRING) {
        hn_gguf_string text;
        hunch_status status = cursor_text(c, &text);
        if (status)
            return status;
        m->text = hn_strndup(text.bytes, text.len);
        if (m->text == NULL)
            return hn_fail_memory(c->err, c->what, text.len + 1);
        m->value = (hn_value){.kind = HN_VALUE_STRING, .str = m->text, .len = text.len};
        return HUNCH_OK;
    }
    const unsigned char *p;
    hunch_status status = cursor_take(c, GGUF_TYPES[m->type].bytes, &p);
    if (!status && !hn_gguf_number(m->type, p, &m->value))
        return hn_fail(c->err, HUNCH_REFUSED, "%s: %s is the boolean %d; expected 0 or 1", c->path, c->what, p[0]);
    return status;
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

static hunch_status meta_read_key(cursor *c, size_t number, hn_gguf_string *key) {
    snprintf(c->what, sizeof c->what, "the name of key %zu", number);
    hunch_status status = cursor_text(c, key);
    if (status)
        return status;
    bool printable = true;
    for (size_t i = 0; i < key->len && printable; i++)
        printable = key->bytes[i] >= 0x20 && key->bytes[i] < 0x7f;
    if (key->len == 0 || key->len > GGUF_MAX_KEY || !printable)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: %s (%zu bytes) is empty, too long or not ASCII", c->path, c->what,
                       key->len);
    snprintf(c->what, sizeof c->what, "key %.*s", (int)(key->len < 120 ? key->len : 120), key->bytes);
    return HUNCH_OK;
}

static const char *meta_key_of(const void *items, size_t i) {
    return ((const hn_meta *)items)[i].key;
}

static hunch_status metas_read(hn_source *s, cursor *c, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        hn_gguf_string key;
        hunch_status status = meta_read_key(c, (size_t)i, &key);
        if (status)
            return status;
        if (!hn_grow((void **)&s->metas, &s->cap_metas, s->n_metas + 1, sizeof *s->metas))
            return hn_fail_memory(c->err, "the list of keys", (s->n_metas + 1) * sizeof *s->metas);
        hn_meta *m = &s->metas[s->n_metas++];
        *m = (hn_meta){.key = hn_strndup(key.bytes, key.len)};
        if (m->key == NULL)
            return hn_fail_memory(c->err, "a key", key.len + 1);
        status = cursor_u32(c, &m->type);
        m->raw = c->data + c->at;
        const size_t begin = c->at;
        if (!status)
            status = meta_read_value(c, m);
        if (status)
            return status;
        m->raw_bytes = c->at - begin;
    }
    if (!hn_name_index_init(&s->by_key, s->metas, s->n_metas, meta_key_of))
        return hn_fail_memory(c->err, "the index of keys", s->n_metas * sizeof(hn_name));
    size_t first, second;
    if (hn_name_index_duplicate(&s->by_key, &first, &second))
        return hn_fail(c->err, HUNCH_REFUSED, "%s: key %.120s appears twice; expected each key once", c->path,
                       s->metas[first].key);
    return HUNCH_OK;
}

/* ---- tensors ------------------------------------------------------------------------------------------------- */

/* A tensor's offset in the file, kept until the header is read and the start of the data is known. */
typedef struct place {
    uint64_t offset;
    size_t tensor;
} place;

static hunch_status tensor_read_shape(cursor *c, hn_tensor *t) {
    uint32_t n_dims;
    hunch_status status = cursor_u32(c, &n_dims);
    if (status)
        return status;
    if (n_dims > HN_MAX_DIMS)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: %s has %" PRIu32 " dimensions; expected at most %d", c->path,
                       c->what, n_dims, HN_MAX_DIMS);
    t->n_dims = (int)n_dims;
    for (uint32_t i = 0; i < n_dims && !status; i++)
        status = cursor_u64(c, &t->dims[i]);
    if (!status)
        status = cursor_u32(c, &t->ggml_type);
    if (status)
        return status;
    t->known = hn_dtype_from_ggml(t->ggml_type, &t->dtype);
    const char *name = hn_ggml_type_name(t->ggml_type);
    if (name != NULL)
        snprintf(t->type_name, sizeof t->type_name, "%s", name);
    else
        snprintf(t->type_name, sizeof t->type_name, "type %" PRIu32, t->ggml_type);
    return HUNCH_OK;
}

static hunch_status tensor_size(cursor *c, hn_tensor *t) {
    uint64_t elements = 1;
    bool fits = true;
    for (int i = 0; i < t->n_dims; i++)
        fits = fits && !__builtin_mul_overflow(elements, t->dims[i], &elements) && elements <= INT64_MAX;
    if (!fits)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: the dimensions of %s multiply to more than 2^63 elements", c->path,
                       c->what);
    if (!t->known)
        return HUNCH_OK;
    uint64_t cols = t->n_dims > 0 ? t->dims[0] : 1, rows = cols == 0 ? 0 : elements / cols;
    if (!hn_dtype_row_bytes(t->dtype, cols, &t->bytes) || !hn_mul_size(t->bytes, (size_t)rows, &t->bytes))
        return hn_fail(c->err, HUNCH_REFUSED,
                       "%s: %s has rows of %" PRIu64
                       " elements; %s is stored in blocks of %d, and its size must be countable",
                       c->path, c->what, cols, t->type_name, hn_dtype_block(t->dtype));
    return HUNCH_OK;
}

static hunch_status tensors_read(hn_source *s, cursor *c, uint64_t count, place **places) {
    size_t cap = 0;
    for (uint64_t i = 0; i < count; i++) {
        hn_gguf_string name;
        hn_tensor *t = NULL;
        snprintf(c->what, sizeof c->what, "the name of tensor %" PRIu64, i);
        hunch_status status = cursor_text(c, &name);
        if (!status)
            status = hn_source_add_tensor(s, c->path, name.bytes, name.len, &t, c->err);
        if (status)
            return status;
        snprintf(c->what, sizeof c->what, "tensor %.140s", t->name);
        if (!hn_grow((void **)places, &cap, s->n_tensors, sizeof **places))
            return hn_fail_memory(c->err, "the offsets of tensors", s->n_tensors * sizeof **places);
        status = tensor_read_shape(c, t);
        if (!status)
            status = cursor_u64(c, &(*places)[i].offset);
        (*places)[i].tensor = (size_t)i;
        if (!status)
            status = tensor_size(c, t);
        if (status)
            return status;
    }
    return HUNCH_OK;
}

static int place_compare(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* Types that hunch does not read have an unknown size: such a tensor gets all bytes up to the next one. */
static void sizes_of_unknown_types(hn_source *s, const place *sorted, size_t room) {
    for (size_t i = 0; i < s->n_tensors; i++) {
        hn_tensor *t = &s->tensors[sorted[i].tensor];
        if (!t->known)
            t->bytes = (size_t)((i + 1 < s->n_tensors ? sorted[i + 1].offset : room) - sorted[i].offset);
    }
}

/* Converts offsets to addresses in the file. data: offset of the tensors' data in the file. */
static hunch_status tensors_place(hn_source *s, cursor *c, place *places, size_t data, uint64_t alignment) {
    size_t room = c->size - data;
    for (size_t i = 0; i < s->n_tensors; i++) {
        hn_tensor *t = &s->tensors[i];
        uint64_t offset = places[i].offset;
        if (offset % alignment != 0)
            return hn_fail(c->err, HUNCH_REFUSED,
                           "%s: tensor %s starts at offset %" PRIu64 "; expected a multiple of %" PRIu64, c->path,
                           t->name, offset, alignment);
        if (offset > room || t->bytes > room - offset)
            return hn_fail(c->err, HUNCH_REFUSED,
                           "%s: tensor %s needs %zu bytes at offset %" PRIu64
                           "; the file has %zu bytes of data (truncated?)",
                           c->path, t->name, t->bytes, offset, room);
        t->data = c->data + data + offset;
    }
    if (s->n_tensors > 1)
        qsort(places, s->n_tensors, sizeof *places, place_compare);
    sizes_of_unknown_types(s, places, room);
    return hn_source_check_overlap(s, 0, c->path, c->err);
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

static hunch_status head_read(cursor *c, uint32_t *version, uint64_t *n_tensors, uint64_t *n_metas) {
    const unsigned char *magic = NULL;
    snprintf(c->what, sizeof c->what, "its header");
    hunch_status status = c->size < 4 ? HUNCH_OK : cursor_take(c, 4, &magic);
    if (!status && (magic == NULL || memcmp(magic, "GGUF", 4) != 0))
        return hn_fail(
            c->err, HUNCH_REFUSED,
            "%s: not a GGUF file (it does not start with \"GGUF\"); expected a GGUF file or a Hugging Face folder",
            c->path);
    if (!status)
        status = cursor_u32(c, version);
    if (status)
        return status;
    if (*version != 0 && (*version & 0xffff) == 0)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: a big-endian GGUF file; expected little endian", c->path);
    if (*version != 2 && *version != 3)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: GGUF version %" PRIu32 "; expected 2 or 3", c->path, *version);
    status = cursor_u64(c, n_tensors);
    if (!status)
        status = cursor_u64(c, n_metas);
    if (status)
        return status;
    size_t left = c->size - c->at;
    if (*n_metas > GGUF_MAX_COUNT || *n_metas > left / GGUF_MIN_META)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: the header specifies %" PRIu64 " keys; %zu bytes follow", c->path,
                       *n_metas, left);
    if (*n_tensors > GGUF_MAX_COUNT || *n_tensors > left / GGUF_MIN_TENSOR)
        return hn_fail(c->err, HUNCH_REFUSED, "%s: the header specifies %" PRIu64 " tensors; %zu bytes follow", c->path,
                       *n_tensors, left);
    return HUNCH_OK;
}

/* The alignment of offsets and of the start of the data. */
static hunch_status alignment_read(const hn_source *s, cursor *c, uint64_t *alignment) {
    bool found;
    *alignment = HN_GGUF_ALIGNMENT;
    hunch_status status = hn_source_u64(s, "general.alignment", alignment, &found, c->err);
    if (!status &&
        (*alignment == 0 || *alignment > GGUF_MAX_ALIGNMENT || (*alignment & (*alignment - 1)) != 0))
        return hn_fail(c->err, HUNCH_REFUSED,
                       "%s: general.alignment is %" PRIu64 "; expected a power of two up to %" PRIu64, c->path,
                       *alignment, GGUF_MAX_ALIGNMENT);
    return status;
}

static hunch_status gguf_read_body(hn_source *s, cursor *c, place **places) {
    uint64_t n_tensors = 0, n_metas = 0, alignment = HN_GGUF_ALIGNMENT;
    hunch_status status = head_read(c, &s->gguf_version, &n_tensors, &n_metas);
    if (!status) status = metas_read(s, c, n_metas);
    if (!status) {
        bool found;
        (void)hn_source_str(s, "general.architecture", &s->architecture, NULL, &found, NULL); /* any other kind of value is none */
        status = alignment_read(s, c, &alignment);
    }
    if (!status) status = tensors_read(s, c, n_tensors, places);
    if (status || n_tensors == 0) return status;
    size_t data = c->at + (size_t)(-c->at & (alignment - 1));
    return tensors_place(s, c, *places, data < c->size ? data : c->size, alignment);
}

hunch_status hn_gguf_read_file(hn_source *s, const char *path, hunch_error *err) {
    hn_source_file *file;
    hunch_status status = hn_source_add_file(s, path, &file, err);
    if (status)
        return status;
    cursor c = {.map = &file->map, .data = file->map.data, .size = file->map.size, .path = path, .err = err};
    place *places = NULL;
    status = gguf_read_body(s, &c, &places);
    hn_free(places);
    return status;
}
