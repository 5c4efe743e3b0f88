/* SPDX-License-Identifier: Apache-2.0 */
/* real_model.h - finds the real models of tests: fetched by scripts, never shipped. A test that cannot find its model
 * reports it and counts as skipped (exit code 77). */
#ifndef HN_TEST_REAL_MODEL_H
#define HN_TEST_REAL_MODEL_H
#include <unistd.h>

#include "fixture.h"

enum { SKIPPED = 77 };

/* The file that the variable names, else this one in the user's cache folder; NULL if it is not there. */
HELPER const char *cached_model(const char *variable, const char *file, const char *script, char path[600]) {
    const char *given = getenv(variable), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool own = cache && *cache;
    if (given && *given)
        snprintf(path, 600, "%s", given);
    else
        snprintf(path, 600, "%s%s/hunch/%s", own ? cache : home ? home : "", own ? "" : "/.cache", file);
    if (access(path, R_OK) == 0) return path;
    fprintf(stderr, "skipped: %s is not there (%s brings it)\n", path, script);
    return NULL;
}
#endif
