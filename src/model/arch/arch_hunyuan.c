/* SPDX-License-Identifier: Apache-2.0 */
/* arch_hunyuan.c - Hunyuan V1, dense and with experts (A13B): heads of q and k are normed after they are rotated; the base of the rotation
 * is stretched by a folder's alpha, once. Experts by softmax, as wide as intermediate_size, beside one that all rows share. Hy3: norms
 * before rotation; the first layer is dense, experts of the others are chosen by sigmoids and a correction. */
#include <math.h>

#include "base/least.h"
#include "model/arch/arch.h"

static const hn_key_row keys[] = {HN_EPS(NAN, 1e-5), HN_CONTEXT(2048), HN_ROWS_END};
static const hn_key_row late[] = {HN_ALWAYS(HN_LAYER(BOOL, norm_late), 1), HN_ROWS_END};

#define NORM_NAMES {HN_ROLE_Q_NORM, NULL, "model.layers.%d.self_attn.query_layernorm.weight", NULL}, \
                   {HN_ROLE_K_NORM, NULL, "model.layers.%d.self_attn.key_layernorm.weight", NULL}
static const hn_role_other dense_names[] = {NORM_NAMES, HN_NAMES_END};
const hn_family hn_family_hunyuan_v1_dense = {.gguf_name = "hunyuan-dense", .hf_type = "hunyuan_v1_dense", .names = dense_names,
                                              .keys = {hn_norms_of_heads, hn_attention_bias_keys, keys, late}};

/* A folder's moe_topk is a number, or a list of one for each layer. */
static hunch_status each_used(hn_arch *a, hn_source *src, hunch_error *err) {
    const hn_key topk = {NULL, "moe_topk", 1, hn_least(hn_moe_of(a)->count, HN_MAX_USED), hn_moe_of(a)->used};
    double each[HN_MOST_LAYERS];
    const hunch_status st = hn_family_numbers(a, src, &topk, true, each, err);
    for (int i = 0; !st && a->files.form == HN_SOURCE_HF && i < a->layers; i++) a->layer[i].experts.used = (int)each[i];
    return st;
}

/* One shared expert, as wide as the others, whatever num_shared_expert says: its reference reads no such key. */
static double width_of_one(const hn_arch *a, const hn_layer_desc *l) { return a->files.form == HN_SOURCE_HF ? l->ffn_width : 0; }
static const hn_key_row moe[] = {
    HN_EXPERTS("num_experts num_local_experts", 1),
    {HN_LAYER(INT, experts.used), "expert_used_count", "num_experts_per_tok", 1, HN_MAX_USED, {NAN, 1}, HN_EACH},
    {HN_BESIDE(CLAIM), NULL, "moe_topk"},
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "intermediate_size", 1, 1 << 20, .follows = hn_width_of_dense},
    {HN_LAYER(INT, experts.shared_width), "expert_shared_feed_forward_length", NULL, 0, 1 << 20, .follows = width_of_one},
    {HN_MODEL(INT, files.shared_experts), "expert_shared_count", NULL, 0, HN_MAX_EXPERTS, .written = hn_moe_shared_count},
    HN_ROWS_END};
static const hn_role_other moe_names[] = {NORM_NAMES, {HN_ROLE_ROUTER, NULL, "model.layers.%d.mlp.gate.wg.weight",
                                                       "model.layers.%d.mlp.gate.wg.weight"},
                                          HN_SHARED_NAMES("mlp.shared_mlp"), HN_NAMES_END};
const hn_family hn_family_hunyuan_v1_moe = {
    .gguf_name = "hunyuan-moe", .hf_type = "hunyuan_v1_moe", .names = moe_names,
    .keys = {hn_norms_of_heads, hn_attention_bias_keys, hn_moe_keys, hn_moe_normalised, keys, late, moe}, .finish = each_used};

/* Hy3's reference makes a shared expert of no experts as wide as dense layers. */
static double width_of_none(const hn_arch *a, const hn_layer_desc *l) {
    return a->files.form == HN_SOURCE_HF && a->files.shared_experts == 0 ? l->ffn_width : 0;
}
static bool uneven_width(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    return (int)*v % hn_moe_of(a)->width != 0;
}
static const hn_key_row hy3[] = {
    HN_EPS(NAN, 1e-5), HN_CONTEXT(131072), HN_THETA(11158840), HN_HEAD_DIM(128), HN_KV_HEADS(8),
    HN_EXPERTS("num_experts num_local_experts", 192), HN_USED("num_experts_per_tok", 8), HN_SHARED("num_shared_experts", 1),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 1536}},
    {HN_LAYER(INT, experts.shared_width), "expert_shared_feed_forward_length", NULL, 0, 1 << 20, .follows = width_of_none,
     .written = uneven_width},
    {HN_LAYER(FLOAT, experts.scale), "expert_weights_scale", "router_scaling_factor", 0, 1e6, {1, 2.826}, .written = hn_unusual_choice},
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", NULL, 0, 1024, {0, 1}, .written = hn_moe_first},
    HN_SHARED_BIAS("mlp_bias"),
    {HN_BESIDE(CLAIM), NULL, "mlp_layer_types"},
    HN_ROWS_END};
static const hn_role_other hy3_names[] = {{HN_ROLE_ROUTER, NULL, "model.layers.%d.mlp.router.gate.weight",
                                           "model.layers.%d.mlp.router.gate.weight"},
                                          {HN_ROLE_ROUTER_BIAS, "blk.%d.exp_probs_b", "model.layers.%d.mlp.expert_bias", NULL},
                                          HN_SHARED_NAMES("mlp.shared_mlp"), HN_NAMES_END};
const hn_family hn_family_hy_v3 = {
    .gguf_name = "hy_v3", .hf_type = "hy_v3", .names = hy3_names,
    .keys = {hn_norms_of_heads, hn_attention_bias_keys, hn_mlp_bias_keys, hn_next_layers, hn_moe_keys, hn_moe_of_v3, hn_moe_normalised,
             hy3}};
