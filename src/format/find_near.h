/* SPDX-License-Identifier: Apache-2.0 */
/* find_near.h - for messages: which names come near to one that nothing has. */
#ifndef HN_FIND_NEAR_H
#define HN_FIND_NEAR_H
#include "base/status.h"

enum { HN_NEAR_SHOWN = 5 };

/* The best so far, the nearest first. Begins as {.wanted = ...}. */
typedef struct hn_near {
    const char *wanted;
    size_t n;
    struct {
        char name[256];
        size_t far;
    } best[HN_NEAR_SHOWN + 1]; /* the last is out of the race */
} hn_near;

/* Near is a name that holds what was wanted (its last component), or is a few letters away from it. */
void hn_near_add(hn_near *n, const char *name);
/* The file or folder that a path may have meant, as a path in the same folder: a GGUF file, or a folder. false: none. */
bool hn_near_path(const char *path, char *out, size_t size);
#endif
