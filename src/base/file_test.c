/* SPDX-License-Identifier: Apache-2.0 */
/* file_test.c - whole and mapped reads, and one clear line for everything that is not a readable file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"

static char folder[] = "/tmp/hunch_file_test.XXXXXX";
static char full[64], empty[64], fifo[64];
static const char content[] = "one line\nanother\0and a NUL";

static void file_write(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(full, sizeof full, "%s/full", folder);
    snprintf(empty, sizeof empty, "%s/empty", folder);
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    file_write(full, content, sizeof content);
    file_write(empty, "", 0);
    return mkfifo(fifo, 0600);
}

static int teardown(void **state) {
    (void)state;
    return unlink(full) | unlink(empty) | unlink(fifo) | rmdir(folder);
}

static void test_map(void **state) {
    (void)state;
    hn_map m;
    assert_int_equal(hn_map_open(&m, full, NULL), HUNCH_OK);
    assert_int_equal(m.size, sizeof content);
    assert_memory_equal(m.data, content, sizeof content);
    hn_map_release(&m, 0, SIZE_MAX);
    hn_map_release(&m, m.size + 1, 5);
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

/* Every read fails once, every allocation fails once: an error each time, then success. */
static void test_failures(void **state) {
    (void)state;
    static const hunch_status expected[] = {[HN_FAULT_ALLOC] = HUNCH_NO_MEMORY, [HN_FAULT_READ] = HUNCH_FAILED};
    for (int kind = 0; kind < HN_FAULT_KINDS; kind++) {
        int failed = 0;
        for (int n = 0;; n++) {
            char *data;
            size_t size;
            hunch_error err;
            hn_fault_arm((enum hn_fault_kind)kind, n, false);
            hunch_status status = hn_file_read(full, 100, &data, &size, &err);
            hn_fault_arm((enum hn_fault_kind)kind, -1, false);
            hn_free(data);
            if (status == HUNCH_OK) break;
            assert_int_equal(status, expected[kind]);
            assert_non_null(strstr(err.message, full));
            failed++;
        }
        assert_int_equal(failed, kind == HN_FAULT_READ ? 2 : 1);
    }
    hn_map m;
    hn_fault_arm(HN_FAULT_READ, 0, false);
    hunch_status status = hn_map_open(&m, full, NULL);
    hn_fault_arm(HN_FAULT_READ, -1, false);
    assert_int_equal(status, HUNCH_FAILED);
    assert_null(m.data);
}

static void test_kinds_and_joins(void **state) {
    (void)state;
    assert_true(hn_is_folder(folder) && !hn_is_folder(full) && !hn_is_folder("/no/such"));
    assert_true(hn_is_file(full) && !hn_is_file(folder) && !hn_is_file(fifo) && !hn_is_file("/no/such"));
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
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_kinds_and_joins),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
