/* SPDX-License-Identifier: Apache-2.0 */
/* folder_forms_test.c - folders whose files say otherwise what their tensors are: an output of its own beside tie_word_embeddings, factors
 * of 8-bit floats that divide, or of whole matrices. The logits are those of the same numbers in the usual form. Quantised folders that
 * are not read are refused by the method's name, whatever opens them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "engine/engine.h"
#include "expert_parts.h"

enum { N = 9, MOST_VOCAB = 512 };
#define TIED data_path("goldens/llama-tied")
#define FP8 data_path("goldens/qwen3-fp8")

typedef struct logits {
    float of[N * MOST_VOCAB];
    int vocab;
} logits;

static void keep_row(void *user, size_t row, const float *values, int vocab) {
    logits *l = user;
    assert_true(row < N && vocab <= MOST_VOCAB);
    l->vocab = vocab;
    memcpy(l->of + row * (size_t)vocab, values, (size_t)vocab * sizeof *values);
}

static void logits_of(const char *path, bool mapped, logits *out) {
    static const hunch_token text[N] = {5, 77, 301, 9, 44, 260, 5, 77, 12};
    hunch_model *m = open_model_as(path, "best", test_threads(), HUNCH_PRECISION_F32, mapped);
    hunch_engine *e = open_engine(m, NULL, 1, 64, HUNCH_KV_DEFAULT, 64, 64);
    must(hunch_evaluate(e, text, N, keep_row, out, err));
    hunch_engine_close(&e);
    hunch_model_close(&m);
}

/* The largest difference, as a part of the logits' standard deviation. */
static double distance(const logits *a, const logits *b) {
    double sum = 0, squares = 0, most = 0;
    const int n = N * a->vocab;
    assert_int_equal(a->vocab, b->vocab);
    for (int i = 0; i < n; i++) {
        const double v = (double)a->of[i];
        sum += v;
        squares += v * v;
        most = fmax(most, fabs(v - (double)b->of[i]));
    }
    return most / sqrt(squares / n - sum / n * (sum / n));
}

/* Of the folder, packed and left in its file. */
static double distance_to(const logits *want, const char *path) {
    static logits got;
    double most = 0;
    for (int mapped = 0; mapped < 2; mapped++) {
        logits_of(path, mapped, &got);
        most = fmax(most, distance(want, &got));
    }
    return most;
}

/* With these words by whatever opens it, and by convert. */
static void refused_both(const char *path, const char *words) {
    hunch_error err = {0};
    char out[800];
    snprintf(out, sizeof out, "%s", test_path("never.gguf"));
    refused(path, words);
    assert_int_equal(hn_convert(path, out, &err), HUNCH_REFUSED);
    if (!strstr(err.message, words)) fail_msg("convert: \"%s\", expected \"%s\"", err.message, words);
}

/* Its matrices cannot stay in the file. */
static void refused_mapped(const char *path) {
    hunch_model_options mo;
    hunch_model *m = NULL;
    hunch_error err = {0};
    hunch_model_options_defaults(&mo);
    mo.mapped = true;
    assert_int_equal(hunch_model_open(&m, path, &mo, &err), HUNCH_REFUSED);
    if (!strstr(err.message, "is stored as packed integers, and cannot stay in the file")) fail_msg("%s", err.message);
}

/* ---- the output --------------------------------------------------------------------------------------------------------- */

/* The embedding again as lm_head.weight; turned: with the rows of other tokens. */
static void add_output(parts *p, bool turned) {
    const part e = *part_find(p, "model.embed_tokens.weight");
    bytes all = {0};
    const size_t row = e.data.size / e.dims[1], first = turned ? row * 7 : 0;
    bytes_put(&all, e.data.at + first, e.data.size - first);
    bytes_put(&all, e.data.at, first);
    part_add(p, "lm_head.weight", e.type, 2, e.dims)->data = all;
}

static void test_own_output(void **state) {
    (void)state;
    static logits plain, own;
    static const char says[] = "\"tie_word_embeddings\": true", not_tied[] = "\"tie_word_embeddings\": false";
    char made[800];
    snprintf(made, sizeof made, "%s", test_path("tied.gguf"));
    logits_of(TIED, false, &plain);
    for (int turned = 0; turned < 2; turned++) {
        parts p;
        hn_source *s = NULL;
        parts_read(&p, TIED);
        add_output(&p, turned);
        logits_of(folder_of(&p, TIED, says, not_tied), false, &own);
        assert_true((distance(&plain, &own) > 0.1) == turned);
        const char *folder = folder_of(&p, TIED, NULL, NULL);
        assert_true(distance_to(&own, folder) == 0);
        unlink(made);
        must(hn_convert(folder, made, err));
        if (distance_to(&own, made) > 1e-5) fail_msg("turned %d: the GGUF is %g off", turned, distance_to(&own, made));
        must(hn_source_open(&s, made, err));
        assert_int_equal(hn_source_find(s, "output.weight") != NULL, turned); /* else it is the embedding, once */
        hn_source_close(&s);
        parts_free(&p);
    }
}

/* ---- 8-bit floats ---------------------------------------------------------------------------------------------------------- */

static bool is_factor(const part *t) {
    return strstr(t->name, "_scale_inv") != NULL;
}

/* Each factor becomes what makes the weight: its inverse, or one for the whole matrix (the first of the blocks'). */
static void change_factors(parts *p, bool invert, bool one, bool alone) {
    for (int i = 0; i < p->n; i++) {
        part *t = &p->at[i];
        if (!is_factor(t)) continue;
        float *f = malloc(t->data.size * 2);
        const size_t n = t->dims[0] * t->dims[1];
        hn_dequantise(t->type, t->data.at, n, f);
        for (size_t k = 0; k < n && one; k++) f[k] = f[0];
        for (size_t k = 0; k < n && invert; k++) f[k] = 1 / f[k];
        bytes_free(&t->data);
        bytes_put(&t->data, f, (alone ? 1 : n) * sizeof *f);
        t->type = HN_F32;
        if (alone) t->n_dims = 0;
        free(f);
    }
}

#define METHOD "\"quant_method\": \"fp8\""
#define BLOCKS "\"weight_block_size\""

static void test_inverse_factors(void **state) {
    (void)state;
    static logits want;
    static const char *const says[] = {METHOD ", \"weight_scale_semantics\": \"inverse\"",
                                       METHOD ", \"weight_scale_semantics\": \" Inverse\"",
                                       METHOD ", \"meta\": {\"weight_scale_semantics\": \"inverse\"}",
                                       METHOD ", \"weight_scale_method\": \"block\""};
    parts p;
    logits_of(FP8, false, &want);
    parts_read(&p, FP8);
    change_factors(&p, true, false, false);
    assert_true(distance_to(&want, folder_of(&p, FP8, NULL, NULL)) > 0.1);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) assert_true(distance_to(&want, folder_of(&p, FP8, METHOD, says[i])) < 1e-4);
    for (int i = 0; i < p.n; i++)
        if (is_factor(&p.at[i])) memset(p.at[i].data.at, 0, 4);
    refused(folder_of(&p, FP8, METHOD, says[0]), "a value is not finite");
    parts_free(&p);
}

/* One factor of a matrix: the same for each of its blocks, bit for bit; with the numbers for inputs that such folders have. */
static void test_whole_factors(void **state) {
    (void)state;
    static logits want;
    parts p;
    parts_read(&p, FP8);
    change_factors(&p, false, true, false);
    logits_of(folder_of(&p, FP8, NULL, NULL), false, &want);
    change_factors(&p, false, true, true);
    refused(folder_of(&p, FP8, NULL, NULL), "_scale_inv has shape []");
    const char *folder = folder_of(&p, FP8, BLOCKS, "\"other\"");
    assert_true(distance_to(&want, folder) == 0);
    parts_free(&p);
    parts_read(&p, folder);
    const uint64_t one = 1;
    const float scale = 3;
    bytes_put(&part_add(&p, "model.layers.0.mlp.up_proj.activation_scale", HN_F32, 1, &one)->data, &scale, sizeof scale);
    hunch_model *m = open_model(folder_of(&p, FP8, BLOCKS, "\"other\""), "best", 1, HUNCH_PRECISION_F32);
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    assert_int_equal(info.n_unused, 0);
    hunch_model_close(&m);
    parts_free(&p);
}

static void test_refused_factors(void **state) {
    (void)state;
    static const struct {
        const char *find, *replace, *words;
    } cases[] = {
        {BLOCKS, BLOCKS ": [64, 64], \"other\"", "quantization_config.weight_block_size: expected [128, 128]"},
        {BLOCKS, BLOCKS ": 128, \"other\"", "quantization_config.weight_block_size: expected [128, 128]"},
        {METHOD, METHOD ", \"weight_scale_semantics\": \"forward\"", "quantization_config.weight_scale_semantics: expected \"inverse\""},
        {METHOD, METHOD ", \"weight_scale_semantics\": 1", "quantization_config.weight_scale_semantics: expected \"inverse\""},
        {METHOD, METHOD ", \"weight_scale_method\": \"row\"", "quantization_config.weight_scale_method (weight_scale_semantics inverse)"},
    };
    parts p;
    parts_read(&p, FP8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused_both(folder_of(&p, FP8, cases[i].find, cases[i].replace), cases[i].words);
    part_drop(&p, "model.layers.1.self_attn.o_proj.weight_scale_inv"); /* a damaged folder of a format that is read */
    refused(folder_of(&p, FP8, NULL, NULL), "tensor model.layers.1.self_attn.o_proj.weight_scale_inv is missing; expected it");
    part *t = part_find(&p, "model.layers.0.self_attn.q_proj.weight_scale_inv"); /* a factor for each row, without a word of it */
    bytes_free(&t->data);
    bytes_zeros(&t->data, 192 * sizeof(float));
    t->type = HN_F32;
    t->n_dims = 1;
    t->dims[0] = 192;
    refused_both(folder_of(&p, FP8, NULL, NULL), "quant_method is fp8 (activation_scheme dynamic), a format that is not read (tensor "
                                                 "model.layers.0.self_attn.q_proj.weight_scale_inv has shape [192])");
    parts_free(&p);
}

/* ---- quantised otherwise -------------------------------------------------------------------------------------------------- */

#define LAST "\"torch_dtype\": \"float32\""

/* The folder's first matrix has another name, or type; `beside`: a file beside config.json. */
typedef struct quantised {
    const char *config, *file, *beside, *name;
    bool bytes;
    const char *words;
} quantised;

static const char *quantised_folder(const quantised *q) {
    parts p;
    char more[600], path[900];
    parts_read(&p, TIED);
    part *t = part_find(&p, "model.layers.0.self_attn.q_proj.weight");
    if (q->name) snprintf(t->name, sizeof t->name, "model.layers.0.self_attn.q_proj.%s", q->name);
    if (q->bytes) {
        t->type = HN_I8;
        t->dims[0] *= 4;
    }
    snprintf(more, sizeof more, LAST "%s%s", q->config ? ", " : "", q->config ? q->config : "");
    const char *folder = folder_of(&p, TIED, LAST, more);
    static const char *const files[] = {"hf_quant_config.json", "quantize_config.json", "quant_config.json"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
        if (q->file && !strcmp(q->file, files[i])) test_file_write(path, q->beside, strlen(q->beside));
    }
    parts_free(&p);
    return folder;
}

#define CONFIG(keys) "\"quantization_config\": {" keys "}"
#define END ", a format that is not read (tensor model.layers.0.self_attn.q_proj.weight "

static void test_quantised(void **state) {
    (void)state;
    static const quantised cases[] = {
        {CONFIG("\"quant_method\": \"awq\", \"bits\": 4, \"version\": \"gemv\""), NULL, NULL, "qweight", false,
         "quantization_config: quant_method is awq (version gemv, bits 4)" END "is missing); expected the model's folder"},
        {CONFIG("\"quant_method\": \"gptq\", \"checkpoint_format\": \"marlin\", \"bits\": 4"), NULL, NULL, "B", false,
         "quant_method is gptq (checkpoint_format marlin, bits 4)" END},
        {CONFIG("\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\", \"config_groups\": {\"group_0\": {\"weights\": "
                "{\"num_bits\": 4, \"type\": \"int\", \"strategy\": \"group\"}}}"),
         NULL, NULL, "weight_packed", false,
         "quant_method is compressed-tensors (format pack-quantized, strategy group, type int, num_bits 4)" END},
        {CONFIG("\"load_in_8bit\": true, \"llm_int8_threshold\": 6.0"), NULL, NULL, NULL, true,
         "quant_method is bitsandbytes (load_in_8bit true)" END "has type I8)"},
        {CONFIG("\"quant_method\": \"hqq\", \"quant_config\": {\"weight_quant_params\": {\"nbits\": 4}}"), NULL, NULL, "W_q", false,
         "quant_method is hqq (nbits 4)" END},
        {CONFIG("\"quant_method\": \"quanto\", \"weights\": \"int4\""), NULL, NULL, "weight._data", false, "quant_method is quanto" END},
        {"\"compression_config\": {\"quant_method\": \"compressed-tensors\"}", NULL, NULL, "weight_packed", false,
         "quantization_config: quant_method is compressed-tensors" END},
        {"\"text_config\": {" CONFIG("\"quant_method\": \"torchao\"") "}", NULL, NULL, "weight_qdata", false,
         "quant_method is torchao" END},
        {NULL, "hf_quant_config.json", "{\"quantization\": {\"quant_algo\": \"NVFP4\"}}", NULL, true,
         "quantization_config of hf_quant_config.json: quant_method is modelopt (quant_algo NVFP4)" END},
        {NULL, "quantize_config.json", "{\"bits\": 4, \"group_size\": 128, \"is_marlin_format\": true}", "qweight", false,
         "quantization_config of quantize_config.json: quant_method is gptq (bits 4, is_marlin_format true)" END},
        {NULL, "quant_config.json", "{\"w_bit\": 4, \"version\": \"GEMV\"}", "qweight", false,
         "quantization_config of quant_config.json: quant_method is awq (version GEMV, w_bit 4)" END},
        /* no method: a tensor is missing */
        {CONFIG(""), NULL, NULL, "qweight", false,
         "q_proj.qweight is packed, and no file says how (tensor model.layers.0.self_attn.q_proj.weight"},
        {NULL, NULL, NULL, "weight_packed", false, "q_proj.weight_packed is packed, and no file says how"},
        {NULL, NULL, NULL, "other", false, "tensor model.layers.0.self_attn.q_proj.weight is missing; expected it with shape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refused_both(quantised_folder(&cases[i]), cases[i].words);
}

/* A method that is only named changes nothing: every tensor is one that is read. */
static void test_named_methods(void **state) {
    (void)state;
    static logits want;
    static const quantised cases[] = {{CONFIG(""), NULL, NULL, NULL, false, NULL},
                                      {"\"quantization_config\": null", NULL, NULL, NULL, false, NULL},
                                      {CONFIG("\"modules_to_not_convert\": [\"lm_head\"]"), NULL, NULL, NULL, false, NULL},
                                      {CONFIG("\"quant_method\": \"compressed-tensors\""), NULL, NULL, NULL, false, NULL},
                                      {NULL, "quant_config.json", "{\"w_bit\": 4}", NULL, false, NULL}};
    logits_of(TIED, false, &want);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_true(distance_to(&want, quantised_folder(&cases[i])) == 0);
}

/* ---- act order ---------------------------------------------------------------------------------------------------------------- */

#define GPTQ "goldens/qwen2-gptq"

/* Reverses the numbers of a matrix' groups: the same weights, in no order. */
static void reverse_groups(part *t) {
    const char *dot = strrchr(t->name, '.');
    const bool list = !strcmp(dot, ".g_idx"), rows = !strcmp(dot, ".scales") || !strcmp(dot, ".qzeros");
    int32_t *of = (int32_t *)(void *)t->data.at;
    const size_t n = rows ? t->dims[1] : 0, row = rows ? t->data.size / n : 0;
    for (size_t i = 0; list && i < t->dims[0]; i++) of[i] = (int32_t)(t->dims[0] / 64) - 1 - of[i]; /* groups of 64 */
    for (size_t g = 0; g < n / 2; g++)
        for (size_t k = 0; k < row; k++) {
            unsigned char *a = t->data.at + g * row + k, *b = t->data.at + (n - 1 - g) * row + k, kept = *a;
            *a = *b;
            *b = kept;
        }
}

static void greedy(hunch_model *m, const char *draft, answer *out) {
    static const hunch_token text[N] = {5, 77, 301, 9, 44, 260, 5, 77, 12};
    hunch_engine *e = open_engine(m, draft, 1, 64, HUNCH_KV_DEFAULT, 64, 128);
    hunch_request r;
    hunch_request_defaults(&r, m);
    r.prompt = text;
    r.n_prompt = N;
    r.max_tokens = 40;
    r.ignore_eos = true;
    r.sampling = (hunch_sampling){.top_p = 1};
    run_requests(e, &r, 1, false, out);
    hunch_engine_close(&e);
}

/* Matrices whose inputs are sorted when they are loaded, as block types: the logits are those of the same folder in order but for the order
 * of sums, and drafts change no token. Converted it is plain floats. */
static void test_act_order(void **state) {
    (void)state;
    static logits want, got;
    parts p;
    char made[800];
    snprintf(made, sizeof made, "%s", test_path("ordered.gguf"));
    parts_read(&p, data_path(GPTQ "/model.safetensors"));
    for (int i = 0; i < p.n; i++) reverse_groups(&p.at[i]);
    const char *folder = folder_of(&p, data_path(GPTQ), NULL, NULL);
    logits_of(data_path(GPTQ), false, &want);
    logits_of(folder, false, &got);
    if (distance(&want, &got) > 1e-5) fail_msg("in act order the logits are %g off", distance(&want, &got));
    assert_true(distance(&want, &got) > 0); /* they are sorted: sums have another order */
    refused_mapped(folder);
    hunch_model *m = open_model(folder, "best", test_threads(), HUNCH_PRECISION_NATIVE);
    assert_true(m->target.sorted_width == 256 && m->target.layer[0].q.dtype == HN_Q5_0 && m->target.layer[0].q.order.mem);
    answer plain = {0}, drafted = {0};
    greedy(m, NULL, &plain);
    greedy(m, "ngram", &drafted);
    assert_same(&plain, &drafted, "act order");
    answer_free(&plain);
    answer_free(&drafted);
    hunch_model_close(&m);
    unlink(made);
    must(hn_convert(folder, made, err));
    if (distance_to(&want, made) > 1e-5) fail_msg("the GGUF is %g off", distance_to(&want, made));
    parts_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_output),      cmocka_unit_test(test_inverse_factors),
                                       cmocka_unit_test(test_whole_factors),   cmocka_unit_test(test_refused_factors),
                                       cmocka_unit_test(test_quantised),       cmocka_unit_test(test_named_methods),
                                       cmocka_unit_test(test_act_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
