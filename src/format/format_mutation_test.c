/* SPDX-License-Identifier: Apache-2.0 */
/* format_mutation_test.c - small model files with random damage: opening succeeds or gives an error, and a file that opens can
 * be described and read to its last byte. The seed is fixed and printed, so that a failure can be reproduced. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fixture.h"
#include "format/bytes_for_tests.h"
#include "format/gguf_writer.h"
#include "format/source.h"

enum { ROUNDS = 4000, SEED = 20261121 };

/* Overwrites, inserts, removes, repeats or truncates a few bytes. Structural values are drawn often. */
static void damage(bytes *b, uint64_t *state) {
    static const unsigned char likely[] = {0x00, 0x01, 0x08, 0x7f, 0x80, 0xff, '"', '{',
                                           '}',  '[',  ']',  ',',  ':',  '-',  '9', 'e'};
    for (uint64_t n = 1 + hn_splitmix(state) % 4; n > 0 && b->size > 0; n--) {
        uint64_t r = hn_splitmix(state);
        size_t at = (size_t)(hn_splitmix(state) % b->size), len = (size_t)(r >> 8) % 9;
        unsigned char byte = r & 16 ? likely[(r >> 32) % sizeof likely] : (unsigned char)(r >> 40);
        if (len > b->size - at)
            len = b->size - at;
        switch (r % 8) {
        case 0: b->at[at] ^= (unsigned char)(1u << (r >> 48) % 8); break;
        case 1: memset(b->at + at, byte, len); break;
        case 2: memmove(b->at + at, b->at + at + len, b->size - at - len), b->size -= len; break;
        case 3: b->size = r & 32 ? at : b->size; break;
        case 4: memmove(b->at + at, b->at + (size_t)(r >> 16) % (b->size - len + 1), len); break;
        default: b->at[at] = byte; break;
        }
    }
}

static unsigned char touched; /* keeps the reads below alive */

static void read_everything(hn_source *s) {
    uint64_t u;
    double f;
    const char *text;
    bool found;
    const hn_array *a;
    json_t *json = NULL;
    hunch_error err;
    for (size_t i = 0; i < hn_source_tensor_count(s); i++) {
        hn_tensor *t = hn_source_tensor(s, i);
        for (size_t j = 0; j < t->bytes; j++)
            touched ^= ((const unsigned char *)t->data)[j];
        assert_ptr_equal(hn_source_take(s, t->name), t);
    }
    hn_source_u64(s, "number", &u, &found, &err);
    hn_source_f64(s, "deep.real", &f, &found, &err);
    if (hn_source_str(s, "text", &text, NULL, &found, &err) == HUNCH_OK && found)
        touched ^= (unsigned char)text[strlen(text)];
    if (hn_source_array(s, "words", &a, &err) == HUNCH_OK && a != NULL) {
        for (size_t i = 0, len; i < hn_array_count(a); i++) {
            const char *word = hn_array_string(a, i, &len);
            touched ^= len > 0 ? (unsigned char)word[len - 1] : (unsigned char)hn_array_number(a, i);
        }
    }
    assert_int_equal(hn_source_describe(s, &json, &err), HUNCH_OK);
    json_decref(json);
}

/* True if it opened. */
static bool try_open(const char *path) {
    hn_source *s = NULL;
    hunch_error err = {0};
    hunch_status status = hn_source_open(&s, path, &err);
    if (status != HUNCH_OK) {
        assert_null(s);
        assert_int_equal(status, HUNCH_REFUSED);
        assert_true(err.message[0] != '\0' && strpbrk(err.message, "\n\r\x1b") == NULL);
        return false;
    }
    read_everything(s);
    hn_source_close(&s);
    return true;
}

static void mutate(const char *file, const char *opened, int rounds) {
    char path[512], model[512];
    snprintf(path, sizeof path, "%s", file);
    snprintf(model, sizeof model, "%s", opened);
    bytes whole = test_file_read(path);
    uint64_t state = SEED;
    int survived = 0;
    rounds = light() ? rounds / 8 : rounds;
    print_message("seed %d, %s: %d rounds\n", SEED, path, rounds);
    assert_true(try_open(model));
    for (int i = 0; i < rounds; i++) {
        bytes b = {0};
        bytes_put(&b, whole.at, whole.size);
        damage(&b, &state);
        test_file_write(path, b.at, b.size);
        survived += try_open(model);
        bytes_free(&b);
    }
    test_file_write(path, whole.at, whole.size);
    bytes_free(&whole);
    assert_in_range(survived, 1, rounds - 1); /* some damage is harmless, some is detected */
}

static void test_gguf(void **state) {
    (void)state;
    static const char *const words[] = {"a", "", "b c"};
    static const size_t lens[] = {1, 0, 3};
    static const int32_t ints[] = {-1, 7, 9};
    static const uint64_t vector[] = {3}, matrix[] = {32, 2};
    static const char blocks[68], floats[12];
    const char *path = test_path("small.gguf");
    hn_gguf_writer *w;
    assert_int_equal(hn_gguf_writer_open(&w, path, NULL), HUNCH_OK);
    hn_gguf_put_u32(w, "general.alignment", 32, NULL);
    hn_gguf_put_u32(w, "number", 7, NULL);
    hn_gguf_put_f32(w, "deep.real", 0.5f, NULL);
    hn_gguf_put_bool(w, "flag", true, NULL);
    hn_gguf_put_str(w, "text", "hello", 5, NULL);
    hn_gguf_put_strings(w, "words", words, lens, 3, NULL);
    hn_gguf_put_i32s(w, "ints", ints, 3, NULL);
    hn_gguf_declare(w, "norm", HN_F32, 1, vector, NULL);
    hn_gguf_declare(w, "matrix", HN_Q8_0, 2, matrix, NULL);
    hn_gguf_data(w, floats, sizeof floats, NULL);
    hn_gguf_data(w, blocks, sizeof blocks, NULL);
    assert_int_equal(hn_gguf_writer_finish(&w, NULL), HUNCH_OK);
    mutate(path, path, ROUNDS);
}

static const char *folder_file(const char *name, const char *text) {
    char path[600];
    const char *folder = test_path("hf");
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "hf/%s", name);
    const char *whole = test_path(path);
    test_file_write(whole, text, strlen(text));
    return whole;
}

static void folder_shard(const char *name, const char *head, size_t n_data) {
    bytes b = {0};
    bytes_number(&b, strlen(head), 8);
    bytes_put(&b, head, strlen(head));
    bytes_zeros(&b, n_data);
    test_file_write(folder_file(name, ""), b.at, b.size);
    bytes_free(&b);
}

static void test_folder(void **state) {
    (void)state;
    const char *config =
        "{\"number\": 7, \"deep\": {\"real\": 1e-5, \"list\": [1, 2, null]}, \"text\": \"h\\u00e9\", \"flag\": true}";
    const char *index = "{\"weight_map\": {\"norm\": \"a.safetensors\", \"matrix\": \"b.safetensors\"}}";
    folder_shard("a.safetensors",
                 "{\"norm\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,8]},"
                 "\"more\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[8,12]}}",
                 12);
    folder_shard(
        "b.safetensors",
        "{\"__metadata__\":{\"a\":\"b\"},\"matrix\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24);
    folder_file("model.safetensors.index.json", index);
    folder_file("config.json", config);
    mutate(test_path("hf/config.json"), test_path("hf"), ROUNDS / 2);
    mutate(test_path("hf/model.safetensors.index.json"), test_path("hf"), ROUNDS / 2);
    mutate(test_path("hf/a.safetensors"), test_path("hf"), ROUNDS);
    mutate(test_path("hf/b.safetensors"), test_path("hf"), ROUNDS);
}

static void checkpoint(const char *name) {
    char from[600], to[100];
    snprintf(from, sizeof from, "%s/checkpoints/%s", HUNCH_TEST_DATA, name);
    snprintf(to, sizeof to, "hf-%s", name);
    bytes b = test_file_read(from);
    mkdir(test_path(to), 0777);
    snprintf(to, sizeof to, "hf-%s/config.json", name);
    test_file_write(test_path(to), "{\"number\": 7}", 13);
    snprintf(to, sizeof to, "hf-%s/pytorch_model.bin", name);
    const char *file = test_path(to);
    test_file_write(file, b.at, b.size);
    bytes_free(&b);
    snprintf(to, sizeof to, "hf-%s", name);
    mutate(file, test_path(to), ROUNDS);
}

static void test_checkpoints(void **state) {
    (void)state;
    checkpoint("small.pt");
    checkpoint("training.pt");
    checkpoint("stream.pt");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gguf), cmocka_unit_test(test_folder),
                                       cmocka_unit_test(test_checkpoints)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
