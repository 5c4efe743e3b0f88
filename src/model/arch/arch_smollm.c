/* SPDX-License-Identifier: Apache-2.0 */
/* arch_smollm.c - SmolLM3: the plain dense block; some layers have no rotation. (SmolLM2 is a Llama.) */
#include "model/arch/arch.h"

enum { USUAL_INTERVAL = 4 };

/* In a GGUF: no_rope_layers, if it is not every fourth layer. Other programs have no key for it. */
static const char own_layers[] = "smollm3.hunch.no_rope_layers";

static int turns(const hn_layer_desc *l) {
    return l->rotation != HN_NO_ROTATION;
}

static void set_turns(hn_layer_desc *l, bool turns) {
    l->rotation = turns ? 0 : HN_NO_ROTATION;
}

static hunch_status read_own_layers(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_array *list = NULL;
    hunch_status st = hn_source_array(src, own_layers, &list, err);
    if (st || !list) return st;
    if (hn_array_is_strings(list) || hn_array_count(list) != (size_t)a->layers)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s, expected %d numbers", hn_source_path(src), own_layers, a->layers);
    for (int i = 0; i < a->layers; i++) set_turns(&a->layer[i], hn_array_number(list, (size_t)i) != 0);
    return HUNCH_OK;
}

/* no_rope_layers is 0 for layers without rotation; if it is absent, every fourth. If windows are used, these are the
 * layers that have one. */
static hunch_status read_layers(hn_arch *a, hn_source *src, hunch_error *err) {
    const json_t *list = hn_source_config(src, "no_rope_layers"),
                 *every = hn_source_config(src, "no_rope_layer_interval");
    const json_int_t interval = json_is_integer(every) ? json_integer_value(every) : USUAL_INTERVAL;
    if (list && (!json_is_array(list) || json_array_size(list) != (size_t)a->layers))
        return hn_fail(err, HUNCH_REFUSED, "%s: config.json: no_rope_layers, expected a list of %d numbers",
                       hn_source_path(src), a->layers);
    if (interval < 1)
        return hn_fail(err, HUNCH_REFUSED, "%s: config.json: no_rope_layer_interval, expected 1 or more",
                       hn_source_path(src));
    for (int i = 0; i < a->layers; i++)
        set_turns(&a->layer[i], list ? json_integer_value(json_array_get(list, (size_t)i)) != 0 : (i + 1) % interval != 0);
    int window;
    bool said;
    hunch_status st = read_own_layers(a, src, err);
    if (!st) st = hn_family_sliding(src, &window, err);
    if (st || window == 0) return st;
    st = hn_family_layer_types(a, src, window, &said, err);
    for (int i = 0; !st && !said && i < a->layers; i++) a->layer[i].window = turns(&a->layer[i]) ? 0 : window;
    return st;
}

static bool unusual_layers(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) {
    for (int i = 0; i < a->layers; i++)
        if (turns(&a->layer[i]) != ((i + 1) % USUAL_INTERVAL != 0)) return true;
    return false;
}

static const hn_key_row keys[] = {
    HN_THETA(2e6),
    HN_TIED(1),
    {HN_LAYER(LIST, rotation), "hunch.no_rope_layers", .each = turns, .written = unusual_layers},
    HN_ROWS_END};

const hn_family hn_family_smollm3 = {.gguf_name = "smollm3", .hf_type = "smollm3", .pairs = true,
                                     .keys = {hn_attention_bias_keys, hn_mlp_bias_keys, hn_slides, keys}, .finish = read_layers};
