/* SPDX-License-Identifier: Apache-2.0 */
/* arch_granite.c - Granite 3: the plain dense block with four multipliers. The attention multiplier replaces 1 /
 * sqrt(head size); logits are divided by the logit multiplier. */
#include "model/arch/arch.h"

static hunch_status read_multipliers(hn_arch *a, const hn_source *src, hunch_error *err) {
    const double usual = (double)a->layer[0].attention_scale;
    const hn_key keys[] = {{"granite.embedding_scale", "embedding_multiplier", 1e-6, 1e6, 1},
                           {"granite.residual_scale", "residual_multiplier", 1e-6, 1e6, 1},
                           {"granite.logit_scale", "logits_scaling", 1e-6, 1e6, 1},
                           {"granite.attention.scale", "attention_multiplier", 1e-6, 1e6, usual}};
    double value[4];
    for (int i = 0; i < 4; i++) {
        hunch_status st = hn_key_real(src, &keys[i], &value[i], err);
        if (st) return st;
    }
    a->embed_scale = (float)value[0];
    a->residual_scale = (float)value[1];
    a->logit_scale = (float)(1 / value[2]);
    for (int i = 0; i < a->layers; i++) a->layer[i].attention_scale = (float)value[3];
    return HUNCH_OK;
}

static hunch_status put_multipliers(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    hunch_status st = hn_gguf_put_f32(w, "granite.embedding_scale", a->embed_scale, err);
    if (!st) st = hn_gguf_put_f32(w, "granite.residual_scale", a->residual_scale, err);
    if (!st) st = hn_gguf_put_f32(w, "granite.logit_scale", 1 / a->logit_scale, err);
    return st ? st : hn_gguf_put_f32(w, "granite.attention.scale", a->layer[0].attention_scale, err);
}

static hunch_status granite_read(hn_arch *a, hn_source *src, hunch_error *err) {
    static const hn_dense granite = {.prefix = "granite",
                                     .interleaved = true,
                                     .attention_bias = true,
                                     .mlp_bias = true,
                                     .finish = read_multipliers,
                                     .put = put_multipliers};
    return hn_dense_read(a, src, &granite, err);
}

const hn_family hn_family_granite = {"granite", "granite", granite_read};
