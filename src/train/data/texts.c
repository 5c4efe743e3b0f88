/* SPDX-License-Identifier: Apache-2.0 */
/* texts.c - see texts.h. */
#include "train/data/texts.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static hunch_status line_read(hn_train_texts *t, const char *line, size_t len, const char *path, size_t number,
                              int vocab, hunch_error *err) {
    json_t *row = json_loadb(line, len, 0, NULL);
    if (json_object_size(row) == 1 && json_is_integer(json_object_get(row, "done"))) {
        json_decref(row);
        return HUNCH_OK;
    }
    const json_t *ids = json_object_get(row, "ids"), *own = json_object_get(row, "own");
    const size_t n = json_array_size(ids);
    const json_int_t from = json_integer_value(own);
    bool good = n > 0 && n < 1 << 24 && json_is_integer(own) && from >= 0 && from <= (json_int_t)n;
    int32_t *copy = good ? hn_alloc(n * sizeof *copy) : NULL;
    for (size_t i = 0; copy && good && i < n; i++) {
        const json_t *id = json_array_get(ids, i);
        good = json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < vocab;
        copy[i] = (int32_t)json_integer_value(id);
    }
    json_decref(row);
    if (good && copy && hn_grow((void **)&t->item, &t->cap, t->n + 1, sizeof *t->item)) {
        t->item[t->n++] = (hn_train_text){copy, (int)n, (int)from};
        t->tokens += n;
        t->own += n - (size_t)from;
        return HUNCH_OK;
    }
    hn_free(copy);
    if (good) return hn_fail_memory(err, "texts to learn from", n * sizeof *copy);
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: line %zu: expected {\"id\", \"own\": N, \"ids\": [...]} with ids of 0 to %d", path, number,
                   vocab - 1);
}

static hunch_status file_fail(const char *path, const char *what, hunch_error *err) {
    return hn_fail(err, HUNCH_FAILED, "%s: %s: %s", path, what, strerror(errno));
}

hunch_status hn_train_texts_read(hn_train_texts *t, const char *path, int vocab, hunch_error *err) {
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t n;
    hunch_status st = HUNCH_OK;
    if (!f) return file_fail(path, "cannot be read", err);
    while (!st && (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n')
        st = line_read(t, line, (size_t)n, path, ++number, vocab, err);
    if (!st && ferror(f)) st = file_fail(path, "cannot be read", err);
    free(line);
    fclose(f);
    return st;
}

int hn_train_texts_longest(const hn_train_texts *t) {
    int n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->item[i].n > n) n = t->item[i].n;
    return n;
}

void hn_train_texts_fini(hn_train_texts *t) {
    for (size_t i = 0; i < t->n; i++) hn_free(t->item[i].ids);
    hn_free(t->item);
    *t = (hn_train_texts){0};
}

/* The end of the last line with a number of done jobs. */
static long done_end(FILE *f, size_t *done) {
    char *line = NULL;
    size_t room = 0, k;
    long end = 0, at = 0;
    ssize_t n;
    int behind = 0;
    *done = 0;
    for (; (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n'; behind = 0) {
        at += n;
        if (sscanf(line, "{\"done\": %zu}%n", &k, &behind) != 1 || behind != n - 1) continue;
        end = at;
        *done = k;
    }
    free(line);
    return end;
}

hunch_status hn_train_texts_resume(FILE **f, const char *path, size_t *done, hunch_error *err) {
    struct stat s;
    *f = fopen(path, "a+");
    if (!*f) return file_fail(path, "cannot be written", err);
    if (fstat(fileno(*f), &s) != 0 || !S_ISREG(s.st_mode)) {
        fclose(*f);
        *f = NULL;
        return hn_fail(err, HUNCH_FAILED, "%s: expected a file, or none", path);
    }
    rewind(*f);
    const long end = done_end(*f, done);
    if (!ferror(*f) && !fseek(*f, 0, SEEK_END) && !ftruncate(fileno(*f), end) && !fseek(*f, 0, SEEK_END))
        return HUNCH_OK;
    hunch_status st = file_fail(path, "cannot be gone on with", err);
    fclose(*f);
    *f = NULL;
    return st;
}

hunch_status hn_train_texts_append(FILE *f, const char *path, const char *id, const int32_t *ids, size_t n, size_t own,
                                   hunch_error *err) {
    bool good = fprintf(f, "{\"id\": \"%s\", \"own\": %zu, \"ids\": [", id, own) > 0;
    for (size_t i = 0; good && i < n; i++) good = fprintf(f, i ? ", %d" : "%d", (int)ids[i]) > 0;
    return good && fputs("]}\n", f) >= 0 ? HUNCH_OK : file_fail(path, "cannot be written", err);
}

hunch_status hn_train_texts_done(FILE *f, const char *path, size_t done, hunch_error *err) {
    return fprintf(f, "{\"done\": %zu}\n", done) > 0 && fflush(f) == 0 ? HUNCH_OK
                                                                       : file_fail(path, "cannot be written", err);
}
