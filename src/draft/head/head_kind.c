/* SPDX-License-Identifier: Apache-2.0 */
/* head_kind.c - see head_kind.h. A folder's own statement counts first (speculators), then tensors that no other kind has, then those that
 * kinds share. Model types are of no use: most heads have llama. */
#include "draft/head/head_kind.h"

#include <string.h>

/* Beginnings of tensors' names that only this kind has, after "model." if that precedes them. The first row that fits counts. */
static const struct {
    const char *kind, *begin;
} signs[] = {
    {"peagle", "mask_hidden"},
    {"dart", "midlayer.mask_rep"},
    {"dflash2", "candidate_selector."},
    {"xpress", "refiner_head."},
    {"domino", "prefix_gru."},
    {"dspark", "markov_head."},
    {"mtp", "mtp_layers.0."},
    {"meta-mtp", "extra_heads."},
    {"falcon", "lstm."},
    {"mlp", "speculator.emb."},
    {"mlp", "speculator.forget_emb."},
    {"mlp", "forget_emb."},
    {"mlp", "emb.0."},
    {"hydra", "hydra_"},
    {"medusa", "medusa_head."},
    {"medusa", "medusa_heads."},
    {"medusa", "blocks.0.layers.0."},
    {"medusa", "0.0.linear.weight"},
    {"medusa", "lm_heads.0.weight"},
    {"eagle3", "midlayer.hidden_norm."},
    {"eagle3", "layers.0.hidden_norm.weight"},
};

static bool has_begin(hn_source *src, const char *begin) {
    for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
        const char *name = hn_source_tensor(src, i)->name;
        if (!strncmp(name, "model.", 6)) name += 6;
        if (!strncmp(name, begin, strlen(begin))) return true;
    }
    return false;
}

/* Models of several parts have such tensors under other prefixes. */
static bool has_part(hn_source *src, const char *part) {
    for (size_t i = 0; i < hn_source_tensor_count(src); i++)
        if (strstr(hn_source_tensor(src, i)->name, part)) return true;
    return false;
}

static const char *text_of(const hn_source *src, const char *key) {
    const char *text = NULL;
    bool found = false;
    return !hn_source_str(src, key, &text, NULL, &found, NULL) && found ? text : NULL;
}

/* A model's own trunk: modules of multi-token prediction may be in the same folder. */
static bool has_trunk(const hn_source *src) {
    return hn_source_find(src, "model.embed_tokens.weight") &&
           hn_source_find(src, "model.layers.0.input_layernorm.weight");
}

static const char *by_tensors(hn_source *src) {
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (has_begin(src, signs[i].begin) && (strcmp(signs[i].kind, "mtp") != 0 || !has_trunk(src)))
            return signs[i].kind;
    const char *projector = json_string_value(hn_source_config(src, "dflash_config.projector_type"));
    if (projector && !strcmp(projector, "domino")) return "domino";
    if (!has_begin(src, "layers.0.self_attn.") && !has_begin(src, "midlayer.self_attn.")) return NULL;
    if (has_begin(src, "encoder.output_norm_enc.weight")) return "dflash";
    if (!has_begin(src, "fc.weight")) return NULL;
    return hn_source_config(src, "dflash_config") || has_begin(src, "hidden_norm.weight") ? "dflash" : "eagle";
}

static const char *of_gguf(hn_source *src) {
    const char *named = text_of(src, "hunch.head.kind"), *architecture = text_of(src, "general.architecture");
    if (named) return named;
    if (!architecture) return NULL;
    if (!strcmp(architecture, "dflash") && has_begin(src, "selector_")) return "dflash2";
    if (!strcmp(architecture, "dflash")) return hn_source_find(src, "markov_w1.weight") ? "dspark" : "dflash";
    if (!strcmp(architecture, "eagle3"))
        return hn_source_find(src, "mask_hidden") ? "peagle" : hn_source_find(src, "blk.0.mask_rep") ? "dart" : "eagle3";
    if (hn_source_find(src, "blk.0.attn_norm.weight") || hn_source_find(src, "blk.0.attn_q.weight")) return "model";
    return has_part(src, ".nextn.eh_proj.weight") ? "mtp" : NULL; /* only a model's block of multi-token prediction */
}

const char *hn_head_kind(hn_source *src) {
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return of_gguf(src);
    const char *named = text_of(src, "speculators_model_type"), *kind = named ? named : by_tensors(src);
    if (kind) return kind;
    const bool whole = has_part(src, "embed_tokens.weight") && has_part(src, "layers.0.input_layernorm.weight");
    return whole && text_of(src, "model_type") ? "model" : NULL;
}
