/* SPDX-License-Identifier: Apache-2.0 */
/* arch_mimo.c - MiMo-V2 (Flash): values narrower than keys, multiplied by a number before they are stored, which here multiplies the sum
 * that attention makes of them. Layers with a window have more key heads, sinks, and a base of their own; a third of a head turns. The
 * first layer is dense, the others have experts chosen by sigmoids and a correction. Blocks that predict further tokens are not read. */
#include <math.h>

#include "model/arch/arch.h"

/* Null is 1. */
static hunch_status read_times(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const bool absent = r->a->files.form == HN_SOURCE_HF && !hn_source_is_null(r->src, "attention_value_scale");
    const hn_key times = {"mimo2.attention.value_scale", "attention_value_scale", k->least, k->most, absent ? 0.707 : 1};
    return hn_key_real(r->src, &times, v, err);
}
/* sliding_window_size does not count the row itself. */
static hunch_status read_window(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const hn_key others = {NULL, "sliding_window_size", 0, 1 << 24, -1};
    double n = 0;
    hunch_status st = hn_read_window(r, k, v, err);
    if (!st) st = hn_key_real(r->src, &others, &n, err);
    if (!st && r->a->files.form == HN_SOURCE_HF && n >= 0) *v = n + 1;
    return st;
}

/* The part of a head that turns in layers of a kind; where a folder says nothing of rotations, the same for all. */
static hunch_status read_part(const hn_source *src, bool slides, double *part, hunch_error *err) {
    const double usual = hn_source_get_kind(src) == HN_SOURCE_GGUF ? 1 : 0.334;
    const hn_key all = {NULL, hn_source_config(src, "rope_parameters") ? NULL : "partial_rotary_factor", 0.01, 1, usual};
    const hunch_status st = hn_key_real(src, &all, part, err);
    return st ? st : hn_family_part(src, slides, *part, part, err);
}
static hunch_status read_rotated(const hn_key_reading *r, const hn_key_row *k HN_UNUSED, double *v, hunch_error *err) {
    return read_part(r->src, false, v, err);
}

/* Which layers have windows: layer_types, else hybrid_layer_pattern; else all but the first and every sixth. Which have experts:
 * mlp_layer_types, as of others, else moe_layer_freq; else all but the first. */
static hunch_status mark_layers(hn_arch *a, hn_source *src, int window, hunch_error *err) {
    const hn_key pattern = {NULL, "hybrid_layer_pattern", 0, 1, -1}, sparse = {NULL, "moe_layer_freq", 0, 1, -1};
    const hn_expert_desc experts = *hn_moe_of(a);
    double slides[HN_MOST_LAYERS], each[HN_MOST_LAYERS];
    bool listed = false;
    hunch_status st = hn_family_layer_types(a, src, window, &listed, err);
    if (!st) st = hn_family_numbers(a, src, &pattern, true, slides, err);
    if (!st) st = hn_family_numbers(a, src, &sparse, true, each, err);
    for (int i = 0; !st && i < a->layers; i++) {
        const bool slid = slides[i] < 0 ? i > 0 && (i + 1) % 6 != 0 : slides[i] > 0;
        if (!listed) a->layer[i].window = slid ? window : 0;
        if (each[i] < 0 || hn_source_config(src, "mlp_layer_types")) continue;
        hn_moe_set(&a->layer[i], each[i] > 0 ? &experts : NULL);
    }
    return st;
}

/* What layers with a window have of their own in a folder. */
static hunch_status read_sliding(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key kv = {NULL, "swa_num_key_value_heads", 1, 1024, 2 * a->layer[0].kv_heads},
                 same[] = {{NULL, "swa_num_attention_heads", a->layer[0].heads, a->layer[0].heads, a->layer[0].heads},
                           {NULL, "swa_head_dim", a->layer[0].head_dim, a->layer[0].head_dim, a->layer[0].head_dim},
                           {NULL, "swa_v_head_dim", a->files.value_dim, a->files.value_dim, a->files.value_dim}};
    bool sinks[2] = {false, true}, found;
    int heads = 0, n = 0;
    hunch_status st = hn_key_int(src, &kv, &heads, err);
    for (int i = 0; !st && i < 3; i++) st = hn_key_int(src, &same[i], &n, err);
    if (!st) st = hn_source_bool(src, "add_full_attention_sink_bias", &sinks[0], &found, err);
    if (!st) st = hn_source_bool(src, "add_swa_attention_sink_bias", &sinks[1], &found, err);
    for (int i = 0; !st && i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        if (l->window > 0) l->kv_heads = heads;
        l->sinks = sinks[l->window > 0];
    }
    return st;
}

static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    const bool gguf = a->files.form == HN_SOURCE_GGUF;
    const hn_key base = {NULL, "swa_rope_theta", 1, 1e12, 1e4};
    const int window = a->layer[0].window;
    double theta = 1e4, part = 1;
    hn_key_buf key;
    hunch_status st = gguf ? hn_family_windows(a, src, hn_family_key_of(&key, a->family, HN_PATTERN, NULL, 1, 1024, 6), window, err)
                           : mark_layers(a, src, window, err);
    if (!st && !gguf) st = read_sliding(a, src, err);
    for (int i = 0; gguf && i < a->layers; i++) a->layer[i].sinks = hn_arch_find_tensor(a, src, HN_ROLE_SINKS, i);
    if (!st) st = hn_family_check_heads(a, src, err);
    if (!st) st = hn_key_real(src, &base, &theta, err);
    if (!st) st = read_part(src, true, &part, err);
    return st ? st : hn_rope_add_sliding(a, src, theta, gguf ? a->rotation[0].dims : (int)(a->layer[0].head_dim * part), err);
}

static const hn_key_row keys[] = {
    {HN_MODEL(FLOAT, norm_eps), "attention.layer_norm_rms_epsilon", "rms_norm_eps layernorm_epsilon", 0, 1, {NAN, 1e-5}, HN_NOT_NULL},
    HN_CONTEXT(131072), HN_THETA(5e6), HN_SLIDING_THETA, HN_SLIDING_DIMS,
    {HN_MODEL(REAL, files.rotated), .usual = {1, 1}, .read = read_rotated},
    {HN_LAYER(INT, head_dim), "attention.key_length", "head_dim", 2, 512, {NAN, 192}},
    {HN_MODEL(INT, files.value_dim), "attention.value_length", "v_head_dim", 2, 512, {NAN, 128}, .written = hn_unusual_heads},
    {HN_LAYER(INT, narrow), NULL},
    {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_key_value_heads", 1, 1024, {NAN, 4}, HN_EACH},
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, {0, 129}, HN_ZERO_IS_NONE, .read = read_window,
     .written = hn_any_window},
    {HN_LAYER(LIST, window), HN_PATTERN, "layer_types hybrid_layer_pattern", .each = hn_layer_slides, .written = hn_any_window},
    {HN_LAYER(FLOAT, mixer[0].times), "attention.value_scale", "attention_value_scale", 1e-6, 1e6, .read = read_times},
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias", "attention_bias", 0, 1}, /* o has none */
    HN_EXPERTS("n_routed_experts num_experts num_local_experts", 256), HN_USED("num_experts_per_tok", 8),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 2048}},
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", NULL, 0, 1024, {0, 1}, .written = hn_moe_first},
    HN_ALWAYS(HN_MODEL(INT, files.shared_experts), 0), HN_NORMALISED(1, 1), {HN_BESIDE(CLAIM), NULL, "mlp_layer_types"},
    HN_ROWS_END};
const hn_family hn_family_mimo_v2_flash = {.gguf_name = "mimo2", .hf_type = "mimo_v2_flash", .unread = "mtp. +",
                                           .keys = {hn_next_layers, hn_moe_keys, hn_moe_of_deepseek, hn_moe_of_v3, keys}, .finish = finish};
