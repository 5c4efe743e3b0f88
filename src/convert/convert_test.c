/* SPDX-License-Identifier: Apache-2.0 */
/* convert_test.c - converted folders against the GGUF files made from the same models, and refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/random.h"
#include "convert/convert.h"
#include "model/model.h"
#include "model/arch/sampling_keys.h"
#include "text/tokenizer/tokenizer.h"
#include "model/folder_for_tests.h"

#define MODELS HUNCH_TEST_DATA "/models"
#define GOLDENS HUNCH_TEST_DATA "/goldens"

static hn_source *assert_opens(const char *path) {
    hn_source *s = NULL;
    hunch_error err = {0};
    if (hn_source_open(&s, path, &err) != HUNCH_OK)
        fail_msg("expected the file to open: %s", err.message);
    return s;
}

static hn_source *assert_converts(const char *folder) {
    hunch_error err = {0};
    const char *path = test_path("out.gguf");
    if (hn_convert(folder, path, &err) != HUNCH_OK)
        fail_msg("expected %s to convert: %s", folder, err.message);
    return assert_opens(path);
}

static void assert_u64(const hn_source *s, const char *key, uint64_t expected) {
    uint64_t value = 0;
    bool found = false;
    assert_int_equal(hn_source_u64(s, key, &value, &found, NULL), HUNCH_OK);
    assert_true(found);
    assert_int_equal(value, expected);
}

static void assert_absent(const hn_source *s, const char *key) {
    uint64_t value;
    bool found = true;
    assert_int_equal(hn_source_u64(s, key, &value, &found, NULL), HUNCH_OK);
    assert_false(found);
}

static void assert_str(const hn_source *s, const char *key, const char *expected) {
    const char *value = NULL;
    bool found = false;
    assert_int_equal(hn_source_str(s, key, &value, NULL, &found, NULL), HUNCH_OK);
    assert_true(found);
    assert_string_equal(value, expected);
}

static void assert_bool(const hn_source *s, const char *key, bool expected) {
    bool value = !expected, found = false;
    assert_int_equal(hn_source_bool(s, key, &value, &found, NULL), HUNCH_OK);
    assert_true(found && value == expected);
}

static const hn_array *assert_array(const hn_source *s, const char *key, size_t count) {
    const hn_array *a = NULL;
    assert_int_equal(hn_source_array(s, key, &a, NULL), HUNCH_OK);
    assert_non_null(a);
    assert_int_equal(hn_array_count(a), count);
    return a;
}

/* ---- against the published GGUF files ------------------------------------------------------------------------------ */

static void assert_same_tensors(hn_source *made, hn_source *given) {
    assert_int_equal(hn_source_tensor_count(made), hn_source_tensor_count(given));
    for (size_t i = 0; i < hn_source_tensor_count(given); i++) {
        const hn_tensor *b = hn_source_tensor(given, i), *a = hn_source_take(made, b->name);
        assert_non_null(a);
        assert_int_equal(a->dtype, b->dtype);
        assert_int_equal(a->n_dims, b->n_dims);
        assert_memory_equal(a->dims, b->dims, sizeof a->dims);
        assert_memory_equal(a->data, b->data, b->bytes);
    }
}

static void assert_same_arrays(const hn_source *made, const hn_source *given, const char *key, size_t count) {
    const hn_array *a = assert_array(made, key, count), *b = assert_array(given, key, count);
    for (size_t i = 0; i < count; i++) {
        if (hn_array_is_strings(b)) {
            size_t n, m;
            const char *x = hn_array_string(a, i, &n), *y = hn_array_string(b, i, &m);
            assert_int_equal(n, m);
            assert_memory_equal(x, y, n);
        } else {
            double x = hn_array_number(a, i), y = hn_array_number(b, i);
            assert_memory_equal(&x, &y, sizeof x); /* the sign of zero too */
        }
    }
}

static void assert_same_keys(const hn_source *made, const hn_source *given) {
    static const char *const numbers[] = {
        "general.file_type",           "llama.vocab_size",
        "llama.context_length",        "llama.embedding_length",
        "llama.block_count",           "llama.feed_forward_length",
        "llama.attention.head_count",  "llama.attention.head_count_kv",
        "llama.rope.dimension_count",  "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id", "tokenizer.ggml.unknown_token_id",
    };
    static const char *const flags[] = {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token",
                                        "tokenizer.ggml.add_space_prefix"};
    static const char *const reals[] = {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base"};
    bool found = false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t value = 0;
        assert_int_equal(hn_source_u64(given, numbers[i], &value, &found, NULL), HUNCH_OK);
        assert_true(found);
        assert_u64(made, numbers[i], value);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bool value = false;
        assert_int_equal(hn_source_bool(given, flags[i], &value, &found, NULL), HUNCH_OK);
        assert_true(found);
        assert_bool(made, flags[i], value);
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        double x = 0, y = 1;
        assert_int_equal(hn_source_f64(given, reals[i], &x, &found, NULL), HUNCH_OK);
        assert_int_equal(hn_source_f64(made, reals[i], &y, &found, NULL), HUNCH_OK);
        assert_true(found && x == y);
    }
    assert_str(made, "general.architecture", "llama");
    assert_str(made, "tokenizer.ggml.model", "llama");
    assert_absent(made, "llama.attention.key_length");
    assert_absent(made, "tokenizer.chat_template");
}

static void check_published(const char *folder, const char *file, size_t vocab) {
    hn_source *made = assert_converts(folder), *given = assert_opens(file);
    assert_same_tensors(made, given);
    assert_same_keys(made, given);
    assert_same_arrays(made, given, "tokenizer.ggml.tokens", vocab);
    assert_same_arrays(made, given, "tokenizer.ggml.scores", vocab);
    assert_same_arrays(made, given, "tokenizer.ggml.token_type", vocab);
    hn_source_close(&made);
    hn_source_close(&given);
}

static void test_published_models(void **state) {
    (void)state;
    check_published(MODELS "/stories260K/hf", MODELS "/stories260K/stories260K.f32.gguf", 512);
    check_published(MODELS "/babyllama105/hf/", MODELS "/babyllama105/babyllama105.f32.gguf", 105);
}

/* ---- against the folder itself ------------------------------------------------------------------------------------- */

/* The model that a converted file describes is the folder's. */
static void assert_same_description(hn_source *made, hn_source *folder) {
    hn_arch a, b;
    assert_int_equal(hn_arch_read(&a, made, NULL), HUNCH_OK);
    assert_int_equal(hn_arch_read(&b, folder, NULL), HUNCH_OK);
    assert_int_equal(a.layers, b.layers);
    assert_int_equal(a.hidden, b.hidden);
    assert_int_equal(a.vocab, b.vocab);
    assert_int_equal(a.context, b.context);
    assert_int_equal(a.tied, b.tied);
    assert_true(a.norm_eps == b.norm_eps);
    assert_int_equal(a.layer[0].heads, b.layer[0].heads);
    assert_int_equal(a.layer[0].kv_heads, b.layer[0].kv_heads);
    assert_int_equal(a.layer[0].head_dim, b.layer[0].head_dim);
    assert_int_equal(a.layer[0].ffn_width, b.layer[0].ffn_width);
    assert_int_equal(a.rotation[0].dims, b.rotation[0].dims);
    assert_true(a.rope_interleaved && !b.rope_interleaved);
    for (int i = 0; i < a.rotation[0].dims / 2; i++)
        assert_true(fabs(a.rotation[0].freq[i] - b.rotation[0].freq[i]) <= 2e-7 * b.rotation[0].freq[i]);
    assert_true(fabs(a.sampling.temperature - b.sampling.temperature) < 1e-6);
    assert_int_equal(a.sampling.top_k, b.sampling.top_k);
    assert_true(fabs(a.sampling.repetition_penalty - b.sampling.repetition_penalty) < 1e-6);
    assert_true(fabs(a.sampling.top_p - b.sampling.top_p) < 1e-6);
    hn_arch_fini(&a);
    hn_arch_fini(&b);
}

static void test_rope_scaling_and_bf16(void **state) {
    (void)state;
    hn_source *made = assert_converts(GOLDENS "/llama-gqa"), *folder = assert_opens(GOLDENS "/llama-gqa");
    hn_tensor *t = NULL, *u = NULL;
    assert_int_equal(hn_source_need(made, "rope_freqs.weight", 1, 8, 1, &t, NULL), HUNCH_OK);
    assert_int_equal(t->dtype, HN_F32);
    float divisors[8];
    memcpy(divisors, t->data, sizeof divisors);
    assert_true(divisors[0] == 1 && divisors[7] == 8); /* short waves unchanged, long ones scaled by the factor */
    assert_int_equal(hn_source_need(made, "output.weight", 2, 64, 512, &t, NULL), HUNCH_OK);
    u = hn_source_take(folder, "lm_head.weight");
    assert_int_equal(t->dtype, HN_BF16);
    assert_memory_equal(t->data, u->data, u->bytes);
    assert_int_equal(hn_source_need(made, "output_norm.weight", 1, 64, 1, &t, NULL), HUNCH_OK);
    assert_int_equal(t->dtype, HN_F32);
    assert_u64(made, "general.file_type", 32);
    assert_absent(made, "tokenizer.ggml.bos_token_id");
    assert_same_description(made, folder);
    hn_source_close(&made);
    hn_source_close(&folder);
}

static void test_shards_and_tied_head(void **state) {
    (void)state;
    hn_source *made = assert_converts(GOLDENS "/llama-tied"), *folder = assert_opens(GOLDENS "/llama-tied");
    assert_null(hn_source_take(made, "output.weight"));
    assert_null(hn_source_take(made, "rope_freqs.weight"));
    assert_int_equal(hn_source_tensor_count(made), 38);
    assert_str(made, "general.name", "llama-tied");
    assert_same_description(made, folder);
    hn_source_close(&made);
    hn_source_close(&folder);
}

/* ---- further keys of families ---------------------------------------------------------------------------------------- */

static void assert_near(double a, double b) {
    if (!(fabs(a - b) <= 3e-7 * fabs(b))) fail_msg("%.9g, expected %.9g", a, b);
}

/* The converted folder `changed` has the rotation and windows of the folder. */
static void check_changed(const char *folder, const char *find, const char *replace) {
    hn_arch a, b;
    folder_write_changed(folder, find, replace);
    hn_source *made = assert_converts(test_path("changed")), *given = folder_open();
    assert_int_equal(hn_model_mark(made, &a, NULL, NULL), HUNCH_OK);
    assert_int_equal(hn_arch_read(&b, given, NULL), HUNCH_OK);
    assert_near((double)a.rotation[0].scale, (double)b.rotation[0].scale);
    assert_int_equal(a.rotation[0].dims, b.rotation[0].dims);
    assert_int_equal(a.context, b.context);
    assert_true(!a.rotation[0].freq_long == !b.rotation[0].freq_long);
    for (int i = 0; i < a.rotation[0].dims / 2; i++) {
        assert_near(a.rotation[0].freq[i], b.rotation[0].freq[i]);
        if (a.rotation[0].freq_long) assert_near(a.rotation[0].freq_long[i], b.rotation[0].freq_long[i]);
    }
    if (a.rotation[0].freq_long) assert_true(a.rotation[0].scaling.original == b.rotation[0].scaling.original);
    for (int i = 0; i < a.layers; i++) {
        const hn_layer_desc *x = &a.layer[i], *y = &b.layer[i];
        assert_int_equal(x->window, y->window);
        assert_int_equal(x->qkv_bias, y->qkv_bias);
        assert_int_equal(x->o_bias, y->o_bias);
        assert_int_equal(x->gate_up_bias, y->gate_up_bias);
        assert_int_equal(x->down_bias, y->down_bias);
        assert_int_equal(x->fused_qkv, y->fused_qkv);
        assert_int_equal(x->fused_gate_up, y->fused_gate_up);
    }
    for (size_t i = 0; i < hn_source_tensor_count(made); i++) assert_true(hn_source_tensor(made, i)->used);
    hn_arch_fini(&a);
    hn_arch_fini(&b);
    hn_source_close(&made);
    hn_source_close(&given);
}

static void test_rotations(void **state) {
    (void)state;
    static const char theta[] = "\"rope_theta\": 1000000.0", factor[] = "\"factor\": 4.0";
    check_changed("qwen3-yarn", factor, "\"factor\": 4.0, \"beta_fast\": 16, \"beta_slow\": 2, \"attention_factor\": 1.3");
    check_changed("qwen3-yarn", factor, "\"factor\": null, \"mscale\": 0.7, \"mscale_all_dim\": 1.1");
    check_changed("qwen3-yarn", factor, "\"factor\": 0.5");
    check_changed("qwen3-dense", theta, "\"rope_theta\": 5e5, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 3.0}");
    check_changed("qwen3-dense", theta,
                  "\"rope_theta\": 5e5, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
                  "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}");
    check_changed("phi3-longrope", "\"rope_theta\": 10000.0", "\"rope_theta\": 20000.0");
    check_changed("phi3-longrope", "\"type\": \"longrope\"", "\"type\": \"yarn\", \"attention_factor\": 1.5");
}

static void test_parts(void **state) {
    (void)state;
    check_changed("llama-bias", "\"hidden_act\"", "\"other\"");
    check_changed("phi3-fused", "\"hidden_act\"", "\"other\"");
    check_changed("granite-bias", "\"hidden_act\"", "\"other\"");
}

/* An unused bias in a GGUF. */
static void test_unknown_bias(void **state) {
    (void)state;
    static const char name[] = "blk.0.ffn_down.bias", other[] = "blk.0.ffn_dawn.bias";
    hn_source *made = assert_converts(GOLDENS "/llama-bias");
    hn_source_close(&made);
    bytes file = test_file_read(test_path("out.gguf"));
    unsigned char *at = memmem(file.at, file.size, name, sizeof name - 1);
    assert_non_null(at);
    memcpy(at, other, sizeof other - 1);
    test_file_write(test_path("out.gguf"), file.at, file.size);
    bytes_free(&file);
    made = assert_opens(test_path("out.gguf"));
    hn_arch a;
    hunch_error err = {0};
    assert_int_equal(hn_model_mark(made, &a, NULL, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, other));
    hn_source_close(&made);
}

/* The tensors of a folder's safetensors under new names, and an additional one of vision. */
static void write_renamed(const char *folder, const char *body) {
    char path[600], name[300];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    bytes file = test_file_read(path), out = {0};
    uint64_t len, from, end = 0;
    memcpy(&len, file.at, 8);
    json_t *head = json_loadb((const char *)file.at + 8, len, 0, NULL), *renamed = json_object(), *t;
    const char *key;
    assert_non_null(head);
    json_object_foreach(head, key, t) {
        if (strncmp(key, "model.", 6)) continue;
        snprintf(name, sizeof name, "%s%s", body, key + 6);
        assert_int_equal(json_object_set(renamed, name, t), 0);
        from = (uint64_t)json_integer_value(json_array_get(json_object_get(t, "data_offsets"), 1));
        if (from > end) end = from;
    }
    assert_int_equal(json_object_set_new(renamed, "vision_tower.patch.bias",
                                         json_pack("{s:s, s:[i], s:[I, I]}", "dtype", "F16", "shape", 2, "data_offsets",
                                                   (json_int_t)end, (json_int_t)end + 4)),
                     0);
    char *text = json_dumps(renamed, 0);
    bytes_text(&out, text);
    bytes_put(&out, file.at + 8 + len, (size_t)end);
    bytes_zeros(&out, 4);
    folder_write("model.safetensors", out.at, out.size);
    free(text);
    json_decref(head);
    json_decref(renamed);
    bytes_free(&file);
    bytes_free(&out);
}

/* Gemma 3 beside vision is the same text model; other tensors are not converted, and reported. */
static void test_vision_folder(void **state) {
    (void)state;
    static const char *const bodies[] = {"language_model.model.", "model.language_model."};
    for (int i = 0; i < 2; i++) {
        json_t *text = json_load_file(GOLDENS "/gemma3_text-local/config.json", 0, NULL),
               *config = json_pack("{s:s, s:o}", "model_type", "gemma3", "text_config", text);
        folder_write_config(config);
        json_decref(config);
        write_renamed(GOLDENS "/gemma3_text-local", bodies[i]);
        hn_arch a;
        hunch_error err = {0};
        hn_source *given = folder_open();
        if (hn_model_mark(given, &a, NULL, &err) != HUNCH_OK) fail_msg("%s", err.message);
        hn_arch_fini(&a);
        for (size_t k = 0; k < hn_source_tensor_count(given); k++) {
            const hn_tensor *t = hn_source_tensor(given, k);
            assert_int_equal(t->used, strncmp(t->name, "vision", 6) != 0);
        }
        hn_source_close(&given);
        hn_source *made = assert_converts(test_path("changed"));
        bytes kept = test_file_read(test_path("out.gguf"));
        test_file_write(test_path("kept.gguf"), kept.at, kept.size);
        bytes_free(&kept);
        hn_source_close(&made);
        made = assert_converts(GOLDENS "/gemma3_text-local");
        given = assert_opens(test_path("kept.gguf"));
        assert_same_tensors(given, made);
        hn_source_close(&made);
        hn_source_close(&given);
    }
}

/* ---- folders made here -------------------------------------------------------------------------------------------- */

enum { SMALL_VOCAB = 16 };

static const char SMALL_CONFIG[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 4, \"intermediate_size\": 6, \"num_hidden_layers\": 1, \"num_attention_heads\": 2,"
    " \"num_key_value_heads\": 1, \"head_dim\": 4, \"vocab_size\": 16, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-6,"
    " \"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 4.0, \"rope_theta\": 5000.0}, \"tie_word_embeddings\": true,"
    " \"bos_token_id\": 1, \"eos_token_id\": [2, 3], \"_name_or_path\": \"maker/small\"}";

static void small_file(const char *name, const char *text) {
    char path[600];
    const char *folder = test_path("small");
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (text == NULL)
        remove(path);
    else
        test_file_write(path, text, strlen(text));
}

/* A one-layer model of F16 numbers that count up; one more tensor of 4 numbers if extra is not NULL. */
static void small_weights(const char *extra) {
    const struct {
        const char *name;
        int rows, cols; /* cols 0: a vector */
    } tensors[] = {
        {"model.embed_tokens.weight", 16, 4},
        {"model.layers.0.input_layernorm.weight", 4, 0},
        {"model.layers.0.self_attn.q_proj.weight", 8, 4},
        {"model.layers.0.self_attn.k_proj.weight", 4, 4},
        {"model.layers.0.self_attn.v_proj.weight", 4, 4},
        {"model.layers.0.self_attn.o_proj.weight", 4, 8},
        {"model.layers.0.post_attention_layernorm.weight", 4, 0},
        {"model.layers.0.mlp.gate_proj.weight", 6, 4},
        {"model.layers.0.mlp.up_proj.weight", 6, 4},
        {"model.layers.0.mlp.down_proj.weight", 4, 6},
        {"model.norm.weight", 4, 0},
        {"model.layers.0.self_attn.rotary_emb.inv_freq", 2, 0}, /* in old files: left out */
        {extra, 4, 0},
    };
    char head[4000] = "{", path[600];
    size_t at = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors && tensors[i].name != NULL; i++) {
        int count = tensors[i].rows * (tensors[i].cols == 0 ? 1 : tensors[i].cols);
        char shape[40];
        snprintf(shape, sizeof shape, tensors[i].cols == 0 ? "[%d]" : "[%d, %d]", tensors[i].rows, tensors[i].cols);
        size_t used = strlen(head);
        snprintf(head + used, sizeof head - used,
                 "%s\"%s\": {\"dtype\": \"F16\", \"shape\": %s, \"data_offsets\": [%zu, %zu]}", i > 0 ? ", " : "",
                 tensors[i].name, shape, at, at + (size_t)count * 2);
        at += (size_t)count * 2;
    }
    strcat(head, "}");
    bytes b = {0};
    bytes_number(&b, strlen(head), 8);
    bytes_put(&b, head, strlen(head));
    for (size_t i = 0; i < at / 2; i++)
        bytes_number(&b, hn_f32_to_f16((float)i), 2);
    snprintf(path, sizeof path, "%s/model.safetensors", test_path("small"));
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
}

static void small_folder(const char *tokenizer, const char *tokenizer_config) {
    small_file("config.json", SMALL_CONFIG);
    small_file("generation_config.json",
               "{\"do_sample\": true, \"temperature\": 0.6, \"top_p\": 0.9, \"repetition_penalty\": 1.25, \"eos_token_id\": 2}");
    small_file("tokenizer.json", tokenizer);
    small_file("tokenizer_config.json", tokenizer_config);
    small_weights(NULL);
}

/* README: "`hunch convert` keeps a folder's weights, tokenizer, defaults and logits." */
static void test_rows_keys_and_types(void **state) {
    (void)state;
    small_folder(NULL, NULL);
    hn_source *made = assert_converts(test_path("small")), *folder = assert_opens(test_path("small"));
    hn_tensor *t = NULL;
    assert_int_equal(hn_source_need(made, "blk.0.attn_q.weight", 2, 4, 8, &t, NULL), HUNCH_OK);
    assert_int_equal(t->dtype, HN_F16);
    /* heads of 4 rows in halves (0 1 | 2 3) become pairs (0 2) (1 3); the tensor starts with number 68, rows hold 4 */
    static const int order[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    for (int i = 0; i < 8; i++) {
        uint16_t half;
        memcpy(&half, (const char *)t->data + (size_t)i * 8, sizeof half);
        assert_true(hn_f16_to_f32(half) == (float)(68 + order[i] * 4));
    }
    assert_int_equal(hn_source_need(made, "blk.0.ffn_norm.weight", 1, 4, 1, &t, NULL), HUNCH_OK);
    assert_int_equal(t->dtype, HN_F32);
    assert_u64(made, "general.file_type", 1);
    assert_u64(made, "llama.attention.key_length", 4);
    assert_u64(made, "llama.attention.value_length", 4);
    assert_str(made, "llama.rope.scaling.type", "linear");
    assert_str(made, "general.name", "maker/small");
    assert_same_description(made, folder);
    hunch_sampling p;
    assert_int_equal(hn_sampling_read(&p, made, NULL), HUNCH_OK);
    assert_true(p.temperature == (double)0.6f && p.top_p == (double)0.9f && p.repetition_penalty == 1.25);
    hn_source_close(&made);
    hn_source_close(&folder);
}

/* Only rotated dims are reordered: in a head of 4 with 2 rotated ones, none. */
static void test_rows_that_turn_in_part(void **state) {
    (void)state;
    char config[1000];
    small_folder(NULL, NULL);
    snprintf(config, sizeof config, "{\"partial_rotary_factor\": 0.5, %s", SMALL_CONFIG + 1);
    small_file("config.json", config);
    hn_source *made = assert_converts(test_path("small")), *folder = assert_opens(test_path("small"));
    const hn_tensor *a = hn_source_take(made, "blk.0.attn_q.weight"),
                    *b = hn_source_take(folder, "model.layers.0.self_attn.q_proj.weight");
    assert_memory_equal(a->data, b->data, b->bytes);
    assert_u64(made, "llama.rope.dimension_count", 2);
    hn_source_close(&made);
    hn_source_close(&folder);
}

#define HEAD                                                                                                           \
    "{\"added_tokens\": [{\"id\": 1, \"content\": \"<s>\", \"special\": true}, {\"id\": 3, \"content\": \"<tool>\", \"special\": false}], "
#define BYTE_LEVEL "\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true"
#define MARKS                                                                                                          \
    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": \"▁\"}, "       \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"▁\"}]}, \"pre_tokenizer\": null, "
#define LETTERS "\"a\": 4, \"b\": 5, \"c\": 6, \"▁\": 7, \"ab\": 8, \"abc\": 9, \"▁a\": 10"
#define MODEL(vocab, merges)                                                                                           \
    "\"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"vocab\": {" vocab "}, \"merges\": [" merges "]}}"

/* A GGUF has all ends of its folder: three by keys of their own, more in a list besides. */
static void test_ends(void **state) {
    (void)state;
    static const char tokenizer[] = HEAD "\"normalizer\": null, \"pre_tokenizer\": {" BYTE_LEVEL ", \"use_regex\": true}, " MODEL(
        "\"<s>\": 1, \"a\": 4, \"b\": 5, \"Ġ\": 6, \"ab\": 7, \"Ġab\": 8", "\"a b\", [\"Ġ\", \"ab\"]");
    static const char map[] = "{\"eos_token\": \"Ġab\"}";
    char path[600];
    small_folder(tokenizer, "{\"eos_token_id\": [3, 7, 8], \"eos_token_ids\": [5]}");
    snprintf(path, sizeof path, "%s/special_tokens_map.json", test_path("small"));
    test_file_write(path, map, sizeof map - 1);
    hn_source *made = assert_converts(test_path("small"));
    assert_u64(made, "tokenizer.ggml.eos_token_id", 8);
    const hn_array *ends = assert_array(made, "tokenizer.ggml.eos_token_ids", 5);
    static const int want[] = {8, 2, 3, 7, 5}; /* by name; of generation_config.json, config.json, tokenizer_config.json */
    for (size_t i = 0; i < 5; i++) assert_int_equal((int)hn_array_number(ends, i), want[i]);
    assert_u64(made, "tokenizer.ggml.eot_token_id", 2);
    assert_u64(made, "tokenizer.ggml.eom_token_id", 3);
    assert_true(hn_array_number(assert_array(made, "tokenizer.ggml.token_type", SMALL_VOCAB), 8) == 3); /* named, so special */
    hn_source_close(&made);
    remove(path);
}

static void test_byte_level(void **state) {
    (void)state;
    small_folder(
        HEAD
        "\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": ["
        "{\"type\": \"Digits\", \"individual_digits\": true}, {" BYTE_LEVEL ", \"use_regex\": true}]}, "
        "\"post_processor\": {\"type\": \"Sequence\", \"processors\": [{\"type\": \"TemplateProcessing\", \"single\": "
        "[{\"SpecialToken\": {\"id\": \"<s>\"}}, {\"Sequence\": {}}]}]}, " MODEL(
            "\"<s>\": 1, \"a\": 4, \"b\": 5, \"Ġ\": 6, \"ab\": 7, \"Ġab\": 8", "\"a b\", [\"Ġ\", \"ab\"]"),
        "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"{{ y }}\"}, {\"name\": \"default\", \"template\": \"{{ x }}\"}],"
        " \"eos_token\": {\"content\": \"<tool>\"}}");
    hn_source *made = assert_converts(test_path("small"));
    assert_str(made, "tokenizer.ggml.model", "gpt2");
    assert_str(made, "tokenizer.ggml.pre", "smollm");
    assert_str(made, "tokenizer.chat_template", "{{ x }}");
    assert_str(made, "tokenizer.chat_template.tool_use", "{{ y }}");
    assert_bool(made, "tokenizer.ggml.add_bos_token", true);
    assert_bool(made, "tokenizer.ggml.add_eos_token", false);
    assert_u64(made, "tokenizer.ggml.bos_token_id", 1);
    assert_u64(made, "tokenizer.ggml.eos_token_id", 3);
    assert_u64(made, "tokenizer.ggml.eot_token_id", 2);
    assert_absent(made, "tokenizer.ggml.eom_token_id");
    size_t len;
    const hn_array *merges = assert_array(made, "tokenizer.ggml.merges", 2);
    assert_memory_equal(hn_array_string(merges, 1, &len), "Ġ ab", strlen("Ġ ab"));
    const hn_array *tokens = assert_array(made, "tokenizer.ggml.tokens", SMALL_VOCAB);
    const hn_array *types = assert_array(made, "tokenizer.ggml.token_type", SMALL_VOCAB);
    assert_memory_equal(hn_array_string(tokens, 8, &len), "Ġab", strlen("Ġab"));
    assert_memory_equal(hn_array_string(tokens, 15, &len), "[PAD15]", 7);
    assert_true(hn_array_number(types, 1) == 3 && hn_array_number(types, 3) == 4 && hn_array_number(types, 4) == 1 &&
                hn_array_number(types, 15) == 5);
    hn_source_close(&made);
}

static void test_scores(void **state) {
    (void)state;
    small_folder(HEAD MARKS MODEL("\"<unk>\": 0, " LETTERS, "\"▁ a\", \"a b\", \"ab c\""), NULL);
    small_file("chat_template.jinja", "{{ of its own file }}");
    hn_source *made = assert_converts(test_path("small"));
    assert_str(made, "tokenizer.chat_template", "{{ of its own file }}");
    assert_int_equal(unlink(test_path("small/chat_template.jinja")), 0);
    assert_str(made, "tokenizer.ggml.model", "llama");
    assert_bool(made, "tokenizer.ggml.add_space_prefix", true);
    assert_u64(made, "tokenizer.ggml.unknown_token_id", 0);
    const hn_array *scores = assert_array(made, "tokenizer.ggml.scores", SMALL_VOCAB);
    /* made by merges: ▁a, ab, abc; then the others in the order of their ids */
    static const float expected[] = {0, 0, 0, 0, -3, -4, -5, -6, -1, -2, 0};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(hn_array_number(scores, i) == (double)expected[i]);
    hn_source_close(&made);
}

/* ---- refused ------------------------------------------------------------------------------------------------------ */

static void assert_refused(const char *message) {
    hunch_error err = {0};
    const char *path = test_path("refused.gguf");
    hunch_status status = hn_convert(test_path("small"), path, &err);
    if (status != HUNCH_REFUSED || strstr(err.message, message) == NULL)
        fail_msg("expected a refusal with \"%s\", got %d \"%s\"", message, status, err.message);
    assert_false(test_file_exists(path));
    assert_false(test_file_exists(test_path("refused.gguf.partial")));
}

static void test_refused_tokenizers(void **state) {
    (void)state;
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": []}}", "expected a model of type BPE"},
        {HEAD "\"pre_tokenizer\": {\"type\": \"Whitespace\"}, " MODEL(LETTERS, ""), "are none that GGUF names"},
        {HEAD "\"normalizer\": {\"type\": \"NFKC\"}, \"pre_tokenizer\": {" BYTE_LEVEL "}, " MODEL(LETTERS, ""),
         "are none that GGUF names"},
        {HEAD MARKS MODEL(LETTERS, "\"a b\", \"ab c\""), "▁ a is not a merge"},
        {HEAD MARKS MODEL(LETTERS ", \"bc\": 11", "\"▁ a\", \"a b\", \"ab c\", \"b c\", \"a bc\""),
         "merges of token abc are not adjacent"},
        {HEAD MARKS MODEL(LETTERS, "\"a x\""), "merge 0 (a x) does not make a token"},
        {HEAD MARKS MODEL(LETTERS, "\"ab\""), "merge 0 is not two tokens"},
        {HEAD MARKS MODEL(LETTERS, "[\"a\", \"b\", \"c\"]"), "merge 0 is not two tokens"},
        {HEAD MARKS MODEL("\"a\": 16", ""), "token \"a\" has no id in the model's vocabulary of 16"},
        {HEAD MARKS MODEL("\"a\": -1", ""), "token \"a\" has no id"},
        {HEAD MARKS MODEL("\"a\": \"x\"", ""), "token \"a\" has no id"},
        {HEAD MARKS MODEL("\"a\": 3", ""), "tokens \"a\" and \"<tool>\" have the same id 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        small_folder(cases[i].json, NULL);
        assert_refused(cases[i].message);
    }
}

static void test_refused_models(void **state) {
    (void)state;
    small_folder(NULL, NULL);
    small_weights("model.layers.0.self_attn.q_proj.bias");
    assert_refused("tensor model.layers.0.self_attn.q_proj.bias has no place");
    small_weights(NULL);
    small_file("config.json", "{\"model_type\": \"mamba\"}");
    assert_refused("mamba");
    hunch_error err = {0};
    assert_int_equal(hn_convert(MODELS "/stories260K/stories260K.f32.gguf", test_path("x.gguf"), &err), HUNCH_USAGE);
    setenv("HUNCH_CACHE", MODELS "/stories260K", 1); /* by name, as hn_source_open finds it */
    assert_int_equal(hn_convert("stories260K.f32.gguf", test_path("x.gguf"), &err), HUNCH_USAGE);
    unsetenv("HUNCH_CACHE");
    assert_false(test_file_exists(test_path("x.gguf")));
    assert_int_equal(hn_convert(test_path("no-such-folder"), test_path("x.gguf"), &err), HUNCH_REFUSED);
    assert_int_equal(hn_convert(MODELS "/stories260K/hf", test_path("no/folder/x.gguf"), &err), HUNCH_FAILED);
}

/* Properties that a family's GGUF cannot have. */
static void test_refused_descriptions(void **state) {
    (void)state;
    static const struct {
        const char *folder, *find, *replace, *message;
    } cases[] = {
        {"qwen3-yarn", "\"factor\": 4.0", "\"factor\": 4.0, \"truncate\": false", "truncate"},
        {"olmo3-sliding", "\"rope_theta\": 500000.0", "\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"linear\", "
         "\"factor\": 2.0}}", "rope_parameters.sliding_attention is scaled"},
        {"llama-bias", "\"attention_bias\": true", "\"attention_bias\": false", ".bias has no place"},
        {"qwen3-fp8", "\"torch_dtype\"", "\"torch_dtype\"", "8-bit floats"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hunch_error err = {0};
        folder_write_changed(cases[i].folder, cases[i].find, cases[i].replace);
        const hunch_status status = hn_convert(test_path("changed"), test_path("refused.gguf"), &err);
        if (status != HUNCH_REFUSED || !strstr(err.message, cases[i].message))
            fail_msg("%s with %s: %d '%s'", cases[i].folder, cases[i].replace, status, err.message);
        assert_false(test_file_exists(test_path("refused.gguf")));
    }
}

static void test_full_disk(void **state) {
    (void)state;
    hunch_error err = {0};
    char path[512], partial[512];
    snprintf(path, sizeof path, "%s", test_path("full.gguf"));
    snprintf(partial, sizeof partial, "%s", test_path("full.gguf.partial"));
    struct rlimit before, limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    for (size_t size = 0; size < 1000000; size += 99991) {
        limit.rlim_cur = size;
        setrlimit(RLIMIT_FSIZE, &limit);
        hunch_status status = hn_convert(MODELS "/stories260K/hf", path, &err);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(status, HUNCH_FAILED);
        assert_non_null(strstr(err.message, "cannot be written"));
        assert_false(test_file_exists(path));
        assert_false(test_file_exists(partial));
    }
}

static void test_no_memory(void **state) {
    (void)state;
    small_folder(HEAD MARKS MODEL("\"<unk>\": 0, " LETTERS, "\"▁ a\", \"a b\", \"ab c\""), NULL);
    char folder[512], path[512], partial[512];
    snprintf(folder, sizeof folder, "%s", test_path("small"));
    snprintf(path, sizeof path, "%s", test_path("memory.gguf"));
    snprintf(partial, sizeof partial, "%s", test_path("memory.gguf.partial"));
    hunch_status status = HUNCH_NO_MEMORY;
    int failures = 0;
    for (int64_t after = 0; status != HUNCH_OK; after++) {
        hn_fault_arm(HN_FAULT_ALLOC, after, false);
        status = hn_convert(folder, path, NULL);
        hn_fault_arm(HN_FAULT_ALLOC, -1, false);
        if (status != HUNCH_OK) {
            assert_int_equal(status, HUNCH_NO_MEMORY);
            assert_false(test_file_exists(path));
            assert_false(test_file_exists(partial));
            failures++;
        }
    }
    assert_true(failures > 60);
}

/* Random bytes of each file of a folder are changed: converting ends with success or a message, and a written file opens. */
static void mutate(const char *name, uint64_t *random, int rounds) {
    static const unsigned char likely[] = {0x00, 0x80, '"', '{', '}', '[', ']', ',', '-', '0', '9'};
    char folder[512], out[512], path[600];
    snprintf(folder, sizeof folder, "%s", test_path("small"));
    snprintf(out, sizeof out, "%s", test_path("mutated.gguf"));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bytes whole = test_file_read(path);
    for (int i = 0; i < rounds; i++) {
        bytes b = {0};
        hunch_error err = {0};
        bytes_put(&b, whole.at, whole.size);
        for (uint64_t n = 1 + hn_splitmix(random) % 3; n > 0; n--) {
            uint64_t r = hn_splitmix(random);
            b.at[(r >> 16) % b.size] = r & 1 ? likely[(r >> 1) % sizeof likely] : (unsigned char)(r >> 8);
        }
        test_file_write(path, b.at, b.size);
        bytes_free(&b);
        remove(out);
        hunch_status status = hn_convert(folder, out, &err);
        assert_true(status == HUNCH_OK || (status == HUNCH_REFUSED && err.message[0] != '\0'));
        assert_int_equal(test_file_exists(out), status == HUNCH_OK);
        if (status == HUNCH_OK) {
            hn_source *s = assert_opens(out);
            hn_source_close(&s);
        }
    }
    test_file_write(path, whole.at, whole.size);
    bytes_free(&whole);
}

static void test_random_damage(void **state) {
    (void)state;
    uint64_t random = 20261121;
    small_folder(HEAD MARKS MODEL("\"<unk>\": 0, " LETTERS, "\"▁ a\", \"a b\", \"ab c\""),
                 "{\"bos_token\": \"<s>\", \"add_bos_token\": true, \"chat_template\": \"x\"}");
    mutate("config.json", &random, 400);
    mutate("tokenizer.json", &random, 800);
    mutate("tokenizer_config.json", &random, 200);
    mutate("generation_config.json", &random, 200);
    mutate("model.safetensors", &random, 400);
}

/* ---- encoding ------------------------------------------------------------------------------------------------------ */

static void assert_same_ids(const hn_tokenizer *a, const hn_tokenizer *b, const char *text, size_t len) {
    int32_t *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    assert_int_equal(hn_tokenizer_encode(a, text, len, HUNCH_TEXT_ADD_SPECIAL, &x, &n, NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_encode(b, text, len, HUNCH_TEXT_ADD_SPECIAL, &y, &m, NULL), HUNCH_OK);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n * sizeof *x);
    hn_free(x);
    hn_free(y);
}

/* The scores encode as the merges do: every line of the stories, and of this project's own text. */
static void test_encoding(void **state) {
    (void)state;
    static const char *const files[] = {MODELS "/stories260K/golden.jsonl", HUNCH_TEST_DATA "/README.md"};
    hn_source *made = assert_converts(MODELS "/stories260K/hf"), *folder = assert_opens(MODELS "/stories260K/hf");
    hn_tokenizer *a = NULL, *b = NULL;
    assert_int_equal(hn_tokenizer_open(&a, made, NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_open(&b, folder, NULL), HUNCH_OK);
    assert_int_equal(hn_tokenizer_bos(a), hn_tokenizer_bos(b));
    assert_int_equal(hn_tokenizer_eos(a), hn_tokenizer_eos(b));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        bytes text = test_file_read(files[i]);
        for (size_t at = 0; at < text.size;) {
            const unsigned char *end = memchr(text.at + at, '\n', text.size - at);
            size_t len = end != NULL ? (size_t)(end - text.at) - at + 1 : text.size - at;
            assert_same_ids(a, b, (const char *)text.at + at, len);
            at += len;
        }
        bytes_free(&text);
    }
    hn_tokenizer_close(&a);
    hn_tokenizer_close(&b);
    hn_source_close(&made);
    hn_source_close(&folder);
}

/* Matrices as another type: the floats of the file as stored, row by row; vectors are the same. */
static void test_types(void **state) {
    (void)state;
    static const char *const folders[] = {MODELS "/stories260K/hf", GOLDENS "/llama-gqa", GOLDENS "/qwen2-bias", GOLDENS "/phi3-fused"};
    static const hn_dtype types[] = {HN_Q8_0, HN_Q4_0, HN_BF16, HN_F32};
    hunch_error err = {0};
    int changed = 0, uneven = 0;
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            hn_source *stored = assert_converts(folders[f]);
            if (hn_convert_with(folders[f], types[k], test_path("typed.gguf"), NULL, NULL, &err)) fail_msg("%s", err.message);
            hn_source *typed = assert_opens(test_path("typed.gguf"));
            assert_int_equal(hn_source_tensor_count(typed), hn_source_tensor_count(stored));
            for (size_t i = 0; i < hn_source_tensor_count(stored); i++) {
                const hn_tensor *a = hn_source_tensor(stored, i), *b = hn_source_take(typed, a->name);
                const size_t n = (size_t)a->dims[0], rows = a->n_dims > 1 ? (size_t)a->dims[1] : 1;
                assert_non_null(b);
                const bool even = n % (size_t)hn_dtype_block(types[k]) == 0;
                assert_int_equal(b->dtype, a->n_dims == 1 ? HN_F32 : even ? types[k] : HN_BF16);
                float *row = hn_alloc(n * sizeof *row);
                char *want = hn_alloc(b->bytes / rows);
                for (size_t r = 0; r < rows; r++) {
                    hn_dequantise(a->dtype, (const char *)a->data + r * (a->bytes / rows), n, row);
                    if (a->n_dims > 1) hn_quantise(b->dtype, row, n, want);
                    const void *all = a->n_dims > 1 ? (const void *)want : row;
                    assert_memory_equal(all, (const char *)b->data + r * (b->bytes / rows), b->bytes / rows);
                }
                changed += b->dtype != a->dtype;
                uneven += a->n_dims > 1 && !even;
                hn_free(row);
                hn_free(want);
            }
            hn_source_close(&typed);
            hn_source_close(&stored);
        }
    assert_true(changed > 30 && uneven > 0);
    assert_int_equal(hn_convert_with(GOLDENS "/qwen3_moe-top2", HN_Q8_0, test_path("no.gguf"), NULL, NULL, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "has experts, which are converted as stored alone: expected no type"));
    assert_int_equal(hn_convert_with(GOLDENS "/qwen3_5-dense", HN_Q8_0, test_path("no.gguf"), NULL, NULL, &err), HUNCH_REFUSED);
    assert_non_null(strstr(err.message, "has a gated delta net's weights, which"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_models),
        cmocka_unit_test(test_rope_scaling_and_bf16),
        cmocka_unit_test(test_shards_and_tied_head),
        cmocka_unit_test(test_rotations),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_unknown_bias),
        cmocka_unit_test(test_vision_folder),
        cmocka_unit_test(test_rows_keys_and_types),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_rows_that_turn_in_part),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_byte_level),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_refused_tokenizers),
        cmocka_unit_test(test_refused_models),
        cmocka_unit_test(test_refused_descriptions),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
