/* SPDX-License-Identifier: Apache-2.0 */
/* arch_glm.c - GLM-4.5, 4.6 and Air: the plain block with biases on q, k and v, some with norms of heads, half of each
 * head rotated; the first layers are dense, the others have experts chosen by sigmoids and a correction (as in
 * DeepSeek-V3), and one that all rows share. The last block of a file predicts a further token and is not a layer of
 * the model. */
#include "model/arch/arch.h"

/* use_qk_norm in a folder; a GGUF shows it by its tensors. */
static hunch_status read_rest(hn_arch *a, const hn_source *src, hunch_error *err) {
    bool on = false, found;
    hunch_status st = HUNCH_OK;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF)
        on = hn_source_find(src, "blk.0.attn_q_norm.weight");
    else
        st = hn_source_bool(src, "use_qk_norm", &on, &found, err);
    for (int i = 0; i < a->layers; i++) a->layer[i].qk_norm = on;
    return st;
}

static hunch_status glm4_moe_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_moe moe = {.count = "n_routed_experts",
                               .width = "moe_intermediate_size",
                               .groups = "n_group",
                               .groups_used = "topk_group",
                               .scale = "routed_scaling_factor",
                               .sigmoid = true,
                               .bias = true,
                               .normalised = {false, true},
                               .shared_count = "n_shared_experts"};
    static const hn_role_other names[] = {
        {HN_ROLE_FFN_NORM, "blk.%d.post_attention_norm.weight", NULL},
        {HN_ROLE_SHARED_GATE, NULL, "model.layers.%d.mlp.shared_experts.gate_proj.weight"},
        {HN_ROLE_SHARED_UP, NULL, "model.layers.%d.mlp.shared_experts.up_proj.weight"},
        {HN_ROLE_SHARED_DOWN, NULL, "model.layers.%d.mlp.shared_experts.down_proj.weight"},
        {HN_ROLES, NULL, NULL}};
    static const hn_dense glm = {.prefix = "glm4moe",
                                 .attention_bias = true,
                                 .no_o_bias = true,
                                 .next_layers = true,
                                 .rotated = 0.5,
                                 .usual.eps = 1e-5,
                                 .names = names,
                                 .moe = &moe,
                                 .finish = read_rest};
    return hn_dense_read(a, src, &glm, err);
}

const hn_family hn_family_glm4_moe = {"glm4moe", "glm4_moe", glm4_moe_read};
