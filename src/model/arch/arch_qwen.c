/* SPDX-License-Identifier: Apache-2.0 */
/* arch_qwen.c - Qwen2 and 2.5: biases on q, k and v. Qwen3 dense: no biases, but every head of q and k is normed. In
 * both the upper layers may have windows, and both have variants with experts; Qwen2-MoE also has a shared one,
 * weighted by a gate. */
#include <math.h>

#include "model/arch/arch.h"

enum { USUAL_FULL_LAYERS = 28 };

/* A folder of transformers 5 lists the layers that have a window; else they are all from max_window_layers on, or with experts those below
 * it whose number is even. */
static hunch_status mark_windows(hn_arch *a, const hn_source *src, bool even_below, hunch_error *err) {
    const hn_key limit = {NULL, "max_window_layers", 0, 1024, USUAL_FULL_LAYERS};
    int window, at;
    bool said;
    hunch_status st = hn_family_sliding(src, &window, err);
    if (st || window == 0) return st;
    st = hn_family_layer_types(a, src, window, &said, err);
    if (!st && !said) st = hn_key_int(src, &limit, &at, err);
    for (int i = 0; !st && !said && i < a->layers; i++)
        a->layer[i].window = (even_below ? i % 2 == 0 && i < at : i >= at) ? window : 0;
    return st;
}
static hunch_status read_windows(hn_arch *a, hn_source *src, hunch_error *err) { return mark_windows(a, src, false, err); }
static hunch_status read_windows_of_moe(hn_arch *a, hn_source *src, hunch_error *err) { return mark_windows(a, src, true, err); }

static const hn_key_row biased[] = {{HN_LAYER(BOOL, qkv_bias), NULL, NULL, 0, 0, {1, 1}}, HN_ROWS_END};
static const hn_key_row biased_moe[] = {
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias", "qkv_bias", 0, 1, {0, 1}}, HN_ROWS_END};
static const hn_key_row moe[] = {
    HN_EPS(NAN, 1e-6), HN_CONTEXT(32768), HN_KV_HEADS(16), HN_USED("num_experts_per_tok", 4),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 1408}},
    {HN_LAYER(INT, experts.shared_width), "expert_shared_feed_forward_length", "shared_expert_intermediate_size", 0, 1 << 20, {0, 5632}},
    HN_ROWS_END};
static const hn_key_row sparse[] = {
    HN_NORMALISED(1, 0),
    {HN_MODEL(INT, files.sparse_step), NULL, "decoder_sparse_step", 1, 1024, {0, 1}},
    HN_ROWS_END};

const hn_family hn_family_qwen2 = {.gguf_name = "qwen2", .hf_type = "qwen2", .keys = {biased, hn_slides}, .finish = read_windows};
const hn_family hn_family_qwen3 = {.gguf_name = "qwen3", .hf_type = "qwen3", .keys = {hn_norms_of_heads, hn_attention_bias_keys, hn_slides},
                                   .finish = read_windows};
const hn_family hn_family_qwen2_moe = {.gguf_name = "qwen2moe", .hf_type = "qwen2_moe",
                                       .keys = {biased_moe, hn_slides, hn_moe_keys, hn_moe_of_qwen, moe}, .finish = read_windows_of_moe};
const hn_family hn_family_qwen3_moe = {.gguf_name = "qwen3moe", .hf_type = "qwen3_moe",
                                       .keys = {hn_norms_of_heads, hn_attention_bias_keys, hn_moe_keys, sparse}};
