/* SPDX-License-Identifier: Apache-2.0 */
/* roles.c - the tensors of all families, a row each: names, kind, shape, phase, and the condition for a layer to have
 * it. All properties of a role are in this table. */
#include "model/arch/arch.h"

#include <math.h>
#include <string.h>

/* ---- widths and conditions --------------------------------------------------------------------------------------- */

typedef enum width { ONE, HIDDEN, READ, VOCAB, HEAD, QUERIES, QUERY_ROWS, QUERY_HEADS, KEYS, ALL_HEADS, FFN, BOTH_FFN,
                     MIXED, QUERY_RANK, RANK, LATENT_ROW, NOPE, HEAD_VALUE, LATENT_HEADS,
                     TAPS, CHANNELS, VALUES, CHANNELS_VALUES, VALUE_HEADS, BOTH_HEADS, VALUE,
                     EXPERTS, EXPERT, BOTH_EXPERT, SHARED, INPUT, ALL_INPUTS } width;

/* READ: the input of the products of a layer's attention. */
static uint64_t width_of(const hn_arch *a, const hn_layer_desc *l, width w) {
    const hn_delta_desc *d = &l->delta;
    const hn_latent_desc *t = &l->latent;
    const uint64_t heads = (uint64_t)l->heads;
    const int values = d->value_heads * d->value_dim, channels = 2 * d->key_heads * d->key_dim + values;
    const int hidden = a->hidden, q = l->heads * l->head_dim, kv = l->kv_heads * l->head_dim;
    switch (w) {
    case ONE: return 1;
    case HIDDEN: return (uint64_t)hidden;
    case READ: return (uint64_t)(hn_layer_reads_pair(l) ? 2 * hidden : hidden);
    case VOCAB: return (uint64_t)a->vocab;
    case HEAD: return (uint64_t)l->head_dim;
    case QUERIES: return (uint64_t)q;
    case QUERY_ROWS: return l->mixer == HN_MIXER_LATENT ? heads * (uint64_t)(t->nope + t->rope) : (l->gated ? 2 : 1) * (uint64_t)q;
    case QUERY_HEADS: return heads;
    case KEYS: return (uint64_t)kv;
    case ALL_HEADS: return (uint64_t)q + 2 * (uint64_t)kv;
    case FFN: return (uint64_t)l->ffn_width;
    case BOTH_FFN: return 2 * (uint64_t)l->ffn_width;
    case MIXED: return (uint64_t)hn_layer_mixed_width(l);
    case QUERY_RANK: return (uint64_t)t->query_rank;
    case RANK: return (uint64_t)t->rank;
    case LATENT_ROW: return (uint64_t)t->rank + (uint64_t)t->rope;
    case NOPE: return (uint64_t)t->nope;
    case HEAD_VALUE: return (uint64_t)t->value;
    case LATENT_HEADS: return heads * (uint64_t)(t->nope + t->value);
    case TAPS: return (uint64_t)d->taps;
    case CHANNELS: return (uint64_t)channels;
    case VALUES: return (uint64_t)values;
    case CHANNELS_VALUES: return (uint64_t)channels + (uint64_t)values;
    case VALUE_HEADS: return (uint64_t)d->value_heads;
    case BOTH_HEADS: return 2 * (uint64_t)d->value_heads;
    case VALUE: return (uint64_t)d->value_dim;
    case EXPERTS: return (uint64_t)l->experts.count;
    case EXPERT: return (uint64_t)l->experts.width;
    case BOTH_EXPERT: return 2 * (uint64_t)l->experts.width;
    case SHARED: return (uint64_t)l->experts.shared_width;
    case INPUT: return (uint64_t)l->token_input;
    case ALL_INPUTS: return (uint64_t)l->token_input * (uint64_t)a->layers;
    }
    return 0;
}

enum { /* properties of a description */
    TIED = 1 << 0,
    NO_NORM = 1 << 1, /* before the output */
    NORMED = 1 << 2,  /* the layer reads the norm of the stream */
    QKV_FUSED = 1 << 3,
    QKV_BIAS = 1 << 4,
    QK_NORM = 1 << 5,
    O_BIAS = 1 << 6,
    POST_NORMS = 1 << 7,
    FFN_FUSED = 1 << 8,
    FFN_BIAS = 1 << 9, /* of gate and up */
    DOWN_BIAS = 1 << 10,
    HYBRID = 1 << 11, /* the norm before the feed-forward half has another name in a GGUF file */
    DELTA = 1 << 12,  /* a gated delta net instead of attention */
    FUSED = 1 << 13,  /* its q, k, v and z are one matrix */
    FUSED_GATES = 1 << 14,
    SPARSE = 1 << 15, /* the layer has experts */
    ROUTER_BIAS = 1 << 16,
    STACKED = 1 << 17,
    SHARES = 1 << 18,
    SHARED_GATE = 1 << 19,
    SINKS = 1 << 20,
    EXPERT_BIASES = 1 << 21,
    V_IS_K = 1 << 22,
    OTHERS_KV = 1 << 23,   /* keys and values are another layer's */
    TOKEN_INPUT = 1 << 24,
    SCALED = 1 << 25,
    DENSE = 1 << 26, /* the layer has a feed-forward half without experts */
    BESIDE = 1 << 27, /* it has both */
    LATENT = 1 << 28,
    QUERY_REDUCED = 1 << 29, /* its queries have a rank */
    SPLIT = 1 << 30          /* its matrices of heads are apart */
};

static unsigned flags_of_latent(const hn_layer_desc *l) {
    return LATENT | (l->latent.query_rank ? QUERY_REDUCED : 0u) | (l->latent.split ? SPLIT : 0u);
}

static unsigned flags_of_experts(const hn_expert_desc *e) {
    return SPARSE | (e->bias ? ROUTER_BIAS : 0u) | (e->stacked ? STACKED : 0u) | (e->shared_width > 0 ? SHARES : 0u) |
           (e->shared_gate ? SHARED_GATE : 0u) | (e->biases ? EXPERT_BIASES : 0u);
}

static unsigned flags_of(const hn_arch *a, const hn_layer_desc *l) {
    return (a->tied ? TIED : 0u) | (a->draft_head.output.norm == HN_NORM_NONE ? NO_NORM : 0u) |
           (l->input == HN_INPUT_NORMED ? NORMED : 0u) | (l->fused_qkv ? QKV_FUSED : 0u) | (l->qkv_bias ? QKV_BIAS : 0u) |
           (l->mixer == HN_MIXER_LATENT ? flags_of_latent(l) : 0u) |
           (l->qk_norm ? QK_NORM : 0u) | (l->sinks ? SINKS : 0u) | (l->o_bias ? O_BIAS : 0u) | (l->post_norms ? POST_NORMS : 0u) |
           (l->hybrid ? HYBRID : 0u) | (l->mixer == HN_MIXER_DELTA ? DELTA : 0u) | (l->delta.fused ? FUSED : 0u) |
           (l->delta.fused_gates ? FUSED_GATES : 0u) | (l->fused_gate_up ? FFN_FUSED : 0u) | (l->gate_up_bias ? FFN_BIAS : 0u) |
           (l->v_is_k ? V_IS_K : 0u) | (l->kv_back > 0 ? OTHERS_KV : 0u) | (l->token_input > 0 ? TOKEN_INPUT : 0u) |
           (l->scaled ? SCALED : 0u) | (l->down_bias ? DOWN_BIAS : 0u) | (l->ffn != HN_FFN_EXPERTS ? DENSE : 0u) |
           (l->ffn == HN_FFN_BESIDE ? BESIDE : 0u) | (hn_layer_has_experts(l) ? flags_of_experts(&l->experts) : 0u);
}

/* ---- the table ----------------------------------------------------------------------------------------------------- */

/* VECTOR: as stored; the last three: a matrix, or a vector, for each expert, a matrix for each head */
typedef enum kind { MATRIX, NORM, BIAS, VECTOR, CONVOLUTION, OF_EXPERTS, EXPERT_VECTORS, OF_HEADS } kind;

typedef struct role_row {
    /* in a GGUF, in a folder, in a folder whose experts are stacked, in a GGUF with a tensor for each expert (NULL: the
     * first or second); %d is the layer, then the expert */
    const char *name[4];
    kind kind;
    width in, out;       /* a vector's length is `in`; `out` is the number of an expert's */
    hn_phase phase;      /* of a matrix's product */
    unsigned with, without; /* properties that the description must and must not have */
} role_row;

#define BLK(part) "blk.%d." part
#define LAYER(part) "model.layers.%d." part
static const role_row table[HN_ROLES] = {
    [HN_ROLE_EMBEDDING] = {{"token_embd.weight", "model.embed_tokens.weight"},
        MATRIX, HIDDEN, VOCAB, HN_PHASE_EMBED, 0, 0},
    [HN_ROLE_TOKEN_TABLE] = {{"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
        MATRIX, ALL_INPUTS, VOCAB, HN_PHASE_EMBED, TOKEN_INPUT, 0},
    [HN_ROLE_TOKEN_PRODUCT] = {{"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
        MATRIX, HIDDEN, ALL_INPUTS, HN_PHASE_EMBED, TOKEN_INPUT, 0},
    [HN_ROLE_TOKEN_NORM] = {{"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
        NORM, INPUT, ONE, HN_PHASE_OTHER, TOKEN_INPUT, 0},
    [HN_ROLE_OUTPUT_NORM] = {{"output_norm.weight", "model.norm.weight"},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, 0, NO_NORM},
    [HN_ROLE_OUTPUT] = {{"output.weight", "lm_head.weight"}, MATRIX, HIDDEN, VOCAB, HN_PHASE_OUTPUT, 0, TIED},

    [HN_ROLE_ATTN_NORM] = {{BLK("attn_norm.weight"), LAYER("input_layernorm.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, NORMED, 0},
    [HN_ROLE_Q] = {{BLK("attn_q.weight"), LAYER("self_attn.q_proj.weight")},
        MATRIX, READ, QUERY_ROWS, HN_PHASE_QKV, 0, QKV_FUSED | DELTA | QUERY_REDUCED},
    [HN_ROLE_K] = {{BLK("attn_k.weight"), LAYER("self_attn.k_proj.weight")},
        MATRIX, READ, KEYS, HN_PHASE_QKV, 0, QKV_FUSED | DELTA | OTHERS_KV | LATENT},
    [HN_ROLE_V] = {{BLK("attn_v.weight"), LAYER("self_attn.v_proj.weight")},
        MATRIX, READ, KEYS, HN_PHASE_QKV, 0, QKV_FUSED | DELTA | OTHERS_KV | V_IS_K | LATENT},
    [HN_ROLE_QKV] = {{BLK("attn_qkv.weight"), LAYER("self_attn.qkv_proj.weight")},
        MATRIX, READ, ALL_HEADS, HN_PHASE_QKV, QKV_FUSED, 0},
    [HN_ROLE_Q_BIAS] = {{BLK("attn_q.bias"), LAYER("self_attn.q_proj.bias")},
        BIAS, QUERY_ROWS, ONE, HN_PHASE_OTHER, QKV_BIAS, QKV_FUSED | LATENT},
    [HN_ROLE_K_BIAS] = {{BLK("attn_k.bias"), LAYER("self_attn.k_proj.bias")},
        BIAS, KEYS, ONE, HN_PHASE_OTHER, QKV_BIAS, QKV_FUSED | LATENT},
    [HN_ROLE_V_BIAS] = {{BLK("attn_v.bias"), LAYER("self_attn.v_proj.bias")},
        BIAS, KEYS, ONE, HN_PHASE_OTHER, QKV_BIAS, QKV_FUSED | LATENT},
    [HN_ROLE_QKV_BIAS] = {{BLK("attn_qkv.bias"), LAYER("self_attn.qkv_proj.bias")},
        BIAS, ALL_HEADS, ONE, HN_PHASE_OTHER, QKV_BIAS | QKV_FUSED, 0},
    [HN_ROLE_Q_NORM] = {{BLK("attn_q_norm.weight"), LAYER("self_attn.q_norm.weight")},
        NORM, HEAD, ONE, HN_PHASE_OTHER, QK_NORM, 0},
    [HN_ROLE_K_NORM] = {{BLK("attn_k_norm.weight"), LAYER("self_attn.k_norm.weight")},
        NORM, HEAD, ONE, HN_PHASE_OTHER, QK_NORM, OTHERS_KV},
    [HN_ROLE_SINKS] = {{BLK("attn_sinks.weight"), LAYER("self_attn.attention_sink_bias")},
        VECTOR, QUERY_HEADS, ONE, HN_PHASE_OTHER, SINKS, 0},
    [HN_ROLE_O] = {{BLK("attn_output.weight"), LAYER("self_attn.o_proj.weight")},
        MATRIX, MIXED, HIDDEN, HN_PHASE_O, 0, DELTA},
    [HN_ROLE_O_BIAS] = {{BLK("attn_output.bias"), LAYER("self_attn.o_proj.bias")},
        BIAS, HIDDEN, ONE, HN_PHASE_OTHER, O_BIAS, 0},
    [HN_ROLE_POST_ATTN_NORM] = {{BLK("post_attention_norm.weight"), LAYER("post_attention_layernorm.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, POST_NORMS, 0},

    [HN_ROLE_FFN_NORM] = {{BLK("ffn_norm.weight"), LAYER("post_attention_layernorm.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, 0, POST_NORMS | HYBRID},
    [HN_ROLE_PRE_FFN_NORM] = {{BLK("ffn_norm.weight"), LAYER("pre_feedforward_layernorm.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, POST_NORMS, 0},
    [HN_ROLE_HYBRID_FFN_NORM] = {{BLK("post_attention_norm.weight"), LAYER("post_attention_layernorm.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, HYBRID, POST_NORMS},
    [HN_ROLE_GATE] = {{BLK("ffn_gate.weight"), LAYER("mlp.gate_proj.weight")},
        MATRIX, HIDDEN, FFN, HN_PHASE_GATE_UP, DENSE, FFN_FUSED},
    [HN_ROLE_UP] = {{BLK("ffn_up.weight"), LAYER("mlp.up_proj.weight")},
        MATRIX, HIDDEN, FFN, HN_PHASE_GATE_UP, DENSE, FFN_FUSED},
    [HN_ROLE_GATE_UP] = {{BLK("ffn_up.weight"), LAYER("mlp.gate_up_proj.weight")},
        MATRIX, HIDDEN, BOTH_FFN, HN_PHASE_GATE_UP, DENSE | FFN_FUSED, 0},
    [HN_ROLE_GATE_BIAS] = {{BLK("ffn_gate.bias"), LAYER("mlp.gate_proj.bias")},
        BIAS, FFN, ONE, HN_PHASE_OTHER, DENSE | FFN_BIAS, 0},
    [HN_ROLE_UP_BIAS] = {{BLK("ffn_up.bias"), LAYER("mlp.up_proj.bias")}, BIAS, FFN, ONE, HN_PHASE_OTHER, DENSE | FFN_BIAS, 0},
    [HN_ROLE_DOWN] = {{BLK("ffn_down.weight"), LAYER("mlp.down_proj.weight")},
        MATRIX, FFN, HIDDEN, HN_PHASE_DOWN, DENSE, 0},
    [HN_ROLE_DOWN_BIAS] = {{BLK("ffn_down.bias"), LAYER("mlp.down_proj.bias")},
        BIAS, HIDDEN, ONE, HN_PHASE_OTHER, DENSE | DOWN_BIAS, 0},
    [HN_ROLE_POST_FFN_NORM] = {{BLK("post_ffw_norm.weight"), LAYER("post_feedforward_layernorm.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, POST_NORMS, 0},

    [HN_ROLE_INPUT_GATE] = {{BLK("inp_gate.weight"), LAYER("per_layer_input_gate.weight")},
        MATRIX, HIDDEN, INPUT, HN_PHASE_GATE_UP, TOKEN_INPUT, 0},
    [HN_ROLE_INPUT_PRODUCT] = {{BLK("proj.weight"), LAYER("per_layer_projection.weight")},
        MATRIX, INPUT, HIDDEN, HN_PHASE_DOWN, TOKEN_INPUT, 0},
    [HN_ROLE_INPUT_NORM] = {{BLK("post_norm.weight"), LAYER("post_per_layer_input_norm.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, TOKEN_INPUT, 0},
    [HN_ROLE_LAYER_SCALE] = {{BLK("layer_output_scale.weight"), LAYER("layer_scalar")},
        VECTOR, ONE, ONE, HN_PHASE_OTHER, SCALED, 0},
    [HN_ROLE_Q_A] = {{BLK("attn_q_a.weight"), LAYER("self_attn.q_a_proj.weight")},
        MATRIX, HIDDEN, QUERY_RANK, HN_PHASE_QKV, LATENT | QUERY_REDUCED, 0},
    [HN_ROLE_Q_A_BIAS] = {{BLK("attn_q_a.bias"), LAYER("self_attn.q_a_proj.bias")},
        BIAS, QUERY_RANK, ONE, HN_PHASE_OTHER, LATENT | QUERY_REDUCED | QKV_BIAS, 0},
    [HN_ROLE_Q_A_NORM] = {{BLK("attn_q_a_norm.weight"), LAYER("self_attn.q_a_layernorm.weight")},
        NORM, QUERY_RANK, ONE, HN_PHASE_OTHER, LATENT | QUERY_REDUCED, 0},
    [HN_ROLE_Q_B] = {{BLK("attn_q_b.weight"), LAYER("self_attn.q_b_proj.weight")},
        MATRIX, QUERY_RANK, QUERY_ROWS, HN_PHASE_QKV, LATENT | QUERY_REDUCED, 0},
    [HN_ROLE_KV_A] = {{BLK("attn_kv_a_mqa.weight"), LAYER("self_attn.kv_a_proj_with_mqa.weight")},
        MATRIX, HIDDEN, LATENT_ROW, HN_PHASE_QKV, LATENT, 0},
    [HN_ROLE_KV_A_BIAS] = {{BLK("attn_kv_a_mqa.bias"), LAYER("self_attn.kv_a_proj_with_mqa.bias")},
        BIAS, LATENT_ROW, ONE, HN_PHASE_OTHER, LATENT | QKV_BIAS, 0},
    [HN_ROLE_KV_A_NORM] = {{BLK("attn_kv_a_norm.weight"), LAYER("self_attn.kv_a_layernorm.weight")},
        NORM, RANK, ONE, HN_PHASE_OTHER, LATENT, 0},
    [HN_ROLE_KV_B] = {{BLK("attn_kv_b.weight"), LAYER("self_attn.kv_b_proj.weight")},
        MATRIX, RANK, LATENT_HEADS, HN_PHASE_QKV, LATENT, SPLIT},
    [HN_ROLE_K_B] = {{BLK("attn_k_b.weight"), LAYER("self_attn.kv_b_proj.weight")},
        OF_HEADS, NOPE, RANK, HN_PHASE_QKV, LATENT | SPLIT, 0},
    [HN_ROLE_V_B] = {{BLK("attn_v_b.weight"), LAYER("self_attn.kv_b_proj.weight")},
        OF_HEADS, RANK, HEAD_VALUE, HN_PHASE_O, LATENT | SPLIT, 0},

    [HN_ROLE_DELTA_QKV] = {{BLK("attn_qkv.weight"), LAYER("linear_attn.in_proj_qkv.weight")},
        MATRIX, HIDDEN, CHANNELS, HN_PHASE_QKV, DELTA, FUSED},
    [HN_ROLE_DELTA_Z] = {{BLK("attn_gate.weight"), LAYER("linear_attn.in_proj_z.weight")},
        MATRIX, HIDDEN, VALUES, HN_PHASE_QKV, DELTA, FUSED},
    [HN_ROLE_DELTA_QKVZ] = {{BLK("ssm_in.weight"), LAYER("linear_attn.in_proj_qkvz.weight")},
        MATRIX, HIDDEN, CHANNELS_VALUES, HN_PHASE_QKV, DELTA | FUSED, 0},
    [HN_ROLE_DELTA_B] = {{BLK("ssm_beta.weight"), LAYER("linear_attn.in_proj_b.weight")},
        MATRIX, HIDDEN, VALUE_HEADS, HN_PHASE_QKV, DELTA, FUSED_GATES},
    [HN_ROLE_DELTA_A] = {{BLK("ssm_alpha.weight"), LAYER("linear_attn.in_proj_a.weight")},
        MATRIX, HIDDEN, VALUE_HEADS, HN_PHASE_QKV, DELTA, FUSED_GATES},
    [HN_ROLE_DELTA_BA] = {{BLK("ssm_ba.weight"), LAYER("linear_attn.in_proj_ba.weight")},
        MATRIX, HIDDEN, BOTH_HEADS, HN_PHASE_QKV, DELTA | FUSED_GATES, 0},
    [HN_ROLE_DELTA_CONV] = {{BLK("ssm_conv1d.weight"), LAYER("linear_attn.conv1d.weight")},
        CONVOLUTION, TAPS, CHANNELS, HN_PHASE_OTHER, DELTA, 0},
    [HN_ROLE_DELTA_DECAY] = {{BLK("ssm_a"), LAYER("linear_attn.A_log")},
        VECTOR, VALUE_HEADS, ONE, HN_PHASE_OTHER, DELTA, 0},
    [HN_ROLE_DELTA_DT] = {{BLK("ssm_dt.bias"), LAYER("linear_attn.dt_bias")},
        VECTOR, VALUE_HEADS, ONE, HN_PHASE_OTHER, DELTA, 0},
    [HN_ROLE_DELTA_NORM] = {{BLK("ssm_norm.weight"), LAYER("linear_attn.norm.weight")},
        VECTOR, VALUE, ONE, HN_PHASE_OTHER, DELTA, 0},
    [HN_ROLE_DELTA_OUT] = {{BLK("ssm_out.weight"), LAYER("linear_attn.out_proj.weight")},
        MATRIX, VALUES, HIDDEN, HN_PHASE_O, DELTA, 0},

    [HN_ROLE_ROUTER] = {{BLK("ffn_gate_inp.weight"), LAYER("mlp.gate.weight"), LAYER("mlp.gate.weight")},
        MATRIX, HIDDEN, EXPERTS, HN_PHASE_ROUTER, SPARSE, 0},
    [HN_ROLE_ROUTER_BIAS] = {{BLK("exp_probs_b.bias"), LAYER("mlp.gate.e_score_correction_bias")},
        BIAS, EXPERTS, ONE, HN_PHASE_OTHER, SPARSE | ROUTER_BIAS, 0},
    [HN_ROLE_EXPERT_GATE] = {{BLK("ffn_gate_exps.weight"), LAYER("mlp.experts.%d.gate_proj.weight"), NULL, BLK("ffn_gate.%d.weight")},
        OF_EXPERTS, HIDDEN, EXPERT, HN_PHASE_GATE_UP, SPARSE, STACKED},
    [HN_ROLE_EXPERT_UP] = {{BLK("ffn_up_exps.weight"), LAYER("mlp.experts.%d.up_proj.weight"), NULL, BLK("ffn_up.%d.weight")},
        OF_EXPERTS, HIDDEN, EXPERT, HN_PHASE_GATE_UP, SPARSE, STACKED},
    [HN_ROLE_EXPERT_GATE_UP] = {{BLK("ffn_gate_up_exps.weight"), LAYER("mlp.experts.%d.gate_up_proj.weight"),
        LAYER("mlp.experts.gate_up_proj")}, OF_EXPERTS, HIDDEN, BOTH_EXPERT, HN_PHASE_GATE_UP, SPARSE | STACKED, 0},
    [HN_ROLE_EXPERT_DOWN] = {{BLK("ffn_down_exps.weight"), LAYER("mlp.experts.%d.down_proj.weight"),
        LAYER("mlp.experts.down_proj"), BLK("ffn_down.%d.weight")}, OF_EXPERTS, EXPERT, HIDDEN, HN_PHASE_DOWN, SPARSE, 0},
    [HN_ROLE_SCORE_BIAS] = {{BLK("ffn_gate_inp.bias"), LAYER("mlp.router.bias")},
        BIAS, EXPERTS, ONE, HN_PHASE_OTHER, SPARSE | EXPERT_BIASES, 0},
    [HN_ROLE_EXPERT_GATE_BIAS] = {{BLK("ffn_gate_exps.bias"), LAYER("mlp.experts.gate_proj_bias")},
        EXPERT_VECTORS, EXPERT, EXPERTS, HN_PHASE_OTHER, SPARSE | EXPERT_BIASES, STACKED},
    [HN_ROLE_EXPERT_UP_BIAS] = {{BLK("ffn_up_exps.bias"), LAYER("mlp.experts.up_proj_bias")},
        EXPERT_VECTORS, EXPERT, EXPERTS, HN_PHASE_OTHER, SPARSE | EXPERT_BIASES, STACKED},
    [HN_ROLE_EXPERT_GATE_UP_BIAS] = {{BLK("ffn_gate_up_exps.bias"), LAYER("mlp.experts.gate_up_proj_bias")},
        EXPERT_VECTORS, BOTH_EXPERT, EXPERTS, HN_PHASE_OTHER, SPARSE | EXPERT_BIASES | STACKED, 0},
    [HN_ROLE_EXPERT_DOWN_BIAS] = {{BLK("ffn_down_exps.bias"), LAYER("mlp.experts.down_proj_bias")},
        EXPERT_VECTORS, HIDDEN, EXPERTS, HN_PHASE_OTHER, SPARSE | EXPERT_BIASES, 0},
    [HN_ROLE_ROUTER_SCALE] = {{BLK("ffn_gate_inp.scale"), LAYER("router.scale")},
        VECTOR, HIDDEN, ONE, HN_PHASE_OTHER, BESIDE, 0},
    [HN_ROLE_EXPERT_SCALE] = {{BLK("ffn_down_exps.scale"), LAYER("router.per_expert_scale")},
        VECTOR, EXPERTS, ONE, HN_PHASE_OTHER, BESIDE, 0},
    [HN_ROLE_PRE_EXPERTS_NORM] = {{BLK("pre_ffw_norm_2.weight"), LAYER("pre_feedforward_layernorm_2.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, BESIDE, 0},
    [HN_ROLE_POST_DENSE_NORM] = {{BLK("post_ffw_norm_1.weight"), LAYER("post_feedforward_layernorm_1.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, BESIDE, 0},
    [HN_ROLE_POST_EXPERTS_NORM] = {{BLK("post_ffw_norm_2.weight"), LAYER("post_feedforward_layernorm_2.weight")},
        NORM, HIDDEN, ONE, HN_PHASE_OTHER, BESIDE, 0},
    [HN_ROLE_SHARED_ROUTER] = {{BLK("ffn_gate_inp_shexp.weight"), LAYER("mlp.shared_expert_gate.weight")},
        MATRIX, HIDDEN, ONE, HN_PHASE_ROUTER, SPARSE | SHARES | SHARED_GATE, 0},
    [HN_ROLE_SHARED_GATE] = {{BLK("ffn_gate_shexp.weight"), LAYER("mlp.shared_expert.gate_proj.weight")},
        MATRIX, HIDDEN, SHARED, HN_PHASE_GATE_UP, SPARSE | SHARES, 0},
    [HN_ROLE_SHARED_UP] = {{BLK("ffn_up_shexp.weight"), LAYER("mlp.shared_expert.up_proj.weight")},
        MATRIX, HIDDEN, SHARED, HN_PHASE_GATE_UP, SPARSE | SHARES, 0},
    [HN_ROLE_SHARED_DOWN] = {{BLK("ffn_down_shexp.weight"), LAYER("mlp.shared_expert.down_proj.weight")},
        MATRIX, SHARED, HIDDEN, HN_PHASE_DOWN, SPARSE | SHARES, 0}};

/* ---- properties of roles ------------------------------------------------------------------------------------------------------ */

const char *hn_role_name(hn_role role, hn_source_kind form) {
    _Static_assert(HN_SOURCE_GGUF == 0 && HN_SOURCE_HF == 1, "columns of names");
    return table[role].name[form];
}

const char *hn_role_stacked_name(hn_role role) {
    return table[role].name[2];
}

const char *hn_role_single_name(hn_role role) {
    return table[role].name[3];
}

bool hn_role_is_vector(hn_role role) {
    return table[role].kind != MATRIX && table[role].kind != OF_EXPERTS && table[role].kind != OF_HEADS;
}

bool hn_role_of_heads(hn_role role) {
    return table[role].kind == OF_HEADS;
}

bool hn_role_of_experts(hn_role role) {
    return table[role].kind == OF_EXPERTS;
}

bool hn_role_of_expert_vectors(hn_role role) {
    return table[role].kind == EXPERT_VECTORS;
}

bool hn_role_of_layer(hn_role role) {
    return strchr(table[role].name[HN_SOURCE_GGUF], '%') != NULL;
}

bool hn_role_is_rotated(hn_role role) {
    return role == HN_ROLE_Q || role == HN_ROLE_K || role == HN_ROLE_Q_BIAS || role == HN_ROLE_K_BIAS || role == HN_ROLE_Q_NORM ||
           role == HN_ROLE_K_NORM;
}

hn_change hn_role_change(hn_role role) {
    return role == HN_ROLE_DELTA_DECAY ? HN_CHANGE_DECAY : role == HN_ROLE_DELTA_CONV ? HN_CHANGE_TAPS : HN_CHANGE_NONE;
}

hn_phase hn_role_phase(hn_role role) {
    return table[role].phase;
}

bool hn_role_ends_branch(hn_role role) {
    const role_row *r = &table[role];
    return r->kind == BIAS && r->in == HIDDEN;
}

bool hn_arch_has(const hn_arch *a, hn_role role, int layer) {
    const unsigned properties = flags_of(a, &a->layer[layer]);
    return (properties & table[role].with) == table[role].with && (properties & table[role].without) == 0;
}

bool hn_arch_is_unread(const hn_arch *a, const char *name) {
    static const hn_role roles[] = {HN_ROLE_K, HN_ROLE_V, HN_ROLE_K_NORM};
    char own[128];
    for (int i = 0; i < a->layers; i++)
        for (int k = 0; k < 3 && a->layer[i].kv_back > 0; k++) {
            hn_arch_tensor_name(a, roles[k], i, own);
            if (!strcmp(name, own)) return true;
        }
    return false;
}

const hn_tensor *hn_arch_find_tensor(const hn_arch *a, const hn_source *src, hn_role role, int layer) {
    char name[128];
    hn_arch_tensor_name(a, role, layer, name);
    return hn_source_find(src, name);
}

float hn_arch_vector_more(const hn_arch *a, hn_role role) {
    return a->files.norms_less_one && table[role].kind == NORM ? 1 : 0;
}

float hn_arch_vector_times(const hn_arch *a, hn_role role) {
    if (role == HN_ROLE_TOKEN_NORM) return HN_TOKEN_INPUT_SHARE;
    if (role == HN_ROLE_ROUTER_SCALE) return 1 / sqrtf((float)a->hidden);
    return hn_role_ends_branch(role) ? a->residual_scale : 1;
}

int hn_arch_matrices(const hn_arch *a, hn_role role, int layer) {
    const hn_expert_desc *e = &a->layer[layer].experts;
    if (hn_role_of_heads(role)) return a->layer[layer].heads;
    return hn_role_of_experts(role) && (e->stacked || (a->files.form == HN_SOURCE_GGUF && !e->single)) ? e->count : 1;
}

void hn_arch_tensor_shape(const hn_arch *a, hn_role role, int layer, uint64_t dims[2]) {
    dims[0] = width_of(a, &a->layer[layer], table[role].in);
    dims[1] = width_of(a, &a->layer[layer], table[role].out);
}
