/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_source.h - reads everything that an opened source offers. */
#ifndef HN_FUZZ_SOURCE_H
#define HN_FUZZ_SOURCE_H
#include <string.h>

#include "base/json_load.h"
#include "base/mem.h"
#include "format/source.h"
#include "fuzz.h"

static volatile unsigned char fuzz_touched; /* keeps the reads alive */

static inline void fuzz_read_bytes(const void *at, size_t size) {
    const unsigned char *p = at;
    unsigned char all = 0;
    for (size_t i = 0; i < size; i++) all ^= p[i];
    fuzz_touched = all;
}

static inline void fuzz_read_array(const hn_source *s, const char *key) {
    const hn_array *a = NULL;
    hunch_error err = {0};
    fuzz_check(hn_source_array(s, key, &a, &err), &err, hn_source_path(s));
    for (size_t i = 0, len; a != NULL && i < hn_array_count(a); i++) {
        fuzz_touched = hn_array_number(a, i) > 0;
        const char *text = hn_array_string(a, i, &len);
        fuzz_read_bytes(text, len);
    }
}

static inline void fuzz_read_key(const hn_source *s, const char *key) {
    uint64_t u;
    double f;
    bool b, found;
    const char *text;
    hunch_error err = {0};
    fuzz_check(hn_source_u64(s, key, &u, &found, &err), &err, hn_source_path(s));
    fuzz_check(hn_source_f64(s, key, &f, &found, &err), &err, hn_source_path(s));
    fuzz_check(hn_source_bool(s, key, &b, &found, &err), &err, hn_source_path(s));
    hunch_status st = hn_source_str(s, key, &text, NULL, &found, &err);
    fuzz_check(st, &err, hn_source_path(s));
    if (st == HUNCH_OK && found) fuzz_read_bytes(text, strlen(text) + 1);
    fuzz_read_array(s, key);
}

/* All bytes of a tensor, by way of its view if it has one. */
static inline void fuzz_read_tensor(const hn_source *s, const hn_tensor *t) {
    hunch_error err = {0};
    if (!t->view) {
        fuzz_read_bytes(t->data, t->bytes);
        return;
    }
    void *copy = malloc(t->bytes + 1);
    FUZZ_MUST(copy != NULL && hn_source_read(s, t, 0, t->bytes, copy, &err) == HUNCH_OK);
    fuzz_read_bytes(copy, t->bytes);
    free(copy);
}

/* Tensors with all their bytes, keys as every type. */
static inline void fuzz_read_source(hn_source *s) {
    hunch_error err = {0};
    json_t *json = NULL, *value;
    const char *key;
    for (size_t i = 0; i < hn_source_tensor_count(s); i++) {
        hn_tensor *t = hn_source_tensor(s, i), *needed;
        fuzz_read_tensor(s, t);
        FUZZ_MUST(hn_source_take(s, t->name) == t);
        fuzz_check(hn_source_need(s, t->name, 2, t->dims[0], t->dims[1], &needed, &err), &err, NULL);
    }
    FUZZ_MUST(hn_source_describe(s, &json, &err) == HUNCH_OK);
    json_object_foreach(json_object_get(json, "metadata"), key, value) fuzz_read_key(s, key);
    char *text = hn_json_dump(json, 0); /* metadata may hold numbers that only hn_json_dump writes */
    FUZZ_MUST(text != NULL);
    hn_free(text);
    json_decref(json);
}
#endif
