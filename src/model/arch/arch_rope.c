/* SPDX-License-Identifier: Apache-2.0 */
/* arch_rope.c - the rotations of a description: reading a file's scaling, and making frequencies (linear, llama3, YaRN, longrope).
 *
 * Frequencies are fixed when a model (longrope: an engine) opens. Scalings that depend on the current length of the text are
 * refused: a row's value would depend on later rows (contract C2). */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch/arch.h"

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

/* Those of a scaling without tables. */
static void make_frequencies(hn_rotation *r) {
    const hn_scaling *s = &r->scaling;
    double *freq = r->freq;
    for (int i = 0; i < r->dims / 2; i++) {
        const double f = pow(s->theta, -2.0 * i / r->dims);
        freq[i] = f;
        if (s->kind == HN_SCALING_PART && i >= s->pairs) freq[i] = 0;
        if (s->kind == HN_SCALING_LINEAR) freq[i] = f / s->factor;
        if (s->kind == HN_SCALING_LLAMA3) freq[i] = llama3_slowed(s, f);
        if (s->kind == HN_SCALING_YARN) {
            const double slowed = yarn_ramp(s, r->dims, i);
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

/* ---- the list ------------------------------------------------------------------------------------------------------- */

static hunch_status table_create(double **freq, int dims, hunch_error *err) {
    *freq = hn_zalloc((size_t)dims / 2, sizeof **freq);
    return *freq ? HUNCH_OK : hn_fail_memory(err, "rope frequencies", (size_t)dims / 2 * sizeof **freq);
}

/* Appends a rotation, whose frequencies are still to be made; NULL: no memory. */
static hn_rotation *append(hn_arch *a, int dims, const hn_scaling *s, hunch_error *err) {
    hn_rotation *r = &a->rotation[a->rotations];
    assert(a->rotations < HN_MOST_ROTATIONS);
    *r = (hn_rotation){.dims = dims, .scaling = *s};
    if (table_create(&r->freq, dims, err)) return NULL;
    a->rotations++;
    return r;
}

hunch_status hn_rope_add(hn_arch *a, int dims, const hn_scaling *s, hunch_error *err) {
    hn_rotation *r = append(a, dims, s, err);
    if (!r) return HUNCH_NO_MEMORY;
    r->scale = (float)(s->amplitude > 0 ? s->amplitude : hn_rope_usual_amplitude(s));
    make_frequencies(r);
    return HUNCH_OK;
}

hunch_status hn_rope_add_copy(hn_arch *a, const hn_rotation *from, hunch_error *err) {
    const size_t bytes = (size_t)from->dims / 2 * sizeof *from->freq;
    hn_rotation *r = append(a, from->dims, &from->scaling, err);
    if (!r) return HUNCH_NO_MEMORY;
    r->first = from->first;
    r->scale = from->scale;
    memcpy(r->freq, from->freq, bytes);
    if (!from->freq_long) return HUNCH_OK;
    hunch_status st = table_create(&r->freq_long, from->dims, err);
    if (!st) memcpy(r->freq_long, from->freq_long, bytes);
    return st;
}

hunch_status hn_rope_spread(hn_arch *a, int dims, hunch_error *err) {
    hn_rotation *r = &a->rotation[0];
    double *freq;
    assert(a->rotations > 0 && dims == 2 * r->dims && !r->freq_long);
    const hunch_status st = table_create(&freq, dims, err);
    if (st) return st;
    for (int i = 0; i < r->dims / 2; i++) freq[2 * i] = r->freq[i];
    hn_free(r->freq);
    r->freq = freq;
    r->dims = dims;
    return HUNCH_OK;
}

/* ---- a folder ------------------------------------------------------------------------------------------------------- */

/* Numbers of the first rotation's scaling. */
#define SCALING(field) offsetof(hn_arch, rotation[0].scaling.field)
#define TAKE(r, err, ...) \
    hn_keys_take(r, HN_OF_MODEL, (const size_t[]){__VA_ARGS__}, (int)(sizeof(size_t[]){__VA_ARGS__} / sizeof(size_t)), err)

/* freq[i] = theta^(-2i / dims) / list[i]. */
static hunch_status folder_table(const hn_rotation *r, const hn_source *src, const char *where, const char *name,
                                 double *freq, hunch_error *err) {
    char path[96];
    snprintf(path, sizeof path, "%s.%s", where, name);
    const json_t *list = hn_source_config(src, path);
    bool good = json_is_array(list) && json_array_size(list) == (size_t)r->dims / 2;
    for (int i = 0; good && i < r->dims / 2; i++) {
        const double d = json_number_value(json_array_get(list, (size_t)i)); /* 0: not a number */
        good = d > 0 && d < HN_MOST_SCALING;
        freq[i] = pow(r->scaling.theta, -2.0 * i / r->dims) / d;
    }
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s, expected a list of %d positive numbers",
                          hn_source_path(src), path, r->dims / 2);
}

static hunch_status folder_longrope(hn_rotation *r, const hn_source *src, const char *where, hunch_error *err) {
    hunch_status st = table_create(&r->freq_long, r->dims, err);
    if (!st) st = folder_table(r, src, where, "short_factor", r->freq, err);
    return st ? st : folder_table(r, src, where, "long_factor", r->freq_long, err);
}

/* A base that is stretched once, whatever the length of a text: Hunyuan's folders call it dynamic too. */
static hunch_status stretch_base(hn_rotation *r, const hn_source *src, const char *where, bool *stretched, hunch_error *err) {
    double alpha = 0;
    char path[96];
    snprintf(path, sizeof path, "%s.alpha", where);
    const hn_key k = {NULL, path, 0, 1e9, 0};
    const hunch_status st = hn_key_real(src, &k, &alpha, err);
    *stretched = !st && alpha > 0 && r->dims > 2;
    if (*stretched) r->scaling.theta *= pow(alpha, (double)r->dims / (r->dims - 2));
    return st;
}

/* Where a folder specifies the scaling of layers with full attention, as transformers 5 writes it or as most files have it; of others. */
static const char *const usual_places[] = {"rope_parameters.full_attention", "rope_parameters", "rope_scaling", NULL},
                         *const sliding_places[] = {"rope_parameters.sliding_attention", NULL};

/* Finds it, of these places, and its kind. */
static hunch_status folder_kind(hn_rotation *r, const hn_source *src, const char *const places[], const char **where,
                                hunch_error *err) {
    static const char *const spellings[] = {"rope_type", "type"};
    static const struct {
        const char *name;
        hn_scaling_kind kind;
    } kinds[] = {{"default", HN_SCALING_NONE}, {"linear", HN_SCALING_LINEAR},     {"llama3", HN_SCALING_LLAMA3},
                 {"yarn", HN_SCALING_YARN},    {"longrope", HN_SCALING_LONGROPE}, {"su", HN_SCALING_LONGROPE}};
    hn_scaling *s = &r->scaling;
    const char *type = "default";
    bool stretched = false;
    *where = NULL;
    for (int p = 0; places[p] && !*where; p++)
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
    const bool dynamic = *where && places == usual_places && !strcmp(type, "dynamic");
    const hunch_status st = dynamic ? stretch_base(r, src, *where, &stretched, err) : HUNCH_OK;
    if (st || stretched) return st;
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: rope scaling \"%.40s\", expected default, linear, llama3, yarn or longrope%s",
                   hn_source_path(src), type,
                   strcmp(type, "dynamic") ? "" : " (dynamic would change rows by how long their text becomes)");
}

/* The context before scaling: a key of its own (Phi-3), a key of the scaling, else the context. */
static hunch_status folder_original(hn_scaling *s, int context, const hn_source *src, const char *where, hunch_error *err) {
    char path[96];
    snprintf(path, sizeof path, "%s.original_max_position_embeddings", where);
    const hn_key beside = {NULL, "original_max_position_embeddings", 2, 1 << 24, 0}, inside = {NULL, path, 2, 1 << 24, context};
    const hunch_status st = hn_key_real(src, &beside, &s->original, err);
    return st || s->original > 0 ? st : hn_key_real(src, &inside, &s->original, err);
}

static hunch_status read_folder(const hn_key_reading *from, hn_rotation *r, const char *const places[], hunch_error *err) {
    hn_scaling *s = &r->scaling;
    hn_key_reading in = *from;
    hunch_status st = folder_kind(r, from->src, places, &in.place, err);
    if (st || s->kind == HN_SCALING_NONE) return st;
    char path[96];
    snprintf(path, sizeof path, "%s.short_factor", in.place);
    if (s->kind == HN_SCALING_YARN && hn_source_config(from->src, path)) s->kind = HN_SCALING_LONGROPE; /* its early name */
    st = folder_original(s, from->a->context, from->src, in.place, err);
    if (!st) st = TAKE(&in, err, SCALING(factor));
    if (!st && (s->kind == HN_SCALING_YARN || s->kind == HN_SCALING_LONGROPE)) st = TAKE(&in, err, SCALING(amplitude));
    if (!st && s->kind == HN_SCALING_LLAMA3) st = TAKE(&in, err, SCALING(low), SCALING(high));
    if (!st && s->kind == HN_SCALING_LLAMA3 && s->high <= s->low)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s.high_freq_factor %g, expected more than low_freq_factor %g", hn_source_path(from->src),
                     in.place, s->high, s->low);
    if (!st && s->kind == HN_SCALING_YARN)
        st = TAKE(&in, err, SCALING(whole), SCALING(fast), SCALING(slow), SCALING(mscale), SCALING(mscale_all));
    if (!st && s->kind == HN_SCALING_LONGROPE && places != usual_places)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s.rope_type is longrope, expected default, linear, llama3 or yarn",
                       hn_source_path(from->src), in.place);
    return st || s->kind != HN_SCALING_LONGROPE ? st : folder_longrope(r, from->src, in.place, err);
}

/* ---- a GGUF --------------------------------------------------------------------------------------------------------- */

/* freq[i] = theta^(-2i / dims) / factor / tensor[i]. */
static hunch_status gguf_table(const hn_rotation *r, const hn_source *src, const hn_tensor *t, double *freq,
                               hunch_error *err) {
    const int half = r->dims / 2;
    if (!t->known || t->dtype != HN_F32 || t->n_dims != 1 || t->dims[0] != (uint64_t)half)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: expected F32 [%d]", hn_source_path(src), t->name, half);
    for (int i = 0; i < half; i++) {
        float d;
        const hunch_status st = hn_source_read(src, t, (size_t)i * sizeof d, sizeof d, &d, err);
        if (st) return st;
        if (!(d > 0 && (double)d < HN_MOST_SCALING))
            return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: value %g, expected a positive divisor",
                           hn_source_path(src), t->name, (double)d);
        freq[i] = pow(r->scaling.theta, -2.0 * i / r->dims) / r->scaling.factor / (double)d;
    }
    return HUNCH_OK;
}

static hunch_status gguf_real(const hn_arch *a, const hn_source *src, const char *suffix, double min, double max,
                              double dflt, double *out, hunch_error *err) {
    hn_key_buf key;
    return hn_key_real(src, hn_family_key_of(&key, a->family, suffix, NULL, min, max, dflt), out, err);
}

/* Without a type a factor means linear scaling, under either of its names. */
static hunch_status gguf_kind(const hn_arch *a, hn_scaling *s, hn_source *src, hunch_error *err) {
    static const char *const names[] = {"none", "linear", "yarn", "longrope"};
    static const hn_scaling_kind kinds[] = {HN_SCALING_NONE, HN_SCALING_LINEAR, HN_SCALING_YARN, HN_SCALING_LONGROPE};
    const char *type = a->files.usual_scaling == HN_SCALING_YARN ? names[2] : names[1];
    hn_key_buf key;
    bool found;
    double older = 1;
    const char *name = hn_family_key_of(&key, a->family, "rope.scaling.type", NULL, 0, 0, 0)->gguf;
    hunch_status st = hn_source_str(src, name, &type, NULL, &found, err);
    if (st) return st;
    if (type[0] == '\0') type = names[0]; /* Ollama's, of a folder without scaling */
    int i = 0;
    while (i < 4 && strcmp(type, names[i])) i++;
    if (i == 4)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s \"%.40s\", expected none, linear, yarn or longrope",
                       hn_source_path(src), name, type);
    s->kind = kinds[i];
    if (!found) st = gguf_real(a, src, "rope.scale_linear", 1e-6, HN_MOST_SCALING, 1, &older, err);
    const bool must = found && (s->kind == HN_SCALING_LINEAR || s->kind == HN_SCALING_YARN);
    if (!st) st = gguf_real(a, src, "rope.scaling.factor", 0, HN_MOST_SCALING, must ? NAN : older, &s->factor, err);
    if (s->kind == HN_SCALING_NONE || s->factor == 0) s->factor = 1; /* 0: none, in files of older writers */
    if (s->kind == HN_SCALING_LINEAR && s->factor == 1) s->kind = HN_SCALING_NONE;
    return st;
}

/* cos and sin are multiplied by the usual amplitude times attn_factor (*times); a yarn_attn_factor with another value is
 * refused, since other programs interpret it in two ways, but of families whose writers have one. */
static hunch_status gguf_yarn(const hn_key_reading *from, hn_scaling *s, double *times, hunch_error *err) {
    const hn_arch *a = from->a;
    const hn_source *src = from->src;
    double ext = 1, said = 0;
    s->whole = !a->files.yarn_exact;
    s->mscale = 1;
    hunch_status st = TAKE(from, err, SCALING(fast), SCALING(slow), SCALING(mscale_all));
    if (a->files.yarn_scores) s->mscale = s->mscale_all *= 10;
    if (!st) st = gguf_real(a, src, "rope.scaling.yarn_ext_factor", 1, 1, 1, &ext, err);
    if (!st) st = gguf_real(a, src, "rope.scaling.yarn_attn_factor", 1e-3, 1e3, 0, &said, err);
    if (a->files.yarn_amplitude && said > 0) *times = said / hn_rope_usual_amplitude(s);
    const double amplitude = hn_rope_usual_amplitude(s) * *times;
    if (!st && said > 0 && fabs(said - 1) > 1e-4 && fabs(said / amplitude - 1) > 1e-4)
        st = hn_fail(err, HUNCH_REFUSED,
                     "%s: %s.rope.scaling.yarn_attn_factor %g, expected the value for the factor (%g)",
                     hn_source_path(src), a->family->gguf_name, said, amplitude);
    return st;
}

static hunch_status gguf_longrope(hn_rotation *r, hn_source *src, const hn_tensor *few, const hn_tensor *many,
                                  hunch_error *err) {
    if (!few || !many)
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: longrope needs tensors rope_factors_short.weight and rope_factors_long.weight",
                       hn_source_path(src));
    r->scaling.kind = HN_SCALING_LONGROPE;
    r->scaling.factor = 1;
    hunch_status st = table_create(&r->freq_long, r->dims, err);
    if (!st) st = gguf_table(r, src, few, r->freq, err);
    return st ? st : gguf_table(r, src, many, r->freq_long, err);
}

/* A table without values, which Ollama's converter writes for a folder without scaling, is none. */
static const hn_tensor *take_table(hn_source *src, const char *name) {
    const hn_tensor *t = hn_source_take(src, name);
    return t && t->n_dims > 0 && t->dims[0] > 0 ? t : NULL;
}

static hunch_status read_gguf(const hn_key_reading *from, hn_rotation *r, hn_source *src, hunch_error *err) {
    const hn_arch *a = from->a;
    const hn_tensor *each = take_table(src, "rope_freqs.weight"), *few = take_table(src, "rope_factors_short.weight"),
                    *many = take_table(src, "rope_factors_long.weight");
    hn_scaling *s = &r->scaling;
    hunch_status st = gguf_kind(a, s, src, err);
    if (!st) st = TAKE(from, err, SCALING(amplitude));
    double times = s->amplitude;
    if (!st) st = gguf_real(a, src, "rope.scaling.original_context_length", 0, 1 << 24, a->context, &s->original, err);
    if (s->original < 2) s->original = a->context;
    if (!st && s->kind == HN_SCALING_YARN) st = gguf_yarn(from, s, &times, err);
    if (!st && (s->kind == HN_SCALING_LONGROPE || few || many)) {
        st = gguf_longrope(r, src, few, many, err);
        s->amplitude = times; /* not a factor of the usual one */
    } else
        s->amplitude = hn_rope_usual_amplitude(s) * times;
    if (!st && each && (s->kind == HN_SCALING_YARN || s->kind == HN_SCALING_LONGROPE))
        st = hn_fail(err, HUNCH_REFUSED, "%s: tensor rope_freqs.weight beside another scaling", hn_source_path(src));
    if (st || !each) return st;
    st = gguf_table(r, src, each, r->freq, err);
    s->kind = HN_SCALING_DIVISORS;
    return st;
}

/* ---- both ------------------------------------------------------------------------------------------------------------ */

hunch_status hn_rope_read(const hn_key_reading *from, hn_source *src, int dims, double theta, hunch_error *err) {
    hn_arch *a = from->a;
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    assert(a->rotations == 0);
    hn_rotation *r = append(a, dims, &(hn_scaling){.theta = theta, .factor = 1}, err);
    if (!r) return HUNCH_NO_MEMORY;
    a->rope_interleaved = gguf ? a->family->pairs : a->family->folder_pairs;
    hunch_status st = gguf ? read_gguf(from, r, src, err) : read_folder(from, r, usual_places, err);
    if (st) return st;
    const hn_scaling *s = &r->scaling;
    if (s->kind != HN_SCALING_DIVISORS && s->kind != HN_SCALING_LONGROPE) make_frequencies(r);
    r->scale = (float)(s->amplitude > 0 ? s->amplitude : hn_rope_usual_amplitude(s));
    /* Published files with YaRN give the context before scaling, or the one after it. */
    if (s->kind == HN_SCALING_YARN && s->original * s->factor > a->context && s->original * s->factor <= 1 << 24)
        a->context = (int)(s->original * s->factor);
    return HUNCH_OK;
}

/* A folder's scaling of layers with a window. Its numbers are read as those of the first rotation. */
static hunch_status read_sliding(const hn_arch *a, const hn_source *src, int dims, hn_scaling *s, hunch_error *err) {
    const hn_file_keys keys = hn_family_keys(a->family);
    hn_arch other = *a;
    hn_rotation *r = &other.rotation[0];
    *r = (hn_rotation){.dims = dims, .scaling = *s};
    const hunch_status st = read_folder(&(hn_key_reading){&keys, &other, a->layer, src, NULL}, r, sliding_places, err);
    *s = r->scaling;
    return st;
}

hunch_status hn_rope_add_sliding(hn_arch *a, const hn_source *src, double theta, int dims, hunch_error *err) {
    hn_key_buf base, turned;
    hn_scaling plain = {.factor = 1};
    hunch_status st = hn_key_real(src, hn_family_key_of(&base, a->family, "rope.freq_base_swa",
                                                        "rope_parameters.sliding_attention.rope_theta", 1, 1e12, theta), &plain.theta, err);
    if (!st) st = hn_key_int(src, hn_family_key_of(&turned, a->family, "rope.dimension_count_swa", NULL, 2, 512, dims), &dims, err);
    if (!st && a->files.form == HN_SOURCE_HF) st = read_sliding(a, src, dims, &plain, err);
    if (!st && (dims % 2 || dims > a->layer[0].head_dim))
        st = hn_fail(err, HUNCH_REFUSED, "%s: %d dims of heads of %d turn in sliding layers, expected an even number of at most as many",
                     hn_source_path(src), dims, a->layer[0].head_dim);
    for (int i = 0; i < a->layers; i++) a->layer[i].rotation = a->layer[i].window > 0;
    return st ? st : hn_rope_add(a, dims, &plain, err);
}
