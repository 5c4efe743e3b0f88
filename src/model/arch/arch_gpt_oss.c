/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gpt_oss.c - GPT-OSS: a plain block with biases on q, k, v and o, a sink of each head, and experts in every layer, with
 * biases and limits; every second layer has a window, the first one among them. In a folder experts are stacked, gate and up
 * rows alternate, and MXFP4's parts are tensors of their own (tensor_view.c); dequantised folders store matrices by columns. */
#include <math.h>

#include "model/arch/arch.h"

enum { USUAL_WINDOW = 128, USUAL_PERIOD = 2 };
#define PATTERN "gpt-oss.attention.sliding_window_pattern"

/* ---- a folder's tensors ------------------------------------------------------------------------------------------------ */

static hn_tensor *take_role(const hn_arch *a, hn_source *src, hn_role role, int layer) {
    char name[128];
    hn_arch_tensor_name(a, role, layer, name);
    return hn_source_take(src, name);
}

static bool is_stored_by_columns(const hn_tensor *t) {
    return t && !t->view && t->known && t->dtype <= HN_BF16;
}

/* Whether it has dimensions dims[0..2] as it is stored. Others are refused when its shape is checked, with its name. */
static bool has_shape(const hn_tensor *t, uint64_t d0, uint64_t d1, uint64_t d2) {
    return t->n_dims == 3 && t->dims[0] == d0 && t->dims[1] == d1 && t->dims[2] == d2;
}

/* Has the experts' tensors of a layer read as those of other families: by rows, all of gate before those of up. */
static hunch_status view_experts(const hn_arch *a, hn_source *src, int layer, hunch_error *err) {
    const hn_expert_desc *e = &a->layer[layer].experts;
    const uint64_t hidden = (uint64_t)a->hidden, width = (uint64_t)e->width, count = (uint64_t)e->count;
    hn_tensor *both = take_role(a, src, HN_ROLE_EXPERT_GATE_UP, layer), *down = take_role(a, src, HN_ROLE_EXPERT_DOWN, layer),
              *bias = take_role(a, src, HN_ROLE_EXPERT_GATE_UP_BIAS, layer);
    hunch_status st = HUNCH_OK;
    if (is_stored_by_columns(both) && has_shape(both, 2 * width, hidden, count)) st = hn_source_turn(src, both, err);
    if (!st && is_stored_by_columns(down) && has_shape(down, hidden, width, count)) st = hn_source_turn(src, down, err);
    if (!st && both && both->known && has_shape(both, hidden, 2 * width, count)) st = hn_source_alternate(both, err);
    if (!st && bias && bias->known && bias->n_dims == 2 && bias->dims[0] == 2 * width) st = hn_source_alternate(bias, err);
    return st;
}

/* ---- keys ---------------------------------------------------------------------------------------------------------------- */

/* A folder's key that says again how many experts rows use. */
static hunch_status check_folder(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key again = {NULL, "experts_per_token", 1, HN_MAX_USED, a->layer[0].experts.used};
    int used = 0;
    hunch_status st = hn_key_int(src, &again, &used, err);
    if (!st && used != a->layer[0].experts.used)
        st = hn_fail(err, HUNCH_REFUSED, "%s: experts_per_token is %d, expected the value of num_experts_per_tok, %d",
                     hn_source_path(src), used, a->layer[0].experts.used);
    return st;
}

static hunch_status read_rest(hn_arch *a, hn_source *src, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    const hn_key period = {PATTERN, NULL, 1, 1024, USUAL_PERIOD};
    hunch_status st = hn_family_windows(a, src, &period, a->layer[0].window, err);
    if (!st && !gguf) st = check_folder(a, src, err);
    if (!st && a->layer[0].experts.sigmoid)
        st = hn_fail(err, HUNCH_REFUSED, "%s: gpt-oss.expert_gating_func is that of sigmoids, expected softmax", hn_source_path(src));
    for (int i = 0; !st && !gguf && i < a->layers; i++) {
        a->layer[i].experts.stacked = true;
        st = view_experts(a, src, i, err);
    }
    return st;
}

static bool unusual_windows(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) {
    for (int i = 0; i < a->layers; i++)
        if (hn_layer_slides(&a->layer[i]) != ((i + 1) % USUAL_PERIOD != 0)) return true;
    return false;
}

/* A file has the key even if no layer does. */
static bool no_windows(const hn_arch *a, const hn_key_row *k, double *v) {
    const bool any = hn_any_window(a, k, v);
    *v = USUAL_WINDOW;
    return !any;
}

static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-5),
    HN_THETA(150000),
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, {NAN, USUAL_WINDOW}, HN_NOT_NULL,
     .written = hn_any_window},
    {HN_LAYER(BOOL, qkv_bias), "?blk.0.attn_q.bias ?blk.0.attn_qkv.bias", "attention_bias", 0, 1, {0, 1}},
    {HN_LAYER(BOOL, o_bias), "?blk.0.attn_output.bias", "attention_bias", 0, 1, {0, 1}},
    HN_ALWAYS(HN_LAYER(BOOL, sinks), 1), HN_ALWAYS(HN_LAYER(BOOL, experts.biases), 1), HN_ALWAYS(HN_MODEL(BOOL, files.yarn_exact), 1),
    HN_ALWAYS(HN_MODEL(INT, files.usual_scaling), HN_SCALING_YARN),
    {HN_LAYER(INT, experts.count), "expert_count", "num_local_experts num_experts n_routed_experts", 1, HN_MAX_EXPERTS, {NAN, NAN}},
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "intermediate_size", 1, 1 << 20, {NAN, NAN}},
    {HN_BESIDE(WORD), NULL, "quantization_config.quant_method", .words = "mxfp4"},
    {HN_LAYER(LIST, window), "attention.sliding_window_pattern", .how = HN_BEHIND, .each = hn_layer_slides, .written = unusual_windows},
    {HN_BESIDE(INT), "attention.sliding_window", .how = HN_LATER, .written = no_windows},
    /* other programs know the usual ones alone */
    {HN_LAYER(FLOAT, experts.limit), "hunch.swiglu_limit", "swiglu_limit", 1e-3, 1e6, {7, 7}, HN_UNUSUAL},
    {HN_LAYER(FLOAT, experts.alpha), "hunch.swiglu_alpha", "swiglu_alpha", 1e-3, 1e3, {1.702, 1.702}, HN_UNUSUAL},
    HN_ROWS_END};

static const hn_role_other names[] = {{HN_ROLE_FFN_NORM, "blk.%d.post_attention_norm.weight", NULL, NULL},
                                      {HN_ROLE_SINKS, NULL, "model.layers.%d.self_attn.sinks", NULL},
                                      {HN_ROLE_ROUTER, NULL, NULL, "model.layers.%d.mlp.router.weight"},
                                      {HN_ROLES, NULL, NULL, NULL}};

const hn_family hn_family_gpt_oss = {
    .gguf_name = "gpt-oss", .hf_type = "gpt_oss", .names = names, .keys = {hn_moe_keys, hn_moe_normalised, keys}, .finish = read_rest};
