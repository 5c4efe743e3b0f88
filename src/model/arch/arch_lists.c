/* SPDX-License-Identifier: Apache-2.0 */
/* arch_lists.c - what files say of each layer in lists, by names, numbers or flags: kinds of layers, which have a window, values of their
 * own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/arch/arch.h"

bool hn_family_is_list(const hn_arch *a, const hn_source *src, const json_t *list) {
    const json_t *more = hn_source_config(src, "num_nextn_predict_layers");
    const size_t n = json_array_size(list), layers = (size_t)a->layers;
    return json_is_array(list) && (n == layers || (json_is_integer(more) && n == layers + (size_t)json_integer_value(more)));
}

hunch_status hn_family_kinds(const hn_arch *a, const hn_source *src, const char *path, const char *const names[2],
                             void (*set)(hn_layer_desc *l, bool second), bool *found, hunch_error *err) {
    const json_t *list = hn_source_config(src, path);
    bool good = hn_family_is_list(a, src, list);
    *found = list != NULL;
    for (int i = 0; good && i < a->layers; i++) {
        const char *name = json_string_value(json_array_get(list, (size_t)i));
        const bool second = name && !strcmp(name, names[1]);
        good = name && (second || !strcmp(name, names[0]));
        set(&a->layer[i], good && second);
    }
    return good || !list ? HUNCH_OK
                         : hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s, expected a list of %d names, %s or %s", hn_source_path(src),
                                   path, a->layers, names[0], names[1]);
}

hunch_status hn_family_listed(const hn_source *src, const char *path, int most, bool listed[HN_MOST_LAYERS], bool *found,
                              hunch_error *err) {
    const json_t *said = hn_source_config(src, path);
    const char *p = json_string_value(said);
    *found = said != NULL;
    memset(listed, 0, HN_MOST_LAYERS * sizeof *listed);
    if (said && !p && !json_is_array(said))
        return hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s, expected a list of layers", hn_source_path(src), path);
    for (size_t i = 0; p ? *p != 0 : i < json_array_size(said); i++) {
        const json_t *one = json_array_get(said, i);
        char *end = NULL;
        const long long n = p ? strtoll(p, &end, 10) : json_is_integer(one) ? json_integer_value(one) : -1;
        if (n < 0 || n > most || (p && (end == p || (*end != ',' && *end != 0))))
            return hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s[%zu], expected a layer from 0 to %d", hn_source_path(src), path, i,
                           most);
        listed[n] = true;
        if (p) p = *end ? end + 1 : end;
    }
    return HUNCH_OK;
}

hunch_status hn_family_headless(hn_arch *a, const hn_source *src, void (*set)(hn_layer_desc *l, bool second), hunch_error *err) {
    const hn_array *list = NULL;
    char key[96];
    hn_family_key(a->family, "attention.head_count_kv", key);
    if (hn_source_array(src, key, &list, NULL) || !list) return HUNCH_OK; /* one number of all */
    if (hn_array_count(list) != (size_t)a->layers)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s has %zu numbers, expected %d", hn_source_path(src), key, hn_array_count(list),
                       a->layers);
    for (int i = 0; i < a->layers; i++) set(&a->layer[i], hn_array_number(list, (size_t)i) == 0);
    return HUNCH_OK;
}

hunch_status hn_family_numbers(const hn_arch *a, const hn_source *src, const hn_key *key, bool whole,
                               double each[HN_MOST_LAYERS], hunch_error *err) {
    const json_t *said = a->files.form == HN_SOURCE_HF ? hn_source_config(src, key->hf) : NULL;
    bool good = !json_is_array(said) || hn_family_is_list(a, src, said);
    for (int i = 0; good && i < a->layers; i++) {
        const json_t *n = json_is_array(said) ? json_array_get(said, (size_t)i) : said;
        each[i] = n && !json_is_null(n) ? json_number_value(n) : key->dflt;
        good = !n || json_is_null(n) || (json_is_number(n) && each[i] >= key->min && each[i] <= key->max);
        good = good && !(whole && each[i] != floor(each[i]));
    }
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_REFUSED, "%s: config.json: %s, expected a%s number from %g to %g, or a list of %d",
                          hn_source_path(src), key->hf, whole ? " whole" : "", key->min, key->max, a->layers);
}

/* ---- windows ------------------------------------------------------------------------------------------------------------- */

hunch_status hn_family_listed_windows(hn_arch *a, const hn_source *src, const hn_array *list, int window, hunch_error *err) {
    if (hn_array_is_strings(list) || hn_array_count(list) < (size_t)a->layers)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s.attention.sliding_window_pattern, expected %d flags",
                       hn_source_path(src), a->family->gguf_name, a->layers);
    for (int i = 0; i < a->layers; i++) a->layer[i].window = hn_array_number(list, (size_t)i) != 0 ? window : 0;
    return HUNCH_OK;
}

static void set_slides(hn_layer_desc *l, bool slides) {
    l->window = slides;
}

hunch_status hn_family_layer_types(hn_arch *a, const hn_source *src, int window, bool *found, hunch_error *err) {
    static const char *const names[] = {"full_attention", "sliding_attention"};
    const hunch_status st = hn_family_kinds(a, src, "layer_types", names, set_slides, found, err);
    for (int i = 0; *found && i < a->layers; i++) a->layer[i].window *= window;
    return st;
}

hunch_status hn_family_windows(hn_arch *a, const hn_source *src, const hn_key *period, int window, hunch_error *err) {
    const hn_array *list = NULL;
    bool said = false;
    int every = 1;
    hunch_status st = hn_family_layer_types(a, src, window, &said, err);
    if (st || said) return st;
    if (!hn_source_array(src, period->gguf, &list, NULL) && list) return hn_family_listed_windows(a, src, list, window, err);
    st = hn_key_int(src, period, &every, err);
    for (int i = 0; !st && i < a->layers; i++) a->layer[i].window = (i + 1) % every ? window : 0;
    return st;
}
