/* SPDX-License-Identifier: Apache-2.0 */
/* head_parts.c - a draft head's tensors outside its layers: which of them a head of a description has, of what shape they are, and where
 * they are loaded to: a row each. */
#include <stddef.h>

#include "model/head/head.h"

/* ---- stages ------------------------------------------------------------------------------------------------------------------ */

typedef bool has_fn(const hn_arch *a);

static const hn_input_stage *in_of(const hn_arch *a) { return &a->draft_head.input; }
static const hn_output_stage *out_of(const hn_arch *a) { return &a->draft_head.output; }
static const hn_rows_stage *rows_of(const hn_arch *a) { return &a->draft_head.rows; }

static bool fc(const hn_arch *a) { return hn_head_has_fc(&a->draft_head); }
static bool fc_bias(const hn_arch *a) { return hn_head_has_fc_bias(&a->draft_head); }
static bool lstm(const hn_arch *a) { return in_of(a)->stream == HN_STREAM_LSTM; }
static bool norm_all(const hn_arch *a) { return in_of(a)->stream == HN_STREAM_FEATURE && in_of(a)->feature.norm_all; }
static bool norm_each(const hn_arch *a) { return in_of(a)->stream == HN_STREAM_FEATURE && in_of(a)->feature.norm_each; }
static bool joint_norms(const hn_arch *a) { return in_of(a)->stream == HN_STREAM_JOINT && in_of(a)->joint.norms; }
static bool pair(const hn_arch *a) { return (a->layers > 0 && hn_layer_reads_pair(&a->layer[0])) || joint_norms(a); }
static bool context(const hn_arch *a) { return in_of(a)->stream == HN_STREAM_CONTEXT; }
static bool embedding(const hn_arch *a) { return in_of(a)->own_embedding; }

static bool mask(const hn_arch *a) { return rows_of(a)->kind == HN_ROWS_MASKS && rows_of(a)->masks.input == HN_MASK_OWN; }
static bool mask_pair(const hn_arch *a) { return rows_of(a)->kind == HN_ROWS_MASKS && rows_of(a)->masks.input == HN_MASK_PAIR; }
static bool mask_row(const hn_arch *a) { return rows_of(a)->kind == HN_ROWS_BLOCK && rows_of(a)->block.mask_row; }
static bool conv(const hn_arch *a) { return hn_head_conv_desc(&a->draft_head); }

static bool output_norm(const hn_arch *a) { return out_of(a)->norm != HN_NORM_NONE; }
static bool carry(const hn_arch *a) { return out_of(a)->norm == HN_NORM_CARRIED; }
static bool markov(const hn_arch *a) { return hn_head_has_markov(&a->draft_head); }
static bool gate(const hn_arch *a) { return markov(a) && out_of(a)->markov.kind == HN_MARKOV_GATED; }
static bool step(const hn_arch *a) { return markov(a) && out_of(a)->markov.kind == HN_MARKOV_RNN; }
static bool confidence(const hn_arch *a) { return hn_head_has_confidence(&a->draft_head); }
static bool selector(const hn_arch *a) { return out_of(a)->kind == HN_OUTPUT_SELECTOR; }
static bool prefix(const hn_arch *a) { return out_of(a)->kind == HN_OUTPUT_PREFIX; }
static bool clusters(const hn_arch *a) { return out_of(a)->kind == HN_OUTPUT_CLUSTERS; }
static bool output(const hn_arch *a) { return out_of(a)->own && !a->tied && rows_of(a)->kind != HN_ROWS_STEPS; }
static bool ids(const hn_arch *a) { return out_of(a)->own && rows_of(a)->kind != HN_ROWS_BORROWED; }

/* ---- sizes ------------------------------------------------------------------------------------------------------------------- */

typedef uint64_t size_fn(const hn_arch *a);

static uint64_t one(const hn_arch *a HN_UNUSED) { return 1; }
static uint64_t hidden(const hn_arch *a) { return (uint64_t)a->hidden; }
static uint64_t layers(const hn_arch *a) { return (uint64_t)a->layers; }
static uint64_t vocab(const hn_arch *a) { return (uint64_t)a->vocab; }
static uint64_t tokens(const hn_arch *a) { return (uint64_t)in_of(a)->embeddings; }
static uint64_t states(const hn_arch *a) { return (uint64_t)in_of(a)->features; }
static uint64_t of_state(const hn_arch *a) { return (uint64_t)in_of(a)->feature_width; }
static uint64_t feature(const hn_arch *a) { return states(a) * of_state(a); }
static uint64_t input(const hn_arch *a) {
    return (in_of(a)->stream == HN_STREAM_JOINT ? (uint64_t)hn_arch_token_width(a) : 0) + feature(a);
}
static uint64_t stream(const hn_arch *a) { return joint_norms(a) ? feature(a) : hidden(a); }
static uint64_t two_hidden(const hn_arch *a) { return 2 * hidden(a); }
static uint64_t lstm_input(const hn_arch *a) { return hidden(a) + feature(a); }
static uint64_t lstm_gates(const hn_arch *a) { return 4 * hidden(a); }
static uint64_t conv_base(const hn_arch *a) { return 2 * (uint64_t)hn_head_conv_desc(&a->draft_head)->taps * hidden(a); }
static uint64_t conv_product(const hn_arch *a) {
    return (uint64_t)hn_conv_coefficients(hn_head_conv_desc(&a->draft_head), a->hidden);
}
static uint64_t rank(const hn_arch *a) { return (uint64_t)out_of(a)->markov.rank; }
static uint64_t three_ranks(const hn_arch *a) { return 3 * rank(a); }
static uint64_t gate_input(const hn_arch *a) { return hidden(a) + rank(a); }
static uint64_t step_input(const hn_arch *a) { return hidden(a) + 2 * rank(a); }
static uint64_t certain(const hn_arch *a) {
    return hidden(a) + (out_of(a)->markov.confidence == HN_CONFIDENCE_OF_TOKEN ? rank(a) : 0);
}
static uint64_t codes(const hn_arch *a) { return (uint64_t)out_of(a)->selector.rank; }
static uint64_t prefix_state(const hn_arch *a) { return (uint64_t)out_of(a)->prefix.state; }
static uint64_t prefix_gates(const hn_arch *a) { return 3 * prefix_state(a); }
static uint64_t prefix_joint(const hn_arch *a) { return hidden(a) + prefix_state(a); }
static uint64_t prefix_width(const hn_arch *a) { return (uint64_t)out_of(a)->prefix.width; }
static uint64_t n_clusters(const hn_arch *a) { return (uint64_t)out_of(a)->clusters.n; }

/* ---- the table --------------------------------------------------------------------------------------------------------------- */

typedef struct part_row {
    has_fn *has;
    size_fn *in, *out; /* inputs, or numbers of a vector; outputs of a matrix, NULL: it is a vector */
    int at;            /* its place in hn_head, plus 1; 0: it is several tensors, or belongs elsewhere */
    size_fn *count;    /* of its tensors, NULL: one */
} part_row;

#define AT(member) (int)offsetof(hn_head, member) + 1
static const part_row table[HN_HEAD_PARTS] = {
    [HN_HEAD_FC] = {fc, input, hidden, AT(fc)},
    [HN_HEAD_FC_BIAS] = {fc_bias, hidden, NULL, AT(fc_bias)},
    [HN_HEAD_FEATURE_NORM] = {norm_all, feature, NULL, AT(feature_norm)},
    [HN_HEAD_STATE_NORM] = {norm_each, of_state, NULL, 0, states},
    [HN_HEAD_TOKEN_NORM] = {pair, hidden, NULL, AT(token_norm)},
    [HN_HEAD_STREAM_NORM] = {pair, stream, NULL, AT(stream_norm)},
    [HN_HEAD_OUTPUT_NORM] = {output_norm, hidden, NULL, 0},
    [HN_HEAD_CARRY] = {carry, hidden, feature, 0},
    [HN_HEAD_MASK] = {mask, feature, NULL, AT(mask)},
    [HN_HEAD_MASK_PAIR] = {mask_pair, two_hidden, NULL, AT(mask)},
    [HN_HEAD_CONTEXT_NORM] = {context, hidden, NULL, AT(context_norm)},
    [HN_HEAD_MASK_ROW] = {mask_row, hidden, NULL, AT(mask_row)},
    [HN_HEAD_MARKOV_IN] = {markov, rank, tokens, AT(markov_in)},
    [HN_HEAD_MARKOV_OUT] = {markov, rank, vocab, AT(markov_out)},
    [HN_HEAD_MARKOV_GATE] = {gate, gate_input, rank, AT(markov_mix)},
    [HN_HEAD_MARKOV_GATE_BIAS] = {gate, rank, NULL, AT(markov_bias)},
    [HN_HEAD_MARKOV_STEP] = {step, step_input, three_ranks, AT(markov_mix)},
    [HN_HEAD_MARKOV_STEP_BIAS] = {step, three_ranks, NULL, AT(markov_bias)},
    [HN_HEAD_CONFIDENCE] = {confidence, certain, one, AT(confidence)},
    [HN_HEAD_CONFIDENCE_BIAS] = {confidence, one, NULL, AT(confidence_bias)},
    [HN_HEAD_CONV_BASE] = {conv, conv_base, NULL, 0, layers},
    [HN_HEAD_CONV_PRODUCT] = {conv, hidden, conv_product, 0, layers},
    [HN_HEAD_FFN_CONV_BASE] = {conv, conv_base, NULL, 0, layers},
    [HN_HEAD_FFN_CONV_PRODUCT] = {conv, hidden, conv_product, 0, layers},
    [HN_HEAD_SELECTOR] = {selector, hidden, codes, AT(selector)},
    [HN_HEAD_CODES_BEFORE] = {selector, codes, tokens, AT(codes_before)},
    [HN_HEAD_CODES_AFTER] = {selector, codes, tokens, AT(codes_after)},
    [HN_HEAD_GRU_INPUT] = {prefix, hidden, prefix_gates, AT(gru_input)},
    [HN_HEAD_GRU_STATE] = {prefix, prefix_state, prefix_gates, AT(gru_state)},
    [HN_HEAD_BIAS_IN] = {prefix, prefix_joint, prefix_width, AT(bias_in)},
    [HN_HEAD_BIAS_OUT] = {prefix, prefix_width, vocab, AT(bias_out)},
    [HN_HEAD_LSTM_1] = {lstm, lstm_input, lstm_gates, AT(lstm[0])},
    [HN_HEAD_LSTM_2] = {lstm, hidden, lstm_gates, AT(lstm[1])},
    [HN_HEAD_LSTM_BIAS_1] = {lstm, lstm_gates, NULL, AT(lstm_bias[0])},
    [HN_HEAD_LSTM_BIAS_2] = {lstm, lstm_gates, NULL, AT(lstm_bias[1])},
    [HN_HEAD_LSTM_STATE_BIAS_1] = {lstm, lstm_gates, NULL, AT(lstm_state_bias[0])},
    [HN_HEAD_LSTM_STATE_BIAS_2] = {lstm, lstm_gates, NULL, AT(lstm_state_bias[1])},
    [HN_HEAD_EMBEDDING] = {embedding, hidden, tokens, 0},
    [HN_HEAD_OUTPUT] = {output, hidden, vocab, 0},
    [HN_HEAD_IDS] = {ids, vocab, NULL, 0},
    [HN_HEAD_CENTROIDS] = {clusters, hidden, n_clusters, 0},
    [HN_HEAD_ORDER] = {clusters, vocab, NULL, 0},
};

bool hn_head_has(const hn_arch *a, hn_head_part part) {
    return table[part].has(a);
}

bool hn_head_part_is_vector(hn_head_part part) {
    return !table[part].out;
}

int hn_head_part_count(const hn_arch *a, hn_head_part part) {
    return table[part].count ? (int)table[part].count(a) : 1;
}

void hn_head_part_shape(const hn_arch *a, hn_head_part part, uint64_t dims[2]) {
    dims[0] = table[part].in(a);
    dims[1] = table[part].out ? table[part].out(a) : 1;
}

void *hn_head_part_place(hn_head *h, hn_head_part part) {
    return table[part].at ? (char *)h + (table[part].at - 1) : NULL;
}
