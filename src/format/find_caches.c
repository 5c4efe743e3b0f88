/* SPDX-License-Identifier: Apache-2.0 */
/* find_caches.c - see find_caches.h. The only file of src/format that reads environment variables. */
#include "format/find_caches.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"

bool hn_ends_with(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcasecmp(text + n - k, end) == 0;
}

/* ---- folders ---------------------------------------------------------------------------------------------------- */

typedef struct names {
    char **items;
    size_t n, cap;
} names;

static int name_compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static hunch_status names_read(names *list, DIR *folder, hunch_error *err) {
    const struct dirent *entry;
    while (list->n < HN_FOLDER_MAX && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        char *copy = hn_grow((void **)&list->items, &list->cap, list->n + 1, sizeof *list->items)
                         ? hn_strdup(entry->d_name)
                         : NULL;
        if (copy == NULL)
            return hn_fail_memory(err, "the names in a folder", list->n);
        list->items[list->n++] = copy;
    }
    return HUNCH_OK;
}

hunch_status hn_folder_each(const char *folder, hunch_status (*each)(void *user, const char *folder, const char *name),
                            void *user, hunch_error *err) {
    names list = {0};
    DIR *d = opendir(folder);
    if (d == NULL)
        return HUNCH_OK;
    hunch_status status = names_read(&list, d, err);
    closedir(d);
    if (list.n > 1)
        qsort(list.items, list.n, sizeof *list.items, name_compare);
    for (size_t i = 0; i < list.n; i++) {
        if (!status)
            status = each(user, folder, list.items[i]);
        hn_free(list.items[i]);
    }
    hn_free(list.items);
    return status;
}

/* ---- entries ------------------------------------------------------------------------------------------------------ */

typedef struct lister {
    hn_caches *caches;
    hn_cached_kind kind;
    const char *root;                    /* of this cache */
    const char *host, *space, *model; /* OLLAMA: the folders that the walk is in */
    hunch_error *err;
} lister;

/* Takes ownership of name and path, either of which may be NULL (no memory). */
static hunch_status entry_add(lister *l, char *name, char *path) {
    hn_caches *c = l->caches;
    hn_cached entry = {.kind = l->kind, .name = name, .path = path};
    bool blobs = l->kind == HN_CACHED_OLLAMA;
    if (blobs)
        entry.folder = hn_path_join(l->root, "blobs");
    if (name == NULL || path == NULL || (blobs && entry.folder == NULL) ||
        !hn_grow((void **)&c->items, &c->cap, c->n + 1, sizeof *c->items)) {
        hn_free(name);
        hn_free(path);
        hn_free(entry.folder);
        return hn_fail_memory(l->err, "the list of downloaded models", c->n * sizeof *c->items);
    }
    c->items[c->n++] = entry;
    return HUNCH_OK;
}

/* "models--ORG--NAME" is "ORG/NAME". */
static hunch_status hf_entry(void *user, const char *folder, const char *name) {
    static const char prefix[] = "models--";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return HUNCH_OK;
    char *repository = hn_strdup(name + sizeof prefix - 1), *dashes = repository ? strstr(repository, "--") : NULL;
    if (dashes != NULL) {
        *dashes = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    }
    return entry_add(user, repository, hn_path_join(folder, name));
}

static hunch_status file_entry(void *user, const char *folder, const char *name) {
    if (!hn_ends_with(name, ".gguf"))
        return HUNCH_OK;
    return entry_add(user, hn_strdup(name), hn_path_join(folder, name));
}

static hunch_status ollama_tag(void *user, const char *folder, const char *name) {
    lister *l = user;
    char full[4 * 256 + 8];
    int n = snprintf(full, sizeof full, "%s/%s/%s:%s", l->host, l->space, l->model, name);
    return n < (int)sizeof full ? entry_add(l, hn_strdup(full), hn_path_join(folder, name)) : HUNCH_OK;
}

static hunch_status walk(lister *l, const char *folder, const char *name,
                         hunch_status (*each)(void *user, const char *folder, const char *name)) {
    char *path = hn_path_join(folder, name);
    if (path == NULL)
        return hn_fail_memory(l->err, "a path", strlen(folder));
    hunch_status status = hn_folder_each(path, each, l, l->err);
    hn_free(path);
    return status;
}

static hunch_status ollama_model(void *user, const char *folder, const char *name) {
    lister *l = user;
    l->model = name;
    return walk(l, folder, name, ollama_tag);
}

static hunch_status ollama_space(void *user, const char *folder, const char *name) {
    lister *l = user;
    l->space = name;
    return walk(l, folder, name, ollama_model);
}

static hunch_status ollama_host(void *user, const char *folder, const char *name) {
    lister *l = user;
    l->host = name;
    return walk(l, folder, name, ollama_space);
}

const char *hn_cached_name(const hn_cached *entry) {
    static const char library[] = "library/";
    if (entry->kind != HN_CACHED_OLLAMA)
        return entry->name;
    const char *host = strchr(entry->name, '/'), *space = host ? host + 1 : entry->name;
    return strncmp(space, library, sizeof library - 1) == 0 ? space + sizeof library - 1 : space;
}

/* ---- folders of caches ---------------------------------------------------------------------------------------------- */

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value ? value : NULL;
}

static hunch_status list_folder(hn_caches *c, hn_cached_kind kind, const char *folder, hunch_error *err) {
    lister l = {.caches = c, .kind = kind, .root = folder, .err = err};
    size_t at = strlen(c->searched), n = strlen(folder);
    const char *listed = strstr(c->searched, folder);
    if (listed == NULL || (listed > c->searched && listed[-1] != ' ') || (listed[n] != ',' && listed[n] != '\0'))
        snprintf(c->searched + at, sizeof c->searched - at, "%s%s", at ? ", " : "", folder);
    if (kind == HN_CACHED_HF)
        return hn_folder_each(folder, hf_entry, &l, err);
    if (kind == HN_CACHED_FILE)
        return hn_folder_each(folder, file_entry, &l, err);
    return walk(&l, folder, "manifests", ollama_host);
}

/* Lists a cache: in the folder given by its own variable, else in `place` below the folder given by the variable `base`, else
 * below `in_home` in the home folder. */
static hunch_status list_cache(hn_caches *c, hn_cached_kind kind, const char *own, const char *base,
                               const char *in_home, const char *place, hunch_error *err) {
    char folder[4096];
    int n = sizeof folder;
    const char *home = environment("HOME");
    base = base ? environment(base) : NULL;
    if (own != NULL)
        n = snprintf(folder, sizeof folder, "%s", own);
    else if (base != NULL)
        n = snprintf(folder, sizeof folder, "%s/%s", base, place);
    else if (home != NULL)
        n = snprintf(folder, sizeof folder, "%s/%s/%s", home, in_home, place);
    return n < (int)sizeof folder ? list_folder(c, kind, folder, err) : HUNCH_OK;
}

static hunch_status list_files(hn_caches *c, const char *own, const char *place, hunch_error *err) {
    return list_cache(c, HN_CACHED_FILE, environment(own), "XDG_CACHE_HOME", ".cache", place, err);
}

static hunch_status list_hf(hn_caches *c, hunch_error *err) {
    char hub[4096];
    const char *own = environment("HF_HUB_CACHE"), *home = environment("HF_HOME");
    if (own == NULL && home != NULL && snprintf(hub, sizeof hub, "%s/hub", home) < (int)sizeof hub)
        own = hub;
    return list_cache(c, HN_CACHED_HF, own, "XDG_CACHE_HOME", ".cache", "huggingface/hub", err);
}

static hunch_status list_ollama(hn_caches *c, hunch_error *err) {
    const char *own = environment("OLLAMA_MODELS");
    hunch_status status = list_cache(c, HN_CACHED_OLLAMA, own, NULL, ".ollama", "models", err);
    if (!status && own == NULL) /* the folder of its system service */
        status = list_folder(c, HN_CACHED_OLLAMA, "/usr/share/ollama/.ollama/models", err);
    return status;
}

static int entry_compare(const void *a, const void *b) {
    return strcmp(((const hn_cached *)a)->name, ((const hn_cached *)b)->name);
}

static void entry_fini(hn_cached *entry) {
    hn_free(entry->name);
    hn_free(entry->path);
    hn_free(entry->folder);
}

/* Removes duplicates: two variables may give one folder, or links lead to it. The entries are sorted. */
static void duplicates_drop(hn_caches *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        bool same = false;
        for (size_t k = kept; k-- > 0 && !same && strcmp(c->items[k].name, c->items[i].name) == 0;)
            same = c->items[k].kind == c->items[i].kind && hn_same_file(c->items[k].path, c->items[i].path);
        if (same)
            entry_fini(&c->items[i]);
        else
            c->items[kept++] = c->items[i];
    }
    c->n = kept;
}

hunch_status hn_caches_list(hn_caches *out, hunch_error *err) {
    *out = (hn_caches){0};
    hunch_status status = list_files(out, "HUNCH_CACHE", "hunch", err);
    if (!status)
        status = list_hf(out, err);
    if (!status)
        status = list_ollama(out, err);
    if (!status)
        status = list_files(out, "LLAMA_CACHE", "llama.cpp", err);
    if (status)
        hn_caches_fini(out);
    else if (out->n > 1) {
        qsort(out->items, out->n, sizeof *out->items, entry_compare);
        duplicates_drop(out);
    }
    return status;
}

void hn_caches_fini(hn_caches *c) {
    for (size_t i = 0; i < c->n; i++)
        entry_fini(&c->items[i]);
    hn_free(c->items);
    c->items = NULL;
    c->n = c->cap = 0;
}
