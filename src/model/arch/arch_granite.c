/* SPDX-License-Identifier: Apache-2.0 */
/* arch_granite.c - Granite 3: the plain dense block with four multipliers. The attention multiplier replaces 1 /
 * sqrt(head size); logits are divided by the logit multiplier. */
#include "model/arch/arch.h"

static bool divisor(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v = (double)(1 / a->logit_scale);
    return true;
}

hunch_status hn_granite_divide_logits(hn_arch *a, hn_source *src HN_UNUSED, hunch_error *err HN_UNUSED) {
    a->logit_scale = (float)(1 / a->files.logit_divisor);
    return HUNCH_OK;
}

/* A folder's multiplier is 1 if it is absent; other programs take that of other families for a GGUF without it. */
static double usual_scale(const hn_arch *a, const hn_layer_desc *l) {
    return a->files.form == HN_SOURCE_HF ? 1 : hn_scale_of_heads(a, l);
}

const hn_key_row hn_granite_multipliers[] = {
    {HN_MODEL(FLOAT, embed_scale), "embedding_scale", "embedding_multiplier", 1e-6, 1e6, {1, 1}, HN_BEHIND},
    {HN_MODEL(FLOAT, residual_scale), "residual_scale", "residual_multiplier", 1e-6, 1e6, {1, 1}, HN_BEHIND},
    {HN_MODEL(REAL, files.logit_divisor), "logit_scale", "logits_scaling", 1e-6, 1e6, {1, 1}, .written = divisor},
    {HN_LAYER(FLOAT, attention_scale), "attention.scale", "attention_multiplier", 1e-6, 1e6, .how = HN_BEHIND,
     .follows = usual_scale},
    HN_ROWS_END};

const hn_family hn_family_granite = {.gguf_name = "granite", .hf_type = "granite", .pairs = true,
                                     .keys = {hn_attention_bias_keys, hn_mlp_bias_keys, hn_granite_multipliers},
                                     .finish = hn_granite_divide_logits};
