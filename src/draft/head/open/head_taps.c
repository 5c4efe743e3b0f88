/* SPDX-License-Identifier: Apache-2.0 */
/* head_taps.c - see head_taps.h. */
#include "draft/head/open/head_taps.h"

#include <stdlib.h>

enum { MOST_LAYER = 256 };

static hunch_status fail_list(const hn_source *src, const char *key, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected a list of 1 to %d layers", hn_source_path(src), key, HN_MOST_HEAD_FEATURES);
}

static hunch_status fail_layer(const hn_source *src, const char *key, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, "%s: %s: expected layers of 0 to %d", hn_source_path(src), key, MOST_LAYER);
}

hunch_status hn_taps_of_list(const json_t *list, const hn_source *src, const char *key, bool outputs, hn_head_taps *taps,
                             hunch_error *err) {
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n < 1 || n > HN_MOST_HEAD_FEATURES) return fail_list(src, key, err);
    taps->n = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < -(int)outputs || json_integer_value(id) > MOST_LAYER)
            return fail_layer(src, key, err);
        taps->boundary[i] = (int)json_integer_value(id) + outputs;
    }
    return HUNCH_OK;
}

hunch_status hn_taps_of_gguf(const hn_source *src, hn_head_taps *taps, hunch_error *err) {
    const char *key = hn_head_key_name(src, HN_HEAD_KEY_STATES, 0);
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

hunch_status hn_taps_of_spec(hn_spec *spec, hn_head_taps *taps, bool *found, hunch_error *err) {
    const char *text = hn_spec_string(spec, "taps"), *at = text;
    *found = text;
    for (taps->n = 0; text && taps->n < HN_MOST_HEAD_FEATURES; at++) {
        char *end;
        const long id = strtol(at, &end, 10);
        if (end == at || id < 0 || id > MOST_LAYER || (*end && *end != ':')) break;
        taps->boundary[taps->n++] = (int)id;
        at = end;
        if (!*at) return HUNCH_OK;
    }
    return text ? hn_fail(err, HUNCH_USAGE, "drafter '%s': taps=%s: expected layers of 0 to 256 such as 2:16:29", spec->text, text)
                : HUNCH_OK;
}
