/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gemma.c - Gemma 3 (text, alone or in a folder with vision): a dense block with norms before and after both
 * branches, norms of heads, GeGLU, embeddings scaled by the square root of the width; most layers have a window and a
 * rotation base of their own, every sixth has full attention; logits may be capped. Norm weights are stored less 1 in a
 * folder, complete in a GGUF. */
#include <math.h>
#include <string.h>

#include "model/arch/arch.h"

#define CAP "gemma3.final_logit_softcapping"
enum { USUAL_PATTERN = 6, LAYERS_OF_27B = 62, USUAL_LOCAL_BASE = 10000, LONG_CONTEXT = 131072, LONG_FACTOR = 8 };

enum { OF_FULL, OF_LOCAL }; /* the rotations */

/* Which layers are local: layer_types (in a GGUF a list), else all but every sliding_window_pattern-th (default: sixth). */
static hunch_status mark_local(hn_arch *a, const hn_source *src, int window, hunch_error *err) {
    const hn_key every = {"gemma3.attention.sliding_window_pattern", "sliding_window_pattern", 1, 1024, USUAL_PATTERN};
    const hunch_status st = hn_dense_windows(a, src, &every, window, err);
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
static double usual_width(const hn_arch *a, bool gguf) {
    const hn_layer_desc *l = &a->layer[0];
    if (!gguf) return 256;
    return a->layers == LAYERS_OF_27B ? a->hidden / l->heads : l->head_dim;
}

static hunch_status read_rest(hn_arch *a, const hn_source *src, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    const hn_key window = {"gemma3.attention.sliding_window", "sliding_window", 1, 1 << 24, NAN},
                 scalar = {NULL, "query_pre_attn_scalar", 1, 1e6, usual_width(a, gguf)};
    const hn_key most = {CAP, "final_logit_softcapping", 0, 1e9, 0};
    hn_key factor = {"gemma3.attention.scale", NULL, 1e-6, 1e6, 0};
    double width = 0, scale = 0, cap = 0;
    int rows = 0;
    hunch_status st = hn_key_int(src, &window, &rows, err);
    if (!st) st = hn_key_real(src, &scalar, &width, err);
    if (!st) factor.dflt = 1 / sqrt(width);
    if (!st) st = hn_key_real(src, &factor, &scale, err);
    if (!st) st = hn_key_real(src, &most, &cap, err);
    if (!st) st = mark_local(a, src, rows, err);
    if (!st) st = add_local_rotation(a, src, err);
    if (!st && gguf) st = add_stretch(a, src, err);
    if (st) return st;
    a->embed_scale = sqrtf((float)a->hidden);
    a->logit_cap = (float)cap;
    a->files.norms_less_one = !gguf;
    for (int i = 0; i < a->layers; i++) {
        a->layer[i].post_norms = true;
        a->layer[i].ffn = HN_FFN_GEGLU;
        a->layer[i].attention_scale = (float)scale;
    }
    return HUNCH_OK;
}

/* Values that all published models share are not written: programs assume them, and some have no key for them. */
static hunch_status put_own(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const float scale = a->layer[0].attention_scale;
    const double local_base = a->rotation[OF_LOCAL].scaling.theta;
    bool usual = true;
    for (int i = 0; i < a->layers; i++) usual = usual && (a->layer[i].rotation == OF_LOCAL) == ((i + 1) % USUAL_PATTERN != 0);
    hunch_status st = HUNCH_OK;
    if (!usual) st = hn_dense_put_layers(a, w, "gemma3.attention.sliding_window_pattern", hn_dense_slides, err);
    if (!st && fabs((double)scale * sqrt(usual_width(a, true)) - 1) > 1e-6)
        st = hn_gguf_put_f32(w, "gemma3.attention.scale", scale, err);
    if (!st && local_base != USUAL_LOCAL_BASE) st = hn_gguf_put_f32(w, "gemma3.rope.freq_base_swa", (float)local_base, err);
    if (!st && a->logit_cap > 0) st = hn_gguf_put_f32(w, CAP, a->logit_cap, err);
    return st;
}

static hunch_status gemma3_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense gemma3 = {.prefix = "gemma3",
                                    .attention_bias = true,
                                    .qk_norm = true,
                                    .window_key = true,
                                    .no_rope_count = true,
                                    .logit_cap = true,
                                    .theta = 1e6,
                                    .tied = true,
                                    .usual = {8, 4, 256, 131072, 1e-6},
                                    .usual_eps_too = true,
                                    .activation_key = "hidden_activation",
                                    .activation = "gelu_pytorch_tanh",
                                    .finish = read_rest,
                                    .put = put_own};
    return hn_dense_read(a, src, &gemma3, err);
}

const hn_family hn_family_gemma3 = {"gemma3", "gemma3_text", gemma3_read};
