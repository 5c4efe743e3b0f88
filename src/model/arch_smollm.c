/* SPDX-License-Identifier: Apache-2.0 */
/* arch_smollm.c - SmolLM3: the plain dense block, some of whose layers do not rotate. (SmolLM2 is a Llama.) */
#include "model/arch.h"

enum { USUAL_INTERVAL = 4 };

/* no_rope_layers says 0 of the layers that do not rotate; absent, and in a GGUF, it is every fourth. Where windows are used,
 * these are the layers that slide. */
static hunch_status read_layers(hn_arch *a, const hn_source *src, hunch_error *err) {
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
        a->layer[i].no_rope = list ? json_integer_value(json_array_get(list, (size_t)i)) == 0 : (i + 1) % interval == 0;
    int window;
    bool said;
    hunch_status st = hn_dense_sliding(src, &window, err);
    if (st || window == 0) return st;
    st = hn_dense_layer_types(a, src, window, &said, err);
    for (int i = 0; !st && !said && i < a->layers; i++) a->layer[i].window = a->layer[i].no_rope ? window : 0;
    return st;
}

static hunch_status fits_gguf(const hn_arch *a, const hn_source *src, hunch_error *err) {
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].no_rope != ((i + 1) % USUAL_INTERVAL == 0))
            return hn_fail(
                err, HUNCH_REFUSED,
                "%s: no_rope_layers: in a %s GGUF file every fourth layer does not rotate, here layer %d differs",
                hn_source_path(src), a->architecture, i);
    return HUNCH_OK;
}

static hunch_status smollm3_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense smollm3 = {.prefix = "smollm3",
                                     .interleaved = true,
                                     .attention_bias = true,
                                     .mlp_bias = true,
                                     .may_slide = true,
                                     .theta = 2000000,
                                     .tied = true,
                                     .finish = read_layers,
                                     .fits_gguf = fits_gguf};
    return hn_dense_read(a, src, &smollm3, err);
}

const hn_family hn_family_smollm3 = {"smollm3", "smollm3", smollm3_read};
