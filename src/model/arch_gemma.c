/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gemma.c - Gemma 3 (text): a dense block with norms behind both branches as well as before them, norms of heads, GeGLU,
 * embeddings scaled by the root of the width; most layers see a window and rotate with a base of their own, every sixth
 * sees everything. Norm weights lie less 1 in a folder, whole in a GGUF. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch.h"

#define LAYER(name) "model.layers.%d." name ".weight"
static const char *const hf_names[HN_ROLES] = {[HN_ROLE_EMBEDDING] = "model.embed_tokens.weight",
                                               [HN_ROLE_OUTPUT_NORM] = "model.norm.weight",
                                               [HN_ROLE_OUTPUT] = "lm_head.weight",
                                               [HN_ROLE_ATTN_NORM] = LAYER("input_layernorm"),
                                               [HN_ROLE_Q] = LAYER("self_attn.q_proj"),
                                               [HN_ROLE_K] = LAYER("self_attn.k_proj"),
                                               [HN_ROLE_V] = LAYER("self_attn.v_proj"),
                                               [HN_ROLE_O] = LAYER("self_attn.o_proj"),
                                               [HN_ROLE_FFN_NORM] = LAYER("pre_feedforward_layernorm"),
                                               [HN_ROLE_GATE] = LAYER("mlp.gate_proj"),
                                               [HN_ROLE_UP] = LAYER("mlp.up_proj"),
                                               [HN_ROLE_DOWN] = LAYER("mlp.down_proj"),
                                               [HN_ROLE_Q_NORM] = LAYER("self_attn.q_norm"),
                                               [HN_ROLE_K_NORM] = LAYER("self_attn.k_norm"),
                                               [HN_ROLE_POST_ATTN_NORM] = LAYER("post_attention_layernorm"),
                                               [HN_ROLE_POST_FFN_NORM] = LAYER("post_feedforward_layernorm")};

/* Which layers see everything: layer_types, else every sliding_window_pattern-th, else (and in a GGUF) every sixth. */
static hunch_status mark_local(hn_arch *a, const hn_source *src, int window, hunch_error *err) {
    const json_t *config = hn_source_json(src, "config.json"), *types = json_object_get(config, "layer_types"),
                 *every = json_object_get(config, "sliding_window_pattern");
    const json_int_t pattern = json_is_integer(every) ? json_integer_value(every) : 6;
    if (json_is_array(types) && json_array_size(types) != (size_t)a->layers)
        return hn_fail(err, HUNCH_REFUSED, "%s: config.json: layer_types, expected a list of %d names",
                       hn_source_path(src), a->layers);
    if (pattern < 1)
        return hn_fail(err, HUNCH_REFUSED, "%s: config.json: sliding_window_pattern, expected 1 or more",
                       hn_source_path(src));
    for (int i = 0; i < a->layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        a->layer[i].local = json_is_array(types) ? type && !strcmp(type, "sliding_attention") : (i + 1) % pattern != 0;
        a->layer[i].window = a->layer[i].local ? window : 0;
    }
    return HUNCH_OK;
}

static hunch_status make_local_rope(hn_arch *a, double base, hunch_error *err) {
    a->rope_local = hn_zalloc((size_t)a->rope_dims / 2, sizeof *a->rope_local);
    if (!a->rope_local) return hn_fail_memory(err, "rope frequencies", (size_t)a->rope_dims * sizeof(double));
    for (int i = 0; i < a->rope_dims / 2; i++) a->rope_local[i] = pow(base, -2.0 * i / a->rope_dims);
    return HUNCH_OK;
}

hunch_status hn_gemma_finish(hn_arch *a, const hn_source *src, hunch_error *err) {
    enum { LAYERS_OF_27B = 62 };
    const bool folder = hn_source_get_kind(src) == HN_SOURCE_HF;
    const hn_layer_desc *l = &a->layer[0];
    /* a GGUF does not say: the largest alone divides by the width a head would have */
    const double usual = a->layers == LAYERS_OF_27B ? a->hidden / l->heads : l->head_dim;
    const hn_key window = {"gemma3.attention.sliding_window", "sliding_window", 1, 1 << 24, NAN},
                 base = {NULL, "rope_local_base_freq", 1, 1e12, 10000},
                 base_new = {NULL, "rope_parameters.sliding_attention.rope_theta", 1, 1e12, 0},
                 scalar = {NULL, "query_pre_attn_scalar", 1, 1e6, usual};
    const char *act = "gelu_pytorch_tanh";
    double local_base = 10000, per_query = usual;
    int rows = 0;
    bool found;
    hunch_status st = hn_key_int(src, &window, &rows, err);
    if (!st && folder) st = hn_key_real(src, &base_new, &local_base, err);
    if (!st && folder && local_base < 1) st = hn_key_real(src, &base, &local_base, err);
    if (!st && folder) st = hn_key_real(src, &scalar, &per_query, err);
    if (!st && folder) st = hn_source_str(src, "hidden_activation", &act, NULL, &found, err);
    if (!st && strcmp(act, "gelu_pytorch_tanh"))
        st = hn_fail(err, HUNCH_REFUSED, "%s: hidden_activation is \"%.40s\", expected gelu_pytorch_tanh",
                     hn_source_path(src), act);
    if (!st) st = mark_local(a, src, rows, err);
    if (!st) st = make_local_rope(a, local_base, err);
    if (st) return st;
    a->embed_scale = sqrtf((float)a->hidden);
    a->norms_less_one = folder;
    for (int i = 0; i < a->layers; i++) {
        a->layer[i].post_norms = true;
        a->layer[i].ffn = HN_FFN_GEGLU;
        a->layer[i].attention_scale = (float)(1 / sqrt(per_query));
    }
    return HUNCH_OK;
}

static hunch_status gemma3_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense gemma3 = {.prefix = "gemma3", .qk_norm = true, .gemma = true, .hf_names = hf_names};
    return hn_dense_read(a, src, &gemma3, err);
}

const hn_family hn_family_gemma3 = {"gemma3", "gemma3_text", gemma3_read};
