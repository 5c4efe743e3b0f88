/* SPDX-License-Identifier: Apache-2.0 */
/* arch_granite_hybrid.c - Granite 4 and Bamba: layers with attention among state space layers. Granite's attention has no positions unless
 * position_embedding_type is "rope"; its feed-forward half is what it calls shared_mlp, beside experts or alone, and its four multipliers
 * are Granite 3's. Bamba rotates half of a head. Both are granitehybrid in a GGUF. */
#include <math.h>

#include "model/arch/ssm_rows.h"

static int kv_heads(const hn_layer_desc *l) { return l->mixer[0].kind == &hn_mixer_attention ? l->kv_heads : 0; }
static void set_ssm(hn_layer_desc *l, bool ssm) { l->mixer[0].kind = ssm ? &hn_mixer_ssm : &hn_mixer_attention; }
static bool is_gguf(const hn_arch *a) { return a->files.form == HN_SOURCE_GGUF; }

/* "auto": of so many heads that together are `mamba_expand` times as wide as the model. */
static hunch_status read_head_dim(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    hn_key_buf key;
    const json_t *said = hn_source_config(r->src, "mamba_d_head");
    const int heads = hn_ssm_at(r->l)->heads;
    int n = 0, expand = 2;
    const bool gguf = hn_source_get_kind(r->src) == HN_SOURCE_GGUF;
    const bool follows = !gguf && (!said || json_is_null(said) || (json_is_string(said) && !strcmp(json_string_value(said), "auto")));
    const hn_key times = {NULL, "mamba_expand", 1, 64, 2};
    hunch_status st = follows ? hn_key_int(r->src, &times, &expand, err)
                              : hn_key_int(r->src, hn_family_key_of(&key, r->a->family, "ssm.inner_size", "mamba_d_head", 1,
                                                                    hn_ssm_most_inner(r->a), NAN), &n, err);
    *v = follows ? (double)expand * r->a->hidden / heads : n;
    if (!st && (*v < k->least || *v > hn_ssm_most_inner(r->a) || *v != floor(*v)))
        st = hn_fail(err, HUNCH_REFUSED, "%s: mamba_expand %d and mamba_n_heads %d give heads of %g, expected 1 to %d",
                     hn_source_path(r->src), expand, heads, *v, HN_SSM_MOST_DIM);
    return st;
}

static const hn_key_row sizes[] = {
    {HN_LAYER(LIST, mixer), "attention.head_count_kv", .each = kv_heads},
    {HN_SSM(INT, taps), "ssm.conv_kernel", "mamba_d_conv", 1, HN_MOST_TAPS, {NAN, 4}},
    {HN_SSM(INT, state), "ssm.state_size", "mamba_d_state", 1, HN_SSM_MOST_STATE, {NAN, 256}},
    {HN_SSM(INT, groups), "ssm.group_count", "mamba_n_groups", 1, 1024, {NAN, 1}},
    {HN_SSM(INT, heads), "ssm.time_step_rank", "mamba_n_heads", 1, 1024, {NAN, 128}},
    {HN_SSM(INT, head_dim), "ssm.inner_size", "mamba_d_head", 1, 0, {NAN, 64}, .up_to = hn_ssm_most_inner, .read = read_head_dim,
     .written = hn_ssm_write_inner},
    {HN_BESIDE(CLAIM), NULL, "mamba_conv_bias mamba_proj_bias mamba_expand"},
    HN_ROWS_END};

/* In layers without attention nothing that attention has. */
static hunch_status finish_layers(hn_arch *a, const hn_source *src, hunch_error *err) {
    const bool gguf = is_gguf(a);
    for (int i = 0; i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        const bool attends = kv_heads(l) > 0;
        l->qkv_bias = attends && (gguf ? hn_arch_find_tensor(a, src, HN_ROLE_Q_BIAS, i) != NULL : l->qkv_bias);
        l->o_bias = attends && (gguf ? hn_arch_find_tensor(a, src, HN_ROLE_O_BIAS, i) != NULL : l->o_bias);
        if (!attends) l->rotation = HN_NO_ROTATION;
    }
    return hn_ssm_finish(a, src, "mamba_conv_bias", true, "mamba_proj_bias", err);
}

/* ---- Granite 4 ---------------------------------------------------------------------------------------------------------- */

/* The kinds of layers as files name them, and as transformers 5 writes them. */
static const char *const kinds[2][2] = {{"attention", "mamba"}, {"full_attention", "linear_attention"}};
static const char *const *kinds_of(const json_t *list) {
    const char *first = json_string_value(json_array_get(list, 0));
    return kinds[first && (!strcmp(first, kinds[1][0]) || !strcmp(first, kinds[1][1]))];
}
/* layer_types, or as older files call it; NULL: neither. */
static const char *path_of_kinds(const hn_source *src) {
    return hn_source_config(src, "layer_types") ? "layer_types" : hn_source_config(src, "layers_block_type") ? "layers_block_type" : NULL;
}

/* Without a list no layer attends. */
static hunch_status read_kinds(hn_arch *a, const hn_source *src, hunch_error *err) {
    const char *path = path_of_kinds(src);
    bool found = false;
    if (is_gguf(a)) return hn_family_headless(a, src, set_ssm, err);
    const hunch_status st = path ? hn_family_kinds(a, src, path, kinds_of(hn_source_config(src, path)), set_ssm, &found, err) : HUNCH_OK;
    for (int i = 0; !st && !found && i < a->layers; i++) set_ssm(&a->layer[i], true);
    return st;
}

/* Positions: a folder names them; a GGUF has them unless it says otherwise, by a key that means something else of other families. */
static hunch_status read_positions(hn_arch *a, const hn_source *src, hunch_error *err) {
    const char *said = NULL;
    bool found = false, turns = true;
    if (is_gguf(a)) {
        char key[96];
        hn_family_key(a->family, "rope.scaling.finetuned", key);
        const hunch_status st = hn_source_bool(src, key, &turns, &found, err);
        if (st) return st;
    } else if (!hn_source_is_null(src, "position_embedding_type")) {
        const hunch_status st = hn_source_str(src, "position_embedding_type", &said, NULL, &found, err);
        if (st) return st;
        if (found && strcmp(said, "rope") && strcmp(said, "nope"))
            return hn_fail(err, HUNCH_REFUSED, "%s: position_embedding_type is \"%.40s\", expected rope or nope",
                           hn_source_path(src), said);
    }
    if (!is_gguf(a)) turns = found && !strcmp(said, "rope");
    for (int i = 0; i < a->layers && !turns; i++) a->layer[i].rotation = HN_NO_ROTATION;
    return HUNCH_OK;
}

/* A GGUF whose heads turn by half is Bamba's. llama.cpp's converter has the rows of whole heads in pairs, by which row 2i and the one half
 * a head behind it turn together, and odd ones not at all; ours has those that turn in pairs, as programs read them, and says so. */
static hunch_status read_paired(hn_arch *a, const hn_source *src, hunch_error *err) {
    const int size = a->layer[0].head_dim, dims = a->rotation[0].dims;
    hn_key_buf key;
    int paired = 0;
    if (!is_gguf(a) || dims == size) return HUNCH_OK;
    const hunch_status st = hn_key_int(src, hn_family_key_of(&key, a->family, "hunch.paired_dims", NULL, 2, size, size), &paired, err);
    if (st || paired == dims) return st;
    if (paired != size || 2 * dims != size || a->rotation[0].freq_long)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d of %d dims of a head turn, whose rows are in pairs up to %d, expected half of it and "
                       "pairs up to there or in all", hn_source_path(src), dims, size, paired);
    a->rope_interleaved = false;
    return hn_rope_spread(a, size, err);
}

static hunch_status finish(hn_arch *a, hn_source *src, hunch_error *err) {
    const bool folder = !is_gguf(a);
    hunch_status st = hn_granite_divide_logits(a, src, err);
    if (!st) st = read_kinds(a, src, err);
    if (!st) st = read_positions(a, src, err);
    if (!st) st = read_paired(a, src, err);
    for (int i = 0; i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        l->fused_gate_up = folder && hn_layer_is_dense(l);
        l->experts.shared_fused = folder && l->experts.shared_width > 0;
    }
    a->files.gate_up_apart = folder;
    return st ? st : finish_layers(a, src, err);
}

static bool is_dense(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) { return !hn_layer_has_experts(&a->layer[0]); }
static bool is_sparse(const hn_arch *a, const hn_key_row *k, double *v) { return !is_dense(a, k, v); }
static bool turns(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v = 0;
    for (int i = 0; i < a->layers; i++)
        if (kv_heads(&a->layer[i]) > 0 && a->layer[i].rotation != HN_NO_ROTATION) *v = 1;
    return true;
}
static bool turns_in_part(const hn_arch *a, const hn_key_row *k, double *v) {
    *v = a->rotation[0].dims;
    return *v < a->layer[0].head_dim && turns(a, k, &(double){0});
}
/* Heads without any key heads are asked for too. */
static hunch_status read_kv(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    hn_key_buf key;
    const hn_array *list = NULL;
    bool some = false;
    const char *name = hn_family_key_of(&key, r->a->family, k->gguf, NULL, 0, 0, 0)->gguf;
    const bool listed = hn_source_get_kind(r->src) == HN_SOURCE_GGUF && !hn_source_array(r->src, name, &list, NULL) && list;
    for (size_t i = 0; listed && i < hn_array_count(list); i++) some = some || hn_array_number(list, i) != 0;
    *v = r->l->heads;
    return listed && !some ? HUNCH_OK : (*v = 0, hn_read_kv_heads(r, k, v, err));
}

#define KV_HEADS(folder) {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_key_value_heads", 1, 1024, {0, folder}, \
                          HN_NEVER_WRITTEN, .read = read_kv}
#define POSITIONS {HN_BESIDE(BOOL), "rope.scaling.finetuned", .how = HN_LATER, .written = turns}, \
                  {HN_BESIDE(INT), "hunch.paired_dims", .how = HN_LATER, .written = turns_in_part}
static const hn_key_row keys[] = {
    HN_EPS(NAN, 1e-6), KV_HEADS(0),
    {HN_LAYER(INT, ffn_width), "feed_forward_length", "shared_intermediate_size", 1, 1 << 20, {NAN, 1024}, .written = is_dense},
    {HN_LAYER(INT, experts.count), "expert_count", "num_local_experts", 0, HN_MAX_EXPERTS, {0, 8}, HN_IF_SET},
    {HN_LAYER(INT, experts.used), "expert_used_count", "num_experts_per_tok", 0, HN_MAX_USED, {0, 2}, HN_IF_SET},
    {HN_LAYER(INT, experts.width), "feed_forward_length", "intermediate_size", 1, 1 << 20, {NAN, NAN}, .written = is_sparse},
    {HN_LAYER(INT, experts.shared_width), "expert_shared_feed_forward_length", "shared_intermediate_size", 0, 1 << 20, {0, 1024},
     .written = is_sparse},
    POSITIONS,
    {HN_BESIDE(CLAIM), NULL, "layer_types layers_block_type position_embedding_type"},
    HN_ROWS_END};

#define FOLDER(part) "model.layers.%d." part ".weight"
static const hn_role_other names[] = {
    {HN_ROLE_GATE_UP, NULL, FOLDER("shared_mlp.input_linear"), NULL},
    {HN_ROLE_DOWN, NULL, FOLDER("shared_mlp.output_linear"), NULL},
    {HN_ROLE_SHARED_GATE_UP, NULL, FOLDER("shared_mlp.input_linear"), NULL},
    {HN_ROLE_SHARED_DOWN, NULL, FOLDER("shared_mlp.output_linear"), NULL},
    {HN_ROLE_ROUTER, NULL, FOLDER("block_sparse_moe.router.layer"), FOLDER("block_sparse_moe.router.layer")},
    {HN_ROLE_EXPERT_GATE_UP, NULL, NULL, FOLDER("block_sparse_moe.input_linear")},
    {HN_ROLE_EXPERT_DOWN, NULL, NULL, FOLDER("block_sparse_moe.output_linear")},
    HN_NAMES_END};

/* Without state space layers and experts it is Granite 3 by other names, and so in a GGUF: llama.cpp's graph of granitehybrid needs both
 * kinds of layers. */
static hunch_status finish_alone(hn_arch *a, hn_source *src, hunch_error *err) {
    for (int i = 0; i < a->layers; i++) a->layer[i].fused_gate_up = true;
    a->files.gate_up_apart = true;
    return hn_granite_divide_logits(a, src, err);
}
static const hn_key_row alone[] = {
    HN_EPS(NAN, 1e-6),
    {HN_LAYER(INT, ffn_width), "feed_forward_length", "shared_intermediate_size", 1, 1 << 20, {NAN, 1024}},
    {HN_BESIDE(CLAIM), NULL, "layer_types layers_block_type position_embedding_type intermediate_size num_local_experts"},
    HN_ROWS_END};
static const hn_family granite_alone = {.gguf_name = "granite", .hf_type = "granitemoehybrid", .names = names, .pairs = true,
                                        .keys = {hn_attention_bias_keys, hn_granite_multipliers, alone}, .finish = finish_alone};

static bool all_attend(const json_t *list) {
    size_t n = 0;
    while (n < json_array_size(list) && json_is_string(json_array_get(list, n)) &&
           !strcmp(json_string_value(json_array_get(list, n)), kinds_of(list)[0]))
        n++;
    return n > 0 && n == json_array_size(list);
}
static hunch_status which_hybrid(const hn_family **f, const hn_source *src, hunch_error *err HN_UNUSED) {
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return HUNCH_OK;
    const char *path = path_of_kinds(src);
    const json_t *turns = hn_source_config(src, "position_embedding_type"),
                 *experts = hn_source_config(src, "num_local_experts");
    if (path && all_attend(hn_source_config(src, path)) && json_is_string(turns) && !strcmp(json_string_value(turns), "rope") &&
        json_is_integer(experts) && json_integer_value(experts) == 0)
        *f = &granite_alone;
    return HUNCH_OK;
}

const hn_family hn_family_granitemoehybrid = {.gguf_name = "granitehybrid", .hf_type = "granitemoehybrid", .names = names, .pairs = true,
                                              .keys = {hn_attention_bias_keys, hn_moe_keys, hn_moe_normalised, hn_granite_multipliers,
                                                       hn_ssm_limits, sizes, keys}, .which = which_hybrid, .finish = finish};

/* ---- Bamba -------------------------------------------------------------------------------------------------------------- */

static hunch_status finish_bamba(hn_arch *a, hn_source *src, hunch_error *err) {
    bool attends[HN_MOST_LAYERS], found;
    const hunch_status st = hn_family_listed(src, "attn_layer_indices", a->layers - 1, attends, &found, err);
    for (int i = 0; !st && i < a->layers; i++) set_ssm(&a->layer[i], !attends[i]);
    return st ? st : finish_layers(a, src, err);
}

static const hn_key_row of_bamba[] = {
    HN_EPS(NAN, 1e-5), KV_HEADS(8), HN_CONTEXT(262144),
    {HN_MODEL(REAL, files.rotated), .usual = {0.5, 0.5}},
    POSITIONS,
    {HN_BESIDE(CLAIM), NULL, "attn_layer_indices"},
    HN_ROWS_END};
static const hn_role_other names_of_bamba[] = {
    {HN_ROLE_OUTPUT_NORM, NULL, "model.final_layernorm.weight", NULL},
    {HN_ROLE_FFN_NORM, NULL, FOLDER("pre_ff_layernorm"), NULL},
    {HN_ROLE_GATE, NULL, FOLDER("feed_forward.gate_proj"), NULL},
    {HN_ROLE_UP, NULL, FOLDER("feed_forward.up_proj"), NULL},
    {HN_ROLE_DOWN, NULL, FOLDER("feed_forward.down_proj"), NULL},
    {HN_ROLE_GATE_BIAS, NULL, "model.layers.%d.feed_forward.gate_proj.bias", NULL},
    {HN_ROLE_UP_BIAS, NULL, "model.layers.%d.feed_forward.up_proj.bias", NULL},
    {HN_ROLE_DOWN_BIAS, NULL, "model.layers.%d.feed_forward.down_proj.bias", NULL},
    HN_NAMES_END};
const hn_family hn_family_bamba = {.gguf_name = "granitehybrid", .hf_type = "bamba", .names = names_of_bamba, .pairs = true,
                                   .keys = {hn_attention_bias_keys, hn_mlp_bias_keys, hn_ssm_limits, sizes, of_bamba},
                                   .finish = finish_bamba};
