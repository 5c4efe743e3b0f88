/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_split_test.c - models split into parts open like whole ones; invalid parts are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/fault.h"
#include "format/source_private.h"
#include "format/split_for_tests.h"

#define STORIES HUNCH_TEST_DATA "/models/stories260K/stories260K.f16.gguf"

/* ---- a small model of three parts that a test can change --------------------------------------------------------- */

enum { PARTS = 3 };
#define PART_1 "m-00001-of-00003.gguf"
#define PART_2 "m-00002-of-00003.gguf"
#define PART_3 "m-00003-of-00003.gguf"

typedef struct part {
    uint32_t version;
    uint64_t no, count, total;
    const char *missing; /* key that is omitted */
    uint32_t alignment;
    const char *tensors[3]; /* F32 [8], each filled with its name's first letter */
} part;

static void part_key(bytes *b, const part *p, const char *name, uint32_t type, size_t size, uint64_t value) {
    if (p->missing == NULL || strcmp(p->missing, name) != 0)
        split_key(b, name, type, size, value);
}

static bytes part_bytes(const part *p) {
    bytes b = {0};
    size_t n = 0, step = p->alignment > 32 ? p->alignment : 32;
    while (n < 3 && p->tensors[n] != NULL)
        n++;
    bytes_put(&b, "GGUF", 4);
    bytes_number(&b, p->version, 4);
    bytes_number(&b, n, 8);
    bytes_number(&b, p->missing != NULL ? 3 : 4, 8);
    split_key(&b, "general.alignment", 4, 4, p->alignment);
    part_key(&b, p, "split.no", 2, 2, p->no);
    part_key(&b, p, "split.count", 2, 2, p->count);
    part_key(&b, p, "split.tensors.count", 5, 4, p->total);
    for (size_t i = 0; i < n; i++) {
        bytes_text(&b, p->tensors[i]);
        bytes_number(&b, 1, 4);
        bytes_number(&b, 8, 8);
        bytes_number(&b, 0, 4);
        bytes_number(&b, i * step, 8);
    }
    for (size_t i = 0; i < n; i++) {
        bytes_zeros(&b, -b.size & (step - 1));
        for (int j = 0; j < 32; j++)
            bytes_put(&b, p->tensors[i], 1);
    }
    return b;
}

static void part_write(const part *p, const char *name) {
    bytes b = part_bytes(p);
    test_file_write(test_path(name), b.at, b.size);
    bytes_free(&b);
}

/* Writes three valid parts and returns their descriptions. */
static void model_make(part p[PARTS]) {
    static const char *const names[] = {PART_1, PART_2, PART_3};
    static const char *const tensors[PARTS][2] = {{"a"}, {"b", "c"}, {"d"}};
    for (uint64_t i = 0; i < PARTS; i++) {
        p[i] = (part){.version = 3, .no = i, .count = PARTS, .total = 4, .alignment = 32};
        memcpy(p[i].tensors, tensors[i], sizeof tensors[i]);
        part_write(&p[i], names[i]);
    }
}

static hunch_status open_path(const char *path, hn_source **s, hunch_error *err) {
    *s = NULL;
    *err = (hunch_error){0};
    return hn_source_open(s, path, err);
}

/* The message must begin with the path of the file at fault. */
static void assert_path_refused(const char *path, const char *culprit, const char *message) {
    hn_source *s;
    hunch_error err;
    char expected[1200];
    snprintf(expected, sizeof expected, "%s: ", test_path(culprit));
    hunch_status status = open_path(path, &s, &err);
    if (status != HUNCH_REFUSED || strstr(err.message, message) == NULL ||
        strncmp(err.message, expected, strlen(expected)) != 0)
        fail_msg("expected a refusal of %s with \"%s\", got %d \"%s\"", culprit, message, status, err.message);
    assert_null(s);
}

/* With part i changed to *p, which is undone afterwards. */
static void assert_refused(const part *p, const char *name, const char *culprit, const char *message) {
    part good[PARTS];
    part_write(p, name);
    assert_path_refused(test_path(PART_1), culprit, message);
    model_make(good);
}

static hn_source *assert_opens(const char *path) {
    hn_source *s;
    hunch_error err;
    if (open_path(path, &s, &err) != HUNCH_OK)
        fail_msg("expected it to open: %s", err.message);
    return s;
}

/* ---- whole models ----------------------------------------------------------------------------------------------- */

static void assert_same_tensors(hn_source *s, hn_source *whole) {
    assert_int_equal(hn_source_tensor_count(s), hn_source_tensor_count(whole));
    for (size_t i = 0; i < hn_source_tensor_count(whole); i++) {
        const hn_tensor *w = hn_source_tensor(whole, i), *t = hn_source_take(s, w->name);
        assert_non_null(t);
        assert_ptr_equal(t, hn_source_tensor(s, i));
        assert_int_equal(t->ggml_type, w->ggml_type);
        assert_int_equal(t->n_dims, w->n_dims);
        assert_memory_equal(t->dims, w->dims, sizeof t->dims);
        assert_int_equal(t->bytes, w->bytes);
        assert_memory_equal(t->data, w->data, w->bytes);
        unsigned char *copy = malloc(t->bytes);
        assert_non_null(copy);
        assert_int_equal(hn_source_read(s, t, 0, t->bytes, copy, NULL), HUNCH_OK);
        assert_memory_equal(copy, w->data, w->bytes); /* of its own file */
        free(copy);
    }
}

static void test_a_model_in_parts(void **state) {
    (void)state;
    hn_source *whole = assert_opens(STORIES);
    for (unsigned count = 2; count <= 11; count += 3) {
        bool first_has_tensors = count != 5;
        hn_source *s = assert_opens(split_file(STORIES, "stories", count, first_has_tensors));
        assert_same_tensors(s, whole);
        assert_int_equal(s->n_files, count);
        assert_int_equal(hn_source_tensor(s, 0)->file, first_has_tensors ? 0 : 1);
        assert_int_equal(hn_source_tensor(s, 46)->file, count - 1);
        const hn_array *tokens = NULL;
        assert_int_equal(hn_source_array(s, "tokenizer.ggml.tokens", &tokens, NULL), HUNCH_OK);
        assert_int_equal(hn_array_count(tokens), 512);
        json_t *json = NULL;
        assert_int_equal(hn_source_describe(s, &json, NULL), HUNCH_OK);
        assert_int_equal(json_integer_value(json_object_get(json, "files")), count);
        assert_int_equal(json_array_size(json_object_get(json, "tensors")), 47);
        json_decref(json);
        hn_source_close(&s);
    }
    hn_source_close(&whole);
}

/* Parts may differ in alignment; their keys are those of the first. */
static void test_each_part_by_itself(void **state) {
    (void)state;
    part p[PARTS];
    model_make(p);
    p[1].alignment = 128;
    part_write(&p[1], PART_2);
    hn_source *s = assert_opens(test_path(PART_1));
    const char *names = "abcd";
    for (size_t i = 0; i < 4; i++) {
        const hn_tensor *t = hn_source_tensor(s, i);
        const char *data = t->data;
        assert_true(t->name[0] == names[i] && data[0] == names[i] && data[31] == names[i]);
    }
    uint64_t alignment = 0;
    bool found = false;
    assert_int_equal(hn_source_u64(s, "general.alignment", &alignment, &found, NULL), HUNCH_OK);
    assert_int_equal(alignment, 32);
    hn_tensor *t = NULL;
    hunch_error err = {0};
    assert_int_equal(hn_source_need(s, "d", 1, 9, 1, &t, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, PART_3 ": tensor d has shape [8]; expected [9]"));
    hn_source_close(&s);
}

/* Tools that join parts leave the keys, with a count of 0; a file that was never split may have 1. */
static void test_not_split(void **state) {
    (void)state;
    for (uint64_t count = 0; count <= 1; count++) {
        part p = {.version = 3, .count = count, .total = 1, .alignment = 32, .tensors = {"a"}};
        part_write(&p, "joined.gguf");
        hn_source *s = assert_opens(test_path("joined.gguf"));
        assert_int_equal(hn_source_tensor_count(s), 1);
        hn_source_close(&s);
    }
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void test_wrong_names(void **state) {
    (void)state;
    static const char *const wrong[] = {"m.gguf", "m-1-of-3.gguf", "m-00001-of-00004.gguf", "m-00002-of-00003.gguf",
                                        "m-00001-of-00003.GGUF", "x"};
    part p[PARTS];
    model_make(p);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        part_write(&p[0], wrong[i]);
        assert_path_refused(test_path(wrong[i]), wrong[i],
                            "part 1 of the 3 of a split model; expected a name that ends in -00001-of-00003.gguf");
    }
    model_make(p);
    char first[1200];
    snprintf(first, sizeof first, "part 3 of 3; expected the first part, %s", test_path(PART_1));
    assert_path_refused(test_path(PART_3), PART_3, first);
    assert_path_refused(test_path(PART_2), PART_2, "part 2 of 3; expected the first part, ");
}

static void test_missing_parts(void **state) {
    (void)state;
    part p[PARTS];
    model_make(p);
    assert_int_equal(unlink(test_path(PART_3)), 0);
    assert_path_refused(test_path(PART_1), PART_3, "no such file; expected part 3 of 3 beside ");
    assert_int_equal(mkdir(test_path(PART_3), 0777), 0);
    assert_path_refused(test_path(PART_1), PART_3, "no such file; expected part 3 of 3");
    assert_int_equal(rmdir(test_path(PART_3)), 0);
    assert_int_equal(symlink(PART_3, test_path(PART_3)), 0); /* a link to itself: cannot be read */
    hn_source *none = NULL;
    hunch_error err = {0};
    assert_int_equal(hn_source_open(&none, test_path(PART_1), &err), HUNCH_FAILED);
    assert_true(strstr(err.message, PART_3) != NULL && strstr(err.message, strerror(ELOOP)) != NULL);
    assert_int_equal(unlink(test_path(PART_3)), 0);
    assert_int_equal(unlink(test_path(PART_2)), 0);
    assert_path_refused(test_path(PART_1), PART_2, "no such file; expected part 2 of 3");
    model_make(p);
    hn_source *s = assert_opens(test_path(PART_1));
    hn_source_close(&s);
}

static void test_wrong_keys(void **state) {
    (void)state;
    static const char *const keys[] = {"split.no", "split.tensors.count", "split.count"};
    part p[PARTS], wrong;
    char message[100];
    model_make(p);
    for (size_t i = 0; i < 3; i++) {
        snprintf(message, sizeof message, "key %s is missing", keys[i]);
        wrong = p[1], wrong.missing = keys[i];
        assert_refused(&wrong, PART_2, PART_2, message);
        wrong = p[0], wrong.missing = keys[i];
        if (i < 2) /* without a count the first part is a whole file */
            assert_refused(&wrong, PART_1, PART_1, message);
    }
    wrong = p[1], wrong.version = 2;
    assert_refused(&wrong, PART_2, PART_2, "its GGUF version is 2; expected 3");
    wrong = p[1], wrong.no = 2;
    assert_refused(&wrong, PART_2, PART_2, "split.no is 2; expected 1");
    wrong = p[1], wrong.no = 3;
    assert_refused(&wrong, PART_2, PART_2, "split.no is 3; expected at most 2");
    wrong = p[1], wrong.count = 4;
    assert_refused(&wrong, PART_2, PART_2, "split.count is 4; expected 3");
    wrong = p[2], wrong.count = 0, wrong.no = 0;
    assert_refused(&wrong, PART_3, PART_3, "split.count is 0; expected 3");
    wrong = p[2], wrong.total = 5;
    assert_refused(&wrong, PART_3, PART_3, "split.tensors.count is 5; expected 4");
    wrong = p[0], wrong.no = 3;
    assert_refused(&wrong, PART_1, PART_1, "split.no is 3; expected at most 2");
    wrong = p[0], wrong.no = 1;
    assert_refused(&wrong, PART_1, PART_1, "part 2 of the 3 of a split model; expected a name that ends in -00002");
    wrong = p[0], wrong.total = (uint32_t)-1;
    assert_refused(&wrong, PART_1, PART_1, "split.tensors.count is -1; expected a whole number");
    wrong = p[0], wrong.total = 2000000;
    assert_refused(&wrong, PART_1, PART_1, "split.tensors.count is 2000000; expected at most");
}

/* Counts beyond the type of the key in the published tools. */
static void test_wrong_counts(void **state) {
    (void)state;
    bytes b = {0};
    bytes_put(&b, "GGUF", 4);
    bytes_number(&b, 3, 4);
    bytes_number(&b, 0, 8);
    bytes_number(&b, 1, 8);
    split_key(&b, "split.count", 10, 8, UINT64_MAX);
    test_file_write(test_path(PART_1), b.at, b.size);
    assert_path_refused(test_path(PART_1), PART_1, "split.count is 18446744073709551615; expected at most 65535");
    bytes_free(&b);
}

static void test_wrong_tensors(void **state) {
    (void)state;
    part p[PARTS], wrong;
    model_make(p);
    wrong = p[2], wrong.tensors[0] = "a";
    assert_refused(&wrong, PART_3, PART_3, "tensor a appears twice");
    wrong = p[2], wrong.tensors[0] = NULL;
    assert_refused(&wrong, PART_3, PART_1, "split.tensors.count is 4; its 3 parts have 3 tensors");
    wrong = p[2], wrong.tensors[1] = "e";
    assert_refused(&wrong, PART_3, PART_3, "with its 2 tensors the parts have more than the 4");
    wrong = p[0], wrong.total = 0;
    assert_refused(&wrong, PART_1, PART_1, "split.tensors.count is 0; the first part alone has 1");
    wrong = p[1], wrong.alignment = 33;
    assert_refused(&wrong, PART_2, PART_2, "general.alignment is 33");
}

static void test_truncated_parts(void **state) {
    (void)state;
    static const char *const names[] = {PART_2, PART_3};
    part p[PARTS];
    model_make(p);
    for (size_t i = 0; i < 2; i++) {
        bytes b = part_bytes(&p[i + 1]);
        for (size_t size = 0; size < b.size; size++) {
            test_file_write(test_path(names[i]), b.at, size);
            assert_path_refused(test_path(PART_1), names[i], "");
        }
        test_file_write(test_path(names[i]), b.at, b.size);
        bytes_free(&b);
    }
}

/* With any byte of a part changed it opens, or is refused with a message that names a part. */
static void test_every_byte_changed(void **state) {
    (void)state;
    static const char *const names[] = {PART_1, PART_2, PART_3};
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    part p[PARTS];
    int opened = 0, refused = 0;
    model_make(p);
    for (size_t k = 0; k < PARTS; k++) {
        bytes b = part_bytes(&p[k]);
        for (size_t i = 0; i < b.size * sizeof values; i++) {
            unsigned char old = b.at[i / sizeof values];
            hn_source *s;
            hunch_error err;
            b.at[i / sizeof values] = values[i % sizeof values];
            test_file_write(test_path(names[k]), b.at, b.size);
            b.at[i / sizeof values] = old;
            hunch_status status = open_path(test_path(PART_1), &s, &err);
            opened += status == HUNCH_OK;
            refused += status == HUNCH_REFUSED && strstr(err.message, "-of-00003.gguf: ") != NULL;
            hn_source_close(&s);
        }
        assert_true(opened + refused == (int)(b.size * sizeof values));
        assert_true(opened > 0 && refused > 0);
        opened = refused = 0;
        test_file_write(test_path(names[k]), b.at, b.size);
        bytes_free(&b);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    part p[PARTS];
    hn_source *s = NULL;
    hunch_error err;
    hunch_status status = HUNCH_NO_MEMORY;
    int failures = 0;
    model_make(p);
    for (int64_t after = 0; status != HUNCH_OK; after++) {
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        status = open_path(test_path(PART_1), &s, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (status != HUNCH_OK) {
            assert_int_equal(status, HUNCH_NO_MEMORY);
            assert_non_null(strstr(err.message, "no memory"));
            failures++;
        }
    }
    assert_true(failures > 40);
    hn_source_close(&s);
    hn_fault_arm(HN_FAULT_READ, 4, false); /* the third part: each is opened, and its head read */
    assert_int_equal(open_path(test_path(PART_1), &s, &err), HUNCH_FAILED);
    hn_fault_arm(HN_FAULT_READ, -1, false);
    assert_non_null(strstr(err.message, PART_3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_model_in_parts), cmocka_unit_test(test_each_part_by_itself),
        cmocka_unit_test(test_not_split),        cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_missing_parts),    cmocka_unit_test(test_wrong_keys),
        cmocka_unit_test(test_wrong_counts),     cmocka_unit_test(test_wrong_tensors),
        cmocka_unit_test(test_truncated_parts),  cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
