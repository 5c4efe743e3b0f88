/* SPDX-License-Identifier: Apache-2.0 */
/* arch.c - choosing the architecture, reading hyper-parameters within bounds, sampling defaults. */
#include "model/arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static const hn_family *const families[] = {&hn_family_llama};
enum { N_FAMILIES = sizeof families / sizeof *families };

static const char *key_name(const hn_source *src, const hn_key *k) {
    return hn_source_get_kind(src) == HN_SOURCE_GGUF ? k->gguf : k->hf;
}

static hunch_status fail_missing(const hn_source *src, const hn_key *k, hunch_error *err) {
    const char *key = key_name(src, k);
    return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing", hn_source_path(src), key ? key : k->gguf);
}

hunch_status hn_key_real(const hn_source *src, const hn_key *k, double *out, hunch_error *err) {
    const char *key = key_name(src, k);
    bool found = false;
    double v = k->dflt;
    hunch_status st = key ? hn_source_f64(src, key, &v, &found, err) : HUNCH_OK;
    if (st) return st;
    if (!found && isnan(k->dflt)) return fail_missing(src, k, err);
    if (found && !(v >= k->min && v <= k->max))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %g, expected %g to %g", hn_source_path(src), key, v, k->min,
                       k->max);
    *out = v;
    return HUNCH_OK;
}

hunch_status hn_key_int(const hn_source *src, const hn_key *k, int *out, hunch_error *err) {
    const char *key = key_name(src, k);
    bool found = false;
    uint64_t v = 0;
    hunch_status st = key ? hn_source_u64(src, key, &v, &found, err) : HUNCH_OK;
    if (st) return st;
    if (!found && isnan(k->dflt)) return fail_missing(src, k, err);
    if (found && !((double)v >= k->min && (double)v <= k->max))
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected %g to %g", hn_source_path(src), key,
                       (unsigned long long)v, k->min, k->max);
    *out = found ? (int)v : (int)k->dflt;
    return HUNCH_OK;
}

/* general.sampling.* of a GGUF, or generation_config.json of a folder (which samples only where do_sample is true). */
static hunch_status read_sampling(hn_arch *a, const hn_source *src, hunch_error *err) {
    a->sampling = (hunch_sampling){.temperature = 0, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 0};
    const hn_key temp = {"general.sampling.temp", NULL, 0, 100, 0}, k = {"general.sampling.top_k", NULL, 0, 1 << 24, 0},
                 p = {"general.sampling.top_p", NULL, 0, 1, 1}, m = {"general.sampling.min_p", NULL, 0, 1, 0};
    hunch_sampling s = a->sampling;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) {
        hunch_status st = hn_key_real(src, &temp, &s.temperature, err);
        if (!st) st = hn_key_int(src, &k, &s.top_k, err);
        if (!st) st = hn_key_real(src, &p, &s.top_p, err);
        if (!st) st = hn_key_real(src, &m, &s.min_p, err);
        if (!st) a->sampling = s;
        return st;
    }
    const json_t *g = hn_source_json(src, "generation_config.json");
    if (!json_is_true(json_object_get(g, "do_sample"))) return HUNCH_OK;
    const json_t *v;
    s.temperature = 1;
    if (json_is_number(v = json_object_get(g, "temperature"))) s.temperature = json_number_value(v);
    if (json_is_integer(v = json_object_get(g, "top_k"))) s.top_k = (int)json_integer_value(v);
    if (json_is_number(v = json_object_get(g, "top_p"))) s.top_p = json_number_value(v);
    if (json_is_number(v = json_object_get(g, "min_p"))) s.min_p = json_number_value(v);
    if (!(s.temperature >= 0 && s.temperature <= 100 && s.top_k >= 0 && s.top_p > 0 && s.top_p <= 1 && s.min_p >= 0 &&
          s.min_p <= 1))
        return hn_fail(err, HUNCH_REFUSED, "%s: generation_config.json: sampling parameters out of range",
                       hn_source_path(src));
    a->sampling = s;
    return HUNCH_OK;
}

hunch_status hn_arch_read(hn_arch *a, hn_source *src, hunch_error *err) {
    memset(a, 0, sizeof *a);
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    const char *key = gguf ? "general.architecture" : "model_type", *name = NULL;
    char known[256] = "";
    bool found = false;
    hunch_status st = hn_source_str(src, key, &name, NULL, &found, err);
    if (st) return st;
    if (!found)
        return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing: not a language model", hn_source_path(src), key);
    for (int i = 0; i < N_FAMILIES; i++) {
        const hn_family *f = families[i];
        const char *n = gguf ? f->gguf_name : f->hf_type;
        if (!strcmp(n, name)) {
            snprintf(a->architecture, sizeof a->architecture, "%s", f->gguf_name);
            st = f->read(a, src, err);
            if (!st) st = read_sampling(a, src, err);
            if (st) hn_arch_fini(a);
            return st;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", n);
    }
    return hn_fail(err, HUNCH_REFUSED, "%s: unknown architecture \"%.60s\", expected one of: %s", hn_source_path(src),
                   name, known);
}

void hn_arch_fini(hn_arch *a) {
    hn_free(a->layer);
    hn_free(a->rope_freq);
    a->layer = NULL;
    a->rope_freq = NULL;
}

void hn_arch_tensor_name(const hn_arch *a, hn_role role, int layer, char out[128]) {
    const char *p = a->names[role], *d = strstr(p, "%d");
    if (d)
        snprintf(out, 128, "%.*s%d%s", (int)(d - p), p, layer, d + 2);
    else
        snprintf(out, 128, "%s", p);
}
