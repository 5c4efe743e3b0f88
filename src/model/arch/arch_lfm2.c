/* SPDX-License-Identifier: Apache-2.0 */
/* arch_lfm2.c - LFM2 and LFM2.5: some layers are attention with normed heads, the others gated short convolutions. The norm before the
 * output matrix is called embedding_norm, and token_embd_norm in a GGUF. With experts: arch_lfm2_moe.c. */
#include <math.h>

#include "model/arch/short_conv_desc.h"
#include "ops/walk.h"

static int kv_heads(const hn_layer_desc *l) { return l->mixer[0].kind == &hn_mixer_attention ? l->kv_heads : 0; }
static void set_conv(hn_layer_desc *l, bool conv) { l->mixer[0].kind = conv ? &hn_mixer_short_conv : &hn_mixer_attention; }

/* ---- which layers ------------------------------------------------------------------------------------------------------ */

/* layer_types, or full_attn_idxs with numbers of layers with attention, of a longer model too; without both all have it. In a GGUF those
 * without key heads are convolutions. */
hunch_status hn_lfm2_layers(hn_arch *a, hn_source *src, hunch_error *err) {
    static const char *const kinds[] = {"full_attention", "conv"};
    const bool gguf = a->files.form == HN_SOURCE_GGUF;
    bool attends[HN_MOST_LAYERS], typed = false, found = false, bias = false;
    int attending = 0;
    hunch_status st = gguf ? hn_family_headless(a, src, set_conv, err)
                           : hn_family_kinds(a, src, "layer_types", kinds, set_conv, &typed, err);
    if (!st) st = hn_family_listed(src, "full_attn_idxs", HN_MOST_LAYERS - 1, attends, &found, err);
    for (int i = 0; !st && !typed && found && i < a->layers; i++) set_conv(&a->layer[i], !attends[i]);
    if (!st && !gguf) st = hn_source_bool(src, "conv_bias", &bias, &found, err);
    for (int i = 0; !st && i < a->layers; i++) {
        hn_layer_desc *l = &a->layer[i];
        attending += kv_heads(l) > 0;
        if (gguf) l->experts.bias = hn_layer_has_experts(l) && hn_arch_find_tensor(a, src, HN_ROLE_ROUTER_BIAS, i);
        if (kv_heads(l) > 0) continue;
        hn_short_conv_at(l)->width = a->hidden;
        hn_short_conv_at(l)->bias = gguf ? hn_arch_find_tensor(a, src, HN_ROLE_SHORT_CONV_IN_BIAS, i) != NULL : bias;
    }
    return st || attending > 0 ? st : hn_fail(err, HUNCH_REFUSED, "%s: none of %d layers has attention, expected at least one",
                                              hn_source_path(src), a->layers);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------- */

/* A folder may have a width of which two thirds are used, times a factor, rounded up. */
static hunch_status read_width(const hn_key_reading *r, const hn_key_row *k, double *v, hunch_error *err) {
    const hn_source *src = r->src;
    const json_t *own = hn_source_config(src, "block_ff_dim");
    const bool rounds = !hn_source_is_null(src, "block_ffn_dim_multiplier"); /* null: it is neither multiplied nor rounded up */
    const hn_key written = {"lfm2.feed_forward_length", own && !json_is_null(own) ? "block_ff_dim" : "intermediate_size", k->least, k->most,
                            hn_source_get_kind(src) == HN_SOURCE_GGUF ? NAN : 12288},
                 times = {NULL, "block_ffn_dim_multiplier", 1e-3, 1e3, 1}, multiple = {NULL, "block_multiple_of", 1, 1 << 20, 256};
    bool adjust = hn_source_get_kind(src) == HN_SOURCE_HF, found; /* an absent key is true */
    int width = 0, to = 1;
    double factor = 1;
    hunch_status st = hn_key_int(src, &written, &width, err);
    if (!st && adjust) st = hn_source_bool(src, "block_auto_adjust_ff_dim", &adjust, &found, err);
    if (!st && adjust && rounds) st = hn_key_real(src, &times, &factor, err);
    if (!st && adjust && rounds) st = hn_key_int(src, &multiple, &to, err);
    *v = adjust ? ((int)(factor * (int)(2.0 * width / 3)) + to - 1) / to * to : width;
    return st || (*v >= k->least && *v <= k->most) ? st : hn_fail(err, HUNCH_REFUSED, "%s: its keys give a width of %g, expected %g to %g",
                                                                    hn_source_path(src), *v, k->least, k->most);
}

const hn_key_row hn_lfm2_keys[] = {
    HN_CONTEXT(128000), HN_THETA(1e6),
    {HN_MODEL(FLOAT, norm_eps), "attention.layer_norm_rms_epsilon", "norm_eps", 0, 1, {NAN, 1e-5}, HN_NOT_NULL},
    {HN_MODEL(BOOL, tied), NULL, "tie_embedding tie_word_embeddings", 0, 1, {0, 1}},
    {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_key_value_heads", 1, 1024, {0, 8}, HN_NEVER_WRITTEN,
     .read = hn_read_kv_heads},
    {HN_LAYER(LIST, mixer), "attention.head_count_kv", .each = kv_heads},
    {HN_SHORT_CONV(INT, taps), "shortconv.l_cache", "conv_L_cache", 1, HN_MOST_TAPS, {NAN, 3}},
    {HN_BESIDE(CLAIM), NULL, "conv_bias"},
    HN_ROWS_END};
static const hn_key_row dense[] = {
    {HN_LAYER(INT, ffn_width), "feed_forward_length", "intermediate_size", 1, 1 << 20, .read = read_width}, HN_ROWS_END};
#define FOLDER(part) "model.layers.%d." part ".weight"
const hn_role_other hn_lfm2_names[] = {
    {HN_ROLE_OUTPUT_NORM, "token_embd_norm.weight", "model.embedding_norm.weight", NULL},
    {HN_ROLE_ATTN_NORM, NULL, FOLDER("operator_norm"), NULL},
    {HN_ROLE_O, NULL, FOLDER("self_attn.out_proj"), NULL},
    {HN_ROLE_Q_NORM, NULL, FOLDER("self_attn.q_layernorm"), NULL},
    {HN_ROLE_K_NORM, NULL, FOLDER("self_attn.k_layernorm"), NULL},
    {HN_ROLE_FFN_NORM, NULL, FOLDER("ffn_norm"), NULL},
    {HN_ROLE_GATE, NULL, FOLDER("feed_forward.w1"), NULL},
    {HN_ROLE_UP, NULL, FOLDER("feed_forward.w3"), NULL},
    {HN_ROLE_DOWN, NULL, FOLDER("feed_forward.w2"), NULL},
    {HN_ROLE_ROUTER, NULL, FOLDER("feed_forward.gate"), NULL},
    {HN_ROLE_ROUTER_BIAS, NULL, "model.layers.%d.feed_forward.expert_bias", NULL},
    {HN_ROLE_EXPERT_GATE, NULL, FOLDER("feed_forward.experts.%d.w1"), NULL},
    {HN_ROLE_EXPERT_UP, NULL, FOLDER("feed_forward.experts.%d.w3"), NULL},
    {HN_ROLE_EXPERT_DOWN, NULL, FOLDER("feed_forward.experts.%d.w2"), NULL},
    {HN_ROLES, NULL, NULL, NULL}};
const hn_family hn_family_lfm2 = {.gguf_name = "lfm2", .hf_type = "lfm2", .names = hn_lfm2_names,
                                  .keys = {hn_norms_of_heads, hn_lfm2_keys, dense}, .finish = hn_lfm2_layers};
