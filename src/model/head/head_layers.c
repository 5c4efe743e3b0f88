/* SPDX-License-Identifier: Apache-2.0 */
/* head_layers.c - layers of draft heads with weights for each position, whose folders describe them in another way than a model's:
 *
 *   Hydra's prefix layer   one layer like the target's first, which is its only description
 *   Meta's heads           layers of a checkpoint in Llama's own format: params.json, and names of that format
 *
 * A GGUF describes them like those of every head (head_keys.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/head/head_steps.h"

enum { MOST_WIDTH = 1 << 20 };

static hunch_status layers_create(hn_arch *a, int n, const hn_layer_desc *like, hunch_error *err) {
    a->layer = hn_zalloc((size_t)n, sizeof *a->layer);
    if (!a->layer) return hn_fail_memory(err, "layer descriptions", (size_t)n * sizeof *a->layer);
    a->layers = n;
    a->draft_head.output.norm = HN_NORM_ONCE;
    for (int i = 0; i < n; i++) a->layer[i] = *like;
    return HUNCH_OK;
}

/* ---- Hydra ------------------------------------------------------------------------------------------------------------------ */

#define PREFIX "prefix_embeding_layer.layers.%d."
static const char *const prefix_names[HN_ROLES] = {
    [HN_ROLE_ATTN_NORM] = PREFIX "input_layernorm.weight",
    [HN_ROLE_Q] = PREFIX "self_attn.q_proj.weight",
    [HN_ROLE_K] = PREFIX "self_attn.k_proj.weight",
    [HN_ROLE_V] = PREFIX "self_attn.v_proj.weight",
    [HN_ROLE_O] = PREFIX "self_attn.o_proj.weight",
    [HN_ROLE_FFN_NORM] = PREFIX "post_attention_layernorm.weight",
    [HN_ROLE_GATE] = PREFIX "mlp.gate_proj.weight",
    [HN_ROLE_UP] = PREFIX "mlp.up_proj.weight",
    [HN_ROLE_DOWN] = PREFIX "mlp.down_proj.weight",
};

static hunch_status read_prefix(hn_arch *a, const hn_source *src, const hn_arch *target, hunch_error *err) {
    const hn_layer_desc *of = target->layer;
    if (!of)
        return hn_fail(
            err, HUNCH_USAGE,
            "%s: its prefix layer is like the model's layers: expected --target with the model that it drafts for",
            hn_source_path(src));
    if (of->mixer != HN_MIXER_ATTENTION)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: a prefix layer, expected a model whose first layer has attention",
                       hn_source_path(src));
    const hn_layer_desc like = {.heads = of->heads, .kv_heads = of->kv_heads, .head_dim = of->head_dim,
                                .attention_scale = 1.0f / sqrtf((float)of->head_dim), .ffn = HN_FFN_SWIGLU, .ffn_width = of->ffn_width};
    hn_rotation rotation = target->rotation[0];
    rotation.freq_long = NULL; /* also in long texts it rotates as in short ones */
    hunch_status st = hn_rope_add_copy(a, &rotation, err);
    if (st) return st;
    a->norm_eps = target->norm_eps;
    a->files.layer_names = prefix_names;
    return layers_create(a, 1, &like, err);
}

/* ---- Meta ------------------------------------------------------------------------------------------------------------------ */

static const char *const meta_names[HN_ROLES] = {
    [HN_ROLE_ATTN_NORM] = "extra_heads.%d.attention_norm.weight",
    [HN_ROLE_Q] = "extra_heads.%d.attention.wq.weight",
    [HN_ROLE_K] = "extra_heads.%d.attention.wk.weight",
    [HN_ROLE_V] = "extra_heads.%d.attention.wv.weight",
    [HN_ROLE_O] = "extra_heads.%d.attention.wo.weight",
    [HN_ROLE_FFN_NORM] = "extra_heads.%d.ffn_norm.weight",
    [HN_ROLE_GATE] = "extra_heads.%d.feed_forward.w1.weight",
    [HN_ROLE_UP] = "extra_heads.%d.feed_forward.w3.weight",
    [HN_ROLE_DOWN] = "extra_heads.%d.feed_forward.w2.weight",
};

static int heads_of(const hn_source *src) {
    char name[128];
    int n = 0;
    do
        snprintf(name, sizeof name, meta_names[HN_ROLE_ATTN_NORM], n);
    while (hn_source_find(src, name) && n++ < HN_MOST_HEAD_STEPS);
    return n;
}

static hunch_status read_meta(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key heads_key = {NULL, "n_heads", 1, 1 << 12, NAN}, eps_key = {NULL, "norm_eps", 1e-12, 1, 1e-5},
                 theta_key = {NULL, "rope_theta", 1, 1e12, 10000};
    const hn_tensor *up = hn_source_find(src, "extra_heads.0.feed_forward.w1.weight");
    int heads = 0, kv_heads = 0;
    double eps = 0, theta = 0;
    hunch_status st = hn_key_int(src, &heads_key, &heads, err);
    const hn_key kv_key = {NULL, "n_kv_heads", 1, 1 << 12, heads};
    if (!st) st = hn_key_int(src, &kv_key, &kv_heads, err);
    if (!st) st = hn_key_real(src, &eps_key, &eps, err);
    if (!st) st = hn_key_real(src, &theta_key, &theta, err);
    if (st) return st;
    const int n = heads_of(src), dim = a->hidden / heads;
    if (n < 1 || n > HN_MOST_HEAD_STEPS || !up || up->n_dims != 2 || up->dims[1] < 1 || up->dims[1] > MOST_WIDTH)
        return hn_fail(err, HUNCH_REFUSED, "%s: extra_heads.*: expected 1 to %d blocks of attention and feed_forward",
                       hn_source_path(src), HN_MOST_HEAD_STEPS);
    if (dim * heads != a->hidden || dim % 2 || dim > HN_MAX_HEAD_DIM || heads % kv_heads)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: %d heads, %d of keys, of a model %d wide: expected heads of an even width",
                       hn_source_path(src), heads, kv_heads, a->hidden);
    const hn_layer_desc like = {.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .attention_scale = 1.0f / sqrtf((float)dim),
                                .ffn = HN_FFN_SWIGLU, .ffn_width = (int)up->dims[1]};
    st = hn_rope_add(a, dim, &(hn_scaling){.theta = theta, .factor = 1}, err);
    if (st) return st;
    a->norm_eps = (float)eps;
    a->files.rows_in_pairs = true; /* of Q and K, as in Llama's own files */
    a->files.layer_names = meta_names;
    return layers_create(a, n, &like, err);
}

/* ---- GGUF ------------------------------------------------------------------------------------------------------------------ */

static hunch_status read_gguf(hn_arch *a, hn_source *src, hunch_error *err) {
    const hn_arch before = *a;
    const hn_dense *family;
    bool pairs = false;
    hunch_status st = hn_head_find_family(src, &family, err);
    if (!st) st = hn_dense_read_layers(a, src, family, err);
    if (!st) st = hn_head_read_rotation(a, src, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_KEY_ROWS_IN_PAIRS, &pairs, err);
    a->files.rows_in_pairs = pairs;
    a->draft_head.output.norm = HN_NORM_ONCE;
    if (st) return st;
    return a->hidden == before.hidden ? HUNCH_OK
                                      : hn_fail(err, HUNCH_REFUSED, "%s: layers %d wide, expected the %d of the target",
                                                hn_source_path(src), a->hidden, before.hidden);
}

hunch_status hn_steps_read_layers(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_arch *target, hunch_error *err) {
    if (names->form == HN_HEAD_META) return read_meta(a, src, err);
    if (names->form == HN_HEAD_GGUF_STEPS) return hn_source_find(src, "blk.0.attn_q.weight") ? read_gguf(a, src, err) : HUNCH_OK;
    const bool prefix = names->form == HN_HEAD_HYDRA && hn_source_find(src, "prefix_embeding_layer.layers.0.self_attn.q_proj.weight");
    return prefix ? read_prefix(a, src, target, err) : HUNCH_OK;
}
