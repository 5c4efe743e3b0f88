/* SPDX-License-Identifier: Apache-2.0 */
/* convert_assistant.c - the keys of an assistant of Gemma 4 in a GGUF (model/head/head_assistant.c reads them): its layers are of two
 * kinds, with a window and without, and each kind has sizes and a rotation of its own. */
#include "base/mem.h"
#include "convert/convert_private.h"

/* The last layer with a window, or the last one without; that of the other kind if there is none. */
static const hn_layer_desc *layer_of(const hn_arch *a, bool window) {
    const hn_layer_desc *l = &a->layer[0];
    for (int i = 0; i < a->layers; i++)
        if ((a->layer[i].window > 0) == window) l = &a->layer[i];
    return l;
}

static hunch_status put_kv_heads(hn_conversion *c) {
    char key[96];
    const size_t n = (size_t)c->arch.layers;
    int32_t *heads = hn_alloc(n * sizeof *heads);
    if (!heads) return hn_fail_memory(c->err, "a list of layers", n * sizeof *heads);
    for (size_t i = 0; i < n; i++) heads[i] = c->arch.layer[i].kv_heads;
    const hunch_status st = hn_gguf_put_i32s(c->w, hn_conversion_key(c, "attention.head_count_kv", key), heads, n, c->err);
    hn_free(heads);
    return st;
}

static hunch_status put_numbers(hn_conversion *c) {
    const hn_arch *a = &c->arch;
    const hn_layer_desc *full = layer_of(a, false), *sliding = layer_of(a, true);
    const struct {
        const char *key;
        int value;
    } numbers[] = {{"vocab_size", a->vocab},
                   {"context_length", a->context},
                   {"embedding_length", a->hidden},
                   {"block_count", a->layers},
                   {"nextn_predict_layers", a->layers},
                   {"feed_forward_length", full->ffn_width},
                   {"attention.head_count", full->heads},
                   {"attention.key_length", full->head_dim},
                   {"attention.value_length", full->head_dim},
                   {"attention.key_length_swa", sliding->head_dim},
                   {"attention.value_length_swa", sliding->head_dim},
                   {"attention.sliding_window", sliding->window},
                   {"attention.shared_kv_layers", a->layers},
                   {"rope.dimension_count", a->rotation[full->rotation].dims},
                   {"rope.dimension_count_swa", a->rotation[sliding->rotation].dims}};
    char key[96];
    hunch_status st = HUNCH_OK;
    for (size_t i = 0; !st && i < sizeof numbers / sizeof *numbers; i++)
        st = hn_gguf_put_u32(c->w, hn_conversion_key(c, numbers[i].key, key), (uint32_t)numbers[i].value, c->err);
    return st;
}

hunch_status hn_conversion_put_assistant(hn_conversion *c) {
    const hn_arch *a = &c->arch;
    char key[96], name[128];
    hn_arch_tensor_name(a, HN_ROLE_DOWN, 0, name);
    hunch_status st = hn_conversion_put_type(c, hn_source_take(c->src, name));
    if (!st) st = put_numbers(c);
    if (!st) st = put_kv_heads(c);
    if (!st) st = hn_dense_put_layers(a, c->w, hn_conversion_key(c, "attention.sliding_window_pattern", key), hn_dense_slides, c->err);
    if (!st) st = hn_gguf_put_f32(c->w, hn_conversion_key(c, "attention.layer_norm_rms_epsilon", key), a->norm_eps, c->err);
    if (!st)
        st = hn_gguf_put_f32(c->w, hn_conversion_key(c, "rope.freq_base", key),
                             (float)a->rotation[layer_of(a, false)->rotation].scaling.theta, c->err);
    return st ? st
              : hn_gguf_put_f32(c->w, hn_conversion_key(c, "rope.freq_base_swa", key),
                                (float)a->rotation[layer_of(a, true)->rotation].scaling.theta, c->err);
}
