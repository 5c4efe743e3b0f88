/* SPDX-License-Identifier: Apache-2.0 */
/* arch_qwen.c - Qwen2 and 2.5: biases on q, k and v. Qwen3 dense: no biases, but every head of q and k is normed. In
 * both the upper layers may have windows, and both have variants with experts; Qwen2-MoE also has a shared one,
 * weighted by a gate. */
#include "model/arch/arch.h"

enum { USUAL_FULL_LAYERS = 28 };

static hunch_status read_windows(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key full = {NULL, "max_window_layers", 0, 1024, USUAL_FULL_LAYERS};
    int window, first;
    bool said;
    hunch_status st = hn_dense_sliding(src, &window, err);
    if (st || window == 0) return st;
    st = hn_dense_layer_types(a, src, window, &said, err);
    if (!st && !said) st = hn_key_int(src, &full, &first, err);
    for (int i = 0; !st && !said && i < a->layers; i++) a->layer[i].window = i >= first ? window : 0;
    return st;
}

static hunch_status qwen2_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense qwen2 = {.prefix = "qwen2", .qkv_bias = true, .may_slide = true, .finish = read_windows};
    return hn_dense_read(a, src, &qwen2, err);
}

static hunch_status qwen3_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense qwen3 = {
        .prefix = "qwen3", .qk_norm = true, .attention_bias = true, .may_slide = true, .finish = read_windows};
    return hn_dense_read(a, src, &qwen3, err);
}

static hunch_status qwen2_moe_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_moe moe = {.count = "num_experts",
                               .width = "moe_intermediate_size",
                               .shared_width = "shared_expert_intermediate_size",
                               .shared_gate = true,
                               .sparse_step = true};
    static const hn_dense qwen2_moe = {.prefix = "qwen2moe", .qkv_bias = true, .moe = &moe};
    return hn_dense_read(a, src, &qwen2_moe, err);
}

static hunch_status qwen3_moe_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_moe moe = {
        .count = "num_experts", .width = "moe_intermediate_size", .normalised = {true, false}, .sparse_step = true};
    static const hn_dense qwen3_moe = {.prefix = "qwen3moe", .qk_norm = true, .attention_bias = true, .moe = &moe};
    return hn_dense_read(a, src, &qwen3_moe, err);
}

const hn_family hn_family_qwen2_moe = {"qwen2moe", "qwen2_moe", qwen2_moe_read};
const hn_family hn_family_qwen3_moe = {"qwen3moe", "qwen3_moe", qwen3_moe_read};
const hn_family hn_family_qwen2 = {"qwen2", "qwen2", qwen2_read};
const hn_family hn_family_qwen3 = {"qwen3", "qwen3", qwen3_read};
