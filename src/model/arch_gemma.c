/* SPDX-License-Identifier: Apache-2.0 */
/* arch_gemma.c - Gemma 3 (text): a dense block with norms behind both branches as well as before them, norms of heads, GeGLU,
 * embeddings scaled by the root of the width; most layers see a window and rotate with a base of their own, every sixth
 * sees everything. Norm weights lie less 1 in a folder, whole in a GGUF. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch.h"

enum { USUAL_PATTERN = 6, LAYERS_OF_27B = 62 };
static const double USUAL_LOCAL_BASE = 10000;

/* Which layers see everything: layer_types, else every sliding_window_pattern-th, else (and in a GGUF) every sixth. */
static hunch_status mark_local(hn_arch *a, const hn_source *src, int window, hunch_error *err) {
    const json_t *config = hn_source_json(src, "config.json"), *types = json_object_get(config, "layer_types"),
                 *every = json_object_get(config, "sliding_window_pattern");
    const json_int_t pattern = json_is_integer(every) ? json_integer_value(every) : USUAL_PATTERN;
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

/* What the square of the attention scale divides by where nothing is said, as in a GGUF: the size of a head; of the largest
 * model the width that a head would have. */
static double usual_width(const hn_arch *a) {
    const hn_layer_desc *l = &a->layer[0];
    return a->layers == LAYERS_OF_27B ? a->hidden / l->heads : l->head_dim;
}

static hunch_status read_rest(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key window = {"gemma3.attention.sliding_window", "sliding_window", 1, 1 << 24, NAN},
                 base = {NULL, "rope_local_base_freq", 1, 1e12, USUAL_LOCAL_BASE},
                 base_new = {NULL, "rope_parameters.sliding_attention.rope_theta", 1, 1e12, 0},
                 scalar = {NULL, "query_pre_attn_scalar", 1, 1e6, usual_width(a)};
    double local_base = 0, width = 0;
    int rows = 0;
    hunch_status st = hn_key_int(src, &window, &rows, err);
    if (!st) st = hn_key_real(src, &base_new, &local_base, err);
    if (!st && local_base < 1) st = hn_key_real(src, &base, &local_base, err);
    if (!st) st = hn_key_real(src, &scalar, &width, err);
    if (!st) st = mark_local(a, src, rows, err);
    if (!st) st = make_local_rope(a, local_base, err);
    if (st) return st;
    a->embed_scale = sqrtf((float)a->hidden);
    a->norms_less_one = hn_source_get_kind(src) == HN_SOURCE_HF;
    for (int i = 0; i < a->layers; i++) {
        a->layer[i].post_norms = true;
        a->layer[i].ffn = HN_FFN_GEGLU;
        a->layer[i].attention_scale = (float)(1 / sqrt(width));
    }
    return HUNCH_OK;
}

static hunch_status fits_gguf(const hn_arch *a, const hn_source *src, hunch_error *err) {
    bool usual = fabs((double)a->layer[0].attention_scale * sqrt(usual_width(a)) - 1) < 1e-6 &&
                 (a->rope_dims < 4 || fabs(a->rope_local[1] / pow(USUAL_LOCAL_BASE, -2.0 / a->rope_dims) - 1) < 1e-9);
    for (int i = 0; i < a->layers; i++) usual = usual && a->layer[i].local == ((i + 1) % USUAL_PATTERN != 0);
    return usual ? HUNCH_OK
                 : hn_fail(
                       err, HUNCH_REFUSED,
                       "%s: a gemma3 GGUF file has no place for another order of layers, local rope base or attention "
                       "scale than the published ones",
                       hn_source_path(src));
}

static hunch_status gemma3_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense gemma3 = {.prefix = "gemma3",
                                    .qk_norm = true,
                                    .window_key = true,
                                    .no_rope_count = true,
                                    .theta = 1e6,
                                    .activation_key = "hidden_activation",
                                    .activation = "gelu_pytorch_tanh",
                                    .finish = read_rest,
                                    .fits_gguf = fits_gguf};
    return hn_dense_read(a, src, &gemma3, err);
}

const hn_family hn_family_gemma3 = {"gemma3", "gemma3_text", gemma3_read};
