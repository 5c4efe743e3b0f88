/* SPDX-License-Identifier: Apache-2.0 */
/* head_names.c - the names of a draft head's tensors outside its layers, in each form of file. */
#include <stdio.h>
#include <string.h>

#include "model/head/head_steps.h"

/* '@': a tensor of layer 0; '!': without a prefix; %d is the number of a state. NULL: the form has none.
 * HN_HEAD_ENCODER: only names that differ from other folders of blocks. */
static const char *const table[HN_HEAD_PARTS][HN_HEAD_FORMS] = {
    /*                     folders                     speculators' MTP            GGUF                       GGUF of MTP
     *                     own: Qwen's folders, DeepSeek's, a GGUF; %d is the number of the block */
    [HN_HEAD_FC] =           {"fc.weight",               "layers.%d.input_proj.weight",        "fc.weight",
                              "blk.0.nextn.eh_proj.weight",
                              [HN_HEAD_OWN] = "fc.weight", "layers.%d.eh_proj.weight", "blk.%d.nextn.eh_proj.weight",
                              [HN_HEAD_BLOCKS] = "fc.weight", [HN_HEAD_GGUF_BLOCKS] = "fc.weight",
                              [HN_HEAD_ENCODER] = "encoder.fc.weight"},
    [HN_HEAD_FC_BIAS] =      {"fc.bias",                 "layers.%d.input_proj.bias",          "fc.bias",
                              "blk.0.nextn.eh_proj.bias",
                              [HN_HEAD_OWN] = NULL, NULL, NULL,
                              [HN_HEAD_BLOCKS] = "fc.bias", [HN_HEAD_GGUF_BLOCKS] = "fc.bias", [HN_HEAD_ENCODER] = "encoder.fc.bias"},
    [HN_HEAD_FEATURE_NORM] = {"input_norm.weight",       NULL,                       "enc.output_norm.weight",  NULL,
                              [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_STATE_NORM] =   {"fc_norm.%d.weight",       NULL,                       "fc_norm.%d.weight",       NULL,
                              [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_TOKEN_NORM] =   {"@input_layernorm.weight", "layers.%d.token_layernorm.weight",   "blk.0.attn_norm.weight",
                              "blk.0.nextn.enorm.weight",
                              [HN_HEAD_OWN] = "pre_fc_norm_embedding.weight", "layers.%d.enorm.weight", "blk.%d.nextn.enorm.weight"},
    [HN_HEAD_STREAM_NORM] =  {"@hidden_norm.weight",     "layers.%d.hidden_layernorm.weight",
                              "blk.0.attn_norm_2.weight","blk.0.nextn.hnorm.weight",
                              [HN_HEAD_OWN] = "pre_fc_norm_hidden.weight", "layers.%d.hnorm.weight", "blk.%d.nextn.hnorm.weight"},
    [HN_HEAD_OUTPUT_NORM] =  {"norm.weight",             "layers.%d.final_layernorm.weight",   "output_norm.weight",
                              "blk.0.nextn.shared_head_norm.weight",
                              [HN_HEAD_OWN] = "norm.weight", "layers.%d.shared_head.norm.weight", "blk.%d.nextn.shared_head_norm.weight",
                              [HN_HEAD_HYDRA] = "prefix_embeding_layer.norm.weight", [HN_HEAD_META] = "norm.weight",
                              [HN_HEAD_GGUF_STEPS] = "output_norm.weight",
                              [HN_HEAD_BLOCKS] = "norm.weight", [HN_HEAD_GGUF_BLOCKS] = "output_norm.weight"},
    [HN_HEAD_MASK] =         {"mask_hidden",             NULL,                       "mask_hidden",             NULL,
                              [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_MASK_PAIR] =    {"@mask_rep",               NULL,                       "blk.0.mask_rep",          NULL,
                              [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_CONTEXT_NORM] = {[HN_HEAD_BLOCKS] = "hidden_norm.weight", [HN_HEAD_GGUF_BLOCKS] = "enc.output_norm.weight",
                              [HN_HEAD_ENCODER] = "encoder.output_norm_enc.weight"},
    [HN_HEAD_MASK_ROW] =     {[HN_HEAD_BLOCKS] = "mask_embedding", [HN_HEAD_GGUF_BLOCKS] = "mask_embedding"},
    [HN_HEAD_MARKOV_IN] =    {[HN_HEAD_BLOCKS] = "markov_head.markov_w1.weight", [HN_HEAD_GGUF_BLOCKS] = "markov_w1.weight"},
    [HN_HEAD_MARKOV_OUT] =   {[HN_HEAD_BLOCKS] = "markov_head.markov_w2.weight", [HN_HEAD_GGUF_BLOCKS] = "markov_w2.weight"},
    [HN_HEAD_MARKOV_GATE] =  {[HN_HEAD_BLOCKS] = "markov_head.gate_proj.weight", [HN_HEAD_GGUF_BLOCKS] = "markov_gate.weight"},
    [HN_HEAD_MARKOV_GATE_BIAS] = {[HN_HEAD_BLOCKS] = "markov_head.gate_proj.bias", [HN_HEAD_GGUF_BLOCKS] = "markov_gate.bias"},
    [HN_HEAD_MARKOV_STEP] =  {[HN_HEAD_BLOCKS] = "markov_head.joint_proj.weight", [HN_HEAD_GGUF_BLOCKS] = "markov_joint.weight"},
    [HN_HEAD_MARKOV_STEP_BIAS] = {[HN_HEAD_BLOCKS] = "markov_head.joint_proj.bias", [HN_HEAD_GGUF_BLOCKS] = "markov_joint.bias"},
    [HN_HEAD_CONFIDENCE] =   {[HN_HEAD_BLOCKS] = "confidence_head.proj.weight", [HN_HEAD_GGUF_BLOCKS] = "conf_proj.weight"},
    [HN_HEAD_CONFIDENCE_BIAS] = {[HN_HEAD_BLOCKS] = "confidence_head.proj.bias", [HN_HEAD_GGUF_BLOCKS] = "conf_proj.bias"},
    [HN_HEAD_LSTM_1] = {"lstm.weight_ih_l0", NULL, "lstm.0.weight", NULL, [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_LSTM_2] = {"lstm.weight_ih_l1", NULL, "lstm.1.weight", NULL, [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_LSTM_BIAS_1] = {"lstm.bias_ih_l0", NULL, "lstm.0.bias", NULL, [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_LSTM_BIAS_2] = {"lstm.bias_ih_l1", NULL, "lstm.1.bias", NULL, [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_LSTM_STATE_BIAS_1] = {"lstm.bias_hh_l0", NULL, "lstm.0.state_bias", NULL, [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_LSTM_STATE_BIAS_2] = {"lstm.bias_hh_l1", NULL, "lstm.1.state_bias", NULL, [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_EMBEDDING] =    {"embed_tokens.weight",     "!embed_tokens.weight",     "token_embd.weight",       "token_embd.weight",
                              [HN_HEAD_OWN] = "!embed_tokens.weight", "!embed_tokens.weight", "!embed_tokens.weight",
                              [HN_HEAD_BLOCKS] = "embed_tokens.weight", [HN_HEAD_GGUF_BLOCKS] = "token_embd.weight"},
    [HN_HEAD_OUTPUT] =       {"!lm_head.weight",         "!lm_head.weight",          "output.weight",           "output.weight",
                              [HN_HEAD_OWN] = "!lm_head.weight", "!lm_head.weight", "!output.weight",
                              [HN_HEAD_BLOCKS] = "!lm_head.weight", [HN_HEAD_GGUF_BLOCKS] = "output.weight"},
    [HN_HEAD_IDS] =          {"d2t",                     "!d2t",                     "d2t",                     "d2t",
                              [HN_HEAD_OWN] = "!d2t", "!d2t", "!d2t",
                              [HN_HEAD_MEDUSA_VLLM] = "token_map", [HN_HEAD_GGUF_STEPS] = "d2t",
                              [HN_HEAD_MEDUSA] = "!d2t", [HN_HEAD_HYDRA] = "!d2t", [HN_HEAD_SPECULATOR] = "!d2t",
                              [HN_HEAD_ARCTIC_LSTM] = "!d2t",
                              [HN_HEAD_BLOCKS] = "d2t", [HN_HEAD_GGUF_BLOCKS] = "d2t"},
    [HN_HEAD_CENTROIDS] =    {"!masked_embedding.centroids.weight", NULL, "masked_embd_centroids.weight", NULL,
                              [HN_HEAD_OWN] = NULL, NULL, NULL},
    [HN_HEAD_ORDER] =        {"!masked_embedding.token_ordering", NULL, "masked_embd_ordering", NULL,
                              [HN_HEAD_OWN] = NULL, NULL, NULL},
};

const char *hn_head_name(const hn_head_names *names, hn_head_part part, int k, char out[128]) {
    const char *form = table[part][names->form];
    if (!form && names->form == HN_HEAD_ENCODER) form = table[part][HN_HEAD_BLOCKS];
    if (!form) return NULL;
    const char *front = *form == '!' ? "" : names->front, *first = *form == '@' ? names->first : "";
    const char *own = form + (*form == '!' || *form == '@'), *number = strstr(own, "%d");
    if (names->form >= HN_HEAD_OWN || names->form == HN_HEAD_MTP) k = names->module;
    if (number)
        snprintf(out, 128, "%s%s%.*s%d%s", front, first, (int)(number - own), own, k, number + 2);
    else
        snprintf(out, 128, "%s%s%s", front, first, own);
    return out;
}

const hn_tensor *hn_head_find_tensor(const hn_source *src, const hn_head_names *names, hn_head_part part) {
    char name[128];
    return hn_head_name(names, part, 0, name) ? hn_source_find(src, name) : NULL;
}

static bool has_joint_norms(const hn_input_stage *in) {
    return in->stream == HN_STREAM_JOINT && in->joint.norms;
}

bool hn_head_has(const hn_arch *a, hn_head_part part) {
    const hn_head_desc *d = &a->draft_head;
    const hn_input_stage *in = &d->input;
    const hn_output_stage *out = &d->output;
    const hn_rows_stage *rows = &d->rows;
    switch (part) {
    case HN_HEAD_FC: return hn_head_has_fc(d);
    case HN_HEAD_LSTM_1:
    case HN_HEAD_LSTM_2:
    case HN_HEAD_LSTM_BIAS_1:
    case HN_HEAD_LSTM_BIAS_2:
    case HN_HEAD_LSTM_STATE_BIAS_1:
    case HN_HEAD_LSTM_STATE_BIAS_2: return in->stream == HN_STREAM_LSTM;
    case HN_HEAD_FC_BIAS: return hn_head_has_fc_bias(d);
    case HN_HEAD_FEATURE_NORM: return in->stream == HN_STREAM_FEATURE && in->feature.norm_all;
    case HN_HEAD_STATE_NORM: return in->stream == HN_STREAM_FEATURE && in->feature.norm_each;
    case HN_HEAD_TOKEN_NORM:
    case HN_HEAD_STREAM_NORM: return (a->layers > 0 && hn_layer_reads_pair(&a->layer[0])) || has_joint_norms(in);
    case HN_HEAD_OUTPUT_NORM: return out->norm != HN_NORM_NONE;
    case HN_HEAD_MASK: return rows->kind == HN_ROWS_MASKS && !rows->masks.pair;
    case HN_HEAD_MASK_PAIR: return rows->kind == HN_ROWS_MASKS && rows->masks.pair;
    case HN_HEAD_CONTEXT_NORM: return in->stream == HN_STREAM_CONTEXT;
    case HN_HEAD_MASK_ROW: return rows->kind == HN_ROWS_BLOCK && rows->block.mask_row;
    case HN_HEAD_MARKOV_IN:
    case HN_HEAD_MARKOV_OUT: return hn_head_has_markov(d);
    case HN_HEAD_MARKOV_GATE:
    case HN_HEAD_MARKOV_GATE_BIAS: return hn_head_has_markov(d) && out->markov.kind == HN_MARKOV_GATED;
    case HN_HEAD_MARKOV_STEP:
    case HN_HEAD_MARKOV_STEP_BIAS: return hn_head_has_markov(d) && out->markov.kind == HN_MARKOV_RNN;
    case HN_HEAD_CONFIDENCE:
    case HN_HEAD_CONFIDENCE_BIAS: return hn_head_has_confidence(d);
    case HN_HEAD_EMBEDDING: return in->own_embedding;
    case HN_HEAD_OUTPUT: return out->own && rows->kind != HN_ROWS_STEPS;
    case HN_HEAD_IDS: return out->own;
    case HN_HEAD_CENTROIDS:
    case HN_HEAD_ORDER: return out->kind == HN_OUTPUT_CLUSTERS;
    case HN_HEAD_PARTS: break;
    }
    return false;
}

bool hn_head_part_is_vector(hn_head_part part) {
    switch (part) {
    case HN_HEAD_FC:
    case HN_HEAD_EMBEDDING:
    case HN_HEAD_OUTPUT:
    case HN_HEAD_MARKOV_IN:
    case HN_HEAD_MARKOV_OUT:
    case HN_HEAD_MARKOV_GATE:
    case HN_HEAD_MARKOV_STEP:
    case HN_HEAD_LSTM_1:
    case HN_HEAD_LSTM_2:
    case HN_HEAD_CENTROIDS:
    case HN_HEAD_CONFIDENCE: return false;
    default: return true;
    }
}

void hn_head_part_shape(const hn_arch *a, hn_head_part part, uint64_t dims[2]) {
    const hn_head_desc *d = &a->draft_head;
    const hn_input_stage *in = &d->input;
    const uint64_t hidden = (uint64_t)a->hidden, width = (uint64_t)in->feature_width, feature = (uint64_t)in->features * width;
    dims[0] = hidden;
    dims[1] = 1;
    if (part == HN_HEAD_FC) dims[0] = in->stream == HN_STREAM_JOINT ? hidden + feature : feature, dims[1] = hidden;
    if (part == HN_HEAD_FEATURE_NORM || part == HN_HEAD_MASK) dims[0] = feature;
    if (part == HN_HEAD_MASK_PAIR) dims[0] = 2 * hidden;
    if (part == HN_HEAD_LSTM_1) dims[0] = hidden + feature, dims[1] = 4 * hidden;
    if (part == HN_HEAD_LSTM_2) dims[1] = 4 * hidden;
    if (part >= HN_HEAD_LSTM_BIAS_1 && part <= HN_HEAD_LSTM_STATE_BIAS_2) dims[0] = 4 * hidden;
    if (part == HN_HEAD_STATE_NORM) dims[0] = width;
    if (part == HN_HEAD_STREAM_NORM && has_joint_norms(in)) dims[0] = feature;
    if (part == HN_HEAD_EMBEDDING) dims[1] = (uint64_t)in->embeddings;
    if (part == HN_HEAD_OUTPUT) dims[1] = (uint64_t)a->vocab;
    if (part == HN_HEAD_IDS || part == HN_HEAD_ORDER) dims[0] = (uint64_t)a->vocab;
    if (part == HN_HEAD_CENTROIDS) dims[1] = (uint64_t)d->output.clusters.n;
    const uint64_t rank = hn_head_has_markov(d) ? (uint64_t)d->output.markov.rank : 0;
    if (part == HN_HEAD_MARKOV_IN) dims[0] = rank, dims[1] = (uint64_t)in->embeddings;
    if (part == HN_HEAD_MARKOV_OUT) dims[0] = rank, dims[1] = (uint64_t)a->vocab;
    if (part == HN_HEAD_MARKOV_GATE) dims[0] = hidden + rank, dims[1] = rank;
    if (part == HN_HEAD_MARKOV_GATE_BIAS) dims[0] = rank;
    if (part == HN_HEAD_MARKOV_STEP) dims[0] = hidden + 2 * rank, dims[1] = 3 * rank;
    if (part == HN_HEAD_MARKOV_STEP_BIAS) dims[0] = 3 * rank;
    if (part == HN_HEAD_CONFIDENCE) dims[0] = hidden + (d->output.markov.confidence == HN_CONFIDENCE_OF_TOKEN ? rank : 0);
    if (part == HN_HEAD_CONFIDENCE_BIAS) dims[0] = 1;
}

/* Whether there is a tensor whose name begins with it. */
static bool has_tensor(hn_source *src, const char *begin) {
    for (size_t i = 0; i < hn_source_tensor_count(src); i++)
        if (!strncmp(hn_source_tensor(src, i)->name, begin, strlen(begin))) return true;
    return false;
}

static hn_head_form gguf_form(hn_source *src) {
    const hn_dense *family;
    if (!hn_head_find_family(src, &family, NULL) && hn_head_family_blocks(family)) return HN_HEAD_GGUF_BLOCKS;
    return has_tensor(src, "blk.0.nextn.") ? HN_HEAD_GGUF_MTP : HN_HEAD_GGUF;
}

/* Heads with weights for each position: how a tensor of each form begins, after one of these prefixes. */
static bool find_steps(hn_source *src, hn_head_names *names) {
    static const struct {
        hn_head_form form;
        const char *front, *begin;
    } all[] = {{HN_HEAD_MEDUSA, "", "0.0.linear.weight"}, {HN_HEAD_MEDUSA, "medusa_head.", "0.0.linear.weight"},
               {HN_HEAD_MEDUSA, "model.medusa_head.", "0.0.linear.weight"},
               {HN_HEAD_MEDUSA_VLLM, "", "blocks.0.layers.0."}, {HN_HEAD_MEDUSA_VLLM, "medusa_heads.", "blocks.0.layers.0."},
               {HN_HEAD_MEDUSA_VLLM, "", "lm_heads.0."}, {HN_HEAD_MEDUSA_VLLM, "medusa_heads.", "lm_heads.0."},
               {HN_HEAD_HYDRA, "", "hydra_mlp.0."}, {HN_HEAD_HYDRA, "hydra_head.", "hydra_mlp.0."},
               {HN_HEAD_SPECULATOR, "speculator.", "emb.0."}, {HN_HEAD_SPECULATOR, "", "emb.0."},
               {HN_HEAD_ARCTIC_LSTM, "speculator.", "forget_emb.0."}, {HN_HEAD_ARCTIC_LSTM, "", "forget_emb.0."},
               {HN_HEAD_META, "", "extra_heads.0."}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char begin[64];
        snprintf(begin, sizeof begin, "%s%s", all[i].front, all[i].begin);
        if (!has_tensor(src, begin)) continue;
        *names = (hn_head_names){.form = all[i].form, .front = all[i].front};
        names->steps = hn_steps_find_layout(src, names);
        return true;
    }
    return false;
}

/* Heads that draft blocks, with one of these prefixes. */
static bool find_blocks(hn_source *src, const char *front, hn_head_names *names) {
    static const hn_head_form forms[] = {HN_HEAD_BLOCKS, HN_HEAD_ENCODER};
    char middle[32];
    snprintf(middle, sizeof middle, "%smidlayer.", front);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        *names = (hn_head_names){.form = forms[i], .front = front, .first = has_tensor(src, middle) ? "midlayer." : "layers.0."};
        if (hn_head_find_tensor(src, names, HN_HEAD_CONTEXT_NORM)) return true;
    }
    return false;
}

/* The number of consecutive modules of multi-token prediction; 0: one. */
static int count_modules(hn_source *src, const char *front) {
    char begin[64];
    int n = -1;
    do
        snprintf(begin, sizeof begin, "%slayers.%d.", front, ++n);
    while (n <= HN_MOST_HEAD_MODULES && has_tensor(src, begin));
    return n > 1 ? n : 0;
}

hn_head_names hn_head_find_names(hn_source *src) {
    hn_head_names steps, blocks;
    const char *name;
    uint64_t n;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) {
        if (!hn_head_u64(src, HN_HEAD_KEY_STEPS, &n, &name, NULL) && name) {
            steps = (hn_head_names){.form = HN_HEAD_GGUF_STEPS, .front = ""};
            steps.steps = hn_steps_find_layout(src, &steps);
            return steps;
        }
        return (hn_head_names){.form = gguf_form(src), .front = "", .first = ""};
    }
    if (find_steps(src, &steps)) return steps;
    if (has_tensor(src, "mtp_layers.")) return (hn_head_names){.form = HN_HEAD_MTP, .front = "mtp_", .modules = count_modules(src, "mtp_")};
    if (has_tensor(src, "model.mtp_layers."))
        return (hn_head_names){.form = HN_HEAD_MTP, .front = "model.mtp_", .modules = count_modules(src, "model.mtp_")};
    if (find_blocks(src, "", &blocks) || find_blocks(src, "model.", &blocks)) return blocks;
    const bool inner = hn_source_find(src, "model.fc.weight");
    const bool middle = has_tensor(src, inner ? "model.midlayer." : "midlayer.");
    return (hn_head_names){.form = HN_HEAD_FOLDER, .front = inner ? "model." : "", .first = middle ? "midlayer." : "layers.0."};
}
