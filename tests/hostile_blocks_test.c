/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_blocks_test.c - the command with heads that draft several tokens a pass (DFlash, DSpark, JetSpec, PARD, DART, Falcon) and are
 * damaged, contradict themselves, or have settings that their kind does not support, in folders and GGUF files: the documented exit code
 * and one line that names the file and the error (hostile_limits.h). Other heads: hostile_head_test.c, hostile_head_gguf_test.c. */
#include "hostile_head.h"

#include "tiny_gguf.h"

#include "head_gguf.h"

#define ZLAB "\"speculators_model_type\": null, \"aux_hidden_state_layer_ids\": null, "
#define NONE "\"aux_hidden_state_layer_ids\": null, "

static void test_config(void **state) {
    (void)state;
    static const struct {
        form form;
        const char *change, *says; /* change: merged into config.json, null drops a key */
    } cases[] = {
        {DFLASH, "{\"block_size\": 0}", "block_size is 0, expected blocks of 2 to 64 rows"},
        {DFLASH, "{\"block_size\": 1}", "block_size is 1, expected blocks of 2 to 64 rows"},
        {DFLASH, "{\"block_size\": 65}", "block_size is 65, expected blocks of 2 to 64 rows"},
        {DFLASH, "{\"block_size\": -8}", "block_size is -8"},
        {DFLASH, "{\"block_size\": 4.5}", "block_size is 4.5"},
        {DFLASH, "{\"block_size\": \"8\"}", "block_size is a string"},
        {DFLASH, "{\"block_size\": 1e300}", "block_size is 1e+300"},
        {DFLASH, "{\"sample_from_anchor\": 1}", "sample_from_anchor is 1"},
        {DFLASH, "{\"sample_from_anchor\": \"yes\"}", "sample_from_anchor is a string"},
        {DFLASH, "{\"mask_token_id\": null}", "the mask token is not specified:"},
        {DFLASH, "{\"mask_token_id\": 480}", "mask_token_id is 480, expected a token of 0 to 479"},
        {DFLASH, "{\"mask_token_id\": -1}", "mask_token_id is -1"},
        {DFLASH, "{\"aux_hidden_state_layer_ids\": null}",
         "the layers that it reads are not specified: expected aux_hidden_state_layer_ids"},
        {DFLASH, "{\"aux_hidden_state_layer_ids\": []}", "aux_hidden_state_layer_ids: expected a list of 1 to 16 layers"},
        {DFLASH, "{\"aux_hidden_state_layer_ids\": 3}", "aux_hidden_state_layer_ids: expected a list of 1 to 16 layers"},
        {DFLASH, "{\"aux_hidden_state_layer_ids\": [2, 4]}", "fc.weight has other inputs, expected 2 states of the target, of 64 numbers"},
        {DFLASH, "{\"aux_hidden_state_layer_ids\": [2, 4, 9]}", "reads the state at layer 9, expected 0 to 8"},
        {DFLASH, "{\"aux_hidden_state_layer_ids\": [2, 4, 4]}", "reads the state at layer 4 twice"},
        {DFLASH, "{\"aux_hidden_state_layer_ids\": [2, 4, -1]}", "aux_hidden_state_layer_ids: expected layers of 0 to 256"},
        {DFLASH, "{\"aux_hidden_state_layer_ids\": [2, 4, \"5\"]}", "expected layers of 0 to 256"},
        {DFLASH, "{" ZLAB "\"target_layer_ids\": [1, 2, 8]}", "reads the state at layer 9, expected 0 to 8"}, /* outputs */
        {DFLASH, "{" ZLAB "\"target_layer_ids\": [1, 2, -2]}", "target_layer_ids: expected layers of 0 to 256"},
        {DFLASH, "{" ZLAB "\"target_layer_ids\": [-1, 2, -1]}", "reads the state at layer 0 twice"},
        {DFLASH, "{" ZLAB "\"dflash_config\": {\"target_layer_ids\": [1, 2]}}", "fc.weight has other inputs, expected 2 states"},
        {DFLASH, "{" ZLAB "\"dflash_config\": {\"target_layer_ids\": \"1\"}}",
         "dflash_config.target_layer_ids: expected a list of 1 to 16"},
        {DFLASH, "{" ZLAB "\"eagle_aux_hidden_state_layer_ids\": [2, 4]}", "fc.weight has other inputs, expected 2 states"},
        {DFLASH, "{" ZLAB "\"num_target_layers\": 12}", "num_target_layers is 12, expected the 8 of this target"},
        {DFLASH, "{" ZLAB "\"num_target_layers\": 8}", "fc.weight has other inputs, expected 2 states"}, /* two layers, spread */
        {DFLASH, "{\"speculators_model_type\": \"dspark\"}", "speculators_model_type is \"dspark\", expected dflash"},
        {DFLASH, "{\"num_hidden_layers\": 1}", "tensor layers.1."},
        {DFLASH, "{\"num_hidden_layers\": 3}", "tensor layers.2.self_attn.q_proj.weight is missing"},
        {DFLASH, "{\"num_hidden_layers\": 17}", "17 layers, expected a draft head of at most 16"},
        {DFLASH, "{\"hidden_size\": 32}", "hidden size 32, and no embedding of its own"},
        {DFLASH, "{\"layer_types\": [\"full_attention\"], \"sliding_window\": 6}", "layer_types, expected a list of 2 names"},
        {DFLASH, "{\"layer_types\": [\"full_attention\", \"linear_attention\"], \"sliding_window\": 6}",
         "layer_types, expected a list of 2"},
        {DFLASH, "{\"sliding_window\": 0}", "sliding_window is 0"},
        {DFLASH, "{\"sliding_window\": \"6\"}", "sliding_window is a string"},
        {DFLASH, "{\"sliding_window_non_causal\": 2}", "sliding_window_non_causal is 2"},
        {DFLASH, "{\"dflash_config\": {\"use_swa\": true}}",
         "use_swa is on without the rows of a window: expected dflash_"},
        {DFLASH, "{\"dflash_config\": {\"use_swa\": 7}}", "dflash_config.use_swa is 7"},
        {DFLASH, "{\"dflash_config\": {\"swa_window_size\": -1}}", "dflash_config.swa_window_size is -1"},
        {DFLASH, "{\"dflash_config\": {\"swa_window_size\": \"9\"}}", "dflash_config.swa_window_size is a string"},
        {DFLASH, "{\"dflash_config\": {\"causal\": \"no\"}}", "dflash_config.causal is a string"},
        {DFLASH, "{\"is_causal\": 0}", "is_causal is 0"},
        {DFLASH, "{\"dflash_config\": {\"attention_sink_bias\": true}}",
         "attention_sink_bias is on, and no tensor self_attn.attention_sink_bias"},
        {DFLASH, "{\"add_swa_attention_sink_bias\": true}",
         "add_swa_attention_sink_bias is on, and no tensor self_attn.attention_sink_bias"},
        {DFLASH, "{\"use_aux_hidden_state\": false}",
         "use_aux_hidden_state is off: expected a head that reads states of the target's layers"},
        {DFLASH, "{\"dflash_config\": {\"projector_type\": \"domino\"}}",
         "dflash_config.projector_type is \"domino\", expected dflash"},
        {DFLASH, "{\"model_type\": \"qwen3_5\"}", "model_type is \"qwen3_5\", expected a draft head with layers of Llama or Qwen3"},
        {DFLASH, "{\"rope_is_neox_style\": \"x\"}", "rope_is_neox_style is a string"},
        {JETSPEC, "{\"dflash_config\": {\"causal_head\": false}}",
         "see later ones in layer 0: expected a head of JetSpec, with dflash_config.causal_head"},
        {JETSPEC, "{\"dflash_config\": {\"causal\": false, \"causal_head\": true}}", "see later ones in layer 0"}, /* the first counts */
        {JETSPEC, "{\"dflash_config\": {}}", "see later ones in layer 0"},
        {JETSPEC, "{\"dflash_config\": {\"causal_head\": \"yes\"}}", "dflash_config.causal_head is a string"},
        {JETSPEC, "{\"dflash_config\": {\"causal_head\": true, \"target_hidden_size\": 32}}",
         "dflash_config.target_hidden_size is 32, expected the 64 of its own hidden_size"},
        {JETSPEC, "{\"block_size\": 1}", "block_size is 1, expected blocks of 2 to 64 rows"},
        {JETSPEC, "{\"mask_token_id\": null}", "the mask token is not specified:"},
        {JETSPEC, "{\"num_hidden_layers\": 3}", "tensor layers.2.self_attn.q_proj.weight is missing"},
        {JETSPEC, "{\"speculators_model_type\": \"dflash\"}", "speculators_model_type is \"dflash\", expected jetspec"},
        {PARD, "{\"pard_token\": null}", "no draft model of PARD: expected a whole model with pard_token in config.json"},
        {PARD, "{\"pard_token\": 480}", "pard_token is 480, expected a token of 0 to 479"},
        {PARD, "{\"pard_token\": -1}", "pard_token is -1"},
        {PARD, "{\"pard2_target_layers\": null}", "pard2_target_layers: expected a list of 1 to 16 states, of -9 to 8 of this target"},
        {PARD, "{\"pard2_target_layers\": [-1, -10, 2]}", "pard2_target_layers: expected a list of 1 to 16 states, of -9 to 8"},
        {PARD, "{\"pard2_target_layers\": [-1, 2.5, 2]}", "pard2_target_layers: expected a list of 1 to 16 states, of -9 to 8"},
        {PARD, "{\"pard2_target_layers\": [-1, 2]}", "target_proj.weight has other inputs, expected 2 states of the target, of 64 numbers"},
        {PARD, "{\"pard2_target_layers\": [2, 3, -7]}", "reads the state at layer 2 twice"},
        {PARD, "{\"pard2_scale\": null}", "pard2_scale is 0, expected a factor of 1e-6 to 1e6"},
        {PARD, "{\"pard2_scale\": \"x\"}", "pard2_scale is a string"},
        {PARD, "{\"model_type\": \"gemma3_text\"}", "model_type is \"gemma3_text\", expected a draft model of PARD"},
        {PARD, "{\"use_sliding_window\": true}", "use_sliding_window is true, expected a draft head without windows"},
        {PARD, "{\"num_hidden_layers\": 65}", "65 layers, expected a draft head of at most 64"},
        {PARD, "{\"num_hidden_layers\": 3}", "tensor model.layers.2.self_attn.q_proj.weight is missing"},
        {PARD, "{\"num_hidden_layers\": 1}", "tensor model.layers.1."},
        {DSPARK, "{\"block_size\": 0}", "block_size is 0, expected blocks of 1 to 64 rows"},
        {DSPARK, "{\"markov_head_type\": \"gated\"}", "markov_head_type is \"gated\", expected vanilla by its tensors"},
        {DSPARK, "{\"markov_head_type\": \"gru\"}", "markov_head_type is \"gru\", expected vanilla by its tensors"},
        {DSPARK, "{\"dspark_bonus_anchor\": 1}", "dspark_bonus_anchor is 1"},
        {DOMINO, "{\"dflash_config\": {\"emb_dim\": 16}}", "key dflash_config.gru_hidden_dim is missing, expected 20 by its tensors"},
        {DOMINO, "{\"dflash_config\": {\"gru_hidden_dim\": 20}}", "key dflash_config.emb_dim is missing, expected 16 by its tensors"},
        {DOMINO, "{\"emb_dim\": 15}", "emb_dim is 15, expected 16 by its tensors"},
        {DOMINO, "{\"dflash_config\": {\"gru_hidden_dim\": 21, \"emb_dim\": 16}}", "dflash_config.gru_hidden_dim is 21, expected 20"},
        {DOMINO, "{\"dflash_config\": {\"gru_hidden_dim\": 20, \"emb_dim\": 16, \"pure_draft_prefix_len\": 6}}",
         "dflash_config.pure_draft_prefix_len is 6, expected less than the 6 rows of a block"},
        {DOMINO, "{\"dflash_config\": {\"shift_label\": 1}}", "dflash_config.shift_label is 1"},
        {DOMINO, "{\"dflash_config\": {\"projector_type\": \"dspark\"}}", "projector_type is \"dspark\", expected domino"},
        {DOMINO, "{\"block_size\": 1}", "blocks of 1 row, expected 2 or more"},
        {DOMINO, "{\"speculators_model_type\": \"dflash\"}", "speculators_model_type is \"dflash\", expected domino"},
        {DFLASH2, "{\"conv_kernel_size\": null}", "key dflash_config.conv_kernel_size is missing"},
        {DFLASH2, "{\"conv_kernel_size\": 7}", "conv_kernel_size is 7, expected 1 to 6"},
        {DFLASH2, "{\"conv_kernel_size\": 1}", "layers.0.attention_conv.base_kernel has shape [64, 2, 2]; expected [64, 1, 2]"},
        {DFLASH2, "{\"conv_group_size\": null}", "key dflash_config.conv_group_size is missing"},
        {DFLASH2, "{\"conv_group_size\": 24}", "conv_group_size is 24, expected a divisor of the width 64"},
        {DFLASH2, "{\"selector_rank\": null}", "key dflash_config.selector_rank is missing"},
        {DFLASH2, "{\"selector_rank\": 13}", "candidate_selector.hidden_projection.weight has shape [64, 12]; expected [64, 13]"},
        {DFLASH2, "{\"selector_top_k\": null}", "key dflash_config.selector_top_k is missing"},
        {DFLASH2, "{\"selector_top_k\": 65}", "selector_top_k is 65, expected 1 to 64"},
        {DFLASH2, "{\"output_multiplier\": 0}", "output_multiplier is 0, expected 1e-06 to 1e+06"},
        {DFLASH2, "{\"input_embedding_scale\": \"x\"}", "input_embedding_scale is a string"},
        {DFLASH2, "{\"speculators_model_type\": \"dflash\"}", "speculators_model_type is \"dflash\", expected dflash2"},
        {DFLASH, "{\"final_logit_softcapping\": 30}", "final_logit_softcapping is 30: head models are read without"},
        {DSPARK, "{\"speculators_model_type\": \"dflash\"}", "speculators_model_type is \"dflash\", expected dspark"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make(&h, cases[i].form);
        json_t *change = json_loads(cases[i].change, 0, NULL), *value;
        const char *key;
        assert_non_null(change);
        json_object_foreach (change, key, value)
            if (json_is_null(value))
                json_object_del(h.config, key);
            else
                json_object_set(h.config, key, value);
        assert_head_refused(&h, cases[i].form, cases[i].says);
        json_decref(change);
        head_free(&h);
    }
}

/* One tensor is missing (rows -1), has a different shape, or is added. */
static void test_tensors(void **state) {
    (void)state;
    static const struct {
        form form;
        const char *name;
        int rows, cols;
        const char *says;
    } cases[] = {
        {DFLASH, "fc.weight", -1, 0, "fc.weight is missing, expected 3 states of the target, of 64 numbers each"},
        {DFLASH, "hidden_norm.weight", -1, 0, "no tensor hidden_norm.weight: not a head that drafts blocks"},
        {DFLASH, "norm.weight", -1, 0, "tensor norm.weight is missing"},
        {DFLASH, "layers.1.input_layernorm.weight", -1, 0, "tensor layers.1.input_layernorm.weight is missing"},
        {DFLASH, "layers.1.self_attn.v_proj.weight", -1, 0, "tensor layers.1.self_attn.v_proj.weight is missing"},
        {PARD, "model.embed_tokens.weight", -1, 0, "tensor model.embed_tokens.weight is missing, expected the embedding"},
        {PARD, "model.norm.weight", -1, 0, "tensor model.norm.weight is missing"},
        {PARD, "model.layers.1.mlp.up_proj.weight", -1, 0, "tensor model.layers.1.mlp.up_proj.weight is missing"},
        {PARD, "target_proj.weight", 64, 128, "target_proj.weight has other inputs, expected 3 states"},
        {PARD, "target_proj.weight", 32, 192, "target_proj.weight"},
        {PARD, "lm_head.weight", 470, 64, "lm_head.weight"},
        {PARD, "model.embed_tokens.weight", 1600, 64, "an embedding of 1600 tokens, expected the 480 of the target"},
        {DFLASH, "d2t", -1, 0, "160 draft tokens of 480, but no tensor d2t"},
        {DFLASH, "fc.weight", 64, 128, "fc.weight has other inputs, expected 3 states"},
        {DFLASH, "fc.weight", 63, 192, "tensor fc.weight has shape [192, 63]; expected [192, 64]"},
        {DFLASH, "hidden_norm.weight", 63, 0, "tensor hidden_norm.weight has shape [63]; expected [64]"},
        {DFLASH, "layers.0.self_attn.k_proj.weight", 64, 64, "has shape [64, 64]; expected [64, 32]"},
        {DFLASH, "lm_head.weight", 500, 64, "an output of 500 tokens, expected at most the 480 of the target"},
        {DFLASH, "mask_embedding", 63, 0, "tensor mask_embedding has shape [63]; expected [64]"},
        {DFLASH, "layers.0.self_attn.attention_sink_bias", 3, 0, "attention_sink_bias has shape [3]; expected [4]"},
        {DFLASH, "layers.0.self_attn.attention_sink_bias", 4, 0, "tensor layers.1.self_attn.attention_sink_bias is missing"},
        {DFLASH, "layers.1.self_attn.attention_sink_bias", 4, 0, "layers.1.self_attn.attention_sink_bias: heads of this kind, of 2 layers"},
        {DFLASH, "layers.0.self_attn.g_proj.weight", 64, 64, "layers.0.self_attn.g_proj.weight: heads of this kind, of 2 layers"},
        {DFLASH, "layers.0.self_attn.qkv_proj.weight", 128, 64, "tensor layers.1.self_attn.qkv_proj.weight is missing"},
        {DFLASH, "log_snr_embed.weight", 64, 64, "tensor log_snr_embed.weight: heads of this kind, of 2 layers"},
        {DFLASH, "markov_head.markov_w1.weight", 480, 8, "tensor markov_head.markov_w1.weight: heads of this kind"},
        {DSPARK, "markov_head.markov_w1.weight", -1, 0, "tensor markov_w1.weight is missing, expected [tokens, rank] of a head of DSpark"},
        {DSPARK, "markov_head.markov_w2.weight", -1, 0, "tensor markov_head.markov_w2.weight is missing"},
        {DSPARK, "markov_head.markov_w1.weight", 480 * 16, 0, "tensor markov_w1.weight has another shape, expected [tokens, rank]"},
        {DSPARK, "markov_head.markov_w1.weight", 160, 16, "markov_w1.weight has shape [16, 160]; expected [16, 480]"},
        {DSPARK, "markov_head.markov_w1.weight", 480, 15, "markov_w2.weight has shape [16, 160]; expected [15, 160]"},
        {DSPARK, "markov_head.markov_w2.weight", 480, 16, "markov_w2.weight has shape [16, 480]; expected [16, 160]"},
        {DSPARK, "markov_head.gate_proj.weight", 16, 80, "tensor markov_head.gate_proj.bias is missing"},
        {DSPARK, "markov_head.gate_proj.weight", 16, 64, "gate_proj.weight has shape [64, 16]; expected [80, 16]"},
        {DSPARK, "markov_head.joint_proj.weight", 48, 80, "joint_proj.weight has shape [80, 48]; expected [96, 48]"},
        {DSPARK, "confidence_head.proj.weight", 1, 80, "tensor confidence_head.proj.bias is missing"},
        {DSPARK, "confidence_head.proj.weight", 1, 79, "confidence_head.proj.weight has shape [79, 1]; expected [64, 1]"},
        {DOMINO, "prefix_gru.weight_ih_l0", -1, 0, "tensor prefix_gru.weight_ih_l0 is missing"},
        {DOMINO, "prefix_gru.weight_hh_l0", -1, 0, "tensor prefix_gru.weight_hh_l0 is missing, expected a matrix of a head of Domino"},
        {DOMINO, "embed_proj.0.weight", -1, 0, "tensor embed_proj.0.weight is missing"},
        {DOMINO, "embed_proj.2.weight", -1, 0, "tensor embed_proj.2.weight is missing, expected a matrix of a head of Domino"},
        {DOMINO, "prefix_gru.weight_ih_l0", 60, 63, "prefix_gru.weight_ih_l0 has shape [63, 60]; expected [64, 60]"},
        {DOMINO, "embed_proj.0.weight", 16, 83, "embed_proj.0.weight has shape [83, 16]; expected [84, 16]"},
        {DOMINO, "embed_proj.2.weight", 479, 16, "embed_proj.2.weight has shape [16, 479]; expected [16, 480]"},
        {DOMINO, "prefix_gru.bias_ih_l0", 60, 0, "tensor prefix_gru.bias_ih_l0: heads of this kind, of 2 layers"},
        {DFLASH2, "layers.1.attention_conv.base_kernel", -1, 0, "tensor layers.1.attention_conv.base_kernel is missing"},
        {DFLASH2, "layers.0.mlp_conv.kernel_projection.weight", -1, 0, "tensor layers.0.mlp_conv.kernel_projection.weight is missing"},
        {DFLASH2, "layers.0.mlp_conv.kernel_projection.weight", 15, 64, "kernel_projection.weight has shape [64, 15]; expected [64, 16]"},
        {DFLASH2, "candidate_selector.hidden_projection.weight", -1, 0, "tensor candidate_selector.hidden_projection.weight is missing"},
        {DFLASH2, "candidate_selector.predecessor_codebook", -1, 0, "tensor candidate_selector.predecessor_codebook is missing"},
        {DFLASH2, "candidate_selector.successor_codebook", 479, 12, "successor_codebook has shape [12, 479]; expected [12, 480]"},
        {DART, "midlayer.mask_rep", -1, 0, "tensor mask_rep is missing: not a head of DART"},
        {DART, "midlayer.mask_rep", 64, 0, "tensor midlayer.mask_rep has shape [64]; expected [128]"},
        {DART, "midlayer.hidden_norm.weight", -1, 0, "tensor midlayer.hidden_norm.weight is missing"},
        {DART, "fc.weight", 64, 128, "fc.weight has other inputs, expected 3 states"},
        {DART, "layers.1.mlp.up_proj.weight", 96, 64, "tensor layers.1.mlp.up_proj.weight: heads of this kind, of 1 layer"},
        {FALCON, "lstm.weight_ih_l0", -1, 0, "expected a tensor lstm.weight_ih_l0"},
        {FALCON, "lstm.weight_ih_l1", -1, 0, "tensor lstm.weight_ih_l1 is missing"},
        {FALCON, "lstm.bias_hh_l1", -1, 0, "tensor lstm.bias_hh_l1 is missing"},
        {FALCON, "lstm.weight_ih_l0", 256, 64, "tensor lstm.weight_ih_l0 has shape [64, 256]; expected [128, 256]"},
        {FALCON, "lstm.weight_ih_l1", 192, 64, "tensor lstm.weight_ih_l1 has shape [64, 192]; expected [64, 256]"},
        {FALCON, "lstm.bias_ih_l0", 255, 0, "tensor lstm.bias_ih_l0 has shape [255]; expected [256]"},
        {FALCON, "lm_head.weight", 100, 64, "an output of 100 tokens, expected the target's own matrix"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        make(&h, cases[i].form);
        head_tensor *t = head_find(&h, cases[i].name);
        if (cases[i].rows < 0)
            head_drop(&h, cases[i].name);
        else if (t)
            head_shape(t, cases[i].rows, cases[i].cols);
        else
            head_floats(&h, "", cases[i].name, cases[i].rows, cases[i].cols);
        assert_head_refused(&h, cases[i].form, cases[i].says);
        head_free(&h);
    }
}

/* More levels than the head was trained for: a usage error that names their number. */
static void test_levels(void **state) {
    (void)state;
    static const struct {
        form form;
        const char *rest;
        int code;
        const char *says;
    } cases[] = {
        {DFLASH, ",depth=8", HUNCH_USAGE, "a tree of 8 levels, expected at most 7"},
        {DFLASH, ",tree=/nowhere", HUNCH_USAGE, "no such file, and no tree of that name"},
        {DFLASH, ",tree=opt", HUNCH_USAGE, "tree=opt is of heads that draft a level at a time"},
        {DFLASH, ",norm=once", HUNCH_USAGE, "unknown key 'norm' for this drafter"},
        {DSPARK, ",depth=7", HUNCH_USAGE, "a tree of 7 levels, expected at most 6"},
        {DOMINO, ",depth=6", HUNCH_USAGE, "a tree of 6 levels, expected at most 5"},
        {DOMINO, ",pool=0", HUNCH_USAGE, "pool"},
        {DFLASH2, ",depth=6", HUNCH_USAGE, "a tree of 6 levels, expected at most 5"},
        {DFLASH2, ",pool=9", HUNCH_USAGE, "unknown key 'pool' for this drafter"},
        {DSPARK, ",tree=best", HUNCH_USAGE, "tree=best is of heads that draft all levels at once"},
        {DSPARK, ",tree=pruned", HUNCH_USAGE, "tree=pruned is of heads that draft all levels in one pass"},
        {PARD, ",tree=opt", HUNCH_USAGE, "tree=opt is of heads that draft a level at a time"},
        {PARD, ",taps=1:2:3", HUNCH_USAGE, "unknown key 'taps' for this drafter"},
        {DART, ",depth=8", HUNCH_USAGE, "a tree of 8 levels, expected at most 7"},
        {DART, ",norm=thrice", HUNCH_USAGE, "expected one of twice, once"},
        {DART, ",trie=/nowhere", HUNCH_USAGE, "/nowhere"},
        {DART, ",trie=/tmp,tree=dynamic", HUNCH_USAGE, "trie is of tree=pruned alone"},
        {FALCON, ",tree=dynamic", HUNCH_USAGE, "such a tree is of heads that draft one level a pass, or all"},
        {FALCON, ",depth=62", HUNCH_USAGE, "a tree of 62 levels, in blocks of 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *head = head_write_form(forms[cases[i].form], path_of("head"));
        spec_refused(cases[i].code, LLAMA, spec_at(head_kind_of(forms[cases[i].form]), head, cases[i].rest), cases[i].says);
    }
    refused(HUNCH_USAGE, "expected at most 7", "draft", "-m", LLAMA, "--draft",
            spec_at("dflash", head_write_form(&LLAMA_DFLASH, path_of("head")), ""), "--tokens", IDS, "--depth", "8");
}

static void test_gguf_keys(void **state) {
    static const struct {
        form form;
        const char *key;
        uint32_t type;
        double value;     /* of a number, in its type; NAN: the key is dropped */
        const char *text; /* of a string */
        const char *says;
    } cases[] = {
        {DFLASH, "dflash.block_size", 0, NAN, NULL, "dflash.block_size is 0, expected blocks of 2 to 64 rows"},
        {DFLASH, "dflash.block_size", U32, 65, NULL, "dflash.block_size is 65, expected blocks of 2 to 64 rows"},
        {DFLASH, "dflash.block_size", STRING, 0, "8", "dflash.block_size is a string"},
        {DFLASH, "dflash.sample_from_anchor", U32, 1, NULL, "dflash.sample_from_anchor is 1; expected true or false"},
        {DFLASH, "dflash.target_layers", 0, NAN, NULL, "key dflash.target_layers is missing: expected the layers that it reads"},
        {DFLASH, "dflash.target_layers", U32, 3, NULL, "dflash.target_layers is 3; expected an array"},
        {DFLASH, "dflash.target_hidden_size", U32, 32, NULL, "dflash.target_hidden_size is 32, expected the 64 of this target"},
        {DFLASH, "dflash.block_count", U32, 3, NULL, "tensor blk.2.attn_q.weight is missing"},
        {DFLASH, "dflash.attention.sliding_window", U32, 9, NULL,
         "sliding_window is 9, expected 1 to 16777216, and dflash.attention.sliding_window"},
        {DFLASH, "tokenizer.ggml.mask_token_id", 0, NAN, NULL,
         "the mask token is not specified: expected a key tokenizer.ggml"},
        {DFLASH, "tokenizer.ggml.mask_token_id", U32, 480, NULL, "tokenizer.ggml.mask_token_id is 480, expected a token of 0 to 479"},
        {DFLASH, "hunch.head.kind", STRING, 0, "dspark", "hunch.head.kind is \"dspark\", expected dflash"},
        {DFLASH, "hunch.head.causal", U32, 1, NULL, "hunch.head.causal is 1; expected true or false"},
        {DFLASH, "hunch.head.scaled_embedding", STRING, 0, "x", "hunch.head.scaled_embedding is"},
        {DFLASH, "general.architecture", STRING, 0, "eagle3", "key eagle3.block_count is missing"},
        {DSPARK, "dflash.block_size", U32, 0, NULL, "dflash.block_size is 0, expected blocks of 1 to 64 rows"},
        {DSPARK, "hunch.head.kind", STRING, 0, "dflash", "hunch.head.kind is \"dflash\", expected dspark"},
        {DOMINO, "hunch.head.pure_draft_prefix_len", U32, 6, NULL, "hunch.head.pure_draft_prefix_len is 6, expected less than the 6 rows"},
        {DFLASH2, "dflash.selector_rank", 0, NAN, NULL, "key dflash.selector_rank is missing"},
        {DFLASH2, "dflash.conv_group_size", U32, 48, NULL, "dflash.conv_group_size is 48, expected a divisor of the width 64"},
        {DFLASH2, "dflash.selector_top_k", U32, 0, NULL, "dflash.selector_top_k is 0, expected 1 to 64"},
        {DFLASH2, "dflash.attention.causal", U32, 1, NULL, "dflash.attention.causal is 1; expected true or false"},
        {FALCON, "hunch-head.k_mask", 0, NAN, NULL,
         "the number of rows that see each other is not specified: expected a key hunch-head.k_mask"},
        {FALCON, "hunch-head.k_mask", U32, 9, NULL, "hunch-head.k_mask is 9, expected 1 to 8"},
        {FALCON, "hunch.head.kind", STRING, 0, "eagle", "hunch.head.kind is \"eagle\", expected falcon"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        random_head h;
        tiny t;
        make(&h, cases[i].form);
        head_gguf_open(&t, &h, forms[cases[i].form]);
        head_free(&h);
        if (isnan(cases[i].value))
            tiny_remove(&t, cases[i].key);
        else
            tiny_set(&t, cases[i].key, cases[i].type, (uint64_t)fabs(cases[i].value), cases[i].value, cases[i].text);
        head_gguf_write(&t, path_of("head.gguf"));
        tiny_close(&t);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at(head_kind_of(forms[cases[i].form]), path_of("head.gguf"), ""), cases[i].says);
    }
}

static void test_gguf_tensors(void **state) {
    static const struct {
        form form;
        const char *name, *says;
    } missing[] = {
        {DFLASH, "enc.output_norm.weight", "tensor enc.output_norm.weight is missing"},
        {DFLASH, "output_norm.weight", "tensor output_norm.weight is missing"},
        {DFLASH, "fc.weight", "fc.weight is missing, expected 3 states"},
        {DFLASH, "blk.1.attn_norm.weight", "tensor blk.1.attn_norm.weight is missing"},
        {DSPARK, "markov_w1.weight", "tensor markov_w1.weight is missing, expected [tokens, rank]"},
        {DSPARK, "markov_w2.weight", "tensor markov_w2.weight is missing"},
        {DOMINO, "prefix_gru_ih.weight", "tensor prefix_gru_ih.weight is missing"},
        {DOMINO, "embed_proj_out.weight", "tensor embed_proj_out.weight is missing, expected a matrix of a head of Domino"},
        {DFLASH2, "blk.1.ffn_conv_base", "tensor blk.1.ffn_conv_base is missing"},
        {DFLASH2, "selector_successor.weight", "tensor selector_successor.weight is missing"},
        {FALCON, "lstm.0.weight", "expected a tensor lstm.weight_ih_l0"},
        {FALCON, "lstm.1.state_bias", "tensor lstm.1.state_bias is missing"},
    }, more[] = {
        {DFLASH, "blk.0.mask_rep", "tensor blk.0.mask_rep: heads of this kind"},
        {DFLASH, "markov_w1.weight", "tensor markov_w1.weight: heads of this kind"},
        {DFLASH, "blk.0.attn_sinks.weight", "tensor blk.0.attn_sinks.weight has shape [64]; expected [4]"},
        {DSPARK, "selector_hidden.weight", "tensor selector_hidden.weight: heads of this kind"},
        {DSPARK, "markov_gate.weight", "markov_gate.weight has shape [64]; expected [80, 16]"},
        {FALCON, "fc.weight", "tensor fc.weight: heads of this kind"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof missing / sizeof *missing + sizeof more / sizeof *more; i++) {
        const size_t n = sizeof missing / sizeof *missing;
        const form f = i < n ? missing[i].form : more[i - n].form;
        random_head h;
        tiny t;
        make(&h, f);
        head_gguf_open(&t, &h, forms[f]);
        head_free(&h);
        if (i < n) {
            tiny_tensor *x = tiny_tensor_of(&t, missing[i].name);
            free(x->data);
            *x = t.tensor[--t.n_tensors];
        } else
            tiny_add(&t, more[i - n].name, 64, 0);
        head_gguf_write(&t, path_of("head.gguf"));
        tiny_close(&t);
        spec_refused(HUNCH_REFUSED, LLAMA, spec_at(head_kind_of(forms[f]), path_of("head.gguf"), ""),
                     i < n ? missing[i].says : more[i - n].says);
    }
}

/* Without the changes the files open. */
static void test_right(void **state) {
    static const form each[] = {DFLASH, DSPARK, FALCON, DOMINO, DFLASH2};
    (void)state;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        random_head h;
        tiny t;
        make(&h, each[i]);
        head_write(&h, path_of("head"));
        head_gguf_open(&t, &h, forms[each[i]]);
        head_gguf_write(&t, path_of("head.gguf"));
        tiny_close(&t);
        head_free(&h);
        json_t *one = json_of("draft", "-m", LLAMA, "--draft",
                              spec_at(head_kind_of(forms[each[i]]), path_of("head"), ",depth=4"), "--tokens", IDS);
        json_t *file =
            json_of("draft", "-m", LLAMA, "--draft",
                    spec_at(head_kind_of(forms[each[i]]), path_of("head.gguf"), ",depth=4"), "--tokens", IDS);
        assert_int_equal(json_array_size(get(one, "tokens")), 4);
        assert_true(json_equal(get(one, "tokens"), get(file, "tokens")) && json_equal(get(one, "q"), get(file, "q")));
        json_decref(one);
        json_decref(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_config),       cmocka_unit_test(test_tensors),
                                       cmocka_unit_test(test_levels),       cmocka_unit_test(test_gguf_keys),
                                       cmocka_unit_test(test_gguf_tensors), cmocka_unit_test(test_right)};
    return cmocka_run_group_tests(tests, hostile_setup, folder_remove);
}
