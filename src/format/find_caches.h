/* SPDX-License-Identifier: Apache-2.0 */
/* find_caches.h - what lies in the folders where people's tools keep downloaded models. Nothing here reads a model.
 *
 *   Hugging Face  HUB/models--ORG--NAME/{refs/REVISION, snapshots/HASH/FILES}    one entry a repository: "ORG/NAME"
 *   Ollama        MODELS/{manifests/HOST/NAMESPACE/NAME/TAG, blobs/sha256-HEX}   one a manifest: "HOST/NAMESPACE/NAME:TAG"
 *   llama.cpp, hunch: a folder of GGUF files                                     one a file: "FILE.gguf"
 */
#ifndef HN_FIND_CACHES_H
#define HN_FIND_CACHES_H
#include "base/status.h"

typedef enum hn_cached_kind { HN_CACHED_HF, HN_CACHED_OLLAMA, HN_CACHED_FILE } hn_cached_kind;

typedef struct hn_cached {
    hn_cached_kind kind;
    char *name;
    char *path;   /* the repository's folder, the manifest, the file */
    char *folder; /* OLLAMA: where the blobs lie; else NULL */
} hn_cached;

typedef struct hn_caches {
    hn_cached *items; /* in the order of their names */
    size_t n, cap;
    char searched[300]; /* the folders, for messages */
} hn_caches;

/* As people say it: of Ollama's without host, and without the space of the tool's own library. Belongs to the entry. */
const char *hn_cached_name(const hn_cached *entry);

/* Lists all of them, what lies there under one name in several ways once; folders that are not there hold nothing. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_caches_list(hn_caches *out, hunch_error *err);
void hn_caches_fini(hn_caches *c);

/* Calls each for the names in a folder, in order, those that begin with a dot left out. It stops at the first status that is
 * not HUNCH_OK and gives it. At most HN_FOLDER_MAX names are read; no folder: none. */
enum { HN_FOLDER_MAX = 10000 };
hunch_status hn_folder_each(const char *folder, hunch_status (*each)(void *user, const char *folder, const char *name),
                            void *user, hunch_error *err);
/* Whether text ends with end, whatever the case of ASCII letters. */
bool hn_ends_with(const char *text, const char *end);
#endif
