/* SPDX-License-Identifier: Apache-2.0 */
/* bytes_for_tests.h - for tests of src/format: writes files byte by byte, damages them and opens them again. */
#ifndef HN_BYTES_FOR_TESTS_H
#define HN_BYTES_FOR_TESTS_H
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

typedef struct bytes {
    unsigned char *at;
    size_t size, cap;
} bytes;

static inline void bytes_put(bytes *b, const void *data, size_t n) {
    if (b->size + n > b->cap) {
        b->cap = (b->size + n) * 2;
        b->at = realloc(b->at, b->cap);
        if (b->at == NULL)
            abort();
    }
    if (n > 0)
        memcpy(b->at + b->size, data, n);
    b->size += n;
}

static inline void bytes_number(bytes *b, uint64_t value, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)(value >> 8 * i);
        bytes_put(b, &byte, 1);
    }
}

/* A GGUF string: u64 length, bytes. */
static inline void bytes_text(bytes *b, const char *text) {
    bytes_number(b, strlen(text), 8);
    bytes_put(b, text, strlen(text));
}

static inline void bytes_zeros(bytes *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        bytes_number(b, 0, 1);
}

static inline void bytes_free(bytes *b) {
    free(b->at);
    *b = (bytes){0};
}

static char test_root[256];

static inline int test_entry_remove(const char *path, const struct stat *st HN_UNUSED, int type HN_UNUSED,
                                    struct FTW *at HN_UNUSED) {
    return remove(path);
}

static inline void test_root_remove(void) {
    nftw(test_root, test_entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* A path in a temporary folder of this process, which the first call creates and which is removed at exit. Valid until the
 * eighth call after this one. */
static inline const char *test_path(const char *name) {
    static char paths[8][1200];
    static unsigned turn;
    if (test_root[0] == '\0') {
        const char *base = getenv("TMPDIR");
        snprintf(test_root, sizeof test_root, "%s/hunch-test-XXXXXX",
                 base != NULL && strlen(base) < 200 ? base : "/tmp");
        if (mkdtemp(test_root) == NULL || atexit(test_root_remove) != 0)
            abort();
    }
    char *out = paths[turn++ % 8];
    snprintf(out, sizeof paths[0], "%s/%s", test_root, name);
    return out;
}

/* Creates a new file: some file systems wait for the disk when an old one is truncated and rewritten. */
static inline void test_file_write(const char *path, const void *data, size_t n) {
    unlink(path);
    FILE *f = fopen(path, "wb");
    if (f == NULL || (n > 0 && fwrite(data, 1, n, f) != n) || fclose(f) != 0)
        abort();
}

static inline bytes test_file_read(const char *path) {
    bytes b = {0};
    char block[4096];
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        abort();
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        bytes_put(&b, block, n);
    fclose(f);
    return b;
}

static inline bool test_file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}
#endif
