/* SPDX-License-Identifier: Apache-2.0 */
/* weights_file.c - see weights_file.h. */
#include "format/weights_file.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "format/find_caches.h"

bool hn_is_checkpoint(const char *name) {
    return hn_ends_with(name, ".bin") || hn_ends_with(name, ".pt") || hn_ends_with(name, ".pth");
}

bool hn_is_weights_file(const char *name) {
    return hn_is_checkpoint(name) || hn_ends_with(name, ".safetensors");
}

/* Files of weights in a folder. */
typedef struct single_weights {
    char *path;     /* the first */
    char seen[300]; /* their names */
    size_t n;
    hunch_error *err;
} single_weights;

static hunch_status single_add(void *user, const char *folder, const char *name) {
    single_weights *l = user;
    if (!hn_is_weights_file(name) || !strcmp(name, HN_MASK_FILE) || !strcmp(name, HN_WARP_FILE) ||
        strstr(name, "-of-") != NULL) /* a shard without its index is incomplete */
        return HUNCH_OK;
    char *path = hn_path_join(folder, name);
    if (path == NULL) return hn_fail_memory(l->err, "a path", strlen(folder));
    bool is_file;
    hunch_status status = hn_file_probe(path, &is_file, l->err);
    if (is_file) {
        const size_t at = strlen(l->seen);
        snprintf(l->seen + at, sizeof l->seen - at, "%s%s", at > 0 ? ", " : "", name);
        l->n++;
    }
    if (is_file && l->path == NULL)
        l->path = path;
    else
        hn_free(path);
    return status;
}

static hunch_status single_find(const char *folder, char **path, hunch_error *err) {
    single_weights l = {.err = err};
    hunch_status status = hn_folder_each(folder, single_add, &l, err);
    if (!status && l.n == 0)
        status =
            hn_fail(err, HUNCH_REFUSED,
                    "%s: neither model.safetensors nor model.safetensors.index.json is there, nor pytorch_model.bin; "
                    "expected one of them",
                    folder);
    if (!status && l.n > 1)
        status = hn_fail(err, HUNCH_REFUSED,
                         "%s: none of its files of weights has a usual name: %s; expected one of them alone, or "
                         "the path of one",
                         folder, l.seen);
    if (!status)
        *path = l.path;
    else
        hn_free(l.path);
    return status;
}

static const char *const usual[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                    "pytorch_model.bin.index.json"};
enum { N_USUAL = sizeof usual / sizeof *usual };

bool hn_weights_usual(const char *folder) {
    for (size_t i = 0; i < N_USUAL; i++)
        if (hn_folder_holds(folder, usual[i])) return true;
    return false;
}

hunch_status hn_weights_find(const char *folder, char **path, hunch_error *err) {
    *path = NULL;
    for (size_t i = 0; i < N_USUAL; i++) {
        char *at = hn_path_join(folder, usual[i]);
        if (at == NULL) return hn_fail_memory(err, "a path", strlen(folder) + strlen(usual[i]) + 2);
        bool is_file;
        hunch_status status = hn_file_probe(at, &is_file, err);
        if (!status && is_file) {
            *path = at;
            return HUNCH_OK;
        }
        hn_free(at);
        if (status) return status;
    }
    return single_find(folder, path, err);
}
