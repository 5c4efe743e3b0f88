/* SPDX-License-Identifier: Apache-2.0 */
/* arch_afmoe.c - AFMoE (Arcee's Trinity): norms before and after both branches, norms of heads, whose results are multiplied by the
 * sigmoid of a product of its own. Layers with a window turn, every fourth has full attention and does not; the first are dense, the
 * others have experts chosen by sigmoids and a correction beside shared ones. */
#include <math.h>

#include "model/arch/arch.h"

static double root_of_width(const hn_arch *a, const hn_layer_desc *l HN_UNUSED) { return (double)sqrtf((float)a->hidden); }
static hunch_status read_scale(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const hn_key own = {"afmoe.hunch.embedding_scale", NULL, k->least, k->most, root_of_width(r->a, r->l)};
    bool on = false, found;
    const hunch_status st = hn_source_get_kind(r->src) == HN_SOURCE_GGUF ? hn_key_real(r->src, &own, v, err)
                                                                         : hn_source_bool(r->src, "mup_enabled", &on, &found, err);
    if (hn_source_get_kind(r->src) == HN_SOURCE_HF) *v = on ? root_of_width(r->a, r->l) : 1;
    return st;
}
static bool unusual_scale(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) { return *v != root_of_width(a, NULL); }

static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    hn_key_buf key;
    const hunch_status st = hn_family_windows(
        a, src, hn_family_key_of(&key, a->family, HN_PATTERN, "global_attn_every_n_layers", 1, 1024, 4), a->layer[0].window, err);
    for (int i = 0; i < a->layers; i++) a->layer[i].rotation = a->layer[i].window > 0 ? 0 : HN_NO_ROTATION;
    return st;
}

static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-5), HN_CONTEXT(16384), HN_HEAD_DIM(128), HN_WINDOW(1024),
    HN_ALWAYS(HN_LAYER(BOOL, post_norms), 1), HN_ALWAYS(HN_LAYER(BOOL, gate.of_numbers), 1),
    {HN_LAYER(LIST, window), HN_PATTERN, "layer_types global_attn_every_n_layers", .each = hn_layer_slides, .written = hn_any_window},
    {HN_MODEL(FLOAT, embed_scale), "hunch.embedding_scale", "mup_enabled", 1e-6, 1e6, .read = read_scale, .written = unusual_scale},
    HN_EXPERTS("num_experts num_local_experts", 64), HN_USED("num_experts_per_tok", 6), HN_SHARED("num_shared_experts", 2),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 1408}},
    {HN_LAYER(FLOAT, experts.scale), "expert_weights_scale", "route_scale", 0, 1e6, {1, 1}, .written = hn_unusual_choice},
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", "num_dense_layers", 0, 1024, {0, 1}, .written = hn_moe_first},
    HN_ROWS_END};
static const hn_role_other names[] = {{HN_ROLE_PRE_FFN_NORM, NULL, "model.layers.%d.pre_mlp_layernorm.weight", NULL},
                                      {HN_ROLE_POST_FFN_NORM, NULL, "model.layers.%d.post_mlp_layernorm.weight", NULL},
                                      {HN_ROLE_HEADS_GATE, NULL, "model.layers.%d.self_attn.gate_proj.weight", NULL},
                                      {HN_ROLE_ROUTER, NULL, "model.layers.%d.mlp.router.gate.weight",
                                       "model.layers.%d.mlp.router.gate.weight"},
                                      {HN_ROLE_ROUTER_BIAS, NULL, "model.layers.%d.mlp.expert_bias", NULL},
                                      HN_SHARED_NAMES("mlp.shared_experts"), HN_NAMES_END};
const hn_family hn_family_afmoe = {
    .gguf_name = "afmoe", .hf_type = "afmoe", .names = names,
    .keys = {hn_norms_of_heads, hn_attention_bias_keys, hn_moe_keys, hn_moe_of_v3, hn_moe_normalised, keys}, .finish = finish};
