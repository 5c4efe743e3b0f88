/* SPDX-License-Identifier: Apache-2.0 */
/* target_name.c - see target_name.h. */
#include "train/learn/target_name.h"

#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/find.h"
#include "format/source.h"

/* The model's path from the root: a head's folder is read from anywhere. */
static hunch_status name_of(char **name, const char *path, hunch_error *err) {
    char full[PATH_MAX], *found;
    const hunch_status st = hn_model_find(&found, path, err);
    if (st) return st;
    *name = hn_strdup(realpath(found, full) ? full : found);
    hn_free(found);
    return *name ? HUNCH_OK : hn_fail_memory(err, path, 1);
}

hunch_status hn_target_name_read(hn_target_name *n, const char *path, const char *given, hunch_error *err) {
    hn_source *src = NULL;
    *n = (hn_target_name){0};
    hunch_status st = hn_source_open(&src, path, err);
    if (st) return st;
    const json_t *listed = hn_source_get_kind(src) == HN_SOURCE_HF ? hn_source_config(src, "architectures") : NULL;
    n->architectures = json_is_array(listed) ? json_deep_copy(listed) : json_array();
    hn_source_close(&src);
    if (!given)
        st = name_of(&n->name, path, err);
    else
        n->name = hn_strdup(given);
    if (!st && (!n->name || !n->architectures)) st = hn_fail_memory(err, "the name of a model", 1);
    if (st) hn_target_name_free(n);
    return st;
}

void hn_target_name_free(hn_target_name *n) {
    hn_free(n->name);
    json_decref(n->architectures);
    *n = (hn_target_name){0};
}
