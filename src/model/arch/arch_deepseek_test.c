/* SPDX-License-Identifier: Apache-2.0 */
/* arch_deepseek_test.c - DeepSeek's, Kimi's and GLM's folders with latent attention: refusals of keys and tensors by name, and what a
 * token takes in the cache. Their GGUF files: tests/latent_files_test.c; results are compared with goldens in tests/golden. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/folder_for_tests.h"
#include "model/kv_groups.h"

#define V2 "deepseek_v2-groups"
#define V3 "deepseek_v3-yarn"
#define GLM "glm4_moe_lite-base"

static void test_refused(void **state) {
    (void)state;
    static const folder_change cases[] = {
        {V3, "\"kv_lora_rank\": 32", "\"kv_lora_rank\": 0", "kv_lora_rank is 0"},
        {V3, "\"kv_lora_rank\": 32", "\"kv_lora_rank\": null", "kv_lora_rank is missing"},
        {V3, "\"kv_lora_rank\": 32", "\"kv_lora_rank\": 570", "latent rows of 570 + 16 numbers, expected at most 576"},
        {V3, "\"q_lora_rank\": 32", "\"q_lora_rank\": 0", "q_lora_rank is 0"},
        {V3, "\"q_lora_rank\": 32", "\"q_lora_rank\": \"32\"", "q_lora_rank"},
        {V3, "\"qk_rope_head_dim\": 16", "\"qk_rope_head_dim\": 15", "15 dims of a head are rotated"},
        {V3, "\"qk_rope_head_dim\": 16", "\"qk_rope_head_dim\": 0", "qk_rope_head_dim is 0"},
        {V3, "\"qk_nope_head_dim\": 16", "\"qk_nope_head_dim\": 0", "qk_nope_head_dim is 0"},
        {V3, "\"v_head_dim\": 16", "\"v_head_dim\": -1", "v_head_dim"},
        {V3, "\"n_group\": 4", "\"n_group\": 3", "8 experts in 3 groups"},
        {V3, "\"topk_group\": 2", "\"topk_group\": 5", "of which 5 count"},
        {V3, "\"scoring_func\": \"sigmoid\"", "\"scoring_func\": \"softmax\"", "scoring_func is \"softmax\", expected sigmoid"},
        {V3, "\"topk_method\": \"noaux_tc\"", "\"topk_method\": \"greedy\"", "topk_method is \"greedy\", expected noaux_tc"},
        {V3, "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", "hidden_act is \"gelu\""},
        {V3, "\"hidden_act\": \"silu\"", "\"hidden_act\": \"silu\", \"moe_layer_freq\": 2", "moe_layer_freq is 2"},
        {V3, "\"hidden_act\": \"silu\"", "\"hidden_act\": \"silu\", \"rope_interleave\": 1", "rope_interleave"},
        {V3, "\"mscale_all_dim\": 1.0", "\"mscale_all_dim\": -1", "mscale_all_dim"},
        {V2, "\"scoring_func\": \"softmax\"", "\"scoring_func\": \"sigmoid\"", "scoring_func is \"sigmoid\", expected softmax"},
        {V2, "\"group_limited_greedy\"", "\"noaux_tc\"", "topk_method is \"noaux_tc\", expected greedy or group_limited_greedy"},
        {V2, "\"norm_topk_prob\": false", "\"norm_topk_prob\": true", "norm_topk_prob is true"},
        {GLM, "\"hidden_act\": \"silu\"", "\"hidden_act\": \"silu\", \"mlp_layer_types\": [\"dense\"]",
         "mlp_layer_types, expected a list of 4"},
        {GLM, "\"hidden_act\": \"silu\"", "\"hidden_act\": \"silu\", \"mlp_layer_types\": [\"dense\", \"sparse\", \"x\", \"sparse\"]",
         "mlp_layer_types, expected a list of 4"},
        /* found by the tensors */
        {V3, "\"kv_lora_rank\": 32", "\"kv_lora_rank\": 48", "kv_a_proj_with_mqa.weight has shape [64, 48]; expected [64, 64]"},
        {V3, "\"qk_nope_head_dim\": 16", "\"qk_nope_head_dim\": 32", "q_b_proj.weight has shape [32, 128]; expected [32, 192]"},
        {V3, "\"v_head_dim\": 16", "\"v_head_dim\": 32", "kv_b_proj.weight has shape [32, 128]; expected [32, 192]"},
        {V3, "\"q_lora_rank\": 32", "\"q_lora_rank\": null", "q_proj.weight is missing"},
        {V3, "\"hidden_act\": \"silu\"", "\"hidden_act\": \"silu\", \"attention_bias\": true", "o_proj.bias is missing"},
        {GLM, "\"hidden_act\": \"silu\"", "\"hidden_act\": \"silu\", \"mlp_layer_types\": [\"sparse\", \"sparse\", \"sparse\", \"sparse\"]",
         "layers.0.mlp.gate.weight is missing"},
    };
    folder_refused_all(cases, sizeof cases / sizeof *cases);
}

/* A row is kept once: rank + rope numbers of a layer, whatever the number of heads. */
static void test_row_bytes(void **state) {
    (void)state;
    hn_arch a;
    hunch_error err = {0};
    uint64_t window;
    folder_write_changed(V3, "\"kv_lora_rank\": 32", "\"kv_lora_rank\": 512");
    hn_source *s = folder_open();
    assert_int_equal(hn_arch_read(&a, s, &err), HUNCH_OK);
    assert_int_equal(hn_model_row_bytes(hn_layers_of(&a), HN_BF16, &window), 4 * 2 * (512 + 16));
    assert_int_equal(window, 0);
    hn_arch_fini(&a);
    hn_source_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_row_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
