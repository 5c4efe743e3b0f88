/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gpt_oss.c - GPT-OSS: a plain block with biases on q, k, v and o, a sink of each head, and experts in every layer, with
 * biases and limits; every second layer has a window, the first one among them. In a folder experts are stacked, gate and up
 * rows alternate, and MXFP4's parts are tensors of their own (tensor_view.c); dequantised folders store matrices by columns. */
#include <math.h>
#include <string.h>

#include "model/arch/arch.h"

enum { USUAL_WINDOW = 128, USUAL_PERIOD = 2 };
static const double usual_limit = 7, usual_alpha = 1.702;
#define LIMIT "gpt-oss.hunch.swiglu_limit" /* other programs know the usual ones alone */
#define ALPHA "gpt-oss.hunch.swiglu_alpha"
#define WINDOW "gpt-oss.attention.sliding_window"
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

/* Keys of a folder that say again, or otherwise, what the family is. */
static hunch_status check_folder(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key again = {NULL, "experts_per_token", 1, HN_MAX_USED, a->layer[0].experts.used};
    const char *method = "mxfp4";
    int used = 0;
    bool found;
    hunch_status st = hn_key_int(src, &again, &used, err);
    if (!st && used != a->layer[0].experts.used)
        st = hn_fail(err, HUNCH_REFUSED, "%s: experts_per_token is %d, expected the value of num_experts_per_tok, %d",
                     hn_source_path(src), used, a->layer[0].experts.used);
    if (!st) st = hn_source_str(src, "quantization_config.quant_method", &method, NULL, &found, err);
    if (!st && strcmp(method, "mxfp4"))
        st = hn_fail(err, HUNCH_REFUSED, "%s: quantization_config.quant_method is \"%.40s\", expected mxfp4", hn_source_path(src), method);
    if (!st && hn_source_is_null(src, "sliding_window"))
        st = hn_fail(err, HUNCH_REFUSED, "%s: config.json: sliding_window is null, expected a number of tokens", hn_source_path(src));
    return st;
}

/* attention_bias is true unless a folder says otherwise. */
static hunch_status read_biases(hn_arch *a, const hn_source *src, hunch_error *err) {
    bool on = true, found;
    hunch_status st = hn_source_bool(src, "attention_bias", &on, &found, err);
    for (int i = 0; i < a->layers; i++) a->layer[i].qkv_bias = a->layer[i].o_bias = on;
    return st;
}

static hunch_status read_rest(hn_arch *a, const hn_source *src, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    const hn_key window = {WINDOW, "sliding_window", 1, 1 << 24, gguf ? (double)NAN : USUAL_WINDOW},
                 period = {PATTERN, NULL, 1, 1024, USUAL_PERIOD}, limit = {LIMIT, "swiglu_limit", 1e-3, 1e6, usual_limit},
                 alpha = {ALPHA, "swiglu_alpha", 1e-3, 1e3, usual_alpha};
    double most = 0, slope = 0;
    int rows = 0;
    hunch_status st = hn_key_int(src, &window, &rows, err);
    if (!st) st = hn_dense_windows(a, src, &period, rows, err);
    if (!st) st = hn_key_real(src, &limit, &most, err);
    if (!st) st = hn_key_real(src, &alpha, &slope, err);
    if (!st && !gguf) st = check_folder(a, src, err);
    if (!st && !gguf) st = read_biases(a, src, err);
    if (!st && a->layer[0].experts.sigmoid)
        st = hn_fail(err, HUNCH_REFUSED, "%s: gpt-oss.expert_gating_func is that of sigmoids, expected softmax", hn_source_path(src));
    for (int i = 0; !st && i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        l->sinks = l->experts.biases = true;
        l->experts.limit = (float)most;
        l->experts.alpha = (float)slope;
        if (!gguf) l->experts.stacked = true;
    }
    return st;
}

static hunch_status put_own(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const hn_expert_desc *e = &a->layer[0].experts;
    bool usual = true, any = false;
    for (int i = 0; i < a->layers; i++) {
        usual = usual && hn_dense_slides(&a->layer[i]) == ((i + 1) % USUAL_PERIOD != 0);
        any = any || hn_dense_slides(&a->layer[i]);
    }
    hunch_status st = usual ? HUNCH_OK : hn_dense_put_layers(a, w, PATTERN, hn_dense_slides, err);
    if (!st && !any) st = hn_gguf_put_u32(w, WINDOW, USUAL_WINDOW, err); /* which a file has even if no layer does */
    if (!st && e->limit != (float)usual_limit) st = hn_gguf_put_f32(w, LIMIT, e->limit, err);
    if (!st && e->alpha != (float)usual_alpha) st = hn_gguf_put_f32(w, ALPHA, e->alpha, err);
    return st;
}

static hunch_status gpt_oss_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_moe moe = {.count = "num_local_experts", .width = "intermediate_size", .always_normalised = true};
    static const hn_role_other names[] = {{HN_ROLE_FFN_NORM, "blk.%d.post_attention_norm.weight", NULL}, {HN_ROLES, NULL, NULL}};
    static const char *const folder_names[HN_ROLES] = {[HN_ROLE_SINKS] = "model.layers.%d.self_attn.sinks",
                                                       [HN_ROLE_ROUTER] = "model.layers.%d.mlp.router.weight"};
    static const hn_dense gpt_oss = {.prefix = "gpt-oss",
                                     .attention_bias = true,
                                     .window_key = true,
                                     .yarn_exact = true,
                                     .usual_scaling = "yarn",
                                     .theta = 150000,
                                     .usual.eps = 1e-5,
                                     .names = names,
                                     .moe = &moe,
                                     .finish = read_rest,
                                     .put = put_own};
    const bool folder = hn_source_get_kind(src) == HN_SOURCE_HF;
    if (folder) a->files.layer_names = folder_names;
    hunch_status st = hn_dense_read(a, src, &gpt_oss, err);
    for (int i = 0; !st && folder && i < a->layers; i++) st = view_experts(a, src, i, err);
    return st;
}

const hn_family hn_family_gpt_oss = {"gpt-oss", "gpt_oss", gpt_oss_read};
