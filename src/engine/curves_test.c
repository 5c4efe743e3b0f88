/* SPDX-License-Identifier: Apache-2.0 */
/* curves_test.c - where an engine keeps its curves: in the user's cache folder, and nowhere if that path is too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/stat.h>

#include "base/file_tree_for_tests.h"
#include "fixture.h"

/* Entries of a folder; -1: there is none. */
static int entries(const char *path) {
    DIR *d = opendir(path);
    int n = 0;
    if (!d) return -1;
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    closedir(d);
    return n;
}

static void open_and_close(void) {
    hunch_model *m =
        open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    hunch_engine *e = open_engine(m, "auto", 1, 64, HUNCH_KV_DEFAULT, 64, 64);
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* A home whose path has `length` bytes. */
static char *home_of(size_t length) {
    static char path[600];
    size_t at = (size_t)snprintf(path, sizeof path, "%s", tree_root);
    while (at < length) {
        const size_t most = length - at > 120 ? 100 : length - at;
        path[at++] = '/';
        for (size_t i = 1; i < most; i++) path[at++] = 'h';
        path[at] = '\0';
        (void)mkdir(path, 0700);
    }
    assert_int_equal(strlen(path), length);
    return path;
}

static void test_long_home(void **state) {
    (void)state;
    char below[700];
    unsetenv("HUNCH_CACHE");
    unsetenv("XDG_CACHE_HOME");
    for (size_t length = 380; length < 405; length++) {
        char *home = home_of(length);
        setenv("HOME", home, 1);
        open_and_close();
        snprintf(below, sizeof below, "%s/.cache/hunch", home);
        const int kept = entries(below);
        if (kept >= 0) { /* the path is short enough */
            assert_int_equal(entries(home), 1);
            assert_int_equal(kept, 1);
        } else
            assert_int_equal(entries(home), 0); /* nothing under a truncated name */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long_home)};
    return cmocka_run_group_tests(tests, tree_make, tree_remove);
}
