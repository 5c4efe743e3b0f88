/* SPDX-License-Identifier: Apache-2.0 */
/* convert_keys.c - the keys of a GGUF that no family has of its own: its name, the type of its matrices, how tokens are drawn. A family's:
 * schema/key_write.c; the tokenizer's: convert_tokenizer.c. */
#include "convert/convert_private.h"

#include <string.h>

#include "model/arch/sampling_keys.h"

enum { QUANTISATION_VERSION = 2 }; /* of ggml's blocks as they are now */

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
    char name[128];
    const int last = c->arch.layers - 1; /* the first layers of some models are dense */
    hn_arch_tensor_name(&c->arch, hn_layer_has_experts(&c->arch.layer[last]) ? HN_ROLE_EXPERT_DOWN : HN_ROLE_DOWN, last, name);
    const hunch_status status = hn_conversion_put_type(c, hn_source_take(c->src, name));
    return status ? status : hn_family_write(&c->arch, c->w, c->err);
}
