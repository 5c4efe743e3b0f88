/* SPDX-License-Identifier: Apache-2.0 */
/* find_caches.h - lists the models in the download folders of several tools. Nothing here reads a model.
 *
 *   Hugging Face  HUB/models--ORG--NAME/{refs/REVISION, snapshots/HASH/FILES}    an entry for each repository: "ORG/NAME"
 *   Ollama        MODELS/{manifests/HOST/NAMESPACE/NAME/TAG, blobs/sha256-HEX}   for each manifest: "HOST/NAMESPACE/NAME:TAG"
 *   llama.cpp, hunch: a folder of GGUF files                                     for each file: "FILE.gguf"
 */
#ifndef HN_FIND_CACHES_H
#define HN_FIND_CACHES_H
#include "base/status.h"

typedef enum hn_cached_kind { HN_CACHED_HF, HN_CACHED_OLLAMA, HN_CACHED_FILE } hn_cached_kind;

typedef struct hn_cached {
    hn_cached_kind kind;
    char *name;
    char *path;   /* the repository's folder, the manifest, the file */
    char *folder; /* OLLAMA: folder of the blobs; else NULL */
} hn_cached;

typedef struct hn_caches {
    hn_cached *items; /* in the order of their names */
    size_t n, cap;
    char searched[300]; /* the folders, for messages */
} hn_caches;

/* The usual name: Ollama's without host, and without the namespace of its own library. Owned by the entry. */
const char *hn_cached_name(const hn_cached *entry);

/* Lists all caches, without duplicates; missing folders are empty. Errors: HUNCH_NO_MEMORY. */
hunch_status hn_caches_list(hn_caches *out, hunch_error *err);
void hn_caches_fini(hn_caches *c);

/* Calls each for the names in a folder, sorted, except those that begin with a dot. Stops at the first status that is not
 * HUNCH_OK and returns it. At most HN_FOLDER_MAX names are read; a missing folder has none. */
enum { HN_FOLDER_MAX = 10000 };
hunch_status hn_folder_each(const char *folder, hunch_status (*each)(void *user, const char *folder, const char *name),
                            void *user, hunch_error *err);
/* True if text ends with end, without regard to the case of ASCII letters. */
bool hn_ends_with(const char *text, const char *end);
#endif
