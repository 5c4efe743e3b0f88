/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_head_test.c - the command with draft heads that are damaged, lie, or were made for another model, and with SPECs that
 * ask for what there is not: the documented exit code and one line that names the file and what is wrong in it, within a
 * gigabyte and seconds (hostile_limits.h). Heads that are right run with every kind of target, alone and together. */
#include "command.h"

#include "hostile_limits.h"
#include "random_head.h"

#define HEADS HUNCH_TEST_DATA "/goldens-heads"
#define LLAMA HEADS "/targets/llama-a"
#define QWEN3 HEADS "/targets/qwen3-a"
#define IDS HEADS "/eagle2-nobias-gqa/ids.json"

/* ---- one head, one thing changed at a time ------------------------------------------------------------------------------- */

/* The line that refuses "KIND:PATH...", where the path's head lies. */
static void spec_refused(int code, const char *target, const char *spec, const char *says) {
    result r = command("draft", "-m", target, "--draft", spec, "--tokens", IDS);
    const char *end = strchr(r.err, '\n'), *again = strstr(r.err, "drafter '");
    if (r.code != code || !strstr(r.err, says) || !again || strstr(again + 1, "drafter '") || !end || end[1] || r.out_len)
        fail_msg("%s: expected %d and one line that names the drafter once and \"%s\", got %d and \"%s\", output \"%s\"", spec,
                 code, says, r.code, r.err, r.out);
    result_free(&r);
}

static const char *spec_at(const char *kind, const char *path, const char *rest) {
    static char spec[900];
    snprintf(spec, sizeof spec, "%s:%s%s", kind, path, rest);
    return spec;
}

typedef enum form { EAGLE, EAGLE3, SPECULATORS, PEAGLE, MTP } form;
static const char *const kinds[] = {"eagle", "eagle3", "eagle3", "peagle", "mtp"};
static const head_form *const forms[] = {&LLAMA_EAGLE, &LLAMA_EAGLE3, &LLAMA_SPECULATORS, &LLAMA_PEAGLE, &LLAMA_MTP};

static void make(random_head *h, form f) { head_make(h, forms[f]); }

static void assert_head_refused(const random_head *h, form f, const char *says) {
    head_write(h, path_of("head"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at(kinds[f], path_of("head"), ""), says);
}

/* README: "A draft head that is damaged, lies or was made for another model is refused with one line that says why." */
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
        {EAGLE3, "{\"model_type\": \"qwen3_5_text\"}", "model_type is \"qwen3_5_text\", expected a draft head with layers of Llama or Qwen3"},
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
        {PEAGLE, "{\"mask_token_id\": null, \"dflash_config\": 3}", "dflash_config is no object"},
        {PEAGLE, "{\"speculators_model_type\": \"eagle3\"}", "speculators_model_type is \"eagle3\", expected peagle"},
        {PEAGLE, "{\"num_hidden_layers\": 1}", "tensor layers.1."},
        {PEAGLE, "{\"num_hidden_layers\": 3}", "tensor layers.2.self_attn.q_proj.weight is missing"},
        {PEAGLE, "{\"num_hidden_layers\": 17}", "17 layers, expected a draft head of at most 16"},
        {PEAGLE, "{\"norm_before_fc\": true}", "tensor input_norm.weight is missing; expected it with shape [192]"},
        {PEAGLE, "{\"fc_norm\": true}", "tensor fc_norm.0.weight is missing; expected it with shape [64]"},
        {PEAGLE, "{\"eagle_aux_hidden_state_layer_ids\": [2, 4]}", "fc.weight has other inputs, expected 2 states of the target"},
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

/* A config.json that is none; SafeAILab's and others' heads without one do not say what their layers are. */
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
        const char *name, *says; /* says NULL: by its name */
    } cases[] = {
        {EAGLE, "fc.weight", "expected a tensor fc.weight of 128 inputs"},
        {EAGLE, "layers.0.self_attn.q_proj.weight", NULL},
        {EAGLE, "layers.0.self_attn.k_proj.weight", NULL},
        {EAGLE, "layers.0.mlp.gate_proj.weight", NULL},
        {EAGLE, "layers.0.post_attention_layernorm.weight", NULL},
        {EAGLE3, "fc.weight", "fc.weight is missing, expected 3 states of the target, of 64 numbers each"},
        {EAGLE3, "norm.weight", NULL},
        {EAGLE3, "lm_head.weight", "draft_vocab_size is 160"},
        {EAGLE3, "d2t", "160 draft tokens of 480, and no tensor d2t"},
        {EAGLE3, "midlayer.hidden_norm.weight", NULL},
        {EAGLE3, "midlayer.input_layernorm.weight", NULL},
        {EAGLE3, "midlayer.self_attn.q_proj.weight", NULL},
        {EAGLE3, "midlayer.self_attn.o_proj.weight", NULL},
        {EAGLE3, "midlayer.mlp.down_proj.weight", NULL},
        {SPECULATORS, "layers.0.hidden_norm.weight", NULL},
        {SPECULATORS, "layers.0.self_attn.v_proj.weight", NULL},
        {PEAGLE, "mask_hidden", "tensor mask_hidden is missing: not a head of P-EAGLE"},
        {PEAGLE, "fc.weight", "fc.weight is missing, expected 3 states of the target, of 64 numbers each"},
        {PEAGLE, "layers.0.hidden_norm.weight", NULL},
        {PEAGLE, "layers.1.input_layernorm.weight", NULL},
        {PEAGLE, "layers.1.mlp.up_proj.weight", NULL},
        {PEAGLE, "d2t", "160 draft tokens of 480, and no tensor d2t"},
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
        {PEAGLE, "mask_hidden", 1, 191, "tensor mask_hidden has shape [191, 1]; expected [192, 1]"},
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

/* Tensors that a file may add. */
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
        {EAGLE3, "midlayer.mask_rep", 64, 0, "tensor midlayer.mask_rep: heads of this kind, of 1 layer, have none of that name"},
        {EAGLE3, "fc_norm.0.weight", 64, 0, "tensor fc_norm.1.weight is missing"},
        {EAGLE3, "input_norm.weight", 64, 0, "tensor input_norm.weight has shape [64]; expected [192]"},
        {EAGLE3, "midlayer.self_attn.q_norm.weight", 16, 0, "midlayer.self_attn.k_norm.weight is missing"},
        {EAGLE3, "mask_hidden", 1, 192, "tensor mask_hidden: a head of P-EAGLE, expected peagle:PATH"},
        {PEAGLE, "layers.2.mlp.up_proj.weight", 96, 64, "tensor layers.2.mlp.up_proj.weight: heads of this kind, of 2 layers"},
        {PEAGLE, "layers.1.hidden_norm.weight", 64, 0, "tensor layers.1.hidden_norm.weight: heads of this kind, of 2 layers"},
        {PEAGLE, "input_norm.weight", 64, 0, "tensor input_norm.weight has shape [64]; expected [192]"},
        {MTP, "mtp_layers.1.input_proj.weight", 64, 128, "tensor mtp_layers.1.input_proj.weight: heads of this kind, of 1 layer"},
        {MTP, "mtp_layers.0.hidden_norm.weight", 64, 0, "tensor mtp_layers.0.hidden_norm.weight: heads of this kind, of 1 layer"},
        {MTP, "mtp_layers.0.mlp.experts.gate_up_proj", 64, 64, "tensor mtp_layers.0.mlp.experts.gate_up_proj: heads of this kind"},
        {MTP, "mtp_layers.0.input_proj.bias", 63, 0, "tensor mtp_layers.0.input_proj.bias has shape [63]; expected [64]"},
        {MTP, "mtp_layers.0.self_attn.k_norm.weight", 16, 0, "mtp_layers.0.self_attn.k_norm.weight: heads of this kind"},
        {MTP, "lm_head.weight", 100, 64, "100 draft tokens of 480, and no tensor d2t"},
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

/* Tables that some files keep, copies of the target's, and what was for training: they change nothing. */
static void test_tensors_beside(void **state) {
    (void)state;
    static const form each[] = {EAGLE, SPECULATORS, PEAGLE, MTP};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        random_head h;
        make(&h, each[i]);
        head_write(&h, path_of("head"));
        json_t *plain = json_of("draft", "-m", LLAMA, "--draft", spec_at(kinds[each[i]], path_of("head"), ""), "--tokens", IDS);
        head_floats(&h, each[i] == MTP ? "mtp_layers.0." : "layers.0.", "self_attn.rotary_emb.inv_freq", 8, 0);
        head_floats(&h, "", "verifier_norm.weight", 64, 0);
        head_floats(&h, "", "verifier_lm_head.weight", 160, 64);
        head_floats(&h, "", "t2d", 480, 0);
        if (each[i] == MTP) head_floats(&h, "model.", "embed_tokens.weight", 480, 64);
        head_write(&h, path_of("head"));
        json_t *beside = json_of("draft", "-m", LLAMA, "--draft", spec_at(kinds[each[i]], path_of("head"), ""), "--tokens", IDS);
        assert_true(json_array_size(get(plain, "tokens")) == 5 && json_equal(plain, beside));
        json_decref(plain);
        json_decref(beside);
        head_free(&h);
    }
}

/* All below "model.", but the output and the list of its tokens. */
static void test_wrapped(void **state) {
    (void)state;
    static const form each[] = {EAGLE3, SPECULATORS, PEAGLE, MTP};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        random_head h;
        make(&h, each[i]);
        head_write(&h, path_of("head"));
        json_t *plain = json_of("draft", "-m", LLAMA, "--draft", path_of("head"), "--tokens", IDS);
        for (int k = 0; k < h.n; k++) {
            char name[80];
            snprintf(name, sizeof name, "model.%.70s", h.tensor[k].name);
            if (strcmp(h.tensor[k].name, "lm_head.weight") && strcmp(h.tensor[k].name, "d2t"))
                memcpy(h.tensor[k].name, name, sizeof name);
        }
        head_write(&h, path_of("head"));
        json_t *wrapped = json_of("draft", "-m", LLAMA, "--draft", path_of("head"), "--tokens", IDS);
        assert_true(json_array_size(get(plain, "tokens")) == 5 && json_equal(plain, wrapped));
        head_floats(&h, "", each[i] == MTP ? "model.mtp_layers.1.mlp.up_proj.weight" : "model.layers.7.mlp.up_proj.weight", 96, 64);
        assert_head_refused(&h, each[i], "mlp.up_proj.weight: heads of this kind");
        json_decref(plain);
        json_decref(wrapped);
        head_free(&h);
    }
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
        memcpy(b->at + b->size - 4, &values[i % 3], 4); /* the last of them */
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
    /* finite, and too large for what is computed with it: nothing is drafted, the text is the model's */
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
    b.at[6] = 0x10; /* its head's length */
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
        {"mtp", LLAMA, HEADS "/mtp-spec-qwen3/head", "hidden size 80, and no embedding of its own: expected the target's 64"},
        {"mtp", LLAMA, HEADS "/eagle1-bias-bin/head", "no tensor mtp_layers.0.*: not a module of multi-token prediction"},
        {"mtp", LLAMA, LLAMA, "no tensor mtp_layers.0.*: not a module of multi-token prediction"},
        {"eagle", LLAMA, STORIES, "a GGUF file, expected a draft head"},
        {"eagle", LLAMA, IDS, "ids.json"},
        {"eagle", LLAMA, "/nowhere", "/nowhere: no such file or folder"},
        {"eagle3", LLAMA, "/nowhere.safetensors", "/nowhere.safetensors: no such file or folder"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        spec_refused(HUNCH_REFUSED, cases[i].target, spec_at(cases[i].kind, cases[i].path, ""), cases[i].says);
}

/* ---- SPECs ------------------------------------------------------------------------------------------------------------- */

static void test_specs(void **state) {
    (void)state;
    static const struct {
        const char *rest, *says;
    } cases[] = {
        {",bogus=1", "unknown key 'bogus' for this drafter and form; it knows "},
        {",depht=1", "did you mean depth?"},
        {",depth=0", "depth=0, expected a whole number from 1 to 63"},
        {",depth=64", "depth=64, expected a whole number from 1 to 63"},
        {",depth=2,depth=3", "key 'depth' is given twice"},
        {",tree=dynamic,topk=17", "topk=17, expected a whole number from 1 to 16"},
        {",tree=dynamic,topk=0", "topk=0, expected a whole number from 1 to 16"},
        {",tree=dynamic,total=64", "total=64, expected a whole number from 1 to 63"},
        {",tree=dynamic,topk=16,depth=14", "depth 14 of 16 nodes a level: expected at most 192 in all"},
        {",topk=4", "topk is of tree=dynamic alone"},
        {",tree=chain,total=4", "total is of tree=dynamic alone"},
        {",tree=mc_sim_7b_63,total=4", "total is of tree=dynamic alone"},
        {",tree=/nowhere", "tree '/nowhere': no such file, and no tree of that name: chain, dynamic, mc_sim_7b_63, "},
        {",tree=/tmp", "tree '/tmp': no such file"},
        {",weights=q3", "weights=q3, expected one of q8_0, q4_0, bf16, f32"},
        {",kv=q8_0", "kv=q8_0, expected one of bf16, f16, f32"},
        {",force=2", "force=2, expected a number from 0 to 1"},
        {",taps=2:4:-1", "taps=2:4:-1: expected layers of 0 to 256 such as 2:16:29"},
        {",taps=2:4:5:", "taps=2:4:5:: expected layers"},
        {",taps=2:4:99999999999999999999", "expected layers of 0 to 256"},
        {",taps=0:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16", "expected layers of 0 to 256"},
    };
    head_write_form(&LLAMA_EAGLE3, path_of("head"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        spec_refused(HUNCH_USAGE, LLAMA, spec_at("eagle3", path_of("head"), cases[i].rest), cases[i].says);
    spec_refused(HUNCH_USAGE, LLAMA, "eagle3", "which head? (expected eagle3:PATH)");
    spec_refused(HUNCH_USAGE, LLAMA, "eagle3:", "no path after ':'");
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ",taps=2:4:9"), "reads the state at layer 9");
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ",taps=2:4"), "fc.weight has other inputs");
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle3", path_of("head"), ",taps=4:4:5"), "reads the state at layer 4 twice");
    head_write_form(&LLAMA_PEAGLE, path_of("masks"));
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("peagle", path_of("masks"), ",taps=2:4"), "fc.weight has other inputs");
    spec_refused(HUNCH_USAGE, LLAMA, spec_at("peagle", path_of("masks"), ",depth=64"), "depth=64, expected a whole number from 1 to 63");
    head_write_form(&LLAMA_MTP, path_of("mtp"));
    spec_refused(HUNCH_USAGE, LLAMA, spec_at("mtp", path_of("mtp"), ",taps=2"), "unknown key 'taps' for this drafter");
    spec_refused(HUNCH_USAGE, LLAMA, spec_at("mtp", path_of("mtp"), ",depth=0"), "depth=0, expected a whole number from 1 to 63");
}

/* The deepest chain that may be asked for, and one more. */
static void test_deepest(void **state) {
    (void)state;
    static const form each[] = {PEAGLE, MTP};
    for (int i = 0; i < 2; i++) {
        const char *head = head_write_form(forms[each[i]], path_of("head"));
        json_t *j = json_of("draft", "-m", LLAMA, "--draft", spec_at(kinds[each[i]], head, ""), "--tokens", IDS, "--depth", "63");
        assert_int_equal(json_array_size(get(j, "tokens")), 63);
        json_t *again = json_of("draft", "-m", LLAMA, "--draft", spec_at(kinds[each[i]], head, ",depth=63"), "--tokens", IDS,
                                "--accept", "63", "--depth", "63");
        assert_int_equal(json_array_size(get(again, "tokens")), 63);
        json_decref(j);
        json_decref(again);
        refused(HUNCH_USAGE, "64", "draft", "-m", LLAMA, "--draft", spec_at(kinds[each[i]], head, ""), "--tokens", IDS, "--depth", "64");
    }
}

static void test_trees(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "not readable as JSON"},
        {"7", "not readable as JSON"},
        {"{}", "expected a list \"paths\" of 1 to 63 paths"},
        {"[]", "expected a list \"paths\" of 1 to 63 paths"},
        {"{\"paths\": 7}", "expected a list \"paths\""},
        {"[[]]", "path 0: expected a list of 1 to 63 ranks, each 0 to 63"},
        {"[[0], [64]]", "path 1: expected a list of 1 to 63 ranks"},
        {"[[-1]]", "path 0: expected a list"},
        {"[[\"0\"]]", "path 0: expected a list"},
        {"[[0.5]]", "path 0: expected a list"},
        {"[[1e300]]", "path 0: expected a list"},
        {"[[99999999999999999999999]]", "path 0: expected a list"},
        {"[[0], [0]]", "is there twice"},
        {"{\"paths\": [[0], [1, 0]]}", "a path of 2 ranks without its beginning"},
        {"[[0]] x", "not readable as JSON"},
        {"[[\xff]]", "not readable as JSON"},
    };
    char rest[400], *deep = calloc(1, 100001);
    head_write_form(&LLAMA_EAGLE, path_of("head"));
    snprintf(rest, sizeof rest, ",tree=%s", path_of("tree.json"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_write("tree.json", cases[i].text);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), rest), cases[i].says);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), rest), "tree.json");
    }
    memset(deep, '[', 100000);
    text_write("tree.json", deep);
    spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), rest), "not readable as JSON");
    free(deep);
    for (int n = 63; n <= 64; n++) { /* a root with as many candidates as there may be, and one more */
        json_t *paths = json_array();
        for (int i = 0; i < n; i++) json_array_append_new(paths, json_pack("[i]", i));
        json_write("tree.json", paths);
        json_decref(paths);
        if (n == 64) spec_refused(HUNCH_REFUSED, LLAMA, spec_at("eagle", path_of("head"), rest), "1 to 63 paths");
        json_t *j = n == 63 ? json_of("draft", "-m", LLAMA, "--draft", spec_at("eagle", path_of("head"), rest), "--tokens", IDS) : NULL;
        if (j) assert_int_equal(json_array_size(get(j, "nodes")), 63);
        json_decref(j);
    }
}

/* K levels are asked of `hunch draft`, and the head drafts fewer: that is said, where K was. */
static void test_depth(void **state) {
    (void)state;
    const char *head = head_write_form(&LLAMA_EAGLE, path_of("head"));
    static const char *const rests[] = {",tree=mc_sim_7b_63", ",depth=4", ",depth=4,tree=dynamic"};
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        const char *spec = spec_at("eagle", head, rests[i]);
        refused(HUNCH_USAGE, "depth 5: it drafts 4 levels", "draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS, "--depth", "5");
        json_decref(json_of("draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS, "--depth", "4"));
        json_decref(json_of("draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS));
    }
    const char *spec = spec_at("eagle", head, ",tree=dynamic");
    refused(HUNCH_USAGE, "expected at most 192 in all", "draft", "-m", LLAMA, "--draft", spec, "--tokens", IDS, "--depth", "21");
}

/* ---- heads that are right ------------------------------------------------------------------------------------------------ */

/* The same text as without, whatever the target lies in and whatever else drafts. */
static void drafts_same(const char *const *how, json_t *plain, const char *spec) {
    const char *args[20] = {"run", "-m", STORIES, "-p", "Once upon a time", "-n", "40", "--temperature", "0", "--json", "--draft", spec};
    int n = 12;
    for (int i = 0; how[i]; i++) args[n++] = how[i];
    json_t *j = json_args(args);
    tokens_equal(plain, j);
    assert_true(int_of(j, "drafted") > 0);
    json_decref(j);
}

static void test_heads_and_targets(void **state) {
    (void)state;
    static const char *const how[][3] = {{NULL}, {"--mapped", NULL}, {"--precision", "f32", NULL}};
    char one[400], three[400], spec[2000];
    snprintf(one, sizeof one, "%s", head_write_form(&STORIES_EAGLE, path_of("one")));
    snprintf(three, sizeof three, "%s", head_write_form(&STORIES_EAGLE3, path_of("three")));
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        const char *args[20] = {"run", "-m", STORIES, "-p", "Once upon a time", "-n", "40", "--temperature", "0", "--json", "--draft", "none"};
        for (int k = 0; how[i][k]; k++) args[12 + k] = how[i][k];
        json_t *plain = json_args(args);
        drafts_same(how[i], plain, spec_at("eagle", one, ""));
        drafts_same(how[i], plain, spec_at("eagle3", three, ",tree=dynamic"));
        drafts_same(how[i], plain, spec_at("eagle3", three, ",tree=mc_sim_7b_63,weights=q4_0,kv=f16"));
        snprintf(spec, sizeof spec, "eagle:%s+eagle3:%s", one, three);
        drafts_same(how[i], plain, spec);
        snprintf(spec, sizeof spec, "hass:%s+eagle:%s,depth=2", one, one); /* one file twice */
        drafts_same(how[i], plain, spec);
        snprintf(spec, sizeof spec, "eagle3:%s,tree=dynamic,topk=3,total=9+ngram+model:%s,depth=2", three, STORIES);
        drafts_same(how[i], plain, spec);
        json_decref(plain);
    }
}

/* A head that is right is worth what it costs: force=1 makes every draft of a useless head right. */
static void test_forced(void **state) {
    (void)state;
    const char *head = head_write_form(&STORIES_EAGLE3, path_of("three"));
    for (int i = 0; i < 2; i++) {
        json_t *j = json_of("run", "-m", STORIES, "-p", "Once upon a time", "-n", "41", "--temperature", "0", "--draft",
                            spec_at("eagle3", head, i ? ",depth=4,force=1" : ",depth=4,force=0"));
        if (i) near(real_of(j, "tau"), 5, 1e-9);
        else assert_int_equal(int_of(j, "accepted"), 0);
        json_decref(j);
    }
}

/* One line on standard error, and in JSON, of what was found; once, and not at all with --quiet. */
static void test_about(void **state) {
    (void)state;
    char one[400], about[900], both[1200];
    snprintf(one, sizeof one, "%s", head_write_form(&STORIES_EAGLE, path_of("one")));
    const char *three = head_write_form(&STORIES_EAGLE3, path_of("three"));
    snprintf(both, sizeof both, "eagle3:%s+ngram+eagle:%s,weights=q4_0", three, one);
    result r = command("run", "-m", STORIES, "-p", "Once", "-n", "3", "--draft", both);
    assert_int_equal(r.code, 0);
    snprintf(about, sizeof about,
             "eagle3 %s: 1 layer, 64 wide; reads the states entering layers 1, 2 and 3 (outputs of layers 0, 1 and 2); drafts 200"
             " of 512 tokens with the model's embedding; 0.1 MB as Q8_0\n", three);
    if (!strstr(r.err, about)) fail_msg("no \"%s\" in \"%s\"", about, r.err);
    snprintf(about, sizeof about,
             "eagle %s: 1 layer, 64 wide; reads the state behind the final norm; drafts 512 of 512 tokens with the model's"
             " embedding and output; 0.0 MB as Q4_0\n", one);
    if (!strstr(r.err, about)) fail_msg("no \"%s\" in \"%s\"", about, r.err);
    result_free(&r);
    json_t *j = json_of("run", "-m", STORIES, "-p", "Once", "-n", "3", "--draft", both, "--quiet");
    about[strlen(about) - 1] = 0;
    assert_string_equal(json_string_value(json_array_get(get(j, "about"), 2)), about);
    assert_true(json_is_null(json_array_get(get(j, "about"), 1)));
    json_decref(j);
    refused(HUNCH_USAGE, "--context", "run", "-m", STORIES, "-p", "Once upon a time there was", "-n", "3", "--draft", both, "--context", "3");
    r = command("compare", "-m", STORIES, "-p", "Once", "-n", "8", "--draft", spec_at("eagle", one, ""), "--draft", both);
    assert_int_equal(r.code, 0);
    const char *first = strstr(r.err, "reads the state behind");
    assert_true(first && strstr(first + 1, "as Q4_0") && strstr(r.err, "eagle3 ")); /* each method's */
    result_free(&r);
    r = command("run", "-m", STORIES, "-p", "Once", "-n", "3", "--draft", both, "--quiet");
    assert_string_equal(r.err, "");
    result_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),        cmocka_unit_test(test_no_config),
        cmocka_unit_test(test_missing_tensors), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_more_tensors),  cmocka_unit_test(test_tensors_beside),
        cmocka_unit_test(test_wrapped),       cmocka_unit_test(test_deepest),
        cmocka_unit_test(test_weights_that_are_no_numbers),
        cmocka_unit_test(test_draft_tokens),  cmocka_unit_test(test_files_cut),
        cmocka_unit_test(test_other_files),   cmocka_unit_test(test_specs),
        cmocka_unit_test(test_trees),         cmocka_unit_test(test_depth),
        cmocka_unit_test(test_heads_and_targets),
        cmocka_unit_test(test_forced),        cmocka_unit_test(test_about),
    };
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
