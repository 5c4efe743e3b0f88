/* SPDX-License-Identifier: Apache-2.0 */
/* file_out_test.c - a path has the old file or the whole new one, whatever fails; and what is not a file is not replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/file_tree_for_tests.h"
#include "base/mem.h"

static const char *test_path(const char *name) {
    static char path[4][400];
    static int next;
    char *p = path[next++ & 3];
    snprintf(p, sizeof path[0], "%s/%s", tree_root, name);
    return p;
}

/* Removes the entries of the folder and returns how many there were. */
static int clear_folder(void) {
    DIR *d = opendir(tree_root);
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        n++;
        assert_int_equal(remove(test_path(e->d_name)), 0);
    }
    closedir(d);
    return n;
}

static void write_text(hn_out *o, const char *text) {
    assert_int_equal(hn_out_write(o, text, strlen(text), NULL), HUNCH_OK);
}

static void put(const char *name, const char *text, bool keep, hunch_status want) {
    hn_out *o;
    hunch_error err = {0};
    assert_int_equal(hn_out_open(&o, test_path(name), true, &err), HUNCH_OK);
    hunch_status st = hn_out_write(o, text, strlen(text), &err);
    if (!st && keep) st = hn_out_finish(&o, &err);
    hn_out_abort(&o);
    if (st != want) fail_msg("%s: status %d, '%s'", name, st, err.message);
    if (want) assert_non_null(strstr(err.message, name));
}

static void assert_holds(const char *name, const char *text) {
    char *data;
    size_t size;
    hunch_error err = {0};
    assert_int_equal(hn_file_read(test_path(name), 1 << 20, &data, &size, &err), HUNCH_OK);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(data, text, size);
    hn_free(data);
}

static void test_whole_or_not_at_all(void **state) {
    (void)state;
    hn_out *a, *b;
    put("x", "dropped", false, HUNCH_OK);
    assert_false(hn_exists(test_path("x")));
    put("x", "first", true, HUNCH_OK);
    assert_holds("x", "first");
    put("x", "dropped", false, HUNCH_OK);
    assert_holds("x", "first");
    assert_int_equal(hn_out_open(&a, test_path("x"), true, NULL), HUNCH_OK);
    assert_int_equal(hn_out_open(&b, test_path("x"), true, NULL), HUNCH_OK); /* two at once */
    write_text(a, "from a");
    write_text(b, "from b");
    assert_holds("x", "first");
    assert_int_equal(hn_out_finish(&b, NULL), HUNCH_OK);
    assert_holds("x", "from b");
    assert_int_equal(hn_out_finish(&a, NULL), HUNCH_OK);
    assert_holds("x", "from a");
    assert_int_equal(clear_folder(), 1); /* nothing is left beside it */
}

/* Who comes second does not take what the first still writes, and takes what one left that has gone. */
static void test_one_at_a_time(void **state) {
    (void)state;
    hn_out *a, *b;
    hunch_error err = {0};
    assert_int_equal(hn_out_open(&a, test_path("x"), false, NULL), HUNCH_OK);
    write_text(a, "first");
    assert_int_equal(hn_out_open(&b, test_path("x"), false, &err), HUNCH_FAILED);
    assert_null(b);
    assert_non_null(strstr(err.message, "x" HN_OUT_PARTIAL ": another process is writing it"));
    assert_true(hn_exists(test_path("x" HN_OUT_PARTIAL)));
    assert_int_equal(hn_out_finish(&a, NULL), HUNCH_OK);
    assert_holds("x", "first");
    put("x" HN_OUT_PARTIAL, "a longer text, left there", true, HUNCH_OK);
    assert_int_equal(hn_out_open(&a, test_path("x"), false, NULL), HUNCH_OK);
    write_text(a, "second");
    assert_int_equal(hn_out_finish(&a, NULL), HUNCH_OK);
    assert_holds("x", "second");
    assert_int_equal(clear_folder(), 1);
}

static void test_no_room(void **state) {
    (void)state;
    struct rlimit old, small;
    static char text[20000];
    memset(text, 'x', sizeof text - 1);
    put("x", "before", true, HUNCH_OK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){10000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    put("x", text, true, HUNCH_FAILED);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_holds("x", "before");
    assert_int_equal(clear_folder(), 1);
}

/* One piece after the other; the third fails, at its beginning or half way. */
static void test_pieces(void **state) {
    (void)state;
    for (int failure = 0; failure < 3; failure++) {
        static char large[100000];
        hn_out *o;
        put("x", "before", true, HUNCH_OK);
        assert_int_equal(hn_out_open(&o, test_path("x"), false, NULL), HUNCH_OK);
        write_text(o, "one");
        assert_holds("x", "before");
        assert_true(hn_exists(test_path("x" HN_OUT_PARTIAL)));
        assert_int_equal(hn_out_publish(o, NULL), HUNCH_OK);
        assert_holds("x", "one");
        assert_false(hn_exists(test_path("x" HN_OUT_PARTIAL)));
        write_text(o, ", two");
        assert_int_equal(hn_out_publish(o, NULL), HUNCH_OK);
        assert_holds("x", "one, two");
        if (failure < 2) {
            hunch_error err = {0};
            write_text(o, "thr");
            if (failure == 1) assert_int_equal(hn_out_write(o, large, sizeof large, NULL), HUNCH_OK);
            hn_fault_arm(HN_FAULT_WRITE, 0, false);
            hunch_status st = failure == 1 ? hn_out_write(o, large, sizeof large, &err) : hn_out_publish(o, &err);
            hn_fault_arm(HN_FAULT_WRITE, -1, false);
            assert_int_equal(st, HUNCH_FAILED);
            assert_non_null(strstr(err.message, "x: cannot be written"));
            hn_out_abort(&o);
        } else {
            assert_int_equal(hn_out_finish(&o, NULL), HUNCH_OK);
        }
        assert_holds("x", "one, two");
        assert_int_equal(clear_folder(), 1);
    }
}

/* A file keeps its old contents if it cannot get its name. */
static void test_no_name(void **state) {
    (void)state;
    hn_out *o;
    put("x", "before", true, HUNCH_OK);
    assert_int_equal(hn_out_open(&o, test_path("x"), false, NULL), HUNCH_OK);
    write_text(o, "one");
    hn_fault_arm(HN_FAULT_WRITE, 1, false); /* after the write */
    assert_int_equal(hn_out_publish(o, NULL), HUNCH_FAILED);
    hn_fault_arm(HN_FAULT_WRITE, -1, false);
    hn_out_abort(&o);
    assert_holds("x", "before");
    assert_int_equal(clear_folder(), 1);
}

/* What is open is written where it is, and stays open. */
static void test_descriptor(void **state) {
    (void)state;
    hn_out *o;
    hunch_error err = {0};
    FILE *f = fopen(test_path("x"), "w");
    assert_non_null(f);
    assert_int_equal(hn_out_open_descriptor(&o, fileno(f), "the output", NULL), HUNCH_OK);
    write_text(o, "one");
    assert_int_equal(hn_out_publish(o, NULL), HUNCH_OK);
    assert_holds("x", "one");
    write_text(o, ", two");
    assert_int_equal(hn_out_finish(&o, NULL), HUNCH_OK);
    assert_true(fputs(", three", f) >= 0);
    fclose(f);
    assert_holds("x", "one, two, three");
    assert_int_equal(hn_out_open_descriptor(&o, -1, "the output", &err), HUNCH_FAILED);
    assert_null(o);
    assert_non_null(strstr(err.message, "the output: "));
    for (int after = 0; after < 2; after++) {
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        assert_int_equal(hn_out_open_descriptor(&o, 0, "the output", &err), HUNCH_NO_MEMORY);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_null(o);
    }
    assert_int_equal(clear_folder(), 1);
}

/* A pipe or a device must not be replaced by a file. */
static void test_what_is_no_file(void **state) {
    (void)state;
    hn_out *o;
    hunch_error err = {0};
    assert_int_equal(mkfifo(test_path("pipe"), 0600), 0);
    assert_int_equal(mkdir(test_path("folder"), 0700), 0);
    assert_int_equal(hn_out_open(&o, test_path("pipe"), true, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "regular file"));
    assert_int_equal(hn_out_open(&o, test_path("folder"), true, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "is a folder"));
    assert_int_equal(hn_out_open(&o, test_path("nowhere/x"), true, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "nowhere/x"));
    for (int after = 0; after < 3; after++) {
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        assert_int_equal(hn_out_open(&o, test_path("y"), true, &err), HUNCH_NO_MEMORY);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        assert_null(o);
    }
    assert_int_equal(clear_folder(), 2);
}

/* The link stays, its target is replaced, completely or not at all. */
static void test_link(void **state) {
    (void)state;
    hn_out *o;
    char text[20] = "";
    assert_int_equal(symlink("real", test_path("link")), 0);
    put("link", "dropped", false, HUNCH_OK);
    assert_false(hn_exists(test_path("real")));
    put("link", "first", true, HUNCH_OK); /* there was nothing */
    assert_holds("real", "first");
    assert_int_equal(hn_out_open(&o, test_path("link"), true, NULL), HUNCH_OK);
    write_text(o, "second");
    assert_holds("link", "first");
    assert_int_equal(hn_out_finish(&o, NULL), HUNCH_OK);
    assert_holds("real", "second");
    assert_int_equal(readlink(test_path("link"), text, sizeof text), 4);
    assert_string_equal(text, "real");
    assert_int_equal(clear_folder(), 2);
}

/* What a process has open has no place; it is appended to. */
static void test_open_already(void **state) {
    (void)state;
    hn_out *o;
    char name[40], *place;
    hunch_error err = {0};
    FILE *f = fopen(test_path("x"), "w");
    assert_non_null(f);
    assert_int_equal(fputs("before ", f) >= 0 && fflush(f) == 0, 1);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fileno(f));
    assert_int_equal(symlink(name, test_path("link")), 0);
    assert_int_equal(hn_out_resolve(test_path("link"), &place, NULL), HUNCH_OK);
    assert_null(place);
    assert_int_equal(hn_out_open(&o, test_path("link"), true, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "regular file"));
    assert_int_equal(hn_out_open(&o, test_path("link"), false, NULL), HUNCH_OK);
    write_text(o, "behind");
    assert_int_equal(hn_out_finish(&o, NULL), HUNCH_OK);
    fclose(f);
    assert_holds("x", "before behind");
    assert_int_equal(clear_folder(), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole_or_not_at_all), cmocka_unit_test(test_one_at_a_time),
                                       cmocka_unit_test(test_no_room),
                                       cmocka_unit_test(test_what_is_no_file), cmocka_unit_test(test_link),
                                       cmocka_unit_test(test_open_already), cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_no_name), cmocka_unit_test(test_descriptor)};
    return cmocka_run_group_tests(tests, tree_make, tree_remove);
}
