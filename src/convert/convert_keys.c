/* SPDX-License-Identifier: Apache-2.0 */
/* convert_keys.c - the keys of a GGUF: its name, the type of its matrices, sizes, how tokens are drawn. Those of the rotation:
 * convert_rotation.c; of the tokenizer: convert_tokenizer.c. */
#include "convert/convert_private.h"

#include <string.h>

#include "model/arch/sampling_keys.h"

enum { QUANTISATION_VERSION = 2 }; /* of ggml's blocks as they are now */

const char *hn_conversion_key(const hn_conversion *c, const char *suffix, char key[96]) {
    hn_dense_key(c->arch.dense, suffix, key);
    return key;
}

/* general.name: the name in config.json, else the folder's name. */
hunch_status hn_conversion_put_name(hn_conversion *c) {
    const char *name = NULL, *path = hn_source_path(c->src);
    size_t len = 0;
    bool found = false;
    hunch_status status = hn_source_str(c->src, "_name_or_path", &name, &len, &found, c->err);
    if (status)
        return status;
    if (!found || len == 0) {
        size_t end = strlen(path), start;
        while (end > 1 && path[end - 1] == '/')
            end--;
        for (start = end; start > 0 && path[start - 1] != '/';)
            start--;
        name = path + start;
        len = end - start;
    }
    return hn_gguf_put_str(c->w, "general.name", name, len, c->err);
}

hunch_status hn_conversion_put_type(hn_conversion *c, const hn_tensor *t) {
    const hn_dtype type = t != NULL && t->known && t->dtype < HN_WEIGHT_TYPES ? hn_conversion_type(c, t) : HN_F32;
    const hunch_status status = hn_gguf_put_u32(c->w, "general.file_type", hn_types[type].file, c->err); /* the type of most weights */
    return !status && hn_dtype_block(type) > 1
               ? hn_gguf_put_u32(c->w, "general.quantization_version", QUANTISATION_VERSION, c->err)
               : status;
}

static hunch_status dimensions_write(hn_conversion *c) {
    const hn_arch *a = &c->arch;
    const hn_layer_desc *l = &a->layer[0];
    const bool usual_heads = l->mixer == HN_MIXER_ATTENTION && l->head_dim * l->heads == a->hidden;
    int window = 0;
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].window > 0)
            window = a->layer[i].window;
    const struct {
        const char *key;
        int value;
    } numbers[] = {
        {"vocab_size", a->vocab},
        {"context_length", a->context},
        {"embedding_length", a->hidden},
        {"block_count", a->layers + a->files.next_layers},
        {"nextn_predict_layers", a->files.next_layers},
        {"feed_forward_length", a->dense->by_layer ? 0 : l->ffn_width},
        {"attention.head_count", l->heads},
        {"attention.head_count_kv", a->dense->by_layer ? 0 : l->kv_heads},
        {"rope.dimension_count", a->dense->no_rope_count ? 0 : hn_conversion_rotation(c)->dims},
        {"attention.sliding_window", window},
        {"attention.key_length", usual_heads || a->dense->by_layer ? 0 : l->head_dim},
        {"attention.value_length", usual_heads || a->dense->by_layer ? 0 : hn_layer_value_dim(l)},
    };
    char key[96];
    hunch_status status = HUNCH_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !status; i++)
        if (numbers[i].value != 0) /* head sizes are written only if they do not follow from the width */
            status = hn_gguf_put_u32(c->w, hn_conversion_key(c, numbers[i].key, key), (uint32_t)numbers[i].value, c->err);
    /* if other programs have no windows for the family, also which layers have one: they ignore both (docs/targets.md) */
    if (!status && window > 0 && !a->dense->window_key)
        status = hn_dense_put_layers(a, c->w, hn_conversion_key(c, "attention.sliding_window_pattern", key), hn_dense_slides, c->err);
    return status;
}

hunch_status hn_conversion_put_sampling(hn_conversion *c) {
    const hunch_sampling *s = &c->arch.sampling;
    hunch_status status = HUNCH_OK;
    for (const hn_sampling_key *k = hn_sampling_keys; !status && (k->gguf || k->hf); k++) {
        const double v = hn_sampling_value(s, k);
        if (!k->gguf || v == k->off || (k->dist && s->temperature == 0))
            continue;
        status = k->integer ? hn_gguf_put_u32(c->w, k->gguf, (uint32_t)v, c->err)
                            : hn_gguf_put_f32(c->w, k->gguf, (float)v, c->err);
    }
    return status;
}

hunch_status hn_conversion_put_sizes(hn_conversion *c) {
    char key[96], name[128];
    const int last = c->arch.layers - 1; /* the first layers of some models are dense */
    hn_arch_tensor_name(&c->arch, hn_layer_has_experts(&c->arch.layer[last]) ? HN_ROLE_EXPERT_DOWN : HN_ROLE_DOWN, last, name);
    hunch_status status = hn_conversion_put_type(c, hn_source_take(c->src, name));
    if (!status)
        status = dimensions_write(c);
    if (!status)
        status = hn_gguf_put_f32(c->w, hn_conversion_key(c, "attention.layer_norm_rms_epsilon", key), c->arch.norm_eps,
                                 c->err);
    return status ? status : hn_conversion_put_rotation(c);
}
