/* SPDX-License-Identifier: Apache-2.0 */
/* hf_test.c - Hugging Face folders: config.json by path, single and sharded weights, damaged safetensors heads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "base/json_load.h"
#include "format/bytes_for_tests.h"
#include "format/source.h"

#define TINY HUNCH_TEST_DATA "/models/stories260K"
#define GOLDENS HUNCH_TEST_DATA "/goldens"

static const char CONFIG[] =
    "{\"model_type\": \"llama\", \"layers\": 5, \"eps\": 1e-05, \"theta\": 10000.0, \"nothing\": null, \"yes\": true,"
    " \"minus\": -3, \"list\": [1, 2], \"rope\": {\"factor\": 8.5, \"type\": \"llama3\", \"deep\": {\"x\": 7}}}";

static bytes safetensors(const char *head, size_t n_data) {
    bytes b = {0};
    bytes_number(&b, strlen(head), 8);
    bytes_put(&b, head, strlen(head));
    bytes_zeros(&b, n_data);
    return b;
}

static void folder_file(const char *name, const char *text) {
    char path[600];
    const char *folder = test_path("hf");
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (text == NULL)
        remove(path);
    else
        test_file_write(path, text, strlen(text));
}

static void folder_weights(const char *name, const char *head, size_t n_data) {
    char path[600];
    const char *folder = test_path("hf");
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bytes b = safetensors(head, n_data);
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
}

static void folder_empty(void) {
    static const char *const names[] = {"config.json",       "tokenizer.json",
                                        "model.safetensors", "model.safetensors.index.json",
                                        "one.safetensors",   "two.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        folder_file(names[i], NULL);
}

static void assert_folder_refused(const char *message) {
    hn_source *s = NULL;
    hunch_error err = {0};
    hunch_status status = hn_source_open(&s, test_path("hf"), &err);
    if (status != HUNCH_REFUSED || strstr(err.message, message) == NULL)
        fail_msg("expected a refusal with \"%s\", got %d \"%s\"", message, status, err.message);
    assert_null(s);
}

/* ---- whole folders ---------------------------------------------------------------------------------------------- */

static void assert_same_tensor(hn_source *hf, const char *hf_name, hn_source *gguf, const char *gguf_name) {
    hn_tensor *a = hn_source_take(hf, hf_name), *b = hn_source_take(gguf, gguf_name);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->n_dims, b->n_dims);
    assert_memory_equal(a->dims, b->dims, sizeof a->dims);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->data, b->data, a->bytes);
}

/* The same model in both formats: tensors whose rows are not permuted are equal bit for bit. */
static void test_single_file(void **state) {
    (void)state;
    hunch_error err = {0};
    hn_source *hf = NULL, *gguf = NULL;
    assert_int_equal(hn_source_open(&hf, TINY "/hf", &err), HUNCH_OK);
    assert_int_equal(hn_source_open(&gguf, TINY "/stories260K.f32.gguf", &err), HUNCH_OK);
    assert_int_equal(hn_source_get_kind(hf), HN_SOURCE_HF);
    assert_int_equal(hn_source_tensor_count(hf), hn_source_tensor_count(gguf));
    assert_same_tensor(hf, "model.embed_tokens.weight", gguf, "token_embd.weight");
    assert_same_tensor(hf, "model.layers.4.mlp.down_proj.weight", gguf, "blk.4.ffn_down.weight");
    assert_same_tensor(hf, "model.norm.weight", gguf, "output_norm.weight");
    assert_non_null(hn_source_json(hf, "config.json"));
    assert_non_null(hn_source_json(hf, "tokenizer.json"));
    assert_non_null(hn_source_json(hf, "tokenizer_config.json"));
    assert_null(hn_source_json(hf, "generation_config.json"));
    assert_null(hn_source_json(hf, "other.json"));
    assert_null(hn_source_json(gguf, "config.json"));
    hn_source_close(&hf);
    hn_source_close(&gguf);
}

static void test_shards(void **state) {
    (void)state;
    hunch_error err = {0};
    hn_source *s = NULL;
    hn_tensor *t = NULL;
    assert_int_equal(hn_source_open(&s, GOLDENS "/llama-tied", &err), HUNCH_OK);
    assert_int_equal(hn_source_tensor_count(s), 38);
    assert_int_equal(hn_source_need(s, "model.embed_tokens.weight", 2, 64, 512, &t, &err), HUNCH_OK);
    assert_int_equal(hn_source_need(s, "model.layers.3.self_attn.k_proj.weight", 2, 64, 32, &t, &err), HUNCH_OK);
    json_t *json = NULL;
    assert_int_equal(hn_source_describe(s, &json, &err), HUNCH_OK);
    assert_string_equal(json_string_value(json_object_get(json, "format")), "hf");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "metadata"), "vocab_size")), 512);
    assert_int_equal(json_array_size(json_object_get(json, "tensors")), 38);
    json_decref(json);
    hn_source_close(&s);
}

static void test_one_file_alone(void **state) {
    (void)state;
    hunch_error err = {0};
    hn_source *s = NULL;
    uint64_t u = 0;
    bool found = true;
    assert_int_equal(hn_source_open_safetensors(&s, GOLDENS "/llama-gqa/golden.safetensors", &err), HUNCH_OK);
    hn_tensor *t = hn_source_take(s, "logits.2");
    assert_non_null(t);
    assert_int_equal(t->dtype, HN_F32);
    assert_int_equal(t->dims[0], 512);
    assert_int_equal(t->dims[1], 7);
    assert_int_equal(hn_source_u64(s, "vocab_size", &u, &found, &err), HUNCH_OK);
    assert_false(found);
    hn_source_close(&s);
}

static void test_config_values(void **state) {
    (void)state;
    hunch_error err = {0};
    hn_source *s = NULL;
    folder_empty();
    folder_file("config.json", CONFIG);
    folder_file("tokenizer_config.json", "{\"model_max_length\": 1000000000000000019884624838656}");
    folder_weights("model.safetensors", "{}", 0);
    assert_int_equal(hn_source_open(&s, test_path("hf"), &err), HUNCH_OK);
    folder_file("tokenizer_config.json", NULL);
    assert_string_equal(hn_json_digits(json_object_get(hn_source_json(s, "tokenizer_config.json"), "model_max_length")),
                        "1000000000000000019884624838656");
    uint64_t u = 0;
    double f = 0;
    bool b = false, found = false;
    const char *text = NULL;
    size_t len = 0;
    assert_int_equal(hn_source_u64(s, "layers", &u, &found, &err), HUNCH_OK);
    assert_true(found && u == 5);
    assert_int_equal(hn_source_u64(s, "theta", &u, &found, &err), HUNCH_OK);
    assert_true(found && u == 10000);
    assert_int_equal(hn_source_u64(s, "rope.deep.x", &u, &found, &err), HUNCH_OK);
    assert_true(found && u == 7);
    assert_int_equal(hn_source_f64(s, "rope.factor", &f, &found, &err), HUNCH_OK);
    assert_true(found && f == 8.5);
    assert_int_equal(hn_source_bool(s, "yes", &b, &found, &err), HUNCH_OK);
    assert_true(found && b);
    assert_int_equal(hn_source_str(s, "rope.type", &text, &len, &found, &err), HUNCH_OK);
    assert_true(found && len == 6);
    assert_string_equal(text, "llama3");
    static const char *const absent[] = {"nothing", "nothing.inside", "gone", "rope.gone", "rope.deep.gone.x", ""};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_int_equal(hn_source_u64(s, absent[i], &u, &found, &err), HUNCH_OK);
        assert_false(found);
    }
    assert_int_equal(hn_source_u64(s, "minus", &u, &found, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "minus is -3"));
    assert_int_equal(hn_source_u64(s, "eps", &u, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_u64(s, "list", &u, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_bool(s, "rope", &b, &found, &err), HUNCH_REFUSED);
    assert_int_equal(hn_source_u64(s, "layers.x", &u, &found, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "layers is not an object"));
    const hn_array *a = NULL;
    assert_int_equal(hn_source_array(s, "list", &a, &err), HUNCH_OK);
    assert_null(a);
    hn_source_close(&s);
}

/* ---- damaged folders -------------------------------------------------------------------------------------------- */

/* Keys of text_config come first; the rest of the file is found too. */
static void test_text_config(void **state) {
    (void)state;
    hn_source *s = NULL;
    const char *type = NULL;
    uint64_t u = 0;
    bool found = false;
    hunch_error err = {0};
    folder_empty();
    folder_file("config.json", "{\"model_type\": \"both\", \"layers\": 5, \"eos\": 7, \"list\": [1], \"text_config\": "
                               "{\"model_type\": \"text\","
                               " \"layers\": 9, \"eos\": null, \"list\": [1, 2], \"flat\": 3}}");
    folder_weights("model.safetensors", "{}", 0);
    assert_int_equal(hn_source_open(&s, test_path("hf"), &err), HUNCH_OK);
    assert_int_equal(hn_source_str(s, "model_type", &type, NULL, &found, &err), HUNCH_OK);
    assert_string_equal(type, "text");
    assert_int_equal(hn_source_u64(s, "layers", &u, &found, &err), HUNCH_OK);
    assert_true(found && u == 9);
    assert_int_equal(hn_source_u64(s, "eos", &u, &found, &err), HUNCH_OK);
    assert_true(found && u == 7);
    assert_int_equal(hn_source_u64(s, "vision.layers", &u, &found, &err), HUNCH_OK);
    assert_false(found);
    assert_int_equal(hn_source_u64(s, "flat.x", &u, &found, &err), HUNCH_REFUSED);
    assert_int_equal(json_array_size(hn_source_config(s, "list")), 2);
    assert_null(hn_source_config(s, "nothing.here"));
    assert_null(hn_source_config(s, "flat.x"));
    hn_source_close(&s);
}

static void test_wrong_folders(void **state) {
    (void)state;
    folder_empty();
    assert_folder_refused("no config.json");
    folder_file("config.json", "{\"a\": ");
    assert_folder_refused("config.json: not readable as JSON");
    folder_file("config.json", "[1]");
    assert_folder_refused("config.json: expected a JSON object");
    folder_file("config.json", "{\"a\": 1, \"a\": 2}");
    assert_folder_refused("config.json: not readable as JSON");
    folder_file("config.json", CONFIG);
    assert_folder_refused("neither model.safetensors nor model.safetensors.index.json");
    folder_file("tokenizer.json", "{\"a\": nonsense}");
    assert_folder_refused("tokenizer.json: not readable as JSON");
    folder_file("tokenizer.json", NULL);
    folder_file("model.safetensors.index.json", "{\"metadata\": {}}");
    assert_folder_refused("no weight_map");
}

#define ONE "{\"a\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}}"

static void test_wrong_index(void **state) {
    (void)state;
    static const char *const names[] = {
        "../one.safetensors", "/etc/one.safetensors", "sub/one.safetensors", ".one.safetensors", "one.gguf",
        ".safetensors"};
    char text[200];
    folder_empty();
    folder_file("config.json", CONFIG);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(text, sizeof text, "{\"weight_map\": {\"a\": \"%s\"}}", names[i]);
        folder_file("model.safetensors.index.json", text);
        assert_folder_refused("weight_map gives no usable file for a");
    }
    folder_file("model.safetensors.index.json", "{\"weight_map\": {\"a\": 7}}");
    assert_folder_refused("weight_map gives no usable file for a");
    folder_file("model.safetensors.index.json",
                "{\"weight_map\": {\"a\": \"one.safetensors\", \"b\": \"two.safetensors\"}}");
    folder_weights("one.safetensors", ONE, 4);
    assert_folder_refused("two.safetensors, which is missing");
    folder_weights("two.safetensors", "{\"c\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}}", 4);
    assert_folder_refused("weight_map lists tensor b in two.safetensors");
    folder_weights("two.safetensors", ONE, 4);
    assert_folder_refused("tensor a appears twice");
    folder_file("model.safetensors.index.json",
                "{\"weight_map\": {\"a\": \"two.safetensors\", \"c\": \"one.safetensors\"}}");
    folder_weights("two.safetensors", "{\"c\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}}", 4);
    assert_folder_refused("weight_map lists tensor a in two.safetensors");
}

static void assert_file_refused(const char *head, size_t n_data, const char *message) {
    const char *path = test_path("file.safetensors");
    bytes b = safetensors(head, n_data);
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
    hn_source *s = NULL;
    hunch_error err = {0};
    hunch_status status = hn_source_open_safetensors(&s, path, &err);
    if (status != HUNCH_REFUSED || strstr(err.message, message) == NULL)
        fail_msg("%s: expected a refusal with \"%s\", got %d \"%s\"", head, message, status, err.message);
}

static void test_wrong_heads(void **state) {
    (void)state;
    static const struct {
        const char *head, *message;
    } cases[] = {
        {"", "not a JSON object"},
        {" {}", "not a JSON object"},
        {"[]", "not a JSON object"},
        {"{} x", "not a JSON object"},
        {"{\"a\": 1}", "tensor a has no readable dtype"},
        {"{\"a\": {\"dtype\": 1}}", "tensor a has no readable dtype"},
        {"{\"a\": {\"dtype\": \"\\u001b[2J\"}}", "tensor a has no readable dtype"},
        {"{\"a\": {\"dtype\": \"\"}}", "tensor a has no readable dtype"},
        {"{\"a\": {\"dtype\": \"F32\"}}", "tensor a has no readable shape"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1,1,1,1,1,1,1,1,1]}}", "tensor a has no readable shape"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [-1]}}", "tensor a has a size in its shape"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1.5]}}", "tensor a has a size in its shape"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4294967296, 4294967296]}}", "tensor a has a size in its shape"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2]}}", "tensor a has no readable data_offsets"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0]}}",
         "tensor a has no readable data_offsets"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [8, 0]}}",
         "tensor a has no readable data_offsets"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [-8, 0]}}",
         "tensor a has no readable data_offsets"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [0, 8]}}",
         "tensor a holds 8 bytes; its shape needs 3 elements"},
        {"{\"a\": {\"dtype\": \"F32\", \"shape\": [5], \"data_offsets\": [0, 20]}}",
         "tensor a ends at byte 20 of the data; the file has 16"},
        {"{\"a\": {\"dtype\": \"F8_E4M3\", \"shape\": [3], \"data_offsets\": [0, 8]}}",
         "tensor a holds 8 bytes; its shape needs 3 elements of F8_E4M3"},
        {"{\"a\": {\"dtype\": \"F4\", \"shape\": [3], \"data_offsets\": [0, 1]}}",
         "tensor a holds 1 bytes; its shape needs 3 elements of F4"},
        {"{\"a\": {\"dtype\": \"U8\", \"shape\": [1,1,1,1,9], \"data_offsets\": [0, 8]}}",
         "tensor a holds 8 bytes; its shape needs 9 elements"},
        {"{\"\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [0, 8]}}", "the name of tensor 0"},
        {"{\"a\": {\"dtype\": \"U8\", \"shape\": [9], \"data_offsets\": [0, 9]}, \"b\": {\"dtype\": \"U8\", \"shape\": "
         "[8], \"data_offsets\": [8, 16]}}",
         "tensors a and b overlap"},
        {"{\"a\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}, \"a\": {\"dtype\": \"U8\", \"shape\": "
         "[1], \"data_offsets\": [1, 2]}}",
         "duplicate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_file_refused(cases[i].head, 16, cases[i].message);
}

static void test_wrong_lengths(void **state) {
    (void)state;
    static const uint64_t lengths[] = {3, 200000000, UINT64_MAX, UINT64_MAX - 7};
    const char *path = test_path("file.safetensors");
    hn_source *s = NULL;
    hunch_error err = {0};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        bytes b = {0};
        bytes_number(&b, lengths[i], 8);
        bytes_put(&b, "{}", 2);
        test_file_write(path, b.at, b.size);
        bytes_free(&b);
        assert_int_equal(hn_source_open_safetensors(&s, path, &err), HUNCH_REFUSED);
        assert_non_null(strstr(err.message, "the length of its head"));
    }
    test_file_write(path, "abc", 3);
    assert_int_equal(hn_source_open_safetensors(&s, path, &err), HUNCH_REFUSED);
    /* brackets by the thousand: the parser's own depth limit */
    char *deep = malloc(1 << 20);
    assert_non_null(deep);
    memset(deep, '[', (1 << 20) - 1);
    deep[(1 << 20) - 1] = '\0';
    memcpy(deep, "{\"a\":", 5);
    assert_file_refused(deep, 0, "not a JSON object");
    free(deep);
}

static void test_types_not_read(void **state) {
    (void)state;
    hunch_error err = {0};
    hn_source *s = NULL;
    hn_tensor *t = NULL;
    bytes b = safetensors("{\"__metadata__\": {\"format\": \"pt\"}, "
                          "\"fp8\": {\"dtype\": \"F8_E5M2\", \"shape\": [2, 4], \"data_offsets\": [0, 8]}, "
                          "\"conv\": {\"dtype\": \"U8\", \"shape\": [2, 1, 1, 2, 2], \"data_offsets\": [8, 16]}, "
                          "\"ids\": {\"dtype\": \"I64\", \"shape\": [], \"data_offsets\": [16, 24]}, "
                          "\"none\": {\"dtype\": \"F32\", \"shape\": [0, 3], \"data_offsets\": [24, 24]}}   ",
                          24);
    test_file_write(test_path("file.safetensors"), b.at, b.size);
    bytes_free(&b);
    assert_int_equal(hn_source_open_safetensors(&s, test_path("file.safetensors"), &err), HUNCH_OK);
    assert_int_equal(hn_source_tensor_count(s), 4);
    assert_int_equal(hn_source_need(s, "fp8", 2, 4, 2, &t, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "tensor fp8 has type F8_E5M2"));
    t = hn_source_take(s, "conv");
    assert_false(t->known);
    assert_int_equal(t->n_dims, 4);
    assert_int_equal(t->dims[3], 2);
    t = hn_source_take(s, "ids");
    assert_true(t->known && t->dtype == HN_I64 && t->n_dims == 0);
    assert_int_equal(hn_source_need(s, "ids", 1, 1, 1, &t, &err), HUNCH_REFUSED);
    t = hn_source_take(s, "none");
    assert_true(t->known && t->bytes == 0);
    hn_source_close(&s);
}

/* Every type of the format opens at its size and is listed by its name. */
static void test_every_type(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int bits;
        bool read;
    } types[] = {{"F64", 64, true},      {"F32", 32, true},      {"F16", 16, true},     {"BF16", 16, true},
                 {"I64", 64, true},      {"I32", 32, true},      {"I16", 16, true},     {"I8", 8, true},
                 {"U8", 8, true},        {"BOOL", 8, true},      {"F8_E4M3", 8, true},  {"F8_E5M2", 8, false},
                 {"F8_E8M0", 8, false},  {"F6_E2M3", 6, false},  {"F6_E3M2", 6, false}, {"F4", 4, false},
                 {"U16", 16, false},     {"U32", 32, false},     {"U64", 64, false},    {"C64", 64, false}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char head[200];
        hn_source *s = NULL;
        hunch_error err = {0};
        const int size = types[i].bits;
        snprintf(head, sizeof head, "{\"a\": {\"dtype\": \"%s\", \"shape\": [2, 4], \"data_offsets\": [0, %d]}}",
                 types[i].name, size);
        bytes b = safetensors(head, (size_t)size);
        test_file_write(test_path("file.safetensors"), b.at, b.size);
        bytes_free(&b);
        assert_int_equal(hn_source_open_safetensors(&s, test_path("file.safetensors"), &err), HUNCH_OK);
        const hn_tensor *t = hn_source_tensor(s, 0);
        assert_string_equal(t->type_name, types[i].name);
        assert_int_equal(t->known, types[i].read);
        assert_int_equal(t->bytes, size);
        hn_source_close(&s);
        snprintf(head, sizeof head, "{\"a\": {\"dtype\": \"%s\", \"shape\": [2, 4], \"data_offsets\": [0, %d]}}",
                 types[i].name, size - 1);
        assert_file_refused(head, (size_t)size, "its shape needs 8 elements");
    }
}

/* ---- every byte ------------------------------------------------------------------------------------------------ */

static const char SMALL[] =
    "{\"__metadata__\":{},\"model.norm.weight\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[0,8]},"
    "\"lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]}}";

static hunch_status open_weights(const bytes *b, hunch_error *err) {
    hn_source *s = NULL;
    const char *path = test_path("file.safetensors");
    test_file_write(path, b->at, b->size);
    hunch_status status = hn_source_open_safetensors(&s, path, err);
    if (status == HUNCH_OK) {
        json_t *json = NULL;
        assert_int_equal(hn_source_describe(s, &json, NULL), HUNCH_OK);
        json_decref(json);
        hn_source_close(&s);
    }
    return status;
}

static void test_truncated_at_every_byte(void **state) {
    (void)state;
    bytes b = safetensors(SMALL, 32);
    size_t whole = b.size;
    assert_int_equal(open_weights(&b, NULL), HUNCH_OK);
    for (b.size = 0; b.size < whole; b.size++)
        assert_int_equal(open_weights(&b, NULL), HUNCH_REFUSED);
    bytes_free(&b);
}

static void test_every_byte_changed(void **state) {
    (void)state;
    static const unsigned char values[] = {0x00, '9', '"', '[', '}', 0x80, 0xff};
    bytes b = safetensors(SMALL, 32);
    for (size_t i = 0; i < b.size; i++) {
        unsigned char old = b.at[i];
        for (size_t j = 0; j < sizeof values; j++) {
            hunch_error err = {0};
            b.at[i] = values[j];
            hunch_status status = open_weights(&b, &err);
            assert_true(status == HUNCH_OK || (status == HUNCH_REFUSED && err.message[0] != '\0'));
        }
        b.at[i] = old;
    }
    bytes_free(&b);
}

static void test_no_memory(void **state) {
    (void)state;
    hunch_status status = HUNCH_NO_MEMORY;
    int failures = 0;
    for (int64_t after = 0; status != HUNCH_OK; after++) {
        hn_source *s = NULL;
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        status = hn_source_open(&s, GOLDENS "/llama-tied", NULL);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        hn_source_close(&s);
        if (status != HUNCH_OK) {
            assert_int_equal(status, HUNCH_NO_MEMORY);
            failures++;
        }
    }
    assert_true(failures > 40);
}

static void test_read_errors(void **state) {
    (void)state;
    hunch_status status = HUNCH_FAILED;
    int failures = 0;
    for (int64_t after = 0; status != HUNCH_OK; after++) {
        hn_source *s = NULL;
        hn_fault_arm(HN_FAULT_READ, after, false);
        status = hn_source_open(&s, GOLDENS "/llama-tied", NULL);
        hn_fault_arm(HN_FAULT_READ, -1, false);
        hn_source_close(&s);
        if (status != HUNCH_OK) {
            assert_int_equal(status, HUNCH_FAILED);
            failures++;
        }
    }
    assert_true(failures >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_file),        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_one_file_alone),     cmocka_unit_test(test_config_values),
        cmocka_unit_test(test_text_config),        cmocka_unit_test(test_wrong_folders),
        cmocka_unit_test(test_wrong_index),        cmocka_unit_test(test_wrong_heads),
        cmocka_unit_test(test_wrong_lengths),      cmocka_unit_test(test_types_not_read),
        cmocka_unit_test(test_every_type),         cmocka_unit_test(test_truncated_at_every_byte),
        cmocka_unit_test(test_every_byte_changed), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_read_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
