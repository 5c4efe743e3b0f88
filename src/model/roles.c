/* SPDX-License-Identifier: Apache-2.0 */
/* roles.c - the tensors of all families, a row each: names, kind, shape, phase, and the condition for a layer to have
 * it. All properties of a role are in this table. */
#include "model/model.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- widths ---------------------------------------------------------------------------------------------------------------- */

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

/* ---- conditions: whether a layer has the tensor ---------------------------------------------------------------------------- */

typedef bool has_fn(const hn_arch *a, const hn_layer_desc *l);
#define HAS(name, condition) \
    static bool name(const hn_arch *a HN_UNUSED, const hn_layer_desc *l HN_UNUSED) { return condition; }
HAS(untied, !a->tied)
HAS(output_norm, a->draft_head.output.norm != HN_NORM_NONE)
HAS(normed, l->input == HN_INPUT_NORMED)

HAS(delta, l->mixer == HN_MIXER_DELTA)
HAS(attends, l->mixer != HN_MIXER_DELTA)
HAS(latent, l->mixer == HN_MIXER_LATENT)
HAS(reduced, latent(a, l) && l->latent.query_rank > 0)
HAS(own_q, attends(a, l) && !l->fused_qkv && !reduced(a, l))
HAS(own_k, attends(a, l) && !l->fused_qkv && !latent(a, l) && l->kv_back == 0)
HAS(own_v, own_k(a, l) && !l->v_is_k)
HAS(one_qkv, l->fused_qkv)
HAS(three_biases, l->qkv_bias && !l->fused_qkv && !latent(a, l))
HAS(one_bias, l->qkv_bias && l->fused_qkv)
HAS(qk_norm, l->qk_norm)
HAS(k_norm, l->qk_norm && l->kv_back == 0)
HAS(sinks, l->sinks)
HAS(o_bias, l->o_bias)
HAS(latent_bias, latent(a, l) && l->qkv_bias)
HAS(reduced_bias, reduced(a, l) && l->qkv_bias)
HAS(joint_heads, latent(a, l) && !l->latent.split)
HAS(split_heads, latent(a, l) && l->latent.split)
HAS(qkv_and_z, delta(a, l) && !l->delta.fused)
HAS(one_qkvz, delta(a, l) && l->delta.fused)
HAS(b_and_a, delta(a, l) && !l->delta.fused_gates)
HAS(one_ba, delta(a, l) && l->delta.fused_gates)

HAS(post_norms, l->post_norms)
HAS(plain_norm, !l->post_norms && !l->hybrid)
HAS(hybrid_norm, !l->post_norms && l->hybrid) /* has another name in a GGUF */
HAS(dense, l->ffn != HN_FFN_EXPERTS)
HAS(gate_and_up, dense(a, l) && !l->fused_gate_up)
HAS(one_gate_up, dense(a, l) && l->fused_gate_up)
HAS(gate_up_bias, dense(a, l) && l->gate_up_bias)
HAS(down_bias, dense(a, l) && l->down_bias)
HAS(token_input, l->token_input > 0)
HAS(scaled, l->scaled)

HAS(sparse, hn_layer_has_experts(l))
HAS(beside, l->ffn == HN_FFN_BESIDE)
HAS(router_bias, sparse(a, l) && l->experts.bias)
HAS(not_stacked, sparse(a, l) && !l->experts.stacked)
HAS(stacked, sparse(a, l) && l->experts.stacked)
HAS(biases, sparse(a, l) && l->experts.biases)
HAS(biases_apart, biases(a, l) && !l->experts.stacked)
HAS(one_of_biases, biases(a, l) && l->experts.stacked)
HAS(shares, sparse(a, l) && l->experts.shared_width > 0)
HAS(shared_gate, shares(a, l) && l->experts.shared_gate)

/* ---- the table ----------------------------------------------------------------------------------------------------- */

typedef struct role_row {
    /* in a GGUF, in a folder, in a folder whose experts are stacked, in a GGUF with a tensor for each expert (NULL: the
     * first or second); %d is the layer, then the expert */
    const char *name[4];
    hn_role_kind kind;
    width in, out;       /* a vector's length is `in`; `out` is the number of an expert's */
    hn_phase phase;      /* of a matrix's product */
    has_fn *has;         /* NULL: always */
    int at;              /* where it is loaded to in hn_layer: an hn_weight or a vector's hn_buf, plus 1; 0: elsewhere */
    hn_role of[3];       /* it is instead of these, whose rows or values it has one after another */
    bool pair;           /* products read it together with the one before it */
} role_row;

#define AT(member) (int)offsetof(hn_layer, member) + 1

#define BLK(part) "blk.%d." part
#define LAYER(part) "model.layers.%d." part
static const role_row table[HN_ROLES] = {
    [HN_ROLE_EMBEDDING] = {{"token_embd.weight", "model.embed_tokens.weight"},
        HN_IS_MATRIX, HIDDEN, VOCAB, HN_PHASE_EMBED, NULL},
    [HN_ROLE_TOKEN_TABLE] = {{"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
        HN_IS_MATRIX, ALL_INPUTS, VOCAB, HN_PHASE_EMBED, token_input},
    [HN_ROLE_TOKEN_PRODUCT] = {{"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
        HN_IS_MATRIX, HIDDEN, ALL_INPUTS, HN_PHASE_EMBED, token_input},
    [HN_ROLE_TOKEN_NORM] = {{"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
        HN_IS_NORM, INPUT, ONE, HN_PHASE_OTHER, token_input},
    [HN_ROLE_OUTPUT_NORM] = {{"output_norm.weight", "model.norm.weight"},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, output_norm},
    [HN_ROLE_OUTPUT] = {{"output.weight", "lm_head.weight"}, HN_IS_MATRIX, HIDDEN, VOCAB, HN_PHASE_OUTPUT, untied},

    [HN_ROLE_ATTN_NORM] = {{BLK("attn_norm.weight"), LAYER("input_layernorm.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, normed, AT(attn_norm)},
    [HN_ROLE_Q] = {{BLK("attn_q.weight"), LAYER("self_attn.q_proj.weight")},
        HN_IS_MATRIX, READ, QUERY_ROWS, HN_PHASE_QKV, own_q, AT(q)},
    [HN_ROLE_K] = {{BLK("attn_k.weight"), LAYER("self_attn.k_proj.weight")},
        HN_IS_MATRIX, READ, KEYS, HN_PHASE_QKV, own_k, AT(k)},
    [HN_ROLE_V] = {{BLK("attn_v.weight"), LAYER("self_attn.v_proj.weight")},
        HN_IS_MATRIX, READ, KEYS, HN_PHASE_QKV, own_v, AT(v)},
    [HN_ROLE_QKV] = {{BLK("attn_qkv.weight"), LAYER("self_attn.qkv_proj.weight")},
        HN_IS_MATRIX, READ, ALL_HEADS, HN_PHASE_QKV, one_qkv, .of = {HN_ROLE_Q, HN_ROLE_K, HN_ROLE_V}},
    [HN_ROLE_Q_BIAS] = {{BLK("attn_q.bias"), LAYER("self_attn.q_proj.bias")},
        HN_IS_BIAS, QUERY_ROWS, ONE, HN_PHASE_OTHER, three_biases, AT(heads.q_bias)},
    [HN_ROLE_K_BIAS] = {{BLK("attn_k.bias"), LAYER("self_attn.k_proj.bias")},
        HN_IS_BIAS, KEYS, ONE, HN_PHASE_OTHER, three_biases, AT(heads.k_bias)},
    [HN_ROLE_V_BIAS] = {{BLK("attn_v.bias"), LAYER("self_attn.v_proj.bias")},
        HN_IS_BIAS, KEYS, ONE, HN_PHASE_OTHER, three_biases, AT(heads.v_bias)},
    [HN_ROLE_QKV_BIAS] = {{BLK("attn_qkv.bias"), LAYER("self_attn.qkv_proj.bias")},
        HN_IS_BIAS, ALL_HEADS, ONE, HN_PHASE_OTHER, one_bias, .of = {HN_ROLE_Q_BIAS, HN_ROLE_K_BIAS, HN_ROLE_V_BIAS}},
    [HN_ROLE_Q_NORM] = {{BLK("attn_q_norm.weight"), LAYER("self_attn.q_norm.weight")},
        HN_IS_NORM, HEAD, ONE, HN_PHASE_OTHER, qk_norm, AT(heads.q_norm)},
    [HN_ROLE_K_NORM] = {{BLK("attn_k_norm.weight"), LAYER("self_attn.k_norm.weight")},
        HN_IS_NORM, HEAD, ONE, HN_PHASE_OTHER, k_norm, AT(heads.k_norm)},
    [HN_ROLE_SINKS] = {{BLK("attn_sinks.weight"), LAYER("self_attn.attention_sink_bias")},
        HN_IS_VECTOR, QUERY_HEADS, ONE, HN_PHASE_OTHER, sinks, AT(sinks)},
    [HN_ROLE_O] = {{BLK("attn_output.weight"), LAYER("self_attn.o_proj.weight")},
        HN_IS_MATRIX, MIXED, HIDDEN, HN_PHASE_O, attends, AT(o)},
    [HN_ROLE_O_BIAS] = {{BLK("attn_output.bias"), LAYER("self_attn.o_proj.bias")},
        HN_IS_BIAS, HIDDEN, ONE, HN_PHASE_OTHER, o_bias, AT(o_bias)},
    [HN_ROLE_POST_ATTN_NORM] = {{BLK("post_attention_norm.weight"), LAYER("post_attention_layernorm.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, post_norms, AT(post_attn_norm)},

    [HN_ROLE_FFN_NORM] = {{BLK("ffn_norm.weight"), LAYER("post_attention_layernorm.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, plain_norm, AT(ffn_norm)},
    [HN_ROLE_PRE_FFN_NORM] = {{BLK("ffn_norm.weight"), LAYER("pre_feedforward_layernorm.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, post_norms, AT(ffn_norm)},
    [HN_ROLE_HYBRID_FFN_NORM] = {{BLK("post_attention_norm.weight"), LAYER("post_attention_layernorm.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, hybrid_norm, AT(ffn_norm)},
    [HN_ROLE_GATE] = {{BLK("ffn_gate.weight"), LAYER("mlp.gate_proj.weight")},
        HN_IS_MATRIX, HIDDEN, FFN, HN_PHASE_GATE_UP, gate_and_up, AT(gate)},
    [HN_ROLE_UP] = {{BLK("ffn_up.weight"), LAYER("mlp.up_proj.weight")},
        HN_IS_MATRIX, HIDDEN, FFN, HN_PHASE_GATE_UP, gate_and_up, AT(up), .pair = true},
    [HN_ROLE_GATE_UP] = {{BLK("ffn_up.weight"), LAYER("mlp.gate_up_proj.weight")},
        HN_IS_MATRIX, HIDDEN, BOTH_FFN, HN_PHASE_GATE_UP, one_gate_up, .of = {HN_ROLE_GATE, HN_ROLE_UP}},
    [HN_ROLE_GATE_BIAS] = {{BLK("ffn_gate.bias"), LAYER("mlp.gate_proj.bias")},
        HN_IS_BIAS, FFN, ONE, HN_PHASE_OTHER, gate_up_bias, AT(gate_bias)},
    [HN_ROLE_UP_BIAS] = {{BLK("ffn_up.bias"), LAYER("mlp.up_proj.bias")}, HN_IS_BIAS, FFN, ONE, HN_PHASE_OTHER, gate_up_bias, AT(up_bias)},
    [HN_ROLE_DOWN] = {{BLK("ffn_down.weight"), LAYER("mlp.down_proj.weight")},
        HN_IS_MATRIX, FFN, HIDDEN, HN_PHASE_DOWN, dense, AT(down)},
    [HN_ROLE_DOWN_BIAS] = {{BLK("ffn_down.bias"), LAYER("mlp.down_proj.bias")},
        HN_IS_BIAS, HIDDEN, ONE, HN_PHASE_OTHER, down_bias, AT(down_bias)},
    [HN_ROLE_POST_FFN_NORM] = {{BLK("post_ffw_norm.weight"), LAYER("post_feedforward_layernorm.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, post_norms, AT(post_ffn_norm)},

    [HN_ROLE_INPUT_GATE] = {{BLK("inp_gate.weight"), LAYER("per_layer_input_gate.weight")},
        HN_IS_MATRIX, HIDDEN, INPUT, HN_PHASE_GATE_UP, token_input, AT(input_gate)},
    [HN_ROLE_INPUT_PRODUCT] = {{BLK("proj.weight"), LAYER("per_layer_projection.weight")},
        HN_IS_MATRIX, INPUT, HIDDEN, HN_PHASE_DOWN, token_input, AT(input_product)},
    [HN_ROLE_INPUT_NORM] = {{BLK("post_norm.weight"), LAYER("post_per_layer_input_norm.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, token_input, AT(input_norm)},
    [HN_ROLE_LAYER_SCALE] = {{BLK("layer_output_scale.weight"), LAYER("layer_scalar")},
        HN_IS_VECTOR, ONE, ONE, HN_PHASE_OTHER, scaled, AT(scale_at)},
    [HN_ROLE_Q_A] = {{BLK("attn_q_a.weight"), LAYER("self_attn.q_a_proj.weight")},
        HN_IS_MATRIX, HIDDEN, QUERY_RANK, HN_PHASE_QKV, reduced, AT(q_a)},
    [HN_ROLE_Q_A_BIAS] = {{BLK("attn_q_a.bias"), LAYER("self_attn.q_a_proj.bias")},
        HN_IS_BIAS, QUERY_RANK, ONE, HN_PHASE_OTHER, reduced_bias, AT(q_a_bias)},
    [HN_ROLE_Q_A_NORM] = {{BLK("attn_q_a_norm.weight"), LAYER("self_attn.q_a_layernorm.weight")},
        HN_IS_NORM, QUERY_RANK, ONE, HN_PHASE_OTHER, reduced, AT(q_a_norm)},
    [HN_ROLE_Q_B] = {{BLK("attn_q_b.weight"), LAYER("self_attn.q_b_proj.weight")},
        HN_IS_MATRIX, QUERY_RANK, QUERY_ROWS, HN_PHASE_QKV, reduced, AT(q)},
    [HN_ROLE_KV_A] = {{BLK("attn_kv_a_mqa.weight"), LAYER("self_attn.kv_a_proj_with_mqa.weight")},
        HN_IS_MATRIX, HIDDEN, LATENT_ROW, HN_PHASE_QKV, latent, AT(kv_a)},
    [HN_ROLE_KV_A_BIAS] = {{BLK("attn_kv_a_mqa.bias"), LAYER("self_attn.kv_a_proj_with_mqa.bias")},
        HN_IS_BIAS, LATENT_ROW, ONE, HN_PHASE_OTHER, latent_bias, AT(kv_a_bias)},
    [HN_ROLE_KV_A_NORM] = {{BLK("attn_kv_a_norm.weight"), LAYER("self_attn.kv_a_layernorm.weight")},
        HN_IS_NORM, RANK, ONE, HN_PHASE_OTHER, latent, AT(kv_a_norm)},
    [HN_ROLE_KV_B] = {{BLK("attn_kv_b.weight"), LAYER("self_attn.kv_b_proj.weight")},
        HN_IS_MATRIX, RANK, LATENT_HEADS, HN_PHASE_QKV, joint_heads},
    [HN_ROLE_K_B] = {{BLK("attn_k_b.weight"), LAYER("self_attn.kv_b_proj.weight")},
        HN_IS_OF_HEADS, NOPE, RANK, HN_PHASE_QKV, split_heads},
    [HN_ROLE_V_B] = {{BLK("attn_v_b.weight"), LAYER("self_attn.kv_b_proj.weight")},
        HN_IS_OF_HEADS, RANK, HEAD_VALUE, HN_PHASE_O, split_heads},

    [HN_ROLE_DELTA_QKV] = {{BLK("attn_qkv.weight"), LAYER("linear_attn.in_proj_qkv.weight")},
        HN_IS_MATRIX, HIDDEN, CHANNELS, HN_PHASE_QKV, qkv_and_z, AT(q)},
    [HN_ROLE_DELTA_Z] = {{BLK("attn_gate.weight"), LAYER("linear_attn.in_proj_z.weight")},
        HN_IS_MATRIX, HIDDEN, VALUES, HN_PHASE_QKV, qkv_and_z, AT(z)},
    [HN_ROLE_DELTA_QKVZ] = {{BLK("ssm_in.weight"), LAYER("linear_attn.in_proj_qkvz.weight")},
        HN_IS_MATRIX, HIDDEN, CHANNELS_VALUES, HN_PHASE_QKV, one_qkvz, AT(q)},
    [HN_ROLE_DELTA_B] = {{BLK("ssm_beta.weight"), LAYER("linear_attn.in_proj_b.weight")},
        HN_IS_MATRIX, HIDDEN, VALUE_HEADS, HN_PHASE_QKV, b_and_a, AT(beta)},
    [HN_ROLE_DELTA_A] = {{BLK("ssm_alpha.weight"), LAYER("linear_attn.in_proj_a.weight")},
        HN_IS_MATRIX, HIDDEN, VALUE_HEADS, HN_PHASE_QKV, b_and_a, AT(alpha)},
    [HN_ROLE_DELTA_BA] = {{BLK("ssm_ba.weight"), LAYER("linear_attn.in_proj_ba.weight")},
        HN_IS_MATRIX, HIDDEN, BOTH_HEADS, HN_PHASE_QKV, one_ba, AT(beta)},
    [HN_ROLE_DELTA_CONV] = {{BLK("ssm_conv1d.weight"), LAYER("linear_attn.conv1d.weight")},
        HN_IS_CONVOLUTION, TAPS, CHANNELS, HN_PHASE_OTHER, delta, AT(conv)},
    [HN_ROLE_DELTA_DECAY] = {{BLK("ssm_a"), LAYER("linear_attn.A_log")},
        HN_IS_VECTOR, VALUE_HEADS, ONE, HN_PHASE_OTHER, delta, AT(decay)},
    [HN_ROLE_DELTA_DT] = {{BLK("ssm_dt.bias"), LAYER("linear_attn.dt_bias")},
        HN_IS_VECTOR, VALUE_HEADS, ONE, HN_PHASE_OTHER, delta, AT(dt)},
    [HN_ROLE_DELTA_NORM] = {{BLK("ssm_norm.weight"), LAYER("linear_attn.norm.weight")},
        HN_IS_VECTOR, VALUE, ONE, HN_PHASE_OTHER, delta, AT(delta_norm)},
    [HN_ROLE_DELTA_OUT] = {{BLK("ssm_out.weight"), LAYER("linear_attn.out_proj.weight")},
        HN_IS_MATRIX, VALUES, HIDDEN, HN_PHASE_O, delta, AT(o)},

    [HN_ROLE_ROUTER] = {{BLK("ffn_gate_inp.weight"), LAYER("mlp.gate.weight"), LAYER("mlp.gate.weight")},
        HN_IS_MATRIX, HIDDEN, EXPERTS, HN_PHASE_ROUTER, sparse, AT(experts.router)},
    [HN_ROLE_ROUTER_BIAS] = {{BLK("exp_probs_b.bias"), LAYER("mlp.gate.e_score_correction_bias")},
        HN_IS_BIAS, EXPERTS, ONE, HN_PHASE_OTHER, router_bias, AT(experts.choice.bias)},
    [HN_ROLE_EXPERT_GATE] = {{BLK("ffn_gate_exps.weight"), LAYER("mlp.experts.%d.gate_proj.weight"), NULL, BLK("ffn_gate.%d.weight")},
        HN_IS_OF_EXPERTS, HIDDEN, EXPERT, HN_PHASE_GATE_UP, not_stacked, AT(experts.gate)},
    [HN_ROLE_EXPERT_UP] = {{BLK("ffn_up_exps.weight"), LAYER("mlp.experts.%d.up_proj.weight"), NULL, BLK("ffn_up.%d.weight")},
        HN_IS_OF_EXPERTS, HIDDEN, EXPERT, HN_PHASE_GATE_UP, not_stacked, AT(experts.up), .pair = true},
    [HN_ROLE_EXPERT_GATE_UP] = {{BLK("ffn_gate_up_exps.weight"), LAYER("mlp.experts.%d.gate_up_proj.weight"),
        LAYER("mlp.experts.gate_up_proj")},
        HN_IS_OF_EXPERTS, HIDDEN, BOTH_EXPERT, HN_PHASE_GATE_UP, stacked, .of = {HN_ROLE_EXPERT_GATE, HN_ROLE_EXPERT_UP}},
    [HN_ROLE_EXPERT_DOWN] = {{BLK("ffn_down_exps.weight"), LAYER("mlp.experts.%d.down_proj.weight"),
        LAYER("mlp.experts.down_proj"), BLK("ffn_down.%d.weight")},
        HN_IS_OF_EXPERTS, EXPERT, HIDDEN, HN_PHASE_DOWN, sparse, AT(experts.down)},
    [HN_ROLE_SCORE_BIAS] = {{BLK("ffn_gate_inp.bias"), LAYER("mlp.router.bias")},
        HN_IS_BIAS, EXPERTS, ONE, HN_PHASE_OTHER, biases, AT(experts.score_bias)},
    [HN_ROLE_EXPERT_GATE_BIAS] = {{BLK("ffn_gate_exps.bias"), LAYER("mlp.experts.gate_proj_bias")},
        HN_IS_EXPERT_VECTORS, EXPERT, EXPERTS, HN_PHASE_OTHER, biases_apart, AT(experts.unit.gate_bias)},
    [HN_ROLE_EXPERT_UP_BIAS] = {{BLK("ffn_up_exps.bias"), LAYER("mlp.experts.up_proj_bias")},
        HN_IS_EXPERT_VECTORS, EXPERT, EXPERTS, HN_PHASE_OTHER, biases_apart, AT(experts.unit.up_bias)},
    [HN_ROLE_EXPERT_GATE_UP_BIAS] = {{BLK("ffn_gate_up_exps.bias"), LAYER("mlp.experts.gate_up_proj_bias")},

        HN_IS_EXPERT_VECTORS, BOTH_EXPERT, EXPERTS, HN_PHASE_OTHER, one_of_biases,
        .of = {HN_ROLE_EXPERT_GATE_BIAS, HN_ROLE_EXPERT_UP_BIAS}},
    [HN_ROLE_EXPERT_DOWN_BIAS] = {{BLK("ffn_down_exps.bias"), LAYER("mlp.experts.down_proj_bias")},
        HN_IS_EXPERT_VECTORS, HIDDEN, EXPERTS, HN_PHASE_OTHER, biases, AT(experts.down_bias)},
    [HN_ROLE_ROUTER_SCALE] = {{BLK("ffn_gate_inp.scale"), LAYER("router.scale")},
        HN_IS_VECTOR, HIDDEN, ONE, HN_PHASE_OTHER, beside, AT(experts.router_norm)},
    [HN_ROLE_EXPERT_SCALE] = {{BLK("ffn_down_exps.scale"), LAYER("router.per_expert_scale")},
        HN_IS_VECTOR, EXPERTS, ONE, HN_PHASE_OTHER, beside, AT(experts.choice.expert_scale)},
    [HN_ROLE_PRE_EXPERTS_NORM] = {{BLK("pre_ffw_norm_2.weight"), LAYER("pre_feedforward_layernorm_2.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, beside, AT(experts.norm)},
    [HN_ROLE_POST_DENSE_NORM] = {{BLK("post_ffw_norm_1.weight"), LAYER("post_feedforward_layernorm_1.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, beside, AT(experts.post_dense_norm)},
    [HN_ROLE_POST_EXPERTS_NORM] = {{BLK("post_ffw_norm_2.weight"), LAYER("post_feedforward_layernorm_2.weight")},
        HN_IS_NORM, HIDDEN, ONE, HN_PHASE_OTHER, beside, AT(experts.post_norm)},
    [HN_ROLE_SHARED_ROUTER] = {{BLK("ffn_gate_inp_shexp.weight"), LAYER("mlp.shared_expert_gate.weight")},
        HN_IS_MATRIX, HIDDEN, ONE, HN_PHASE_ROUTER, shared_gate, AT(experts.shared_router)},
    [HN_ROLE_SHARED_GATE] = {{BLK("ffn_gate_shexp.weight"), LAYER("mlp.shared_expert.gate_proj.weight")},
        HN_IS_MATRIX, HIDDEN, SHARED, HN_PHASE_GATE_UP, shares, AT(experts.shared_gate)},
    [HN_ROLE_SHARED_UP] = {{BLK("ffn_up_shexp.weight"), LAYER("mlp.shared_expert.up_proj.weight")},
        HN_IS_MATRIX, HIDDEN, SHARED, HN_PHASE_GATE_UP, shares, AT(experts.shared_up), .pair = true},
    [HN_ROLE_SHARED_DOWN] = {{BLK("ffn_down_shexp.weight"), LAYER("mlp.shared_expert.down_proj.weight")},
        HN_IS_MATRIX, SHARED, HIDDEN, HN_PHASE_DOWN, shares, AT(experts.shared_down)}};

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

hn_role_kind hn_role_kind_of(hn_role role) {
    return table[role].kind;
}

bool hn_role_is_vector(hn_role role) {
    return table[role].kind >= HN_IS_NORM;
}

bool hn_role_is_paired(hn_role role) {
    return table[role].pair;
}

const hn_role *hn_role_parts(hn_role role) {
    return table[role].of[0] ? table[role].of : NULL;
}

void *hn_role_place(hn_role role, const hn_layer_desc *d, hn_layer *l) {
    if (role == HN_ROLE_Q_BIAS && d->gated) return &l->gated_bias;
    return table[role].at ? (char *)l + (table[role].at - 1) : NULL;
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
    return r->kind == HN_IS_BIAS && r->in == HIDDEN;
}

bool hn_arch_has(const hn_arch *a, hn_role role, int layer) {
    return !table[role].has || table[role].has(a, &a->layer[layer]);
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
    return a->files.norms_less_one && table[role].kind == HN_IS_NORM ? 1 : 0;
}

float hn_arch_vector_times(const hn_arch *a, hn_role role) {
    if (role == HN_ROLE_TOKEN_NORM) return HN_TOKEN_INPUT_SHARE;
    if (role == HN_ROLE_ROUTER_SCALE) return 1 / sqrtf((float)a->hidden);
    return hn_role_ends_branch(role) ? a->residual_scale : 1;
}

int hn_arch_matrices(const hn_arch *a, hn_role role, int layer) {
    const hn_expert_desc *e = &a->layer[layer].experts;
    if (table[role].kind == HN_IS_OF_HEADS) return a->layer[layer].heads;
    return table[role].kind == HN_IS_OF_EXPERTS && (e->stacked || (a->files.form == HN_SOURCE_GGUF && !e->single)) ? e->count : 1;
}

void hn_arch_tensor_shape(const hn_arch *a, hn_role role, int layer, uint64_t dims[2]) {
    dims[0] = width_of(a, &a->layer[layer], table[role].in);
    dims[1] = width_of(a, &a->layer[layer], table[role].out);
}
