/* SPDX-License-Identifier: Apache-2.0 */
/* file_tree_for_tests.h - a small tree of files in a temporary folder, like the kernel's files of limits. Include after cmocka;
 * setup: tree_make, teardown: tree_remove. */
#ifndef HN_FILE_TREE_FOR_TESTS_H
#define HN_FILE_TREE_FOR_TESTS_H
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree_root[] = "/tmp/hunch_tree_test.XXXXXX";

static inline void tree_path(char out[256], const char *name) {
    snprintf(out, 256, "%s/%s", tree_root, name);
}

static inline void tree_folder(const char *name) {
    char path[256];
    tree_path(path, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static inline void tree_put(const char *name, const char *text) {
    char path[256];
    tree_path(path, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* A line in the format of /proc/self/mountinfo: the group `root` of a hierarchy is mounted in a folder of the tree. */
static inline void tree_mount(char *line, size_t size, const char *root, const char *point, const char *type,
                              const char *options) {
    char path[256];
    tree_path(path, point);
    snprintf(line, size, "31 23 0:28 %s %s rw,nosuid - %s none rw,%s\n", root, path, type, options);
}

static inline int tree_make(void **state) {
    (void)state;
    return mkdtemp(tree_root) ? 0 : -1;
}

static inline int tree_drop(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline int tree_remove(void **state) {
    (void)state;
    return nftw(tree_root, tree_drop, 8, FTW_DEPTH | FTW_PHYS);
}
#endif
