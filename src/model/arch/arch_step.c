/* SPDX-License-Identifier: Apache-2.0 */
/* arch_step.c - Step 3.5 and 3.7 (StepFun): norms less 1 in a folder, those of heads too; each head's result is multiplied by the
 * sigmoid of a product of its own. Layers with a window have other heads, and a rotation of their own. Experts, of a folder in stacks, are
 * chosen by sigmoids and a correction, beside a shared one; units may be limited by layer. Further tokens are not predicted. */
#include <math.h>

#include "model/arch/arch.h"

enum { USUAL_DENSE = 3 }; /* first layers without experts */

/* What layers have of their own in a folder; a limit of null or 0 is none. */
static hunch_status read_folder(hn_arch *a, hn_source *src, hunch_error *err) {
    const hn_key limit = {NULL, "swiglu_limits", 0, 1e6, 0}, shared = {NULL, "swiglu_limits_shared", 0, 1e6, 0},
                 square = {NULL, "query_pre_attn_scalar", 1e-6, 1e6, a->layer[0].head_dim},
                 other = {NULL, "attention_other_setting.num_attention_heads", 1, 1024, a->layer[0].heads};
    double limits[HN_MOST_LAYERS], of_shared[HN_MOST_LAYERS], scalar = 1;
    bool sparse[HN_MOST_LAYERS], found, marked = hn_source_config(src, "mlp_layer_types");
    int heads = 0;
    hunch_status st = hn_key_int(src, &other, &heads, err);
    const hn_key own = {NULL, "num_sliding_attention_heads", 1, 1024, heads};
    if (!st) st = hn_key_int(src, &own, &heads, err);
    if (!st) st = hn_key_real(src, &square, &scalar, err);
    if (!st) st = hn_family_listed(src, "moe_layers_enum", HN_MOST_LAYERS - 1, sparse, &found, err);
    if (!st) st = hn_family_numbers(a, src, &limit, false, limits, err);
    if (!st) st = hn_family_numbers(a, src, &shared, false, of_shared, err);
    for (int i = 0; !st && i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        if (!marked && (found ? !sparse[i] : i < USUAL_DENSE)) hn_moe_set(l, NULL);
        if (l->window > 0) l->heads = heads;
        l->attention_scale = (float)(1 / sqrt(scalar));
        l->expert_limit = (float)limits[i];
        l->ffn_limit = (float)of_shared[i];
        l->experts.stacks = hn_layer_has_experts(l);
    }
    return st;
}

/* A GGUF's number of rotated dims is twice that of layers with full attention. */
static bool twice(const hn_arch *a HN_UNUSED, const hn_key_row *k HN_UNUSED, double *v) {
    *v *= 2;
    return true;
}

/* Lists have the base and the rotated part of each layer, of which all of a kind agree. */
static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_key bases = {NULL, "rope_theta", 1, 1e12, 1e4}, parts = {NULL, "partial_rotary_factors", 0.01, 1, 1};
    const bool folder = a->files.form == HN_SOURCE_HF;
    int dims[2] = {a->rotation[0].dims, 2 * a->rotation[0].dims};
    double theta[2] = {1e4, 1e4}, turned[2] = {1, 1}, base[HN_MOST_LAYERS], part[HN_MOST_LAYERS];
    hn_key_buf key;
    hunch_status st = hn_family_windows(a, src, hn_family_key_of(&key, a->family, HN_PATTERN, NULL, 1, 1024, 1), a->layer[0].window, err);
    if (!st && folder) st = read_folder(a, src, err);
    if (!st) st = hn_family_check_heads(a, src, err);
    if (!st) st = hn_family_numbers(a, src, &bases, false, base, err);
    if (!st) st = hn_family_numbers(a, src, &parts, false, part, err);
    for (int i = a->layers - 1; !st && i >= 0; i--) theta[a->layer[i].window > 0] = base[i], turned[a->layer[i].window > 0] = part[i];
    for (int k = 0; !st && folder && k < 2; k++) {
        st = hn_family_part(src, k == 1, turned[k], &turned[k], err);
        dims[k] = (int)(a->layer[0].head_dim * turned[k]);
    }
    hn_family_key_of(&key, a->family, "rope.freq_base", "rope_parameters.full_attention.rope_theta", 1, 1e12, theta[0]);
    if (!st) st = hn_key_real(src, &key.key, &theta[0], err);
    if (!st) st = hn_family_rotation(a, src, dims[0], theta[0], err);
    return st ? st : hn_rope_add_sliding(a, src, theta[1], dims[1], err);
}

static bool other_scale(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    return fabs(*v / hn_scale_of_heads(a, a->layer) - 1) > 1e-6;
}
static bool any_limit(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) {
    bool any = false;
    for (int i = 0; i < a->layers; i++) any |= a->layer[i].ffn_limit > 0 || a->layer[i].expert_limit > 0;
    return any;
}
static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-5), HN_CONTEXT(128000), HN_HEAD_DIM(128), HN_SLIDING_THETA, HN_SLIDING_DIMS,
    {HN_MODEL(BOOL, files.norms_less_one), NULL, NULL, 0, 0, {0, 1}},
    {HN_LAYER(INT, heads), "attention.head_count", "num_attention_heads", 1, 1024, {NAN, 64}, HN_EACH},
    {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_attention_groups num_key_value_heads", 1, 1024, {NAN, 8}},
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, .how = HN_ZERO_IS_NONE, .written = hn_any_window},
    {HN_LAYER(LIST, window), HN_PATTERN, "layer_types", .each = hn_layer_slides, .written = hn_any_window},
    {HN_MODEL(REAL, rotation[0].scaling.theta), "rope.freq_base", "rope_theta", .how = HN_LATER},
    {HN_MODEL(INT, rotation[0].dims), "rope.dimension_count", NULL, 2, 512, .how = HN_LATER, .written = twice},
    {HN_LAYER(FLOAT, attention_scale), "attention.scale", NULL, 1e-6, 1e6, .follows = hn_scale_of_heads, .written = other_scale},
    {HN_BESIDE(CLAIM), NULL, "query_pre_attn_scalar"},
    HN_SHARED_BIAS("mlp_bias"),
    HN_ALWAYS(HN_MODEL(REAL, files.rotated), 1), HN_ALWAYS(HN_MODEL(BOOL, files.dims_twice), 1),
    HN_ALWAYS(HN_LAYER(BOOL, gate.of_heads), 1),
    {HN_LAYER(FLOAT, expert_limit), "swiglu_clamp_exp", NULL, 0, 1e6, .how = HN_EACH, .written = any_limit},
    {HN_LAYER(FLOAT, ffn_limit), "swiglu_clamp_shexp", NULL, 0, 1e6, .how = HN_EACH, .written = any_limit},
    HN_EXPERTS("moe_num_experts n_routed_experts num_local_experts num_experts", 288), HN_USED("moe_top_k num_experts_per_tok", 8),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 1280}},
    {HN_LAYER(INT, experts.shared_width), "expert_shared_feed_forward_length", "share_expert_dim share_expert_dims", 0, 1 << 20, {0, 1280}},
    {HN_LAYER(FLOAT, experts.scale), "expert_weights_scale", "moe_router_scaling_factor", 0, 1e6, {1, 1}, .written = hn_unusual_choice},
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", NULL, 0, 1024, .written = hn_moe_first},
    {HN_BESIDE(CLAIM), NULL, "mlp_layer_types"}, {HN_BESIDE(CLAIM), NULL, "moe_layers_enum"},
    HN_ROWS_END};
static const hn_role_other names[] = {{HN_ROLE_ROUTER, NULL, "model.layers.%d.moe.gate.weight", NULL},
                                      {HN_ROLE_ROUTER_BIAS, NULL, "model.layers.%d.moe.router_bias", NULL},
                                      {HN_ROLE_EXPERT_GATE, NULL, "model.layers.%d.moe.gate_proj.weight", NULL},
                                      {HN_ROLE_EXPERT_UP, NULL, "model.layers.%d.moe.up_proj.weight", NULL},
                                      {HN_ROLE_EXPERT_DOWN, NULL, "model.layers.%d.moe.down_proj.weight", NULL},
                                      HN_SHARED_NAMES("share_expert"), HN_NAMES_END};
#define FAMILY_OF_STEP(type) {.gguf_name = "step35", .hf_type = type, .names = names, .own_rotations = true, \
                              .unread = "+ vision_model. vit_large_projector.", \
                              .keys = {hn_norms_of_heads, hn_attention_bias_keys, hn_mlp_bias_keys, hn_next_layers, hn_moe_keys, \
                                       hn_moe_of_v3, hn_moe_normalised, keys}, \
                              .finish = finish}
const hn_family hn_family_step3p5 = FAMILY_OF_STEP("step3p5");
const hn_family hn_family_step3p7 = FAMILY_OF_STEP("step3p7"); /* a folder with vision whose text_config has no type */
