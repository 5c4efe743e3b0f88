/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - for tests that read the checkout itself: its files by name, their text. Fails the running test.
 * The including test selects the files and checks them. */
#ifndef HN_TESTS_TEXT_H
#define HN_TESTS_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/bytes_for_tests.h"

static const char text_root[] = HUNCH_TEST_DATA "/../..";

enum { TEXT_FILES = 20000 };
static char *text_file[TEXT_FILES]; /* paths relative to the root of the checkout */
static int n_text_files;

static inline bool text_ends(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static inline bool text_starts(const char *s, const char *start) {
    return strncmp(s, start, strlen(start)) == 0;
}

static inline const char *text_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static inline bool text_is_checkout(const char *at) {
    char path[2000];
    snprintf(path, sizeof path, "%s/.git", at);
    return access(path, F_OK) == 0;
}

/* Build folders, git's data and other projects cloned here are not part of the checkout. */
static inline int text_note(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    const char *name = path + at->base;
    if (at->level == 1 && kind == FTW_D && (text_starts(name, "build") || strcmp(name, ".git") == 0 || text_is_checkout(path)))
        return FTW_SKIP_SUBTREE;
    if (kind != FTW_F || n_text_files == TEXT_FILES) return kind == FTW_F ? FTW_STOP : FTW_CONTINUE;
    text_file[n_text_files] = strdup(path + sizeof text_root);
    return text_file[n_text_files++] ? FTW_CONTINUE : FTW_STOP;
}

/* Notes all files of the checkout. */
static inline void text_files_find(void) {
    assert_int_equal(nftw(text_root, text_note, 8, FTW_PHYS | FTW_ACTIONRETVAL), 0);
    assert_true(n_text_files > 100);
}

static inline void text_files_forget(void) {
    while (n_text_files > 0) free(text_file[--n_text_files]);
}

static inline bool text_is_there(const char *path) {
    char full[2000];
    snprintf(full, sizeof full, "%s/%s", text_root, path);
    return access(full, F_OK) == 0;
}

/* The text of a file of the checkout, to be freed; NULL if it does not exist. */
static inline char *text_read(const char *path) {
    char full[2000];
    snprintf(full, sizeof full, "%s/%s", text_root, path);
    if (!test_file_exists(full)) return NULL;
    bytes b = test_file_read(full);
    bytes_number(&b, 0, 1); /* a NUL after it */
    return (char *)b.at;
}

#endif
