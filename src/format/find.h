/* SPDX-License-Identifier: Apache-2.0 */
/* find.h - models by name: finds the path of a download by the name that a user gives.
 *
 *   org/name                 a repository in Hugging Face's cache: its folder, or its one GGUF file
 *   org/name@revision        a branch, a tag or (the beginning of) a commit of it; default main
 *   org/name:Q4_K_M          its GGUF file whose name contains that part, or is that name
 *   name:tag, space/name:tag a model of Ollama's; default tag latest
 *   file, file.gguf          a file in the folders of hunch and llama.cpp (there also as org/name:Q4_K_M)
 */
#ifndef HN_FIND_H
#define HN_FIND_H
#include "base/status.h"

/* *path: hn_free. A path that exists is returned unchanged, whatever the caches contain.
 * HUNCH_REFUSED: nothing has that name (the error lists the searched folders and similar names), several downloads have it, or
 * the download is damaged; HUNCH_NO_MEMORY. */
hunch_status hn_model_find(char **path, const char *name, hunch_error *err);
#endif
