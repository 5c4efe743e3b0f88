/* SPDX-License-Identifier: Apache-2.0 */
/* arch_mixtral.c - Mixtral: Mistral's block with experts in every feed-forward half, weighted by the softmax over the chosen ones. */
#include "model/arch/arch.h"

hunch_status hn_mixtral_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_moe moe = {
        .count = "num_local_experts", .width = "intermediate_size", .width_is_ffn = true, .always_normalised = true};
    static const hn_role_other names[] = {
        {HN_ROLE_ROUTER, NULL, "model.layers.%d.block_sparse_moe.gate.weight"},
        {HN_ROLE_EXPERT_GATE, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w1.weight"},
        {HN_ROLE_EXPERT_UP, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w3.weight"},
        {HN_ROLE_EXPERT_DOWN, NULL, "model.layers.%d.block_sparse_moe.experts.%d.w2.weight"},
        {HN_ROLES, NULL, NULL}};
    static const hn_dense mixtral = {
        .prefix = "llama", .interleaved = true, .windowed = true, .theta = 1e6, .names = names, .moe = &moe};
    return hn_dense_read(a, src, &mixtral, err);
}

const hn_family hn_family_mixtral = {"llama", "mixtral", hn_mixtral_read};
