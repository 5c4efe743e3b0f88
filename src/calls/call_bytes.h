/* SPDX-License-Identifier: Apache-2.0 */
/* call_bytes.h - bytes that grow. */
#ifndef HN_CALL_BYTES_H
#define HN_CALL_BYTES_H
#include <string.h>
#include "base/mem.h"

typedef struct hn_bytes {
    char *at; /* NUL-terminated once there are any */
    size_t n, cap;
} hn_bytes;

/* False: no memory, and nothing changed. */
static inline bool hn_bytes_add(hn_bytes *b, const char *bytes, size_t n) {
    if (n == 0) return true;
    if (!hn_grow((void **)&b->at, &b->cap, b->n + n + 1, 1)) return false;
    memcpy(b->at + b->n, bytes, n);
    b->n += n;
    b->at[b->n] = 0;
    return true;
}
static inline void hn_bytes_free(hn_bytes *b) {
    hn_free(b->at);
    *b = (hn_bytes){0};
}
#endif
