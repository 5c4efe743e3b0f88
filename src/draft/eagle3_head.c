/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_head.c - see eagle3_head.h.
 *
 * Two numberings of the layers stand in files: states entering a layer (speculators, vLLM), and outputs of a layer (SpecForge).
 * As SGLang does: where the first is 1, all are outputs, and 1 is added; but never of speculators, which has one numbering,
 * nor where ptd_token_id stands, a key of vLLM's alone, which names states.
 */
#include "draft/eagle3_head.h"

#include <stdlib.h>

#include "draft/head_reading.h"

enum { MOST_LAYER = 256 };

static hunch_status fail_list(const hn_source *src, const char *key, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected a list of 1 to %d layers", hn_source_path(src), key, HN_MOST_HEAD_FEATURES);
}

static hunch_status fail_layer(const hn_source *src, const char *key, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected layers of 0 to %d", hn_source_path(src), key, MOST_LAYER);
}

static hunch_status read_list(const json_t *list, const hn_source *src, hn_head_taps *taps, hunch_error *err) {
    const char *key = hn_head_key_name(src, HN_HEAD_SAYS_STATES, 0);
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n < 1 || n > HN_MOST_HEAD_FEATURES) return fail_list(src, key, err);
    taps->n = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > MOST_LAYER) return fail_layer(src, key, err);
        taps->boundary[i] = (int)json_integer_value(id);
    }
    const bool states = hn_source_config(src, hn_head_key_name(src, HN_HEAD_SAYS_KIND, 0)) || hn_source_config(src, "ptd_token_id");
    const bool outputs = taps->boundary[0] == 1 && !states;
    for (int i = 0; outputs && i < taps->n; i++) taps->boundary[i]++;
    return HUNCH_OK;
}

/* Of a GGUF, which has one numbering: states. */
static hunch_status read_array(hn_source *src, hn_head_taps *taps, hunch_error *err) {
    const char *key = hn_head_key_name(src, HN_HEAD_SAYS_STATES, 0);
    const hn_array *list = NULL;
    hunch_status st = key ? hn_source_array(src, key, &list, err) : HUNCH_OK;
    if (st) return st;
    if (!list)
        return hn_fail(err, HUNCH_REFUSED, "%s: key %s is missing: expected the layers that it reads", hn_source_path(src),
                       key ? key : "eagle3.target_layers");
    const size_t n = hn_array_count(list);
    if (hn_array_is_strings(list) || n < 1 || n > HN_MOST_HEAD_FEATURES) return fail_list(src, key, err);
    taps->n = (int)n;
    for (size_t i = 0; i < n; i++) {
        const double id = hn_array_number(list, i);
        if (!(id >= 0 && id <= MOST_LAYER) || id != (int)id) return fail_layer(src, key, err);
        taps->boundary[i] = (int)id;
    }
    return HUNCH_OK;
}

/* LOW:MID:HIGH, any number of them. */
static hunch_status read_key(const char *text, const hn_spec *spec, hn_head_taps *taps, hunch_error *err) {
    const char *at = text;
    for (taps->n = 0; taps->n < HN_MOST_HEAD_FEATURES; at++) {
        char *end;
        const long id = strtol(at, &end, 10);
        if (end == at || id < 0 || id > MOST_LAYER || (*end && *end != ':')) break;
        taps->boundary[taps->n++] = (int)id;
        at = end;
        if (!*at) return HUNCH_OK;
    }
    return hn_fail(err, HUNCH_USAGE, "drafter '%s': taps=%s: expected layers of 0 to 256 such as 2:16:29", spec->text, text);
}

const json_t *hn_eagle3_list(const hn_source *src) {
    const json_t *list = NULL;
    const char *name;
    for (int i = 0; !list && (name = hn_head_key_name(src, HN_HEAD_SAYS_STATES, i)); i++) list = hn_source_config(src, name);
    return list;
}

static hunch_status read_taps(hn_source *src, hn_spec *spec, int layers, hn_head_taps *taps, hunch_error *err) {
    const char *key = hn_spec_string(spec, "taps");
    if (key) return read_key(key, spec, taps, err);
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return read_array(src, taps, err);
    const json_t *list = hn_eagle3_list(src);
    if (list) return read_list(list, src, taps, err);
    if (layers < 7)
        return hn_fail(err, HUNCH_REFUSED, "%s: it does not say which layers it reads, and the usual ones collide in %d layers: "
                       "expected taps=LOW:MID:HIGH", hn_source_path(src), layers);
    *taps = (hn_head_taps){3, {2, layers / 2, layers - 3}};
    return HUNCH_OK;
}

/* Norms before fc are there where the file says so, or a tensor shows it: one that is missing is an error, not another head. */
static hunch_status read_norms(hn_head_desc *d, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    hunch_status st = hn_head_bool(src, HN_HEAD_SAYS_NORM_BEFORE_RESIDUAL, &d->normed_stream, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_SAYS_NORM_OUTPUT, &d->norm_output, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_SAYS_NORM_BEFORE_FC, &d->norm_before_fc, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_SAYS_FC_NORM, &d->fc_norms, err);
    d->norm_before_fc |= hn_head_look(src, names, HN_HEAD_FEATURE_NORM) != NULL;
    d->fc_norms |= hn_head_look(src, names, HN_HEAD_STATE_NORM) != NULL;
    return st;
}

hunch_status hn_eagle3_describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                                const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    hunch_status st = read_taps(src, spec, target->layers, taps, err);
    if (st) return st;
    const hn_tensor *fc = hn_head_look(src, names, HN_HEAD_FC);
    const bool noted = !fc && target->report; /* with what else is missing */
    if (!noted && (!fc || fc->n_dims != 2 || fc->dims[0] != (uint64_t)taps->n * (uint64_t)target->hidden))
        return hn_fail(err, HUNCH_REFUSED, "%s: fc.weight %s, expected %d states of the target, of %d numbers each",
                       hn_source_path(src), fc ? "has other inputs" : "is missing", taps->n, target->hidden);
    d->features = taps->n;
    d->feature_width = target->hidden;
    d->fc_bias = hn_head_look(src, names, HN_HEAD_FC_BIAS);
    a->layer[0].input = HN_INPUT_PAIR;
    st = read_norms(d, src, names, err);
    return st ? st : hn_head_read_norms(spec, d, err);
}
