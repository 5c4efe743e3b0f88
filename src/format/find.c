/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - see find.h. Names are only compared with the entries of the caches (find_caches.h), and names in their files are
 * checked before they become part of a path: no path leads out of a cache. */
#include "format/find.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"
#include "format/find_caches.h"
#include "format/find_near.h"
#include "base/json_load.h"
#include "format/weights_file.h"

enum { MANIFEST_MAX = 1 << 20, REF_MAX = 256, NAME_MAX_BYTES = 500, REVISION_MIN = 4 };

typedef struct finder {
    const char *name;     /* as given */
    char *base;           /* before any @ and : */
    const char *revision; /* after @; NULL: none */
    const char *choice;   /* after the last :; NULL: none */
    char **paths;         /* matches */
    size_t n, cap;
    bool any_case;
    hunch_error *err;
} finder;

static bool same(const finder *f, const char *a, const char *b) {
    return (f->any_case ? strcasecmp(a, b) : strcmp(a, b)) == 0;
}

/* Takes over the path. */
static hunch_status path_add(finder *f, char *path) {
    if (path == NULL || !hn_grow((void **)&f->paths, &f->cap, f->n + 1, sizeof *f->paths)) {
        hn_free(path);
        return hn_fail_memory(f->err, "the path of a model", 0);
    }
    f->paths[f->n++] = path;
    return HUNCH_OK;
}

/* Appends ", x" to a list in a message, or "..." once if it is full. */
static void list_put(char *out, size_t size, const char *x) {
    size_t at = strlen(out), room = size - at;
    if (hn_ends_with(out, "..."))
        return;
    if (strlen(x) + 6 < room)
        snprintf(out + at, room, "%s%s", at ? ", " : "", x);
    else if (room > 5)
        snprintf(out + at, room, ", ...");
}

/* ---- GGUF files by a part of their names -------------------------------------------------------------------------- */

static bool equals_stem(const finder *f, const char *file, const char *text) {
    size_t n = strlen(text);
    return same(f, file, text) || (hn_ends_with(file, ".gguf") && strlen(file) == n + 5 &&
                                   (f->any_case ? strncasecmp(file, text, n) : strncmp(file, text, n)) == 0);
}

/* True if the name contains the part as a whole word: F16 is not a part of BF16. */
static bool holds_part(const char *file, const char *part) {
    size_t n = strlen(part);
    for (const char *at = file; n && (at = strcasestr(at, part)) != NULL; at++)
        if ((at == file || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return true;
    return false;
}

/* True for later parts of a split file, "-00002-of-00003.gguf": only its first part is listed. */
static bool is_later_part(const char *file) {
    const char *of = strcasestr(file, "-of-");
    return of != NULL && of - file > 5 && strspn(of - 5, "0123456789") == 5 && strncmp(of - 5, "00001", 5) != 0 &&
           strspn(of + 4, "0123456789") == 5 && strcasecmp(of + 9, ".gguf") == 0;
}

/* True for projectors of images and audio, which are published with the language model. */
static bool is_projector(const char *file) {
    return strncasecmp(file, "mmproj", 6) == 0;
}

/* ---- Hugging Face ------------------------------------------------------------------------------------------------- */

typedef struct snapshot {
    finder *f;
    bool whole;      /* match files named exactly by the choice; else by a part of the name */
    char seen[400];  /* GGUF files there */
    const char *revision;
    char *found;     /* the commit that begins with the revision */
    size_t n_found;
} snapshot;

/* True for one path component that does not leave its folder. */
static bool is_component(const char *s) {
    return *s != '\0' && *s != '.' && strlen(s) < 200 &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-") == strlen(s);
}

static hunch_status snapshot_file(void *user, const char *folder, const char *name) {
    snapshot *s = user;
    if (!hn_ends_with(name, ".gguf") || is_later_part(name))
        return HUNCH_OK;
    const char *choice = s->f->choice;
    if (s->whole)
        list_put(s->seen, sizeof s->seen, name);
    bool wanted = choice == NULL ? !is_projector(name)
                  : s->whole     ? equals_stem(s->f, name, choice)
                                 : !is_projector(name) && holds_part(name, choice);
    return wanted ? path_add(s->f, hn_path_join(folder, name)) : HUNCH_OK;
}

static hunch_status snapshot_entry(void *user, const char *folder, const char *name) {
    snapshot *s = user;
    char *path = hn_path_join(folder, name);
    if (path == NULL)
        return hn_fail_memory(s->f->err, "a path", strlen(folder));
    hunch_status status = hn_is_folder(path) ? hn_folder_each(path, snapshot_file, s, s->f->err)
                                             : snapshot_file(s, folder, name);
    hn_free(path);
    return status;
}

static hunch_status commit_entry(void *user, const char *folder, const char *name) {
    snapshot *s = user;
    if (s->revision != NULL && strncmp(name, s->revision, strlen(s->revision)) != 0)
        return HUNCH_OK;
    s->n_found++;
    hn_free(s->found);
    s->found = hn_path_join(folder, name);
    return s->found != NULL ? HUNCH_OK : hn_fail_memory(s->f->err, "a path", strlen(folder));
}

/* The contents of refs/REVISION, without white space; "" if there is no such file. *out: hn_free. */
static hunch_status ref_read(finder *f, const char *repository, const char *revision, char **out) {
    size_t len = 0;
    char *refs = hn_path_join(repository, "refs"), *path = refs ? hn_path_join(refs, revision) : NULL;
    bool is_file = false;
    *out = NULL;
    hunch_status status =
        path ? hn_file_probe(path, &is_file, f->err) : hn_fail_memory(f->err, "a path", strlen(repository));
    if (!status && !is_file)
        *out = hn_strdup("");
    else if (!status)
        status = hn_file_read(path, REF_MAX, out, &len, f->err);
    if (!status && *out == NULL)
        status = hn_fail_memory(f->err, "a revision", 1);
    if (!status && *out != NULL)
        (*out)[strcspn(*out, " \t\r\n")] = '\0';
    if (!status && **out != '\0' && !is_component(*out))
        status = hn_fail(f->err, HUNCH_REFUSED, "%s: does not name a commit", path);
    if (status) {
        hn_free(*out);
        *out = NULL;
    }
    hn_free(path);
    hn_free(refs);
    return status;
}

/* The folder of the requested revision; HUNCH_REFUSED if there is none. *out: hn_free. */
static hunch_status snapshot_find(finder *f, const char *repository, char **out) {
    const char *revision = f->revision ? f->revision : "main";
    char *commit = NULL, *snapshots = hn_path_join(repository, "snapshots");
    snapshot s = {.f = f};
    hunch_status status = snapshots ? ref_read(f, repository, revision, &commit)
                                    : hn_fail_memory(f->err, "a path", strlen(repository));
    if (!status) {
        /* A commit by its prefix; without refs/main the only one that was downloaded. */
        s.revision = *commit ? commit : f->revision;
        if (s.revision == NULL || strlen(s.revision) >= REVISION_MIN)
            status = hn_folder_each(snapshots, commit_entry, &s, f->err);
    }
    if (!status && s.n_found != 1)
        status = hn_fail(f->err, HUNCH_REFUSED, "%s: %s of revision %s in %s; expected one", f->name,
                         s.n_found ? "several snapshots" : "no snapshot", revision, snapshots);
    if (!status)
        *out = s.found;
    else
        hn_free(s.found);
    hn_free(commit);
    hn_free(snapshots);
    return status;
}

static hunch_status snapshot_take(finder *f, const char *folder) {
    snapshot s = {.f = f, .whole = true};
    size_t before = f->n;
    const bool described = hn_folder_holds(folder, "config.json") && f->choice == NULL;
    if (described && hn_weights_usual(folder))
        return path_add(f, hn_strdup(folder));
    hunch_status status = hn_folder_each(folder, snapshot_entry, &s, f->err);
    s.whole = false;
    if (!status && f->choice != NULL && f->n == before)
        status = hn_folder_each(folder, snapshot_entry, &s, f->err);
    if (!status && f->n == before && f->choice != NULL)
        status = hn_fail(f->err, HUNCH_REFUSED, "%s: no GGUF file of that name in %s; there %s", f->name, folder,
                         s.seen[0] ? s.seen : "is none at all");
    if (status || f->n > before)
        return status;
    char *path = NULL; /* the only weights file, as in a draft head's repository */
    status = described ? hn_weights_find(folder, &path, f->err) : HUNCH_REFUSED;
    hn_free(path);
    if (!status)
        return path_add(f, hn_strdup(folder));
    return status != HUNCH_REFUSED
               ? status
               : hn_fail(f->err, HUNCH_REFUSED,
                         "%s: %s holds neither a GGUF file nor config.json with model.safetensors or pytorch_model.bin "
                         "(fetched in part?)",
                         f->name, folder);
}

static hunch_status hf_take(finder *f, const hn_cached *entry) {
    char *folder = NULL;
    if (!same(f, entry->name, f->base))
        return HUNCH_OK;
    if (f->revision != NULL && !is_component(f->revision))
        return hn_fail(f->err, HUNCH_REFUSED, "%s: revision \"%s\": expected letters, digits, . _ -", f->name,
                       f->revision);
    hunch_status status = snapshot_find(f, entry->path, &folder);
    if (!status)
        status = snapshot_take(f, folder);
    hn_free(folder);
    return status;
}

/* ---- Ollama ------------------------------------------------------------------------------------------------------- */

static bool is_digest(const char *s) {
    static const char prefix[] = "sha256";
    const char *hex = s + sizeof prefix; /* after : or - */
    return strlen(s) == sizeof prefix + 64 && strncmp(s, prefix, sizeof prefix - 1) == 0 &&
           (hex[-1] == ':' || hex[-1] == '-') && strspn(hex, "0123456789abcdef") == 64;
}

/* The digest of the model among a manifest's layers; NULL: none. */
static const char *model_layer(const json_t *manifest) {
    const json_t *layer;
    size_t i;
    json_array_foreach (json_object_get(manifest, "layers"), i, layer) {
        const char *type = json_string_value(json_object_get(layer, "mediaType"));
        const char *digest = json_string_value(json_object_get(layer, "digest"));
        if (type && digest && strcmp(type, "application/vnd.ollama.image.model") == 0)
            return digest;
    }
    return NULL;
}

static hunch_status blob_add(finder *f, const hn_cached *entry, const char *digest) {
    char name[80];
    snprintf(name, sizeof name, "sha256-%s", digest + 7);
    char *path = hn_path_join(entry->folder, name);
    bool is_file = true;
    hunch_status status = path ? hn_file_probe(path, &is_file, f->err) : HUNCH_OK; /* path_add reports that there is no memory */
    if (!is_file && !status)
        status = hn_fail(f->err, HUNCH_REFUSED, "%s: %s names %s, which is not there", f->name, entry->path, path);
    if (!status)
        return path_add(f, path);
    hn_free(path);
    return status;
}

static hunch_status ollama_take(finder *f, const hn_cached *entry) {
    char wanted[NAME_MAX_BYTES + 20];
    snprintf(wanted, sizeof wanted, "%s:%s", f->base, f->choice ? f->choice : "latest");
    const char *space = strchr(entry->name, '/') + 1;
    if (f->revision != NULL || (!same(f, entry->name, wanted) && !same(f, space, wanted) &&
                                !same(f, hn_cached_name(entry), wanted)))
        return HUNCH_OK;
    char *text;
    size_t len, held = 0; /* no other document is in memory */
    json_error_t why;
    hunch_status status = hn_file_read(entry->path, MANIFEST_MAX, &text, &len, f->err);
    if (status)
        return status;
    json_t *manifest = hn_json_parse(text, len, &held, &why);
    const char *digest = model_layer(manifest);
    if (digest == NULL)
        status = hn_fail(f->err, HUNCH_REFUSED, "%s: %s names no model%s%s", f->name, entry->path, manifest ? "" : ": ",
                         manifest ? "" : why.text);
    else if (!is_digest(digest))
        status = hn_fail(f->err, HUNCH_REFUSED, "%s: %s: a digest is not sha256: and 64 hexadecimal digits", f->name,
                         entry->path);
    else
        status = blob_add(f, entry, digest);
    json_decref(manifest);
    hn_free(text);
    return status;
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

/* llama.cpp saves a file of org/name as "org_name_FILE.gguf". */
static bool is_fetched(const finder *f, const char *file) {
    char prefix[NAME_MAX_BYTES + 2];
    snprintf(prefix, sizeof prefix, "%s_", f->base);
    char *slash = strchr(prefix, '/');
    if (slash == NULL || f->revision != NULL)
        return false;
    *slash = '_';
    size_t n = strlen(prefix);
    if ((f->any_case ? strncasecmp(file, prefix, n) : strncmp(file, prefix, n)) != 0)
        return false;
    return f->choice == NULL ? !is_projector(file + n)
                             : equals_stem(f, file + n, f->choice) || holds_part(file + n, f->choice);
}

static hunch_status file_take(finder *f, const hn_cached *entry) {
    bool is = equals_stem(f, entry->name, f->name) || (!is_later_part(entry->name) && is_fetched(f, entry->name));
    return is ? path_add(f, hn_strdup(entry->path)) : HUNCH_OK;
}

/* ---- the search --------------------------------------------------------------------------------------------------- */

static hunch_status search(finder *f, const hn_caches *c) {
    static hunch_status (*const take[])(finder *f, const hn_cached *entry) = {
        [HN_CACHED_HF] = hf_take, [HN_CACHED_OLLAMA] = ollama_take, [HN_CACHED_FILE] = file_take};
    hunch_status status = HUNCH_OK;
    for (int pass = 0; pass < 2 && f->n == 0 && !status; pass++) {
        f->any_case = pass == 1;
        for (size_t i = 0; i < c->n && !status; i++)
            status = take[c->items[i].kind](f, &c->items[i]);
    }
    return status;
}

/* Lists the downloads with a similar name. */
static void similar_list(const finder *f, const hn_caches *c, char *out, size_t size) {
    hn_near near = {.wanted = f->name};
    for (size_t i = 0; i < c->n; i++)
        hn_near_add(&near, hn_cached_name(&c->items[i]));
    out[0] = '\0';
    for (size_t i = 0; i < near.n; i++)
        list_put(out, size, near.best[i].name);
}

/* Length of the common prefix of all paths, up to a slash. */
static size_t common_folder(const finder *f) {
    size_t n = strlen(f->paths[0]);
    for (size_t i = 1; i < f->n; i++)
        for (size_t k = 0; k < n; k++)
            if (f->paths[i][k] != f->paths[0][k])
                n = k;
    while (n > 0 && f->paths[0][n - 1] != '/')
        n--;
    return n;
}

static hunch_status fail_several(const finder *f) {
    char list[500] = "";
    size_t n = common_folder(f);
    for (size_t i = 0; i < f->n; i++)
        list_put(list, sizeof list, f->paths[i] + n);
    bool colon = f->choice == NULL && strchr(f->base, '/') != NULL;
    return hn_fail(
        f->err, HUNCH_REFUSED, "%.100s: several models have this name: %s in %.*s; expected the path of one%s", f->name,
        list, (int)n, f->paths[0], colon ? ", or a part of its file name after a colon, as in org/name:Q4_K_M" : "");
}

/* The error if nothing has the name. If a similar path exists, it is suggested, and the searched folders are not listed. */
static hunch_status fail_absent(const char *name, const char *searched, const char *downloads, hunch_error *err) {
    char near[300];
    bool is_file;
    hunch_status unknown = hn_file_probe(name, &is_file, err);
    if (unknown != HUNCH_OK)
        return unknown;
    if (hn_near_path(name, near, sizeof near))
        return hn_fail(err, HUNCH_REFUSED, "%.200s: no such file or folder%s, did you mean %s?%s%s", name,
                       searched ? ", and no download of that name" : "", near,
                       *downloads ? " Similar downloads: " : "", downloads);
    if (!searched)
        return hn_fail(err, HUNCH_REFUSED,
                       "%.200s: no such file or folder, expected a GGUF file, a Hugging Face folder or the name of "
                       "a download",
                       name);
    return hn_fail(
        err, HUNCH_REFUSED,
        "%.200s: no such file or folder, and no download of that name in %s%s%s; expected a GGUF file, a Hugging "
        "Face folder or the name of a download",
        name, *searched ? searched : "any cache", *downloads ? "; similar names: " : "", downloads);
}

static hunch_status result_take(finder *f, const hn_caches *c, char **out) {
    char list[400] = "";
    if (f->n > 1)
        return fail_several(f);
    if (f->n == 1) {
        *out = f->paths[0];
        f->paths[0] = NULL;
        return HUNCH_OK;
    }
    similar_list(f, c, list, sizeof list);
    return fail_absent(f->name, c->searched, list, f->err);
}

/* Splits the name at @ and :. These may occur in a file's own name, as files are compared by the whole name. */
static bool parts_split(finder *f) {
    f->base = hn_strdup(f->name);
    if (f->base == NULL)
        return false;
    char *colon = strrchr(f->base, ':'), *at = strchr(f->base, '@');
    if (colon != NULL && strchr(colon, '/') == NULL) {
        *colon = '\0';
        f->choice = colon + 1;
    }
    if (at != NULL && (colon == NULL || at < colon)) {
        *at = '\0';
        f->revision = at + 1;
    }
    return true;
}

/* True if it may be the name of a download: not a path relative to here, to the root or to ~. */
static bool is_name(const char *s) {
    if (*s == '\0' || *s == '/' || *s == '.' || *s == '~' || strlen(s) > NAME_MAX_BYTES || strstr(s, "/../") != NULL)
        return false;
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return false;
    return true;
}

/* Refuses an existing path of one file of a Hugging Face folder, and a folder of GGUF files. */
static hunch_status path_check(const char *path, hunch_error *err) {
    static const char *const parts[] = {
        ".safetensors", ".safetensors.index.json", "/pytorch_model.bin", ".bin.index.json", ".pt", ".pth",
        "/config.json", "/tokenizer.json"};
    snapshot s = {.f = &(finder){.err = err, .choice = ""}, .whole = true};
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) : 0;
    const char *root = slash ? "/" : ".";
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !hn_is_folder(path); i++)
        if (hn_ends_with(path, parts[i]))
            return hn_fail(err, HUNCH_REFUSED,
                           "%.300s is one file of a Hugging Face folder; expected the folder itself: %.*s", path,
                           folder ? folder : 1, folder ? path : root);
    if (!hn_is_folder(path) || hn_folder_holds(path, "config.json"))
        return HUNCH_OK;
    hunch_status status = hn_folder_each(path, snapshot_file, &s, err);
    if (!status && s.seen[0])
        status = hn_fail(err, HUNCH_REFUSED, "%.300s: a folder without config.json; expected one of its GGUF files: %s",
                         path, s.seen);
    return status;
}

hunch_status hn_model_find(char **path, const char *name, hunch_error *err) {
    finder f = {.name = name, .err = err};
    hn_caches c;
    *path = NULL;
    if (hn_exists(name)) {
        hunch_status status = path_check(name, err);
        if (!status && (*path = hn_strdup(name)) == NULL)
            status = hn_fail_memory(err, "a path", strlen(name));
        return status;
    }
    if (!is_name(name))
        return fail_absent(name, NULL, "", err);
    if (!parts_split(&f))
        return hn_fail_memory(err, "a name", strlen(name));
    hunch_status status = hn_caches_list(&c, err);
    if (!status)
        status = search(&f, &c);
    if (!status)
        status = result_take(&f, &c, path);
    for (size_t i = 0; i < f.n; i++)
        hn_free(f.paths[i]);
    hn_free(f.paths);
    hn_free(f.base);
    hn_caches_fini(&c);
    return status;
}
