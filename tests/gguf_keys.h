/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_keys.h - what tests of a family's GGUF files share: a golden folder that was converted, its tensors, and files of few keys of which
 * one is changed. Include after cmocka. */
#ifndef HN_GGUF_KEYS_H
#define HN_GGUF_KEYS_H
#include "convert/convert.h"
#include "format/gguf_writer.h"
#include "model/arch/arch.h"
#include "model/folder_for_tests.h"

#define PUT(call) assert_int_equal(call, HUNCH_OK)

/* The folder with a change in config.json as a GGUF, described; *s: opened, or NULL. */
static inline hn_arch folder_as_gguf(const char *folder, const char *find, const char *replace, hn_source **s) {
    hn_arch a;
    hunch_error err = {0};
    hn_source *made = NULL;
    folder_write_changed(folder, find, replace);
    if (hn_convert(test_path("changed"), test_path("made.gguf"), &err)) fail_msg("%s", err.message);
    if (hn_source_open(&made, test_path("made.gguf"), &err) || hn_arch_read(&a, made, &err)) fail_msg("%s", err.message);
    if (s)
        *s = made;
    else
        hn_source_close(&made);
    return a;
}

typedef struct written_tensor {
    const char *name;
    hn_dtype type;
    uint64_t dims[3];
} written_tensor;

static inline void check_written(const hn_source *s, const written_tensor *tensors, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const hn_tensor *t = hn_source_find(s, tensors[i].name);
        if (!t || t->dtype != tensors[i].type) fail_msg("%s is missing or of another type", tensors[i].name);
        for (int k = 0; k < t->n_dims; k++) assert_int_equal(t->dims[k], tensors[i].dims[k]);
    }
}

static inline void check_number(const hn_source *s, const char *key, uint64_t want) {
    uint64_t v = 0;
    bool found;
    PUT(hn_source_u64(s, key, &v, &found, NULL));
    if (!found || v != want) fail_msg("%s is %d, expected %d", key, (int)v, (int)want);
}

/* A key that is written instead of the usual one, or not at all; TABLE: no key, a value of a table. */
typedef struct changed_key {
    const char *name;
    enum { NOTHING, LEFT_OUT, WHOLE, REAL, TEXT, LIST, TABLE } kind;
    double value;
} changed_key;

typedef struct usual_key {
    const char *name;
    uint32_t value;
} usual_key;

/* Writes a family's usual keys but the changed one, and this one; a list is the first `value` of flags. */
static inline void put_changed_keys(hn_gguf_writer *w, const char *family, const usual_key *usual, size_t n, const changed_key *c,
                                    const int32_t *flags) {
    char key[96];
    for (size_t i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%s.%s", family, usual[i].name);
        if (strcmp(c->name, usual[i].name) != 0) PUT(hn_gguf_put_u32(w, key, usual[i].value, NULL));
    }
    snprintf(key, sizeof key, "%s.%s", family, c->name);
    if (c->kind == WHOLE) PUT(hn_gguf_put_u32(w, key, (uint32_t)c->value, NULL));
    if (c->kind == REAL) PUT(hn_gguf_put_f32(w, key, (float)c->value, NULL));
    if (c->kind == TEXT) PUT(hn_gguf_put_str(w, key, "yarn", 4, NULL));
    if (c->kind == LIST) PUT(hn_gguf_put_i32s(w, key, flags, (size_t)c->value, NULL));
}

/* Closes the file that is being written, keys.gguf, and reads it. */
static inline hunch_status read_written(hn_gguf_writer *w, hn_arch *a, hunch_error *err) {
    hn_source *s = NULL;
    PUT(hn_gguf_writer_finish(&w, NULL));
    PUT(hn_source_open(&s, test_path("keys.gguf"), NULL));
    const hunch_status st = hn_arch_read(a, s, err);
    hn_source_close(&s);
    return st;
}

typedef struct wrong_key {
    changed_key key;
    const char *word;
} wrong_key;

typedef hunch_status read_with_fn(const changed_key *c, hn_arch *a, hunch_error *err);
static inline void check_wrong_keys(const wrong_key *wrong, size_t n, read_with_fn *read_with) {
    for (size_t i = 0; i < n; i++) {
        hn_arch a;
        hunch_error err = {0};
        if (read_with(&wrong[i].key, &a, &err) != HUNCH_REFUSED || !strstr(err.message, wrong[i].word))
            fail_msg("%s: '%s'", wrong[i].key.name, err.message);
    }
}
#endif
