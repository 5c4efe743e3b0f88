/* SPDX-License-Identifier: Apache-2.0 */
/* arch_mamba.c - Mamba-2: every layer is a state space layer behind a norm, and nothing else; no positions. What its family and those that
 * mix such layers with attention (arch_granite_hybrid.c) share: limits of steps, and the sizes that a GGUF gives. */
#include <math.h>

#include "base/json_load.h"
#include "model/arch/ssm_rows.h"

/* ---- limits of steps --------------------------------------------------------------------------------------------------- */

/* JSON has no infinity: transformers 5 writes an object, Python's writer the word (which hf.c reads as a number beyond all). */
static bool limit_of(const json_t *v, double *out) {
    const char *word = json_string_value(json_object_get(v, "__float__"));
    if (hn_json_is_number(v)) *out = hn_json_number_value(v);
    if (word && !strcmp(word, "Infinity")) *out = (double)INFINITY;
    return hn_json_is_number(v) || (word && !strcmp(word, "Infinity"));
}

static hunch_status read_limit(const hn_key_reading *r, int which, double *v, hunch_error *err) {
    static const char path[] = "time_step_limit", *const gguf[] = {"ssm.time_step_least", "ssm.time_step_most"};
    double limit[2] = {0, (double)INFINITY};
    if (hn_source_get_kind(r->src) == HN_SOURCE_GGUF) {
        hn_key_buf key;
        return hn_key_real(r->src, hn_family_key_of(&key, r->a->family, gguf[which], NULL, 0, 3e38, limit[which]), v, err);
    }
    const json_t *list = hn_source_config(r->src, path);
    const bool said = list && !json_is_null(list);
    if (said && (json_array_size(list) != 2 || !limit_of(json_array_get(list, 0), &limit[0]) ||
                 !limit_of(json_array_get(list, 1), &limit[1]) ||
                 !(limit[0] >= 0 && limit[0] <= limit[1])))
        return hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s, expected a list of two numbers, 0 or more, the second of them the larger",
                       hn_source_path(r->src), path);
    *v = limit[which];
    return HUNCH_OK;
}
static hunch_status read_least(const hn_key_reading *r, const hn_key_row *k HN_UNUSED, double *v, hunch_error *err) {
    return read_limit(r, 0, v, err);
}
static hunch_status read_most(const hn_key_reading *r, const hn_key_row *k HN_UNUSED, double *v, hunch_error *err) {
    return read_limit(r, 1, v, err);
}
static bool is_limited(const hn_arch *a HN_UNUSED, const hn_key_row *k HN_UNUSED, double *v) { return isfinite(*v); }

const hn_key_row hn_ssm_limits[] = {
    {HN_SSM(FLOAT, least), "ssm.time_step_least", "time_step_limit", 0, 3e38, .how = HN_IF_SET, .read = read_least},
    {HN_SSM(FLOAT, most), "ssm.time_step_most", "time_step_limit", 0, 3e38, .read = read_most, .written = is_limited},
    HN_ROWS_END};

/* ---- sizes ------------------------------------------------------------------------------------------------------------- */

double hn_ssm_most_inner(const hn_arch *a) { return a->files.form == HN_SOURCE_HF ? HN_SSM_MOST_DIM : 1 << 20; }
bool hn_ssm_write_inner(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v *= hn_ssm_at(&a->layer[0])->heads;
    return true;
}

hunch_status hn_ssm_finish(hn_arch *a, const hn_source *src, const char *conv_key, bool conv_usual, const char *bias_key,
                           hunch_error *err) {
    const bool gguf = a->files.form == HN_SOURCE_GGUF;
    const char *path = hn_source_path(src);
    hn_ssm_desc d = *hn_ssm_at(&a->layer[0]);
    const int inner = d.head_dim;
    bool conv = conv_usual, bias = false, found = false;
    const char *function = NULL;
    if (d.heads % d.groups)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d heads do not share %d groups evenly", path, d.heads, d.groups);
    if (gguf && (inner % d.heads || inner / d.heads > HN_SSM_MOST_DIM))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s.ssm.inner_size is %d, expected %d heads of 1 to %d", path, a->family->gguf_name, inner,
                       d.heads, HN_SSM_MOST_DIM);
    if (gguf) d.head_dim = inner / d.heads;
    hunch_status st = gguf ? HUNCH_OK : hn_source_str(src, "hidden_act", &function, NULL, &found, err);
    if (!st && found && strcmp(function, "silu"))
        st = hn_fail(err, HUNCH_REFUSED, "%s: hidden_act is \"%.40s\", expected silu, the function of convolutions", path, function);
    if (!st && !gguf) st = hn_source_bool(src, conv_key, &conv, &found, err);
    if (!st && !gguf) st = hn_source_bool(src, bias_key, &bias, &found, err);
    for (int i = 0; !st && i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        hn_ssm_desc *own = hn_ssm_at(l);
        *own = d; /* of all layers: the first stands for them in a GGUF's keys */
        if (l->mixer[0].kind != &hn_mixer_ssm) continue;
        own->conv_bias = gguf ? hn_arch_find_tensor(a, src, HN_ROLE_SSM_CONV_BIAS, i) != NULL : conv;
        own->in_bias = gguf ? hn_arch_find_tensor(a, src, HN_ROLE_SSM_IN_BIAS, i) != NULL : bias;
        own->out_bias = gguf ? hn_arch_find_tensor(a, src, HN_ROLE_SSM_OUT_BIAS, i) != NULL : bias;
    }
    return st;
}

/* ---- Mamba-2 ------------------------------------------------------------------------------------------------------------ */

static hunch_status no_heads(hn_arch *a HN_UNUSED, hn_layer_desc *l HN_UNUSED, const hn_source *src HN_UNUSED, hunch_error *err HN_UNUSED) {
    return HUNCH_OK;
}

static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    for (int i = 0; i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        l->mixer[0].kind = &hn_mixer_ssm;
        l->rotation = HN_NO_ROTATION;
        l->ffn = HN_FFN_NONE; /* its key names the function of the convolution */
        l->qkv_bias = l->o_bias = l->gate_up_bias = l->down_bias = false;
    }
    return hn_ssm_finish(a, src, "use_conv_bias", true, "use_bias", err);
}

/* What other programs ask for although there is none. */
static bool none(const hn_arch *a HN_UNUSED, const hn_key_row *k HN_UNUSED, double *v) {
    *v = 0;
    return true;
}

/* Not read: norm_before_gate (the gate comes first whatever it says), and of a training's beginning time_step_min, time_step_max and
 * time_step_floor. */
static const hn_key_row keys[] = {
    HN_CONTEXT(1 << 20),
    {HN_MODEL(FLOAT, norm_eps), "attention.layer_norm_rms_epsilon", "layer_norm_epsilon", 0, 1, {NAN, 1e-5}, HN_NOT_NULL},
    HN_ALWAYS(HN_LAYER(INT, ffn_width), 0), HN_ALWAYS(HN_LAYER(INT, heads), 1), HN_ALWAYS(HN_LAYER(INT, kv_heads), 1),
    HN_ALWAYS(HN_LAYER(INT, head_dim), 2), HN_ALWAYS(HN_MODEL(INT, files.value_dim), 2), HN_ALWAYS(HN_MODEL(REAL, files.rotated), 1),
    HN_ALWAYS(HN_MODEL(REAL, rotation[0].scaling.theta), 10000), HN_ALWAYS(HN_MODEL(INT, rotation[0].dims), 0),
    {HN_BESIDE(INT), "feed_forward_length", .how = HN_LATER, .written = none},
    {HN_BESIDE(INT), "attention.head_count", .how = HN_LATER, .written = none},
    {HN_SSM(INT, taps), "ssm.conv_kernel", "conv_kernel", 1, HN_MOST_TAPS, {NAN, 4}},
    {HN_SSM(INT, state), "ssm.state_size", "state_size", 1, HN_SSM_MOST_STATE, {NAN, 128}},
    {HN_SSM(INT, groups), "ssm.group_count", "n_groups", 1, 1024, {NAN, 8}},
    {HN_SSM(INT, heads), "ssm.time_step_rank", "num_heads", 1, 1024, {NAN, 128}},
    {HN_SSM(INT, head_dim), "ssm.inner_size", "head_dim", 1, 0, {NAN, 64}, .up_to = hn_ssm_most_inner, .written = hn_ssm_write_inner},
    {HN_BESIDE(CLAIM), NULL, "use_conv_bias use_bias"},
    HN_ROWS_END};

#define MIXER(part) "model.layers.%d.mixer." part
static const hn_role_other names[] = {
    {HN_ROLE_EMBEDDING, NULL, "model.embeddings.weight", NULL},
    {HN_ROLE_OUTPUT_NORM, NULL, "model.norm_f.weight", NULL},
    {HN_ROLE_ATTN_NORM, NULL, "model.layers.%d.norm.weight", NULL},
    {HN_ROLE_SSM_IN, NULL, MIXER("in_proj.weight"), NULL},
    {HN_ROLE_SSM_IN_BIAS, NULL, MIXER("in_proj.bias"), NULL},
    {HN_ROLE_SSM_CONV, NULL, MIXER("conv1d.weight"), NULL},
    {HN_ROLE_SSM_CONV_BIAS, NULL, MIXER("conv1d.bias"), NULL},
    {HN_ROLE_SSM_DECAY, NULL, MIXER("A_log"), NULL},
    {HN_ROLE_SSM_DT, NULL, MIXER("dt_bias"), NULL},
    {HN_ROLE_SSM_SKIP, NULL, MIXER("D"), NULL},
    {HN_ROLE_SSM_NORM, NULL, MIXER("norm.weight"), NULL},
    {HN_ROLE_SSM_OUT, NULL, MIXER("out_proj.weight"), NULL},
    {HN_ROLE_SSM_OUT_BIAS, NULL, MIXER("out_proj.bias"), NULL},
    HN_NAMES_END};
const hn_family hn_family_mamba2 = {.gguf_name = "mamba2", .hf_type = "mamba2", .names = names, .own_rotations = true,
                                    .keys = {hn_ssm_limits, keys}, .heads = no_heads, .finish = finish};
