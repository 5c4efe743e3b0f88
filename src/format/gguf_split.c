/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_split.c - a model spread over several GGUF files opens as one source (contract C6).
 *
 *     name-00001-of-00003.gguf   all keys, and any number of tensors (or none)
 *     name-00002-of-00003.gguf   the three keys below, and more tensors
 *     name-00003-of-00003.gguf   the same
 *
 * Every part has split.no (counted from 0), split.count and split.tensors.count (of all parts together), has its own
 * alignment and stays mapped as its own file. Other keys of later parts are ignored. gguf.c reads and checks each file;
 * hn_source_index_tensors checks that no tensor appears twice in all parts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/source_private.h"

enum { SPLIT_MAX_PARTS = UINT16_MAX, SPLIT_MAX_TENSORS = 1000000 };
enum { SPLIT_ENDING = sizeof "-00001-of-00003.gguf" - 1 };

/* The split keys of one part. */
typedef struct split {
    uint64_t no, count, tensors;
} split;

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* no counts from 0, names from 1. Both are at most SPLIT_MAX_PARTS. */
static void ending_print(char out[SPLIT_ENDING + 1], uint64_t no, uint64_t count) {
    snprintf(out, SPLIT_ENDING + 1, "-%05u-of-%05u.gguf", (unsigned)(no + 1) % 100000, (unsigned)count % 100000);
}

/* The path of another part of the same model; `path` has such an ending. To be freed with hn_free; NULL: no memory. */
static char *part_path(const char *path, uint64_t no, uint64_t count) {
    char *out = hn_strdup(path);
    if (out != NULL)
        ending_print(out + strlen(out) - SPLIT_ENDING, no, count);
    return out;
}

static hunch_status name_check(const char *path, const split *part, hunch_error *err) {
    char ending[SPLIT_ENDING + 1];
    size_t len = strlen(path);
    ending_print(ending, part->no, part->count);
    if (len >= SPLIT_ENDING && strcmp(path + len - SPLIT_ENDING, ending) == 0)
        return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: part %" PRIu64 " of the %" PRIu64
                   " of a split model; expected a name that ends in %s, and the other parts beside it",
                   path, part->no + 1, part->count, ending);
}

/* ---- keys ----------------------------------------------------------------------------------------------------- */

static hunch_status key_read(const hn_source *s, const char *key, uint64_t most, uint64_t *out, hunch_error *err) {
    bool found;
    hunch_status status = hn_source_u64(s, key, out, &found, err);
    if (status)
        return status;
    if (!found)
        return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing; expected it in every part of a split model", s->path,
                       key);
    if (*out > most)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %" PRIu64 "; expected at most %" PRIu64, s->path, key, *out,
                       most);
    return HUNCH_OK;
}

static hunch_status split_read(const hn_source *s, split *out, hunch_error *err) {
    hunch_status status = key_read(s, "split.count", SPLIT_MAX_PARTS, &out->count, err);
    if (!status)
        status = key_read(s, "split.no", out->count > 0 ? out->count - 1 : 0, &out->no, err);
    if (!status)
        status = key_read(s, "split.tensors.count", SPLIT_MAX_TENSORS, &out->tensors, err);
    return status;
}

static hunch_status same(const hn_source *part, const char *what, uint64_t value, uint64_t expected, const char *first,
                         hunch_error *err) {
    if (value == expected)
        return HUNCH_OK;
    return hn_fail(err, HUNCH_REFUSED, "%s: %s is %" PRIu64 "; expected %" PRIu64 " as a part of %s", part->path, what,
                   value, expected, first);
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */

/* Moves the files and tensors of the part to s, without its keys. */
static hunch_status part_append(hn_source *s, hn_source *part, hunch_error *err) {
    size_t n_files = s->n_files + part->n_files, n_tensors = s->n_tensors + part->n_tensors;
    if (!hn_grow((void **)&s->files, &s->cap_files, n_files, sizeof *s->files) ||
        !hn_grow((void **)&s->tensors, &s->cap_tensors, n_tensors, sizeof *s->tensors))
        return hn_fail_memory(err, "the list of tensors", n_tensors * sizeof *s->tensors);
    for (size_t i = 0; i < part->n_tensors; i++) {
        hn_tensor *t = &s->tensors[s->n_tensors++];
        *t = part->tensors[i];
        t->file += s->n_files;
    }
    for (size_t i = 0; i < part->n_files; i++)
        s->files[s->n_files++] = part->files[i];
    part->n_tensors = part->n_files = 0;
    return HUNCH_OK;
}

static hunch_status part_check(const hn_source *s, const hn_source *part, const split *expected, hunch_error *err) {
    split keys = {0};
    hunch_status status = same(part, "its GGUF version", part->gguf_version, s->gguf_version, s->path, err);
    if (!status)
        status = split_read(part, &keys, err);
    if (!status)
        status = same(part, "split.count", keys.count, expected->count, s->path, err);
    if (!status)
        status = same(part, "split.no", keys.no, expected->no, s->path, err);
    if (!status)
        status = same(part, "split.tensors.count", keys.tensors, expected->tensors, s->path, err);
    if (!status && part->n_tensors > expected->tensors - s->n_tensors)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: with its %zu tensors the parts have more than the %" PRIu64 " of split.tensors.count",
                       part->path, part->n_tensors, expected->tensors);
    return status;
}

/* expected: the keys that this part must have. */
static hunch_status part_read(hn_source *s, const split *expected, hunch_error *err) {
    hn_source *part = hn_zalloc(1, sizeof *part);
    if (part == NULL)
        return hn_fail_memory(err, "a part's description", sizeof *part);
    part->kind = HN_SOURCE_GGUF;
    part->path = part_path(s->path, expected->no, expected->count);
    bool is_file = false;
    hunch_status status =
        part->path ? hn_file_probe(part->path, &is_file, err) : hn_fail_memory(err, "a path", strlen(s->path) + 1);
    if (!status && !is_file)
        status = hn_fail(err, HUNCH_REFUSED, "%s: no such file; expected part %" PRIu64 " of %" PRIu64 " beside %s",
                         part->path, expected->no + 1, expected->count, s->path);
    if (!status)
        status = hn_gguf_read_file(part, part->path, err);
    if (!status)
        status = part_check(s, part, expected, err);
    if (!status)
        status = part_append(s, part, err);
    hn_source_close(&part);
    return status;
}

/* Checks the first part's keys: those of the whole model, and that it is the first part. */
static hunch_status first_check(const hn_source *s, split *whole, hunch_error *err) {
    hunch_status status = split_read(s, whole, err);
    if (!status)
        status = name_check(s->path, whole, err);
    if (status)
        return status;
    if (whole->no > 0) {
        char *first = part_path(s->path, 0, whole->count);
        if (first == NULL)
            return hn_fail_memory(err, "a path", strlen(s->path) + 1);
        hn_fail(err, HUNCH_REFUSED, "%s: part %" PRIu64 " of %" PRIu64 "; expected the first part, %s", s->path,
                whole->no + 1, whole->count, first);
        hn_free(first);
        return HUNCH_REFUSED;
    }
    if (s->n_tensors > whole->tensors)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: split.tensors.count is %" PRIu64 "; the first part alone has %zu tensors", s->path,
                       whole->tensors, s->n_tensors);
    return HUNCH_OK;
}

/* split.count is 0 in files whose parts were joined, and 1 in some that were never split. */
hunch_status hn_gguf_read(hn_source *s, const char *path, hunch_error *err) {
    split whole = {.count = 1};
    bool found;
    hunch_status status = hn_gguf_read_file(s, path, err);
    if (!status)
        status = hn_source_u64(s, "split.count", &whole.count, &found, err);
    if (status || whole.count <= 1)
        return status;
    status = first_check(s, &whole, err);
    for (split part = whole; !status && ++part.no < whole.count;)
        status = part_read(s, &part, err);
    if (!status && s->n_tensors != whole.tensors)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: split.tensors.count is %" PRIu64 "; its %" PRIu64 " parts have %zu tensors", s->path,
                       whole.tensors, whole.count, s->n_tensors);
    return status;
}
