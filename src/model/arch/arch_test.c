/* SPDX-License-Identifier: Apache-2.0 */
/* arch_test.c - the dense families' reading of a folder's config.json, and refusals: the golden folders with a few
 * words changed. Results of the descriptions are compared with goldens in tests/golden. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "format/gguf_writer.h"
#include "model/arch/arch.h"
#include "model/folder_for_tests.h"

/* The golden folder with `find` replaced in its config.json. */
static hunch_status read_changed(const char *folder, const char *find, const char *replace, hn_arch *a,
                                 hunch_error *err) {
    folder_write_changed(folder, find, replace);
    hn_source *s = folder_open();
    const hunch_status st = hn_arch_read(a, s, err);
    hn_source_close(&s);
    return st;
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *folder, *find, *replace, *word;
    } cases[] = {
        {"phi3-fused", "\"hidden_size\": 64", "\"hidden_size\": 64, \"use_sliding_window\": true",
         "use_sliding_window"},
        {"qwen2-window", "\"max_window_layers\": 1", "\"max_window_layers\": -1", "max_window_layers"},
        {"qwen2-window", "\"max_window_layers\": 1",
         "\"layer_types\": [\"full_attention\", \"chunked_attention\", \"full_attention\"]", "layer_types"},
        {"qwen2-window", "\"sliding_window\": 16", "\"sliding_window\": 0", "sliding_window"},
        {"qwen2-window", "\"max_window_layers\": 1", "\"layer_types\": 7", "layer_types"},
        {"mistral-sliding", "\"head_dim\": 16", "\"head_dim\": 16, \"attention_bias\": true", "attention_bias"},
        {"qwen3-dense", "\"attention_bias\": false", "\"attention_bias\": 1", "attention_bias"},
        {"qwen3-dense", "\"attention_bias\": false", "\"mlp_bias\": true", "mlp_bias"},
        {"qwen3-dense", "\"silu\"", "\"gelu\"", "silu"},
        {"qwen3-dense", "\"attention_bias\": false", "\"num_experts\": 128", "128 experts"},
        {"llama-gqa", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 2, \"num_local_experts\": 8",
         "8 experts"},
        {"gemma3_text-local", "\"gelu_pytorch_tanh\"", "\"gelu\"", "gelu_pytorch_tanh"},
        {"gemma3_text-local", "\"head_dim\": 32", "\"head_dim\": 32, \"use_bidirectional_attention\": true",
         "use_bidirectional_attention"},
        {"gemma3_text-cap", "\"final_logit_softcapping\": 5.0", "\"final_logit_softcapping\": -5.0",
         "final_logit_softcapping"},
        {"qwen3-dense", "\"attention_bias\": false", "\"final_logit_softcapping\": 30.0", "final_logit_softcapping"},
        {"gemma3_text-local", "\"head_dim\": 32", "\"head_dim\": 32, \"attn_logit_softcapping\": 50.0",
         "attn_logit_softcapping"},
        {"gemma3_text-local", "\"sliding_window\": 16", "\"sliding_window\": null", "sliding_window"},
        {"gemma3_text-local", "\"sliding_window_pattern\": 6", "\"layer_types\": [\"full_attention\"]", "layer_types"},
        {"gemma3_text-local", "\"sliding_window_pattern\": 6", "\"sliding_window_pattern\": 0",
         "sliding_window_pattern"},
        {"gemma3_text-local", "\"rope_local_base_freq\": 10000.0",
         "\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"yarn\", \"rope_theta\": 1e4}}",
         "sliding layers"},
        {"phi3-longrope", "\"long_factor\"", "\"other\"", "long_factor"},
        {"phi3-fused", "\"rope_theta\": 10000.0", "\"partial_rotary_factor\": 1.5", "partial_rotary_factor"},
        {"phi3-fused", "\"rope_theta\": 10000.0", "\"partial_rotary_factor\": 0.07", "rotated 1"},
        {"phi3-fused", "\"rope_theta\": 10000.0", "\"partial_rotary_factor\": 0.05", "rotated 0"},
        {"mistral-sliding", "\"sliding_window\": 16", "\"sliding_window\": 0", "sliding_window"},
        {"smollm3-nope", "\"no_rope_layers\": [", "\"no_rope_layers\": [1,", "no_rope_layers"},
        {"smollm3-nope", "\"no_rope_layer_interval\": 4", "\"no_rope_layer_interval\": 0", "no_rope_layer_interval"},
        {"seed_oss-bias", "\"attention_out_bias\": false", "\"attention_out_bias\": 1", "attention_out_bias"},
        {"lfm2-conv", "\"full_attn_idxs\": [", "\"full_attn_idxs\": [-1,", "full_attn_idxs[0], expected a layer"},
        {"lfm2-conv", "\"full_attn_idxs\": [", "\"full_attn_idxs\": [], \"other\": [", "none of 3 layers has attention"},
        {"lfm2-conv", "\"conv_L_cache\": 3", "\"conv_L_cache\": 9", "conv_L_cache"},
        {"lfm2-conv", "\"block_ff_dim\": 200", "\"block_ff_dim\": -200", "block_ff_dim"},
        {"lfm2-conv", "\"block_multiple_of\": 32", "\"block_multiple_of\": 0", "block_multiple_of"},
        {"lfm2-conv", "\"conv_bias\": false", "\"conv_bias\": 3", "conv_bias"},
        {"lfm2_moe-bias", "\"conv\",", "\"mamba\",", "layer_types, expected a list of 4 names, full_attention or conv"},
        {"lfm2_moe-bias", "\"num_dense_layers\": 1", "\"num_dense_layers\": 5", "num_dense_layers"},
        {"ernie4_5-bias", "\"use_bias\": true", "\"use_bias\": 1", "use_bias"},
        {"ernie4_5_moe-every", "\"moe_layer_end_index\": -1", "\"moe_layer_end_index\": -2",
         "moe_layer_end_index, expected -1 or a layer"},
        {"ernie4_5_moe-every", "\"use_bias\": true", "\"moe_norm_min\": 0.5", "moe_norm_min is 0.5"},
        {"exaone_moe-shared", "\"LG\",\n \"layer_types\"", "\"LXG\", \"other\"", "letters L and G"},
        {"exaone_moe-shared", "\"mlp_layer_types\": [", "\"mlp_layer_types\": [\"sparse\", \"sparse\", ",
         "mlp_layer_types, expected a list of 2"},
        {"minimax_m2-partial", "\"rotary_dim\": 16", "\"rotary_dim\": 17", "rotated 17"},
        {"glm4-sandwich", "\"attention_bias\": true", "\"attention_bias\": 1", "attention_bias"},
        {"hunyuan_v1_dense-late", "\"alpha\": 1000.0", "\"other\": 1000.0", "rope scaling \"dynamic\""},
        {"hunyuan_v1_moe-shared", "\"moe_topk\": [", "\"moe_topk\": [7, ", "moe_topk, expected a whole number"},
        {"hy_v3-mtp", "\"router_scaling_factor\": 2.826", "\"router_scaling_factor\": -1", "router_scaling_factor is -1"},
        {"olmo3-sliding", "\"rope_theta\": 500000.0", "\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"longrope\"}}",
         "rope_parameters.sliding_attention.rope_type is longrope"},
        {"olmo3-sliding", "\"rope_theta\": 500000.0", "\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"dynamic\", "
         "\"alpha\": 50.0}}", "rope scaling \"dynamic\""},
        {"ministral3-nested", "\"llama_4_scaling_beta\": 0.1", "\"llama_4_scaling_beta\": -1", "llama_4_scaling_beta is -1"},
        {"afmoe-gated", "\"mup_enabled\": true", "\"mup_enabled\": 1", "mup_enabled"},
        {"laguna-headwise", "\"gating\": true", "\"gating\": \"per-row\"", "gating, expected true, false, per-head or per-element"},
        {"laguna-headwise", "\"gating\": true", "\"moe_apply_router_weight_on_input\": true", "moe_apply_router_weight_on_input is true"},
        {"laguna-headwise", "\"num_attention_heads_per_layer\": [", "\"num_attention_heads_per_layer\": [3, ",
         "num_attention_heads_per_layer, expected a whole number"},
        {"step3p7-nested", "\"moe_layers_enum\": \"1,2\"", "\"moe_layers_enum\": \"1;2\"", "moe_layers_enum[0], expected a layer"},
        {"step3p7-nested", "\"swiglu_limits\": [", "\"swiglu_limits\": [-1, ", "swiglu_limits, expected a number"},
        {"step3p7-nested", "\"zero_centered\": true", "\"query_pre_attn_scalar\": 0", "query_pre_attn_scalar is 0"},
        {"mimo_v2_flash-sinks", "\"hybrid_layer_pattern\": [", "\"hybrid_layer_pattern\": [2, ",
         "hybrid_layer_pattern, expected a whole number"},
        {"mimo_v2_flash-sinks", "\"swa_v_head_dim\": 16", "\"swa_v_head_dim\": 8", "swa_v_head_dim is 8"},
        {"mimo_v2_flash-sinks", "\"v_head_dim\": 16", "\"v_head_dim\": 48", "values 48"},
        {"llama-gqa", "\"llama\"", "\"deepseek_v4\"", "compressed attention"},
        {"llama-gqa", "\"llama\"", "\"qwen4_exp_text\"", "qwen4_exp_text"},
        {"granite-mults", "\"residual_multiplier\": 0.6", "\"residual_multiplier\": -0.6", "residual_multiplier"},
        {"llama-gqa", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "evenly"},
        {"llama-gqa", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 1000000000", "num_hidden_layers"},
        {"llama-gqa", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 0", "num_hidden_layers"},
        {"llama-gqa", "\"hidden_size\": 64", "\"hidden_size\": 1e300", "hidden_size"},
        {"llama-gqa", "\"hidden_size\": 64", "\"hidden_size\": 65", "vocabulary"},
        {"llama-gqa", "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": -1", "rms_norm_eps"},
        {"llama-gqa", "\"vocab_size\": 512", "\"vocab_size\": 511", "vocabulary of 511"},
        {"llama-gqa", "\"vocab_size\": 512", "\"vocab_size\": null", "config.json: vocab_size is null"},
        {"gemma3_text-local", "\"num_attention_heads\": 4", "\"num_attention_heads\": null",
         "config.json: num_attention_heads is null"},
        {"gemma3_text-local", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": null",
         "config.json: tie_word_embeddings is null"},
        {"llama-gqa", "\"vocab_size\": 512", "\"vocab_size\": 512, \"text_config\": {\"vocab_size\": \"512\"}", "a string"},
        {"llama-gqa", "\"llama\"", "\"mamba\"", "unknown architecture \"mamba\""},
        {"llama-gqa", "\"llama\"", "\"mixtral\"", "num_local_experts is missing"},
        {"mixtral-top2", "\"num_local_experts\": 8", "\"num_local_experts\": 5000", "num_local_experts is 5000"},
        {"mixtral-top2", "\"num_local_experts\": 8", "\"num_local_experts\": 0", "num_local_experts is 0"},
        {"mixtral-top2", "\"num_local_experts\": 8", "\"num_local_experts\": -8", "num_local_experts"},
        {"mixtral-top2", "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9", "rows use 9 of 8 experts"},
        {"mixtral-top2", "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 1000", "num_experts_per_tok is 1000"},
        {"mixtral-top2", "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 0", "num_experts_per_tok is 0"},
        {"qwen3_moe-top2", "\"moe_intermediate_size\": 32", "\"moe_intermediate_size\": 0", "moe_intermediate_size is 0"},
        {"qwen3_moe-top2", "\"moe_intermediate_size\": 32", "\"other\": 32", "moe_intermediate_size is missing"},
        {"qwen3_moe-top2", "\"norm_topk_prob\": true", "\"norm_topk_prob\": 1", "norm_topk_prob"},
        {"qwen3_moe-top2", "\"norm_topk_prob\": true", "\"use_sliding_window\": true", "use_sliding_window"},
        {"qwen3_moe-mixed", "\"decoder_sparse_step\": 2", "\"decoder_sparse_step\": 0", "decoder_sparse_step is 0"},
        {"qwen3_moe-mixed", "\"mlp_only_layers\": [", "\"mlp_only_layers\": [6, ", "mlp_only_layers[0], expected a layer from 0 to 5"},
        {"qwen3_moe-mixed", "\"mlp_only_layers\": [", "\"mlp_only_layers\": 1, \"other\": [", "mlp_only_layers, expected a list"},
        {"glm4_moe-groups", "\"n_group\": 4", "\"n_group\": 5", "16 experts in 5 groups"},
        {"glm4_moe-groups", "\"topk_group\": 2", "\"topk_group\": 5", "of which 5 count"},
        {"glm4_moe-groups", "\"num_experts_per_tok\": 3", "\"num_experts_per_tok\": 9", "rows use 9 of 8 experts"},
        {"glm4_moe-groups", "\"first_k_dense_replace\": 2", "\"first_k_dense_replace\": 6", "first_k_dense_replace is 6"},
        {"glm4_moe-groups", "\"n_shared_experts\": 2", "\"n_shared_experts\": 1e9", "n_shared_experts"},
        {"glm4_moe-groups", "\"routed_scaling_factor\": 1.5", "\"routed_scaling_factor\": -1.5", "routed_scaling_factor is -1.5"},
        {"glm4_moe-groups", "\"use_qk_norm\": false", "\"use_qk_norm\": \"no\"", "use_qk_norm"},
        {"llama-gqa", "\"model_type\"", "\"other\"", "model_type is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        const hunch_status st = read_changed(cases[i].folder, cases[i].find, cases[i].replace, &a, &err);
        if (st != HUNCH_REFUSED || !strstr(err.message, cases[i].word))
            fail_msg("%s with %s: status %d, '%s'", cases[i].folder, cases[i].replace, st, err.message);
        assert_null(a.layer); /* nothing is allocated */
    }
}

static double context_of(const hn_arch *a) { return a->context; }
static double width_of(const hn_arch *a) { return a->layer[0].ffn_width; }
static double heads_of(const hn_arch *a) { return a->layer[1].kv_heads; }
static double groups_of(const hn_arch *a) { return a->layer[a->layers - 1].experts.groups_used; }
static double used_of(const hn_arch *a) { return a->layer[a->layers - 1].experts.used; }
static double experts_of(const hn_arch *a) { return a->layer[a->layers - 1].experts.count; }
static double attending_of(const hn_arch *a) { return a->layer[1].mixer[0].kind == &hn_mixer_attention; }
static double gated_of(const hn_arch *a) { return a->layer[0].gate.of_numbers; }
static double base_of(const hn_arch *a) { return a->rotation[0].scaling.theta; }
static double sliding_base_of(const hn_arch *a) { return a->rotation[1].scaling.theta; }
static double transposed_of(const hn_arch *a) { return a->rotation[0].dims; }

/* What an absent key, or one that a family's reference reads in its own way, means. */
static void test_absent(void **state) {
    (void)state;
    static const struct {
        const char *folder, *find, *replace;
        double (*value)(const hn_arch *a);
        double expected;
    } cases[] = {
        {"lfm2-conv", "\"max_position_embeddings\"", "\"other\"", context_of, 128000},
        {"afmoe-gated", "\"max_position_embeddings\"", "\"other\"", context_of, 16384},
        {"ernie4_5_moe-every", "\"max_position_embeddings\"", "\"other\"", context_of, 131072},
        {"ministral3-nested", "\"max_position_embeddings\"", "\"other\"", context_of, 262144},
        {"lfm2-conv", "\"block_ffn_dim_multiplier\": 1.0", "\"block_ffn_dim_multiplier\": null", width_of, 133},
        {"lfm2-conv", "\"block_ffn_dim_multiplier\": 1.0", "\"block_ffn_dim_multiplier\": 2.0", width_of, 288},
        {"lfm2-conv", "\"num_attention_heads\": 4,\n \"num_key_value_heads\": 2", "\"num_attention_heads\": 16", heads_of, 8},
        {"lfm2-conv", "\"full_attn_idxs\": [", "\"full_attn_idxs\": [30, ", attending_of, 1},
        {"lfm2_moe-bias", "\"num_experts_per_tok\"", "\"other\"", used_of, 4},
        {"lfm2_moe-bias", "\"num_experts\"", "\"other\"", experts_of, 32},
        {"glm4_moe-groups", "\"topk_group\"", "\"other\"", groups_of, 1},
        {"ernie4_5_moe-every", "\"moe_layer_end_index\": -1", "\"moe_layer_end_index\": 27", experts_of, 0},
        {"laguna-headwise", "\"gating\": true", "\"gating\": false", gated_of, 1},
        {"laguna-headwise", "\"gating\": true", "\"gating\": \"per-head\"", gated_of, 0},
        {"ministral3-nested", "\"rope_theta\"", "\"other\"", base_of, 1e4},
        {"mixtral-top2", "\"num_experts_per_tok\"", "\"other\"", used_of, 2},
        {"qwen2_moe-gated", "\"num_experts_per_tok\"", "\"other\"", used_of, 4},
        {"qwen3-dense", "\"silu\"", "\"swish\"", width_of, 128},
        {"olmo3-sliding", "\"rope_theta\": 500000.0", "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\", "
         "\"rope_theta\": 1e4}}", sliding_base_of, 5e5},
        {"mimo_v2_flash-sinks", "\"rope_theta\"",
         "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e6}}, \"other\"", transposed_of, 8},
        {"glm4-sandwich", "\"partial_rotary_factor\": 0.5", "\"partial_rotary_factor\": 0.25, \"rope_parameters\": "
         "{\"rope_theta\": 1e4, \"rope_type\": \"default\", \"partial_rotary_factor\": 1.0}", transposed_of, 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        if (read_changed(cases[i].folder, cases[i].find, cases[i].replace, &a, &err))
            fail_msg("%s with %s: %s", cases[i].folder, cases[i].replace, err.message);
        if (cases[i].value(&a) != cases[i].expected)
            fail_msg("%s with %s: %g, expected %g", cases[i].folder, cases[i].replace, cases[i].value(&a), cases[i].expected);
        hn_arch_fini(&a);
    }
}

/* Descriptions that disagree with the tensors: refused by the tensor's name and shape. */
static void test_wrong_experts(void **state) {
    (void)state;
    static const struct {
        const char *folder, *find, *replace, *word;
    } cases[] = {{"qwen3_moe-top2", "\"num_experts\": 8", "\"num_experts\": 6",
                  "layers.0.mlp.gate.weight has shape [64, 8]; expected [64, 6]"},
                 {"qwen3_moe-top2", "\"num_experts\": 8", "\"num_experts\": 9",
                  "layers.0.mlp.gate.weight has shape [64, 8]; expected [64, 9]"},
                 {"qwen3_moe-top2", "\"moe_intermediate_size\": 32", "\"moe_intermediate_size\": 48",
                  "experts.0.gate_proj.weight has shape"},
                 {"qwen3_moe-top2", "\"mlp_only_layers\": []", "\"mlp_only_layers\": [1]",
                  "layers.1.mlp.gate_proj.weight is missing"},
                 {"qwen3_moe-mixed", "\"num_experts\": 12", "\"num_experts\": 11",
                  "mlp.gate.weight has shape [64, 12]; expected [64, 11]"},
                 {"qwen3_moe-mixed", "\"moe_intermediate_size\": 24", "\"moe_intermediate_size\": 12",
                  "experts.gate_up_proj has shape [64, 48, 12]"},
                 {"qwen3_moe-mixed", "\"decoder_sparse_step\": 2", "\"decoder_sparse_step\": 1",
                  "layers.0.mlp.gate.weight is missing"},
                 {"glm4_moe-groups", "\"first_k_dense_replace\": 2", "\"first_k_dense_replace\": 3",
                  "layers.2.mlp.gate_proj.weight is missing"},
                 {"glm4_moe-groups", "\"first_k_dense_replace\": 2", "\"first_k_dense_replace\": 1",
                  "layers.1.mlp.gate.weight is missing"},
                 {"glm4_moe-groups", "\"n_shared_experts\": 2", "\"n_shared_experts\": 1",
                  "shared_experts.gate_proj.weight has shape"},
                 {"qwen2_moe-gated", "\"shared_expert_intermediate_size\": 56",
                  "\"shared_expert_intermediate_size\": 55",
                  "shared_expert.gate_proj.weight has shape [64, 56]; expected [64, 55]"},
                 {"mixtral-window", "\"model_type\": \"mixtral\"",
                  "\"model_type\": \"qwen3_moe\", \"num_experts\": 4, \"moe_intermediate_size\": 40", "is missing"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        folder_refused(cases[i].folder, cases[i].find, cases[i].replace, cases[i].word);
}

static hn_arch read_as(const char *folder, const char *find, const char *replace) {
    hn_arch a;
    hunch_error err = {0};
    if (read_changed(folder, find, replace, &a, &err) != HUNCH_OK) fail_msg("%s", err.message);
    return a;
}

/* Other spellings. */
static void test_spellings(void **state) {
    (void)state;
    hn_arch a = read_as("gemma3_text-local", "\"rope_theta\": 1000000.0,", ""), /* its usual base */
        b = read_as(
            "gemma3_text-local", "\"rope_theta\": 1000000.0,",
            "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 8.0, \"rope_theta\": "
            "1000000.0}, \"sliding_attention\": {\"rope_theta\": 500.0}},");
    for (int i = 0; i < a.rotation[0].dims / 2; i++) {
        assert_true(fabs(a.rotation[0].freq[i] - b.rotation[0].freq[i]) <= 1e-12 * a.rotation[0].freq[i]);
        assert_true(fabs(a.rotation[1].freq[i] - pow(10000, -2.0 * i / a.rotation[0].dims)) < 1e-12);
        assert_true(fabs(b.rotation[1].freq[i] - pow(500, -2.0 * i / a.rotation[0].dims)) < 1e-12);
    }
    assert_true(fabs(a.rotation[0].freq[0] - 1.0 / 8) < 1e-12);
    for (int i = 0; i < a.layers; i++) assert_int_equal(a.layer[i].window, i == 5 ? 0 : 16);
    hn_arch_fini(&a);
    hn_arch_fini(&b);
    a = read_as(
        "gemma3_text-local", "\"sliding_window_pattern\": 6",
        "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\", \"sliding_attention\", "
        "\"sliding_attention\", \"full_attention\"]");
    for (int i = 0; i < a.layers; i++) assert_int_equal(a.layer[i].rotation, i != 0 && i != 5);
    hn_arch_fini(&a);
    a = read_as("gemma3_text-cap", "5.0", "2.5");
    assert_true(a.logit_cap == 2.5f);
    hn_arch_fini(&a);
    a = read_as("gemma3_text-cap", "5.0", "null");
    assert_true(a.logit_cap == 0);
    hn_arch_fini(&a);
    a = read_as("mistral-sliding", "\"sliding_window\": 16", "\"sliding_window\": null");
    assert_int_equal(a.layer[0].window, 0);
    hn_arch_fini(&a);
    a = read_as("phi3-fused", "\"rope_theta\": 10000.0", "\"partial_rotary_factor\": 0.5");
    assert_int_equal(a.rotation[0].dims, a.layer[0].head_dim / 2);
    hn_arch_fini(&a);
    a = read_as("smollm3-nope", "\"no_rope_layers\"", "\"other\"");
    for (int i = 0; i < a.layers; i++) assert_int_equal(a.layer[i].rotation, i == 3 ? HN_NO_ROTATION : 0);
    hn_arch_fini(&a);
    a = read_as("mistral-sliding", "\"rope_theta\": 10000.0", "\"rope_scaling\": null"); /* as in Llama 2 */
    assert_true(fabs(a.rotation[0].freq[1] - pow(10000, -2.0 / a.rotation[0].dims)) < 1e-12 && a.rotation[0].scale == 1);
    hn_arch_fini(&a);
}

/* Layers with a window may be scaled as those with full attention are, or in another way. */
static void test_scaled_windows(void **state) {
    (void)state;
    hn_arch a = read_as("olmo3-sliding", "\"rope_theta\": 500000.0",
                        "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\", \"rope_theta\": 1e4, \"factor\": 4.0, "
                        "\"original_max_position_embeddings\": 64}, \"sliding_attention\": {\"rope_type\": \"yarn\", \"rope_theta\": 1e4, "
                        "\"factor\": 4.0, \"original_max_position_embeddings\": 64}}"),
           b = read_as("olmo3-sliding", "\"rope_theta\": 500000.0",
                       "\"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"linear\", \"rope_theta\": 1e4, \"factor\": 4.0}}");
    assert_true(a.rotations == 2 && a.rotation[1].scale == a.rotation[0].scale && a.rotation[1].scale > 1 && b.rotation[1].scale == 1);
    for (int i = 0; i < a.rotation[0].dims / 2; i++) {
        assert_true(a.rotation[1].freq[i] == a.rotation[0].freq[i]);
        assert_true(fabs(b.rotation[1].freq[i] - pow(1e4, -2.0 * i / b.rotation[1].dims) / 4) < 1e-12);
    }
    hn_arch_fini(&a);
    hn_arch_fini(&b);
}

/* The layers with windows, by each spelling. */
static void test_windows(void **state) {
    (void)state;
    static const struct {
        const char *folder, *find, *replace;
        unsigned slide; /* bit i: layer i has a window of 16 */
    } cases[] = {
        {"qwen2-window", "\"max_window_layers\": 1", "\"max_window_layers\": 2", 4},
        {"qwen2-window", "\"max_window_layers\": 1", "\"max_window_layers\": 0", 7},
        {"qwen2-window", "\"max_window_layers\": 1", "\"other\": 1", 0}, /* 28 by default */
        {"qwen2-window", "\"max_window_layers\": 1",
         "\"max_window_layers\": 3, \"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\"]",
         2},
        {"qwen2-window", "\"use_sliding_window\": true", "\"use_sliding_window\": false", 0},
        {"qwen2-window", "\"sliding_window\": 16", "\"sliding_window\": null", 0},
        {"smollm3-window", "\"use_sliding_window\": true", "\"use_sliding_window\": false", 0},
        {"smollm3-window", "\"no_rope_layer_interval\": 2", "\"no_rope_layer_interval\": 3", 10}, /* the list has priority */
        {"mistral-sliding", "\"head_dim\": 16", "\"head_dim\": 16", 15},
        {"mistral-sliding", "\"max_position_embeddings\": 4096", "\"max_position_embeddings\": 17", 15},
        {"mistral-sliding", "\"max_position_embeddings\": 4096", "\"max_position_embeddings\": 16", 0}, /* as long as the context */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a = read_as(cases[i].folder, cases[i].find, cases[i].replace);
        for (int k = 0; k < a.layers; k++)
            if (a.layer[k].window != (cases[i].slide >> k & 1 ? 16 : 0))
                fail_msg("%s with %s: layer %d has a window of %d", cases[i].folder, cases[i].replace, k,
                         a.layer[k].window);
        hn_arch_fini(&a);
    }
}

static void test_biases(void **state) {
    (void)state;
    hn_arch a = read_as("llama-bias", "\"mlp_bias\": true", "\"mlp_bias\": false");
    assert_true(a.layer[0].qkv_bias && a.layer[0].o_bias && !a.layer[0].gate_up_bias && !a.layer[0].down_bias);
    hn_arch_fini(&a);
    a = read_as("llama-bias", "\"attention_bias\": true", "\"attention_bias\": false");
    assert_true(!a.layer[0].qkv_bias && !a.layer[0].o_bias && a.layer[0].gate_up_bias && a.layer[0].down_bias);
    hn_arch_fini(&a);
    a = read_as("qwen2-bias", "\"use_sliding_window\"", "\"other\"");
    assert_true(a.layer[0].qkv_bias && !a.layer[0].o_bias);
    hn_arch_fini(&a);
}

/* What tie_word_embeddings, or the family's default, says counts only where the two tensors may be one: where they are the same, bit for
 * bit, or there is one. */
static void test_tied(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int says; /* -1: nothing */
        folder_end output;
        bool tied;
    } cases[] = {{"llama", -1, FOLDER_NONE, true},  {"llama", -1, FOLDER_SAME, false},  {"llama", 1, FOLDER_SAME, true},
                 {"llama", 1, FOLDER_OTHER, false}, {"llama", 0, FOLDER_SAME, false},   {"llama", 0, FOLDER_NONE, true},
                 {"smollm3", -1, FOLDER_SAME, true}, {"smollm3", -1, FOLDER_OTHER, false}, {"smollm3", 0, FOLDER_SAME, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        json_t *config = json_load_file(HUNCH_TEST_DATA "/goldens/mistral-sliding/config.json", 0, NULL);
        assert_int_equal(json_object_del(config, "tie_word_embeddings"), 0);
        if (cases[i].says >= 0) json_object_set_new(config, "tie_word_embeddings", json_boolean(cases[i].says));
        assert_int_equal(json_object_set_new(config, "model_type", json_string(cases[i].type)), 0);
        folder_write_config(config);
        folder_write_ends((int)json_integer_value(json_object_get(config, "vocab_size")),
                          (int)json_integer_value(json_object_get(config, "hidden_size")), cases[i].output);
        json_decref(config);
        hn_source *s = folder_open();
        if (hn_arch_read(&a, s, &err) != HUNCH_OK) fail_msg("%s", err.message);
        if (a.tied != cases[i].tied) fail_msg("case %zu: tied %d", i, a.tied);
        if (cases[i].output != FOLDER_NONE) assert_true(hn_source_find(s, "lm_head.weight")->used);
        hn_arch_fini(&a);
        hn_source_close(&s);
    }
}

/* transformers writes the number of experts under the name of one version or another. */
static void test_names_of_experts(void **state) {
    (void)state;
    static const char *const names[] = {"num_experts", "num_local_experts", "n_routed_experts"};
    static const struct {
        const char *folder, *says;
        int count;
    } cases[] = {{"qwen3_moe-top2", "\"num_experts\": 8", 8},
                 {"mixtral-top2", "\"num_local_experts\": 8", 8},
                 {"glm4_moe-groups", "\"n_routed_experts\": 16", 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 3; k++) {
            hn_arch a;
            hunch_error err = {0};
            char says[60];
            snprintf(says, sizeof says, "\"%s\": %d", names[k], cases[i].count);
            if (read_changed(cases[i].folder, cases[i].says, says, &a, &err) != HUNCH_OK) fail_msg("%s", err.message);
            assert_int_equal(a.layer[a.layers - 1].experts.count, cases[i].count);
            hn_arch_fini(&a);
        }
}

/* ---- Gemma 3 as it is published ---------------------------------------------------------------------------------------- */

static void assert_gemma(const hn_arch *a, int window, int head_dim, double width, double full_base_by) {
    for (int i = 0; i < a->layers; i++) {
        const hn_layer_desc *l = &a->layer[i];
        assert_int_equal(l->window, (i + 1) % 6 ? window : 0);
        assert_int_equal(l->rotation, (i + 1) % 6 != 0);
        assert_int_equal(l->head_dim, head_dim);
        assert_true(fabs((double)l->attention_scale * sqrt(width) - 1) < 1e-6);
        assert_true(l->qk_norm && l->post_norms && l->ffn == HN_FFN_GEGLU && !l->qkv_bias);
    }
    assert_true(a->tied && !a->rope_interleaved);
    assert_true(fabs((double)a->embed_scale - sqrt(a->hidden)) < 1e-4);
    assert_true(fabs((double)a->norm_eps - 1e-6) < 1e-12);
    for (int i = 0; i < head_dim / 2; i++) {
        assert_true(fabs(a->rotation[0].freq[i] * full_base_by * pow(1e6, 2.0 * i / head_dim) - 1) < 1e-9);
        assert_true(fabs(a->rotation[1].freq[i] * pow(1e4, 2.0 * i / head_dim) - 1) < 1e-9);
    }
}

/* Folders with vision have few keys of their text model: the rest are defaults of its maker's library. */
static void test_gemma_vision_folders(void **state) {
    (void)state;
    static const struct {
        const char *config, *embedding;
        int hidden, heads, kv_heads, head_dim, window;
        double width;
    } cases[] = {
        {"{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"model_type\": \"gemma3\", \"vision_config\": "
         "{\"hidden_size\": 1152},"
         " \"text_config\": {\"hidden_size\": 2560, \"intermediate_size\": 10240, \"model_type\": \"gemma3_text\","
         " \"num_hidden_layers\": 34, \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"}, "
         "\"sliding_window\": 1024}}",
         "language_model.model.embed_tokens.weight", 2560, 8, 4, 256, 1024, 256},
        {"{\"model_type\": \"gemma3\", \"text_config\": {\"hidden_size\": 5376, \"intermediate_size\": 21504, "
         "\"model_type\": \"gemma3_text\","
         " \"num_attention_heads\": 32, \"num_key_value_heads\": 16, \"head_dim\": 128, \"num_hidden_layers\": 62,"
         " \"query_pre_attn_scalar\": 168, \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"}, "
         "\"sliding_window\": 1024}}",
         "model.language_model.embed_tokens.weight", 5376, 32, 16, 128, 1024, 168},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hn_arch a;
        hunch_error err = {0};
        folder_write("config.json", cases[i].config, strlen(cases[i].config));
        folder_write_embedding(cases[i].embedding, 3, cases[i].hidden);
        hn_source *s = folder_open();
        if (hn_arch_read(&a, s, &err) != HUNCH_OK) fail_msg("%s", err.message);
        assert_gemma(&a, cases[i].window, cases[i].head_dim, cases[i].width, 8);
        assert_int_equal(a.layer[0].heads, cases[i].heads);
        assert_int_equal(a.layer[0].kv_heads, cases[i].kv_heads);
        assert_int_equal(a.context, 131072);
        assert_true(a.files.norms_less_one);
        hn_arch_fini(&a);
        hn_source_close(&s);
    }
}

typedef struct gemma_gguf {
    int layers, hidden, heads, kv_heads, head_dim, window;
    double factor, local_base; /* 0: no key */
    int period;
    const int32_t *local; /* [layers] instead of a period */
} gemma_gguf;

static hn_source *write_gemma_gguf(const gemma_gguf *g) {
    const struct {
        const char *key;
        int value;
    } sizes[] = {{"gemma3.context_length", 32768},
                 {"gemma3.embedding_length", g->hidden},
                 {"gemma3.block_count", g->layers},
                 {"gemma3.feed_forward_length", 8},
                 {"gemma3.attention.head_count", g->heads},
                 {"gemma3.attention.head_count_kv", g->kv_heads},
                 {"gemma3.attention.key_length", g->head_dim},
                 {"gemma3.attention.value_length", g->head_dim},
                 {"gemma3.attention.sliding_window", g->window},
                 {"gemma3.attention.sliding_window_pattern", g->period}};
    const uint64_t dims[2] = {(uint64_t)g->hidden, 1};
    static const uint16_t zeros[5376];
    char path[1200];
    hn_gguf_writer *w = NULL;
    hn_source *s = NULL;
    snprintf(path, sizeof path, "%s", test_path("gemma.gguf"));
    assert_int_equal(hn_gguf_writer_open(&w, path, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_put_str(w, "general.architecture", "gemma3", 6, NULL), HUNCH_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value)
            assert_int_equal(hn_gguf_put_u32(w, sizes[i].key, (uint32_t)sizes[i].value, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_put_f32(w, "gemma3.attention.layer_norm_rms_epsilon", 1e-6f, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_put_f32(w, "gemma3.rope.freq_base", 1e6f, NULL), HUNCH_OK);
    if (g->local_base > 0)
        assert_int_equal(hn_gguf_put_f32(w, "gemma3.rope.freq_base_swa", (float)g->local_base, NULL), HUNCH_OK);
    if (g->local)
        assert_int_equal(
            hn_gguf_put_i32s(w, "gemma3.attention.sliding_window_pattern", g->local, (size_t)g->layers, NULL),
            HUNCH_OK);
    if (g->factor > 0)
        assert_int_equal(hn_gguf_put_f32(w, "gemma3.rope.scaling.factor", (float)g->factor, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_declare(w, "token_embd.weight", HN_F16, 2, dims, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_data(w, zeros, (size_t)g->hidden * 2, NULL), HUNCH_OK);
    assert_int_equal(hn_gguf_writer_finish(&w, NULL), HUNCH_OK);
    assert_int_equal(hn_source_open(&s, path, NULL), HUNCH_OK);
    return s;
}

static hn_arch read_gemma_gguf(gemma_gguf g) {
    hn_arch a;
    hunch_error err = {0};
    hn_source *s = write_gemma_gguf(&g);
    if (hn_arch_read(&a, s, &err) != HUNCH_OK) fail_msg("%s", err.message);
    hn_source_close(&s);
    return a;
}

/* The keys that published files have: 270M and 1B without scaling, larger ones with a factor, the largest with its own scale. */
static void test_gemma_ggufs(void **state) {
    (void)state;
    hn_arch a = read_gemma_gguf((gemma_gguf){18, 640, 4, 1, 256, 512, 0, 0, 0, NULL});
    assert_gemma(&a, 512, 256, 256, 1);
    assert_true(!a.files.norms_less_one);
    hn_arch_fini(&a);
    a = read_gemma_gguf((gemma_gguf){34, 2560, 8, 4, 256, 1024, 8, 1e4, 6, NULL});
    assert_gemma(&a, 1024, 256, 256, 8);
    hn_arch_fini(&a);
    a = read_gemma_gguf((gemma_gguf){62, 5376, 32, 16, 128, 1024, 8, 0, 0, NULL});
    assert_gemma(&a, 1024, 128, 168, 8);
    hn_arch_fini(&a);
    a = read_gemma_gguf((gemma_gguf){4, 640, 4, 1, 256, 512, 0, 500, 2, NULL});
    for (int i = 0; i < 4; i++) assert_int_equal(a.layer[i].rotation, i % 2 == 0);
    assert_true(fabs(a.rotation[1].freq[1] - pow(500, -2.0 / 256)) < 1e-9);
    hn_arch_fini(&a);
    static const int32_t flags[] = {1, 0, 0, 1};
    a = read_gemma_gguf((gemma_gguf){4, 640, 4, 1, 256, 512, 0, 0, 0, flags});
    for (int i = 0; i < 4; i++) assert_int_equal(a.layer[i].window, flags[i] ? 512 : 0);
    hn_arch_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused), cmocka_unit_test(test_absent),
                                       cmocka_unit_test(test_wrong_experts),
                                       cmocka_unit_test(test_spellings),
                                       cmocka_unit_test(test_scaled_windows), cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_biases),
                                       cmocka_unit_test(test_tied), cmocka_unit_test(test_names_of_experts),
                                       cmocka_unit_test(test_gemma_vision_folders),
                                       cmocka_unit_test(test_gemma_ggufs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
