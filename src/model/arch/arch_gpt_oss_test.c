/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gpt_oss_test.c - GPT-OSS' folders: spellings of keys, and refusals of keys and tensors by name. Its GGUF files:
 * tests/gpt_oss_gguf_test.c; its results are compared with goldens in tests/golden. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/arch/arch.h"
#include "model/folder_for_tests.h"

#define FLOATS "gpt_oss-bf16"
#define MXFP4 "gpt_oss-mxfp4"

/* ---- a folder -------------------------------------------------------------------------------------------------------- */

static void test_refused(void **state) {
    (void)state;
    static const folder_change cases[] = {
        {FLOATS, "\"sliding_window\": 16", "\"sliding_window\": 0", "sliding_window is 0"},
        {FLOATS, "\"sliding_window\": 16", "\"sliding_window\": null", "sliding_window is null"},
        {FLOATS, "\"swiglu_limit\": 7.0", "\"swiglu_limit\": 0", "swiglu_limit is 0"},
        {FLOATS, "\"swiglu_limit\": 7.0", "\"swiglu_limit\": -7", "swiglu_limit is -7"},
        {FLOATS, "\"swiglu_limit\": 7.0", "\"swiglu_limit\": \"7\"", "swiglu_limit"},
        {FLOATS, "\"swiglu_limit\": 7.0", "\"swiglu_alpha\": 0", "swiglu_alpha is 0"},
        {FLOATS, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 2, \"experts_per_token\": 4", "experts_per_token is 4"},
        {FLOATS, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9", "rows use 9 of 8 experts"},
        {FLOATS, "\"num_local_experts\": 8", "\"other\": 8", "num_local_experts is missing"},
        {FLOATS, "\"attention_bias\": true", "\"attention_bias\": 1", "attention_bias"},
        {FLOATS, "\"attention_bias\": true", "\"use_sliding_window\": true", "use_sliding_window"},
        {FLOATS, "\"silu\"", "\"gelu\"", "hidden_act is \"gelu\""},
        {FLOATS, "\"full_attention\"", "\"linear_attention\"", "layer_types"},
        {FLOATS, "\"rope_type\": \"yarn\"", "\"rope_type\": \"ntk\"", "rope scaling \"ntk\""},
        {FLOATS, "\"truncate\": false", "\"truncate\": 0", "truncate"},
        {FLOATS, "\"factor\": 32.0", "\"factor\": -1", "factor"},
        {FLOATS, "\"beta_fast\": 32.0", "\"beta_fast\": 0", "beta_fast"},
        {FLOATS, "\"original_max_position_embeddings\": 64", "\"original_max_position_embeddings\": 0",
         "original_max_position_embeddings"},
        {MXFP4, "\"quant_method\": \"mxfp4\"", "\"quant_method\": \"awq\"",
         "quantization_config.quant_method is \"awq\", expected mxfp4"},
        {MXFP4, "\"quant_method\": \"mxfp4\"", "\"quant_method\": 4", "quant_method"},
        /* found by the tensors */
        {FLOATS, "\"num_local_experts\": 8", "\"num_local_experts\": 9", "mlp.router.weight has shape [64, 8]; expected [64, 9]"},
        {FLOATS, "\"intermediate_size\": 64", "\"intermediate_size\": 32",
         "experts.gate_up_proj_bias has shape [128, 8]; expected [64, 8]"},
        {MXFP4, "\"intermediate_size\": 64", "\"intermediate_size\": 96",
         "experts.gate_up_proj_bias has shape [128, 8]; expected [192, 8]"},
        {FLOATS, "\"num_attention_heads\": 4", "\"num_attention_heads\": 8", "q_proj.weight has shape"},
    };
    folder_refused_all(cases, sizeof cases / sizeof *cases);
}

/* Every key that is read, with a value of another type or one that no model has: the message names the key. */
static void test_wrong_values(void **state) {
    (void)state;
    static const char *const numbers[] = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                          "num_key_value_heads", "vocab_size", "max_position_embeddings", "rms_norm_eps", "head_dim",
                                          "num_local_experts", "num_experts_per_tok", "experts_per_token", "sliding_window",
                                          "swiglu_limit", "swiglu_alpha", "rope_theta", "rope_scaling.factor", "rope_scaling.beta_fast",
                                          "rope_scaling.beta_slow", "rope_scaling.original_max_position_embeddings"};
    static const char *const others[] = {"hidden_act", "layer_types", "quantization_config.quant_method", "rope_scaling.rope_type",
                                         "attention_bias", "tie_word_embeddings", "rope_scaling.truncate", "rope_scaling"};
    enum { NUMBERS = sizeof numbers / sizeof *numbers, OTHERS = sizeof others / sizeof *others };
    static const char *const values[] = {"-1", "1e30", "\"7\"", "[1]", "{\"a\": 1}", "true"};
    for (size_t k = 0; k < NUMBERS + OTHERS; k++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            const char *key = k < NUMBERS ? numbers[k] : others[k - NUMBERS], *dot = strchr(key, '.'), *last = dot ? dot + 1 : key;
            const bool is_bool = strstr("attention_bias tie_word_embeddings truncate", last) != NULL;
            if ((is_bool && v == 5) || (!strcmp(key, "rope_scaling") && v == 4)) continue; /* of its type */
            json_t *config = json_load_file(HUNCH_TEST_DATA "/goldens/" MXFP4 "/config.json", 0, NULL);
            json_t *in = !dot ? config : json_object_get(config, !strncmp(key, "rope", 4) ? "rope_scaling" : "quantization_config");
            json_object_set_new(in, last, json_loads(values[v], JSON_DECODE_ANY, NULL));
            folder_write_config(config);
            folder_link_weights(MXFP4);
            json_decref(config);
            hn_arch a = {0};
            hunch_error err = {0};
            hn_source *s = folder_open();
            const hunch_status st = hn_model_mark(s, &a, NULL, &err);
            const bool named = strstr(err.message, last) || (!strcmp(last, "rope_type") && strstr(err.message, "rope scaling"));
            if (st != HUNCH_REFUSED || !named)
                fail_msg("%s is %s: status %d, '%s'", key, values[v], st, err.message);
            hn_source_close(&s);
        }
}

static hn_arch read_as(const char *folder, const char *find, const char *replace) {
    hn_arch a;
    hunch_error err = {0};
    folder_write_changed(folder, find, replace);
    hn_source *s = folder_open();
    if (hn_arch_read(&a, s, &err) != HUNCH_OK) fail_msg("%s", err.message);
    hn_source_close(&s);
    return a;
}

static void test_spellings(void **state) {
    (void)state;
    hn_arch a = read_as(MXFP4, "\"layer_types\"", "\"other\"");
    for (int i = 0; i < a.layers; i++) {
        const hn_layer_desc *l = &a.layer[i];
        assert_int_equal(l->window, i % 2 ? 0 : 16);
        assert_true(l->sinks && l->qkv_bias && l->o_bias && !l->qk_norm && l->ffn == HN_FFN_EXPERTS);
        assert_true(l->experts.biases && l->experts.normalised && !l->experts.sigmoid && l->experts.stacked && l->experts.used == 4);
        assert_true(l->experts.limit == 7 && l->experts.alpha == 1.702f);
    }
    hn_arch_fini(&a);
    a = read_as(MXFP4, "\"sliding_window\": 16,", "");
    assert_int_equal(a.layer[0].window, 128);
    hn_arch_fini(&a);
    a = read_as(FLOATS, "\"attention_bias\": true,", "");
    assert_true(a.layer[0].qkv_bias && a.layer[0].o_bias);
    hn_arch_fini(&a);
    a = read_as(FLOATS, "\"attention_bias\": true", "\"attention_bias\": false");
    assert_true(!a.layer[0].qkv_bias && !a.layer[0].o_bias);
    hn_arch_fini(&a);
    a = read_as(FLOATS, "\"swiglu_limit\": 7.0", "\"swiglu_limit\": 5, \"swiglu_alpha\": 1");
    assert_true(a.layer[3].experts.limit == 5 && a.layer[3].experts.alpha == 1);
    hn_arch_fini(&a);
    a = read_as(FLOATS, "\"rope_theta\": 150000", "\"other\": 150000"); /* its usual base */
    assert_true(a.rotation[0].scaling.theta == 150000 && !a.rotation[0].scaling.whole);
    hn_arch_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_wrong_values),
                                       cmocka_unit_test(test_spellings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
