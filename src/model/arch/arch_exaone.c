/* SPDX-License-Identifier: Apache-2.0 */
/* arch_exaone.c - EXAONE 4 and K-EXAONE (EXAONE MoE): heads of q and k are normed; layers with a window turn, those with full attention do
 * not if the model has windows at all. In the former both halves of a layer read the stream itself, and their results are normed; the
 * latter has norms before them, the first layers are dense, the others have experts chosen by sigmoids and a correction beside one that
 * all rows share. */
#include <math.h>
#include <string.h>

#include "model/arch/arch.h"

enum { USUAL_PERIOD = 4 };

/* A folder's pattern of letters, repeated: L has a window, G full attention. */
static hunch_status mark_by_letters(hn_arch *a, const hn_source *src, const char *letters, int window, hunch_error *err) {
    const size_t n = strlen(letters);
    if (n == 0 || strspn(letters, "LG") != n)
        return hn_fail(err, HUNCH_REFUSED, "%s: sliding_window_pattern is \"%.40s\", expected a number, or letters L and G",
                       hn_source_path(src), letters);
    for (int i = 0; i < a->layers; i++) a->layer[i].window = letters[(size_t)i % n] == 'L' ? window : 0;
    return HUNCH_OK;
}

static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    const json_t *pattern = hn_source_config(src, "sliding_window_pattern");
    const int window = a->layer[0].window;
    hn_key_buf key;
    if (window == 0) return HUNCH_OK; /* all layers turn */
    hunch_status st = json_is_string(pattern) && !hn_source_config(src, "layer_types")
                          ? mark_by_letters(a, src, json_string_value(pattern), window, err)
                          : hn_family_windows(a, src, hn_family_key_of(&key, a->family, HN_PATTERN, json_is_string(pattern) ? NULL
                                              : "sliding_window_pattern", 1, 1024, USUAL_PERIOD), window, err);
    for (int i = 0; i < a->layers; i++) a->layer[i].rotation = a->layer[i].window > 0 ? 0 : HN_NO_ROTATION;
    return st;
}

/* A window is written even if no layer has one: without it all would turn. */
static bool window_or_still(const hn_arch *a, const hn_key_row *k, double *v) {
    const bool any = hn_any_window(a, k, v);
    if (!any) *v = a->context;
    return any || a->layer[0].rotation == HN_NO_ROTATION;
}

static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-5), HN_KV_HEADS(32), HN_CONTEXT(2048),
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, {0, 4096}, HN_ZERO_IS_NONE, .read = hn_read_window,
     .written = window_or_still},
    {HN_LAYER(LIST, window), HN_PATTERN, "sliding_window_pattern layer_types", .each = hn_layer_slides, .written = window_or_still},
    HN_ROWS_END};
static const hn_key_row post_normed[] = {HN_POST_NORMED, HN_ROWS_END};
const hn_family hn_family_exaone4 = {
    .gguf_name = "exaone4", .hf_type = "exaone4", .keys = {hn_norms_of_heads, keys, post_normed}, .finish = finish};

static const hn_key_row moe[] = {
    HN_EXPERTS("num_experts n_routed_experts num_local_experts", 64), HN_USED("num_experts_per_tok", 8), HN_SHARED("num_shared_experts", 1),
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, 1 << 20, {NAN, 1024}},
    {HN_LAYER(FLOAT, experts.scale), "expert_weights_scale", "routed_scaling_factor", 0, 1e6, {1, 2.5}, .written = hn_unusual_choice},
    {HN_BESIDE(CLAIM), NULL, "mlp_layer_types"},
    HN_ROWS_END};
static const hn_role_other names[] = {{HN_ROLE_ROUTER_BIAS, NULL, "model.layers.%d.mlp.e_score_correction_bias", NULL},
                                      HN_SHARED_NAMES("mlp.shared_experts"), HN_NAMES_END};

const hn_family hn_family_exaone_moe = {
    .gguf_name = "exaone-moe", .hf_type = "exaone_moe", .names = names,
    .keys = {hn_norms_of_heads, hn_next_layers, hn_moe_keys, hn_moe_of_deepseek, hn_moe_of_v3, keys, moe}, .finish = finish};
