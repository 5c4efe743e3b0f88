/* SPDX-License-Identifier: Apache-2.0 */
/* target_name.h - how the config.json of a saved head names the model that it drafts for: speculators and vLLM open that model by it. */
#ifndef HN_TARGET_NAME_H
#define HN_TARGET_NAME_H
#include <jansson.h>

#include "base/status.h"

typedef struct hn_target_name {
    char *name;            /* a folder, or an id of a model hub */
    json_t *architectures; /* the classes of transformers that its config.json lists; empty for a GGUF, which names none */
} hn_target_name;

/* path: of the model, or the name of a download. given: its name for others; NULL: the model's folder or file, from the root. Errors of
 * opening the model. */
hunch_status hn_target_name_read(hn_target_name *n, const char *path, const char *given, hunch_error *err);
void hn_target_name_free(hn_target_name *n); /* zeroed is fine */
#endif
