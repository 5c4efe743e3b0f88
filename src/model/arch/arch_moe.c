/* SPDX-License-Identifier: Apache-2.0 */
/* arch_moe.c - reads the keys about experts: which layers have them, how many, how rows choose. Shared by all families;
 * their differences are in hn_moe. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/arch/arch.h"

enum { GATING_SOFTMAX = 1, GATING_SIGMOID = 2, MOST_WIDTH = 1 << 20 }; /* expert_gating_func of a GGUF */

static bool is_gguf(const hn_arch *a) {
    return a->files.form == HN_SOURCE_GGUF;
}

static hunch_status key_int(const hn_arch *a, const hn_source *src, const char *suffix, const char *hf, double min, double max,
                            double dflt, int *out, hunch_error *err) {
    hn_dense_key_buf key;
    if (!is_gguf(a) && !hf) { /* this family's folders have no such key */
        *out = (int)dflt;
        return HUNCH_OK;
    }
    return hn_key_int(src, hn_dense_key_of(&key, a->dense, suffix, hf, min, max, dflt), out, err);
}

/* ---- how many, how wide ---------------------------------------------------------------------------------------------- */

/* The number of experts has a name for each family in a folder, and transformers writes that of another version's: whichever is there. */
static hunch_status read_count(const hn_arch *a, const hn_source *src, int *count, hunch_error *err) {
    static const char *const names[] = {"num_experts", "num_local_experts", "n_routed_experts"};
    const char *name = a->dense->moe->count;
    for (size_t i = 0; !is_gguf(a) && !hn_source_config(src, name) && i < sizeof names / sizeof *names; i++)
        if (hn_source_config(src, names[i])) name = names[i];
    return key_int(a, src, "expert_count", name, 1, HN_MAX_EXPERTS, NAN, count, err);
}

static hunch_status read_width(const hn_arch *a, const hn_source *src, hn_expert_desc *e, hunch_error *err) {
    const hn_moe *moe = a->dense->moe;
    const double usual = moe->width_is_ffn ? (double)a->layer[0].ffn_width : (double)NAN;
    return key_int(a, src, "expert_feed_forward_length", moe->width, 1, MOST_WIDTH, usual, &e->width, err);
}

/* Experts that all rows share: a folder gives their number, in widths of an expert, or their width. */
static hunch_status read_shared(const hn_arch *a, const hn_source *src, hn_expert_desc *e, hunch_error *err) {
    const hn_moe *moe = a->dense->moe;
    int count = 0;
    if (!moe->shared_count && !moe->shared_width) return HUNCH_OK;
    hunch_status st = moe->shared_count
                          ? key_int(a, src, "expert_shared_count", moe->shared_count, 0, HN_MAX_EXPERTS, is_gguf(a) ? 0 : 1, &count, err)
                          : key_int(a, src, "expert_shared_feed_forward_length", moe->shared_width, 0, MOST_WIDTH, 0,
                                    &e->shared_width, err);
    if (!st && moe->shared_count && (double)count * e->width > MOST_WIDTH)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %d shared experts of width %d, expected a width of %d at most together",
                     hn_source_path(src), count, e->width, MOST_WIDTH);
    if (!st && moe->shared_count) e->shared_width = count * e->width;
    e->shared_gate = moe->shared_gate && e->shared_width > 0;
    return st;
}

/* ---- how rows choose ------------------------------------------------------------------------------------------------- */

static hunch_status read_scores(const hn_arch *a, const hn_source *src, hn_expert_desc *e, hunch_error *err) {
    const hn_moe *moe = a->dense->moe;
    hn_dense_key_buf key;
    const hn_key how = *hn_dense_key_of(&key, a->dense, "expert_gating_func", NULL, 0, GATING_SIGMOID, 0);
    int function = 0;
    e->sigmoid = moe->sigmoid;
    e->bias = moe->bias;
    if (!is_gguf(a)) return HUNCH_OK;
    hunch_status st = hn_key_int(src, &how, &function, err);
    if (function != 0) e->sigmoid = function == GATING_SIGMOID;
    return st;
}

/* Ollama's name of expert_weights_norm. */
static hunch_status read_norm_by_other_name(const hn_arch *a, const hn_source *src, hn_expert_desc *e,
                                            hunch_error *err) {
    bool norm = e->normalised, found;
    char key[96];
    hn_dense_key(a->dense, "norm_top_k_prob", key);
    const hunch_status st = hn_source_bool(src, key, &norm, &found, err);
    if (!st && !norm && a->dense->moe->always_normalised)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is false, expected true of %s", hn_source_path(src), key,
                       a->dense->prefix);
    e->normalised = norm;
    return st;
}

static hunch_status read_shares(const hn_arch *a, const hn_source *src, hn_expert_desc *e, hunch_error *err) {
    const hn_moe *moe = a->dense->moe;
    hn_dense_key_buf key;
    double scale = 1;
    bool found;
    hunch_status st = HUNCH_OK;
    e->normalised = moe->always_normalised || moe->normalised[a->files.form];
    hn_dense_key(a->dense, "expert_weights_norm", key.name);
    if (!moe->always_normalised)
        st = hn_source_bool(src, is_gguf(a) ? key.name : "norm_topk_prob", &e->normalised, &found, err);
    if (!st && is_gguf(a)) st = read_norm_by_other_name(a, src, e, err);
    if (!st && (is_gguf(a) || moe->scale))
        st = hn_key_real(src, hn_dense_key_of(&key, a->dense, "expert_weights_scale", moe->scale, 0, 1e6, 1), &scale, err);
    e->scale = scale > 0 ? (float)scale : 1; /* 0 in a GGUF: none */
    return st;
}

/* Groups of neighbouring experts, and the number of groups that are used. */
static hunch_status read_groups(const hn_arch *a, const hn_source *src, hn_expert_desc *e, hunch_error *err) {
    const hn_moe *moe = a->dense->moe;
    hunch_status st = key_int(a, src, "expert_group_count", moe->groups, 0, HN_MAX_EXPERTS, 1, &e->groups, err);
    if (!st) st = key_int(a, src, "expert_group_used_count", moe->groups_used, 0, HN_MAX_EXPERTS, e->groups, &e->groups_used, err);
    if (st) return st;
    if (e->groups < 1) e->groups = e->groups_used = 1;
    if (e->groups_used < 1) e->groups_used = e->groups;
    if (e->count % e->groups || e->groups_used > e->groups)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d experts in %d groups of which %d count: expected groups of equal size",
                       hn_source_path(src), e->count, e->groups, e->groups_used);
    const int room = e->count / e->groups * e->groups_used;
    if (e->used > room)
        return hn_fail(err, HUNCH_REFUSED, "%s: rows use %d of %d experts, expected at most as many as there are%s",
                       hn_source_path(src), e->used, room, room < e->count ? " in the groups that count" : "");
    return HUNCH_OK;
}

static hunch_status read_experts(const hn_arch *a, const hn_source *src, hn_expert_desc *e, hunch_error *err) {
    const hn_moe *moe = a->dense->moe;
    hunch_status st = read_count(a, src, &e->count, err);
    if (!st) st = key_int(a, src, "expert_used_count", moe->used ? moe->used : "num_experts_per_tok", 1, HN_MAX_USED, NAN, &e->used, err);
    if (!st) st = read_width(a, src, e, err);
    if (!st) st = read_shared(a, src, e, err);
    if (!st) st = read_scores(a, src, e, err);
    if (!st) st = read_shares(a, src, e, err);
    return st ? st : read_groups(a, src, e, err);
}

/* ---- which layers ---------------------------------------------------------------------------------------------------- */

/* Marks the layers with experts: all but those of a folder's mlp_only_layers and those that decoder_sparse_step skips. */
static hunch_status mark_by_step(hn_arch *a, const hn_source *src, hunch_error *err) {
    const hn_key every = {NULL, "decoder_sparse_step", 1, 1024, 1};
    const json_t *only = hn_source_config(src, "mlp_only_layers");
    int step = 1;
    hunch_status st = hn_key_int(src, &every, &step, err);
    if (st) return st;
    for (int i = 0; i < a->layers; i++) a->layer[i].ffn = (i + 1) % step == 0 ? HN_FFN_EXPERTS : HN_FFN_SWIGLU;
    if (only && !json_is_array(only))
        return hn_fail(err, HUNCH_REFUSED, "%s: config.json: mlp_only_layers, expected a list of layers", hn_source_path(src));
    for (size_t k = 0; only && k < json_array_size(only); k++) {
        const json_t *layer = json_array_get(only, k);
        if (!json_is_integer(layer) || json_integer_value(layer) < 0 || json_integer_value(layer) >= a->layers)
            return hn_fail(err, HUNCH_REFUSED, "%s: config.json: mlp_only_layers[%zu], expected a layer from 0 to %d",
                           hn_source_path(src), k, a->layers - 1);
        a->layer[json_integer_value(layer)].ffn = HN_FFN_SWIGLU;
    }
    return HUNCH_OK;
}

/* The first layers are dense; in a GGUF also those that have the tensors of a dense one. */
static hunch_status mark_after_first(hn_arch *a, const hn_source *src, hunch_error *err) {
    const char *folder_key = a->dense->moe->shared_count ? "first_k_dense_replace" : NULL;
    int first = 0;
    hunch_status st = key_int(a, src, "leading_dense_block_count", folder_key, 0, a->layers, !is_gguf(a) && folder_key ? 1 : 0, &first,
                              err);
    for (int i = 0; !st && i < a->layers; i++) {
        const bool dense = i < first || (is_gguf(a) && hn_arch_find_tensor(a, src, HN_ROLE_UP, i));
        a->layer[i].ffn = a->dense->moe->beside ? HN_FFN_BESIDE : dense ? HN_FFN_SWIGLU : HN_FFN_EXPERTS;
    }
    return st;
}

/* Whether the tensor of a role exists, if the layer's experts are stored this way. */
static bool is_there(const hn_arch *a, const hn_source *src, hn_role role, int layer, bool stacked, bool single) {
    hn_layer_desc said = a->layer[layer];
    hn_arch look = *a;
    said.experts.stacked = stacked;
    said.experts.single = single;
    look.layer = &said - layer;
    return hn_arch_find_tensor(&look, src, role, layer);
}

void hn_moe_find_tensors(hn_arch *a, const hn_source *src) {
    for (int i = 0; i < a->layers; i++) {
        hn_expert_desc *e = &a->layer[i].experts;
        if (!hn_layer_has_experts(&a->layer[i])) continue;
        e->stacked = is_there(a, src, HN_ROLE_EXPERT_GATE_UP, i, true, false);
        e->single = is_gguf(a) && !e->stacked && is_there(a, src, HN_ROLE_EXPERT_GATE, i, false, true);
    }
}

hunch_status hn_moe_read(hn_arch *a, hn_source *src, hunch_error *err) {
    hn_expert_desc e = {0};
    hunch_status st = read_experts(a, src, &e, err);
    if (!st) st = a->dense->moe->sparse_step && !is_gguf(a) ? mark_by_step(a, src, err) : mark_after_first(a, src, err);
    for (int i = 0; !st && i < a->layers; i++)
        if (hn_layer_has_experts(&a->layer[i])) a->layer[i].experts = e;
    if (!st) hn_moe_find_tensors(a, src);
    return st;
}

/* ---- a GGUF's keys --------------------------------------------------------------------------------------------------- */

static hunch_status put_number(const hn_arch *a, hn_gguf_writer *w, const char *suffix, int value, hunch_error *err) {
    char key[96];
    hn_dense_key(a->dense, suffix, key);
    return hn_gguf_put_u32(w, key, (uint32_t)value, err);
}

/* How rows choose, unless it is the default of other programs. */
static hunch_status put_choice(const hn_arch *a, hn_gguf_writer *w, const hn_expert_desc *e, hunch_error *err) {
    const hn_moe *moe = a->dense->moe;
    char key[96];
    hunch_status st = HUNCH_OK;
    if (e->sigmoid) st = put_number(a, w, "expert_gating_func", GATING_SIGMOID, err);
    hn_dense_key(a->dense, "expert_weights_norm", key);
    if (!st && !moe->always_normalised && (e->sigmoid || e->normalised != moe->normalised[HN_SOURCE_GGUF]))
        st = hn_gguf_put_bool(w, key, e->normalised, err);
    hn_dense_key(a->dense, "expert_weights_scale", key);
    if (!st && (e->sigmoid || e->scale != 1)) st = hn_gguf_put_f32(w, key, e->scale, err);
    if (!st && e->groups > 1) st = put_number(a, w, "expert_group_count", e->groups, err);
    if (!st && e->groups > 1) st = put_number(a, w, "expert_group_used_count", e->groups_used, err);
    return st;
}

hunch_status hn_moe_put(const hn_arch *a, hn_gguf_writer *w, hunch_error *err) {
    const hn_moe *moe = a->dense->moe;
    int first = 0;
    while (first < a->layers && !hn_layer_has_experts(&a->layer[first])) first++;
    if (first == a->layers)
        return hn_fail(err, HUNCH_REFUSED, "%s: no layer has experts: a GGUF of this family has no place for it", a->name);
    const hn_expert_desc *e = &a->layer[first].experts;
    hunch_status st = put_number(a, w, "expert_count", e->count, err);
    if (!st) st = put_number(a, w, "expert_used_count", e->used, err);
    if (!st && !moe->width_is_ffn) st = put_number(a, w, "expert_feed_forward_length", e->width, err);
    if (!st && moe->shared_count) st = put_number(a, w, "expert_shared_count", e->shared_width / e->width, err);
    if (!st && moe->shared_count) st = put_number(a, w, "leading_dense_block_count", first, err);
    if (!st && moe->shared_width) st = put_number(a, w, "expert_shared_feed_forward_length", e->shared_width, err);
    return st ? st : put_choice(a, w, e, err);
}
