/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_head_test.c - the command with draft heads that are damaged, contradict themselves, or were made for another model: the
 * documented exit code and one line that names the file and the error in it, within a gigabyte and seconds (hostile_limits.h). */
#include "hostile_head.h"

/* ---- one head, one change at a time -------------------------------------------------------------------------------------- */

/* README: "A draft head that is damaged, inconsistent or made for another model is refused with one line that says
 * why." */
static void test_config(void **state) {
    (void)state;
    static const struct {
        form form;
        const char *change, *says; /* change: merged into config.json */
    } cases[] = {
        {EAGLE, "{\"num_hidden_layers\": 0}", "num_hidden_layers is 0"},
        {EAGLE, "{\"num_hidden_layers\": 17}", "17 layers, expected a draft head of at most 16"},
        {EAGLE, "{\"num_hidden_layers\": 2}", "tensor layers.1.self_attn.q_proj.weight is missing"},
        {EAGLE, "{\"num_hidden_layers\": \"1\"}", "num_hidden_layers is a string"},
        {EAGLE, "{\"num_hidden_layers\": null}", "num_hidden_layers is null"},
        {EAGLE, "{\"hidden_size\": 32}", "hidden size 32, and no embedding of its own: expected the target's 64"},
        {EAGLE, "{\"hidden_size\": -1}", "hidden_size is -1"},
        {EAGLE, "{\"hidden_size\": {}}", "hidden_size is an object"},
        {EAGLE, "{\"hidden_size\": 1e300}", "hidden_size is 1e+300"},
        {EAGLE, "{\"num_attention_heads\": 0}", "num_attention_heads is 0"},
        {EAGLE, "{\"num_attention_heads\": 7}", "7 heads do not share 2 key heads"},
        {EAGLE, "{\"num_key_value_heads\": 3}", "4 heads do not share 3 key heads"},
        {EAGLE, "{\"head_dim\": 3}", "head size 3"},
        {EAGLE, "{\"head_dim\": 4096}", "head_dim is 4096"},
        {EAGLE, "{\"intermediate_size\": 100}", "model.safetensors: tensor layers.0.mlp.gate_proj.weight has shape [64, 96]"},
        {EAGLE, "{\"intermediate_size\": \"x\"}", "intermediate_size is a string"},
        {EAGLE, "{\"rms_norm_eps\": -1}", "rms_norm_eps is -1"},
        {EAGLE, "{\"rope_theta\": -1}", "rope_theta is -1"},
        {EAGLE, "{\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2}}", "rope scaling \"dynamic\""},
        {EAGLE, "{\"hidden_act\": \"relu\"}", "hidden_act is \"relu\""},
        {EAGLE, "{\"attention_bias\": 5}", "attention_bias is 5"},
        {EAGLE, "{\"vocab_size\": 479}", "vocab_size is 479, expected the 480 of this target"},
        {EAGLE, "{\"vocab_size\": 128256}", "vocab_size is 128256"},
        {EAGLE, "{\"vocab_size\": \"480\"}", "vocab_size is a string"},
        {EAGLE, "{\"draft_vocab_size\": 77}", "draft_vocab_size is 77, expected the 480 tokens of its output"},
        {EAGLE3, "{\"draft_vocab_size\": 77}", "draft_vocab_size is 77, expected the 160 tokens of its output"},
        {EAGLE3, "{\"target_hidden_size\": 4096}", "target_hidden_size is 4096, expected the 64 of this target"},
        {EAGLE3, "{\"hidden_size\": 32}", "hidden size 32, and no embedding of its own: expected the target's 64"},
        {EAGLE3, "{\"norm_before_residual\": 3}", "norm_before_residual is 3"},
        {EAGLE3, "{\"norm_output\": \"x\"}", "norm_output is a string"},
        {EAGLE3, "{\"norm_before_fc\": 1}", "norm_before_fc is 1"},
        {EAGLE3, "{\"fc_norm\": [true]}", "fc_norm is an array"},
        {EAGLE3, "{\"norm_before_fc\": true}", "tensor input_norm.weight is missing; expected it with shape [192]"},
        {EAGLE3, "{\"fc_norm\": true}", "tensor fc_norm.0.weight is missing; expected it with shape [64]"},
        {SPECULATORS, "{\"speculators_model_type\": \"peagle\"}", "speculators_model_type is \"peagle\", expected eagle3"},
        {SPECULATORS, "{\"speculators_model_type\": 3}", "speculators_model_type is 3"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": 7}", "eagle_aux_hidden_state_layer_ids: expected a list of 1 to 16"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": []}", "eagle_aux_hidden_state_layer_ids: expected a list of 1 to 16"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}", "a list of 1 to 16"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4, 9]}", "reads the state at layer 9, expected 0 to 8"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4, 257]}", "expected layers of 0 to 256"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4, -1]}", "expected layers of 0 to 256"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4, \"5\"]}", "expected layers of 0 to 256"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4, 1e300]}", "expected layers of 0 to 256"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4, 1099511627776]}", "expected layers of 0 to 256"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4, 4]}", "reads the state at layer 4 twice"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4]}", "fc.weight has other inputs, expected 2 states of the target"},
        {EAGLE3, "{\"eagle_aux_hidden_state_layer_ids\": null, \"eagle_config\": {\"eagle_aux_hidden_state_layer_ids\": [2, 4, 99]}}",
         "reads the state at layer 99"},
        {EAGLE3, "{\"model_type\": \"qwen3_5_text\"}",
         "model_type is \"qwen3_5_text\", expected a draft head with layers of Llama or Qwen3"},
        {EAGLE, "{\"layer_types\": [\"sliding_attention\"], \"sliding_window\": 6}", "layer 0 is of type sliding_attention"},
        {PEAGLE, "{\"layer_types\": [\"full_attention\", \"sliding_attention\"]}", "layer 1 is of type sliding_attention"},
        {PEAGLE, "{\"mask_token_id\": null}", "expected mask_token_id or ptd_token_id in config.json"},
        {PEAGLE, "{\"mask_token_id\": 480}", "mask_token_id is 480, expected a token of 0 to 479"},
        {PEAGLE, "{\"mask_token_id\": -1}", "mask_token_id is -1"},
        {PEAGLE, "{\"mask_token_id\": \"477\"}", "mask_token_id is a string"},
        {PEAGLE, "{\"mask_token_id\": 4.5}", "mask_token_id is 4.5"},
        {PEAGLE, "{\"mask_token_id\": [477]}", "mask_token_id is an array"},
        {PEAGLE, "{\"ptd_token_id\": 9223372036854775807}", "ptd_token_id is 9223372036854775807"},
        {PEAGLE, "{\"ptd_token_id\": 99999999999}", "ptd_token_id is 99999999999, expected a token of 0 to 479"},
        {PEAGLE, "{\"mask_token_id\": null, \"pard_token\": 480}", "pard_token is 480"},
        {PEAGLE, "{\"mask_token_id\": null, \"dflash_config\": {\"mask_token_id\": 9999}}", "dflash_config.mask_token_id is 9999"},
        {PEAGLE, "{\"mask_token_id\": null, \"dflash_config\": 3}", "dflash_config is not an object"},
        {PEAGLE, "{\"speculators_model_type\": \"eagle3\"}", "speculators_model_type is \"eagle3\", expected peagle"},
        {PEAGLE, "{\"num_hidden_layers\": 1}", "tensor layers.1."},
        {PEAGLE, "{\"num_hidden_layers\": 3}", "tensor layers.2.self_attn.q_proj.weight is missing"},
        {PEAGLE, "{\"num_hidden_layers\": 17}", "17 layers, expected a draft head of at most 16"},
        {PEAGLE, "{\"norm_before_fc\": true}", "tensor input_norm.weight is missing; expected it with shape [192]"},
        {PEAGLE, "{\"fc_norm\": true}", "tensor fc_norm.0.weight is missing; expected it with shape [64]"},
        {PEAGLE, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4]}", "fc.weight has other inputs, expected 2 states of the target"},
        {FALCON, "{\"k_mask\": null}", "the number of rows that see each other is not specified: expected a key k_mask"},
        {FALCON, "{\"k_mask\": 0}", "k_mask is 0, expected 1 to 8"},
        {FALCON, "{\"k_mask\": 9}", "k_mask is 9, expected 1 to 8"},
        {FALCON, "{\"k_mask\": \"2\"}", "k_mask is a string"},
        {FALCON, "{\"num_hidden_layers\": 2}", "2 layers, expected a head of Falcon to have one"},
        {FALCON, "{\"hidden_size\": 32}", "hidden size 32, and no embedding of its own: expected the target's 64"},
        {DART, "{\"draft_length\": null}", "the number of masks is not specified: expected a key draft_length"},
        {DART, "{\"draft_length\": 0}", "draft_length is 0, expected 1 to 62 masks"},
        {DART, "{\"draft_length\": 63}", "draft_length is 63, expected 1 to 62 masks"},
        {DART, "{\"draft_length\": \"4\"}", "draft_length is a string"},
        {DART, "{\"draft_length\": -1}", "draft_length is -1"},
        {DART, "{\"speculators_model_type\": \"eagle3\"}", "speculators_model_type is \"eagle3\", expected dart"},
        {DART, "{\"num_hidden_layers\": 2}", "tensor layers.1.self_attn.q_proj.weight is missing"},
        {CLUSTERS, "{\"centroid_intermediate_top_k\": 0}", "centroid_intermediate_top_k is 0, expected 1 to 20 of its clusters"},
        {CLUSTERS, "{\"centroid_intermediate_top_k\": 21}", "centroid_intermediate_top_k is 21, expected 1 to 20 of its clusters"},
        {CLUSTERS, "{\"centroid_intermediate_top_k\": null}", "expected a key centroid_intermediate_top_k"},
        {CLUSTERS, "{\"centroid_intermediate_top_k\": \"6\"}", "centroid_intermediate_top_k is a string"},
        {CLUSTERS, "{\"num_centroids\": 19}", "num_centroids is 19, expected the 20 rows of its centroids"},
        {CLUSTERS, "{\"num_centroids\": []}", "num_centroids is an array"},
        {MTP, "{\"num_nextn_predict_layers\": 0}", "num_nextn_predict_layers is 0, expected 1 layer"},
        {MTP, "{\"num_nextn_predict_layers\": 2}", "num_nextn_predict_layers is 2, expected 1 layer"},
        {MTP, "{\"num_nextn_predict_layers\": \"1\"}", "num_nextn_predict_layers is a string"},
        {MTP, "{\"num_nextn_predict_layers\": -1}", "num_nextn_predict_layers is -1"},
        {MTP, "{\"speculators_model_type\": \"eagle3\"}", "speculators_model_type is \"eagle3\", expected mtp"},
        {MTP, "{\"transformer_layer_config\": {\"model_type\": \"qwen3_next\"}}", "model_type is \"qwen3_next\""},
        {MTP, "{\"num_experts\": 8}", "8 experts a layer"},
        {MTP, "{\"hidden_size\": 32}", "hidden size 32, and no embedding of its own"},
        {MTP, "{\"num_hidden_layers\": 0}", "num_hidden_layers is 0"},
        {MTP, "{\"num_attention_heads\": 2}", "self_attn.k_proj.weight has shape [64, 32]; expected [64, 64]"},
        {MTP, "{\"layer_types\": [\"linear_attention\"]}", "layer 0 is of type linear_attention"},
        {MTP, "{\"vocab_size\": 512}", "vocab_size is 512, expected the 480 of this target"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make(&h, cases[i].form);
        json_t *change = json_loads(cases[i].change, 0, NULL);
        assert_non_null(change);
        assert_int_equal(json_object_update(h.config, change), 0);
        assert_head_refused(&h, cases[i].form, cases[i].says);
        json_decref(change);
        head_free(&h);
    }
}

/* An invalid or missing config.json: without it a head's layers are unknown. */
static void test_no_config(void **state) {
    (void)state;
    static const char *const texts[] = {"", "7", "[]", "{", "{\"a\": 1, \"a\": 2}", "{\"hidden_size\": NaN}", "{\"a\": \"\xff\"}"};
    char path[600];
    random_head h;
    make(&h, EAGLE);
    head_write(&h, path_of("head"));
    head_free(&h);
    snprintf(path, sizeof path, "%s/config.json", path_of("head"));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        test_file_write(path, texts[i], strlen(texts[i]));
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), ""), "head/config.json: ");
    }
    test_file_write(path, "{}", 2);
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), ""), "num_hidden_layers is missing");
    unlink(path);
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), ""), "no config.json with its weights");
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ""), "no config.json with its weights");
    snprintf(path, sizeof path, "%s/model.safetensors", path_of("head"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path, ""), "no config.json with its weights");
    unlink(path);
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), ""), "neither model.safetensors nor");
}

static void test_missing_tensors(void **state) {
    (void)state;
    static const struct {
        form form;
        const char *name, *says; /* says NULL: the error contains the name */
    } cases[] = {
        {EAGLE, "fc.weight", "expected a tensor fc.weight of 128 inputs"},
        {EAGLE, "layers.0.self_attn.q_proj.weight", NULL},
        {EAGLE, "layers.0.self_attn.k_proj.weight", NULL},
        {EAGLE, "layers.0.mlp.gate_proj.weight", NULL},
        {EAGLE, "layers.0.post_attention_layernorm.weight", NULL},
        {EAGLE3, "fc.weight", "fc.weight is missing, expected 3 states of the target, of 64 numbers each"},
        {EAGLE3, "norm.weight", NULL},
        {EAGLE3, "lm_head.weight", "draft_vocab_size is 160"},
        {EAGLE3, "d2t", "160 draft tokens of 480, but no tensor d2t"},
        {EAGLE3, "midlayer.hidden_norm.weight", NULL},
        {EAGLE3, "midlayer.input_layernorm.weight", NULL},
        {EAGLE3, "midlayer.self_attn.q_proj.weight", NULL},
        {EAGLE3, "midlayer.self_attn.o_proj.weight", NULL},
        {EAGLE3, "midlayer.mlp.down_proj.weight", NULL},
        {SPECULATORS, "layers.0.hidden_norm.weight", NULL},
        {SPECULATORS, "layers.0.self_attn.v_proj.weight", NULL},
        {CLUSTERS, "masked_embedding.centroids.weight",
         "a tensor masked_embedding.token_ordering, and no masked_embedding.centroids.weight: expected both, or none"},
        {CLUSTERS, "masked_embedding.token_ordering",
         "a tensor masked_embedding.centroids.weight, and no masked_embedding.token_ordering: expected both, or none"},
        {PEAGLE, "mask_hidden", "tensor mask_hidden is missing: not a head of P-EAGLE"},
        {PEAGLE, "fc.weight", "fc.weight is missing, expected 3 states of the target, of 64 numbers each"},
        {PEAGLE, "layers.0.hidden_norm.weight", NULL},
        {PEAGLE, "layers.1.input_layernorm.weight", NULL},
        {PEAGLE, "layers.1.mlp.up_proj.weight", NULL},
        {PEAGLE, "d2t", "160 draft tokens of 480, but no tensor d2t"},
        {MTP, "mtp_layers.0.input_proj.weight", NULL},
        {MTP, "mtp_layers.0.token_layernorm.weight", NULL},
        {MTP, "mtp_layers.0.hidden_layernorm.weight", NULL},
        {MTP, "mtp_layers.0.final_layernorm.weight", NULL},
        {MTP, "mtp_layers.0.input_layernorm.weight", NULL},
        {MTP, "mtp_layers.0.post_attention_layernorm.weight", NULL},
        {MTP, "mtp_layers.0.self_attn.k_proj.weight", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        char says[120];
        make(&h, cases[i].form);
        head_drop(&h, cases[i].name);
        snprintf(says, sizeof says, "tensor %s is missing; expected it with shape [", cases[i].name);
        assert_head_refused(&h, cases[i].form, cases[i].says ? cases[i].says : says);
        head_free(&h);
    }
    random_head h;
    make(&h, EAGLE3);
    head_drop(&h, "lm_head.weight");
    json_object_del(h.config, "draft_vocab_size");
    assert_head_refused(&h, EAGLE3, "a tensor d2t, and no lm_head.weight");
    head_free(&h);
}

static void test_shapes(void **state) {
    (void)state;
    static const struct {
        form form;
        const char *name;
        int rows, cols;
        const char *says;
    } cases[] = {
        {EAGLE, "fc.weight", 64, 64, "expected a tensor fc.weight of 128 inputs"},
        {EAGLE, "fc.weight", 63, 128, "tensor fc.weight has shape [128, 63]; expected [128, 64]"},
        {EAGLE, "fc.weight", 128 * 64, 0, "expected a tensor fc.weight of 128 inputs"},
        {EAGLE3, "fc.weight", 64, 64, "fc.weight has other inputs, expected 3 states"},
        {EAGLE3, "lm_head.weight", 160, 63, "tensor lm_head.weight has shape [63, 160]; expected [64, 160]"},
        {EAGLE3, "lm_head.weight", 500, 64, "an output of 500 tokens, expected at most the 480 of the target"},
        {EAGLE3, "lm_head.weight", 0, 64, "an output of 0 tokens"},
        {EAGLE3, "lm_head.weight", 160 * 64, 0, "tensor lm_head.weight has 1 dimensions, expected 2"},
        {EAGLE3, "norm.weight", 63, 0, "tensor norm.weight has shape [63]; expected [64]"},
        {EAGLE3, "norm.weight", 8, 8, "tensor norm.weight has shape [8, 8]; expected [64]"},
        {EAGLE3, "midlayer.self_attn.q_proj.weight", 64, 64, "has shape [64, 64]; expected [128, 64]"},
        {EAGLE3, "midlayer.mlp.gate_proj.weight", 95, 64, "has shape [64, 95]; expected [64, 96]"},
        {EAGLE3, "d2t", 159, 0, "tensor d2t has shape [159]; expected [160]"},
        {EAGLE3, "d2t", 161, 0, "tensor d2t has shape [161]; expected [160]"},
        {EAGLE3, "d2t", 160, 1, "tensor d2t has shape [1, 160]; expected [160]"},
        {CLUSTERS, "masked_embedding.centroids.weight", 19, 64,
         "masked_embedding.centroids.weight has 19 rows, expected a divisor of the 160 tokens that it drafts"},
        {CLUSTERS, "masked_embedding.centroids.weight", 0, 64, "has 0 rows, expected a divisor of the 160 tokens"},
        {CLUSTERS, "masked_embedding.centroids.weight", 1600, 0, "has 0 rows, expected a divisor of the 160 tokens"},
        {CLUSTERS, "masked_embedding.centroids.weight", 20, 63, "has shape [63, 20]; expected [64, 20]"},
        {CLUSTERS, "masked_embedding.token_ordering", 159, 0, "tensor masked_embedding.token_ordering has shape [159]; expected [160]"},
        {CLUSTERS, "masked_embedding.token_ordering", 20, 8, "tensor masked_embedding.token_ordering has shape [8, 20]; expected [160]"},
        {PEAGLE, "mask_hidden", 1, 191, "tensor mask_hidden has shape [191, 1]; expected [192]"},
        {PEAGLE, "mask_hidden", 64, 0, "tensor mask_hidden has shape [64]; expected [192]"},
        {PEAGLE, "mask_hidden", 3, 64, "tensor mask_hidden has shape [64, 3]; expected [192]"},
        {PEAGLE, "mask_hidden", 192, 1, "tensor mask_hidden has shape [1, 192]; expected [192]"},
        {PEAGLE, "fc.weight", 64, 128, "fc.weight has other inputs, expected 3 states"},
        {PEAGLE, "layers.1.self_attn.q_proj.weight", 64, 128, "has shape [128, 64]; expected [64, 64]"},
        {PEAGLE, "embed_tokens.weight", 479, 64, "an embedding of 479 tokens, expected the 480 of the target"},
        {MTP, "mtp_layers.0.input_proj.weight", 64, 64, "input_proj.weight has shape [64, 64]; expected [128, 64]"},
        {MTP, "mtp_layers.0.input_proj.weight", 128, 64, "input_proj.weight has shape [64, 128]; expected [128, 64]"},
        {MTP, "mtp_layers.0.token_layernorm.weight", 63, 0, "token_layernorm.weight has shape [63]; expected [64]"},
        {MTP, "mtp_layers.0.final_layernorm.weight", 8, 8, "final_layernorm.weight has shape [8, 8]; expected [64]"},
        {MTP, "mtp_layers.0.self_attn.q_proj.weight", 128, 64, "has shape [64, 128]; expected [64, 64]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make(&h, cases[i].form);
        head_shape(head_find(&h, cases[i].name), cases[i].rows, cases[i].cols);
        assert_head_refused(&h, cases[i].form, cases[i].says);
        head_free(&h);
    }
}

/* Added tensors. */
static void test_more_tensors(void **state) {
    (void)state;
    static const struct {
        form form;
        const char *name;
        int rows, cols;
        const char *says;
    } cases[] = {
        {EAGLE, "lm_head.weight", 100, 64, "an output of 100 tokens, expected the target's own matrix"},
        {EAGLE, "embed_tokens.weight", 479, 64, "an embedding of 479 tokens, expected the 480 of the target"},
        {EAGLE, "embed_tokens.weight", 480, 65, "tensor embed_tokens.weight has shape [65, 480]; expected [64, 480]"},
        {EAGLE, "embed_tokens.weight", 480, 0, "an embedding of 0 tokens"},
        {EAGLE, "fc.bias", 63, 0, "tensor fc.bias has shape [63]; expected [64]"},
        {EAGLE, "layers.0.self_attn.q_proj.bias", 64, 0, "layers.0.self_attn.k_proj.bias is missing"},
        {EAGLE, "model.fc.weight", 64, 128, "tensor model.layers.0.self_attn.q_proj.weight is missing"},
        {EAGLE, "layers.0.input_layernorm.weight", 64, 0, "tensor layers.0.input_layernorm.weight: heads of this kind, of 1 layer"},
        {EAGLE, "layers.1.mlp.up_proj.weight", 96, 64, "tensor layers.1.mlp.up_proj.weight: heads of this kind, of 1 layer"},
        {EAGLE3, "midlayer.mask_rep", 64, 0, "tensor midlayer.mask_rep: a head of DART, expected dart:PATH"},
        {EAGLE3, "fc_norm.0.weight", 64, 0, "tensor fc_norm.1.weight is missing"},
        {EAGLE3, "input_norm.weight", 64, 0, "tensor input_norm.weight has shape [64]; expected [192]"},
        {EAGLE3, "midlayer.self_attn.q_norm.weight", 16, 0, "midlayer.self_attn.k_norm.weight is missing"},
        {EAGLE3, "mask_hidden", 1, 192, "tensor mask_hidden: a head of P-EAGLE, expected peagle:PATH"},
        {PEAGLE, "layers.2.mlp.up_proj.weight", 96, 64, "tensor layers.2.mlp.up_proj.weight: heads of this kind, of 2 layers"},
        {PEAGLE, "layers.1.hidden_norm.weight", 64, 0, "tensor layers.1.hidden_norm.weight: heads of this kind, of 2 layers"},
        {PEAGLE, "input_norm.weight", 64, 0, "tensor input_norm.weight has shape [64]; expected [192]"},
        {MTP, "mtp_layers.1.input_proj.weight", 64, 128,
         "2 modules of multi-token prediction, expected num_hidden_layers to be as many, not 1"},
        {MTP, "mtp_layers.0.hidden_norm.weight", 64, 0, "tensor mtp_layers.0.hidden_norm.weight: heads of this kind, of 1 layer"},
        {MTP, "mtp_layers.0.mlp.experts.gate_up_proj", 64, 64, "tensor mtp_layers.0.mlp.experts.gate_up_proj: heads of this kind"},
        {MTP, "mtp_layers.0.input_proj.bias", 63, 0, "tensor mtp_layers.0.input_proj.bias has shape [63]; expected [64]"},
        {MTP, "mtp_layers.0.self_attn.k_norm.weight", 16, 0, "mtp_layers.0.self_attn.k_norm.weight: heads of this kind"},
        {MTP, "lm_head.weight", 100, 64, "100 draft tokens of 480, but no tensor d2t"},
        {MTP, "embed_tokens.weight", 479, 64, "an embedding of 479 tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make(&h, cases[i].form);
        head_floats(&h, "", cases[i].name, cases[i].rows, cases[i].cols);
        assert_head_refused(&h, cases[i].form, cases[i].says);
        head_free(&h);
    }
}

/* Each output is once in the order of the clusters. */
static void test_order(void **state) {
    (void)state;
    static const struct {
        int at;
        int64_t output;
        const char *says;
    } cases[] = {{3, 160, "element 3 of tensor masked_embedding.token_ordering is 160; expected 0 to 159"},
                 {159, -1, "element 159 of tensor masked_embedding.token_ordering is -1; expected 0 to 159"},
                 {0, INT64_MAX, "element 0 of tensor masked_embedding.token_ordering is 9223372036854775807"},
                 {2, 7, "masked_embedding.token_ordering: entry 2 is 7, as one before it is: expected each of 0 to 159 once"}};
    random_head h;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(&h, CLUSTERS);
        memcpy(head_find(&h, "masked_embedding.token_ordering")->data.at + 8 * cases[i].at, &cases[i].output, 8);
        assert_head_refused(&h, CLUSTERS, cases[i].says);
        head_free(&h);
    }
    make(&h, CLUSTERS);
    head_tensor *t = head_find(&h, "masked_embedding.token_ordering");
    t->type = "F32"; /* as some converters write it: whole numbers */
    t->data.size /= 2;
    assert_head_refused(&h, CLUSTERS, "of tensor masked_embedding.token_ordering is 9.80909e-45; expected a whole number of 0 to 159");
    head_free(&h);
    make(&h, CLUSTERS);
    head_write(&h, path_of("head"));
    spec_refused(HUNCH_USAGE, LLAMA, spec_at("eagle3", path_of("head"), ",vocab=50"), "vocab=50: the head has 20 clusters of tokens");
    head_free(&h);
}

static void test_weights_that_are_no_numbers(void **state) {
    (void)state;
    static const char *const names[] = {"fc.weight", "norm.weight", "lm_head.weight", "midlayer.self_attn.v_proj.weight",
                                        "midlayer.mlp.down_proj.weight", "midlayer.hidden_norm.weight"};
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        random_head h;
        char says[120];
        make(&h, EAGLE3);
        bytes *b = &head_find(&h, names[i])->data;
        memcpy(b->at + b->size - 4, &values[i % 3], 4); /* the last value */
        snprintf(says, sizeof says, "tensor %s: a value is not finite", names[i]);
        assert_head_refused(&h, EAGLE3, says);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ",weights=f32"), says);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ",weights=q4_0"), says);
        head_free(&h);
    }
    static const struct {
        form form;
        const char *name;
    } more[] = {{PEAGLE, "mask_hidden"}, {PEAGLE, "embed_tokens.weight"}, {PEAGLE, "layers.1.input_layernorm.weight"},
                {MTP, "mtp_layers.0.input_proj.weight"}, {MTP, "mtp_layers.0.token_layernorm.weight"},
                {MTP, "mtp_layers.0.hidden_layernorm.weight"}, {MTP, "mtp_layers.0.final_layernorm.weight"}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        random_head h;
        char says[120];
        make(&h, more[i].form);
        bytes *b = &head_find(&h, more[i].name)->data;
        memcpy(b->at + 4 * (i % 2), &values[i % 3], 4);
        snprintf(says, sizeof says, "tensor %s: a value is not finite", more[i].name);
        assert_head_refused(&h, more[i].form, says);
        head_free(&h);
    }
    /* finite, but so large that results overflow: nothing is drafted, the text is the model's */
    random_head h;
    const float large = 3e38f;
    make(&h, EAGLE3);
    for (size_t at = 0; at < head_find(&h, "fc.weight")->data.size; at += 4) memcpy(head_find(&h, "fc.weight")->data.at + at, &large, 4);
    head_write(&h, path_of("head"));
    head_free(&h);
    json_t *plain = json_of("run", "-m", LLAMA, "--tokens", IDS, "-n", "12", "--draft", "none", "--temperature", "0"),
           *drafted = json_of("run", "-m", LLAMA, "--tokens", IDS, "-n", "12", "--draft",
                              spec_at("eagle3", path_of("head"), ""), "--temperature", "0");
    assert_true(json_equal(get(plain, "tokens"), get(drafted, "tokens")));
    json_decref(plain);
    json_decref(drafted);
}

static void test_draft_tokens(void **state) {
    (void)state;
    static const struct {
        int at;
        int64_t offset;
        const char *says;
    } cases[] = {
        {3, 1000000000, "element 3 of tensor d2t is 1000000000; expected -480 to 480"},
        {3, INT64_MIN, "element 3 of tensor d2t is -9223372036854775808"},
        {159, INT64_MAX, "element 159 of tensor d2t is 9223372036854775807"},
        {3, -5, "d2t: draft token 3 is token -2, expected 0 to 479"},
        {0, 480, "d2t: draft token 0 is token 480, expected 0 to 479"},
        {4, 5, "d2t: draft token 4 is token 9, as one before it is"}, /* 3 is 9 too */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make(&h, EAGLE3);
        memcpy(head_find(&h, "d2t")->data.at + 8 * cases[i].at, &cases[i].offset, 8);
        if (cases[i].at == 4) memcpy(head_find(&h, "d2t")->data.at + 8 * 3, &(int64_t){6}, 8);
        assert_head_refused(&h, EAGLE3, cases[i].says);
        head_free(&h);
    }
    random_head h;
    make(&h, EAGLE3);
    head_tensor *t = head_find(&h, "d2t");
    t->type = "F32";
    t->data.size = 160 * 4;
    assert_head_refused(&h, EAGLE3, "tensor d2t has type F32; expected integers");
    head_free(&h);
    make(&h, EAGLE);
    t = head_find(&h, "fc.weight");
    t->type = "I64";
    bytes_zeros(&t->data, t->data.size);
    assert_head_refused(&h, EAGLE, "tensor fc.weight has type I64");
    head_free(&h);
}

/* ---- files ------------------------------------------------------------------------------------------------------------- */

static void cut_refused(const char *folder_name, const char *file, const bytes *whole) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder_name, file);
    for (size_t n = 0; n < whole->size; n += n < 16 ? 8 : whole->size / 5 + 1) {
        test_file_write(path, whole->at, n);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", folder_name, ""), file);
    }
}

static void test_files_cut(void **state) {
    (void)state;
    random_head h;
    make(&h, EAGLE);
    head_write(&h, path_of("head"));
    bytes b = head_safetensors(&h);
    cut_refused(path_of("head"), "model.safetensors", &b);
    char path[600];
    snprintf(path, sizeof path, "%s/model.safetensors", path_of("head"));
    b.at[6] = 0x10; /* length of its header */
    test_file_write(path, b.at, b.size);
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), ""), "the length of its head");
    unlink(path);
    bytes_free(&b);
    b = test_file_read(HEADS "/eagle1-bias-bin/head/pytorch_model.bin");
    cut_refused(path_of("head"), "pytorch_model.bin", &b);
    bytes_number(&b, 0, 1);
    char *global = NULL;
    for (size_t i = 0; i + 20 < b.size && !global; i++)
        if (!memcmp(b.at + i, "_rebuild_tensor_v2", 18)) global = (char *)b.at + i;
    assert_non_null(global);
    memcpy(global, "_run_anything_here", 18);
    snprintf(path, sizeof path, "%s/pytorch_model.bin", path_of("head"));
    test_file_write(path, b.at, b.size - 1);
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), ""), "pytorch_model.bin");
    unlink(path);
    bytes_free(&b);
    head_free(&h);
}

static void test_other_files(void **state) {
    (void)state;
    static const struct {
        const char *kind, *target, *path, *says;
    } cases[] = {
        {"eagle", QWEN3, HEADS "/eagle2-nobias-gqa/head", "hidden size 64, and no embedding of its own: expected the target's 80"},
        {"eagle3", QWEN3, HEADS "/eagle3-official-d2t/head", "hidden size 64, and no embedding of its own"},
        {"eagle3", QWEN3, HEADS "/eagle3spec-plain/head", "an embedding of 480 tokens, expected the 512 of the target"},
        {"hass", LLAMA, HEADS "/hass-bias/head", "hidden size 80, and no embedding of its own: expected the target's 64"},
        {"eagle3", LLAMA, HEADS "/eagle2-nobias-gqa/head", "fc.weight has other inputs, expected 3 states of the target"},
        {"eagle", LLAMA, HEADS "/eagle3-official-d2t/head", "not a head of EAGLE-1 or -2"},
        {"eagle", LLAMA, LLAMA, "not a head of EAGLE-1 or -2"},
        {"eagle", LLAMA, HEADS "/mtp-untied-bias/head", "not a head of EAGLE-1 or -2"},
        {"eagle3", LLAMA, HEADS "/peagle-spec-2layers/head", "speculators_model_type is \"peagle\", expected eagle3"},
        {"eagle3", LLAMA, HEADS "/peagle-vllm-4layers/head", "a head of P-EAGLE, expected peagle:PATH"},
        {"peagle", LLAMA, HEADS "/eagle3spec-plain/head", "speculators_model_type is \"eagle3\", expected peagle"},
        {"peagle", LLAMA, HEADS "/eagle3-official-d2t/head", "tensor mask_hidden is missing: not a head of P-EAGLE"},
        {"peagle", LLAMA, HEADS "/mtp-untied-bias/head", "speculators_model_type is \"mtp\", expected peagle"},
        {"peagle", LLAMA, LLAMA, "tensor mask_hidden is missing: not a head of P-EAGLE"},
        {"peagle", QWEN3, HEADS "/peagle-vllm-4layers/head", "expected"},
        {"falcon", LLAMA, HEADS "/eagle2-nobias-gqa/head", "not a head of Falcon: expected a tensor lstm.weight_ih_l0"},
        {"eagle", LLAMA, HEADS "/falcon-k2/head", "not a head of EAGLE-1 or -2"},
        {"dart", LLAMA, HEADS "/eagle3-official-d2t/head", "tensor mask_rep is missing: not a head of DART"},
        {"dart", LLAMA, HEADS "/peagle-spec-2layers/head", "speculators_model_type is \"peagle\", expected dart"},
        {"dart", LLAMA, LLAMA, "tensor mask_rep is missing: not a head of DART"},
        {"dart", LLAMA, HEADS "/dart-7masks/head", "hidden size 80, and no embedding of its own: expected the target's 64"},
        {"eagle3", LLAMA, HEADS "/dart-d2t/head", "tensor midlayer.mask_rep: a head of DART, expected dart:PATH"},
        {"mtp", LLAMA, HEADS "/mtp-spec-qwen3/head", "hidden size 80, and no embedding of its own: expected the target's 64"},
        {"mtp", LLAMA, HEADS "/eagle1-bias-bin/head", "no tensor mtp_layers.0.*: not a module of multi-token prediction"},
        {"mtp", LLAMA, LLAMA, "no tensor mtp_layers.0.*: not a module of multi-token prediction"},
        {"eagle", LLAMA, STORIES, "general.architecture is \"llama\", expected a draft head's"},
        {"eagle", LLAMA, IDS, "ids.json"},
        {"eagle", LLAMA, "/nowhere", "/nowhere: no such file or folder"},
        {"eagle3", LLAMA, "/nowhere.safetensors", "/nowhere.safetensors: no such file or folder"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        spec_refused(HUNCH_REFUSED, cases[i].target, spec_at(cases[i].kind, cases[i].path, ""), cases[i].says);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),          cmocka_unit_test(test_no_config),
        cmocka_unit_test(test_missing_tensors), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_more_tensors),    cmocka_unit_test(test_order), cmocka_unit_test(test_weights_that_are_no_numbers),
        cmocka_unit_test(test_draft_tokens),    cmocka_unit_test(test_files_cut),
        cmocka_unit_test(test_other_files),
    };
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
