/* SPDX-License-Identifier: Apache-2.0 */
/* arch_deepseek.c - DeepSeek-V2 and -V3, Kimi-K2, GLM-4.7-Flash: latent attention; the first layers are dense, the others have experts
 * beside one that all rows share. V2's experts are chosen by softmax, the others' by sigmoids and a correction. The last blocks of a file
 * predict further tokens and are no layers of the model. A GGUF of any of them is of architecture deepseek2. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/arch/latent_desc.h"

enum { GREEDY, LIMITED, NOAUX }; /* a folder's methods of choosing experts */

static bool is_gguf(const hn_source *src) {
    return hn_source_get_kind(src) == HN_SOURCE_GGUF;
}

/* ---- heads ------------------------------------------------------------------------------------------------------------ */

static hunch_status check_heads(const hn_layer_desc *l, const hn_source *src, hunch_error *err) {
    const hn_latent_desc *t = hn_latent_of(l->mixer);
    if (l->head_dim > HN_MAX_HEAD_DIM)
        return hn_fail(err, HUNCH_REFUSED, "%s: latent rows of %d + %d numbers, expected at most %d", hn_source_path(src), t->rank, t->rope,
                       HN_MAX_HEAD_DIM);
    if (t->rope % 2)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d dims of a head are rotated, expected an even number", hn_source_path(src), t->rope);
    return HUNCH_OK;
}

static hunch_status gguf_int(const hn_arch *a, const hn_source *src, const char *suffix, double min, double max, double usual, int *out,
                             hunch_error *err) {
    hn_key_buf key;
    return hn_key_int(src, hn_family_key_of(&key, a->family, suffix, NULL, min, max, usual), out, err);
}

/* Keys ending in _mla are the heads', the plain ones then those of a row; older files have no _mla, and the heads' sizes there. */
static hunch_status read_gguf_heads(hn_latent_desc *t, const hn_arch *a, const hn_source *src, hunch_error *err) {
    int key = 0, value = 0, own_key = 0, own_value = 0;
    hunch_status st = gguf_int(a, src, "attention.key_length", 2, 1 << 17, NAN, &key, err);
    if (!st) st = gguf_int(a, src, "attention.value_length", 1, 1 << 17, NAN, &value, err);
    if (!st) st = gguf_int(a, src, "attention.key_length_mla", 2, 1024, key, &own_key, err);
    if (!st) st = gguf_int(a, src, "attention.value_length_mla", 1, 1024, value, &own_value, err);
    if (st) return st;
    t->nope = own_key - t->rope;
    t->value = own_value;
    if (t->nope < 1 || t->nope > 512 || t->value > 512)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: heads of %d numbers, %d of them rotated, and values of %d: expected 1 to 512 beside those rotated",
                       hn_source_path(src), own_key, t->rope, t->value);
    return HUNCH_OK;
}

static hunch_status read_heads(hn_arch *a, hn_layer_desc *l, const hn_source *src, hunch_error *err) {
    hn_latent_desc *t = hn_latent_at(l);
    l->mixer[0].kind = &hn_mixer_latent;
    const hunch_status st = is_gguf(src) ? read_gguf_heads(t, a, src, err) : HUNCH_OK;
    l->head_dim = t->rank + t->rope;
    l->attention_scale = 1.0f / sqrtf((float)(t->nope + t->rope)); /* of a query before it is made as wide as a row */
    a->rotation[0].dims = t->rope;
    return st ? st : check_heads(l, src, err);
}

/* ---- experts ---------------------------------------------------------------------------------------------------------- */

/* DeepSeek-V3's 256 experts are in groups, which Ollama's converter and early ones of llama.cpp do not write. */
static hunch_status add_groups(hn_arch *a, const hn_source *src, hunch_error *err) {
    enum { EXPERTS_OF_V3 = 256, GROUPS_OF_V3 = 8, GROUPS_USED = 4 };
    hn_key_buf key;
    uint64_t said;
    bool found;
    const hunch_status st = hn_source_u64(
        src, hn_family_key_of(&key, a->family, "expert_group_count", NULL, 0, 0, 0)->gguf, &said, &found, err);
    for (int i = 0; !st && !found && i < a->layers; i++) {
        hn_expert_desc *e = &a->layer[i].experts;
        if (a->layer[i].ffn != HN_FFN_EXPERTS || !e->sigmoid || e->count != EXPERTS_OF_V3) continue;
        e->groups = GROUPS_OF_V3;
        e->groups_used = GROUPS_USED;
    }
    return st;
}

static hunch_status finish_experts(hn_arch *a, const hn_source *src, hunch_error *err) {
    for (int i = 0; i < a->layers; i++) {
        hn_expert_desc *e = &a->layer[i].experts;
        if (a->layer[i].ffn != HN_FFN_EXPERTS) continue;
        if (is_gguf(src)) { /* the tensor says it, if the layer has one */
            e->bias = true;
            e->bias = hn_arch_find_tensor(a, src, HN_ROLE_ROUTER_BIAS, i);
        } else if (!e->sigmoid && e->normalised) {
            return hn_fail(err, HUNCH_REFUSED, "%s: norm_topk_prob is true: %s models of experts chosen by softmax are read without",
                           hn_source_path(src), a->family->gguf_name);
        } else if (a->files.choice == GREEDY) {
            e->groups = e->groups_used = 1;
        }
        e->largest = !e->sigmoid;
    }
    return is_gguf(src) ? add_groups(a, src, err) : HUNCH_OK;
}

/* ---- the rest --------------------------------------------------------------------------------------------------------- */

/* The rotated part follows the latent one in a row; YaRN's mscale_all_dim scales the scores. */
static void finish_rotation(hn_arch *a, bool interleaved) {
    hn_rotation *r = &a->rotation[0];
    const hn_scaling *s = &r->scaling;
    const bool scaled = s->kind == HN_SCALING_YARN && s->factor > 1 && s->mscale_all > 0;
    const float times = scaled ? (float)(0.1 * s->mscale_all * log(s->factor) + 1) : 1;
    r->first = hn_latent_at(&a->layer[0])->rank;
    a->rope_interleaved = interleaved;
    for (int i = 0; i < a->layers; i++) a->layer[i].attention_scale *= times * times;
}

void hn_latent_find_tensors(hn_arch *a, const hn_source *src) {
    for (int i = 0; i < a->layers; i++) {
        hn_latent_desc *t = hn_latent_at(&a->layer[i]);
        if (!hn_layer_latent(&a->layer[i])) continue;
        t->split = is_gguf(src); /* only then a layer has a name for it */
        t->split = t->split && hn_arch_find_tensor(a, src, HN_ROLE_K_B, i);
    }
}

static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    bool interleaved = true, found;
    hunch_status st = is_gguf(src) ? HUNCH_OK : hn_source_bool(src, "rope_interleave", &interleaved, &found, err);
    if (st) return st;
    finish_rotation(a, interleaved);
    hn_latent_find_tensors(a, src);
    for (int i = 0; i < a->layers && is_gguf(src); i++)
        a->layer[i].qkv_bias = hn_arch_find_tensor(a, src, HN_ROLE_KV_A_BIAS, i);
    return finish_experts(a, src, err);
}

/* ---- families --------------------------------------------------------------------------------------------------------- */

static bool with_rotated(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v += hn_latent_at(&a->layer[0])->rope;
    return true;
}
#define METHODS "greedy group_limited_greedy noaux_tc"
#define SCORES "softmax sigmoid"
static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-6),
    HN_ALWAYS(HN_MODEL(BOOL, files.yarn_scores), 1),
    HN_ALWAYS(HN_MODEL(REAL, files.rotated), 1),
    {HN_BESIDE(INT), NULL, "moe_layer_freq", 1, 1},
    /* in a GGUF the keys of other families have the size of a latent row */
    {HN_LAYER(INT, kv_heads), "attention.head_count_kv", .usual = {1, 1}, .how = HN_GGUF_WRITTEN},
    {HN_LAYER(INT, head_dim), "attention.key_length", .how = HN_GGUF_WRITTEN},
    {HN_MODEL(INT, files.value_dim), "attention.value_length", .how = HN_GGUF_WRITTEN, .written = hn_unusual_heads},
    {HN_LATENT(INT, query_rank), "attention.q_lora_rank", "q_lora_rank", 1, 1 << 16, .how = HN_ZERO_IS_NONE | HN_IF_SET},
    {HN_LATENT(INT, rank), "attention.kv_lora_rank", "kv_lora_rank", 1, 1 << 16, {NAN, NAN}},
    {HN_LATENT(INT, rope), "rope.dimension_count", "qk_rope_head_dim", 2, 512, {NAN, NAN}, HN_NEVER_WRITTEN},
    {HN_LATENT(INT, nope), "attention.key_length_mla", "qk_nope_head_dim", 1, 512, {0, NAN}, HN_GGUF_WRITTEN,
     .written = with_rotated},
    {HN_LATENT(INT, value), "attention.value_length_mla", "v_head_dim", 1, 512, {0, NAN}, HN_GGUF_WRITTEN},
    HN_ROWS_END};
static const hn_key_row by_softmax[] = {{HN_BESIDE(WORD), NULL, "scoring_func", 0, 0, .words = SCORES},
                                        {HN_MODEL(WORD, files.choice), NULL, "topk_method", GREEDY, LIMITED, .words = METHODS},
                                        HN_ROWS_END};
static const hn_key_row by_sigmoid[] = {{HN_BESIDE(WORD), NULL, "scoring_func", 1, 1, .words = SCORES},
                                        {HN_MODEL(WORD, files.choice), NULL, "topk_method", NOAUX, NOAUX, {NOAUX, NOAUX}, .words = METHODS},
                                        HN_ROWS_END};
static const hn_key_row of_glm[] = {
    HN_EPS(NAN, 1e-5),
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", .usual = {1, 1}, .how = HN_GGUF_WRITTEN,
     .written = hn_moe_first},
    {HN_BESIDE(CLAIM), NULL, "mlp_layer_types"}, /* without one the first is dense, as its reference has it */
    HN_ROWS_END};

static const hn_role_other names[] = {HN_SHARED_NAMES("mlp.shared_experts"), HN_NAMES_END};

#define SHARED hn_next_layers, hn_attention_bias_keys, hn_moe_keys, hn_moe_of_deepseek
#define FAMILY(type, ...) {.gguf_name = "deepseek2", .hf_type = type, .names = names, .keys = {SHARED, __VA_ARGS__}, \
                                     .heads = read_heads, .finish = finish}
/* The first reads a GGUF of any: without a key for the function of scores it is softmax. */
const hn_family hn_family_deepseek_v2 = FAMILY("deepseek_v2", keys, by_softmax);
const hn_family hn_family_deepseek_v3 = FAMILY("deepseek_v3", hn_moe_of_v3, keys, by_sigmoid);
const hn_family hn_family_kimi_k2 = FAMILY("kimi_k2", hn_moe_of_v3, keys, by_sigmoid);
const hn_family hn_family_glm4_moe_lite = FAMILY("glm4_moe_lite", hn_moe_of_v3, keys, by_sigmoid, of_glm);
