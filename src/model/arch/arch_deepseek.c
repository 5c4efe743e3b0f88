/* SPDX-License-Identifier: Apache-2.0 */
/* arch_deepseek.c - DeepSeek-V2 and -V3, Kimi-K2, GLM-4.7-Flash: latent attention; the first layers are dense, the others have experts
 * beside one that all rows share. V2's experts are chosen by softmax, the others' by sigmoids and a correction. The last blocks of a file
 * predict further tokens and are no layers of the model. A GGUF of any of them is of architecture deepseek2. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/arch/arch.h"

static bool is_gguf(const hn_source *src) {
    return hn_source_get_kind(src) == HN_SOURCE_GGUF;
}

/* ---- heads ------------------------------------------------------------------------------------------------------------ */

static hunch_status check_heads(const hn_head_sizes *h, const hn_source *src, hunch_error *err) {
    const hn_latent_desc *t = &h->latent;
    if (h->head_dim > HN_MAX_HEAD_DIM)
        return hn_fail(err, HUNCH_REFUSED, "%s: latent rows of %d + %d numbers, expected at most %d", hn_source_path(src), t->rank, t->rope,
                       HN_MAX_HEAD_DIM);
    if (t->rope % 2)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d dims of a head are rotated, expected an even number", hn_source_path(src), t->rope);
    return HUNCH_OK;
}

static hunch_status read_folder_heads(hn_latent_desc *t, const hn_source *src, hunch_error *err) {
    const struct {
        const char *key;
        double min, max, usual;
        int *out;
    } keys[] = {{"q_lora_rank", 1, 1 << 16, 0, &t->query_rank},  {"kv_lora_rank", 1, 1 << 16, NAN, &t->rank},
                {"qk_rope_head_dim", 2, 512, NAN, &t->rope},     {"qk_nope_head_dim", 1, 512, NAN, &t->nope},
                {"v_head_dim", 1, 512, NAN, &t->value}};
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < sizeof keys / sizeof *keys; i++) {
        const hn_key k = {NULL, keys[i].key, keys[i].min, keys[i].max, keys[i].usual};
        st = hn_key_int(src, &k, keys[i].out, err);
    }
    return st;
}

static hunch_status gguf_int(const hn_arch *a, const hn_source *src, const char *suffix, double min, double max, double usual, int *out,
                             hunch_error *err) {
    hn_dense_key_buf key;
    return hn_key_int(src, hn_dense_key_of(&key, a->dense, suffix, NULL, min, max, usual), out, err);
}

/* Keys ending in _mla are the heads', the plain ones then those of a row; older files have no _mla, and the heads' sizes there. */
static hunch_status read_gguf_heads(hn_latent_desc *t, const hn_arch *a, const hn_source *src, hunch_error *err) {
    int key = 0, value = 0, own_key = 0, own_value = 0;
    hunch_status st = gguf_int(a, src, "attention.q_lora_rank", 0, 1 << 16, 0, &t->query_rank, err);
    if (!st) st = gguf_int(a, src, "attention.kv_lora_rank", 1, 1 << 16, NAN, &t->rank, err);
    if (!st) st = gguf_int(a, src, "rope.dimension_count", 2, 512, NAN, &t->rope, err);
    if (!st) st = gguf_int(a, src, "attention.key_length", 2, 1 << 17, NAN, &key, err);
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

static hunch_status read_heads(hn_head_sizes *h, const hn_arch *a, const hn_source *src, hunch_error *err) {
    hn_latent_desc *t = &h->latent;
    hunch_status st = is_gguf(src) ? read_gguf_heads(t, a, src, err) : read_folder_heads(t, src, err);
    h->kv_heads = 1;
    h->head_dim = t->rank + t->rope;
    h->rope_dims = t->rope;
    return st ? st : check_heads(h, src, err);
}

/* ---- experts ---------------------------------------------------------------------------------------------------------- */

/* The value of a folder's key, if it is there, must be one of two. */
static hunch_status expect(const hn_source *src, const char *key, const char *one, const char *other, const char **value,
                           hunch_error *err) {
    bool found = false;
    *value = NULL;
    hunch_status st = hn_source_str(src, key, value, NULL, &found, err);
    if (st || !found || !strcmp(*value, one) || !strcmp(*value, other)) return st;
    return hn_fail(err, HUNCH_REFUSED, "%s: %s is \"%.40s\", expected %s%s%s", hn_source_path(src), key, *value, one,
                   strcmp(one, other) ? " or " : "", strcmp(one, other) ? other : "");
}

/* Whether a folder's keys say what its family computes. *grouped: only some groups of experts count. */
static hunch_status check_choice(const hn_arch *a, const hn_source *src, bool *grouped, hunch_error *err) {
    const bool sigmoid = a->dense->moe->sigmoid;
    const hn_key every = {NULL, "moe_layer_freq", 1, 1, 1};
    const char *scores = sigmoid ? "sigmoid" : "softmax", *value;
    bool norm = false, found;
    int step;
    hunch_status st = hn_key_int(src, &every, &step, err);
    if (!st) st = expect(src, "scoring_func", scores, scores, &value, err);
    if (!st) st = expect(src, "topk_method", sigmoid ? "noaux_tc" : "greedy", sigmoid ? "noaux_tc" : "group_limited_greedy", &value, err);
    *grouped = sigmoid || (value && strcmp(value, "greedy") != 0);
    if (!st && !sigmoid) st = hn_source_bool(src, "norm_topk_prob", &norm, &found, err);
    if (!st && norm)
        st = hn_fail(err, HUNCH_REFUSED, "%s: norm_topk_prob is true: %s models of experts chosen by softmax are read without",
                     hn_source_path(src), a->dense->prefix);
    return st;
}

/* DeepSeek-V3's 256 experts are in groups, which Ollama's converter and early ones of llama.cpp do not write. */
static hunch_status add_groups(hn_arch *a, const hn_source *src, hunch_error *err) {
    enum { EXPERTS_OF_V3 = 256, GROUPS_OF_V3 = 8, GROUPS_USED = 4 };
    hn_dense_key_buf key;
    uint64_t said;
    bool found;
    const hunch_status st = hn_source_u64(
        src, hn_dense_key_of(&key, a->dense, "expert_group_count", NULL, 0, 0, 0)->gguf, &said, &found, err);
    for (int i = 0; !st && !found && i < a->layers; i++) {
        hn_expert_desc *e = &a->layer[i].experts;
        if (a->layer[i].ffn != HN_FFN_EXPERTS || !e->sigmoid || e->count != EXPERTS_OF_V3) continue;
        e->groups = GROUPS_OF_V3;
        e->groups_used = GROUPS_USED;
    }
    return st;
}

static hunch_status finish_experts(hn_arch *a, const hn_source *src, hunch_error *err) {
    bool grouped = true, bias = a->dense->moe->bias;
    hunch_status st = is_gguf(src) ? HUNCH_OK : check_choice(a, src, &grouped, err);
    for (int i = 0; !st && i < a->layers; i++) {
        hn_expert_desc *e = &a->layer[i].experts;
        if (a->layer[i].ffn != HN_FFN_EXPERTS) continue;
        if (is_gguf(src)) { /* the tensor says it, if the layer has one */
            e->bias = true;
            bias = hn_arch_find_tensor(a, src, HN_ROLE_ROUTER_BIAS, i);
        }
        e->bias = bias;
        e->largest = !e->sigmoid;
        if (!grouped) e->groups = e->groups_used = 1;
    }
    return st || !is_gguf(src) ? st : add_groups(a, src, err);
}

/* GLM's list of dense and sparse layers; without one the first is dense, as its reference has it. */
static hunch_status mark_layers(hn_arch *a, const hn_source *src, hunch_error *err) {
    static const char dense[] = "dense", sparse[] = "sparse";
    const json_t *types = hn_source_config(src, "mlp_layer_types");
    const bool listed = json_is_array(types);
    hn_expert_desc experts = {0};
    bool good = !types || json_is_null(types) || (listed && json_array_size(types) == (size_t)a->layers);
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].ffn == HN_FFN_EXPERTS) experts = a->layer[i].experts;
    for (int i = 0; good && i < a->layers; i++) {
        const char *type = listed ? json_string_value(json_array_get(types, (size_t)i)) : i ? sparse : dense;
        good = type && (!strcmp(type, dense) || !strcmp(type, sparse));
        a->layer[i].ffn = good && !strcmp(type, sparse) ? HN_FFN_EXPERTS : HN_FFN_SWIGLU;
        a->layer[i].experts = a->layer[i].ffn == HN_FFN_EXPERTS ? experts : (hn_expert_desc){0};
    }
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_REFUSED, "%s: config.json: mlp_layer_types, expected a list of %d names, %s or %s",
                          hn_source_path(src), a->layers, dense, sparse);
}

/* ---- the rest --------------------------------------------------------------------------------------------------------- */

/* The rotated part follows the latent one in a row; YaRN's mscale_all_dim scales the scores. */
static void finish_rotation(hn_arch *a, bool interleaved) {
    hn_rotation *r = &a->rotation[0];
    const hn_scaling *s = &r->scaling;
    const bool scaled = s->kind == HN_SCALING_YARN && s->factor > 1 && s->mscale_all > 0;
    const float times = scaled ? (float)(0.1 * s->mscale_all * log(s->factor) + 1) : 1;
    r->first = a->layer[0].latent.rank;
    a->rope_interleaved = interleaved;
    for (int i = 0; i < a->layers; i++) a->layer[i].attention_scale *= times * times;
}

void hn_latent_find_tensors(hn_arch *a, const hn_source *src) {
    for (int i = 0; i < a->layers; i++) {
        hn_latent_desc *t = &a->layer[i].latent;
        t->split = a->layer[i].mixer == HN_MIXER_LATENT && is_gguf(src); /* only then a layer has a name for it */
        t->split = t->split && hn_arch_find_tensor(a, src, HN_ROLE_K_B, i);
    }
}

static hunch_status finish(hn_arch *a, const hn_source *src, hunch_error *err) {
    bool interleaved = true, found;
    hunch_status st = is_gguf(src) ? HUNCH_OK : hn_source_bool(src, "rope_interleave", &interleaved, &found, err);
    if (st) return st;
    finish_rotation(a, interleaved);
    hn_latent_find_tensors(a, src);
    for (int i = 0; i < a->layers && is_gguf(src); i++)
        a->layer[i].qkv_bias = hn_arch_find_tensor(a, src, HN_ROLE_KV_A_BIAS, i);
    return finish_experts(a, src, err);
}

static hunch_status finish_glm(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hunch_status st = mark_layers(a, src, err);
    if (st) return st;
    hn_moe_find_tensors(a, src);
    return finish(a, src, err);
}

static hunch_status put(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const hn_latent_desc *t = &a->layer[0].latent;
    const struct {
        const char *suffix;
        int value;
    } keys[] = {{"attention.q_lora_rank", t->query_rank},
                {"attention.kv_lora_rank", t->rank},
                {"attention.key_length_mla", t->nope + t->rope},
                {"attention.value_length_mla", t->value}};
    char key[96];
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < sizeof keys / sizeof *keys; i++) {
        hn_dense_key(a->dense, keys[i].suffix, key);
        if (keys[i].value > 0) st = hn_gguf_put_u32(w, key, (uint32_t)keys[i].value, err);
    }
    return st;
}

/* ---- families --------------------------------------------------------------------------------------------------------- */

static const hn_role_other names[] = {{HN_ROLE_SHARED_GATE, NULL, "model.layers.%d.mlp.shared_experts.gate_proj.weight"},
                                      {HN_ROLE_SHARED_UP, NULL, "model.layers.%d.mlp.shared_experts.up_proj.weight"},
                                      {HN_ROLE_SHARED_DOWN, NULL, "model.layers.%d.mlp.shared_experts.down_proj.weight"},
                                      {HN_ROLES, NULL, NULL}};

static const hn_moe by_softmax = {.count = "n_routed_experts",
                                  .width = "moe_intermediate_size",
                                  .groups = "n_group",
                                  .groups_used = "topk_group",
                                  .scale = "routed_scaling_factor",
                                  .shared_count = "n_shared_experts"};
static const hn_moe by_sigmoid = {.count = "n_routed_experts",
                                  .width = "moe_intermediate_size",
                                  .groups = "n_group",
                                  .groups_used = "topk_group",
                                  .scale = "routed_scaling_factor",
                                  .shared_count = "n_shared_experts",
                                  .sigmoid = true,
                                  .bias = true,
                                  .normalised = {false, true}};

static const hn_dense softmax_family = {.prefix = "deepseek2",
                                        .usual.eps = 1e-6,
                                        .attention_bias = true,
                                        .next_layers = true,
                                        .yarn_scores = true,
                                        .names = names,
                                        .moe = &by_softmax,
                                        .read_heads = read_heads,
                                        .finish = finish,
                                        .put = put};
static const hn_dense sigmoid_family = {.prefix = "deepseek2",
                                        .usual.eps = 1e-6,
                                        .attention_bias = true,
                                        .next_layers = true,
                                        .yarn_scores = true,
                                        .names = names,
                                        .moe = &by_sigmoid,
                                        .read_heads = read_heads,
                                        .finish = finish,
                                        .put = put};
static const hn_dense glm_family = {.prefix = "deepseek2",
                                    .usual.eps = 1e-5,
                                    .attention_bias = true,
                                    .next_layers = true,
                                    .yarn_scores = true,
                                    .names = names,
                                    .moe = &by_sigmoid,
                                    .read_heads = read_heads,
                                    .finish = finish_glm,
                                    .put = put};

static hunch_status read_softmax(hn_arch *a, hn_source *src, hunch_error *err) {
    return hn_dense_read(a, src, &softmax_family, err);
}

static hunch_status read_sigmoid(hn_arch *a, hn_source *src, hunch_error *err) {
    return hn_dense_read(a, src, &sigmoid_family, err);
}

static hunch_status read_glm(hn_arch *a, hn_source *src, hunch_error *err) {
    return hn_dense_read(a, src, &glm_family, err);
}

/* The first reads a GGUF of any: without a key for the function of scores it is softmax. */
const hn_family hn_family_deepseek_v2 = {"deepseek2", "deepseek_v2", read_softmax};
const hn_family hn_family_deepseek_v3 = {"deepseek2", "deepseek_v3", read_sigmoid};
const hn_family hn_family_kimi_k2 = {"deepseek2", "kimi_k2", read_sigmoid};
const hn_family hn_family_glm4_moe_lite = {"deepseek2", "glm4_moe_lite", read_glm};
