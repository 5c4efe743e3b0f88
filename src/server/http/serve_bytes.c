/* SPDX-License-Identifier: Apache-2.0 */
/* serve_bytes.c - see serve_bytes.h. */
#include "server/http/serve_bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "hunch/hunch.h"

static _Noreturn void out_of_memory(void) {
    static const char line[] = "hunch: out of memory\n";
    const ssize_t written = write(STDERR_FILENO, line, sizeof line - 1);
    _exit(written < 0 ? HUNCH_FAILED : HUNCH_NO_MEMORY);
}

void *serve_alloc(size_t count, size_t size) {
    void *p = hn_zalloc(count, size);
    if (!p) out_of_memory();
    return p;
}

void *serve_json_alloc(size_t size) {
    void *p = malloc(size);
    if (!p) out_of_memory();
    return p;
}

char *serve_json_dump(const json_t *value, size_t flags) {
    char *text = value ? hn_json_dump(value, flags) : NULL;
    if (value && !text) out_of_memory();
    return text;
}

bool serve_bytes_add(serve_bytes *b, const void *data, size_t n) {
    size_t need;
    if (n == 0) return true;
    if (!hn_add_size(b->n, n, &need) || !hn_grow((void **)&b->at, &b->cap, need, 1)) return false;
    memcpy(b->at + b->n, data, n);
    b->n += n;
    return true;
}

void serve_bytes_join(serve_bytes *b, const void *data, size_t n) {
    if (!serve_bytes_add(b, data, n)) out_of_memory();
}

void serve_bytes_put(serve_bytes *b, const char *text) {
    serve_bytes_join(b, text, strlen(text));
}

void serve_bytes_print(serve_bytes *b, const char *fmt, ...) {
    char small[512];
    va_list list;
    va_start(list, fmt);
    const int n = vsnprintf(small, sizeof small, fmt, list);
    va_end(list);
    if (n < 0 || !serve_bytes_add(b, small, (size_t)n < sizeof small ? (size_t)n : sizeof small - 1)) out_of_memory();
}

void serve_bytes_free(serve_bytes *b) {
    hn_free(b->at);
    *b = (serve_bytes){0};
}
