/* SPDX-License-Identifier: Apache-2.0 */
/* head_forms.c - how the files that several kinds of draft heads share name tensors outside layers; forms of one kind are in that kind's
 * drafter_KIND.c. A GGUF has one form for all kinds, beside llama.cpp's for blocks and for modules of multi-token prediction; that of
 * steps is in head_steps.c. */
#include "model/head/head.h"

const hn_head_form hn_head_folder = {
    .part = {[HN_HEAD_FC] = "fc.weight", [HN_HEAD_FC_BIAS] = "fc.bias", [HN_HEAD_FEATURE_NORM] = "input_norm.weight",
             [HN_HEAD_STATE_NORM] = "fc_norm.%d.weight", [HN_HEAD_TOKEN_NORM] = "@input_layernorm.weight",
             [HN_HEAD_STREAM_NORM] = "@hidden_norm.weight", [HN_HEAD_OUTPUT_NORM] = "norm.weight", [HN_HEAD_MASK] = "mask_hidden",
             [HN_HEAD_MASK_PAIR] = "@mask_rep", [HN_HEAD_EMBEDDING] = "embed_tokens.weight", [HN_HEAD_OUTPUT] = "!lm_head.weight",
             [HN_HEAD_IDS] = "d2t", [HN_HEAD_CENTROIDS] = "!masked_embedding.centroids.weight",
             [HN_HEAD_ORDER] = "!masked_embedding.token_ordering"},
};
const hn_head_form hn_head_gguf = {
    .part = {[HN_HEAD_FC] = "fc.weight", [HN_HEAD_FC_BIAS] = "fc.bias", [HN_HEAD_FEATURE_NORM] = "enc.output_norm.weight",
             [HN_HEAD_STATE_NORM] = "fc_norm.%d.weight", [HN_HEAD_TOKEN_NORM] = "blk.0.attn_norm.weight",
             [HN_HEAD_STREAM_NORM] = "blk.0.attn_norm_2.weight", [HN_HEAD_OUTPUT_NORM] = "output_norm.weight",
             [HN_HEAD_MASK] = "mask_hidden", [HN_HEAD_MASK_PAIR] = "blk.0.mask_rep", [HN_HEAD_LSTM_1] = "lstm.0.weight",
             [HN_HEAD_LSTM_2] = "lstm.1.weight", [HN_HEAD_LSTM_BIAS_1] = "lstm.0.bias", [HN_HEAD_LSTM_BIAS_2] = "lstm.1.bias",
             [HN_HEAD_LSTM_STATE_BIAS_1] = "lstm.0.state_bias", [HN_HEAD_LSTM_STATE_BIAS_2] = "lstm.1.state_bias",
             [HN_HEAD_EMBEDDING] = "token_embd.weight", [HN_HEAD_OUTPUT] = "output.weight", [HN_HEAD_IDS] = "d2t",
             [HN_HEAD_CENTROIDS] = "masked_embd_centroids.weight", [HN_HEAD_ORDER] = "masked_embd_ordering"},
};

/* ---- modules of multi-token prediction: speculators' folders, our GGUF, a model's own file --------------------------------- */

const hn_head_form hn_head_mtp = {
    .numbered = true,
    .part = {[HN_HEAD_FC] = "layers.%d.input_proj.weight", [HN_HEAD_FC_BIAS] = "layers.%d.input_proj.bias",
             [HN_HEAD_TOKEN_NORM] = "layers.%d.token_layernorm.weight", [HN_HEAD_STREAM_NORM] = "layers.%d.hidden_layernorm.weight",
             [HN_HEAD_OUTPUT_NORM] = "layers.%d.final_layernorm.weight", [HN_HEAD_EMBEDDING] = "!embed_tokens.weight",
             [HN_HEAD_OUTPUT] = "!lm_head.weight", [HN_HEAD_IDS] = "!d2t"},
};
const hn_head_form hn_head_gguf_mtp = {
    .part = {[HN_HEAD_FC] = "blk.0.nextn.eh_proj.weight", [HN_HEAD_FC_BIAS] = "blk.0.nextn.eh_proj.bias",
             [HN_HEAD_TOKEN_NORM] = "blk.0.nextn.enorm.weight", [HN_HEAD_STREAM_NORM] = "blk.0.nextn.hnorm.weight",
             [HN_HEAD_OUTPUT_NORM] = "blk.0.nextn.shared_head_norm.weight", [HN_HEAD_EMBEDDING] = "token_embd.weight",
             [HN_HEAD_OUTPUT] = "output.weight", [HN_HEAD_IDS] = "d2t"},
};
const hn_head_form hn_head_own = {
    .numbered = true,
    .part = {[HN_HEAD_FC] = "fc.weight", [HN_HEAD_TOKEN_NORM] = "pre_fc_norm_embedding.weight",
             [HN_HEAD_STREAM_NORM] = "pre_fc_norm_hidden.weight", [HN_HEAD_OUTPUT_NORM] = "norm.weight",
             [HN_HEAD_EMBEDDING] = "!embed_tokens.weight", [HN_HEAD_OUTPUT] = "!lm_head.weight", [HN_HEAD_IDS] = "!d2t"},
};
const hn_head_form hn_head_own_next = {
    .numbered = true,
    .part = {[HN_HEAD_FC] = "layers.%d.eh_proj.weight", [HN_HEAD_TOKEN_NORM] = "layers.%d.enorm.weight",
             [HN_HEAD_STREAM_NORM] = "layers.%d.hnorm.weight", [HN_HEAD_OUTPUT_NORM] = "layers.%d.shared_head.norm.weight",
             [HN_HEAD_EMBEDDING] = "!embed_tokens.weight", [HN_HEAD_OUTPUT] = "!lm_head.weight", [HN_HEAD_IDS] = "!d2t"},
};
const hn_head_form hn_head_own_final = {
    .base = &hn_head_own_next, .numbered = true, .part = {[HN_HEAD_OUTPUT_NORM] = "layers.%d.final_layernorm.weight"}};
const hn_head_form hn_head_own_gguf = {
    .numbered = true,
    .part = {[HN_HEAD_FC] = "blk.%d.nextn.eh_proj.weight", [HN_HEAD_TOKEN_NORM] = "blk.%d.nextn.enorm.weight",
             [HN_HEAD_STREAM_NORM] = "blk.%d.nextn.hnorm.weight", [HN_HEAD_OUTPUT_NORM] = "blk.%d.nextn.shared_head_norm.weight",
             [HN_HEAD_EMBEDDING] = "!embed_tokens.weight", [HN_HEAD_OUTPUT] = "!output.weight", [HN_HEAD_IDS] = "!d2t"},
};

/* ---- blocks ---------------------------------------------------------------------------------------------------------------- */

const hn_head_form hn_head_blocks = {
    .part = {[HN_HEAD_FC] = "fc.weight", [HN_HEAD_FC_BIAS] = "fc.bias", [HN_HEAD_OUTPUT_NORM] = "norm.weight",
             [HN_HEAD_CONTEXT_NORM] = "hidden_norm.weight", [HN_HEAD_MASK_ROW] = "mask_embedding",
             [HN_HEAD_MARKOV_IN] = "markov_head.markov_w1.weight", [HN_HEAD_MARKOV_OUT] = "markov_head.markov_w2.weight",
             [HN_HEAD_MARKOV_GATE] = "markov_head.gate_proj.weight", [HN_HEAD_MARKOV_GATE_BIAS] = "markov_head.gate_proj.bias",
             [HN_HEAD_MARKOV_STEP] = "markov_head.joint_proj.weight", [HN_HEAD_MARKOV_STEP_BIAS] = "markov_head.joint_proj.bias",
             [HN_HEAD_CONFIDENCE] = "confidence_head.proj.weight", [HN_HEAD_CONFIDENCE_BIAS] = "confidence_head.proj.bias",
             [HN_HEAD_EMBEDDING] = "embed_tokens.weight", [HN_HEAD_OUTPUT] = "!lm_head.weight", [HN_HEAD_IDS] = "d2t"},
};
const hn_head_form hn_head_encoder = {
    .base = &hn_head_blocks,
    .part = {[HN_HEAD_FC] = "encoder.fc.weight", [HN_HEAD_FC_BIAS] = "encoder.fc.bias",
             [HN_HEAD_CONTEXT_NORM] = "encoder.output_norm_enc.weight"},
};
const hn_head_form hn_head_gguf_blocks = {
    .part = {[HN_HEAD_FC] = "fc.weight", [HN_HEAD_FC_BIAS] = "fc.bias", [HN_HEAD_OUTPUT_NORM] = "output_norm.weight",
             [HN_HEAD_CONTEXT_NORM] = "enc.output_norm.weight", [HN_HEAD_MASK_ROW] = "mask_embedding",
             [HN_HEAD_MARKOV_IN] = "markov_w1.weight", [HN_HEAD_MARKOV_OUT] = "markov_w2.weight",
             [HN_HEAD_MARKOV_GATE] = "markov_gate.weight", [HN_HEAD_MARKOV_GATE_BIAS] = "markov_gate.bias",
             [HN_HEAD_MARKOV_STEP] = "markov_joint.weight", [HN_HEAD_MARKOV_STEP_BIAS] = "markov_joint.bias",
             [HN_HEAD_CONV_BASE] = "blk.%d.attn_conv_base", [HN_HEAD_CONV_PRODUCT] = "blk.%d.attn_conv_proj.weight",
             [HN_HEAD_FFN_CONV_BASE] = "blk.%d.ffn_conv_base", [HN_HEAD_FFN_CONV_PRODUCT] = "blk.%d.ffn_conv_proj.weight",
             [HN_HEAD_SELECTOR] = "selector_hidden.weight", [HN_HEAD_CODES_BEFORE] = "selector_predecessor.weight",
             [HN_HEAD_CODES_AFTER] = "selector_successor.weight",
             [HN_HEAD_GRU_INPUT] = "prefix_gru_ih.weight", [HN_HEAD_GRU_STATE] = "prefix_gru_hh.weight",
             [HN_HEAD_BIAS_IN] = "embed_proj_in.weight", [HN_HEAD_BIAS_OUT] = "embed_proj_out.weight",
             [HN_HEAD_CONFIDENCE] = "conf_proj.weight", [HN_HEAD_CONFIDENCE_BIAS] = "conf_proj.bias",
             [HN_HEAD_EMBEDDING] = "token_embd.weight", [HN_HEAD_OUTPUT] = "output.weight", [HN_HEAD_IDS] = "d2t"},
};
