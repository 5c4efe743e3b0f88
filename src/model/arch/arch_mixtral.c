/* SPDX-License-Identifier: Apache-2.0 */
/* arch_mixtral.c - Mixtral: Mistral's block with experts in every feed-forward half, weighted by the softmax over the chosen ones. */
#include "model/arch/arch.h"

/* Ollama's converter calls w2 up and w3 down. Their shapes show it: up has the model's width in, down has it out. */
static bool up_is_down(const hn_source *src) {
    const hn_tensor *gate = hn_source_find(src, "blk.0.ffn_gate_exps.weight"),
                    *up = hn_source_find(src, "blk.0.ffn_up_exps.weight"),
                    *down = hn_source_find(src, "blk.0.ffn_down_exps.weight");
    return hn_source_get_kind(src) == HN_SOURCE_GGUF && gate && up && down && gate->n_dims == 3 && up->n_dims == 3 &&
           down->n_dims == 3 && gate->dims[0] != gate->dims[1] && up->dims[0] == gate->dims[1] &&
           up->dims[1] == gate->dims[0] && down->dims[0] == gate->dims[0] && down->dims[1] == gate->dims[1];
}

hunch_status hn_mixtral_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_moe moe = {
        .count = "num_local_experts", .width = "intermediate_size", .width_is_ffn = true, .always_normalised = true};
    static const hn_role_other names[] = {
        {HN_ROLE_ROUTER, NULL, "model.layers.%d.block_sparse_moe.gate.weight"},
        {HN_ROLE_EXPERT_GATE, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w1.weight"},
        {HN_ROLE_EXPERT_UP, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w3.weight"},
        {HN_ROLE_EXPERT_DOWN, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w2.weight"},
        {HN_ROLES, NULL, NULL}};
    static const hn_role_other exchanged[] = {{HN_ROLE_EXPERT_UP, "blk.%d.ffn_down_exps.weight", NULL},
                                              {HN_ROLE_EXPERT_DOWN, "blk.%d.ffn_up_exps.weight", NULL},
                                              {HN_ROLES, NULL, NULL}};
    static const hn_dense mixtral = {
        .prefix = "llama", .interleaved = true, .windowed = true, .theta = 1e6, .names = names, .moe = &moe};
    static const hn_dense of_ollama = {
        .prefix = "llama", .interleaved = true, .windowed = true, .theta = 1e6, .names = exchanged, .moe = &moe};
    return hn_dense_read(a, src, up_is_down(src) ? &of_ollama : &mixtral, err);
}

const hn_family hn_family_mixtral = {"llama", "mixtral", hn_mixtral_read};
