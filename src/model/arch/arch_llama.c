/* SPDX-License-Identifier: Apache-2.0 */
/* arch_llama.c - Llama 2/3 and its equals (SmolLM2, the tiny story models): the plain dense block, with biases if the
 * file has them. Mistral: the same, with a sliding window if its folder specifies one; Mixtral: Mistral with experts in every feed-forward
 * half, weighted by the softmax over the chosen ones. All use the GGUF architecture llama. Ministral 3: Mistral, whose queries are
 * multiplied by a number that grows with the position. */
#include <math.h>

#include "model/arch/arch.h"

static const hn_key_row window_keys[] = {
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, .how = HN_GGUF_WRITTEN, .written = hn_any_window},
    HN_ROWS_END};
static const hn_key_row mixtral_keys[] = {
    HN_THETA(1e6), HN_EPS(NAN, 1e-5), HN_CONTEXT(131072), HN_KV_HEADS(8), HN_USED("num_experts_per_tok", 2),
    {HN_LAYER(INT, experts.count), "expert_count", "num_local_experts num_experts n_routed_experts", 1, HN_MAX_EXPERTS, {NAN, NAN}},
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "intermediate_size", 1, 1 << 20, .how = HN_NEVER_WRITTEN,
     .follows = hn_width_of_dense},
    HN_ROWS_END};

static const hn_role_other mixtral_names[] = {HN_MIXTRAL_NAMES, HN_NAMES_END};
/* Ollama's converter calls w2 up and w3 down. */
static const hn_role_other exchanged[] = {{HN_ROLE_EXPERT_UP, "blk.%d.ffn_down_exps.weight", NULL, NULL},
                                          {HN_ROLE_EXPERT_DOWN, "blk.%d.ffn_up_exps.weight", NULL, NULL},
                                          {HN_ROLES, NULL, NULL, NULL}};
static const hn_family mixtral_of_ollama = {.gguf_name = "llama", .hf_type = "mixtral", .pairs = true, .names = exchanged,
                                            .keys = {window_keys, hn_moe_keys, hn_moe_normalised, mixtral_keys},
                                            .finish = hn_family_short_windows};

/* Shapes show what is called up: up has the model's width in, down has it out. */
static hunch_status which_mixtral(const hn_family **f, const hn_source *src, hunch_error *err HN_UNUSED) {
    const hn_tensor *gate = hn_source_find(src, "blk.0.ffn_gate_exps.weight"), *up = hn_source_find(src, "blk.0.ffn_up_exps.weight"),
                    *down = hn_source_find(src, "blk.0.ffn_down_exps.weight");
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF && gate && up && down && gate->n_dims == 3 && up->n_dims == 3 && down->n_dims == 3 &&
        gate->dims[0] != gate->dims[1] && up->dims[0] == gate->dims[1] && up->dims[1] == gate->dims[0] && down->dims[0] == gate->dims[0] &&
        down->dims[1] == gate->dims[1])
        *f = &mixtral_of_ollama;
    return HUNCH_OK;
}

static hunch_status which_llama(const hn_family **f, const hn_source *src, hunch_error *err) {
    const hn_key experts = {"llama.expert_count", NULL, 0, HN_MAX_EXPERTS, 0};
    int n = 0;
    const hunch_status st = hn_key_int(src, &experts, &n, err);
    if (st || n == 0) return st;
    *f = &hn_family_mixtral;
    return which_mixtral(f, src, err);
}

const hn_family hn_family_llama = {
    .gguf_name = "llama", .hf_type = "llama", .pairs = true, .keys = {hn_attention_bias_keys, hn_mlp_bias_keys}, .which = which_llama};
const hn_family hn_family_mistral = {
    .gguf_name = "llama", .hf_type = "mistral", .pairs = true, .keys = {window_keys}, .finish = hn_family_short_windows};
const hn_family hn_family_mixtral = {.gguf_name = "llama", .hf_type = "mixtral", .pairs = true, .names = mixtral_names,
                                     .keys = {window_keys, hn_moe_keys, hn_moe_normalised, mixtral_keys}, .which = which_mixtral,
                                     .finish = hn_family_short_windows};

static double original_of(const hn_arch *a, const hn_layer_desc *l HN_UNUSED) { return a->context; }
static bool is_scaled(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) { return a->layer[0].query_scale.times > 0; }
static bool only_scaled(const hn_arch *a, const hn_key_row *k, double *v) { /* YaRN's key is the same one */
    return is_scaled(a, k, v) && a->rotation[0].scaling.kind != HN_SCALING_YARN;
}
static const hn_key_row ministral_keys[] = {
    HN_CONTEXT(262144), HN_THETA(1e4), HN_HEAD_DIM(128), HN_KV_HEADS(8), HN_EPS(NAN, 1e-5),
    {HN_LAYER(FLOAT, query_scale.times), "attention.temperature_scale", "rope_parameters.llama_4_scaling_beta "
     "rope_scaling.llama_4_scaling_beta", 0, 1e3, .how = HN_IF_SET},
    {HN_LAYER(INT, query_scale.span), "rope.scaling.original_context_length", "rope_parameters.original_max_position_embeddings "
     "rope_scaling.original_max_position_embeddings", 1, 1 << 24, .follows = original_of, .written = only_scaled},
    HN_ROWS_END};
/* A folder that says nothing of its rotation has that of the published models. Without a factor there is no scale. */
static hunch_status finish_ministral(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_scaling usual = {.kind = HN_SCALING_YARN, .theta = 1e6, .factor = 16, .original = 16384, .fast = 32, .slow = 1,
                                     .whole = true, .mscale = 1, .mscale_all = 1};
    const hn_rotation said = a->rotation[0];
    const bool says = hn_source_config(src, "rope_parameters") || hn_source_config(src, "rope_scaling"),
               is_usual = a->files.form == HN_SOURCE_HF && !says;
    const hunch_status st = is_usual ? hn_rope_add(a, said.dims, &usual, err)
                                     : hn_family_rotation(a, src, said.dims, said.scaling.theta, err);
    for (int i = 0; !st && i < a->layers; i++) {
        hn_position_scale *scale = &a->layer[i].query_scale;
        if (is_usual) *scale = (hn_position_scale){.times = 0.1f, .span = 16384};
        if (!(scale->times > 0)) scale->span = 0;
    }
    return st ? st : hn_family_short_windows(a, src, err);
}
const hn_family hn_family_ministral3 = {
    .gguf_name = "mistral3", .hf_type = "ministral3", .pairs = true, .own_rotations = true, .keys = {window_keys, ministral_keys},
    .finish = finish_ministral};
