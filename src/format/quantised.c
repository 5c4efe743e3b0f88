/* SPDX-License-Identifier: Apache-2.0 */
/* quantised.c - see quantised.h. A method is named in config.json (quantization_config, of old compression_config), in ModelOpt's
 * hf_quant_config.json, in GPTQ's quantize_config.json or in AWQ's quant_config.json. */
#include "format/quantised.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/dtype.h"
#include "format/source_private.h"

/* ---- where it is said ------------------------------------------------------------------------------------------------ */

typedef struct saying {
    const char *method, *where; /* where: the file, unless it is config.json */
    const json_t *keys;
} saying;

/* The method that an object of keys names, or shows by keys that only one has; NULL: none. */
static const char *method_of(const json_t *keys) {
    static const struct {
        const char *key, *method;
    } signs[] = {{"load_in_4bit", "bitsandbytes"},
                 {"load_in_8bit", "bitsandbytes"},
                 {"quant_algo", "modelopt"},
                 {"w_bit", "awq"},
                 {"config_groups", "compressed-tensors"},
                 {"bits", "gptq"}};
    const char *name = json_string_value(json_object_get(keys, "quant_method"));
    for (size_t i = 0; name == NULL && i < sizeof signs / sizeof *signs; i++) {
        const json_t *sign = json_object_get(keys, signs[i].key);
        if (sign != NULL && !json_is_null(sign) && !json_is_false(sign)) name = signs[i].method;
    }
    return name;
}

static bool says(const char *where, const json_t *keys, saying *out) {
    *out = (saying){method_of(keys), where, keys};
    return out->method != NULL;
}

/* What the folder's files say first; false: nothing. */
static bool find_saying(const hn_source *s, saying *out) {
    static const char *const names[] = {"quantization_config", "compression_config"};
    const json_t *const *d = (const json_t *const *)s->documents;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (says(NULL, hn_source_config(s, names[i]), out) ||
            says(NULL, json_object_get(d[HN_HF_CONFIG], names[i]), out))
            return true;
    return says("hf_quant_config.json", json_object_get(d[HN_HF_MODELOPT], "quantization"), out) ||
           says("quantize_config.json", d[HN_HF_GPTQ], out) || says("quant_config.json", d[HN_HF_AWQ], out);
}

/* ---- packed integers ---------------------------------------------------------------------------------------------------- */

static bool is_one_of(const json_t *value, const char *const *words) {
    const char *text = json_string_value(value);
    for (; text != NULL && *words != NULL; words++)
        if (strcasecmp(text, *words) == 0) return true;
    return value == NULL || json_is_null(value);
}

static unsigned width_of(const json_t *bits) {
    const json_int_t n = json_integer_value(bits);
    return json_is_integer(bits) && n > 0 && n < 32 ? 1u << n : 0;
}

/* What compressed-tensors does to weights besides: rotations that the model is run with, and zeros that are left out. NULL: nothing. */
static const char *done_besides(const json_t *keys) {
    static const char *const dense[] = {"dense", NULL};
    if (json_object_size(json_object_get(json_object_get(keys, "transform_config"), "config_groups")) > 0) return "transform_config";
    return is_one_of(json_object_get(json_object_get(keys, "sparsity_config"), "format"), dense) ? NULL : "sparsity_config";
}

/* compressed-tensors: the widths of all groups of modules whose codes are integers, and packed as is read. */
static unsigned widths_of_groups(const json_t *keys) {
    static const char *const formats[] = {"pack-quantized", "int-quantized", "naive-quantized", "mixed-precision", "dense", NULL},
                             *const integers[] = {"int", NULL};
    const json_t *whole = json_object_get(keys, "format");
    const char *name;
    json_t *group;
    unsigned widths = 0;
    json_object_foreach ((json_t *)(uintptr_t)json_object_get(keys, "config_groups"), name, group) {
        const json_t *weights = json_object_get(group, "weights"), *own = json_object_get(group, "format");
        if (is_one_of(own == NULL || json_is_null(own) ? whole : own, formats) && is_one_of(json_object_get(weights, "type"), integers))
            widths |= width_of(json_object_get(weights, "num_bits"));
    }
    return widths;
}

/* GPTQ: what `dynamic` says of single modules, too. */
static unsigned widths_of_gptq(const json_t *keys) {
    const char *pattern;
    json_t *over;
    unsigned widths = width_of(json_object_get(keys, "bits"));
    json_object_foreach ((json_t *)(uintptr_t)json_object_get(keys, "dynamic"), pattern, over)
        widths |= width_of(json_object_get(over, "bits"));
    return widths;
}

hn_packed_scheme hn_quantised_scheme(const hn_source *s) {
    static const char *const gemm[] = {"gemm", NULL}, *const versions[] = {"gptq", "gptq_v2", NULL};
    hn_packed_scheme none = {HN_NOT_PACKED, 0, 0};
    saying said;
    if (s->kind != HN_SOURCE_HF || !find_saying(s, &said)) return none;
    const json_t *keys = said.keys, *bits = json_object_get(keys, "bits"), *format = json_object_get(keys, "checkpoint_format");
    if (format == NULL || json_is_null(format)) format = json_object_get(keys, "format"); /* GPTQModel's other name of it */
    if (strcmp(said.method, "awq") == 0) {
        const unsigned widths = width_of(bits != NULL ? bits : json_object_get(keys, "w_bit"));
        const bool read = is_one_of(json_object_get(keys, "version"), gemm) && is_one_of(json_object_get(keys, "format"), gemm);
        return read && widths == 1u << 4 ? (hn_packed_scheme){HN_PACKED_AWQ, 0, widths} : none;
    }
    if (strcmp(said.method, "gptq") == 0) {
        if (!is_one_of(format, versions) || json_is_true(json_object_get(keys, "is_marlin_format"))) return none;
        const char *version = json_string_value(format);
        return (hn_packed_scheme){HN_PACKED_GPTQ, version == NULL || strcasecmp(version, "gptq") == 0, widths_of_gptq(keys)};
    }
    if (strcmp(said.method, "compressed-tensors") == 0 && done_besides(keys) == NULL && widths_of_groups(keys) != 0)
        return (hn_packed_scheme){HN_PACKED_COMPRESSED, 0, widths_of_groups(keys)};
    return none;
}

/* ---- the refusal ------------------------------------------------------------------------------------------------------- */

typedef struct details {
    char text[200];
    size_t len;
} details;

static void put_detail(details *d, const char *key, const char *value) {
    const int n = snprintf(d->text + d->len, sizeof d->text - d->len, "%s%s %.40s", d->len > 0 ? ", " : "", key, value);
    if (n > 0 && (size_t)n < sizeof d->text - d->len)
        d->len += (size_t)n;
    else
        d->text[d->len] = '\0'; /* what does not fit is left out */
}

/* The keys that tell apart the formats of a method. */
static void put_keys(details *d, const json_t *keys) {
    static const char *const names[] = {"version",
                                        "format",
                                        "checkpoint_format",
                                        "packing_format",
                                        "quant_algo",
                                        "quant_type",
                                        "bnb_4bit_quant_type",
                                        "strategy",
                                        "type",
                                        "weight_scale_semantics",
                                        "weight_scale_method",
                                        "activation_scheme"},
                             *const bits[] = {"bits", "w_bit", "nbits", "num_bits"},
                             *const flags[] = {"load_in_4bit", "load_in_8bit", "is_marlin_format"};
    char number[24];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = json_string_value(json_object_get(keys, names[i]));
        if (value != NULL && *value != '\0') put_detail(d, names[i], value);
    }
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        const json_t *value = json_object_get(keys, bits[i]);
        if (!json_is_integer(value)) continue;
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        put_detail(d, bits[i], number);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (json_is_true(json_object_get(keys, flags[i]))) put_detail(d, flags[i], "true");
}

/* Those of the method, and of its first group of modules. */
static details details_of(const json_t *keys) {
    details d = {.len = 0};
    const json_t *groups = json_object_get(keys, "config_groups");
    const void *first = json_object_iter((json_t *)(uintptr_t)groups);
    const json_t *group = first != NULL ? json_object_iter_value((void *)(uintptr_t)first) : NULL;
    const char *besides = done_besides(keys);
    if (besides != NULL) put_detail(&d, "with a", besides);
    put_keys(&d, keys);
    put_keys(&d, json_object_get(group, "weights"));
    put_keys(&d, json_object_get(json_object_get(keys, "quant_config"), "weight_quant_params")); /* hqq */
    return d;
}

/* A missing tensor's module is packed, but the folder does not say how. */
static hunch_status refuse_unsaid(const hn_source *s, const char *tensor, hunch_error *err) {
    static const char *const ends[] = {"qweight", "weight_packed"};
    const char *dot = strrchr(tensor, '.');
    char name[HN_MAX_NAME + 20];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%.*s%s", dot != NULL ? (int)(dot - tensor) + 1 : 0, tensor, ends[i]);
        if (hn_source_find(s, name) != NULL)
            return hn_fail(err, HUNCH_REFUSED,
                           "%s: tensor %s is packed, and no file says how (tensor %s is missing); expected quantization_config in "
                           "config.json, or GPTQ's quantize_config.json or AWQ's quant_config.json beside it",
                           s->path, name, tensor);
    }
    return HUNCH_OK;
}

/* Whether the folder has a missing tensor's module in another form: of "a.b.weight", "a.b.qweight". */
static bool has_module(const hn_source *s, const char *tensor) {
    const char *dot = strrchr(tensor, '.');
    const size_t front = dot != NULL ? (size_t)(dot - tensor) + 1 : strlen(tensor);
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name = s->tensors[i].name;
        if (strncmp(name, tensor, front) == 0 && strcmp(name + front, "weight") != 0 && strcmp(name + front, "bias") != 0)
            return true;
    }
    return false;
}

hunch_status hn_quantised_refuse(const hn_source *s, const char *tensor, const char *wrong, hunch_error *err) {
    saying said;
    if (s->kind != HN_SOURCE_HF) return HUNCH_OK;
    if (!find_saying(s, &said)) return refuse_unsaid(s, tensor, err);
    if (hn_source_find(s, tensor) == NULL && !has_module(s, tensor)) return HUNCH_OK;
    const details d = details_of(said.keys);
    return hn_fail(err, HUNCH_REFUSED,
                   "%s: quantization_config%s%s: quant_method is %.40s%s%s%s, a format that is not read "
                   "(tensor %s %s); expected the model's folder as it was before it was quantised, or a GGUF of it",
                   s->path, said.where != NULL ? " of " : "", said.where != NULL ? said.where : "", said.method,
                   d.len > 0 ? " (" : "", d.text, d.len > 0 ? ")" : "", tensor, wrong);
}

/* ---- the factors of 8-bit floats ------------------------------------------------------------------------------------------- */

/* A key about them: of the method, of what its program noted beside (meta), or of the whole file. NULL: absent. */
static const json_t *fp8_key(const hn_source *s, const char *key) {
    const json_t *config = s->documents[HN_HF_CONFIG], *own = hn_source_config(s, "quantization_config"),
                 *outer = json_object_get(config, "quantization_config"), *file = s->documents[HN_HF_GPTQ];
    const json_t *const places[] = {own,  json_object_get(own, "meta"),  outer, json_object_get(outer, "meta"),
                                    file, json_object_get(file, "meta"), config};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const json_t *value = json_object_get(places[i], key);
        if (value != NULL && !json_is_null(value)) return value;
    }
    return NULL;
}

/* Whether a value is this word; GPTQModel takes any case, and spaces around it. */
static bool is_word(const json_t *value, const char *word) {
    const char *text = json_string_value(value);
    if (text == NULL) return false;
    const size_t n = strlen(word);
    text += strspn(text, " \t\r\n");
    return strncasecmp(text, word, n) == 0 && text[n + strspn(text + n, " \t\r\n")] == '\0';
}

static hunch_status check_block(const hn_source *s, const json_t *size, bool inverse, hunch_error *err) {
    bool good = size == NULL || (json_is_array(size) && json_array_size(size) == 2);
    for (size_t i = 0; good && size != NULL && i < 2; i++)
        good = json_integer_value(json_array_get(size, i)) == HN_F8_TILE;
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_REFUSED, "%s: quantization_config.weight_block_size%s: expected [%d, %d]", s->path,
                          inverse ? " (weight_scale_semantics inverse)" : "", HN_F8_TILE, HN_F8_TILE);
}

/* What the keys say. *whole: no block size is named. */
static hunch_status read_keys(const hn_source *s, bool *inverse, bool *whole, hunch_error *err) {
    const json_t *meaning = fp8_key(s, "weight_scale_semantics"), *method = fp8_key(s, "weight_scale_method"),
                 *block = fp8_key(s, "weight_block_size");
    if (meaning != NULL && !is_word(meaning, "inverse"))
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: quantization_config.weight_scale_semantics: expected \"inverse\", or no such key", s->path);
    if (method != NULL && !is_word(method, "block") && !is_word(method, "tensor"))
        return hn_fail(
            err, HUNCH_REFUSED,
            "%s: quantization_config.weight_scale_method (weight_scale_semantics inverse): expected \"block\" "
            "or \"tensor\"; a factor for each row is not read",
            s->path);
    *inverse = meaning != NULL || method != NULL; /* GPTQModel's own keys, for which there is one meaning */
    *whole = block == NULL;
    return check_block(s, block, *inverse, err);
}

hunch_status hn_quantised_fp8(hn_source *s, const hn_tensor *t, int matrices, hn_fp8_factors *out, hunch_error *err) {
    const uint64_t one = 1, dims[3] = {(t->dims[0] + HN_F8_TILE - 1) / HN_F8_TILE,
                                       (t->dims[1] + HN_F8_TILE - 1) / HN_F8_TILE, (uint64_t)matrices};
    char name[HN_MAX_NAME + 20];
    bool whole = true;
    *out = (hn_fp8_factors){.values = NULL};
    if (t->dtype != HN_F8_E4M3) return HUNCH_OK;
    hunch_status status = read_keys(s, &out->inverse, &whole, err);
    if (status) return status;
    snprintf(name, sizeof name, "%s_scale_inv", t->name);
    const hn_tensor *there = hn_source_find(s, name);
    const bool single = there != NULL && whole && matrices == 1 && there->n_dims <= 1 && there->dims[0] <= 1;
    status = single ? hn_source_need_shape(s, name, 1, &one, &out->values, err)
                    : hn_source_need_shape(s, name, matrices > 1 ? 3 : 2, dims, &out->values, err);
    return status;
}

/* ---- what changes no weight ---------------------------------------------------------------------------------------------- */

void hn_quantised_take_scales(hn_source *s) {
    static const char *const names[] = {"activation_scale", "activation_scale_ub", "input_scale", "input_global_scale", "input_zero_point",
                                        "output_scale", "k_scale", "v_scale", NULL};
    saying said;
    if (s->kind != HN_SOURCE_HF || !find_saying(s, &said)) return;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *dot = strrchr(s->tensors[i].name, '.');
        for (size_t k = 0; dot != NULL && names[k] != NULL; k++)
            if (strcmp(dot + 1, names[k]) == 0) s->tensors[i].used = true;
    }
}
