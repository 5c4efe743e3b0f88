/* SPDX-License-Identifier: Apache-2.0 */
/* vectors_for_tests.h - reads cases of tests of src/text from JSON lines files. Include after cmocka. */
#ifndef HN_VECTORS_FOR_TESTS_H
#define HN_VECTORS_FOR_TESTS_H
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static inline const char *text_path(const char *name) {
    static char path[4][600];
    static int next;
    char *p = path[next++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", HUNCH_TEST_DATA, name);
    return p;
}

/* Calls row for each line of a file; returns their number. */
static inline size_t each_row_of(const char *path, void (*row)(const json_t *row, void *user), void *user) {
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0, n = 0;
    if (!f) fail_msg("%s cannot be opened", path);
    while (getline(&line, &cap, f) > 0) {
        json_error_t e;
        json_t *j = json_loads(line, JSON_ALLOW_NUL, &e);
        if (!j) fail_msg("%s, line %zu: %s", path, n + 1, e.text);
        row(j, user);
        json_decref(j);
        n++;
    }
    free(line);
    fclose(f);
    return n;
}

/* The same for a file under tests/data. */
static inline size_t each_row(const char *name, void (*row)(const json_t *row, void *user), void *user) {
    return each_row_of(text_path(name), row, user);
}

static inline const char *row_text(const json_t *row, const char *key, size_t *len) {
    const json_t *j = json_object_get(row, key);
    if (len) *len = json_string_length(j);
    return json_string_value(j);
}
#endif
