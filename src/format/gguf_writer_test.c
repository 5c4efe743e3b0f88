/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_writer_test.c - a written file reads back the same, and a failed write leaves no file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>

#include "base/fault.h"
#include "format/bytes_for_tests.h"
#include "format/gguf_writer.h"
#include "format/source.h"

static const float NORM[5] = {1, -2, 0.5f, 3e38f, 0};
static const uint16_t MATRIX[6] = {1, 2, 3, 4, 5, 0xffff};

static hunch_status put_keys(hn_gguf_writer *w, hunch_error *err) {
    static const char *const words[] = {"a", "", "b c"};
    static const size_t lens[] = {1, 0, 3};
    static const int32_t ints[] = {-1, 7};
    static const float floats[] = {0.25f};
    hunch_status status = hn_gguf_put_u32(w, "k.u32", 4000000000u, err);
    if (status == HUNCH_OK)
        status = hn_gguf_put_f32(w, "k.f32", 1e-5f, err);
    if (status == HUNCH_OK)
        status = hn_gguf_put_bool(w, "k.bool", true, err);
    if (status == HUNCH_OK)
        status = hn_gguf_put_str(w, "k.str", "a\0b", 3, err);
    if (status == HUNCH_OK)
        status = hn_gguf_put_strings(w, "k.strings", words, lens, 3, err);
    if (status == HUNCH_OK)
        status = hn_gguf_put_i32s(w, "k.i32s", ints, 2, err);
    if (status == HUNCH_OK)
        status = hn_gguf_put_f32s(w, "k.f32s", floats, 1, err);
    return status;
}

static hunch_status write_file(const char *path, hunch_error *err) {
    static const uint64_t norm_dims[] = {5}, matrix_dims[] = {3, 2};
    hn_gguf_writer *w;
    hunch_status status = hn_gguf_writer_open(&w, path, err);
    if (status == HUNCH_OK)
        status = put_keys(w, err);
    if (status == HUNCH_OK)
        status = hn_gguf_declare(w, "norm", HN_F32, 1, norm_dims, err);
    if (status == HUNCH_OK)
        status = hn_gguf_declare(w, "matrix", HN_BF16, 2, matrix_dims, err);
    if (status == HUNCH_OK)
        status = hn_gguf_data(w, NORM, sizeof NORM, err);
    if (status == HUNCH_OK)
        status = hn_gguf_data(w, MATRIX, sizeof MATRIX, err);
    if (status == HUNCH_OK)
        return hn_gguf_writer_finish(&w, err);
    hn_gguf_writer_abort(&w);
    return status;
}

static void check_keys(const hn_source *s) {
    uint64_t u = 0;
    double f = 0;
    bool b = false, found = false;
    const char *text = NULL;
    size_t len = 0;
    assert_int_equal(hn_source_u64(s, "k.u32", &u, &found, NULL), HUNCH_OK);
    assert_true(found && u == 4000000000u);
    assert_int_equal(hn_source_f64(s, "k.f32", &f, &found, NULL), HUNCH_OK);
    assert_true(found && f == (double)1e-5f);
    assert_int_equal(hn_source_bool(s, "k.bool", &b, &found, NULL), HUNCH_OK);
    assert_true(found && b);
    assert_int_equal(hn_source_str(s, "k.str", &text, &len, &found, NULL), HUNCH_OK);
    assert_int_equal(len, 3);
    assert_memory_equal(text, "a\0b", 4);
    const hn_array *a = NULL;
    assert_int_equal(hn_source_array(s, "k.strings", &a, NULL), HUNCH_OK);
    assert_int_equal(hn_array_count(a), 3);
    assert_memory_equal(hn_array_string(a, 2, &len), "b c", 3);
    assert_int_equal(hn_source_array(s, "k.i32s", &a, NULL), HUNCH_OK);
    assert_true(hn_array_number(a, 0) == -1 && hn_array_number(a, 1) == 7);
    assert_int_equal(hn_source_array(s, "k.f32s", &a, NULL), HUNCH_OK);
    assert_true(hn_array_number(a, 0) == 0.25);
}

static void test_round_trip(void **state) {
    (void)state;
    hunch_error err = {0};
    const char *path = test_path("round.gguf");
    assert_int_equal(write_file(path, &err), HUNCH_OK);
    assert_false(test_file_exists(test_path("round.gguf.partial")));
    hn_source *s = NULL;
    assert_int_equal(hn_source_open(&s, path, &err), HUNCH_OK);
    check_keys(s);
    hn_tensor *t = NULL;
    assert_int_equal(hn_source_tensor_count(s), 2);
    assert_int_equal(hn_source_need(s, "norm", 1, 5, 1, &t, &err), HUNCH_OK);
    assert_memory_equal(t->data, NORM, sizeof NORM);
    assert_int_equal(hn_source_need(s, "matrix", 2, 3, 2, &t, &err), HUNCH_OK);
    assert_int_equal(t->dtype, HN_BF16);
    assert_memory_equal(t->data, MATRIX, sizeof MATRIX);
    hn_source_close(&s);
}

static void test_keys_only(void **state) {
    (void)state;
    hn_gguf_writer *w;
    const char *path = test_path("keys.gguf");
    assert_int_equal(hn_gguf_writer_open(&w, path, NULL), HUNCH_OK);
    assert_int_equal(put_keys(w, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_writer_finish(&w, NULL), HUNCH_OK);
    assert_null(w);
    hn_source *s = NULL;
    assert_int_equal(hn_source_open(&s, path, NULL), HUNCH_OK);
    check_keys(s);
    hn_source_close(&s);
}

static void test_wrong_use(void **state) {
    (void)state;
    static const uint64_t dims[] = {33};
    hunch_error err = {0};
    hn_gguf_writer *w;
    const char *path = test_path("wrong.gguf");
    assert_int_equal(hn_gguf_writer_open(&w, path, &err), HUNCH_OK);
    assert_int_equal(hn_gguf_declare(w, "a", HN_Q8_0, 1, dims, &err), HUNCH_REFUSED);
    assert_int_equal(hn_gguf_declare(w, "a", HN_U8, 1, dims, &err), HUNCH_REFUSED);
    assert_int_equal(hn_gguf_declare(w, "a", HN_F32, 1, dims, &err), HUNCH_OK);
    assert_int_equal(hn_gguf_data(w, NORM, sizeof NORM, &err), HUNCH_FAILED);
    assert_int_equal(hn_gguf_writer_finish(&w, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "0 of 1 tensors were written"));
    assert_false(test_file_exists(path));
    assert_false(test_file_exists(test_path("wrong.gguf.partial")));
    assert_int_equal(hn_gguf_writer_open(&w, test_path("no/such/folder.gguf"), &err), HUNCH_FAILED);
    assert_null(w);
}

/* Simulates a full disk by a limit on the size of files: at every size the write fails, and no file is left. */
static void test_full_disk(void **state) {
    (void)state;
    hunch_error err = {0};
    char path[512], partial[512];
    snprintf(path, sizeof path, "%s", test_path("full.gguf"));
    snprintf(partial, sizeof partial, "%s", test_path("full.gguf.partial"));
    struct rlimit before, limit;
    assert_int_equal(write_file(path, &err), HUNCH_OK);
    bytes whole = test_file_read(path);
    remove(path);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    for (size_t size = 0; size < whole.size; size += 5) {
        limit.rlim_cur = size;
        setrlimit(RLIMIT_FSIZE, &limit);
        hunch_status status = write_file(path, &err);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(status, HUNCH_FAILED);
        assert_non_null(strstr(err.message, "full.gguf.partial: cannot be written"));
        assert_false(test_file_exists(path));
        assert_false(test_file_exists(partial));
    }
    bytes_free(&whole);
}

static void test_no_memory(void **state) {
    (void)state;
    const char *path = test_path("memory.gguf");
    hunch_status status = HUNCH_NO_MEMORY;
    int failures = 0;
    for (int64_t after = 0; status != HUNCH_OK; after++) {
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        status = write_file(path, NULL);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (status != HUNCH_OK) {
            assert_int_equal(status, HUNCH_NO_MEMORY);
            assert_false(test_file_exists(path));
            failures++;
        }
    }
    assert_true(failures >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_keys_only), cmocka_unit_test(test_wrong_use),
        cmocka_unit_test(test_full_disk),  cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
