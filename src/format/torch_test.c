/* SPDX-License-Identifier: Apache-2.0 */
/* torch_test.c - valid PyTorch checkpoints, and the folders and files of draft heads. Invalid ones: torch_hostile_test.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/source.h"
#include "format/torch_for_tests.h"

#define CHECKPOINTS HUNCH_TEST_DATA "/checkpoints"
#define HEADS HUNCH_TEST_DATA "/goldens-heads"

static hn_source *opened(const char *path) {
    hn_source *s = NULL;
    hunch_error err = {0};
    if (hn_source_open_head(&s, path, &err) != HUNCH_OK) fail_msg("%s", err.message);
    return s;
}

static void assert_refused(const char *path, const char *says) {
    hn_source *s = NULL;
    hunch_error err = {0};
    hunch_status status = hn_source_open_head(&s, path, &err);
    if (status != HUNCH_REFUSED || strstr(err.message, says) == NULL || strstr(err.message, path) == NULL)
        fail_msg("expected a refusal of %s with \"%s\", got %d \"%s\"", path, says, status, err.message);
    assert_null(s);
}

static const char *in_folder(const char *folder, const char *name) {
    char path[600];
    mkdir(test_path(folder), 0777);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return test_path(path);
}

static void copy(const char *from, const char *to) {
    bytes b = test_file_read(from);
    test_file_write(to, b.at, b.size);
    bytes_free(&b);
}

/* ---- files of PyTorch ------------------------------------------------------------------------------------------- */

static void assert_tensor(hn_source *s, const char *name, const char *type, int n_dims, uint64_t dim0, uint64_t dim1,
                          const void *data, size_t n) {
    unsigned char read[64] = {0};
    const hn_tensor *t = hn_source_find(s, name);
    if (t == NULL) fail_msg("%s: no tensor %s", hn_source_path(s), name);
    assert_string_equal(t->type_name, type);
    assert_true(t->known);
    assert_int_equal(t->n_dims, n_dims);
    if (n_dims > 0) assert_int_equal(t->dims[0], dim0);
    if (n_dims > 1) assert_int_equal(t->dims[1], dim1);
    assert_int_equal(t->bytes, n);
    assert_memory_equal(t->data, data, n);
    assert_int_equal(hn_source_read(s, t, 0, n, read, NULL), HUNCH_OK);
    assert_memory_equal(read, data, n);
}

/* tools/make_checkpoints.py: archives by two protocols, and a stream as torch before 1.6 wrote it. */
static void test_all_types(void **state) {
    (void)state;
    static const char *const files[] = {"small.pt", "protocol4.pt", "stream.pt"};
    static const float w[] = {0, 1, 2, 3, 4, 5};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[600];
        snprintf(path, sizeof path, CHECKPOINTS "/%s", files[i]);
        hn_source *s = opened(path);
        assert_int_equal(hn_source_tensor_count(s), 11);
        assert_tensor(s, "w", "F32", 2, 3, 2, w, sizeof w);
        assert_tensor(s, "tied", "F32", 2, 3, 2, w, sizeof w);
        assert_tensor(s, "slice", "F32", 2, 3, 1, w + 3, 3 * sizeof *w);
        assert_tensor(s, "h", "F16", 1, 4, 0, (const uint16_t[]){0, 0x3C00, 0x4000, 0x4200}, 8);
        assert_tensor(s, "b", "BF16", 1, 4, 0, (const uint16_t[]){0, 0x3F80, 0x4000, 0x4040}, 8);
        assert_tensor(s, "d2t", "I64", 1, 4, 0, (const int64_t[]){0, 3, -2, (int64_t)1 << 40}, 32);
        assert_tensor(s, "t2d", "BOOL", 1, 3, 0, (const uint8_t[]){1, 0, 1}, 3);
        assert_tensor(s, "i", "I32", 1, 2, 0, (const int32_t[]){-5, 7}, 8);
        assert_tensor(s, "s", "I16", 0, 0, 0, (const int16_t[]){-3}, 2);
        assert_tensor(s, "f64", "F64", 1, 1, 0, (const double[]){1.5}, 8);
        assert_tensor(s, "e", "F32", 2, 4, 0, w, 0);
        hn_source_close(&s);
    }
}

/* For types without a storage class of their own the tensor specifies the type. */
static void test_types_beside_storages(void **state) {
    (void)state;
    hn_source *s = opened(CHECKPOINTS "/typed.pt");
    assert_tensor(s, "f8", "F8_E4M3", 1, 4, 0, "\x38\x38\x38\x38", 4);
    const hn_tensor *t = hn_source_find(s, "u16");
    assert_non_null(t);
    assert_string_equal(t->type_name, "U16");
    assert_false(t->known);
    hn_source_close(&s);
}

static void test_dictionaries(void **state) {
    (void)state;
    static const char *const files[] = {CHECKPOINTS "/training.pt", CHECKPOINTS "/parameters.pt"};
    hn_tensor *t;
    hunch_error err;
    for (size_t i = 0; i < 2; i++) {
        hn_source *s = opened(files[i]);
        assert_int_equal(hn_source_tensor_count(s), 2);
        assert_int_equal(hn_source_need(s, "weight", 2, 3, 2, &t, &err), HUNCH_OK);
        assert_int_equal(hn_source_need(s, "bias", 1, 2, 0, &t, &err), HUNCH_OK);
        hn_source_close(&s);
    }
    assert_refused(CHECKPOINTS "/transposed.pt", "tensor w is a view whose rows do not follow each other");
    assert_refused(CHECKPOINTS "/module.pt", "names torch.nn.modules.linear.Linear");
}

/* ---- heads ------------------------------------------------------------------------------------------------------ */

static void test_head_folders(void **state) {
    (void)state;
    hunch_error err;
    hn_tensor *t;
    uint64_t n = 0;
    bool found;
    hn_source *s = opened(HEADS "/eagle1-bias-bin/head");
    assert_int_equal(hn_source_tensor_count(s), 11);
    assert_int_equal(hn_source_need(s, "fc.weight", 2, 128, 64, &t, &err), HUNCH_OK);
    assert_int_equal(t->dtype, HN_F16);
    assert_int_equal(hn_source_need(s, "embed_tokens.weight", 2, 64, 480, &t, &err), HUNCH_OK);
    hn_source_close(&s);
    s = opened(HEADS "/eagle3spec-plain/head");
    assert_int_equal(hn_source_u64(s, "transformer_layer_config.hidden_size", &n, &found, &err), HUNCH_OK);
    assert_true(found);
    assert_int_equal(n, 64);
    assert_int_equal(json_array_size(hn_source_config(s, "eagle_aux_hidden_state_layer_ids")), 3);
    assert_int_equal(json_array_size(hn_source_config(s, "speculators_config.proposal_methods")), 1);
    hn_source_close(&s);
}

#define WRAPPED "{\"model_type\": \"eagle\", \"model\": {\"hidden_size\": 64}}" /* as vLLM does */

/* Each name that a single file of weights may have; a file by its own path; a folder without config.json. */
static void test_names_of_weights(void **state) {
    (void)state;
    static const char *const names[] = {"pytorch_model.bin", "medusa_lm_head.pt", "consolidated.pth", "head.bin"};
    hunch_error err;
    uint64_t n;
    bool found;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = in_folder("named", names[i]), *config = in_folder("named", "config.json");
        copy(CHECKPOINTS "/small.pt", path);
        for (int described = 0; described < 2; described++) {
            if (described) test_file_write(config, WRAPPED, sizeof WRAPPED - 1);
            const char *ways[] = {test_path("named"), path};
            for (size_t k = 0; k < 2; k++) {
                hn_source *s = opened(ways[k]);
                assert_string_equal(hn_source_path(s), ways[k]);
                assert_int_equal(hn_source_tensor_count(s), 11);
                n = 0;
                assert_int_equal(hn_source_u64(s, "model.hidden_size", &n, &found, &err), HUNCH_OK);
                assert_int_equal(n, described ? 64 : 0);
                hn_source_close(&s);
            }
        }
        remove(config);
        remove(path);
    }
}

static void test_which_weights(void **state) {
    (void)state;
    test_file_write(in_folder("which", "config.json"), "{}", 2);
    assert_refused(test_path("which"),
                   "neither model.safetensors nor model.safetensors.index.json is there, nor pytorch_model.bin");
    copy(CHECKPOINTS "/small.pt", in_folder("which", "model-00001-of-00002.bin"));
    assert_refused(test_path("which"), "neither model.safetensors"); /* a part */
    copy(CHECKPOINTS "/small.pt", in_folder("which", "one.pt"));
    copy(CHECKPOINTS "/typed.pt", in_folder("which", "two.bin"));
    assert_refused(test_path("which"), "none of its files of weights has a usual name: one.pt, two.bin");
    copy(CHECKPOINTS "/typed.pt", in_folder("which", "pytorch_model.bin"));
    hn_source *s = opened(test_path("which"));
    assert_int_equal(hn_source_tensor_count(s), 2);
    hn_source_close(&s);
    copy(HUNCH_TEST_DATA "/models/stories260K/hf/model.safetensors", in_folder("which", "model.safetensors"));
    s = opened(test_path("which"));
    assert_non_null(hn_source_find(s, "model.norm.weight"));
    hn_source_close(&s);
    s = opened(in_folder("which", "one.pt"));
    assert_int_equal(hn_source_tensor_count(s), 11);
    hn_source_close(&s);
}

/* Models, unlike heads, must be folders. */
static void test_models_are_folders(void **state) {
    (void)state;
    hn_source *s = NULL;
    hunch_error err;
    assert_int_equal(hn_source_open(&s, CHECKPOINTS "/small.pt", &err), HUNCH_REFUSED);
    assert_non_null(
        strstr(err.message, "is one file of a Hugging Face folder; expected the folder itself: " CHECKPOINTS));
    copy(CHECKPOINTS "/small.pt", in_folder("bare", "pytorch_model.bin"));
    assert_int_equal(hn_source_open(&s, test_path("bare"), &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "no config.json"));
    assert_null(s);
}

/* ---- whole models ----------------------------------------------------------------------------------------------- */

/* Tensors from..to-1 of a source as a checkpoint, some of them parameters. */
static void checkpoint_write(const char *path, hn_source *from, size_t first, size_t end) {
    zip_builder z = {0};
    bytes pickle = {0};
    char key[32];
    pk_raw(&pickle, PK_START);
    for (size_t i = first; i < end; i++) {
        const hn_tensor *t = hn_source_tensor(from, i);
        pk_tensor p = {
            .type = t->dtype == HN_F32 ? "FloatStorage" : "BFloat16Storage", .key = key, .n_dims = t->n_dims};
        snprintf(key, sizeof key, "%zu", i - first);
        p.elements = 1;
        for (int d = 0; d < t->n_dims; d++) {
            p.shape[t->n_dims - 1 - d] = (int64_t)t->dims[d];
            p.strides[t->n_dims - 1 - d] = p.elements;
            p.elements *= (int64_t)t->dims[d];
        }
        pk_text(&pickle, t->name);
        pk_raw(&pickle, i % 2 ? "ctorch._utils\n_rebuild_parameter\n(" : "");
        pk_put_tensor(&pickle, &p);
        pk_raw(&pickle, i % 2 ? "\x89}tR" : "");
    }
    pk_raw(&pickle, PK_END);
    zip_add(&z, "model/data.pkl", pickle.at, pickle.size);
    for (size_t i = first; i < end; i++) {
        const hn_tensor *t = hn_source_tensor(from, i);
        snprintf(key, sizeof key, "model/data/%zu", i - first);
        zip_add(&z, key, t->data, t->bytes);
    }
    zip_finish(&z);
    test_file_write(path, z.b.at, z.b.size);
    bytes_free(&z.b);
    bytes_free(&pickle);
}

static void assert_same(hn_source *a, hn_source *b) {
    assert_int_equal(hn_source_tensor_count(a), hn_source_tensor_count(b));
    for (size_t i = 0; i < hn_source_tensor_count(a); i++) {
        const hn_tensor *t = hn_source_tensor(a, i), *u = hn_source_find(b, t->name);
        assert_non_null(u);
        assert_int_equal(t->n_dims, u->n_dims);
        assert_memory_equal(t->dims, u->dims, sizeof t->dims);
        assert_string_equal(t->type_name, u->type_name);
        assert_int_equal(t->bytes, u->bytes);
        assert_memory_equal(t->data, u->data, t->bytes);
    }
}

/* The same model from safetensors, from one checkpoint, and from two with an index. */
static void test_models(void **state) {
    (void)state;
    hn_source *a = opened(HUNCH_TEST_DATA "/goldens/llama-gqa"), *b;
    const size_t n = hn_source_tensor_count(a), half = n / 2;
    char *index = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&index, &len);
    copy(HUNCH_TEST_DATA "/goldens/llama-gqa/config.json", in_folder("model", "config.json"));
    checkpoint_write(in_folder("model", "pytorch_model.bin"), a, 0, n);
    b = opened(test_path("model"));
    assert_same(a, b);
    hn_source_close(&b);
    remove(in_folder("model", "pytorch_model.bin"));
    checkpoint_write(in_folder("model", "pytorch_model-00001-of-00002.bin"), a, 0, half);
    checkpoint_write(in_folder("model", "pytorch_model-00002-of-00002.bin"), a, half, n);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s\"%s\": \"pytorch_model-0000%d-of-00002.bin\"", i ? ", " : "{\"weight_map\": {",
                hn_source_tensor(a, i)->name, i < half ? 1 : 2);
    fprintf(f, "}}");
    fclose(f);
    test_file_write(in_folder("model", "pytorch_model.bin.index.json"), index, len);
    hunch_error err = {0};
    if (hn_source_open(&b, test_path("model"), &err) != HUNCH_OK) fail_msg("%s", err.message);
    assert_same(a, b);
    hn_source_close(&b);
    hn_source_close(&a);
    free(index);
}

/* ---- integers --------------------------------------------------------------------------------------------------- */

static void assert_integers_refused(const hn_source *s, const char *name, size_t n, int64_t most, const char *says) {
    int64_t to[16];
    hunch_error err = {0};
    hunch_status status = hn_source_read_integers(s, hn_source_find(s, name), n, -10, most, to, &err);
    if (status != HUNCH_REFUSED || strstr(err.message, says) == NULL)
        fail_msg("%s: expected a refusal with \"%s\", got %d \"%s\"", name, says, status, err.message);
}

static void test_integers(void **state) {
    (void)state;
    hn_source *s = opened(CHECKPOINTS "/small.pt"), *h = opened(HEADS "/eagle3-official-d2t/head");
    int64_t to[480], back[480];
    const int64_t large = (int64_t)1 << 40;
    assert_int_equal(hn_source_read_integers(s, hn_source_find(s, "d2t"), 4, -2, large, to, NULL), HUNCH_OK);
    assert_memory_equal(to, ((const int64_t[]){0, 3, -2, large}), 32);
    assert_int_equal(hn_source_read_integers(s, hn_source_find(s, "t2d"), 3, 0, 1, to, NULL), HUNCH_OK);
    assert_memory_equal(to, ((const int64_t[]){1, 0, 1}), 24);
    assert_int_equal(hn_source_read_integers(s, hn_source_find(s, "i"), 2, -5, 7, to, NULL), HUNCH_OK);
    assert_memory_equal(to, ((const int64_t[]){-5, 7}), 16);
    assert_integers_refused(s, "d2t", 4, large - 1,
                            "element 3 of tensor d2t is 1099511627776; expected -10 to 1099511627775");
    assert_integers_refused(s, "d2t", 5, large, "tensor d2t has shape [4]; expected [5]");
    assert_integers_refused(s, "s", 2, large, "tensor s has shape []; expected [2]");
    assert_integers_refused(s, "w", 3, large, "tensor w has type F32; expected integers or booleans");
    assert_false(hn_source_tensor(s, 3)->used); /* hn_source_find does not mark it */
    assert_non_null(hn_source_take(s, "d2t"));
    assert_true(hn_source_find(s, "d2t")->used);
    assert_null(hn_source_find(s, "absent"));
    /* safetensors: the two maps of a head's vocabulary agree */
    assert_int_equal(hn_source_read_integers(h, hn_source_find(h, "d2t"), 160, 0, 479, to, NULL), HUNCH_OK);
    assert_int_equal(hn_source_read_integers(h, hn_source_find(h, "t2d"), 480, 0, 1, back, NULL), HUNCH_OK);
    for (int i = 0; i < 160; i++) assert_int_equal(back[i + to[i]], 1);
    hn_source_close(&s);
    hn_source_close(&h);
}

/* More than are read at a time. */
static void test_many_integers(void **state) {
    (void)state;
    enum { N = 10000 };
    static int64_t to[N];
    const char *path = test_path("many.safetensors"),
               head[] = "{\"i\":{\"dtype\":\"I16\",\"shape\":[10000],\"data_offsets\":[0,20000]}}";
    bytes b = {0};
    bytes_number(&b, strlen(head), 8);
    bytes_put(&b, head, strlen(head));
    for (int i = 0; i < N; i++) bytes_number(&b, (uint64_t)(i - 5000), 2);
    test_file_write(path, b.at, b.size);
    hn_source *s = opened(path);
    assert_int_equal(hn_source_read_integers(s, hn_source_find(s, "i"), N, -5000, 4999, to, NULL), HUNCH_OK);
    for (int i = 0; i < N; i++) assert_int_equal(to[i], i - 5000);
    hn_source_close(&s);
    bytes_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),          cmocka_unit_test(test_types_beside_storages),
        cmocka_unit_test(test_dictionaries),       cmocka_unit_test(test_head_folders),
        cmocka_unit_test(test_names_of_weights),   cmocka_unit_test(test_which_weights),
        cmocka_unit_test(test_models_are_folders), cmocka_unit_test(test_models),
        cmocka_unit_test(test_integers),           cmocka_unit_test(test_many_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
