/* SPDX-License-Identifier: Apache-2.0 */
/* serve_bytes.h - memory of the server: growing buffers, and small blocks whose lack ends the process. */
#ifndef HN_SERVE_BYTES_H
#define HN_SERVE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json_load.h"

/* For small blocks: zeroed, never NULL; out of memory ends the process with exit code 4. Freed with hn_free. */
void *serve_alloc(size_t count, size_t size);
/* The same for jansson, which would lose data silently: json_set_alloc_funcs(serve_json_alloc, free). */
void *serve_json_alloc(size_t size);
/* hn_json_dump, and as serve_alloc; of NULL it is NULL. */
char *serve_json_dump(const json_t *value, size_t flags);

typedef struct serve_bytes {
    char *at;
    size_t n, cap;
} serve_bytes;
bool serve_bytes_add(serve_bytes *b, const void *data, size_t n); /* false: no memory, nothing changed */
void serve_bytes_join(serve_bytes *b, const void *data, size_t n); /* as serve_alloc: for what nobody would miss else */
void serve_bytes_put(serve_bytes *b, const char *text);            /* the same of a text */
void serve_bytes_print(serve_bytes *b, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* the same, of at most 511 bytes */
void serve_bytes_free(serve_bytes *b);

#endif
