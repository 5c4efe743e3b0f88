/* SPDX-License-Identifier: Apache-2.0 */
/* find.h - models by name: from what a user calls a download to the path where it lies.
 *
 *   org/name                 a repository in Hugging Face's cache: its folder, or its one GGUF file
 *   org/name@revision        a branch, a tag or (the beginning of) a commit of it; default main
 *   org/name:Q4_K_M          the GGUF file of it whose name holds that part, or is that name
 *   name:tag, space/name:tag a model of Ollama's; default tag latest
 *   file, file.gguf          a file in the folders of hunch and llama.cpp (there also as org/name:Q4_K_M)
 */
#ifndef HN_FIND_H
#define HN_FIND_H
#include "base/status.h"

/* *path: hn_free. A path that exists is taken as it is, whatever the caches hold.
 * HUNCH_REFUSED: nothing has that name (says where it was looked for, and what comes near), several things have it, or what
 * has it is damaged; HUNCH_NO_MEMORY. */
hunch_status hn_model_find(char **path, const char *name, hunch_error *err);
#endif
