/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gemma4_test.c - Gemma 4's folders: spellings and defaults of keys, and refusals of keys and tensors by name. Its GGUF files:
 * tests/gemma4_gguf_test.c; its results are compared with goldens in tests/golden. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/arch/arch.h"
#include "model/folder_for_tests.h"

#define E_MODEL "gemma4-e"
#define K_IS_V "gemma4-keqv"
#define MIXTURE "gemma4_text-moe"

static void test_refused(void **state) {
    (void)state;
    static const folder_change cases[] = {
        {E_MODEL, "\"sliding_window\": 16", "\"sliding_window\": 0", "sliding_window is 0"},
        {E_MODEL, "\"global_head_dim\": 32", "\"global_head_dim\": 33", "heads of 33 and 16"},
        {E_MODEL, "\"global_head_dim\": 32", "\"global_head_dim\": 1024", "global_head_dim is 1024"},
        {E_MODEL, "\"global_head_dim\": 32", "\"global_head_dim\": \"32\"", "global_head_dim"},
        {E_MODEL, "\"gelu_pytorch_tanh\"", "\"gelu\"", "hidden_activation is \"gelu\""},
        {E_MODEL, "\"attention_bias\": false", "\"attention_bias\": true", "attention_bias is true"},
        {E_MODEL, "\"attention_bias\": false", "\"use_bidirectional_attention\": \"all\"", "use_bidirectional_attention is all"},
        {E_MODEL, "\"attention_bias\": false", "\"use_bidirectional_attention\": true", "use_bidirectional_attention"},
        {E_MODEL, "\"attention_bias\": false", "\"attn_logit_softcapping\": 50", "attn_logit_softcapping is 50"},
        {E_MODEL, "\"final_logit_softcapping\": 30.0", "\"final_logit_softcapping\": -1", "final_logit_softcapping is -1"},
        {E_MODEL, "\"proportional\"", "\"yarn\"", "full_attention.rope_type is \"yarn\", expected proportional or default"},
        {E_MODEL, "\"default\"", "\"proportional\"", "sliding_attention.rope_type is \"proportional\", expected default"},
        {E_MODEL, "\"partial_rotary_factor\": 0.25", "\"partial_rotary_factor\": 2", "partial_rotary_factor is 2"},
        {E_MODEL, "\"partial_rotary_factor\": 0.25", "\"factor\": 8", "full_attention.factor is 8"},
        {E_MODEL, "\"rope_theta\": 10000.0", "\"rope_theta\": 0", "sliding_attention.rope_theta is 0"},
        {E_MODEL, "\"num_kv_shared_layers\": 3", "\"num_kv_shared_layers\": 6", "num_kv_shared_layers is 6"},
        {E_MODEL, "\"num_kv_shared_layers\": 3", "\"num_kv_shared_layers\": 4", "num_kv_shared_layers is 4: layer 2 would read"},
        {E_MODEL, "\"attention_k_eq_v\": false", "\"attention_k_eq_v\": 0", "attention_k_eq_v"},
        {E_MODEL, "\"use_double_wide_mlp\": true", "\"use_double_wide_mlp\": 2", "use_double_wide_mlp"},
        {E_MODEL, "\"enable_moe_block\": false", "\"enable_moe_block\": \"no\"", "enable_moe_block"},
        {E_MODEL, "\"vocab_size_per_layer_input\": 512", "\"vocab_size_per_layer_input\": 256", "vocab_size_per_layer_input is 256"},
        {E_MODEL, "\"hidden_size_per_layer_input\": 16", "\"hidden_size_per_layer_input\": -1", "hidden_size_per_layer_input"},
        {K_IS_V, "\"num_global_key_value_heads\": 1", "\"num_global_key_value_heads\": 3", "layer 5: 4 heads do not share 3 key heads"},
        {K_IS_V, "\"full_attention\"\n", "\"sliding_attention\"\n", "the last layer has a window, expected full attention"},
        {K_IS_V, "\"full_attention\"\n", "\"linear_attention\"\n", "layer_types"},
        {K_IS_V, "\"num_global_key_value_heads\": 1", "\"per_layer_config\": {\"5\": {\"sliding_window\": 3}}",
         "per_layer_config.5.sliding_window: expected head_dim and num_key_value_heads alone"},
        {K_IS_V, "\"num_global_key_value_heads\": 1", "\"per_layer_config\": {\"1\": {\"head_dim\": 8}}",
         "layer 1 has 2 key heads of 8, expected the 2 of 16 of other layers of its kind"},
        {K_IS_V, "\"num_global_key_value_heads\": 1", "\"per_layer_config\": {\"5\": {\"num_key_value_heads\": 3}}",
         "layer 5: 4 heads do not share 3 key heads"},
        {MIXTURE, "\"num_experts\": 8", "\"num_experts\": null", "num_experts is missing"},
        {MIXTURE, "\"top_k_experts\": 2", "\"top_k_experts\": 9", "rows use 9 of 8 experts"},
        {MIXTURE, "\"top_k_experts\": 2", "\"other\": 2", "top_k_experts is missing"},
        {MIXTURE, "\"moe_intermediate_size\": 32", "\"moe_intermediate_size\": 0", "moe_intermediate_size is 0"},
        /* found by the tensors */
        {E_MODEL, "\"use_double_wide_mlp\": true", "\"use_double_wide_mlp\": false", "layers.3.mlp.gate_proj.weight has shape [64, 256]"},
        {E_MODEL, "\"hidden_size_per_layer_input\": 16", "\"hidden_size_per_layer_input\": 8",
         "embed_tokens_per_layer.weight has shape [96, 512]; expected [48, 512]"},
        {E_MODEL, "\"global_head_dim\": 32", "\"global_head_dim\": 64", "layers.2.self_attn.q_proj.weight has shape"},
        {K_IS_V, "\"attention_k_eq_v\": true", "\"attention_k_eq_v\": false", "layers.5.self_attn.k_proj.weight has shape"},
        {MIXTURE, "\"num_experts\": 8", "\"num_experts\": 9", "router.proj.weight has shape [64, 8]; expected [64, 9]"},
        {MIXTURE, "\"moe_intermediate_size\": 32", "\"moe_intermediate_size\": 16", "experts.gate_up_proj has shape"},
    };
    folder_refused_all(cases, sizeof cases / sizeof *cases);
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

static void test_read(void **state) {
    (void)state;
    static const int back[] = {0, 0, 0, 2, 3, 3};
    hn_arch a = read_as(E_MODEL, "\"attention_bias\": false", "\"use_bidirectional_attention\": \"vision\"");
    for (int i = 0; i < a.layers; i++) {
        const hn_layer_desc *l = &a.layer[i];
        assert_true(l->kv_back == back[i] && l->ffn_width == (i < 3 ? 128 : 256) && l->token_input == 16 && l->scaled && l->v_norm);
        assert_true(l->head_dim == (i % 3 == 2 ? 32 : 16) && l->window == (i % 3 == 2 ? 0 : 16) && l->attention_scale == 1);
        assert_true(l->rotation == (i % 3 == 2 ? 0 : 1) && !l->v_is_k && l->ffn == HN_FFN_GEGLU);
    }
    assert_true(a.rotations == 2 && a.rotation[0].dims == 32 && a.rotation[0].scaling.pairs == 4 && a.rotation[1].dims == 16);
    assert_true(a.rotation[0].freq[3] > 0 && a.rotation[0].freq[4] == 0 && a.rotation[0].freq[15] == 0 && a.logit_cap == 30);
    hn_arch_fini(&a);
    a = read_as(K_IS_V, "\"num_global_key_value_heads\": 1", "\"num_global_key_value_heads\": null");
    assert_true(a.layer[5].v_is_k && !a.layer[4].v_is_k && a.layer[5].kv_heads == 2 && a.layer[0].token_input == 0);
    hn_arch_fini(&a);
    a = read_as(K_IS_V, "\"num_global_key_value_heads\": 1",
                "\"per_layer_config\": {\"5\": {\"head_dim\": 24, \"num_key_value_heads\": 4}}");
    assert_true(a.layer[5].head_dim == 24 && a.layer[5].kv_heads == 4 && a.layer[4].head_dim == 16 && a.layer[4].kv_heads == 2);
    assert_true(a.rotation[0].dims == 24 && a.rotation[1].dims == 16);
    hn_arch_fini(&a);
    a = read_as(K_IS_V, "\"num_global_key_value_heads\": 1", "\"per_layer_config\": {}"); /* the usual ones, whatever other keys say */
    assert_true(a.layer[5].head_dim == 16 && a.layer[5].kv_heads == 2);
    hn_arch_fini(&a);
    a = read_as(K_IS_V, "\"layer_types\"", "\"other\""); /* every sixth, and the last */
    assert_true(a.layer[5].window == 0 && a.layer[4].window == 16 && a.layer[0].window == 16);
    hn_arch_fini(&a);
    a = read_as(K_IS_V, "\"rope_parameters\"", "\"other\"");
    assert_true(a.rotation[0].scaling.pairs == 4 && a.rotation[0].scaling.theta == 1e6 && a.rotation[1].scaling.theta == 1e4);
    hn_arch_fini(&a);
    a = read_as(MIXTURE, "\"final_logit_softcapping\": 30.0", "\"final_logit_softcapping\": null");
    assert_true(a.logit_cap == 0 && a.layer[3].ffn == HN_FFN_BESIDE && a.layer[3].experts.used == 2 && a.layer[3].experts.normalised);
    assert_true(a.layer[3].experts.stacked && a.layer[3].ffn_width == 128 && a.layer[3].experts.width == 32);
    hn_arch_fini(&a);
}

/* 12B's configuration has no keys of what the other sizes have. */
static void test_unified(void **state) {
    (void)state;
    static const char *const absent[] = {"hidden_size_per_layer_input", "vocab_size_per_layer_input", "enable_moe_block", "sliding_window"};
    json_t *config = json_load_file(HUNCH_TEST_DATA "/goldens/" K_IS_V "/config.json", 0, NULL);
    json_t *text = json_object_get(config, "text_config");
    hn_arch a;
    hunch_error err = {0};
    assert_non_null(text);
    json_object_set_new(text, "model_type", json_string("gemma4_unified_text"));
    for (int i = 0; i < 4; i++) assert_int_equal(json_object_del(text, absent[i]), 0);
    folder_write_config(config);
    folder_link_weights(K_IS_V);
    json_decref(config);
    hn_source *s = folder_open();
    if (hn_arch_read(&a, s, &err) != HUNCH_OK) fail_msg("%s", err.message);
    assert_true(a.layer[0].token_input == 0 && a.layer[0].window == 1024 && a.layer[5].v_is_k && a.layer[5].window == 0);
    hn_arch_fini(&a);
    hn_source_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_read), cmocka_unit_test(test_unified)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
