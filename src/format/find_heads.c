/* SPDX-License-Identifier: Apache-2.0 */
/* find_heads.c - see find_heads.h. */
#include "format/find_heads.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "format/find_caches.h"

/* Takes ownership of path, which may be NULL (no memory). */
static hunch_status add_if_there(hn_name_list *heads, char *path, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    if (!path) return hn_fail_memory(err, "the name of a draft head", 0);
    if (hn_is_file(path)) st = hn_name_list_add(heads, path, err);
    hn_free(path);
    return st;
}

static hunch_status add_gguf(void *user, const char *folder, const char *name) {
    return hn_ends_with(name, ".gguf") ? add_if_there(user, hn_path_join(folder, name), NULL) : HUNCH_OK;
}

/* The length of a file's name without ".gguf" and without the number of a part. */
static size_t stem_of(const char *model) {
    const size_t n = strlen(model) - strlen(".gguf"), number = strlen("-00001-of-00003");
    unsigned part, parts;
    int end = 0;
    if (n > number && sscanf(model + n - number, "-%5u-of-%5u%n", &part, &parts, &end) == 2 && end == (int)number)
        return n - number;
    return n;
}

static hunch_status beside_file(const char *model, hn_name_list *out, hunch_error *err) {
    static const char end[] = ".head.gguf";
    if (!hn_ends_with(model, ".gguf") || hn_ends_with(model, end)) return HUNCH_OK;
    const size_t stem = stem_of(model);
    char *path = hn_alloc(stem + sizeof end);
    if (path) {
        memcpy(path, model, stem);
        memcpy(path + stem, end, sizeof end);
    }
    return add_if_there(out, path, err);
}

static hunch_status in_folder(const char *model, hn_name_list *out, hunch_error *err) {
    hunch_status st = add_if_there(out, hn_path_join(model, "head.gguf"), err);
    char *heads = st ? NULL : hn_path_join(model, "heads");
    if (!st) st = heads ? hn_folder_each(heads, add_gguf, out, err) : hn_fail_memory(err, "the name of a folder", 0);
    hn_free(heads);
    return st;
}

hunch_status hn_find_heads(const char *model, hn_name_list *out, hunch_error *err) {
    *out = (hn_name_list){0};
    return hn_is_folder(model) ? in_folder(model, out, err) : beside_file(model, out, err);
}
