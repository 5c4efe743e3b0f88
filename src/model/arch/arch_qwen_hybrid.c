/* SPDX-License-Identifier: Apache-2.0 */
/* arch_qwen_hybrid.c - Qwen3.5 and 3.6, dense and with experts, and Qwen3-Next: three of four layers are gated delta
 * nets, the others are attention with an output gate that rotates a quarter of each head. Norm weights are stored less
 * 1 in a folder, complete in a GGUF, where the value heads that share a key head are apart (tiled) except in
 * Qwen3-Next. */
#include <math.h>
#include <string.h>

#include "model/arch/arch.h"

enum { USUAL_INTERVAL = 4, MOST_TAPS = 8 };

/* ---- which layers ------------------------------------------------------------------------------------------------- */

static void mark_period(hn_arch *a, int period) {
    for (int i = 0; i < a->layers; i++) a->layer[i].mixer = (i + 1) % period ? HN_MIXER_DELTA : HN_MIXER_ATTENTION;
}

static hunch_status layer_types(hn_arch *a, const hn_source *src, const json_t *types, hunch_error *err) {
    static const char full[] = "full_attention", linear[] = "linear_attention";
    bool good = json_is_array(types) && json_array_size(types) == (size_t)a->layers;
    for (int i = 0; good && i < a->layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        good = type && (!strcmp(type, full) || !strcmp(type, linear));
        a->layer[i].mixer = good && !strcmp(type, linear) ? HN_MIXER_DELTA : HN_MIXER_ATTENTION;
    }
    return good ? HUNCH_OK : hn_fail(err, HUNCH_REFUSED, "%s: config.json: layer_types, expected a list of %d names, %s or %s",
                                     hn_source_path(src), a->layers, full, linear);
}

static hunch_status listed_layers(hn_arch *a, const hn_source *src, const char *key, const hn_array *list, hunch_error *err) {
    const size_t most = (size_t)(a->layers + a->files.next_layers);
    if (hn_array_is_strings(list) || (hn_array_count(list) != most && hn_array_count(list) != (size_t)a->layers))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s, expected %zu flags", hn_source_path(src), key, most);
    for (int i = 0; i < a->layers; i++)
        a->layer[i].mixer = hn_array_number(list, (size_t)i) != 0 ? HN_MIXER_DELTA : HN_MIXER_ATTENTION;
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
    hn_dense_key(a->dense, "attention.head_count_kv", key);
    *listed = hn_source_get_kind(src) == HN_SOURCE_GGUF && !hn_source_array(src, key, &list, NULL) && list && has_zero(list);
    if (!*listed) return HUNCH_OK;
    hunch_status st = listed_layers(a, src, key, list, err);
    for (int i = 0; !st && i < a->layers; i++)
        a->layer[i].mixer = a->layer[i].mixer == HN_MIXER_DELTA ? HN_MIXER_ATTENTION : HN_MIXER_DELTA;
    return st;
}

/* Ollama's files say twice which layers have attention. */
static hunch_status check_period(const hn_arch *a, const hn_source *src, int period, hunch_error *err) {
    for (int i = 0; period > 0 && i < a->layers; i++)
        if (((i + 1) % period == 0) != (a->layer[i].mixer == HN_MIXER_ATTENTION))
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: %s.attention.head_count_kv gives layer %d %s keys, expected as %s.full_attention_interval, %d, says",
                           hn_source_path(src), a->dense->prefix, i, a->layer[i].mixer == HN_MIXER_ATTENTION ? "heads of" : "no",
                           a->dense->prefix, period);
    return HUNCH_OK;
}

static hunch_status layers_by_period(hn_arch *a, const hn_source *src, bool listed, hunch_error *err) {
    hn_dense_key_buf key;
    int period = 0;
    const hunch_status st = hn_key_int(src, hn_dense_key_of(&key, a->dense, "full_attention_interval", "full_attention_interval", 1, 1024,
                                                            listed ? 0 : USUAL_INTERVAL), &period, err);
    if (st || listed) return st ? st : check_period(a, src, period, err);
    mark_period(a, period);
    return HUNCH_OK;
}

/* The layers with attention: as the file specifies, else every fourth. */
static hunch_status read_mixers(hn_arch *a, const hn_source *src, hunch_error *err) {
    const json_t *types = hn_source_config(src, "layer_types");
    const hn_array *list = NULL;
    char recurrent[96];
    int attending = 0;
    bool listed = false;
    hn_dense_key(a->dense, "attention.recurrent_layers", recurrent);
    hunch_status st = hn_source_array(src, recurrent, &list, err);
    if (!st && types) st = layer_types(a, src, types, err);
    if (!st && list) st = listed_layers(a, src, recurrent, list, err);
    if (!st && !types && !list) st = layers_by_heads(a, src, &listed, err);
    if (!st && !types && !list) st = layers_by_period(a, src, listed, err);
    for (int i = 0; i < a->layers; i++) attending += a->layer[i].mixer == HN_MIXER_ATTENTION;
    if (!st && attending == 0)
        st = hn_fail(err, HUNCH_REFUSED, "%s: none of %d layers has attention, expected at least one", hn_source_path(src), a->layers);
    return st;
}

/* ---- their shape --------------------------------------------------------------------------------------------------- */

static hunch_status read_sizes(hn_delta_desc *d, const hn_arch *a, const hn_source *src, hunch_error *err) {
    int inner = 0;
    const struct {
        const char *suffix, *hf;
        double max, usual;
        int *out;
    } keys[] = {{"ssm.group_count", "linear_num_key_heads", 1024, 16, &d->key_heads},
                {"ssm.time_step_rank", "linear_num_value_heads", 1024, 32, &d->value_heads},
                {"ssm.state_size", "linear_key_head_dim", 512, 128, &d->key_dim},
                {"ssm.conv_kernel", "linear_conv_kernel_dim", MOST_TAPS, 4, &d->taps},
                {NULL, "linear_value_head_dim", 512, 128, &d->value_dim},
                {"ssm.inner_size", NULL, 1 << 19, NAN, &inner}};
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    hn_dense_key_buf key;
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < sizeof keys / sizeof *keys; i++)
        if (gguf ? keys[i].suffix != NULL : keys[i].hf != NULL)
            st = hn_key_int(src, hn_dense_key_of(&key, a->dense, keys[i].suffix ? keys[i].suffix : "", keys[i].hf, 1, keys[i].max,
                                                 gguf ? NAN : keys[i].usual), keys[i].out, err);
    if (st) return st;
    if (d->value_heads % d->key_heads)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d value heads do not share %d key heads evenly", hn_source_path(src),
                       d->value_heads, d->key_heads);
    if (gguf && (inner % d->value_heads || inner / d->value_heads > 512))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s.ssm.inner_size is %d, expected %d heads of 1 to 512", hn_source_path(src),
                       a->dense->prefix, inner, d->value_heads);
    if (gguf) d->value_dim = inner / d->value_heads;
    return HUNCH_OK;
}

/* Variants that these files could specify and hunch does not support. */
static hunch_status refuse_gates(const hn_source *src, bool *gated, hunch_error *err) {
    const char *type = "swish";
    bool found;
    *gated = true;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return HUNCH_OK;
    hunch_status st = hn_source_bool(src, "attn_output_gate", gated, &found, err);
    if (!st) st = hn_source_str(src, "output_gate_type", &type, NULL, &found, err);
    if (!st && strcmp(type, "swish"))
        st = hn_fail(err, HUNCH_REFUSED, "%s: output_gate_type is \"%.40s\", expected swish", hn_source_path(src), type);
    return st;
}

static hunch_status read_rest(hn_arch *a, const hn_source *src, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    hn_delta_desc d = {.tiled = gguf};
    bool gated;
    hunch_status st = read_mixers(a, src, err);
    if (!st) st = read_sizes(&d, a, src, err);
    if (!st) st = refuse_gates(src, &gated, err);
    if (st) return st;
    a->files.norms_less_one = !gguf;
    for (int i = 0; i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        const bool delta = l->mixer == HN_MIXER_DELTA;
        l->hybrid = true;
        l->fused_qkv = false; /* in a GGUF that name is another matrix */
        l->gated = !delta && gated;
        l->delta = d;
        if (delta) l->qk_norm = l->qkv_bias = l->o_bias = false;
        if (delta || !gguf) continue;
        l->qkv_bias = hn_arch_find_tensor(a, src, HN_ROLE_Q_BIAS, i);
        l->o_bias = hn_arch_find_tensor(a, src, HN_ROLE_O_BIAS, i);
    }
    return HUNCH_OK;
}

static bool is_delta(const hn_layer_desc *l) {
    return l->mixer == HN_MIXER_DELTA;
}

/* The period of the layers with attention, 0 if they are not periodic. */
static int period_of(const hn_arch *a) {
    int period = 0;
    while (period < a->layers && a->layer[period].mixer == HN_MIXER_DELTA) period++;
    period++;
    for (int i = 0; i < a->layers; i++)
        if ((a->layer[i].mixer == HN_MIXER_ATTENTION) != ((i + 1) % period == 0)) return 0;
    return period;
}

/* The parts of a head that are rotated by each of three positions, which are equal in text. */
static hunch_status put_sections(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const int32_t half = a->rotation[0].dims / 2, sections[4] = {(half + 2) / 3, (half + 1) / 3, half / 3, 0};
    char key[96];
    hn_dense_key(a->dense, "rope.dimension_sections", key);
    return hn_gguf_put_i32s(w, key, sections, 4, err);
}

static hunch_status put_layers(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const int period = period_of(a);
    char key[96];
    hn_dense_key(a->dense, period ? "full_attention_interval" : "attention.recurrent_layers", key);
    return period ? hn_gguf_put_u32(w, key, (uint32_t)period, err) : hn_dense_put_layers(a, w, key, is_delta, err);
}

static hunch_status put_own(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const hn_delta_desc *d = &a->layer[0].delta;
    const struct {
        const char *suffix;
        int value;
    } keys[] = {{"ssm.conv_kernel", d->taps},
                {"ssm.state_size", d->key_dim},
                {"ssm.group_count", d->key_heads},
                {"ssm.time_step_rank", d->value_heads},
                {"ssm.inner_size", d->value_heads * d->value_dim}};
    char key[96];
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < sizeof keys / sizeof *keys; i++) {
        hn_dense_key(a->dense, keys[i].suffix, key);
        st = hn_gguf_put_u32(w, key, (uint32_t)keys[i].value, err);
    }
    if (!st) st = put_sections(a, w, err);
    return st ? st : put_layers(a, w, err);
}

/* Qwen3-Next: a GGUF has the value heads of one key head side by side, as a folder, and b and a by key heads; a folder
 * and older GGUF files also have q, k, v and z by key heads. */
static void mark_next(hn_arch *a, const hn_source *src) {
    for (int i = 0; i < a->layers; i++) {
        hn_delta_desc *d = &a->layer[i].delta;
        d->fused = a->files.form == HN_SOURCE_HF || hn_arch_find_tensor(a, src, HN_ROLE_DELTA_QKVZ, i);
        d->tiled = false;
        d->fused_gates = true;
    }
}

/* Ollama's converter writes Qwen3-Next as qwen35moe: its layout shows by b and a in one matrix, which Qwen3.5 does not have. */
static hunch_status read_moe(hn_arch *a, const hn_source *src, hunch_error *err) {
    hunch_status st = read_rest(a, src, err);
    bool next = false;
    for (int i = 0; !st && a->files.form == HN_SOURCE_GGUF && i < a->layers; i++)
        next = next || (is_delta(&a->layer[i]) && hn_arch_find_tensor(a, src, HN_ROLE_DELTA_BA, i));
    if (next) mark_next(a, src);
    return st;
}

static hunch_status read_next(hn_arch *a, const hn_source *src, hunch_error *err) {
    hunch_status st = read_rest(a, src, err);
    if (!st) mark_next(a, src);
    return st;
}

static hunch_status qwen35_moe_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_moe moe = {.count = "num_experts",
                               .width = "moe_intermediate_size",
                               .always_normalised = true,
                               .shared_width = "shared_expert_intermediate_size",
                               .shared_gate = true,
                               .sparse_step = true};
    static const hn_dense qwen35moe = {.prefix = "qwen35moe",
                                       .qk_norm = true,
                                       .attention_bias = true,
                                       .moe = &moe,
                                       .no_ffn = true,
                                       .zero_kv = true,
                                       .next_layers = true,
                                       .theta = 1e7,
                                       .rotated = 0.25,
                                       .finish = read_moe,
                                       .put = put_own};
    return hn_dense_read(a, src, &qwen35moe, err);
}

static hunch_status next_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_moe moe = {.count = "num_experts",
                               .width = "moe_intermediate_size",
                               .normalised = {true, true},
                               .shared_width = "shared_expert_intermediate_size",
                               .shared_gate = true,
                               .sparse_step = true};
    static const hn_dense next = {.prefix = "qwen3next",
                                  .qk_norm = true,
                                  .attention_bias = true,
                                  .moe = &moe,
                                  .no_ffn = true,
                                  .zero_kv = true,
                                  .next_layers = true,
                                  .theta = 1e7,
                                  .rotated = 0.25,
                                  .finish = read_next,
                                  .put = put_own};
    return hn_dense_read(a, src, &next, err);
}

static hunch_status qwen35_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense qwen35 = {.prefix = "qwen35",
                                    .qk_norm = true,
                                    .attention_bias = true,
                                    .zero_kv = true,
                                    .next_layers = true,
                                    .theta = 1e7,
                                    .rotated = 0.25,
                                    .finish = read_rest,
                                    .put = put_own};
    return hn_dense_read(a, src, &qwen35, err);
}

const hn_family hn_family_qwen35 = {"qwen35", "qwen3_5", qwen35_read};
const hn_family hn_family_qwen35_text = {"qwen35", "qwen3_5_text", qwen35_read};
const hn_family hn_family_qwen35_moe = {"qwen35moe", "qwen3_5_moe", qwen35_moe_read};
const hn_family hn_family_qwen35_moe_text = {"qwen35moe", "qwen3_5_moe_text", qwen35_moe_read};
const hn_family hn_family_qwen3_next = {"qwen3next", "qwen3_next", next_read};
