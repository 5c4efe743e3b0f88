/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gemma.c - Gemma 3 (text, alone or in a folder with vision): a dense block with norms before and after both
 * branches, norms of heads, GeGLU, embeddings scaled by the square root of the width; most layers have a window and a
 * rotation base of their own, every sixth has full attention; logits may be capped. Norm weights are stored less 1 in a
 * folder, complete in a GGUF. */
#include <math.h>
#include <string.h>

#include "model/arch/arch.h"

enum { USUAL_PATTERN = 6, LAYERS_OF_27B = 62, USUAL_LOCAL_BASE = 10000, LONG_CONTEXT = 131072, LONG_FACTOR = 8 };

enum { OF_FULL, OF_LOCAL }; /* the rotations */

/* A folder that omits them has these. */
static double usual_kv_heads(const hn_arch *a, const hn_layer_desc *l) { return a->files.form == HN_SOURCE_HF ? 4 : l->heads; }
static double usual_head(const hn_arch *a, const hn_layer_desc *l) { return a->files.form == HN_SOURCE_HF ? 256 : a->hidden / l->heads; }

/* Which layers are local: layer_types (in a GGUF a list), else all but every sliding_window_pattern-th (default: sixth). */
static hunch_status mark_local(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key every = {"gemma3.attention.sliding_window_pattern", "sliding_window_pattern", 1, 1024, USUAL_PATTERN};
    const hunch_status st = hn_family_windows(a, src, &every, a->layer[0].window, err);
    for (int i = 0; i < a->layers; i++) a->layer[i].rotation = a->layer[i].window > 0 ? OF_LOCAL : OF_FULL;
    return st;
}

/* The rotation of local layers has a base of its own: in their own dictionary, else a key beside the other base. It is never scaled. */
static hunch_status add_local_rotation(hn_arch *a, const hn_source *src, hunch_error *err) {
    static const hn_key nested = {NULL, "rope_parameters.sliding_attention.rope_theta", 1, 1e12, 0},
                        older = {"gemma3.rope.local.freq_base", "rope_local_base_freq", 1, 1e12, 0},
                        usual = {"gemma3.rope.freq_base_swa", NULL, 1, 1e12, USUAL_LOCAL_BASE};
    static const hn_key *const places[] = {&nested, &older, &usual};
    const char *type = "default";
    hn_scaling plain = {.theta = 0, .factor = 1};
    bool found;
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < 3 && plain.theta < 1; i++) st = hn_key_real(src, places[i], &plain.theta, err);
    if (!st && hn_source_get_kind(src) == HN_SOURCE_HF)
        st = hn_source_str(src, "rope_parameters.sliding_attention.rope_type", &type, NULL, &found, err);
    if (!st && strcmp(type, "default"))
        st = hn_fail(err, HUNCH_REFUSED, "%s: rope scaling \"%.40s\" of sliding layers, expected default",
                     hn_source_path(src), type);
    return st ? st : hn_rope_add(a, a->rotation[OF_FULL].dims, &plain, err);
}

/* Whether Ollama's converter wrote the file: by a key that only it writes, or one that it alone omits. */
static bool is_ollamas(const hn_source *src) {
    static const char *const own[] = {"gemma3.mm.tokens_per_image", "gemma3.vision.block_count",
                                      "gemma3.rope.global.freq_base", "gemma3.rope.local.freq_base"};
    double v;
    bool found = false;
    for (size_t i = 0; i < sizeof own / sizeof *own && !found; i++) (void)hn_source_f64(src, own[i], &v, &found, NULL);
    if (found) return true;
    (void)hn_source_f64(src, "gemma3.attention.layer_norm_rms_epsilon", &v, &found, NULL);
    return !found;
}

/* The models with a long context stretch the rotation of full layers, which Ollama's converter does not write. */
static hunch_status add_stretch(hn_arch *a, const hn_source *src, hunch_error *err) {
    hn_rotation *r = &a->rotation[OF_FULL];
    const hn_key said = {"gemma3.rope.scaling.factor", NULL, 0, 1e9, -1}; /* -1: absent */
    const char *type;
    double factor;
    bool typed;
    hunch_status st = hn_source_str(src, "gemma3.rope.scaling.type", &type, NULL, &typed, err);
    if (!st) st = hn_key_real(src, &said, &factor, err);
    if (st || typed || factor >= 0 || r->scaling.kind != HN_SCALING_NONE || a->context < LONG_CONTEXT || !is_ollamas(src))
        return st;
    r->scaling.kind = HN_SCALING_LINEAR;
    r->scaling.factor = LONG_FACTOR;
    for (int i = 0; i < r->dims / 2; i++) r->freq[i] /= LONG_FACTOR;
    return HUNCH_OK;
}

/* The default divisor in the square of the attention scale: 256 in a folder; in a GGUF the size of a head, but hidden /
 * heads in the largest model. */
static double usual_width(const hn_arch *a, const hn_layer_desc *l) {
    if (a->files.form != HN_SOURCE_GGUF) return 256;
    return a->layers == LAYERS_OF_27B ? a->hidden / l->heads : l->head_dim;
}

/* In a folder the square of its inverse. */
static hunch_status read_scale(const hn_key_reading *r, const hn_key_row *k HN_UNUSED, double *scale, hunch_error *err) {
    const hn_key scalar = {NULL, "query_pre_attn_scalar", 1, 1e6, usual_width(r->a, r->l)};
    hn_key factor = {"gemma3.attention.scale", NULL, 1e-6, 1e6, 0};
    double width = 0;
    const hunch_status st = hn_key_real(r->src, &scalar, &width, err);
    factor.dflt = 1 / sqrt(width);
    return st ? st : hn_key_real(r->src, &factor, scale, err);
}

static hunch_status read_rest(hn_arch *a, hn_source *src, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    hunch_status st = mark_local(a, src, err);
    if (!st) st = add_local_rotation(a, src, err);
    if (!st && gguf) st = add_stretch(a, src, err);
    a->embed_scale = sqrtf((float)a->hidden);
    a->files.norms_less_one = !gguf;
    return st;
}

/* Values that all published models share are not written: programs assume them, and some have no key for them. */
static bool unusual_pattern(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) {
    for (int i = 0; i < a->layers; i++)
        if ((a->layer[i].rotation == OF_LOCAL) != ((i + 1) % USUAL_PATTERN != 0)) return true;
    return false;
}
static bool unusual_scale(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    const hn_layer_desc *l = &a->layer[0];
    return fabs(*v * sqrt(a->layers == LAYERS_OF_27B ? a->hidden / l->heads : l->head_dim) - 1) > 1e-6;
}

static const hn_key_row keys[] = {
    {HN_MODEL(INT, context), "context_length", "max_position_embeddings", 1, 1 << 24, {NAN, 131072}, HN_NOT_NULL},
    {HN_LAYER(INT, heads), "attention.head_count", "num_attention_heads", 1, 1024, {NAN, 8}, HN_NOT_NULL},
    {HN_LAYER(INT, kv_heads), "attention.head_count_kv", "num_key_value_heads", 1, 1024, .follows = usual_kv_heads},
    {HN_LAYER(INT, head_dim), "attention.key_length", "head_dim", 2, 512, .follows = usual_head, .written = hn_unusual_heads},
    HN_EPS(1e-6, 1e-6),
    {HN_MODEL(INT, rotation[0].dims), NULL},
    HN_THETA(1e6),
    {HN_LAYER(WORD, ffn), NULL, "hidden_activation", HN_FFN_GEGLU, HN_FFN_GEGLU, {HN_FFN_GEGLU, HN_FFN_GEGLU}, 0, "silu gelu_pytorch_tanh"},
    HN_TIED(1),
    {HN_LAYER(INT, window), "attention.sliding_window", "sliding_window", 1, 1 << 24, {NAN, NAN}, .written = hn_any_window},
    HN_ALWAYS(HN_LAYER(BOOL, post_norms), 1),
    {HN_LAYER(LIST, window), "attention.sliding_window_pattern", .how = HN_BEHIND, .each = hn_layer_slides, .written = unusual_pattern},
    {HN_LAYER(FLOAT, attention_scale), "attention.scale", .how = HN_BEHIND, .read = read_scale, .written = unusual_scale},
    {HN_MODEL(REAL, rotation[OF_LOCAL].scaling.theta), "rope.freq_base_swa", .usual = {USUAL_LOCAL_BASE, 0}, .how = HN_LATER | HN_UNUSUAL},
    {HN_MODEL(FLOAT, logit_cap), "final_logit_softcapping", "final_logit_softcapping", 0, 1e9, .how = HN_IF_SET},
    HN_ROWS_END};

const hn_family hn_family_gemma3 = {.gguf_name = "gemma3", .hf_type = "gemma3_text",
                                    .keys = {hn_norms_of_heads, hn_attention_bias_keys, keys}, .finish = read_rest};
