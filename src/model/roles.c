/* SPDX-License-Identifier: Apache-2.0 */
/* roles.c - the tensors of all models, heads and their steps, a row each: names, kind, shape, phase, the condition for a description to
 * have it, and where it is loaded to. All properties of a role are in this table, but names in a head's files (model/head/head_forms.c);
 * those of a kind of mixers are in its file. */
#include "model/mixers.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static bool never(const hn_arch *a HN_UNUSED, const hn_layer_desc *l HN_UNUSED) { return false; }
static const hn_input_stage *in_of(const hn_arch *a) { return &a->draft_head.input; }
static const hn_output_stage *out_of(const hn_arch *a) { return &a->draft_head.output; }
static const hn_rows_stage *rows_of(const hn_arch *a) { return &a->draft_head.rows; }

#define HAS HN_TENSOR_HAS
#define SIZE HN_TENSOR_SIZE
HAS(joint_norms, in_of(a)->stream == HN_STREAM_JOINT && in_of(a)->joint.norms)

/* ---- sizes ---------------------------------------------------------------------------------------------------------------- */

uint64_t hn_size_one(const hn_arch *a HN_UNUSED, const hn_layer_desc *l HN_UNUSED, hn_tensor_id t HN_UNUSED) { return 1; }
uint64_t hn_size_hidden(const hn_arch *a, const hn_layer_desc *l HN_UNUSED, hn_tensor_id t HN_UNUSED) { return (uint64_t)a->hidden; }
#define n_one hn_size_one
#define n_hidden hn_size_hidden
SIZE(n_vocab, a->vocab)
SIZE(n_ffn, l->ffn_width)
SIZE(n_both_ffn, 2 * l->ffn_width)
SIZE(n_experts, l->experts.count)
SIZE(n_expert, l->experts.width)
SIZE(n_both_expert, 2 * l->experts.width)
SIZE(n_shared, l->experts.shared_width)
SIZE(n_both_shared, 2 * l->experts.shared_width)
SIZE(n_input, l->token_input)
SIZE(n_all_inputs, (uint64_t)l->token_input * (uint64_t)a->layers)

/* of a draft head */
SIZE(of_tokens, in_of(a)->embeddings)
SIZE(of_states, in_of(a)->features)
SIZE(of_one_state, in_of(a)->feature_width)
SIZE(of_feature, of_states(a, l, t) * of_one_state(a, l, t))
SIZE(of_input, (uint64_t)(in_of(a)->stream == HN_STREAM_JOINT ? hn_arch_token_width(a) : 0) + of_feature(a, l, t))
SIZE(of_stream, joint_norms(a, l) ? of_feature(a, l, t) : n_hidden(a, l, t))
SIZE(of_two_hidden, 2 * n_hidden(a, l, t))
SIZE(of_lstm_input, n_hidden(a, l, t) + of_feature(a, l, t))
SIZE(of_lstm_gates, 4 * n_hidden(a, l, t))
SIZE(of_conv_base, 2 * hn_head_conv_desc(&a->draft_head)->taps * a->hidden)
SIZE(of_conv_product, hn_conv_coefficients(hn_head_conv_desc(&a->draft_head), a->hidden))
SIZE(of_rank, out_of(a)->markov.rank)
SIZE(of_three_ranks, 3 * of_rank(a, l, t))
SIZE(of_gate_input, n_hidden(a, l, t) + of_rank(a, l, t))
SIZE(of_step_input, n_hidden(a, l, t) + 2 * of_rank(a, l, t))
SIZE(of_certain, n_hidden(a, l, t) + (out_of(a)->markov.confidence == HN_CONFIDENCE_OF_TOKEN ? of_rank(a, l, t) : 0))
SIZE(of_codes, out_of(a)->selector.rank)
SIZE(of_prefix_state, out_of(a)->prefix.state)
SIZE(of_prefix_gates, 3 * of_prefix_state(a, l, t))
SIZE(of_prefix_joint, n_hidden(a, l, t) + of_prefix_state(a, l, t))
SIZE(of_prefix_width, out_of(a)->prefix.width)
SIZE(of_clusters, out_of(a)->clusters.n)

/* of its steps */
static const hn_steps_desc *steps_of(const hn_arch *a) { return &a->draft_head.rows.steps; }
SIZE(step_width, hn_steps_own_state(steps_of(a)) ? hn_steps_own_state(steps_of(a))->width : a->hidden)
SIZE(step_input, t.k == 0 ? a->draft_head.input.feature_width : (int)step_width(a, l, t))
SIZE(block_input, steps_of(a)->kind == HN_STEP_GROUNDED && t.block == 0 ? (t.k + 2) * a->hidden : a->hidden)
SIZE(all_gates, HN_STEP_GATES * step_width(a, l, t))

/* ---- conditions: whether a layer has the tensor ---------------------------------------------------------------------------- */

HAS(untied, !a->tied)
HAS(output_bias, a->output_bias)
HAS(output_norm, a->draft_head.output.norm != HN_NORM_NONE)
HAS(output_norm_bias, output_norm(a, l) && a->norm_biases)
HAS(normed, hn_layer_mixers(l) > 0 && l->input == HN_INPUT_NORMED)
HAS(normed_bias, normed(a, l) && a->norm_biases)

HAS(halves, l->ffn != HN_FFN_NONE)
HAS(post_mix_norm, l->post_norms && hn_layer_mixers(l) > 0)
HAS(post_ffn_norm, l->post_norms && halves(a, l))
HAS(ffn_normed, halves(a, l) && l->ffn_input == HN_INPUT_NORMED)
HAS(plain_norm, ffn_normed(a, l) && !l->post_norms && !l->hybrid)
HAS(hybrid_norm, ffn_normed(a, l) && !l->post_norms && l->hybrid) /* has another name in a GGUF */
HAS(pre_ffn_norm, ffn_normed(a, l) && l->post_norms)
HAS(ffn_norm_bias, plain_norm(a, l) && a->norm_biases)
HAS(dense, hn_layer_is_dense(l))
HAS(gated, dense(a, l) && l->ffn != HN_FFN_PLAIN)
HAS(own_gates, gated(a, l) && !l->fused_gate_up)
HAS(up, dense(a, l) && !l->fused_gate_up)
HAS(one_gate_up, gated(a, l) && l->fused_gate_up)
HAS(gate_bias, gated(a, l) && l->gate_up_bias)
HAS(up_bias, dense(a, l) && l->gate_up_bias)
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
HAS(shared_apart, shares(a, l) && !l->experts.shared_fused)
HAS(shared_gate_up, shares(a, l) && l->experts.shared_fused)
HAS(shared_bias, shares(a, l) && l->experts.shared_bias)

/* of a draft head */
HAS(fc, hn_head_has_fc(&a->draft_head))
HAS(fc_bias, hn_head_has_fc_bias(&a->draft_head))
HAS(lstm, in_of(a)->stream == HN_STREAM_LSTM)
HAS(norm_all, in_of(a)->stream == HN_STREAM_FEATURE && in_of(a)->feature.norm_all)
HAS(norm_each, in_of(a)->stream == HN_STREAM_FEATURE && in_of(a)->feature.norm_each)
HAS(pair, (a->layers > 0 && hn_layer_reads_pair(&a->layer[0])) || joint_norms(a, l))
HAS(context, in_of(a)->stream == HN_STREAM_CONTEXT)
HAS(own_embedding, in_of(a)->own_embedding)
HAS(own_mask, rows_of(a)->kind == HN_ROWS_MASKS && rows_of(a)->masks.input == HN_MASK_OWN)
HAS(mask_pair, rows_of(a)->kind == HN_ROWS_MASKS && rows_of(a)->masks.input == HN_MASK_PAIR)
HAS(mask_row, rows_of(a)->kind == HN_ROWS_BLOCK && rows_of(a)->block.mask_row)
HAS(conv, hn_head_conv_desc(&a->draft_head))
HAS(head_norm, out_of(a)->norm != HN_NORM_NONE)
HAS(carry, out_of(a)->norm == HN_NORM_CARRIED)
HAS(markov, hn_head_has_markov(&a->draft_head))
HAS(markov_gate, markov(a, l) && out_of(a)->markov.kind == HN_MARKOV_GATED)
HAS(recurrent, markov(a, l) && out_of(a)->markov.kind == HN_MARKOV_RNN)
HAS(confidence, hn_head_has_confidence(&a->draft_head))
HAS(selector, out_of(a)->kind == HN_OUTPUT_SELECTOR)
HAS(prefixed, out_of(a)->kind == HN_OUTPUT_PREFIX)
HAS(clusters, out_of(a)->kind == HN_OUTPUT_CLUSTERS)
HAS(head_output, out_of(a)->own && !a->tied && rows_of(a)->kind != HN_ROWS_STEPS)
HAS(ids, out_of(a)->own && rows_of(a)->kind != HN_ROWS_BORROWED)

/* of its steps: how many tensors of a role step k has of its own */
#define COUNT(name, value) \
    static int name(const hn_arch *a, int k HN_UNUSED) { return value; }
static bool own_state(const hn_arch *a, int last) { /* the steps up to `last`, or all that are not tied */
    const hn_own_state_desc *state = hn_steps_own_state(steps_of(a));
    return state && (!state->tied || last >= 0);
}
static bool is_cell(const hn_arch *a) { return steps_of(a)->kind == HN_STEP_LSTM; }
COUNT(blocks, hn_steps_resblocks(steps_of(a)) ? steps_of(a)->resblocks.n : 0)
COUNT(block_biases, blocks(a, k) && steps_of(a)->resblocks.bias ? steps_of(a)->resblocks.n : 0)
COUNT(grounded, steps_of(a)->kind == HN_STEP_GROUNDED)
COUNT(projection, own_state(a, 1 - k) && !is_cell(a))
COUNT(gate_each, own_state(a, 1 - k) && is_cell(a) && !a->files.steps.fused_gates)
COUNT(gates_fused, own_state(a, 1 - k) && is_cell(a) && a->files.steps.fused_gates)
COUNT(own_part, own_state(a, -k))
COUNT(cell_part, own_state(a, -k) && is_cell(a))
COUNT(step_output, a->draft_head.output.own && (!steps_of(a)->one_output || k == 0))
COUNT(step_output_bias, steps_of(a)->output_bias && (!steps_of(a)->one_output || k == 0))
/* of a head's parts */
COUNT(n_states, a->draft_head.input.features)
COUNT(n_layers, a->layers)
COUNT(n_modules, a->files.shared_modules ? 1 : hn_arch_modules(a))

/* ---- the table ----------------------------------------------------------------------------------------------------- */

#define AT HN_AT_LAYER
#define IN_MODEL(member) (int)offsetof(hn_model, member) + 1
#define IN_HEAD(member) IN_MODEL(head.member)
#define IN_STEP(member) (int)offsetof(hn_step, member) + 1

#define BLK HN_TENSOR_GGUF
#define LAYER HN_TENSOR_FOLDER
static const hn_tensor_row table[HN_ROLES] = {
    [HN_ROLE_EMBEDDING] = {{"token_embd.weight", "model.embed_tokens.weight"},
        HN_IS_MATRIX, n_hidden, n_vocab, HN_PHASE_EMBED, NULL, IN_MODEL(embedding), .by_row = true},
    [HN_ROLE_TOKEN_TABLE] = {{"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
        HN_IS_TABLE, n_all_inputs, n_vocab, HN_PHASE_EMBED, token_input, IN_MODEL(token_table)},
    [HN_ROLE_TOKEN_PRODUCT] = {{"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
        HN_IS_MATRIX, n_hidden, n_all_inputs, HN_PHASE_EMBED, token_input, IN_MODEL(token_product)},
    [HN_ROLE_TOKEN_NORM] = {{"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
        HN_IS_NORM, n_input, n_one, HN_PHASE_OTHER, token_input, IN_MODEL(token_norm)},
    [HN_ROLE_OUTPUT_NORM] = {{"output_norm.weight", "model.norm.weight"},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, output_norm, IN_MODEL(output_norm)},
    [HN_ROLE_OUTPUT_NORM_BIAS] = {{"output_norm.bias", "model.norm.bias"},
        HN_IS_VECTOR, n_hidden, n_one, HN_PHASE_OTHER, output_norm_bias, IN_MODEL(output_norm.b)},
    [HN_ROLE_OUTPUT_BIAS] = {{"output.bias", "lm_head.bias"},
        HN_IS_VECTOR, n_vocab, n_one, HN_PHASE_OTHER, output_bias, IN_MODEL(output_bias)},
    [HN_ROLE_OUTPUT] = {{"output.weight", "lm_head.weight"},
        HN_IS_MATRIX, n_hidden, n_vocab, HN_PHASE_OUTPUT, untied, IN_MODEL(output)},

    [HN_ROLE_ATTN_NORM] = {{BLK("attn_norm.weight"), LAYER("input_layernorm.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, normed, AT(attn_norm)},
    [HN_ROLE_ATTN_NORM_BIAS] = {{BLK("attn_norm.bias"), LAYER("input_layernorm.bias")},
        HN_IS_VECTOR, n_hidden, n_one, HN_PHASE_OTHER, normed_bias, AT(attn_norm.b)},
    [HN_ROLE_POST_ATTN_NORM] = {{BLK("post_attention_norm.weight"), LAYER("post_attention_layernorm.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, post_mix_norm, AT(post_attn_norm)},

    [HN_ROLE_FFN_NORM] = {{BLK("ffn_norm.weight"), LAYER("post_attention_layernorm.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, plain_norm, AT(ffn_norm)},
    [HN_ROLE_FFN_NORM_BIAS] = {{BLK("ffn_norm.bias"), LAYER("post_attention_layernorm.bias")},
        HN_IS_VECTOR, n_hidden, n_one, HN_PHASE_OTHER, ffn_norm_bias, AT(ffn_norm.b)},
    [HN_ROLE_PRE_FFN_NORM] = {{BLK("ffn_norm.weight"), LAYER("pre_feedforward_layernorm.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, pre_ffn_norm, AT(ffn_norm)},
    [HN_ROLE_HYBRID_FFN_NORM] = {{BLK("post_attention_norm.weight"), LAYER("post_attention_layernorm.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, hybrid_norm, AT(ffn_norm)},
    [HN_ROLE_GATE] = {{BLK("ffn_gate.weight"), LAYER("mlp.gate_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_ffn, HN_PHASE_GATE_UP, own_gates, AT(gate)},
    [HN_ROLE_UP] = {{BLK("ffn_up.weight"), LAYER("mlp.up_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_ffn, HN_PHASE_GATE_UP, up, AT(up), .pair = true},
    [HN_ROLE_GATE_UP] = {{BLK("ffn_up.weight"), LAYER("mlp.gate_up_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_both_ffn, HN_PHASE_GATE_UP, one_gate_up, .of = {HN_ROLE_GATE, HN_ROLE_UP}},
    [HN_ROLE_GATE_BIAS] = {{BLK("ffn_gate.bias"), LAYER("mlp.gate_proj.bias")},
        HN_IS_BIAS, n_ffn, n_one, HN_PHASE_OTHER, gate_bias, AT(gate_bias)},
    [HN_ROLE_UP_BIAS] = {{BLK("ffn_up.bias"), LAYER("mlp.up_proj.bias")},
        HN_IS_BIAS, n_ffn, n_one, HN_PHASE_OTHER, up_bias, AT(up_bias)},
    [HN_ROLE_DOWN] = {{BLK("ffn_down.weight"), LAYER("mlp.down_proj.weight")},
        HN_IS_MATRIX, n_ffn, n_hidden, HN_PHASE_DOWN, dense, AT(down)},
    [HN_ROLE_DOWN_BIAS] = {{BLK("ffn_down.bias"), LAYER("mlp.down_proj.bias")},
        HN_IS_BIAS, n_hidden, n_one, HN_PHASE_OTHER, down_bias, AT(down_bias)},
    [HN_ROLE_POST_FFN_NORM] = {{BLK("post_ffw_norm.weight"), LAYER("post_feedforward_layernorm.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, post_ffn_norm, AT(post_ffn_norm)},

    [HN_ROLE_INPUT_GATE] = {{BLK("inp_gate.weight"), LAYER("per_layer_input_gate.weight")},
        HN_IS_MATRIX, n_hidden, n_input, HN_PHASE_GATE_UP, token_input, AT(input_gate)},
    [HN_ROLE_INPUT_PRODUCT] = {{BLK("proj.weight"), LAYER("per_layer_projection.weight")},
        HN_IS_MATRIX, n_input, n_hidden, HN_PHASE_DOWN, token_input, AT(input_product)},
    [HN_ROLE_INPUT_NORM] = {{BLK("post_norm.weight"), LAYER("post_per_layer_input_norm.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, token_input, AT(input_norm)},
    [HN_ROLE_LAYER_SCALE] = {{BLK("layer_output_scale.weight"), LAYER("layer_scalar")},
        HN_IS_VECTOR, n_one, n_one, HN_PHASE_OTHER, scaled, AT(scale_at)},

    [HN_ROLE_ROUTER] = {{BLK("ffn_gate_inp.weight"), LAYER("mlp.gate.weight"), LAYER("mlp.gate.weight")},
        HN_IS_MATRIX, n_hidden, n_experts, HN_PHASE_ROUTER, sparse, AT(experts.router)},
    [HN_ROLE_ROUTER_BIAS] = {{BLK("exp_probs_b.bias"), LAYER("mlp.gate.e_score_correction_bias")},
        HN_IS_BIAS, n_experts, n_one, HN_PHASE_OTHER, router_bias, AT(experts.choice.bias)},
    [HN_ROLE_EXPERT_GATE] = {{BLK("ffn_gate_exps.weight"), LAYER("mlp.experts.%d.gate_proj.weight"), NULL, BLK("ffn_gate.%d.weight")},
        HN_IS_OF_EXPERTS, n_hidden, n_expert, HN_PHASE_GATE_UP, not_stacked, AT(experts.gate)},
    [HN_ROLE_EXPERT_UP] = {{BLK("ffn_up_exps.weight"), LAYER("mlp.experts.%d.up_proj.weight"), NULL, BLK("ffn_up.%d.weight")},
        HN_IS_OF_EXPERTS, n_hidden, n_expert, HN_PHASE_GATE_UP, not_stacked, AT(experts.up), .pair = true},
    [HN_ROLE_EXPERT_GATE_UP] = {{BLK("ffn_gate_up_exps.weight"), LAYER("mlp.experts.%d.gate_up_proj.weight"),
        LAYER("mlp.experts.gate_up_proj")},
        HN_IS_OF_EXPERTS, n_hidden, n_both_expert, HN_PHASE_GATE_UP, stacked, .of = {HN_ROLE_EXPERT_GATE, HN_ROLE_EXPERT_UP}},
    [HN_ROLE_EXPERT_DOWN] = {{BLK("ffn_down_exps.weight"), LAYER("mlp.experts.%d.down_proj.weight"),
        LAYER("mlp.experts.down_proj"), BLK("ffn_down.%d.weight")},
        HN_IS_OF_EXPERTS, n_expert, n_hidden, HN_PHASE_DOWN, sparse, AT(experts.down)},
    [HN_ROLE_SCORE_BIAS] = {{BLK("ffn_gate_inp.bias"), LAYER("mlp.router.bias")},
        HN_IS_BIAS, n_experts, n_one, HN_PHASE_OTHER, biases, AT(experts.score_bias)},
    [HN_ROLE_EXPERT_GATE_BIAS] = {{BLK("ffn_gate_exps.bias"), LAYER("mlp.experts.gate_proj_bias")},
        HN_IS_EXPERT_VECTORS, n_expert, n_experts, HN_PHASE_OTHER, biases_apart, AT(experts.unit.gate_bias)},
    [HN_ROLE_EXPERT_UP_BIAS] = {{BLK("ffn_up_exps.bias"), LAYER("mlp.experts.up_proj_bias")},
        HN_IS_EXPERT_VECTORS, n_expert, n_experts, HN_PHASE_OTHER, biases_apart, AT(experts.unit.up_bias)},
    [HN_ROLE_EXPERT_GATE_UP_BIAS] = {{BLK("ffn_gate_up_exps.bias"), LAYER("mlp.experts.gate_up_proj_bias")},

        HN_IS_EXPERT_VECTORS, n_both_expert, n_experts, HN_PHASE_OTHER, one_of_biases,
        .of = {HN_ROLE_EXPERT_GATE_BIAS, HN_ROLE_EXPERT_UP_BIAS}},
    [HN_ROLE_EXPERT_DOWN_BIAS] = {{BLK("ffn_down_exps.bias"), LAYER("mlp.experts.down_proj_bias")},
        HN_IS_EXPERT_VECTORS, n_hidden, n_experts, HN_PHASE_OTHER, biases, AT(experts.down_bias)},
    [HN_ROLE_ROUTER_SCALE] = {{BLK("ffn_gate_inp.scale"), LAYER("router.scale")},
        HN_IS_STORED_NORM, n_hidden, n_one, HN_PHASE_OTHER, beside, AT(experts.router_norm)},
    [HN_ROLE_EXPERT_SCALE] = {{BLK("ffn_down_exps.scale"), LAYER("router.per_expert_scale")},
        HN_IS_VECTOR, n_experts, n_one, HN_PHASE_OTHER, beside, AT(experts.choice.expert_scale)},
    [HN_ROLE_PRE_EXPERTS_NORM] = {{BLK("pre_ffw_norm_2.weight"), LAYER("pre_feedforward_layernorm_2.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, beside, AT(experts.norm)},
    [HN_ROLE_POST_DENSE_NORM] = {{BLK("post_ffw_norm_1.weight"), LAYER("post_feedforward_layernorm_1.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, beside, AT(experts.post_dense_norm)},
    [HN_ROLE_POST_EXPERTS_NORM] = {{BLK("post_ffw_norm_2.weight"), LAYER("post_feedforward_layernorm_2.weight")},
        HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, beside, AT(experts.post_norm)},
    [HN_ROLE_SHARED_ROUTER] = {{BLK("ffn_gate_inp_shexp.weight"), LAYER("mlp.shared_expert_gate.weight")},
        HN_IS_MATRIX, n_hidden, n_one, HN_PHASE_ROUTER, shared_gate, AT(experts.shared_router)},
    [HN_ROLE_SHARED_GATE] = {{BLK("ffn_gate_shexp.weight"), LAYER("mlp.shared_expert.gate_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_shared, HN_PHASE_GATE_UP, shared_apart, AT(experts.shared_gate)},
    [HN_ROLE_SHARED_UP] = {{BLK("ffn_up_shexp.weight"), LAYER("mlp.shared_expert.up_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_shared, HN_PHASE_GATE_UP, shared_apart, AT(experts.shared_up), .pair = true},
    [HN_ROLE_SHARED_GATE_UP] = {{BLK("ffn_gate_up_shexp.weight"), LAYER("mlp.shared_expert.gate_up_proj.weight")},
        HN_IS_MATRIX, n_hidden, n_both_shared, HN_PHASE_GATE_UP, shared_gate_up, .of = {HN_ROLE_SHARED_GATE, HN_ROLE_SHARED_UP}},
    [HN_ROLE_SHARED_DOWN] = {{BLK("ffn_down_shexp.weight"), LAYER("mlp.shared_expert.down_proj.weight")},
        HN_IS_MATRIX, n_shared, n_hidden, HN_PHASE_DOWN, shares, AT(experts.shared_down)},
    [HN_ROLE_SHARED_GATE_BIAS] = {{BLK("ffn_gate_shexp.bias"), LAYER("mlp.shared_expert.gate_proj.bias")},
        HN_IS_VECTOR, n_shared, n_one, HN_PHASE_OTHER, shared_bias, AT(experts.shared_gate_bias)},
    [HN_ROLE_SHARED_UP_BIAS] = {{BLK("ffn_up_shexp.bias"), LAYER("mlp.shared_expert.up_proj.bias")},
        HN_IS_VECTOR, n_shared, n_one, HN_PHASE_OTHER, shared_bias, AT(experts.shared_up_bias)},
    [HN_ROLE_SHARED_DOWN_BIAS] = {{BLK("ffn_down_shexp.bias"), LAYER("mlp.shared_expert.down_proj.bias")},
        HN_IS_VECTOR, n_hidden, n_one, HN_PHASE_OTHER, shared_bias, AT(experts.shared_down_bias)},

    /* a draft head's, whose names are those of its form (model/head/head_names.c) */
    [HN_HEAD_FC] = {{NULL}, HN_IS_MATRIX, of_input, n_hidden, HN_PHASE_OTHER, fc, IN_HEAD(fc), .count = n_modules},
    [HN_HEAD_FC_BIAS] = {{NULL}, HN_IS_VECTOR, n_hidden, n_one, HN_PHASE_OTHER, fc_bias, IN_HEAD(fc_bias)},
    [HN_HEAD_FEATURE_NORM] = {{NULL}, HN_IS_STORED_NORM, of_feature, n_one, HN_PHASE_OTHER, norm_all, IN_HEAD(feature_norm)},
    [HN_HEAD_STATE_NORM] = {{NULL}, HN_IS_STORED_NORM, of_one_state, n_one, HN_PHASE_OTHER, norm_each, .count = n_states},
    [HN_HEAD_TOKEN_NORM] = {{NULL}, HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, pair, IN_HEAD(token_norm), .count = n_modules},
    [HN_HEAD_STREAM_NORM] = {{NULL}, HN_IS_NORM, of_stream, n_one, HN_PHASE_OTHER, pair, IN_HEAD(stream_norm), .count = n_modules},
    [HN_HEAD_OUTPUT_NORM] = {{NULL}, HN_IS_NORM, n_hidden, n_one, HN_PHASE_OTHER, head_norm, IN_MODEL(output_norm),
        .other = "output_norm.weight", .count = n_modules},
    [HN_HEAD_CARRY] = {{NULL}, HN_IS_MATRIX, n_hidden, of_feature, HN_PHASE_OTHER, carry, IN_HEAD(carry)},
    [HN_HEAD_MASK] = {{NULL}, HN_IS_VECTOR, of_feature, n_one, HN_PHASE_OTHER, own_mask, IN_HEAD(mask)},
    [HN_HEAD_MASK_PAIR] = {{NULL}, HN_IS_VECTOR, of_two_hidden, n_one, HN_PHASE_OTHER, mask_pair, IN_HEAD(mask)},
    [HN_HEAD_CONTEXT_NORM] = {{NULL}, HN_IS_STORED_NORM, n_hidden, n_one, HN_PHASE_OTHER, context, IN_HEAD(context_norm)},
    [HN_HEAD_MASK_ROW] = {{NULL}, HN_IS_VECTOR, n_hidden, n_one, HN_PHASE_OTHER, mask_row, IN_HEAD(mask_row)},
    [HN_HEAD_MARKOV_IN] = {{NULL}, HN_IS_MATRIX, of_rank, of_tokens, HN_PHASE_OTHER, markov, IN_HEAD(markov_in)},
    [HN_HEAD_MARKOV_OUT] = {{NULL}, HN_IS_MATRIX, of_rank, n_vocab, HN_PHASE_OTHER, markov, IN_HEAD(markov_out)},
    [HN_HEAD_MARKOV_GATE] = {{NULL}, HN_IS_MATRIX, of_gate_input, of_rank, HN_PHASE_OTHER, markov_gate, IN_HEAD(markov_mix)},
    [HN_HEAD_MARKOV_GATE_BIAS] = {{NULL}, HN_IS_VECTOR, of_rank, n_one, HN_PHASE_OTHER, markov_gate, IN_HEAD(markov_bias)},
    [HN_HEAD_MARKOV_STEP] = {{NULL}, HN_IS_MATRIX, of_step_input, of_three_ranks, HN_PHASE_OTHER, recurrent, IN_HEAD(markov_mix)},
    [HN_HEAD_MARKOV_STEP_BIAS] = {{NULL}, HN_IS_VECTOR, of_three_ranks, n_one, HN_PHASE_OTHER, recurrent, IN_HEAD(markov_bias)},
    [HN_HEAD_CONFIDENCE] = {{NULL}, HN_IS_MATRIX, of_certain, n_one, HN_PHASE_OTHER, confidence, IN_HEAD(confidence)},
    [HN_HEAD_CONFIDENCE_BIAS] = {{NULL}, HN_IS_VECTOR, n_one, n_one, HN_PHASE_OTHER, confidence, IN_HEAD(confidence_bias)},
    [HN_HEAD_CONV_BASE] = {{NULL}, HN_IS_SIDES, of_conv_base, n_one, HN_PHASE_OTHER, conv, .count = n_layers},
    [HN_HEAD_CONV_PRODUCT] = {{NULL}, HN_IS_MATRIX, n_hidden, of_conv_product, HN_PHASE_OTHER, conv, .count = n_layers},
    [HN_HEAD_FFN_CONV_BASE] = {{NULL}, HN_IS_SIDES, of_conv_base, n_one, HN_PHASE_OTHER, conv, .count = n_layers},
    [HN_HEAD_FFN_CONV_PRODUCT] = {{NULL}, HN_IS_MATRIX, n_hidden, of_conv_product, HN_PHASE_OTHER, conv, .count = n_layers},
    [HN_HEAD_SELECTOR] = {{NULL}, HN_IS_MATRIX, n_hidden, of_codes, HN_PHASE_OTHER, selector, IN_HEAD(selector)},
    [HN_HEAD_CODES_BEFORE] = {{NULL}, HN_IS_MATRIX, of_codes, of_tokens, HN_PHASE_OTHER, selector, IN_HEAD(codes_before)},
    [HN_HEAD_CODES_AFTER] = {{NULL}, HN_IS_MATRIX, of_codes, of_tokens, HN_PHASE_OTHER, selector, IN_HEAD(codes_after)},
    [HN_HEAD_GRU_INPUT] = {{NULL}, HN_IS_MATRIX, n_hidden, of_prefix_gates, HN_PHASE_OTHER, prefixed, IN_HEAD(gru_input)},
    [HN_HEAD_GRU_STATE] = {{NULL}, HN_IS_MATRIX, of_prefix_state, of_prefix_gates, HN_PHASE_OTHER, prefixed, IN_HEAD(gru_state)},
    [HN_HEAD_BIAS_IN] = {{NULL}, HN_IS_MATRIX, of_prefix_joint, of_prefix_width, HN_PHASE_OTHER, prefixed, IN_HEAD(bias_in)},
    [HN_HEAD_BIAS_OUT] = {{NULL}, HN_IS_MATRIX, of_prefix_width, n_vocab, HN_PHASE_OTHER, prefixed, IN_HEAD(bias_out)},
    [HN_HEAD_LSTM_1] = {{NULL}, HN_IS_MATRIX, of_lstm_input, of_lstm_gates, HN_PHASE_OTHER, lstm, IN_HEAD(lstm[0])},
    [HN_HEAD_LSTM_2] = {{NULL}, HN_IS_MATRIX, n_hidden, of_lstm_gates, HN_PHASE_OTHER, lstm, IN_HEAD(lstm[1])},
    [HN_HEAD_LSTM_BIAS_1] = {{NULL}, HN_IS_VECTOR, of_lstm_gates, n_one, HN_PHASE_OTHER, lstm, IN_HEAD(lstm_bias[0])},
    [HN_HEAD_LSTM_BIAS_2] = {{NULL}, HN_IS_VECTOR, of_lstm_gates, n_one, HN_PHASE_OTHER, lstm, IN_HEAD(lstm_bias[1])},
    [HN_HEAD_LSTM_STATE_BIAS_1] = {{NULL}, HN_IS_VECTOR, of_lstm_gates, n_one, HN_PHASE_OTHER, lstm, IN_HEAD(lstm_state_bias[0])},
    [HN_HEAD_LSTM_STATE_BIAS_2] = {{NULL}, HN_IS_VECTOR, of_lstm_gates, n_one, HN_PHASE_OTHER, lstm, IN_HEAD(lstm_state_bias[1])},
    [HN_HEAD_EMBEDDING] = {{NULL}, HN_IS_MATRIX, n_hidden, of_tokens, HN_PHASE_OTHER, own_embedding, IN_MODEL(embedding), .by_row = true},
    [HN_HEAD_OUTPUT] = {{NULL}, HN_IS_MATRIX, n_hidden, n_vocab, HN_PHASE_OUTPUT, head_output, IN_MODEL(output)},
    [HN_HEAD_IDS] = {{NULL}, HN_IS_LIST, n_vocab, n_one, HN_PHASE_OTHER, ids},
    [HN_HEAD_CENTROIDS] = {{NULL}, HN_IS_MATRIX, n_hidden, of_clusters, HN_PHASE_OTHER, clusters, IN_HEAD(centroids)},
    [HN_HEAD_ORDER] = {{NULL}, HN_IS_LIST, n_vocab, n_one, HN_PHASE_OTHER, clusters},

    [HN_STEP_RESBLOCK] = {{NULL}, HN_IS_MATRIX, block_input, n_hidden, HN_PHASE_OTHER, NULL, IN_STEP(resblock), .count = blocks},
    [HN_STEP_RESBLOCK_BIAS] = {{NULL}, HN_IS_VECTOR, n_hidden, n_one, HN_PHASE_OTHER, NULL, IN_STEP(resblock_bias), .count = block_biases},
    [HN_STEP_RESIDUAL] = {{NULL}, HN_IS_MATRIX, block_input, n_hidden, HN_PHASE_OTHER, NULL, IN_STEP(residual), .count = grounded},
    [HN_STEP_RESIDUAL_BIAS] = {{NULL}, HN_IS_VECTOR, n_hidden, n_one, HN_PHASE_OTHER, NULL, IN_STEP(residual_bias), .count = grounded},
    [HN_STEP_PROJECTION] = {{NULL}, HN_IS_MATRIX, step_input, step_width, HN_PHASE_OTHER, NULL, IN_STEP(gate[0]), .count = projection},
    [HN_STEP_GATE_FORGET] = {{NULL}, HN_IS_MATRIX, step_input, step_width, HN_PHASE_OTHER, NULL, IN_STEP(gate[0]), .count = gate_each},
    [HN_STEP_GATE_INPUT] = {{NULL}, HN_IS_MATRIX, step_input, step_width, HN_PHASE_OTHER, NULL, IN_STEP(gate[1]), .count = gate_each},
    [HN_STEP_GATE_OUTPUT] = {{NULL}, HN_IS_MATRIX, step_input, step_width, HN_PHASE_OTHER, NULL, IN_STEP(gate[2]), .count = gate_each},
    [HN_STEP_GATE_CELL] = {{NULL}, HN_IS_MATRIX, step_input, step_width, HN_PHASE_OTHER, NULL, IN_STEP(gate[3]), .count = gate_each},
    [HN_STEP_GATES_FUSED] = {{NULL}, HN_IS_MATRIX, step_input, all_gates, HN_PHASE_OTHER, NULL, .count = gates_fused,
        .of = {HN_STEP_GATE_FORGET, HN_STEP_GATE_INPUT, HN_STEP_GATE_OUTPUT, HN_STEP_GATE_CELL}},
    [HN_STEP_EMBEDDING] = {{NULL}, HN_IS_MATRIX, step_width, of_tokens, HN_PHASE_OTHER, NULL, IN_STEP(embedding),
        .by_row = true, .count = own_part},
    [HN_STEP_NORM] = {{NULL}, HN_IS_STORED_NORM, step_width, n_one, HN_PHASE_OTHER, NULL, IN_STEP(norm),
        .eps = HN_STEP_EPS, .count = own_part},
    [HN_STEP_NORM_BIAS] = {{NULL}, HN_IS_VECTOR, step_width, n_one, HN_PHASE_OTHER, NULL, IN_STEP(norm_bias), .count = own_part},
    [HN_STEP_CELL_NORM] = {{NULL}, HN_IS_STORED_NORM, step_width, n_one, HN_PHASE_OTHER, NULL, IN_STEP(cell_norm),
        .eps = HN_STEP_EPS, .count = cell_part},
    [HN_STEP_CELL_NORM_BIAS] = {{NULL}, HN_IS_VECTOR, step_width, n_one, HN_PHASE_OTHER, NULL, IN_STEP(cell_norm_bias), .count = cell_part},
    [HN_STEP_OUTPUT] = {{NULL}, HN_IS_MATRIX, step_width, n_vocab, HN_PHASE_OUTPUT, NULL, IN_STEP(output), .count = step_output},
    [HN_STEP_OUTPUT_BIAS] = {{NULL}, HN_IS_VECTOR, n_vocab, n_one, HN_PHASE_OTHER, NULL, IN_STEP(output_bias), .count = step_output_bias}};

/* ---- properties of roles ------------------------------------------------------------------------------------------------------ */

static const hn_mixer_kind *const kinds[] = {
#define LISTED(NAME) &hn_mixer_##NAME,
    HN_MIXERS(LISTED)};

/* NULL: a role of all mixers, or none of layers. */
static const hn_mixer_kind *kind_of(hn_role role) {
    const bool own = role >= HN_ROLES_OF_MIXERS && role < HN_ROLE_ROUTER;
    return own ? kinds[(role - HN_ROLES_OF_MIXERS) / HN_MIXER_TENSORS] : NULL;
}

const hn_tensor_row *hn_tensor_row_of(hn_role role) {
    static const hn_tensor_row none = {.name = {"", "", NULL, NULL}, .in = hn_size_one, .out = hn_size_one, .has = never};
    const hn_mixer_kind *kind = kind_of(role);
    const int k = (role - HN_ROLES_OF_MIXERS) % HN_MIXER_TENSORS;
    if (role < HN_ROLES_OF_MIXERS && hn_attention_tensors[role].name[0]) return &hn_attention_tensors[role];
    return !kind ? &table[role] : k < kind->n_tensors ? &kind->tensor[k] : &none;
}
#define row_of hn_tensor_row_of

bool hn_role_exists(hn_role role) { return row_of(role)->has != never; }

const char *hn_role_name(hn_role role, hn_source_kind form) {
    _Static_assert(HN_SOURCE_GGUF == 0 && HN_SOURCE_HF == 1, "columns of names");
    return row_of(role)->name[form];
}

const char *hn_role_stacked_name(hn_role role) {
    return row_of(role)->name[2];
}

const char *hn_role_single_name(hn_role role) {
    return row_of(role)->name[3];
}

hn_role_kind hn_role_kind_of(hn_role role) {
    return row_of(role)->kind;
}

bool hn_role_is_vector(hn_role role) {
    return row_of(role)->kind >= HN_IS_NORM;
}

bool hn_role_is_paired(hn_role role) {
    return row_of(role)->pair;
}

const hn_role *hn_role_parts(hn_role role) {
    return row_of(role)->of[0] ? row_of(role)->of : NULL;
}

/* Of a module of multi-token prediction, from the second on; NULL: of another role. */
static void *place_in_module(hn_head_module *module, hn_role role) {
    switch (role) {
    case HN_HEAD_FC: return &module->fc;
    case HN_HEAD_TOKEN_NORM: return &module->token_norm;
    case HN_HEAD_STREAM_NORM: return &module->stream_norm;
    case HN_HEAD_OUTPUT_NORM: return &module->output_norm;
    default: return NULL;
    }
}

/* What a head has several of: those of further modules, of states, of layers. */
static void *place_of_several(hn_model *m, hn_tensor_id t) {
    switch (t.role) {
    case HN_HEAD_FC:
    case HN_HEAD_TOKEN_NORM:
    case HN_HEAD_STREAM_NORM:
    case HN_HEAD_OUTPUT_NORM: return t.k > 0 ? place_in_module(&m->head.further[t.k - 1], t.role) : NULL;
    case HN_HEAD_STATE_NORM: return &m->head.fc_norm[t.k];
    case HN_HEAD_CONV_BASE: return &m->head.conv[2 * t.k].base;
    case HN_HEAD_CONV_PRODUCT: return &m->head.conv[2 * t.k].product;
    case HN_HEAD_FFN_CONV_BASE: return &m->head.conv[2 * t.k + 1].base;
    case HN_HEAD_FFN_CONV_PRODUCT: return &m->head.conv[2 * t.k + 1].product;
    default: return NULL;
    }
}

void *hn_tensor_place(hn_model *m, hn_tensor_id t) {
    const hn_tensor_row *r = row_of(t.role);
    const hn_mixer_kind *kind = kind_of(t.role);
    void *several = place_of_several(m, t);
    if (several) return several;
    if (t.role == HN_ROLE_Q_BIAS && m->arch.layer[t.k].gate.in_q) return &m->layer[t.k].gated_bias;
    char *base = kind                       ? m->layer[t.k].own[hn_layer_mixer(&m->arch.layer[t.k], kind)]
               : hn_role_of_layer(t.role)   ? (char *)&m->layer[t.k]
               : hn_role_of_steps(t.role)   ? (char *)&m->head.step[t.k]
                                            : (char *)m;
    return r->at ? base + (r->at - 1) + (size_t)t.block * (hn_role_is_vector(t.role) ? sizeof(hn_buf) : sizeof(hn_weight)) : NULL;
}

bool hn_role_of_layer(hn_role role) {
    return role < HN_ROLES_OF_MODELS && strchr(row_of(role)->name[HN_SOURCE_GGUF], '%') != NULL;
}

bool hn_role_is_rotated(hn_role role) {
    return role == HN_ROLE_Q || role == HN_ROLE_K || role == HN_ROLE_Q_BIAS || role == HN_ROLE_K_BIAS || role == HN_ROLE_Q_NORM ||
           role == HN_ROLE_K_NORM;
}

hn_change hn_role_change(hn_role role) {
    return row_of(role)->change;
}

hn_phase hn_role_phase(hn_role role) {
    return row_of(role)->phase;
}

bool hn_role_ends_branch(hn_role role) {
    const hn_tensor_row *r = row_of(role);
    return r->kind == HN_IS_BIAS && r->in == n_hidden;
}

bool hn_arch_has(const hn_arch *a, hn_role role, int layer) {
    const hn_tensor_row *r = row_of(role);
    const hn_mixer_kind *kind = kind_of(role);
    const hn_layer_desc *l = a->layer ? &a->layer[role < HN_ROLES_OF_MODELS ? layer : 0] : NULL;
    if (hn_role_of_steps(role)) return r->count(a, layer) > 0;
    return (!kind || hn_layer_mixer(l, kind) >= 0) && (!r->has || r->has(a, l));
}

/* Tensors of a role outside of layers: of a head's states, layers or modules, else 1; of a step its residual blocks. 0: there is none. */
static int count_of(const hn_arch *a, hn_role role, int k) {
    if (hn_role_of_layer(role) || !hn_arch_has(a, role, k)) return 0;
    return row_of(role)->count ? row_of(role)->count(a, k) : 1;
}

bool hn_arch_next(const hn_arch *a, hn_tensor_id *t) {
    const hn_steps_desc *d = hn_head_steps(&a->draft_head);
    const hn_role first = hn_arch_is_head(a) ? HN_HEAD_FC : 0, end = hn_arch_is_head(a) ? HN_ROLES_OF_STEPS : HN_ROLES_OF_MODELS;
    if (t->role < first) t->role = first;
    if (t->role < end) {
        for (t->k++; t->role < end && t->k >= count_of(a, t->role, 0); t->k = 0) t->role++;
        if (t->role < end) return true;
        *t = (hn_tensor_id){HN_ROLES_OF_STEPS, 0, -1};
    }
    t->block++;
    while (d && t->k < d->n && t->block >= count_of(a, t->role, t->k)) {
        t->block = 0;
        if (++t->role < HN_ROLES) continue;
        t->role = HN_ROLES_OF_STEPS;
        t->k++;
    }
    return d && t->k < d->n;
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

bool hn_arch_vector_across(const hn_arch *a, hn_tensor_id t, uint64_t dims[2]) {
    const hn_tensor_row *r = row_of(t.role);
    if (!r->across) return false;
    hn_arch_shape(a, t, dims);
    dims[1] = r->across(a, &a->layer[t.k], t);
    dims[0] /= dims[1];
    return true;
}

float hn_arch_vector_more(const hn_arch *a, hn_role role) {
    return a->files.norms_less_one && row_of(role)->kind == HN_IS_NORM ? 1 : 0;
}

float hn_arch_vector_times(const hn_arch *a, hn_tensor_id t) {
    if (t.role == HN_ROLE_TOKEN_NORM) return HN_TOKEN_INPUT_SHARE;
    if (t.role == HN_ROLE_ROUTER_SCALE) return 1 / sqrtf((float)a->hidden);
    if (!hn_role_ends_branch(t.role)) return 1;
    const hn_layer_desc *l = &a->layer[t.k];
    const hn_mixer_kind *kind = kind_of(t.role);
    return hn_branch_times(a, t.role == HN_ROLE_DOWN_BIAS ? l->ffn_times : l->mixer[kind ? hn_layer_mixer(l, kind) : 0].times);
}

int hn_arch_matrices(const hn_arch *a, hn_role role, int layer) {
    const hn_expert_desc *e = &a->layer[layer].experts;
    if (row_of(role)->kind == HN_IS_OF_HEADS) return a->layer[layer].heads;
    const bool one_tensor = e->stacked || e->stacks || (a->files.form == HN_SOURCE_GGUF && !e->single);
    return row_of(role)->kind == HN_IS_OF_EXPERTS && one_tensor ? e->count : 1;
}

void hn_arch_shape(const hn_arch *a, hn_tensor_id t, uint64_t dims[2]) {
    const hn_layer_desc *l = a->layer && t.role < HN_ROLES_OF_MODELS ? &a->layer[t.k] : NULL;
    dims[0] = row_of(t.role)->in(a, l, t);
    dims[1] = row_of(t.role)->out(a, l, t);
}

int hn_arch_dims(const hn_arch *a, hn_tensor_id t, uint64_t dims[3]) {
    const hn_layer_desc *l = a->layer && t.role < HN_ROLES_OF_MODELS ? &a->layer[t.k] : NULL;
    const uint64_t width = (uint64_t)a->hidden;
    hn_arch_shape(a, t, dims);
    switch (row_of(t.role)->kind) {
    case HN_IS_MATRIX:
    case HN_IS_TABLE:
    case HN_IS_CONVOLUTION:
    case HN_IS_EXPERT_VECTORS: return 2;
    case HN_IS_OF_EXPERTS: dims[2] = (uint64_t)l->experts.count; return 3;
    case HN_IS_OF_HEADS: dims[2] = (uint64_t)l->heads; return 3;
    case HN_IS_SIDES: memcpy(dims, (uint64_t[]){width, dims[0] / 2 / width, 2}, 3 * sizeof *dims); return 3;
    case HN_IS_NORM:
    case HN_IS_STORED_NORM:
    case HN_IS_BIAS:
    case HN_IS_VECTOR:
    case HN_IS_LIST: break;
    }
    return 1;
}

void hn_arch_tensor_shape(const hn_arch *a, hn_role role, int layer, uint64_t dims[2]) {
    hn_arch_shape(a, (hn_tensor_id){role, layer, 0}, dims);
}
