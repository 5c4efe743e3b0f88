/* SPDX-License-Identifier: Apache-2.0 */
/* arch_laguna.c - Laguna (poolside): norms of heads, whose number differs by layer; each head's result is multiplied by the softplus of a
 * product of its own (or each number by one). Layers with a window turn by another base, and other parts of a head; the first layer is
 * dense, the others have experts chosen by sigmoids, of capped products, and a correction, beside a shared one. */
#include <math.h>
#include <string.h>

#include "model/arch/arch.h"

enum { USUAL_PERIOD = 4 };

/* A gate for each head, true or by name; or for each number, false or by name. */
static hunch_status read_gate(const hn_key_reading *r, const hn_key_row *k HN_UNUSED, double *v, hunch_error *err) {
    const json_t *said = hn_source_config(r->src, "gating");
    const char *word = json_is_string(said) ? json_string_value(said) : json_is_false(said) ? "per-element"
                       : !said || json_is_true(said) ? "per-head" : "";
    const hn_tensor *t = hn_source_find(r->src, "blk.0.attn_gate.weight");
    *v = hn_source_get_kind(r->src) == HN_SOURCE_GGUF ? t && t->n_dims == 2 && t->dims[1] != (uint64_t)r->l->heads
                                                      : !strcmp(word, "per-element");
    return *v != 0 || hn_source_get_kind(r->src) == HN_SOURCE_GGUF || !strcmp(word, "per-head")
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED, "%s: config.json: gating, expected true, false, per-head or per-element",
                         hn_source_path(r->src));
}

/* Which layers have a window: a list; else in a folder none, in a GGUF all but the first of each four. */
static hunch_status mark_windows(hn_arch *a, const hn_source *src, int window, hunch_error *err) {
    const hn_array *list = NULL;
    hn_key_buf key;
    const hunch_status st = hn_family_windows(a, src, hn_family_key_of(&key, a->family, HN_PATTERN, NULL, 1, 1024, 1), window, err);
    const bool listed = a->files.form == HN_SOURCE_HF || (!hn_source_array(src, key.name, &list, NULL) && list);
    for (int i = 0; !st && !listed && i < a->layers; i++) a->layer[i].window = i % USUAL_PERIOD ? window : 0;
    return st;
}

static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    const bool gguf = a->files.form == HN_SOURCE_GGUF;
    const hn_key heads = {NULL, "num_attention_heads_per_layer", 1, 1024, a->layer[0].heads};
    double each[HN_MOST_LAYERS], turned = 1;
    hunch_status st = mark_windows(a, src, a->layer[0].window, err);
    if (!st) st = hn_family_numbers(a, src, &heads, true, each, err);
    for (int i = 0; !st && i < a->layers; i++) {
        if (!gguf) a->layer[i].heads = (int)each[i];
        a->layer[i].gate.of_heads = !a->layer[i].gate.of_numbers;
    }
    if (!st) st = hn_family_check_heads(a, src, err);
    if (!st) st = hn_family_part(src, true, 1, &turned, err);
    return st ? st : hn_rope_add_sliding(a, src, 1e4, (int)(a->layer[0].head_dim * turned), err);
}

static hunch_status read_rotated(const hn_key_reading *r, const hn_key_row *k HN_UNUSED, double *v, hunch_error *err) {
    const bool whole = r->a->files.form == HN_SOURCE_GGUF || hn_source_config(r->src, "rope_parameters");
    return hn_family_part(r->src, false, whole ? 1 : 0.5, v, err);
}

static const hn_key_row keys[] = {
    HN_CONTEXT(131072), HN_EPS(NAN, 1e-6), HN_THETA(5e5), HN_HEAD_DIM(128), HN_KV_HEADS(8), HN_WINDOW(512), HN_SLIDING_THETA,
    HN_SLIDING_DIMS,
    {HN_LAYER(LIST, window), HN_PATTERN, "layer_types", .each = hn_layer_slides, .written = hn_any_window},
    {HN_LAYER(INT, heads), "attention.head_count", "num_attention_heads", 1, 1024, {NAN, NAN}, HN_EACH},
    {HN_MODEL(REAL, files.rotated), .usual = {1, 0.5}, .read = read_rotated},
    HN_ALWAYS(HN_MODEL(BOOL, files.yarn_amplitude), 1),
    {HN_LAYER(BOOL, gate.of_numbers), NULL, "gating", .read = read_gate}, HN_ALWAYS(HN_LAYER(BOOL, gate.softplus), 1),
    HN_EXPERTS("num_experts num_local_experts", 256), HN_USED("num_experts_per_tok", 8),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 512}},
    {HN_LAYER(INT, experts.shared_width), "expert_shared_feed_forward_length", "shared_expert_intermediate_size", 0, 1 << 20, {0, 512}},
    {HN_LAYER(FLOAT, experts.scale), "expert_weights_scale", "moe_routed_scaling_factor", 0, 1e6, {1, 1}, .written = hn_unusual_choice},
    {HN_LAYER(FLOAT, experts.score_cap), "hunch.router_logit_softcapping", "moe_router_logit_softcapping", 0, 1e9, .how = HN_IF_SET},
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", NULL, 0, 1024, {1, 1}, .written = hn_moe_first},
    {HN_BESIDE(CLAIM), NULL, "mlp_layer_types"}, {HN_BESIDE(CLAIM), NULL, "num_attention_heads_per_layer"},
    {HN_BESIDE(BOOL), NULL, "moe_apply_router_weight_on_input"},
    HN_ROWS_END};
static const hn_role_other names[] = {{HN_ROLE_ROUTER_BIAS, NULL, "model.layers.%d.mlp.experts.e_score_correction_bias", NULL},
                                      HN_NAMES_END};
const hn_family hn_family_laguna = {
    .gguf_name = "laguna", .hf_type = "laguna", .names = names,
    .keys = {hn_norms_of_heads, hn_attention_bias_keys, hn_moe_keys, hn_moe_of_v3, hn_moe_normalised, keys}, .finish = finish};
