/* SPDX-License-Identifier: Apache-2.0 */
/* sampling_keys.c - see sampling_keys.h. */
#include "model/arch/sampling_keys.h"

#include <stddef.h>

#define AT(field) offsetof(hunch_sampling, field)
const hn_sampling_key hn_sampling_keys[] = {
    {"general.sampling.temp", "temperature", AT(temperature), false, true, 0, 100, 0},
    {"general.sampling.top_k", "top_k", AT(top_k), true, true, 0, 1 << 24, 0},
    {"general.sampling.top_p", "top_p", AT(top_p), false, true, 1e-9, 1, 1},
    {"general.sampling.min_p", "min_p", AT(min_p), false, true, 0, 1, 0},
    {NULL, "typical_p", AT(typical_p), false, true, 0, 1, 1},
    {"general.sampling.xtc_probability", NULL, AT(xtc_probability), false, true, 0, 1, 0},
    {"general.sampling.xtc_threshold", NULL, AT(xtc_threshold), false, true, 0, 0.5, 0},
    {"general.sampling.penalty_repeat", "repetition_penalty", AT(repetition_penalty), false, false, 1e-2, 100, 1},
    {NULL, NULL, 0, false, false, 0, 0, 0},
};

double hn_sampling_value(const hunch_sampling *p, const hn_sampling_key *k) {
    const char *field = (const char *)p + k->at;
    return k->integer ? *(const int *)(const void *)field : *(const double *)(const void *)field;
}

static void value_set(hunch_sampling *p, const hn_sampling_key *k, double v) {
    char *field = (char *)p + k->at;
    if (k->integer)
        *(int *)(void *)field = (int)v;
    else
        *(double *)(void *)field = v;
}

static hunch_status read_one(const hn_sampling_key *k, const hn_source *src, const json_t *config, double *v,
                             hunch_error *err) {
    bool found = false;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) {
        if (!k->gguf) return HUNCH_OK;
        if (k->integer) {
            uint64_t n = 0;
            hunch_status st = hn_source_u64(src, k->gguf, &n, &found, err);
            if (st) return st;
            if (found) *v = (double)n;
        } else {
            hunch_status st = hn_source_f64(src, k->gguf, v, &found, err);
            if (st) return st;
        }
    } else {
        const json_t *j = k->hf ? json_object_get(config, k->hf) : NULL;
        if (j && !json_is_number(j) && !json_is_null(j))
            return hn_fail(err, HUNCH_REFUSED, "%s: generation_config.json: %s, expected a number", hn_source_path(src),
                           k->hf);
        found = json_is_number(j);
        if (found) *v = json_number_value(j);
    }
    if (found && !(*v >= k->min && *v <= k->max))
        return hn_fail(err, HUNCH_REFUSED, "%s: sampling default %s is %g, expected %g to %g", hn_source_path(src),
                       hn_source_get_kind(src) == HN_SOURCE_GGUF ? k->gguf : k->hf, *v, k->min, k->max);
    return HUNCH_OK;
}

hunch_status hn_sampling_read(hunch_sampling *out, const hn_source *src, hunch_error *err) {
    const bool folder = hn_source_get_kind(src) != HN_SOURCE_GGUF;
    const json_t *config = folder ? hn_source_json(src, "generation_config.json") : NULL;
    const json_t *draws = json_object_get(config, "do_sample");
    const bool samples = !folder || json_is_true(draws);
    hunch_sampling p = {.top_p = 1};
    if (draws && !json_is_boolean(draws) && !json_is_null(draws))
        return hn_fail(err, HUNCH_REFUSED, "%s: generation_config.json: do_sample, expected true or false",
                       hn_source_path(src));
    for (const hn_sampling_key *k = hn_sampling_keys; k->gguf || k->hf; k++) {
        double v = k->off;
        if (folder && samples && k->at == AT(temperature)) v = 1; /* the default of sampling without a temperature */
        if (!samples && k->dist) continue;
        hunch_status st = read_one(k, src, config, &v, err);
        if (st) return st;
        value_set(&p, k, v);
    }
    if (p.xtc_threshold == 0) p.xtc_probability = 0; /* has no effect */
    *out = p;
    return HUNCH_OK;
}
