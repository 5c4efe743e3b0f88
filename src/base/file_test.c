/* SPDX-License-Identifier: Apache-2.0 */
/* file_test.c - whole and mapped reads, a clear error for everything that is not a readable file or changes while it is read,
 * and writing completely or not at all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/mem.h"

static char folder[] = "/tmp/hunch_file_test.XXXXXX";
static char full[64], empty[64], fifo[64];
static const char content[] = "one line\nanother\0and a NUL";

static void file_put(const char *path, const void *data, size_t size, const char *mode) {
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(full, sizeof full, "%s/full", folder);
    snprintf(empty, sizeof empty, "%s/empty", folder);
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    file_put(full, content, sizeof content, "wb");
    file_put(empty, "", 0, "wb");
    return mkfifo(fifo, 0600);
}

static int teardown(void **state) {
    (void)state;
    char line[100];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

static void test_map(void **state) {
    (void)state;
    hn_map m;
    assert_int_equal(hn_map_open(&m, full, NULL), HUNCH_OK);
    assert_int_equal(m.size, sizeof content);
    assert_memory_equal(m.data, content, sizeof content);
    hn_map_drop_head(&m); /* nothing is held */
    assert_memory_equal(m.data, content, sizeof content);
    hn_map_close(&m);
    assert_null(m.data);
    hn_map_close(&m);
    assert_int_equal(hn_map_open(&m, empty, NULL), HUNCH_OK);
    assert_true(m.data == NULL && m.size == 0);
    hn_map_close(&m);
}

static void test_read(void **state) {
    (void)state;
    char *data;
    size_t size;
    assert_int_equal(hn_file_read(full, sizeof content, &data, &size, NULL), HUNCH_OK);
    assert_int_equal(size, sizeof content);
    assert_memory_equal(data, content, sizeof content);
    assert_int_equal(data[size], 0);
    hn_free(data);
    assert_int_equal(hn_file_read(empty, 0, &data, &size, NULL), HUNCH_OK);
    assert_true(size == 0 && data[0] == '\0');
    hn_free(data);
}

static void refused(const char *path, size_t max, const char *words) {
    hunch_error err = {0};
    char *data;
    size_t size;
    assert_int_equal(hn_file_read(path, max, &data, &size, &err), max < 100 ? HUNCH_REFUSED : HUNCH_FAILED);
    assert_true(data == NULL && size == 0);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, words));
    if (max < 100) return;
    hn_map m;
    hn_error_clear(&err);
    assert_int_equal(hn_map_open(&m, path, &err), HUNCH_FAILED);
    assert_null(m.data);
    assert_non_null(strstr(err.message, words));
}

static void test_refusals(void **state) {
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/missing", folder);
    refused(path, 100, ": no such file");
    snprintf(path, sizeof path, "%s/below", full);
    refused(path, 100, ": no such file");
    refused(folder, 100, ": is a folder, expected a file");
    refused(fifo, 100, ": is not a regular file");
    refused(full, sizeof content - 1, "expected at most");
}

enum { LARGE = 300001 };

static char *large_file(const char *path) {
    char *data = malloc(LARGE);
    assert_non_null(data);
    for (int i = 0; i < LARGE; i++) data[i] = (char)(i * 31 >> 3);
    file_put(path, data, LARGE, "wb");
    return data;
}

/* Copies stay when the file is truncated; the rest gives errors, by hn_map_read and by hn_map_check. */
static void test_cut_short(void **state) {
    (void)state;
    char path[128], bytes[100];
    snprintf(path, sizeof path, "%s/large", folder);
    char *data = large_file(path);
    hn_map m;
    hunch_error err = {0};
    assert_int_equal(hn_map_open(&m, path, &err), HUNCH_OK);
    for (size_t n = 1; n < 150000; n += n / 2 + 1) assert_int_equal(hn_map_copy_head(&m, path, n, &err), HUNCH_OK);
    assert_true(m.held >= 100000 && m.held < LARGE);
    assert_int_equal(hn_map_check(&m, path, &err), HUNCH_OK);
    assert_int_equal(hn_map_copy_head(&m, path, LARGE + 1, &err), HUNCH_FAILED);
    const size_t held = m.held;
    assert_int_equal(truncate(path, 5000), 0);
    assert_memory_equal(m.data, data, held);
    assert_int_equal(hn_map_read(&m, path, 4950, 100, bytes, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "cut short"));
    assert_int_equal(hn_map_read(&m, path, 4900, 100, bytes, &err), HUNCH_OK);
    assert_memory_equal(bytes, data + 4900, 100);
    assert_int_equal(hn_map_check(&m, path, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "it has 5000 bytes now, 300001 when it was opened"));
    assert_int_equal(hn_map_copy_head(&m, path, LARGE, &err), HUNCH_FAILED);
    file_put(path, data, LARGE, "wb");
    hn_map_drop_head(&m);
    assert_int_equal(m.held, 0);
    assert_memory_equal(m.data, data, LARGE); /* the file again */
    hn_map_close(&m);
    free(data);
}

/* A write to the file, however small, is detected; another file of its name does not matter. */
static void test_identity(void **state) {
    (void)state;
    char path[128], other[128], bytes[10];
    snprintf(path, sizeof path, "%s/one", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    file_put(path, content, sizeof content, "wb");
    file_put(other, "other", 5, "wb");
    hn_map m;
    hunch_error err = {0};
    assert_int_equal(hn_map_open(&m, path, &err), HUNCH_OK);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(hn_map_check(&m, path, &err), HUNCH_OK);
    assert_int_equal(hn_map_read(&m, path, 0, 10, bytes, &err), HUNCH_OK);
    assert_memory_equal(bytes, content, 10);
    hn_map_close(&m);
    assert_int_equal(hn_map_open(&m, path, &err), HUNCH_OK);
    const struct timespec later[2] = {{.tv_nsec = UTIME_OMIT},
                                      {m.changed.tv_sec, (m.changed.tv_nsec + 1) % 1000000000}};
    file_put(path, "OTHER", 5, "r+b");
    assert_int_equal(utimensat(AT_FDCWD, path, later, 0), 0); /* clocks of file systems are coarse */
    assert_int_equal(hn_map_check(&m, path, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "one: was written to while it is in use"));
    hn_map_close(&m);
    hn_map_close(&m); /* zeroed */
    assert_int_equal(hn_map_check(&m, path, &err), HUNCH_OK);
}

static hunch_status read_once(void *user, hunch_error *err) {
    char *data, *want = user;
    size_t size;
    hunch_status st = hn_file_read(full, 100, &data, &size, err);
    if (!st) assert_memory_equal(data, want, size);
    hn_free(data);
    return st;
}

static hunch_status map_once(void *user, hunch_error *err) {
    hn_map m;
    char bytes[8];
    hunch_status st = hn_map_open(&m, full, err);
    if (!st) st = hn_map_copy_head(&m, full, 3, err);
    if (!st) assert_memory_equal(m.data, user, m.size);
    if (!st) st = hn_map_read(&m, full, 2, sizeof bytes, bytes, err);
    if (!st) assert_memory_equal(bytes, (char *)user + 2, sizeof bytes);
    if (!st) st = hn_map_check(&m, full, err);
    hn_map_close(&m);
    return st;
}

/* The old file is there until the new one is complete, and nothing else. */
static hunch_status write_once_as(bool shared, hunch_error *err) {
    char path[128], partial[140];
    snprintf(path, sizeof path, "%s/written", folder);
    snprintf(partial, sizeof partial, "%s.partial", path);
    char *data = large_file(path), *got;
    size_t size;
    hn_out *o;
    data[7]++;
    hunch_status st = hn_out_open(&o, path, shared, err);
    for (size_t at = 0, n = 1; !st && at < LARGE; at += n, n = 2 * n < LARGE - at ? 2 * n : LARGE - at)
        st = hn_out_write(o, data + at, n, err);
    if (!st)
        st = hn_out_finish(&o, err);
    else
        hn_out_abort(&o);
    assert_null(o);
    if (st) data[7]--;
    for (int kind = 0; kind < HN_FAULT_KINDS; kind++) hn_fault_arm((enum hn_fault_kind)kind, -1, false);
    assert_int_equal(hn_file_read(path, LARGE, &got, &size, NULL), HUNCH_OK);
    assert_int_equal(size, LARGE);
    assert_memory_equal(got, data, LARGE);
    assert_false(hn_exists(partial));
    hn_free(got);
    free(data);
    return st;
}

static hunch_status write_once(void *user, hunch_error *err) {
    (void)user;
    return write_once_as(false, err);
}

static hunch_status write_shared(void *user, hunch_error *err) {
    (void)user;
    return write_once_as(true, err);
}

/* Makes every step fail once: each gives an error that names the file. Then success. Returns the number of steps. */
static int fail_each(hunch_status (*action)(void *user, hunch_error *err), enum hn_fault_kind kind,
                     hunch_status expected) {
    static char text[sizeof content];
    memcpy(text, content, sizeof text);
    for (int n = 0;; n++) {
        hunch_error err = {0};
        hn_fault_arm(kind, n, false);
        const hunch_status status = action(text, &err);
        hn_fault_arm(kind, -1, false);
        if (status == HUNCH_OK) return n;
        assert_int_equal(status, expected);
        assert_non_null(strstr(err.message, folder));
    }
}

static void test_failures(void **state) {
    (void)state;
    assert_int_equal(fail_each(read_once, HN_FAULT_ALLOC, HUNCH_NO_MEMORY), 1);
    assert_int_equal(fail_each(read_once, HN_FAULT_READ, HUNCH_FAILED), 2);
    assert_int_equal(fail_each(map_once, HN_FAULT_ALLOC, HUNCH_NO_MEMORY), 2);
    assert_int_equal(fail_each(map_once, HN_FAULT_READ, HUNCH_FAILED), 4);
    assert_int_equal(fail_each(write_once, HN_FAULT_ALLOC, HUNCH_NO_MEMORY), 3);
    assert_true(fail_each(write_once, HN_FAULT_WRITE, HUNCH_FAILED) >= 6); /* create, write, flush, close, rename */
    assert_true(fail_each(write_shared, HN_FAULT_WRITE, HUNCH_FAILED) >= 6);
    int left = 0; /* not a file of another name */
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) left += strncmp(e->d_name, "written", 7) == 0;
    closedir(d);
    assert_int_equal(left, 1);
}

/* Calls that are interrupted or partial, again and again: nothing is lost and no error is reported. */
static void test_short(void **state) {
    (void)state;
    hunch_status (*const all[])(void *user, hunch_error *err) = {read_once, map_once, write_once};
    static char text[sizeof content];
    memcpy(text, content, sizeof text);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        hunch_error err = {0};
        hn_fault_arm(HN_FAULT_SHORT, 0, true);
        assert_int_equal(all[i](text, &err), HUNCH_OK);
        assert_true(hn_fault_count(HN_FAULT_SHORT) > 3);
        hn_fault_arm(HN_FAULT_SHORT, -1, false);
    }
}

static void test_kinds_and_joins(void **state) {
    (void)state;
    assert_true(hn_is_folder(folder) && !hn_is_folder(full) && !hn_is_folder("/no/such"));
    assert_true(hn_is_file(full) && !hn_is_file(folder) && !hn_is_file(fifo) && !hn_is_file("/no/such"));
    char other[600];
    snprintf(other, sizeof other, "%s/../%s", folder, full + 5); /* behind /tmp/ */
    assert_true(hn_same_file(full, other) && !hn_same_file(full, folder) && !hn_same_file("/no/such", "/no/such"));
    static const char *const cases[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
    for (int i = 0; i < 4; i++) {
        char *path = hn_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        hn_free(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_kinds_and_joins),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
