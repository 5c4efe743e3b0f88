/* SPDX-License-Identifier: Apache-2.0 */
/* program_files.c - see program_files.h. */
#include "engine/program_files.h"

#include "format/find_caches.h"
#include "format/source.h"

hunch_status hn_model_files(const char *path, void (*each)(void *user, const char *file), void *user, hunch_error *err) {
    hn_source *src;
    hunch_status st = hn_source_open_head(&src, path, err); /* accepts all that a model may be, and less */
    if (!st) st = hn_source_files(src, each, user, err);
    hn_source_close(&src);
    return st;
}

hunch_status hn_downloads(void (*each)(void *user, const char *name), void *user, hunch_error *err) {
    hn_caches c;
    const hunch_status st = hn_caches_list(&c, err);
    for (size_t i = 0; !st && i < c.n; i++) each(user, hn_cached_name(&c.items[i]));
    if (!st) hn_caches_fini(&c);
    return st;
}
