/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_edit.h - a whole GGUF file of which tests change keys, names, shapes and bytes; written with its keys and tensors in order of
 * their names, as Ollama's converter does. Include after cmocka. */
#ifndef HN_GGUF_EDIT_H
#define HN_GGUF_EDIT_H
#include "format/bytes_for_tests.h"

enum { EDIT_U32 = 4, EDIT_I32 = 5, EDIT_F32 = 6, EDIT_BOOL = 7, EDIT_STRING = 8, EDIT_ARRAY = 9 };
enum { EDIT_MOST_KEYS = 96, EDIT_MOST_TENSORS = 256, EDIT_ALIGNMENT = 32 };

typedef struct edit_key {
    char name[96];
    uint32_t type;
    bytes value;
} edit_key;

typedef struct edit_tensor {
    char name[96];
    uint32_t type, n_dims;
    uint64_t dims[4], offset;
    bytes data;
} edit_tensor;

typedef struct edit {
    edit_key key[EDIT_MOST_KEYS];
    edit_tensor tensor[EDIT_MOST_TENSORS];
    size_t n_keys, n_tensors;
} edit;

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

static inline uint64_t edit_number(const bytes *file, size_t *at, size_t n) {
    uint64_t v = 0;
    assert_true(*at + n <= file->size);
    memcpy(&v, file->at + *at, n);
    *at += n;
    return v;
}

static inline void edit_name(const bytes *file, size_t *at, char name[96]) {
    const size_t len = (size_t)edit_number(file, at, 8);
    assert_true(len < 96 && *at + len <= file->size);
    memcpy(name, file->at + *at, len);
    name[len] = '\0';
    *at += len;
}

/* Steps over a value, which is copied as it is. */
static inline void edit_skip(const bytes *file, size_t *at, uint32_t type) {
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == EDIT_STRING) {
        const size_t len = (size_t)edit_number(file, at, 8);
        *at += len;
    } else if (type == EDIT_ARRAY) {
        const uint32_t of = (uint32_t)edit_number(file, at, 4);
        const uint64_t n = edit_number(file, at, 8);
        for (uint64_t i = 0; i < n; i++) edit_skip(file, at, of);
    } else
        *at += sizes[type];
}

static inline void edit_read_tensors(edit *e, const bytes *file, size_t at) {
    for (size_t i = 0; i < e->n_tensors; i++) {
        edit_tensor *t = &e->tensor[i];
        edit_name(file, &at, t->name);
        t->n_dims = (uint32_t)edit_number(file, &at, 4);
        for (uint32_t d = 0; d < t->n_dims; d++) t->dims[d] = edit_number(file, &at, 8);
        t->type = (uint32_t)edit_number(file, &at, 4);
        t->offset = edit_number(file, &at, 8);
    }
    at += -at & (EDIT_ALIGNMENT - 1);
    for (size_t i = 0; i < e->n_tensors; i++) {
        edit_tensor *t = &e->tensor[i];
        size_t end = file->size - at; /* padding included, until its size is known by the next one */
        for (size_t k = 0; k < e->n_tensors; k++)
            if (e->tensor[k].offset > t->offset && e->tensor[k].offset < end) end = (size_t)e->tensor[k].offset;
        bytes_put(&t->data, file->at + at + t->offset, end - (size_t)t->offset);
    }
}

/* edit_close. */
static inline edit *edit_open(const char *path) {
    edit *e = calloc(1, sizeof *e);
    bytes file = test_file_read(path);
    size_t at = 8;
    assert_non_null(e);
    e->n_tensors = (size_t)edit_number(&file, &at, 8);
    e->n_keys = (size_t)edit_number(&file, &at, 8);
    assert_true(e->n_keys < EDIT_MOST_KEYS && e->n_tensors < EDIT_MOST_TENSORS);
    for (size_t i = 0; i < e->n_keys; i++) {
        edit_key *k = &e->key[i];
        edit_name(&file, &at, k->name);
        k->type = (uint32_t)edit_number(&file, &at, 4);
        const size_t from = at;
        edit_skip(&file, &at, k->type);
        bytes_put(&k->value, file.at + from, at - from);
    }
    edit_read_tensors(e, &file, at);
    bytes_free(&file);
    return e;
}

static inline void edit_close(edit *e) {
    for (size_t i = 0; i < e->n_keys; i++) bytes_free(&e->key[i].value);
    for (size_t i = 0; i < e->n_tensors; i++) bytes_free(&e->tensor[i].data);
    free(e);
}

/* ---- keys ----------------------------------------------------------------------------------------------------------------- */

static inline edit_key *edit_find(edit *e, const char *name) {
    for (size_t i = 0; i < e->n_keys; i++)
        if (!strcmp(e->key[i].name, name)) return &e->key[i];
    return NULL;
}

/* The empty value of a key, which is added if it is not there. */
static inline bytes *edit_put(edit *e, const char *name, uint32_t type) {
    edit_key *k = edit_find(e, name);
    if (!k) {
        assert_true(e->n_keys < EDIT_MOST_KEYS);
        k = &e->key[e->n_keys++];
        snprintf(k->name, sizeof k->name, "%s", name);
    }
    bytes_free(&k->value);
    k->type = type;
    return &k->value;
}

static inline void edit_u32(edit *e, const char *name, uint32_t v) {
    bytes_number(edit_put(e, name, EDIT_U32), v, 4);
}

static inline void edit_f32(edit *e, const char *name, float v) {
    bytes_put(edit_put(e, name, EDIT_F32), &v, sizeof v);
}

static inline void edit_bool(edit *e, const char *name, bool v) {
    bytes_number(edit_put(e, name, EDIT_BOOL), v, 1);
}

static inline void edit_text(edit *e, const char *name, const char *text) {
    bytes_text(edit_put(e, name, EDIT_STRING), text);
}

static inline void edit_list(edit *e, const char *name, uint32_t type, const uint32_t *v, size_t n) {
    bytes *b = edit_put(e, name, EDIT_ARRAY);
    bytes_number(b, type, 4);
    bytes_number(b, n, 8);
    for (size_t i = 0; i < n; i++) bytes_number(b, v[i], type == EDIT_BOOL ? 1 : 4);
}

/* Removes keys that begin so. */
static inline void edit_drop(edit *e, const char *start) {
    for (size_t i = 0; i < e->n_keys;) {
        if (strncmp(e->key[i].name, start, strlen(start)) != 0) {
            i++;
            continue;
        }
        bytes_free(&e->key[i].value);
        e->key[i] = e->key[--e->n_keys];
        e->key[e->n_keys] = (edit_key){0};
    }
}

static inline uint32_t edit_value(edit *e, const char *name) {
    const edit_key *k = edit_find(e, name);
    uint32_t v = 0;
    if (!k || k->type != EDIT_U32) fail_msg("no number %s", name);
    memcpy(&v, k->value.at, sizeof v);
    return v;
}

/* ---- tensors -------------------------------------------------------------------------------------------------------------- */

static inline edit_tensor *edit_tensor_of(edit *e, const char *name) {
    for (size_t i = 0; i < e->n_tensors; i++)
        if (!strcmp(e->tensor[i].name, name)) return &e->tensor[i];
    return NULL;
}

/* A zeroed F32 tensor. */
static inline void edit_add(edit *e, const char *name, uint64_t cols, uint64_t rows) {
    assert_true(e->n_tensors < EDIT_MOST_TENSORS);
    edit_tensor *t = &e->tensor[e->n_tensors++];
    *t = (edit_tensor){.n_dims = rows ? 2 : 1, .dims = {cols, rows}};
    snprintf(t->name, sizeof t->name, "%s", name);
    bytes_zeros(&t->data, (size_t)(cols * (rows ? rows : 1)) * sizeof(float));
}

/* In the names of all keys (`keys`) or tensors, the first `from` becomes `to`. */
static inline void edit_rename(edit *e, bool keys, const char *from, const char *to) {
    for (size_t i = 0; i < (keys ? e->n_keys : e->n_tensors); i++) {
        char *name = keys ? e->key[i].name : e->tensor[i].name, old[96];
        snprintf(old, sizeof old, "%s", name);
        const char *at = strstr(old, from);
        if (at) snprintf(name, 96, "%.*s%s%s", (int)(at - old), old, to, at + strlen(from));
    }
}

/* ---- writing -------------------------------------------------------------------------------------------------------------- */

static inline int edit_compare_keys(const void *a, const void *b) {
    return strcmp(((const edit_key *)a)->name, ((const edit_key *)b)->name);
}

static inline int edit_block(const edit_tensor *t) {
    return strncmp(t->name, "blk.", 4) ? -1 : atoi(t->name + 4);
}

static inline int edit_compare_tensors(const void *a, const void *b) {
    const edit_tensor *x = a, *y = b;
    const int p = edit_block(x), q = edit_block(y);
    return p != q ? p - q : strcmp(x->name, y->name);
}

static inline void edit_write(edit *e, const char *path) {
    bytes b = {0};
    uint64_t offset = 0;
    qsort(e->key, e->n_keys, sizeof *e->key, edit_compare_keys);
    qsort(e->tensor, e->n_tensors, sizeof *e->tensor, edit_compare_tensors);
    bytes_put(&b, "GGUF", 4);
    bytes_number(&b, 3, 4);
    bytes_number(&b, e->n_tensors, 8);
    bytes_number(&b, e->n_keys, 8);
    for (size_t i = 0; i < e->n_keys; i++) {
        bytes_text(&b, e->key[i].name);
        bytes_number(&b, e->key[i].type, 4);
        bytes_put(&b, e->key[i].value.at, e->key[i].value.size);
    }
    for (size_t i = 0; i < e->n_tensors; i++) {
        edit_tensor *t = &e->tensor[i];
        bytes_text(&b, t->name);
        bytes_number(&b, t->n_dims, 4);
        for (uint32_t d = 0; d < t->n_dims; d++) bytes_number(&b, t->dims[d], 8);
        bytes_number(&b, t->type, 4);
        bytes_number(&b, offset, 8);
        offset += t->data.size + (-t->data.size & (EDIT_ALIGNMENT - 1));
    }
    for (size_t i = 0; i < e->n_tensors; i++) {
        bytes_zeros(&b, -b.size & (EDIT_ALIGNMENT - 1));
        bytes_put(&b, e->tensor[i].data.at, e->tensor[i].data.size);
    }
    bytes_zeros(&b, -b.size & (EDIT_ALIGNMENT - 1));
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
}
#endif
