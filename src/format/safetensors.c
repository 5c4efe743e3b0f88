/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c - reads the header of one safetensors file and checks all of it (contract C6).
 *
 *     u64 length of the head   {"name": {"dtype": "BF16", "shape": [out, in], "data_offsets": [begin, end]}, …}   data
 *
 * Offsets count from the start of the data. Shapes are converted to ggml's order (contiguous first). hf.c chooses the files
 * of a model.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/json_load.h"
#include "format/source_private.h"

static const uint64_t SAFETENSORS_MAX_HEAD = 100 * 1000 * 1000; /* the format's own limit */
enum { SAFETENSORS_MAX_RANK = 8 };

/* Every type of the format: those that are not read are checked and listed too. */
static const struct {
    const char *name;
    unsigned bits;
    bool read;
    hn_dtype dtype;
} SAFETENSORS_TYPES[] = {
    {"F64", 64, true, HN_F64},      {"F32", 32, true, HN_F32},      {"F16", 16, true, HN_F16},
    {"BF16", 16, true, HN_BF16},    {"I64", 64, true, HN_I64},      {"I32", 32, true, HN_I32},
    {"I16", 16, true, HN_I16},      {"I8", 8, true, HN_I8},         {"U8", 8, true, HN_U8},
    {"BOOL", 8, true, HN_U8},       {"F8_E4M3", 8, true, HN_F8_E4M3}, {.name = "F8_E5M2", .bits = 8},
    {.name = "F8_E8M0", .bits = 8}, {.name = "F6_E2M3", .bits = 6}, {.name = "F6_E3M2", .bits = 6},
    {.name = "F4", .bits = 4},      {.name = "U16", .bits = 16},    {.name = "U32", .bits = 32},
    {.name = "U64", .bits = 64},    {.name = "C64", .bits = 64},
};

/* One file being read: its data, for bounds and messages. */
typedef struct reader {
    hn_source *s;
    const char *path;
    const unsigned char *data;
    size_t size;
    hunch_error *err;
} reader;

static bool json_u64(const json_t *value, uint64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* True if the name of an unknown type is printable. */
static bool type_name_readable(const char *name) {
    size_t len = 0;
    while (name[len] > ' ' && name[len] < 0x7f)
        len++;
    return len > 0 && name[len] == '\0' && len < sizeof(((hn_tensor *)NULL)->type_name);
}

/* *bits: of one element, 0 if the type is unknown. */
static hunch_status type_read(const reader *r, const json_t *value, hn_tensor *t, unsigned *bits) {
    const char *name = json_string_value(value);
    if (name == NULL || !type_name_readable(name))
        return hn_fail(r->err, HUNCH_REFUSED, "%s: tensor %s has no readable dtype; expected a string such as \"BF16\"",
                       r->path, t->name);
    snprintf(t->type_name, sizeof t->type_name, "%s", name);
    *bits = 0;
    for (size_t i = 0; i < sizeof SAFETENSORS_TYPES / sizeof *SAFETENSORS_TYPES; i++) {
        if (strcmp(name, SAFETENSORS_TYPES[i].name) == 0) {
            t->known = SAFETENSORS_TYPES[i].read;
            t->dtype = SAFETENSORS_TYPES[i].dtype;
            *bits = SAFETENSORS_TYPES[i].bits;
        }
    }
    return HUNCH_OK;
}

/* A tensor of more than HN_MAX_DIMS dimensions is listed with its outer ones multiplied, as a type that is not read. */
static hunch_status shape_read(const reader *r, const json_t *value, hn_tensor *t, uint64_t *elements) {
    size_t rank = json_array_size(value);
    if (!json_is_array(value) || rank > SAFETENSORS_MAX_RANK)
        return hn_fail(r->err, HUNCH_REFUSED,
                       "%s: tensor %s has no readable shape; expected an array of at most %d sizes", r->path, t->name,
                       SAFETENSORS_MAX_RANK);
    t->n_dims = rank < HN_MAX_DIMS ? (int)rank : HN_MAX_DIMS;
    for (int i = 0; i < t->n_dims; i++)
        t->dims[i] = 1;
    *elements = 1;
    for (size_t i = 0; i < rank; i++) { /* from the contiguous end */
        uint64_t dim, *to = &t->dims[i < HN_MAX_DIMS ? i : HN_MAX_DIMS - 1];
        if (!json_u64(json_array_get(value, rank - 1 - i), &dim) || __builtin_mul_overflow(*elements, dim, elements) ||
            *elements > INT64_MAX || __builtin_mul_overflow(*to, dim, to))
            return hn_fail(r->err, HUNCH_REFUSED,
                           "%s: tensor %s has a size in its shape that is negative, no whole number or too large",
                           r->path, t->name);
    }
    if (rank > HN_MAX_DIMS) {
        t->known = false;
        snprintf(t->type_name, sizeof t->type_name, "%d-dimensional", (int)rank);
    }
    return HUNCH_OK;
}

static hunch_status tensor_read(const reader *r, const char *name, const json_t *value) {
    hn_tensor *t = NULL;
    uint64_t elements = 0, begin = 0, end = 0, all_bits;
    unsigned bits = 0;
    hunch_status status = hn_source_add_tensor(r->s, r->path, name, strlen(name), &t, r->err);
    if (!status)
        status = type_read(r, json_object_get(value, "dtype"), t, &bits);
    if (!status)
        status = shape_read(r, json_object_get(value, "shape"), t, &elements);
    if (status)
        return status;
    const json_t *range = json_object_get(value, "data_offsets");
    if (json_array_size(range) != 2 || !json_u64(json_array_get(range, 0), &begin) ||
        !json_u64(json_array_get(range, 1), &end) || begin > end)
        return hn_fail(r->err, HUNCH_REFUSED, "%s: tensor %s has no readable data_offsets; expected [begin, end]",
                       r->path, t->name);
    if (end > r->size)
        return hn_fail(r->err, HUNCH_REFUSED,
                       "%s: tensor %s ends at byte %" PRIu64 " of the data; the file has %zu (truncated?)", r->path,
                       t->name, end, r->size);
    if (bits > 0 &&
        (__builtin_mul_overflow(elements, bits, &all_bits) || all_bits % 8 != 0 || all_bits / 8 != end - begin))
        return hn_fail(r->err, HUNCH_REFUSED,
                       "%s: tensor %s holds %" PRIu64 " bytes; its shape needs %" PRIu64 " elements of %s", r->path,
                       t->name, end - begin, elements, t->type_name);
    t->data = r->data + begin;
    t->bytes = (size_t)(end - begin);
    return HUNCH_OK;
}

static hunch_status head_parse(const reader *r, const char *text, size_t len) {
    json_error_t where;
    /* The format requires '{' as the first byte; only white space may follow the object. */
    size_t held = r->s->json_bytes; /* not added to the source's: the header is freed once it is read */
    json_t *head = len > 0 && text[0] == '{' ? hn_json_parse(text, len, &held, &where) : NULL;
    if (head == NULL && len > 0 && text[0] == '{' && json_error_code(&where) == json_error_out_of_memory)
        return hn_fail_memory(r->err, r->path, len);
    if (head == NULL)
        return hn_fail(r->err, HUNCH_REFUSED, "%s: its head is not a JSON object%s%s", r->path,
                       len > 0 && text[0] == '{' ? ": " : "", len > 0 && text[0] == '{' ? where.text : "");
    hunch_status status = HUNCH_OK;
    size_t first = r->s->n_tensors;
    const char *name;
    json_t *value;
    json_object_foreach (head, name, value) {
        if (strcmp(name, "__metadata__") != 0)
            status = tensor_read(r, name, value);
        if (status)
            break;
    }
    json_decref(head);
    return status ? status : hn_source_check_overlap(r->s, first, r->path, r->err);
}

hunch_status hn_safetensors_read(hn_source *s, const char *path, hunch_error *err) {
    hn_source_file *file;
    uint64_t len = 0;
    hunch_status status = hn_source_add_file(s, path, &file, err);
    if (status)
        return status;
    hn_map *map = &file->map;
    if (map->size < 8)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: %zu bytes are not a safetensors file; expected a length of 8 bytes and a head", path,
                       map->size);
    status = hn_map_copy_head(map, path, 8, err);
    if (status)
        return status;
    for (int i = 7; i >= 0; i--)
        len = len << 8 | map->data[i];
    if (len > SAFETENSORS_MAX_HEAD || len > map->size - 8)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: the length of its head is %" PRIu64 "; expected at most the %zu bytes left, and %" PRIu64,
                       path, len, map->size - 8, SAFETENSORS_MAX_HEAD);
    size_t start = 8 + (size_t)len;
    status = hn_map_copy_head(map, path, start, err);
    if (status)
        return status;
    reader r = {.s = s, .path = path, .data = map->data + start, .size = map->size - start, .err = err};
    return head_parse(&r, (const char *)map->data + 8, (size_t)len);
}
