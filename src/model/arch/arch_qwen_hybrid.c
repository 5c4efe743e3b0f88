/* SPDX-License-Identifier: Apache-2.0 */
/* arch_qwen_hybrid.c - Qwen3.5 and 3.6, dense and with experts, and Qwen3-Next: three of four layers are gated delta
 * nets, the others are attention with an output gate that rotates a quarter of each head. Norm weights are stored less
 * 1 in a folder, complete in a GGUF, where the value heads that share a key head are apart (tiled) except in
 * Qwen3-Next. */
#include <math.h>
#include <string.h>

#include "model/arch/delta_desc.h"

enum { USUAL_INTERVAL = 4, MOST_TAPS = 8, MOST_VALUE = 512 };

/* ---- which layers ------------------------------------------------------------------------------------------------- */

static int is_delta(const hn_layer_desc *l) {
    return l->mixer[0].kind == &hn_mixer_delta;
}

static void set_delta(hn_layer_desc *l, bool delta) {
    l->mixer[0].kind = delta ? &hn_mixer_delta : &hn_mixer_attention;
}

static void mark_period(hn_arch *a, int period) {
    for (int i = 0; i < a->layers; i++) set_delta(&a->layer[i], (i + 1) % period);
}

static hunch_status listed_layers(hn_arch *a, const hn_source *src, const char *key, const hn_array *list, hunch_error *err) {
    const size_t most = (size_t)(a->layers + a->files.next_layers);
    if (hn_array_is_strings(list) || (hn_array_count(list) != most && hn_array_count(list) != (size_t)a->layers))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s, expected %zu flags", hn_source_path(src), key, most);
    for (int i = 0; i < a->layers; i++) set_delta(&a->layer[i], hn_array_number(list, (size_t)i) != 0);
    return HUNCH_OK;
}

static bool has_zero(const hn_array *list) {
    for (size_t i = 0; i < hn_array_count(list); i++)
        if (hn_array_number(list, i) == 0) return true;
    return false;
}

/* The number of key heads by layer, of which a delta net has none; *listed: there is such a list. */
static hunch_status layers_by_heads(hn_arch *a, const hn_source *src, bool *listed, hunch_error *err) {
    const hn_array *list = NULL;
    char key[96];
    hn_family_key(a->family, "attention.head_count_kv", key);
    *listed = hn_source_get_kind(src) == HN_SOURCE_GGUF && !hn_source_array(src, key, &list, NULL) && list && has_zero(list);
    if (!*listed) return HUNCH_OK;
    hunch_status st = listed_layers(a, src, key, list, err);
    for (int i = 0; !st && i < a->layers; i++) set_delta(&a->layer[i], !is_delta(&a->layer[i]));
    return st;
}

/* Ollama's files say twice which layers have attention. */
static hunch_status check_period(const hn_arch *a, const hn_source *src, int period, hunch_error *err) {
    for (int i = 0; period > 0 && i < a->layers; i++)
        if (((i + 1) % period == 0) != !is_delta(&a->layer[i]))
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: %s.attention.head_count_kv gives layer %d %s keys, expected as %s.full_attention_interval, %d, says",
                           hn_source_path(src), a->family->gguf_name, i, !is_delta(&a->layer[i]) ? "heads of" : "no",
                           a->family->gguf_name, period);
    return HUNCH_OK;
}

static hunch_status layers_by_period(hn_arch *a, const hn_source *src, bool listed, hunch_error *err) {
    hn_key_buf key;
    int period = 0;
    const hunch_status st = hn_key_int(src, hn_family_key_of(&key, a->family, "full_attention_interval", "full_attention_interval", 1,
                                                             1024, listed ? 0 : USUAL_INTERVAL), &period, err);
    if (st || listed) return st ? st : check_period(a, src, period, err);
    mark_period(a, period);
    return HUNCH_OK;
}

/* The layers with attention: as the file specifies, else every fourth. */
static hunch_status read_mixers(hn_arch *a, const hn_source *src, hunch_error *err) {
    static const char *const kinds[] = {"full_attention", "linear_attention"};
    const hn_array *list = NULL;
    char recurrent[96];
    int attending = 0;
    bool listed = false, types = false;
    hn_family_key(a->family, "attention.recurrent_layers", recurrent);
    hunch_status st = hn_source_array(src, recurrent, &list, err);
    if (!st) st = hn_family_kinds(a, src, "layer_types", kinds, set_delta, &types, err);
    if (!st && list) st = listed_layers(a, src, recurrent, list, err);
    if (!st && !types && !list) st = layers_by_heads(a, src, &listed, err);
    if (!st && !types && !list) st = layers_by_period(a, src, listed, err);
    for (int i = 0; i < a->layers; i++) attending += !is_delta(&a->layer[i]);
    if (!st && attending == 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: none of %d layers has attention, expected at least one", hn_source_path(src), a->layers);
    return st;
}

/* ---- their shape --------------------------------------------------------------------------------------------------- */

/* A GGUF has the width of all value heads. */
static hunch_status finish_sizes(const hn_arch *a, hn_delta_desc *d, const hn_source *src, hunch_error *err) {
    const int inner = d->value_dim;
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    if (d->value_heads % d->key_heads)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d value heads do not share %d key heads evenly", hn_source_path(src),
                       d->value_heads, d->key_heads);
    if (gguf && (inner % d->value_heads || inner / d->value_heads > MOST_VALUE))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s.ssm.inner_size is %d, expected %d heads of 1 to %d", hn_source_path(src),
                       a->family->gguf_name, inner, d->value_heads, MOST_VALUE);
    if (gguf) d->value_dim = inner / d->value_heads;
    d->tiled = gguf;
    return HUNCH_OK;
}

static hunch_status read_rest(hn_arch *a, hn_source *src, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    hn_delta_desc d = *hn_delta_at(&a->layer[0]);
    hunch_status st = read_mixers(a, src, err);
    if (!st) st = finish_sizes(a, &d, src, err);
    if (st) return st;
    a->files.norms_less_one = !gguf;
    for (int i = 0; i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        const bool delta = is_delta(l);
        *hn_delta_at(l) = d;
        if (delta) l->gate.in_q = l->qk_norm = l->qkv_bias = l->o_bias = false;
        if (delta || !gguf) continue;
        l->qkv_bias = hn_arch_find_tensor(a, src, HN_ROLE_Q_BIAS, i);
        l->o_bias = hn_arch_find_tensor(a, src, HN_ROLE_O_BIAS, i);
    }
    return HUNCH_OK;
}

/* Qwen3-Next: a GGUF has the value heads of one key head side by side, as a folder, and b and a by key heads; a folder
 * and older GGUF files also have q, k, v and z by key heads. */
static void mark_next(hn_arch *a, const hn_source *src) {
    for (int i = 0; i < a->layers; i++) {
        hn_delta_desc *d = hn_delta_at(&a->layer[i]);
        d->fused = a->files.form == HN_SOURCE_HF || hn_arch_find_tensor(a, src, HN_ROLE_DELTA_QKVZ, i);
        d->tiled = false;
        d->fused_gates = true;
    }
}

/* Ollama's converter writes Qwen3-Next as qwen35moe: its layout shows by b and a in one matrix, which Qwen3.5 does not have. */
static hunch_status read_moe(hn_arch *a, hn_source *src, hunch_error *err) {
    hunch_status st = read_rest(a, src, err);
    bool next = false;
    for (int i = 0; !st && a->files.form == HN_SOURCE_GGUF && i < a->layers; i++)
        next = next || (is_delta(&a->layer[i]) && hn_arch_find_tensor(a, src, HN_ROLE_DELTA_BA, i));
    if (next) mark_next(a, src);
    return st;
}

static hunch_status read_next(hn_arch *a, hn_source *src, hunch_error *err) {
    hunch_status st = read_rest(a, src, err);
    if (!st) mark_next(a, src);
    return st;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

static double most_inner(const hn_arch *a) { return a->files.form == HN_SOURCE_HF ? MOST_VALUE : 1 << 19; }
static bool inner(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v *= hn_delta_at(&a->layer[0])->value_heads;
    return true;
}

/* The parts of a head that are rotated by each of three positions, which are equal in text. */
static int sections(const hn_arch *a, int32_t list[8]) {
    const int32_t half = a->rotation[0].dims / 2;
    memcpy(list, (int32_t[]){(half + 2) / 3, (half + 1) / 3, half / 3, 0}, 4 * sizeof *list);
    return 4;
}

/* The period of the layers with attention. */
static bool period_of(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    int period = 0;
    while (period < a->layers && is_delta(&a->layer[period])) period++;
    *v = ++period;
    for (int i = 0; i < a->layers; i++)
        if (!is_delta(&a->layer[i]) != ((i + 1) % period == 0)) return false;
    return true;
}
static bool no_period(const hn_arch *a, const hn_key_row *k, double *v) { return !period_of(a, k, v); }

static const hn_key_row keys[] = {
    HN_THETA(1e7), HN_ROTATED(0.25),
    {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_key_value_heads", 1, 1024, .read = hn_read_kv_heads},
    HN_ALWAYS(HN_LAYER(BOOL, hybrid), 1), HN_ALWAYS(HN_LAYER(BOOL, fused_qkv), 0), /* in a GGUF that name is another matrix */
    {HN_LAYER(BOOL, gate.in_q), NULL, "attn_output_gate", 0, 1, {1, 1}},
    {HN_BESIDE(WORD), NULL, "output_gate_type", .words = "swish"},
    {HN_DELTA(INT, taps), "ssm.conv_kernel", "linear_conv_kernel_dim", 1, MOST_TAPS, {NAN, 4}},
    {HN_DELTA(INT, key_dim), "ssm.state_size", "linear_key_head_dim", 1, 512, {NAN, 128}},
    {HN_DELTA(INT, key_heads), "ssm.group_count", "linear_num_key_heads", 1, 1024, {NAN, 16}},
    {HN_DELTA(INT, value_heads), "ssm.time_step_rank", "linear_num_value_heads", 1, 1024, {NAN, 32}},
    {HN_DELTA(INT, value_dim), "ssm.inner_size", "linear_value_head_dim", 1, 0, {NAN, 128}, .up_to = most_inner, .written = inner},
    {HN_MODEL(LIST, rotation), "rope.dimension_sections", .fill = sections},
    {HN_BESIDE(INT), "full_attention_interval", .how = HN_LATER, .written = period_of},
    {HN_LAYER(LIST, mixer), "attention.recurrent_layers", .each = is_delta, .written = no_period},
    HN_ROWS_END};
static const hn_key_row sparse[] = { /* none of its layers may be dense */
    {HN_LAYER(INT, ffn_width), "feed_forward_length", "intermediate_size", 1, 1 << 20, {1, 1}, HN_NOT_NULL | HN_ZERO_IS_NONE},
    HN_ROWS_END};
static const hn_key_row of_next[] = {
    HN_NORMALISED(1, 1),
    HN_ROWS_END};

#define FAMILY(name, type, finished, ...) {.gguf_name = name, .hf_type = type, .finish = finished, \
                                           .keys = {hn_next_layers, hn_norms_of_heads, hn_attention_bias_keys, __VA_ARGS__}}
#define EXPERTS hn_moe_keys, hn_moe_of_qwen
const hn_family hn_family_qwen35 = FAMILY("qwen35", "qwen3_5", read_rest, keys);
const hn_family hn_family_qwen35_text = FAMILY("qwen35", "qwen3_5_text", read_rest, keys);
const hn_family hn_family_qwen35_moe = FAMILY("qwen35moe", "qwen3_5_moe", read_moe, EXPERTS, hn_moe_normalised, sparse, keys);
const hn_family hn_family_qwen35_moe_text = FAMILY("qwen35moe", "qwen3_5_moe_text", read_moe, EXPERTS, hn_moe_normalised, sparse, keys);
const hn_family hn_family_qwen3_next = FAMILY("qwen3next", "qwen3_next", read_next, EXPERTS, of_next, sparse, keys);
