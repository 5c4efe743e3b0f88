/* SPDX-License-Identifier: Apache-2.0 */
/* head_names.c - a draft head's tensors outside its layers: their names, by the form of its files (hn_head_form), which of them a head of
 * a description has, and of what shape. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/head/head.h"

const char *hn_head_name(const hn_head_names *names, hn_head_part part, int k, char out[128]) {
    const hn_head_form *form = names->form;
    while (!form->part[part] && form->base) form = form->base;
    const char *template = form->part[part];
    if (!template) return NULL;
    const char *front = *template == '!' ? "" : names->front, *first = *template == '@' ? names->first : "";
    const char *own = template + (*template == '!' || *template == '@'), *number = strstr(own, "%d");
    if (names->form->numbered) k = names->module;
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
    case HN_HEAD_CARRY: return out->norm == HN_NORM_CARRIED;
    case HN_HEAD_MASK: return rows->kind == HN_ROWS_MASKS && rows->masks.input == HN_MASK_OWN;
    case HN_HEAD_MASK_PAIR: return rows->kind == HN_ROWS_MASKS && rows->masks.input == HN_MASK_PAIR;
    case HN_HEAD_CONTEXT_NORM: return in->stream == HN_STREAM_CONTEXT;
    case HN_HEAD_MASK_ROW: return rows->kind == HN_ROWS_BLOCK && rows->block.mask_row;
    case HN_HEAD_MARKOV_IN:
    case HN_HEAD_MARKOV_OUT: return hn_head_has_markov(d);
    case HN_HEAD_MARKOV_GATE:
    case HN_HEAD_MARKOV_GATE_BIAS: return hn_head_has_markov(d) && out->markov.kind == HN_MARKOV_GATED;
    case HN_HEAD_MARKOV_STEP:
    case HN_HEAD_MARKOV_STEP_BIAS: return hn_head_has_markov(d) && out->markov.kind == HN_MARKOV_RNN;
    case HN_HEAD_CONV_BASE:
    case HN_HEAD_CONV_PRODUCT:
    case HN_HEAD_FFN_CONV_BASE:
    case HN_HEAD_FFN_CONV_PRODUCT: return hn_head_conv_desc(d);
    case HN_HEAD_SELECTOR:
    case HN_HEAD_CODES_BEFORE:
    case HN_HEAD_CODES_AFTER: return out->kind == HN_OUTPUT_SELECTOR;
    case HN_HEAD_GRU_INPUT:
    case HN_HEAD_GRU_STATE:
    case HN_HEAD_BIAS_IN:
    case HN_HEAD_BIAS_OUT: return out->kind == HN_OUTPUT_PREFIX;
    case HN_HEAD_CONFIDENCE:
    case HN_HEAD_CONFIDENCE_BIAS: return hn_head_has_confidence(d);
    case HN_HEAD_EMBEDDING: return in->own_embedding;
    case HN_HEAD_OUTPUT: return out->own && !a->tied && rows->kind != HN_ROWS_STEPS;
    case HN_HEAD_IDS: return out->own && rows->kind != HN_ROWS_BORROWED;
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
    case HN_HEAD_CONV_PRODUCT:
    case HN_HEAD_FFN_CONV_PRODUCT:
    case HN_HEAD_SELECTOR:
    case HN_HEAD_CODES_BEFORE:
    case HN_HEAD_CODES_AFTER:
    case HN_HEAD_GRU_INPUT:
    case HN_HEAD_GRU_STATE:
    case HN_HEAD_BIAS_IN:
    case HN_HEAD_BIAS_OUT:
    case HN_HEAD_LSTM_1:
    case HN_HEAD_LSTM_2:
    case HN_HEAD_CENTROIDS:
    case HN_HEAD_CARRY:
    case HN_HEAD_CONFIDENCE: return false;
    default: return true;
    }
}

int hn_head_part_count(const hn_arch *a, hn_head_part part) {
    if (part == HN_HEAD_STATE_NORM) return a->draft_head.input.features;
    return part >= HN_HEAD_CONV_BASE && part <= HN_HEAD_FFN_CONV_PRODUCT ? a->layers : 1;
}

/* The parts of single kinds of blocks and outputs. */
static void shape_of_kind(const hn_arch *a, hn_head_part part, uint64_t dims[2]) {
    const hn_head_desc *d = &a->draft_head;
    const hn_conv_desc *conv = hn_head_conv_desc(d);
    const uint64_t hidden = (uint64_t)a->hidden, tokens = (uint64_t)d->input.embeddings;
    if (conv && (part == HN_HEAD_CONV_BASE || part == HN_HEAD_FFN_CONV_BASE)) dims[0] = 2 * (uint64_t)conv->taps * hidden;
    if (conv && (part == HN_HEAD_CONV_PRODUCT || part == HN_HEAD_FFN_CONV_PRODUCT))
        dims[1] = (uint64_t)hn_conv_coefficients(conv, a->hidden);
    if (d->output.kind == HN_OUTPUT_SELECTOR) {
        const uint64_t rank = (uint64_t)d->output.selector.rank;
        if (part == HN_HEAD_SELECTOR) dims[1] = rank;
        if (part == HN_HEAD_CODES_BEFORE || part == HN_HEAD_CODES_AFTER) dims[0] = rank, dims[1] = tokens;
    }
    if (d->output.kind != HN_OUTPUT_PREFIX) return;
    const uint64_t state = (uint64_t)d->output.prefix.state, width = (uint64_t)d->output.prefix.width;
    if (part == HN_HEAD_GRU_INPUT) dims[1] = 3 * state;
    if (part == HN_HEAD_GRU_STATE) dims[0] = state, dims[1] = 3 * state;
    if (part == HN_HEAD_BIAS_IN) dims[0] = hidden + state, dims[1] = width;
    if (part == HN_HEAD_BIAS_OUT) dims[0] = width, dims[1] = (uint64_t)a->vocab;
}

void hn_head_part_shape(const hn_arch *a, hn_head_part part, uint64_t dims[2]) {
    const hn_head_desc *d = &a->draft_head;
    const hn_input_stage *in = &d->input;
    const uint64_t hidden = (uint64_t)a->hidden, width = (uint64_t)in->feature_width, feature = (uint64_t)in->features * width;
    dims[0] = hidden;
    dims[1] = 1;
    const uint64_t token = in->stream == HN_STREAM_JOINT ? (uint64_t)hn_arch_token_width(a) : 0;
    if (part == HN_HEAD_FC) dims[0] = token + feature, dims[1] = hidden;
    if (part == HN_HEAD_FEATURE_NORM || part == HN_HEAD_MASK) dims[0] = feature;
    if (part == HN_HEAD_CARRY) dims[1] = feature;
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
    shape_of_kind(a, part, dims);
}

const hn_head_place hn_head_places[] = {
    {HN_HEAD_FC, offsetof(hn_head, fc)},
    {HN_HEAD_FC_BIAS, offsetof(hn_head, fc_bias)},
    {HN_HEAD_LSTM_1, offsetof(hn_head, lstm[0])},
    {HN_HEAD_LSTM_BIAS_1, offsetof(hn_head, lstm_bias[0])},
    {HN_HEAD_LSTM_STATE_BIAS_1, offsetof(hn_head, lstm_state_bias[0])},
    {HN_HEAD_LSTM_2, offsetof(hn_head, lstm[1])},
    {HN_HEAD_LSTM_BIAS_2, offsetof(hn_head, lstm_bias[1])},
    {HN_HEAD_LSTM_STATE_BIAS_2, offsetof(hn_head, lstm_state_bias[1])},
    {HN_HEAD_FEATURE_NORM, offsetof(hn_head, feature_norm)},
    {HN_HEAD_MASK, offsetof(hn_head, mask)},
    {HN_HEAD_MASK_PAIR, offsetof(hn_head, mask)},
    {HN_HEAD_CONTEXT_NORM, offsetof(hn_head, context_norm)},
    {HN_HEAD_MASK_ROW, offsetof(hn_head, mask_row)},
    {HN_HEAD_MARKOV_IN, offsetof(hn_head, markov_in)},
    {HN_HEAD_MARKOV_OUT, offsetof(hn_head, markov_out)},
    {HN_HEAD_MARKOV_GATE, offsetof(hn_head, markov_mix)},
    {HN_HEAD_MARKOV_GATE_BIAS, offsetof(hn_head, markov_bias)},
    {HN_HEAD_MARKOV_STEP, offsetof(hn_head, markov_mix)},
    {HN_HEAD_MARKOV_STEP_BIAS, offsetof(hn_head, markov_bias)},
    {HN_HEAD_SELECTOR, offsetof(hn_head, selector)},
    {HN_HEAD_CODES_BEFORE, offsetof(hn_head, codes_before)},
    {HN_HEAD_CODES_AFTER, offsetof(hn_head, codes_after)},
    {HN_HEAD_GRU_INPUT, offsetof(hn_head, gru_input)},
    {HN_HEAD_GRU_STATE, offsetof(hn_head, gru_state)},
    {HN_HEAD_BIAS_IN, offsetof(hn_head, bias_in)},
    {HN_HEAD_BIAS_OUT, offsetof(hn_head, bias_out)},
    {HN_HEAD_CONFIDENCE, offsetof(hn_head, confidence)},
    {HN_HEAD_CONFIDENCE_BIAS, offsetof(hn_head, confidence_bias)},
    {HN_HEAD_TOKEN_NORM, offsetof(hn_head, token_norm)},
    {HN_HEAD_STREAM_NORM, offsetof(hn_head, stream_norm)},
    {HN_HEAD_PARTS, 0}};
