/* SPDX-License-Identifier: Apache-2.0 */
/* gguf_test.c - GGUF files written here byte by byte, valid and damaged, and the tiny models. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "base/json_load.h"
#include "base/mem.h"
#include "format/bytes_for_tests.h"
#include "format/source.h"

#define STORIES HUNCH_TEST_DATA "/models/stories260K/stories260K.f32.gguf"

/* ---- a small file, in parts that a test can change ----------------------------------------------------------------- */

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 };

static void head(bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys) {
    bytes_put(b, "GGUF", 4);
    bytes_number(b, version, 4);
    bytes_number(b, n_tensors, 8);
    bytes_number(b, n_keys, 8);
}

static void key(bytes *b, const char *name, uint32_t type) {
    bytes_text(b, name);
    bytes_number(b, type, 4);
}

static void key_u32(bytes *b, const char *name, uint32_t value) {
    key(b, name, U32);
    bytes_number(b, value, 4);
}

static void tensor(bytes *b, const char *name, int n_dims, uint64_t dim0, uint64_t dim1, uint32_t type,
                   uint64_t offset) {
    bytes_text(b, name);
    bytes_number(b, (uint64_t)n_dims, 4);
    for (int i = 0; i < n_dims; i++)
        bytes_number(b, i == 0 ? dim0 : i == 1 ? dim1 : 1, 8);
    bytes_number(b, type, 4);
    bytes_number(b, offset, 8);
}

static void data(bytes *b, size_t n) {
    bytes_zeros(b, -b->size & 31);
    bytes_zeros(b, n);
}

/* Every type of value, two tensors of 32 and 72 bytes. */
static bytes small_file(uint32_t version) {
    bytes b = {0};
    head(&b, version, 2, 17);
    key(&b, "t.u8", U8), bytes_number(&b, 200, 1);
    key(&b, "t.i8", I8), bytes_number(&b, 0xfe, 1);
    key(&b, "t.u16", U16), bytes_number(&b, 60000, 2);
    key(&b, "t.i16", I16), bytes_number(&b, 0x8000, 2);
    key_u32(&b, "t.u32", 4000000000u);
    key(&b, "t.i32", I32), bytes_number(&b, (uint32_t)-5, 4);
    key(&b, "t.f32", F32), bytes_number(&b, 0x3fc00000, 4); /* 1.5 */
    key(&b, "t.nan", F32), bytes_number(&b, 0x7fc00000, 4);
    key(&b, "t.yes", BOOL), bytes_number(&b, 1, 1);
    key(&b, "t.text", STRING), bytes_text(&b, "h\xffi"); /* not UTF-8 */
    key(&b, "t.u64", U64), bytes_number(&b, UINT64_MAX, 8);
    key(&b, "t.i64", I64), bytes_number(&b, 1, 8);
    key(&b, "t.f64", F64), bytes_number(&b, 0x4008000000000000, 8); /* 3.0 */
    key(&b, "t.words", ARRAY), bytes_number(&b, STRING, 4), bytes_number(&b, 2, 8);
    bytes_text(&b, "one"), bytes_text(&b, "");
    key(&b, "t.numbers", ARRAY), bytes_number(&b, I16, 4), bytes_number(&b, 3, 8);
    bytes_number(&b, 1, 2), bytes_number(&b, 0xffff, 2), bytes_number(&b, 3, 2);
    key(&b, "t.nested", ARRAY), bytes_number(&b, ARRAY, 4), bytes_number(&b, 2, 8);
    bytes_number(&b, U8, 4), bytes_number(&b, 3, 8), bytes_zeros(&b, 3);
    bytes_number(&b, STRING, 4), bytes_number(&b, 1, 8), bytes_text(&b, "deep");
    key(&b, "t.empty", ARRAY), bytes_number(&b, U8, 4), bytes_number(&b, 0, 8);
    tensor(&b, "norm", 1, 8, 0, 0, 0);     /* F32 [8] */
    tensor(&b, "matrix", 2, 32, 2, 2, 32); /* Q4_0 [32, 2] */
    data(&b, 32 + 36);
    return b;
}

static hunch_status open_bytes(const bytes *b, hn_source **s, hunch_error *err) {
    const char *path = test_path("file.gguf");
    test_file_write(path, b->at, b->size);
    return hn_source_open(s, path, err);
}

static void assert_refused(bytes *b, const char *message) {
    hn_source *s = NULL;
    hunch_error err = {0};
    hunch_status status = open_bytes(b, &s, &err);
    if (status != HUNCH_REFUSED || strstr(err.message, message) == NULL)
        fail_msg("expected a refusal with \"%s\", got %d \"%s\"", message, status, err.message);
    assert_null(s);
    bytes_free(b);
}

static hn_source *assert_opens(bytes *b) {
    hn_source *s = NULL;
    hunch_error err = {0};
    if (open_bytes(b, &s, &err) != HUNCH_OK)
        fail_msg("expected the file to open: %s", err.message);
    bytes_free(b);
    return s;
}

/* ---- whole files ------------------------------------------------------------------------------------------------ */

static void assert_u64(const hn_source *s, const char *name, uint64_t expected) {
    uint64_t value = 0;
    bool found = false;
    assert_int_equal(hn_source_u64(s, name, &value, &found, NULL), HUNCH_OK);
    assert_true(found);
    assert_true(value == expected);
}

static void assert_f64(const hn_source *s, const char *name, double expected) {
    double value = 0;
    bool found = false;
    assert_int_equal(hn_source_f64(s, name, &value, &found, NULL), HUNCH_OK);
    assert_true(found);
    assert_true(value == expected);
}

static void check_values(const hn_source *s) {
    assert_u64(s, "t.u8", 200);
    assert_u64(s, "t.u16", 60000);
    assert_u64(s, "t.u32", 4000000000u);
    assert_u64(s, "t.u64", UINT64_MAX);
    assert_u64(s, "t.i64", 1);
    assert_u64(s, "t.f64", 3);
    assert_f64(s, "t.i8", -2);
    assert_f64(s, "t.i16", -32768);
    assert_f64(s, "t.i32", -5);
    assert_f64(s, "t.f32", 1.5);
    bool yes = false, found = false;
    assert_int_equal(hn_source_bool(s, "t.yes", &yes, &found, NULL), HUNCH_OK);
    assert_true(yes && found);
    const char *text = NULL;
    size_t len = 0;
    assert_int_equal(hn_source_str(s, "t.text", &text, &len, &found, NULL), HUNCH_OK);
    assert_int_equal(len, 3);
    assert_string_equal(text, "h\xffi");
}

static void check_arrays(const hn_source *s) {
    const hn_array *a = NULL;
    size_t len = 9;
    assert_int_equal(hn_source_array(s, "t.words", &a, NULL), HUNCH_OK);
    assert_int_equal(hn_array_count(a), 2);
    assert_true(hn_array_is_strings(a));
    assert_memory_equal(hn_array_string(a, 0, &len), "one", 3);
    assert_int_equal(len, 3);
    hn_array_string(a, 1, &len);
    assert_int_equal(len, 0);
    assert_int_equal(hn_source_array(s, "t.numbers", &a, NULL), HUNCH_OK);
    assert_false(hn_array_is_strings(a));
    assert_true(hn_array_number(a, 0) == 1 && hn_array_number(a, 1) == -1 && hn_array_number(a, 2) == 3);
    assert_int_equal(hn_source_array(s, "t.empty", &a, NULL), HUNCH_OK);
    assert_int_equal(hn_array_count(a), 0);
    assert_int_equal(hn_source_array(s, "t.absent", &a, NULL), HUNCH_OK);
    assert_null(a);
    assert_int_equal(hn_source_array(s, "t.nested", &a, NULL), HUNCH_REFUSED);
    assert_int_equal(hn_source_array(s, "t.u8", &a, NULL), HUNCH_REFUSED);
}

static void check_refused_values(const hn_source *s) {
    hunch_error err = {0};
    uint64_t u;
    double f;
    bool b, found;
    const char *text;
    assert_int_equal(hn_source_u64(s, "t.i32", &u, &found, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "t.i32 is -5; expected a whole number"));
    assert_int_equal(hn_source_u64(s, "t.f32", &u, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_u64(s, "t.yes", &u, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_f64(s, "t.nan", &f, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_f64(s, "t.text", &f, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_bool(s, "t.u8", &b, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_str(s, "t.words", &text, NULL, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_u64(s, "absent", &u, &found, &err), HUNCH_OK);
    assert_false(found);
}

static void test_every_type(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        bytes b = small_file(version);
        hn_source *s = assert_opens(&b);
        assert_int_equal(hn_source_get_kind(s), HN_SOURCE_GGUF);
        check_values(s);
        check_arrays(s);
        check_refused_values(s);
        hn_source_close(&s);
        assert_null(s);
    }
}

static void test_tensors_by_name(void **state) {
    (void)state;
    hunch_error err = {0};
    bytes b = small_file(3);
    hn_source *s = assert_opens(&b);
    hn_tensor *t = NULL;
    assert_int_equal(hn_source_need(s, "matrix", 2, 32, 2, &t, &err), HUNCH_OK);
    assert_int_equal(t->dtype, HN_Q4_0);
    assert_int_equal(t->bytes, 36);
    assert_true(t->used);
    assert_false(hn_source_tensor(s, 0)->used);
    unsigned char last[18];
    assert_int_equal(hn_source_read(s, t, 18, sizeof last, last, &err), HUNCH_OK);
    assert_memory_equal(last, (const unsigned char *)t->data + 18, sizeof last);
    assert_int_equal(hn_source_check(s, &err), HUNCH_OK);
    assert_int_equal(hn_source_need(s, "matrix", 2, 2, 32, &t, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "tensor matrix has shape [32, 2]; expected [2, 32]"));
    assert_null(t);
    assert_int_equal(hn_source_need(s, "norm", 2, 8, 1, &t, &err), HUNCH_OK); /* trailing ones do not count */
    assert_int_equal(hn_source_need(s, "gone", 1, 8, 1, &t, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "tensor gone is missing; expected it with shape [8]"));
    assert_null(hn_source_take(s, "gone"));
    assert_null(hn_source_tensor(s, 2));
    hn_source_close(&s);
}

static void test_tiny_model(void **state) {
    (void)state;
    hunch_error err = {0};
    hn_source *s = NULL;
    hn_tensor *t = NULL;
    assert_int_equal(hn_source_open(&s, STORIES, &err), HUNCH_OK);
    assert_int_equal(hn_source_tensor_count(s), 47);
    assert_u64(s, "llama.block_count", 5);
    assert_f64(s, "llama.rope.freq_base", 10000);
    assert_int_equal(hn_source_need(s, "token_embd.weight", 2, 64, 512, &t, &err), HUNCH_OK);
    assert_int_equal(t->bytes, 64 * 512 * 4);
    const hn_array *tokens = NULL;
    assert_int_equal(hn_source_array(s, "tokenizer.ggml.tokens", &tokens, &err), HUNCH_OK);
    assert_int_equal(hn_array_count(tokens), 512);
    size_t len = 0;
    assert_memory_equal(hn_array_string(tokens, 1, &len), "<s>", 3);
    hn_source_close(&s);
}

static void test_describe(void **state) {
    (void)state;
    bytes b = small_file(3);
    hn_source *s = assert_opens(&b);
    hn_source_take(s, "matrix");
    json_t *json = NULL;
    assert_int_equal(hn_source_describe(s, &json, NULL), HUNCH_OK);
    hn_source_close(&s);
    assert_string_equal(json_string_value(json_object_get(json, "format")), "gguf");
    assert_int_equal(json_integer_value(json_object_get(json, "tensor_bytes")), 68);
    json_t *metadata = json_object_get(json, "metadata");
    assert_int_equal(json_object_size(metadata), 17);
    assert_string_equal(json_string_value(json_object_get(metadata, "t.text")), "h\xEF\xBF\xBDi");
    assert_true(json_is_null(json_object_get(metadata, "t.nan")));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(metadata, "t.numbers"), 1)), -1);
    assert_string_equal(json_string_value(json_object_get(json_object_get(metadata, "t.nested"), "type")), "array");
    json_t *tensor_1 = json_array_get(json_object_get(json, "tensors"), 1);
    assert_string_equal(json_string_value(json_object_get(tensor_1, "type")), "Q4_0");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(tensor_1, "shape"), 0)), 32);
    assert_true(json_is_true(json_object_get(tensor_1, "used")));
    char *text = hn_json_dump(json, 0);
    assert_non_null(strstr(text, "18446744073709551615"));
    hn_free(text);
    json_decref(json);

    assert_int_equal(hn_source_open(&s, STORIES, NULL), HUNCH_OK);
    assert_int_equal(hn_source_describe(s, &json, NULL), HUNCH_OK);
    json_t *tokens = json_object_get(json_object_get(json, "metadata"), "tokenizer.ggml.tokens");
    assert_int_equal(json_integer_value(json_object_get(tokens, "count")), 512);
    assert_int_equal(json_array_size(json_object_get(tokens, "first")), 8);
    json_decref(json);
    hn_source_close(&s);
}

/* ---- damaged files -------------------------------------------------------------------------------------------- */

static void test_wrong_headers(void **state) {
    (void)state;
    bytes b = {0};
    assert_refused(&b, "not a GGUF file");
    bytes_put(&b, "GGU", 3);
    assert_refused(&b, "not a GGUF file");
    bytes_put(&b, "GGUF\0\0\0\3", 8), bytes_zeros(&b, 16);
    assert_refused(&b, "big-endian");
    head(&b, 1, 0, 0);
    assert_refused(&b, "version 1; expected 2 or 3");
    head(&b, 4, 0, 0);
    assert_refused(&b, "version 4; expected 2 or 3");
    head(&b, 3, 0, UINT64_MAX);
    assert_refused(&b, "specifies 18446744073709551615 keys");
    head(&b, 3, 1u << 30, 0), bytes_zeros(&b, 100);
    assert_refused(&b, "specifies 1073741824 tensors");
    hn_source *s = NULL;
    hunch_error err = {0};
    assert_int_equal(hn_source_open(&s, test_path("no-such-file.gguf"), &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "no-such-file.gguf"));
}

static void test_wrong_keys(void **state) {
    (void)state;
    bytes b = {0};
    head(&b, 3, 0, 1), key(&b, "a", 13), bytes_zeros(&b, 8);
    assert_refused(&b, "key a has the unknown type 13");
    head(&b, 3, 0, 1), key(&b, "a", BOOL), bytes_number(&b, 2, 1), bytes_zeros(&b, 8);
    assert_refused(&b, "key a is the boolean 2");
    head(&b, 3, 0, 1), key(&b, "a", STRING), bytes_number(&b, UINT64_MAX - 3, 8);
    assert_refused(&b, "the file ends inside key a");
    head(&b, 3, 0, 1), key(&b, "a", ARRAY), bytes_number(&b, F64, 4), bytes_number(&b, (uint64_t)1 << 61, 8);
    assert_refused(&b, "key a has 2305843009213693952 elements");
    head(&b, 3, 0, 1), key(&b, "a", ARRAY), bytes_number(&b, 99, 4), bytes_number(&b, 1, 8);
    assert_refused(&b, "the elements of key a have the unknown type 99");
    head(&b, 3, 0, 1), key(&b, "a", ARRAY);
    for (int i = 0; i < 20; i++)
        bytes_number(&b, ARRAY, 4), bytes_number(&b, 1, 8);
    assert_refused(&b, "nests arrays deeper than");
    head(&b, 3, 0, 2), key_u32(&b, "twice", 1), key_u32(&b, "twice", 2);
    assert_refused(&b, "key twice appears twice");
    head(&b, 3, 0, 1), key_u32(&b, "", 1), bytes_zeros(&b, 8);
    assert_refused(&b, "the name of key 0 (0 bytes) is empty");
    head(&b, 3, 0, 1), key_u32(&b, "a\nb", 1), bytes_zeros(&b, 8);
    assert_refused(&b, "not ASCII");
    const uint32_t wrong[] = {0, 24, 1u << 31};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        head(&b, 3, 0, 1), key_u32(&b, "general.alignment", wrong[i]);
        assert_refused(&b, "general.alignment is");
    }
}

static void test_wrong_tensors(void **state) {
    (void)state;
    bytes b = {0};
    head(&b, 3, 1, 0), tensor(&b, "a", 5, 1, 1, 0, 0), data(&b, 64);
    assert_refused(&b, "tensor a has 5 dimensions");
    head(&b, 3, 1, 0), tensor(&b, "a", 2, (uint64_t)1 << 40, (uint64_t)1 << 40, 0, 0), data(&b, 64);
    assert_refused(&b, "the dimensions of tensor a multiply");
    head(&b, 3, 1, 0), tensor(&b, "a", 2, (uint64_t)1 << 40, (uint64_t)1 << 22, 0, 0), data(&b, 64);
    assert_refused(&b, "tensor a");
    head(&b, 3, 1, 0), tensor(&b, "a", 1, 33, 1, 8, 0), data(&b, 64);
    assert_refused(&b, "Q8_0 is stored in blocks of 32");
    head(&b, 3, 1, 0), tensor(&b, "a", 1, 8, 1, 0, 4), data(&b, 64);
    assert_refused(&b, "tensor a starts at offset 4; expected a multiple of 32");
    head(&b, 3, 1, 0), tensor(&b, "a", 1, 8, 1, 0, 64), data(&b, 64);
    assert_refused(&b, "tensor a needs 32 bytes at offset 64; the file has 64 bytes");
    head(&b, 3, 1, 0), tensor(&b, "a", 1, 8, 1, 0, UINT64_MAX - 31), data(&b, 64);
    assert_refused(&b, "tensor a needs 32 bytes");
    head(&b, 3, 2, 0), tensor(&b, "a", 1, 8, 1, 0, 0), tensor(&b, "a", 1, 8, 1, 0, 32), data(&b, 64);
    assert_refused(&b, "tensor a appears twice");
    head(&b, 3, 2, 0), tensor(&b, "a", 1, 16, 1, 0, 0), tensor(&b, "b", 1, 8, 1, 0, 32), data(&b, 64);
    assert_refused(&b, "tensors a and b overlap");
    head(&b, 3, 1, 0), tensor(&b, "", 1, 8, 1, 0, 0), data(&b, 64);
    assert_refused(&b, "the name of tensor 0");
    head(&b, 3, 1, 0), tensor(&b, "a\x1b[2J", 1, 8, 1, 0, 0), data(&b, 64);
    assert_refused(&b, "not printable");
}

/* Stacked matrices: [inputs, outputs, number of matrices]. */
static void test_shapes_of_three(void **state) {
    (void)state;
    static const uint64_t right[] = {32, 2, 3, 1}, flat[] = {32, 6}, turned[] = {32, 3, 2}, more[] = {32, 2, 3, 2};
    hunch_error err = {0};
    hn_tensor *t = NULL;
    bytes b = {0};
    head(&b, 3, 1, 0);
    bytes_text(&b, "experts"), bytes_number(&b, 3, 4);
    for (int i = 0; i < 3; i++) bytes_number(&b, right[i], 8);
    bytes_number(&b, 2, 4), bytes_number(&b, 0, 8); /* Q4_0 */
    data(&b, 6 * 18);
    hn_source *s = assert_opens(&b);
    assert_int_equal(hn_source_need_shape(s, "experts", 3, right, &t, &err), HUNCH_OK);
    assert_int_equal(t->n_dims, 3);
    assert_int_equal(hn_source_need_shape(s, "experts", 4, right, &t, &err), HUNCH_OK);
    assert_int_equal(hn_source_need_shape(s, "experts", 3, turned, &t, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "tensor experts has shape [32, 2, 3]; expected [32, 3, 2]"));
    assert_null(t);
    assert_int_equal(hn_source_need_shape(s, "experts", 4, more, &t, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "expected [32, 2, 3, 2]"));
    assert_int_equal(hn_source_need_shape(s, "experts", 2, flat, &t, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_need(s, "experts", 2, 32, 6, &t, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "tensor experts has shape [32, 2, 3]; expected [32, 6]"));
    hn_source_close(&s);
}

static void assert_not_run(hn_source *s, const char *name, const char *type) {
    hunch_error err = {0};
    hn_tensor *t = NULL;
    char message[300];
    snprintf(
        message, sizeof message,
        "tensor %s has type %s; models run with weights of these types: F32, F16, BF16, F8_E4M3, Q4_0, Q4_1, Q5_0, "
        "Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4",
        name, type);
    assert_int_equal(hn_source_need(s, name, 2, 256, 2, &t, &err), HUNCH_REFUSED);
    assert_null(t);
    size_t len = strlen(err.message), tail = strlen(message);
    assert_true(len > tail);
    assert_string_equal(err.message + len - tail, message); /* the list ends there */
}

static void test_alignment_and_unknown_types(void **state) {
    (void)state;
    bytes b = {0};
    head(&b, 3, 3, 1), key_u32(&b, "general.alignment", 64);
    tensor(&b, "iq2", 2, 256, 2, 16, 64), tensor(&b, "new", 1, 8, 1, 777, 0), tensor(&b, "f32", 1, 4, 1, 0, 384);
    bytes_zeros(&b, (-b.size & 63) + 400);
    hn_source *s = assert_opens(&b);
    hn_tensor *t = hn_source_take(s, "iq2");
    assert_false(t->known);
    assert_string_equal(t->type_name, "IQ2_XXS");
    assert_int_equal(t->bytes, 320);
    assert_int_equal((uintptr_t)t->data & 63, 0);
    assert_string_equal(hn_source_take(s, "new")->type_name, "type 777");
    assert_not_run(s, "iq2", "IQ2_XXS");
    hn_source_close(&s);
}

/* Types of blocks: exact sizes, listed by their names, accepted as weights. */
static void test_block_types(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t type, block;
        size_t bytes; /* of [256, 2] */
    } cases[] = {
        {"Q4_0", 2, 32, 288},   {"Q4_1", 3, 32, 320},    {"Q8_0", 8, 32, 544},
        {"Q5_0", 6, 32, 352},   {"Q5_1", 7, 32, 384},    {"Q2_K", 10, 256, 168},   {"Q3_K", 11, 256, 220},
        {"Q4_K", 12, 256, 288}, {"Q5_K", 13, 256, 352},  {"Q6_K", 14, 256, 420},   {"IQ4_NL", 20, 32, 288},
        {"MXFP4", 39, 32, 272}, {"IQ4_XS", 23, 256, 272},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes b = {0};
        char message[100];
        head(&b, 3, 1, 0), tensor(&b, "w", 2, 256, 2, cases[i].type, 0), data(&b, cases[i].bytes);
        hn_source *s = assert_opens(&b);
        hn_tensor *t = hn_source_tensor(s, 0);
        assert_true(t->known && t->dtype < HN_WEIGHT_TYPES);
        assert_int_equal(t->bytes, cases[i].bytes);
        assert_int_equal(hn_source_need(s, "w", 2, 256, 2, &t, NULL), HUNCH_OK);
        json_t *json = NULL;
        assert_int_equal(hn_source_describe(s, &json, NULL), HUNCH_OK);
        const json_t *shown = json_array_get(json_object_get(json, "tensors"), 0);
        assert_string_equal(json_string_value(json_object_get(shown, "type")), cases[i].name);
        assert_int_equal(json_integer_value(json_object_get(shown, "bytes")), cases[i].bytes);
        json_decref(json);
        hn_source_close(&s);
        head(&b, 3, 1, 0), tensor(&b, "w", 2, 256, 2, cases[i].type, 0), data(&b, cases[i].bytes - 1);
        assert_refused(&b, "the file has");
        snprintf(message, sizeof message, "%s is stored in blocks of %u", cases[i].name, cases[i].block);
        head(&b, 3, 1, 0), tensor(&b, "w", 2, 512 - cases[i].block / 2, 2, cases[i].type, 0), data(&b, 2048);
        assert_refused(&b, message);
        head(&b, 3, 1, 0), tensor(&b, "w", 2, 1ull << 32, (1ull << 31) - 1, cases[i].type, 0), data(&b, 64);
        assert_refused(&b, "tensor w needs");
    }
    bytes b = {0}; /* integers are read, but are not weights */
    head(&b, 3, 1, 0), tensor(&b, "w", 2, 256, 2, 26, 0), data(&b, 2048);
    hn_source *s = assert_opens(&b);
    assert_not_run(s, "w", "I32");
    hn_source_close(&s);
}

/* Opening must succeed or give an error with a message; a file that opens can be described. */
static void assert_survives(const bytes *b) {
    hn_source *s = NULL;
    hunch_error err = {0};
    hunch_status status = open_bytes(b, &s, &err);
    if (status == HUNCH_OK) {
        json_t *json = NULL;
        assert_int_equal(hn_source_describe(s, &json, NULL), HUNCH_OK);
        json_decref(json);
        hn_source_close(&s);
        return;
    }
    assert_int_equal(status, HUNCH_REFUSED);
    assert_true(err.message[0] != '\0');
}

static void test_truncated_at_every_byte(void **state) {
    (void)state;
    bytes b = small_file(3);
    size_t whole = b.size;
    for (b.size = 0; b.size < whole; b.size++) {
        hn_source *s = NULL;
        assert_int_equal(open_bytes(&b, &s, NULL), HUNCH_REFUSED);
    }
    bytes_free(&b);
}

static void test_every_byte_changed(void **state) {
    (void)state;
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    bytes b = small_file(3);
    for (size_t i = 0; i < b.size; i++) {
        unsigned char old = b.at[i];
        for (size_t j = 0; j < sizeof values; j++) {
            b.at[i] = values[j];
            assert_survives(&b);
        }
        b.at[i] = old;
    }
    bytes_free(&b);
}

static void test_no_memory(void **state) {
    (void)state;
    bytes b = small_file(3);
    hunch_status status = HUNCH_NO_MEMORY;
    int failures = 0;
    for (int64_t after = 0; status != HUNCH_OK; after++) {
        hn_source *s = NULL;
        hunch_error err = {0};
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        status = open_bytes(&b, &s, &err);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (status == HUNCH_OK) {
            hn_source_close(&s);
        } else {
            assert_int_equal(status, HUNCH_NO_MEMORY);
            assert_non_null(strstr(err.message, "no memory"));
            failures++;
        }
    }
    assert_true(failures > 20);
    hn_fault_arm(HN_FAULT_READ, 0, false);
    hn_source *s = NULL;
    assert_int_equal(open_bytes(&b, &s, NULL), HUNCH_FAILED);
    hn_fault_arm(HN_FAULT_READ, -1, false);
    bytes_free(&b);
}

/* Thousands of names in reverse order: opening must not take quadratic time. */
static void test_many_tensors(void **state) {
    (void)state;
    enum { COUNT = 100000 };
    bytes b = {0};
    char name[64];
    head(&b, 3, COUNT, 0);
    for (uint64_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "blk.%d.ffn_gate.%d.weight", (int)i / 100, (int)i % 100);
        tensor(&b, name, 1, 8, 1, 0, (COUNT - 1 - i) * 32);
    }
    data(&b, (size_t)COUNT * 32);
    hn_source *s = assert_opens(&b);
    for (int i = 0; i < COUNT; i += 7) {
        snprintf(name, sizeof name, "blk.%d.ffn_gate.%d.weight", i / 100, i % 100);
        assert_ptr_equal(hn_source_take(s, name), hn_source_tensor(s, (size_t)i));
    }
    hn_source_close(&s);
}

/* The size of a sparse file is arbitrary: memory is not allocated by it. */
static void test_holes(void **state) {
    (void)state;
    bytes b = {0};
    hn_source *s = NULL;
    hunch_error err = {0};
    const char *path = test_path("holes.gguf");
    head(&b, 3, 0, 1), key(&b, "a", ARRAY), bytes_number(&b, STRING, 4), bytes_number(&b, 1 << 26, 8);
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
    assert_int_equal(truncate(path, 1 << 30), 0);
    assert_int_equal(hn_source_open(&s, path, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "has 67108864 elements"));
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_tensors_by_name),
        cmocka_unit_test(test_shapes_of_three),
        cmocka_unit_test(test_tiny_model),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_wrong_headers),
        cmocka_unit_test(test_wrong_keys),
        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_wrong_tensors),
        cmocka_unit_test(test_alignment_and_unknown_types),
        cmocka_unit_test(test_block_types),
        cmocka_unit_test(test_truncated_at_every_byte),
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_many_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
