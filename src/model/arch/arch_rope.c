/* SPDX-License-Identifier: Apache-2.0 */
/* arch_rope.c - the frequencies of the rotation: reading a file's scaling, and making them (linear, llama3, YaRN, longrope).
 *
 * Frequencies are fixed when a model (longrope: an engine) opens. Scalings that depend on the current length of the text are
 * refused: a row's value would depend on later rows (contract C2). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch/arch.h"

static const double MAX_FACTOR = 1e9;

/* ---- making them --------------------------------------------------------------------------------------------------- */

/* The dim whose wave turns n times within the original context. */
static double dim_of_turns(const hn_scaling *s, int dims, double n) {
    return dims * log(s->original / (n * 2 * M_PI)) / (2 * log(s->theta));
}

/* How far frequency i is scaled: 0 not at all, 1 by the whole factor. */
static double yarn_ramp(const hn_scaling *s, int dims, int i) {
    double first = dim_of_turns(s, dims, s->fast), last = dim_of_turns(s, dims, s->slow);
    if (s->whole) {
        first = floor(first);
        last = ceil(last);
    }
    first = fmax(first, 0);
    last = fmin(last, dims - 1);
    if (first == last) last += 0.001;
    return fmin(fmax((i - first) / (last - first), 0), 1);
}

static double llama3_slowed(const hn_scaling *s, double f) {
    const double turns = s->original * f / (2 * M_PI);
    if (turns > s->high) return f;
    if (turns < s->low) return f / s->factor;
    const double keep = (turns - s->low) / (s->high - s->low);
    return (1 - keep) * f / s->factor + keep * f;
}

void hn_rope_frequencies(const hn_scaling *s, int dims, double *freq) {
    for (int i = 0; i < dims / 2; i++) {
        const double f = pow(s->theta, -2.0 * i / dims);
        freq[i] = f;
        if (s->kind == HN_SCALING_LINEAR) freq[i] = f / s->factor;
        if (s->kind == HN_SCALING_LLAMA3) freq[i] = llama3_slowed(s, f);
        if (s->kind == HN_SCALING_YARN) {
            const double slowed = yarn_ramp(s, dims, i);
            freq[i] = f * (1 - slowed) + f / s->factor * slowed;
        }
    }
}

static double yarn_scale(double factor, double mscale) {
    return factor > 1 ? 0.1 * mscale * log(factor) + 1 : 1;
}

double hn_rope_usual_amplitude(const hn_scaling *s) {
    if (s->kind == HN_SCALING_YARN)
        return s->mscale != 0 && s->mscale_all != 0
                   ? yarn_scale(s->factor, s->mscale) / yarn_scale(s->factor, s->mscale_all)
                   : yarn_scale(s->factor, 1);
    if (s->kind == HN_SCALING_LONGROPE && s->factor > 1) return sqrt(1 + log(s->factor) / log(s->original));
    return 1;
}

/* ---- a folder ------------------------------------------------------------------------------------------------------- */

/* A number below `where` ("rope_scaling"); null is absent. */
static hunch_status number_at(const hn_source *src, const char *where, const char *name, double min, double max,
                              double dflt, double *out, hunch_error *err) {
    char path[96];
    snprintf(path, sizeof path, "%s.%s", where, name);
    const hn_key k = {NULL, path, min, max, dflt};
    return hn_key_real(src, &k, out, err);
}

static hunch_status folder_llama3(hn_scaling *s, const hn_source *src, const char *where, hunch_error *err) {
    hunch_status st = number_at(src, where, "low_freq_factor", 1e-6, 1e9, NAN, &s->low, err);
    if (!st) st = number_at(src, where, "high_freq_factor", 1e-6, 1e9, NAN, &s->high, err);
    if (!st && s->high <= s->low)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s.high_freq_factor %g, expected more than low_freq_factor %g",
                     hn_source_path(src), where, s->high, s->low);
    return st;
}

static hunch_status folder_yarn(hn_scaling *s, const hn_source *src, const char *where, hunch_error *err) {
    char path[96];
    bool found;
    snprintf(path, sizeof path, "%s.truncate", where);
    s->whole = true;
    hunch_status st = hn_source_bool(src, path, &s->whole, &found, err);
    if (!st) st = number_at(src, where, "beta_fast", 1e-3, 1e6, 32, &s->fast, err);
    if (!st) st = number_at(src, where, "beta_slow", 1e-3, 1e6, 1, &s->slow, err);
    if (!st) st = number_at(src, where, "mscale", 0, 1e3, 0, &s->mscale, err);
    if (!st) st = number_at(src, where, "mscale_all_dim", 0, 1e3, 0, &s->mscale_all, err);
    return st;
}

/* freq[i] = theta^(-2i / dims) / list[i]. */
static hunch_status folder_table(const hn_arch *a, const hn_source *src, const char *where, const char *name,
                                 double *freq, hunch_error *err) {
    char path[96];
    snprintf(path, sizeof path, "%s.%s", where, name);
    const json_t *list = hn_source_config(src, path);
    bool good = json_is_array(list) && json_array_size(list) == (size_t)a->rope_dims / 2;
    for (int i = 0; good && i < a->rope_dims / 2; i++) {
        const double d = json_number_value(json_array_get(list, (size_t)i)); /* 0: not a number */
        good = d > 0 && d < MAX_FACTOR;
        freq[i] = pow(a->scaling.theta, -2.0 * i / a->rope_dims) / d;
    }
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s, expected a list of %d positive numbers",
                          hn_source_path(src), path, a->rope_dims / 2);
}

static hunch_status fail_no_memory(const hn_arch *a, hunch_error *err) {
    return hn_fail_memory(err, "rope frequencies", (size_t)a->rope_dims / 2 * sizeof(double));
}

static hunch_status folder_longrope(hn_arch *a, const hn_source *src, const char *where, hunch_error *err) {
    a->rope_long = hn_zalloc((size_t)a->rope_dims / 2, sizeof *a->rope_long);
    if (!a->rope_long) return fail_no_memory(a, err);
    hunch_status st = folder_table(a, src, where, "short_factor", a->rope_freq, err);
    return st ? st : folder_table(a, src, where, "long_factor", a->rope_long, err);
}

/* Finds where a folder specifies its scaling (per kind of layer, as transformers 5 writes it, or as most files have it), and its kind. */
static hunch_status folder_kind(hn_scaling *s, const hn_source *src, const char **where, hunch_error *err) {
    static const char *const places[] = {"rope_parameters.full_attention", "rope_parameters", "rope_scaling"},
                             *const spellings[] = {"rope_type", "type"};
    static const struct {
        const char *name;
        hn_scaling_kind kind;
    } kinds[] = {{"default", HN_SCALING_NONE}, {"linear", HN_SCALING_LINEAR},     {"llama3", HN_SCALING_LLAMA3},
                 {"yarn", HN_SCALING_YARN},    {"longrope", HN_SCALING_LONGROPE}, {"su", HN_SCALING_LONGROPE}};
    const char *type = "default";
    *where = NULL;
    for (int p = 0; p < 3 && !*where; p++)
        for (int i = 0; i < 2 && !*where; i++) {
            char key[96];
            bool found = false;
            snprintf(key, sizeof key, "%s.%s", places[p], spellings[i]);
            hunch_status st = hn_source_str(src, key, &type, NULL, &found, err);
            if (st) return st;
            if (found) *where = places[p];
        }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(type, kinds[i].name)) {
            s->kind = kinds[i].kind;
            return HUNCH_OK;
        }
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: rope scaling \"%.40s\", expected default, linear, llama3, yarn or longrope%s",
                   hn_source_path(src), type,
                   strcmp(type, "dynamic") ? "" : " (dynamic would change rows by how long their text becomes)");
}

/* The context before scaling: a key of its own (Phi-3), a key of the scaling, else the context. */
static hunch_status folder_original(hn_arch *a, const hn_source *src, const char *where, hunch_error *err) {
    const hn_key beside = {NULL, "original_max_position_embeddings", 2, 1 << 24, 0};
    hunch_status st = hn_key_real(src, &beside, &a->scaling.original, err);
    if (!st && a->scaling.original == 0)
        st = number_at(src, where, "original_max_position_embeddings", 2, 1 << 24, a->context, &a->scaling.original,
                       err);
    return st;
}

static hunch_status read_folder(hn_arch *a, const hn_source *src, hunch_error *err) {
    hn_scaling *s = &a->scaling;
    const char *where;
    hunch_status st = folder_kind(s, src, &where, err);
    if (st || s->kind == HN_SCALING_NONE) return st;
    char path[96];
    snprintf(path, sizeof path, "%s.short_factor", where);
    if (s->kind == HN_SCALING_YARN && hn_source_config(src, path))
        s->kind = HN_SCALING_LONGROPE; /* its early name */
    st = folder_original(a, src, where, err);
    const bool follows = s->kind == HN_SCALING_YARN || s->kind == HN_SCALING_LONGROPE;
    if (!st)
        st = number_at(src, where, "factor", 1e-6, MAX_FACTOR, follows ? a->context / s->original : NAN, &s->factor,
                       err);
    if (!st && follows) st = number_at(src, where, "attention_factor", 1e-3, 1e3, 0, &s->amplitude, err);
    if (!st && s->kind == HN_SCALING_LLAMA3) st = folder_llama3(s, src, where, err);
    if (!st && s->kind == HN_SCALING_YARN) st = folder_yarn(s, src, where, err);
    if (!st && s->kind == HN_SCALING_LONGROPE) st = folder_longrope(a, src, where, err);
    return st;
}

/* ---- a GGUF --------------------------------------------------------------------------------------------------------- */

/* freq[i] = theta^(-2i / dims) / factor / tensor[i]. */
static hunch_status gguf_table(const hn_arch *a, const hn_source *src, const hn_tensor *t, double *freq,
                               hunch_error *err) {
    const int half = a->rope_dims / 2;
    if (!t->known || t->dtype != HN_F32 || t->n_dims != 1 || t->dims[0] != (uint64_t)half)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: expected F32 [%d]", hn_source_path(src), t->name, half);
    for (int i = 0; i < half; i++) {
        float d;
        const hunch_status st = hn_source_read(src, t, (size_t)i * sizeof d, sizeof d, &d, err);
        if (st) return st;
        if (!(d > 0 && (double)d < MAX_FACTOR))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: value %g, expected a positive divisor",
                           hn_source_path(src), t->name, (double)d);
        freq[i] = pow(a->scaling.theta, -2.0 * i / a->rope_dims) / a->scaling.factor / (double)d;
    }
    return HUNCH_OK;
}

static hunch_status gguf_real(const hn_arch *a, const hn_source *src, const char *suffix, double min, double max,
                              double dflt, double *out, hunch_error *err) {
    hn_dense_key_buf key;
    return hn_key_real(src, hn_dense_key_of(&key, a->dense, suffix, NULL, min, max, dflt), out, err);
}

/* Without a type a factor means linear scaling, under either of its names. */
static hunch_status gguf_kind(hn_arch *a, hn_source *src, hunch_error *err) {
    static const char *const names[] = {"none", "linear", "yarn", "longrope"};
    static const hn_scaling_kind kinds[] = {HN_SCALING_NONE, HN_SCALING_LINEAR, HN_SCALING_YARN, HN_SCALING_LONGROPE};
    hn_scaling *s = &a->scaling;
    const char *type = "linear";
    hn_dense_key_buf key;
    bool found;
    double older = 1;
    const char *name = hn_dense_key_of(&key, a->dense, "rope.scaling.type", NULL, 0, 0, 0)->gguf;
    hunch_status st = hn_source_str(src, name, &type, NULL, &found, err);
    if (st) return st;
    int i = 0;
    while (i < 4 && strcmp(type, names[i])) i++;
    if (i == 4)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s \"%.40s\", expected none, linear, yarn or longrope",
                       hn_source_path(src), name, type);
    s->kind = kinds[i];
    if (!found) st = gguf_real(a, src, "rope.scale_linear", 1e-6, MAX_FACTOR, 1, &older, err);
    const bool must = found && (s->kind == HN_SCALING_LINEAR || s->kind == HN_SCALING_YARN);
    if (!st) st = gguf_real(a, src, "rope.scaling.factor", 0, MAX_FACTOR, must ? NAN : older, &s->factor, err);
    if (s->kind == HN_SCALING_NONE || s->factor == 0) s->factor = 1; /* 0: none, in files of older writers */
    if (s->kind == HN_SCALING_LINEAR && s->factor == 1) s->kind = HN_SCALING_NONE;
    return st;
}

/* cos and sin are multiplied by the usual amplitude times attn_factor; a yarn_attn_factor with another value is
 * refused, since other programs interpret it in two ways. */
static hunch_status gguf_yarn(hn_arch *a, const hn_source *src, double times, hunch_error *err) {
    hn_scaling *s = &a->scaling;
    double ext = 1, said = 0;
    s->whole = true;
    s->mscale = 1;
    hunch_status st = gguf_real(a, src, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32, &s->fast, err);
    if (!st) st = gguf_real(a, src, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1, &s->slow, err);
    if (!st) st = gguf_real(a, src, "rope.scaling.yarn_log_multiplier", 0, 1e3, 0, &s->mscale_all, err);
    if (!st) st = gguf_real(a, src, "rope.scaling.yarn_ext_factor", 1, 1, 1, &ext, err);
    if (!st) st = gguf_real(a, src, "rope.scaling.yarn_attn_factor", 1e-3, 1e3, 0, &said, err);
    const double amplitude = hn_rope_usual_amplitude(s) * times;
    if (!st && said > 0 && fabs(said - 1) > 1e-4 && fabs(said / amplitude - 1) > 1e-4)
        st = hn_fail(err, HUNCH_REFUSED,
                     "%s: %s.rope.scaling.yarn_attn_factor %g, expected the value for the factor (%g)",
                     hn_source_path(src), a->dense->prefix, said, amplitude);
    return st;
}

static hunch_status gguf_longrope(hn_arch *a, hn_source *src, const hn_tensor *few, const hn_tensor *many,
                                  hunch_error *err) {
    if (!few || !many)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: longrope needs tensors rope_factors_short.weight and rope_factors_long.weight",
                       hn_source_path(src));
    a->scaling.kind = HN_SCALING_LONGROPE;
    a->scaling.factor = 1;
    a->rope_long = hn_zalloc((size_t)a->rope_dims / 2, sizeof *a->rope_long);
    if (!a->rope_long) return fail_no_memory(a, err);
    hunch_status st = gguf_table(a, src, few, a->rope_freq, err);
    return st ? st : gguf_table(a, src, many, a->rope_long, err);
}

static hunch_status read_gguf(hn_arch *a, hn_source *src, hunch_error *err) {
    const hn_tensor *each = hn_source_take(src, "rope_freqs.weight"),
                    *few = hn_source_take(src, "rope_factors_short.weight"),
                    *many = hn_source_take(src, "rope_factors_long.weight");
    hn_scaling *s = &a->scaling;
    double times = 1;
    hunch_status st = gguf_kind(a, src, err);
    if (!st) st = gguf_real(a, src, "rope.scaling.attn_factor", 1e-3, 1e3, 1, &times, err);
    if (!st) st = gguf_real(a, src, "rope.scaling.original_context_length", 2, 1 << 24, a->context, &s->original, err);
    if (!st && s->kind == HN_SCALING_YARN) st = gguf_yarn(a, src, times, err);
    if (!st && (s->kind == HN_SCALING_LONGROPE || few || many)) {
        st = gguf_longrope(a, src, few, many, err);
        s->amplitude = times; /* not a factor of the usual one */
    } else
        s->amplitude = hn_rope_usual_amplitude(s) * times;
    if (!st && each && (s->kind == HN_SCALING_YARN || s->kind == HN_SCALING_LONGROPE))
        st = hn_fail(err, HUNCH_REFUSED, "%s: tensor rope_freqs.weight beside another scaling", hn_source_path(src));
    if (st || !each) return st;
    st = gguf_table(a, src, each, a->rope_freq, err);
    s->kind = HN_SCALING_DIVISORS;
    return st;
}

/* ---- both ------------------------------------------------------------------------------------------------------------ */

hunch_status hn_rope_read(hn_arch *a, hn_source *src, double theta, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    a->scaling = (hn_scaling){.theta = theta, .factor = 1};
    a->rope_interleaved = gguf && a->dense->interleaved;
    a->rope_freq = hn_zalloc((size_t)a->rope_dims / 2, sizeof *a->rope_freq);
    if (!a->rope_freq) return fail_no_memory(a, err);
    hunch_status st = gguf ? read_gguf(a, src, err) : read_folder(a, src, err);
    if (st) return st;
    const hn_scaling *s = &a->scaling;
    if (s->kind != HN_SCALING_DIVISORS && s->kind != HN_SCALING_LONGROPE)
        hn_rope_frequencies(s, a->rope_dims, a->rope_freq);
    a->rope_original = (int)s->original;
    a->rope_scale = (float)(s->amplitude > 0 ? s->amplitude : hn_rope_usual_amplitude(s));
    /* Published files with YaRN give the context before scaling, or the one after it. */
    if (s->kind == HN_SCALING_YARN && s->original * s->factor > a->context && s->original * s->factor <= 1 << 24)
        a->context = (int)(s->original * s->factor);
    return HUNCH_OK;
}
