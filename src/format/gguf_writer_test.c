/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_writer_test.c - a written file reads back the same, and a failed write leaves no file. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Keys and tensors of one file, written to another as they stand there: the same bytes. In parts: one source again, of the same tensors. */
static hunch_status copy_file(const char *from, const char *to, size_t most_bytes, hunch_error *err) {
    hn_source *s;
    hn_gguf_writer *w;
    hunch_status status = hn_source_open(&s, from, err);
    if (status) return status;
    status = most_bytes > 0 ? hn_gguf_writer_open_parts(&w, to, most_bytes, err) : hn_gguf_writer_open(&w, to, err);
    for (size_t i = 0; !status && i < hn_source_meta_count(s); i++) {
        const hn_source_meta m = hn_source_get_meta(s, i);
        status = hn_gguf_put_raw(w, m.key, m.type, m.value, m.bytes, err);
    }
    for (size_t i = 0; !status && i < hn_source_tensor_count(s); i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        status = hn_gguf_declare(w, t->name, t->dtype, t->n_dims, t->dims, err);
    }
    for (size_t i = 0; !status && i < hn_source_tensor_count(s); i++)
        status = hn_gguf_data(w, hn_source_tensor(s, i)->data, hn_source_tensor(s, i)->bytes, err);
    if (!status)
        status = hn_gguf_writer_finish(&w, err);
    else
        hn_gguf_writer_abort(&w);
    hn_source_close(&s);
    return status;
}

static const char stories[] = HUNCH_TEST_DATA "/models/stories260K/stories260K.f16.gguf";

static void same_tensors(const char *a, const char *b) {
    hn_source *x, *y;
    hunch_error err = {0};
    assert_int_equal(hn_source_open(&x, a, &err), HUNCH_OK);
    if (hn_source_open(&y, b, &err)) fail_msg("%s", err.message);
    assert_int_equal(hn_source_tensor_count(x), hn_source_tensor_count(y));
    for (size_t i = 0; i < hn_source_tensor_count(x); i++) {
        const hn_tensor *t = hn_source_tensor(x, i), *u = hn_source_find(y, t->name);
        assert_non_null(u);
        assert_int_equal(t->bytes, u->bytes);
        assert_memory_equal(t->data, u->data, t->bytes);
    }
    for (size_t i = 0; i < hn_source_meta_count(x); i++) {
        const hn_source_meta m = hn_source_get_meta(x, i), n = hn_source_get_meta(y, i);
        assert_string_equal(m.key, n.key);
        assert_true(m.type == n.type && m.bytes == n.bytes && !memcmp(m.value, n.value, m.bytes));
    }
    hn_source_close(&x);
    hn_source_close(&y);
}

static void test_raw_keys(void **state) {
    (void)state;
    hunch_error err = {0};
    const char *own = test_path("keys.gguf"), *copy = test_path("copy.gguf");
    assert_int_equal(write_file(own, &err), HUNCH_OK);
    if (copy_file(own, copy, 0, &err)) fail_msg("%s", err.message);
    bytes x = test_file_read(own), y = test_file_read(copy);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.at, y.at, x.size);
    bytes_free(&x);
    bytes_free(&y);
    if (copy_file(stories, copy, 0, &err)) fail_msg("%s", err.message);
    same_tensors(stories, copy);
}

static void test_parts(void **state) {
    (void)state;
    static const struct {
        size_t most;
        const char *first, *last, *none;
    } cases[] = {{SIZE_MAX, "all-00001-of-00001.gguf", "all-00001-of-00001.gguf", "all.gguf"},
                 {200000, "all-00001-of-00003.gguf", "all-00003-of-00003.gguf", "all-00004-of-00003.gguf"},
                 {1, "all-00001-of-00047.gguf", "all-00047-of-00047.gguf", "all.gguf.partial"}};
    hunch_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char to[512];
        snprintf(to, sizeof to, "%s", test_path("all.gguf"));
        if (copy_file(stories, to, cases[i].most, &err)) fail_msg("%s", err.message);
        assert_true(test_file_exists(test_path(cases[i].last)));
        assert_false(test_file_exists(test_path(cases[i].none)));
        same_tensors(stories, test_path(cases[i].first));
    }
    hn_gguf_writer *w;
    assert_int_equal(hn_gguf_writer_open_parts(&w, test_path("all.bin"), 1, &err), HUNCH_USAGE);
    assert_non_null(strstr(err.message, "expected a name that ends in .gguf"));
    assert_null(w);
}

/* Keys about the layout of the file that they come from are not copied: a part, and other paddings. */
static void test_layout_keys(void **state) {
    (void)state;
    static const uint64_t dims[] = {5};
    hunch_error err = {0};
    hn_gguf_writer *w;
    hn_source *s;
    const uint32_t alignment = 4096, no = 1;
    assert_int_equal(hn_gguf_writer_open(&w, test_path("layout.gguf"), &err), HUNCH_OK);
    assert_int_equal(hn_gguf_put_raw(w, "general.alignment", 4, &alignment, sizeof alignment, &err), HUNCH_OK);
    assert_int_equal(hn_gguf_put_raw(w, "split.no", 4, &no, sizeof no, &err), HUNCH_OK);
    assert_int_equal(hn_gguf_put_raw(w, "kept", 4, &no, sizeof no, &err), HUNCH_OK);
    assert_int_equal(hn_gguf_declare(w, "norm", HN_F32, 1, dims, &err), HUNCH_OK);
    assert_int_equal(hn_gguf_data(w, NORM, sizeof NORM, &err), HUNCH_OK);
    assert_int_equal(hn_gguf_writer_finish(&w, &err), HUNCH_OK);
    if (hn_source_open(&s, test_path("layout.gguf"), &err)) fail_msg("%s", err.message);
    assert_int_equal(hn_source_meta_count(s), 1);
    assert_string_equal(hn_source_get_meta(s, 0).key, "kept");
    assert_memory_equal(hn_source_find(s, "norm")->data, NORM, sizeof NORM);
    hn_source_trim(s);
    assert_int_equal(hn_source_meta_count(s), 0);
    hn_source_close(&s);
}

/* A part whose name is taken when all are finished: those that had theirs already are removed. */
static void test_parts_finish(void **state) {
    (void)state;
    static const uint64_t dims[] = {5};
    hunch_error err = {0};
    hn_gguf_writer *w;
    assert_int_equal(hn_gguf_writer_open_parts(&w, test_path("end.gguf"), 1, &err), HUNCH_OK);
    for (int i = 0; i < 3; i++) {
        const char name[] = {(char)('a' + i), 0};
        assert_int_equal(hn_gguf_declare(w, name, HN_F32, 1, dims, &err), HUNCH_OK);
    }
    for (int i = 0; i < 3; i++) assert_int_equal(hn_gguf_data(w, NORM, sizeof NORM, &err), HUNCH_OK);
    assert_int_equal(mkdir(test_path("end-00003-of-00003.gguf"), 0700), 0);
    assert_int_equal(hn_gguf_writer_finish(&w, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "end-00003-of-00003.gguf"));
    assert_false(test_file_exists(test_path("end-00001-of-00003.gguf")));
    assert_false(test_file_exists(test_path("end-00002-of-00003.gguf")));
    assert_false(test_file_exists(test_path("end-00003-of-00003.gguf.partial")));
    rmdir(test_path("end-00003-of-00003.gguf"));
}

/* Where one part cannot get its name, none stays; nor one that was begun when memory ran out. */
static void test_parts_fail(void **state) {
    (void)state;
    hunch_error err = {0};
    char to[512];
    snprintf(to, sizeof to, "%s", test_path("none.gguf"));
    assert_int_equal(mkdir(test_path("none-00003-of-00003.gguf"), 0700), 0);
    assert_int_equal(copy_file(stories, to, 200000, &err), HUNCH_FAILED);
    assert_non_null(strstr(err.message, "none-00003-of-00003.gguf"));
    rmdir(test_path("none-00003-of-00003.gguf"));
    int failures = 0;
    hunch_status status = HUNCH_NO_MEMORY;
    for (int64_t after = 0; status != HUNCH_OK; after++) {
        for (int k = 1; k <= 3; k++) {
            char name[64];
            snprintf(name, sizeof name, "none-%05d-of-00003.gguf", k);
            assert_false(test_file_exists(test_path(name)));
            snprintf(name, sizeof name, "none-%05d-of-00003.gguf.partial", k);
            assert_false(test_file_exists(test_path(name)));
        }
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        status = copy_file(stories, to, 200000, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (status != HUNCH_OK) {
            assert_int_equal(status, HUNCH_NO_MEMORY);
            failures++;
        }
    }
    assert_true(failures > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_keys_only), cmocka_unit_test(test_wrong_use),
        cmocka_unit_test(test_full_disk),  cmocka_unit_test(test_no_memory), cmocka_unit_test(test_raw_keys),
        cmocka_unit_test(test_parts),      cmocka_unit_test(test_parts_fail), cmocka_unit_test(test_layout_keys),
        cmocka_unit_test(test_parts_finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
