/* SPDX-License-Identifier: Apache-2.0 */
/* torch_file.c - see torch_file.h. */
#include "format/torch_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { KEY_MAX = 64, STREAM_HEAD_MAX = 16 << 20, STREAM_VERSION = 1001 };
static const uint64_t PICKLE_MAX = 64 << 20;
static const unsigned char ARCHIVE_MAGIC[4] = {'P', 'K', 3, 4};
/* The first pickle of a stream: protocol 2, an integer of ten bytes, stop. */
static const unsigned char STREAM_MAGIC[15] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                               0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

/* The location of a storage in a stream. */
typedef struct hn_torch_place {
    const char *key; /* in the dictionary's bytes, no NUL */
    uint32_t len;
    const hn_torch_type *type;
    uint64_t elements; /* as given in the dictionary */
    size_t off;        /* 0: its key has not been read yet */
} place;

/* ---- names that a checkpoint may use ---------------------------------------------------------------------------- */

enum { F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, F8_E4M3, F8_E5M2, U16, U32, U64, C64, BYTES, TYPES };

static const hn_torch_type types[TYPES] = {
    [F64] = {"F64", 8, true, HN_F64},
    [F32] = {"F32", 4, true, HN_F32},
    [F16] = {"F16", 2, true, HN_F16},
    [BF16] = {"BF16", 2, true, HN_BF16},
    [I64] = {"I64", 8, true, HN_I64},
    [I32] = {"I32", 4, true, HN_I32},
    [I16] = {"I16", 2, true, HN_I16},
    [I8] = {"I8", 1, true, HN_I8},
    [U8] = {"U8", 1, true, HN_U8},
    [BOOL] = {"BOOL", 1, true, HN_U8},
    [F8_E4M3] = {"F8_E4M3", 1, true, HN_F8_E4M3},
    [F8_E5M2] = {.name = "F8_E5M2", .bytes = 1},
    [U16] = {.name = "U16", .bytes = 2},
    [U32] = {.name = "U32", .bytes = 4},
    [U64] = {.name = "U64", .bytes = 8},
    [C64] = {.name = "C64", .bytes = 8},
    [BYTES] = {.name = "bytes", .bytes = 1},
};

static const hn_pickle_global globals[] = {
    {"collections.OrderedDict", HN_PICKLE_MAKES_DICT, 0},
    {"torch._utils._rebuild_tensor_v2", HN_PICKLE_CALL, HN_TORCH_TENSOR},
    {"torch._utils._rebuild_tensor_v3", HN_PICKLE_CALL, HN_TORCH_TENSOR_TYPED},
    {"torch._utils._rebuild_parameter", HN_PICKLE_CALL, HN_TORCH_PARAMETER},
    {"torch.FloatStorage", HN_PICKLE_NAME, F32},
    {"torch.HalfStorage", HN_PICKLE_NAME, F16},
    {"torch.BFloat16Storage", HN_PICKLE_NAME, BF16},
    {"torch.DoubleStorage", HN_PICKLE_NAME, F64},
    {"torch.LongStorage", HN_PICKLE_NAME, I64},
    {"torch.IntStorage", HN_PICKLE_NAME, I32},
    {"torch.ShortStorage", HN_PICKLE_NAME, I16},
    {"torch.CharStorage", HN_PICKLE_NAME, I8},
    {"torch.ByteStorage", HN_PICKLE_NAME, U8},
    {"torch.BoolStorage", HN_PICKLE_NAME, BOOL},
    {"torch.ComplexFloatStorage", HN_PICKLE_NAME, C64},
    {"torch.storage.UntypedStorage", HN_PICKLE_NAME, BYTES},
    {"torch.float64", HN_PICKLE_NAME, F64},
    {"torch.float32", HN_PICKLE_NAME, F32},
    {"torch.float16", HN_PICKLE_NAME, F16},
    {"torch.bfloat16", HN_PICKLE_NAME, BF16},
    {"torch.int64", HN_PICKLE_NAME, I64},
    {"torch.int32", HN_PICKLE_NAME, I32},
    {"torch.int16", HN_PICKLE_NAME, I16},
    {"torch.int8", HN_PICKLE_NAME, I8},
    {"torch.uint8", HN_PICKLE_NAME, U8},
    {"torch.bool", HN_PICKLE_NAME, BOOL},
    {"torch.float8_e4m3fn", HN_PICKLE_NAME, F8_E4M3},
    {"torch.float8_e5m2", HN_PICKLE_NAME, F8_E5M2},
    {"torch.uint16", HN_PICKLE_NAME, U16},
    {"torch.uint32", HN_PICKLE_NAME, U32},
    {"torch.uint64", HN_PICKLE_NAME, U64},
};

const hn_torch_type *hn_torch_type_of(const hn_py *value) {
    return value != NULL && value->kind == HN_PY_GLOBAL && value->global->use == HN_PICKLE_NAME
               ? &types[value->global->what]
               : NULL;
}

/* Reads one pickle into p; *used: its length. The caller still owns the bytes. */
static hunch_status pickle_read(const hn_torch_file *f, hn_pickle *p, const unsigned char *bytes, size_t size,
                                size_t *used, hunch_error *err) {
    return hn_pickle_read(p, bytes, size, globals, sizeof globals / sizeof *globals, f->path, used, err);
}

/* ('storage', type, key, device, elements[, None]): the location of a storage outside the pickle. */
static hunch_status outside_read(const hn_torch_file *f, const hn_py *v, place *out, hunch_error *err) {
    const hn_pickle *p = &f->dictionary;
    const hn_py *key = hn_pickle_at(p, v, 2), *elements = hn_pickle_at(p, v, 4), *view = hn_pickle_at(p, v, 5);
    *out = (place){.type = hn_torch_type_of(hn_pickle_at(p, v, 1))};
    if (!hn_pickle_is_text(p, hn_pickle_at(p, v, 0), "storage") || out->type == NULL || key == NULL ||
        key->kind != HN_PY_TEXT || key->n == 0 || key->n > KEY_MAX || elements == NULL || elements->kind != HN_PY_INT ||
        elements->i < 0 || v->n > 6 || (view != NULL && view->kind != HN_PY_NONE))
        return hn_fail(err, HUNCH_REFUSED, "%s: its pickle names a storage in an unknown form", f->path);
    out->key = hn_pickle_text(p, key);
    out->len = key->n;
    out->elements = (uint64_t)elements->i;
    return HUNCH_OK;
}

/* ---- archives --------------------------------------------------------------------------------------------------- */

static hunch_status pickled_read(hn_torch_file *f, size_t off, size_t bytes, hunch_error *err) {
    f->pickled = hn_alloc(bytes);
    if (f->pickled == NULL) return hn_fail_memory(err, f->path, bytes);
    return hn_map_read(f->map, f->path, off, bytes, f->pickled, err);
}

/* The pickle is the one entry NAME/data.pkl. */
static hunch_status archive_name(hn_torch_file *f, const hn_zip_entry **pickle, hunch_error *err) {
    static const char tail[] = "/data.pkl";
    *pickle = NULL;
    for (size_t i = 0; i < f->zip.n; i++) {
        const hn_zip_entry *e = &f->zip.entries[i];
        const char *slash = strchr(e->name, '/');
        if (slash == NULL || strcmp(slash, tail) != 0) continue;
        if (*pickle != NULL || (size_t)(slash - e->name) >= sizeof f->name)
            return hn_fail(err, HUNCH_REFUSED, "%s: two entries called data.pkl, or one in a folder of a long name",
                           f->path);
        *pickle = e;
        snprintf(f->name, sizeof f->name, "%.*s", (int)(slash - e->name), e->name);
    }
    if (*pickle == NULL)
        return hn_fail(err, HUNCH_REFUSED, "%s: a zip archive without NAME/data.pkl; expected a checkpoint of PyTorch",
                       f->path);
    return HUNCH_OK;
}

/* NULL: none of that name below NAME. */
static const hn_zip_entry *archive_find(const hn_torch_file *f, const char *folder, const char *name, size_t len) {
    char whole[sizeof f->name + KEY_MAX + 8];
    const int n = snprintf(whole, sizeof whole, "%s/%s%.*s", f->name, folder, (int)len, name);
    return n < (int)sizeof whole ? hn_zip_find(&f->zip, whole) : NULL;
}

/* Checks the byte order. Archives before torch 2.1 do not specify it; they are little-endian. */
static hunch_status archive_check_order(const hn_torch_file *f, hunch_error *err) {
    static const char little[] = "little";
    char order[sizeof little - 1];
    const hn_zip_entry *e = archive_find(f, "", "byteorder", 9);
    size_t off;
    if (e == NULL) return HUNCH_OK;
    bool same = e->bytes == sizeof order;
    hunch_status status = hn_zip_locate(&f->zip, e, &off, err);
    if (!status && same) status = hn_map_read(f->map, f->path, off, sizeof order, order, err);
    if (!status && (!same || memcmp(order, little, sizeof order) != 0))
        status = hn_fail(err, HUNCH_REFUSED,
                         "%s: its numbers are not little-endian; expected byteorder to say \"little\"", f->path);
    return status;
}

static hunch_status archive_open(hn_torch_file *f, hunch_error *err) {
    const hn_zip_entry *e;
    size_t off;
    hunch_status status = hn_zip_open(&f->zip, f->map, f->path, err);
    if (!status) status = archive_name(f, &e, err);
    if (!status && e->bytes > PICKLE_MAX)
        status = hn_fail(err, HUNCH_REFUSED, "%s: %s has %" PRIu64 " bytes; expected at most %" PRIu64, f->path,
                         e->name, e->bytes, PICKLE_MAX);
    if (!status) status = archive_check_order(f, err);
    if (!status) status = hn_zip_locate(&f->zip, e, &off, err);
    if (!status) status = pickled_read(f, off, (size_t)e->bytes, err);
    return status ? status : pickle_read(f, &f->dictionary, f->pickled, (size_t)e->bytes, NULL, err);
}

static hunch_status archive_storage(const hn_torch_file *f, const place *p, const char *tensor, hn_torch_storage *out,
                                    hunch_error *err) {
    uint64_t bytes;
    const hn_zip_entry *e = archive_find(f, "data/", p->key, p->len);
    if (e == NULL)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s lies in storage %.*s, which is missing", f->path, tensor,
                       (int)p->len, p->key);
    if (__builtin_mul_overflow(p->elements, p->type->bytes, &bytes) || bytes != e->bytes)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: storage %.*s of tensor %s has %" PRIu64 " bytes; expected %" PRIu64 " elements of %u bytes",
                       f->path, (int)p->len, p->key, tensor, e->bytes, p->elements, p->type->bytes);
    *out = (hn_torch_storage){.type = p->type, .bytes = (size_t)bytes};
    return hn_zip_locate(&f->zip, e, &out->off, err);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

static int place_compare(const void *a, const void *b) {
    const place *x = a, *y = b;
    const int order = memcmp(x->key, y->key, x->len < y->len ? x->len : y->len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static place *place_find(const hn_torch_file *f, const char *key, uint32_t len) {
    const place wanted = {.key = key, .len = len};
    return f->n_places > 0 ? bsearch(&wanted, f->places, f->n_places, sizeof wanted, place_compare) : NULL;
}

/* Lists every storage that the dictionary names, once. */
static hunch_status places_list(hn_torch_file *f, hunch_error *err) {
    const hn_pickle *p = &f->dictionary;
    size_t cap = 0, n = 0;
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < p->n_values && !status; i++) {
        if (p->values[i].kind != HN_PY_OUTSIDE) continue;
        if (!hn_grow((void **)&f->places, &cap, f->n_places + 1, sizeof *f->places))
            return hn_fail_memory(err, "the storages of a checkpoint", f->n_places * sizeof *f->places);
        status = outside_read(f, &p->values[i], &f->places[f->n_places++], err);
    }
    if (!status && f->n_places > 1) qsort(f->places, f->n_places, sizeof *f->places, place_compare);
    for (size_t i = 0; i < f->n_places && !status; i++) {
        place *last = n > 0 ? &f->places[n - 1] : NULL, *at = &f->places[i];
        if (last == NULL || place_compare(last, at) != 0)
            f->places[n++] = *at;
        else if (last->type != at->type || last->elements != at->elements)
            status = hn_fail(err, HUNCH_REFUSED, "%s: its pickle describes storage %.*s in two ways", f->path,
                             (int)at->len, at->key);
    }
    f->n_places = n;
    return status;
}

/* Locates the storages, which follow from `at` on in the order of the keys. */
static hunch_status places_locate(hn_torch_file *f, const hn_pickle *keys, size_t at, hunch_error *err) {
    const hn_py *list = hn_pickle_root(keys);
    uint32_t item = list->first;
    if (list->kind != HN_PY_LIST)
        return hn_fail(err, HUNCH_REFUSED, "%s: the keys of its storages are no list", f->path);
    for (uint32_t i = 0; i < list->n; i++, item = keys->items[item].next) {
        const hn_py *key = &keys->values[keys->items[item].value];
        unsigned char head[8];
        uint64_t n = 0, bytes;
        place *p = key->kind == HN_PY_TEXT ? place_find(f, hn_pickle_text(keys, key), key->n) : NULL;
        if (p == NULL || p->off != 0)
            return hn_fail(err, HUNCH_REFUSED, "%s: key %u of its storages is none of the dictionary's, or comes twice",
                           f->path, i);
        if (f->map->size - at < sizeof head)
            return hn_fail(err, HUNCH_REFUSED, "%s: ends before storage %.*s (truncated?)", f->path, (int)p->len,
                           p->key);
        hunch_status status = hn_map_read(f->map, f->path, at, sizeof head, head, err);
        if (status) return status;
        for (int k = 7; k >= 0; k--) n = n << 8 | head[k];
        at += sizeof head;
        if (n != p->elements || __builtin_mul_overflow(n, p->type->bytes, &bytes) || bytes > f->map->size - at)
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: storage %.*s has %" PRIu64 " elements of %u bytes; expected %" PRIu64
                           " within the file (truncated?)",
                           f->path, (int)p->len, p->key, n, p->type->bytes, p->elements);
        p->off = at;
        at += (size_t)bytes;
    }
    return HUNCH_OK;
}

/* Checks the version and the byte order, which precede the dictionary. */
static hunch_status stream_check_head(const hn_torch_file *f, size_t size, size_t *at, hunch_error *err) {
    hn_pickle version, machine = {0};
    size_t used;
    hunch_status status = pickle_read(f, &version, f->pickled + *at, size - *at, &used, err);
    if (status) return status;
    const hn_py *v = hn_pickle_root(&version);
    if (v->kind != HN_PY_INT || v->i != STREAM_VERSION)
        status =
            hn_fail(err, HUNCH_REFUSED, "%s: a stream of an unknown version; expected %d", f->path, STREAM_VERSION);
    hn_pickle_free(&version);
    *at += used;
    if (!status) status = pickle_read(f, &machine, f->pickled + *at, size - *at, &used, err);
    if (status) return status;
    const hn_py *root = hn_pickle_root(&machine);
    const hn_py *little = root->kind == HN_PY_DICT ? hn_pickle_get(&machine, root, "little_endian") : NULL;
    if (little == NULL || little->kind != HN_PY_BOOL || !little->i)
        status = hn_fail(err, HUNCH_REFUSED, "%s: its numbers are not little-endian", f->path);
    hn_pickle_free(&machine);
    *at += used;
    return status;
}

static hunch_status stream_open(hn_torch_file *f, hunch_error *err) {
    const size_t size = f->map->size < STREAM_HEAD_MAX ? f->map->size : STREAM_HEAD_MAX;
    size_t at = sizeof STREAM_MAGIC, used;
    hn_pickle keys = {0};
    hunch_status status = pickled_read(f, 0, size, err);
    if (!status) status = stream_check_head(f, size, &at, err);
    if (!status) status = pickle_read(f, &f->dictionary, f->pickled + at, size - at, &used, err);
    if (status) return status;
    at += used;
    status = places_list(f, err);
    if (!status) status = pickle_read(f, &keys, f->pickled + at, size - at, &used, err);
    if (!status) status = places_locate(f, &keys, at + used, err);
    hn_pickle_free(&keys);
    return status;
}

static hunch_status stream_storage(const hn_torch_file *f, const place *wanted, const char *tensor,
                                   hn_torch_storage *out, hunch_error *err) {
    const place *p = place_find(f, wanted->key, wanted->len);
    if (p == NULL || p->off == 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s lies in storage %.*s, which is missing", f->path, tensor,
                       (int)wanted->len, wanted->key);
    *out = (hn_torch_storage){.type = p->type, .off = p->off, .bytes = (size_t)p->elements * p->type->bytes};
    return HUNCH_OK;
}

/* ---- either ----------------------------------------------------------------------------------------------------- */

hunch_status hn_torch_file_open(hn_torch_file *f, const hn_map *map, const char *path, hunch_error *err) {
    unsigned char magic[sizeof STREAM_MAGIC] = {0};
    *f = (hn_torch_file){.map = map, .path = path};
    hunch_status status = hn_map_read(map, path, 0, map->size < sizeof magic ? map->size : sizeof magic, magic, err);
    if (!status && memcmp(magic, ARCHIVE_MAGIC, sizeof ARCHIVE_MAGIC) == 0)
        status = archive_open(f, err);
    else if (!status && memcmp(magic, STREAM_MAGIC, sizeof STREAM_MAGIC) == 0)
        status = stream_open(f, err);
    else if (!status)
        status = hn_fail(err, HUNCH_REFUSED,
                         "%s: no checkpoint of PyTorch; expected a zip archive, or a stream as torch "
                         "before 1.6 wrote it",
                         path);
    if (status) hn_torch_file_close(f);
    return status;
}

void hn_torch_file_close(hn_torch_file *f) {
    hn_pickle_free(&f->dictionary);
    hn_zip_close(&f->zip);
    hn_free(f->places);
    hn_free(f->pickled);
    *f = (hn_torch_file){0};
}

hunch_status hn_torch_storage_find(const hn_torch_file *f, const hn_py *value, const char *tensor,
                                   hn_torch_storage *out, hunch_error *err) {
    place p;
    hunch_status status = outside_read(f, value, &p, err);
    if (status) return status;
    return f->zip.list != NULL ? archive_storage(f, &p, tensor, out, err) : stream_storage(f, &p, tensor, out, err);
}
