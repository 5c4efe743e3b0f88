/* SPDX-License-Identifier: Apache-2.0 */
/* find_near.h - for messages: which names are similar to one that was not found. */
#ifndef HN_FIND_NEAR_H
#define HN_FIND_NEAR_H
#include "base/status.h"

enum { HN_NEAR_SHOWN = 5 };

/* The most similar names so far, best first. Initial value: {.wanted = ...}. */
typedef struct hn_near {
    const char *wanted;
    size_t n;
    struct {
        char name[256];
        size_t distance;
    } best[HN_NEAR_SHOWN + 1]; /* the last is not shown */
} hn_near;

/* Adds a name if it is similar: contains the last component of the wanted name, or differs in a few letters. */
void hn_near_add(hn_near *n, const char *name);
/* The file or folder most similar to a path that does not exist, in the same folder: a GGUF file, or a folder. False: none. */
bool hn_near_path(const char *path, char *out, size_t size);
#endif
