/* SPDX-License-Identifier: Apache-2.0 */
/* arch_moe.c - the keys about experts: how many there are, how rows choose, and which layers have them. Shared by all families, whose own
 * rows say what differs. */
#include <math.h>
#include <string.h>

#include "base/least.h"
#include "model/arch/arch.h"

enum { GATING_SOFTMAX = 1, GATING_SIGMOID = 2, MOST_WIDTH = 1 << 20 }; /* expert_gating_func of a GGUF */

static bool is_gguf(const hn_arch *a) {
    return a->files.form == HN_SOURCE_GGUF;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

double hn_moe_layers(const hn_arch *a) { return a->layers - a->files.next_layers; }
double hn_width_of_dense(const hn_arch *a HN_UNUSED, const hn_layer_desc *l) { return l->ffn_width; }
/* Of a GGUF that does not say it all groups count; of a folder one. */
static double groups_of(const hn_arch *a, const hn_layer_desc *l) { return a->files.form == HN_SOURCE_HF ? 1 : l->experts.groups; }

const hn_expert_desc *hn_moe_of(const hn_arch *a) {
    int i = 0;
    while (i < a->layers - 1 && !hn_layer_has_experts(&a->layer[i])) i++;
    return &a->layer[i].experts;
}

/* How rows choose is written unless it is the default of other programs. */
static bool is_sigmoid(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v = GATING_SIGMOID;
    return hn_moe_of(a)->sigmoid;
}
bool hn_unusual_choice(const hn_arch *a, const hn_key_row *k, double *v) {
    return hn_moe_of(a)->sigmoid || (float)*v != (float)k->usual[HN_SOURCE_GGUF];
}
static bool has_groups(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v HN_UNUSED) {
    return hn_moe_of(a)->groups > 1;
}

const hn_key_row hn_moe_keys[] = {
    /* transformers writes the name of another family or version */
    {HN_LAYER(INT, experts.count), "expert_count", "num_experts num_local_experts n_routed_experts", 1, HN_MAX_EXPERTS, {NAN, NAN}},
    {HN_LAYER(INT, experts.used), "expert_used_count", "num_experts_per_tok", 1, HN_MAX_USED, {NAN, NAN}},
    {HN_LAYER(INT, experts.width), "expert_feed_forward_length", "moe_intermediate_size", 1, MOST_WIDTH, {NAN, NAN}},
    HN_ALWAYS(HN_MODEL(INT, files.shared_experts), 0),
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", .how = HN_NEVER_WRITTEN, .up_to = hn_moe_layers},
    HN_ALWAYS(HN_LAYER(INT, experts.shared_width), 0),
    {HN_MODEL(INT, files.gating), "expert_gating_func", NULL, 0, GATING_SIGMOID, .written = is_sigmoid},
    HN_NORMALISED(0, 0),
    {HN_LAYER(FLOAT, experts.scale), "expert_weights_scale", NULL, 0, 1e6, {1, 1}, .written = hn_unusual_choice},
    {HN_LAYER(INT, experts.groups), "expert_group_count", NULL, 0, HN_MAX_EXPERTS, {1, 1}, .written = has_groups},
    {HN_LAYER(INT, experts.groups_used), "expert_group_used_count", NULL, 0, HN_MAX_EXPERTS, .follows = groups_of, .written = has_groups},
    HN_ROWS_END};

void hn_moe_set(hn_layer_desc *l, const hn_expert_desc *e) {
    l->ffn = e ? HN_FFN_EXPERTS : HN_FFN_SWIGLU;
    l->experts = e ? *e : (hn_expert_desc){0};
}

bool hn_moe_shared_count(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    *v = hn_moe_of(a)->shared_width / hn_moe_of(a)->width;
    return true;
}
bool hn_moe_first(const hn_arch *a, const hn_key_row *k HN_UNUSED, double *v) {
    for (*v = 0; (int)*v < a->layers && !hn_layer_has_experts(&a->layer[(int)*v]); ++*v) {}
    return true;
}

const hn_key_row hn_moe_of_deepseek[] = {
    {HN_LAYER(INT, experts.count), "expert_count", "n_routed_experts num_experts num_local_experts", 1, HN_MAX_EXPERTS, {NAN, NAN}},
    {HN_MODEL(INT, files.shared_experts), "expert_shared_count", "n_shared_experts", 0, HN_MAX_EXPERTS, {0, 1},
     .written = hn_moe_shared_count},
    {HN_MODEL(INT, files.first_experts), "leading_dense_block_count", "first_k_dense_replace", 0, 0, {0, 1}, .up_to = hn_moe_layers,
     .written = hn_moe_first},
    {HN_LAYER(FLOAT, experts.scale), "expert_weights_scale", "routed_scaling_factor", 0, 1e6, {1, 1}, .written = hn_unusual_choice},
    {HN_LAYER(INT, experts.groups), "expert_group_count", "n_group", 0, HN_MAX_EXPERTS, {1, 1}, .written = has_groups},
    {HN_LAYER(INT, experts.groups_used), "expert_group_used_count", "topk_group", 0, HN_MAX_EXPERTS, .follows = groups_of,
     .written = has_groups},
    HN_ROWS_END};

const hn_key_row hn_moe_of_v3[] = {
    HN_ALWAYS(HN_LAYER(BOOL, experts.sigmoid), 1), HN_ALWAYS(HN_LAYER(BOOL, experts.bias), 1),
    HN_NORMALISED(0, 1),
    HN_ROWS_END};

const hn_key_row hn_moe_of_qwen[] = {
    {HN_MODEL(INT, files.sparse_step), NULL, "decoder_sparse_step", 1, 1024, {0, 1}},
    {HN_LAYER(INT, experts.shared_width), "expert_shared_feed_forward_length", "shared_expert_intermediate_size", 0, MOST_WIDTH},
    HN_ALWAYS(HN_LAYER(BOOL, experts.shared_gate), 1), HN_ROWS_END};

const hn_key_row hn_moe_normalised[] = { /* always */
    {HN_LAYER(BOOL, experts.normalised), "norm_top_k_prob", NULL, 1, 1, {1, 1}, HN_NEVER_WRITTEN}, HN_ROWS_END};

/* ---- what follows from them ------------------------------------------------------------------------------------------------ */

/* Experts that all rows share: the file gives their number, in widths of an expert, or their width. */
static hunch_status finish_shared(const hn_arch *a, const hn_source *src, hn_expert_desc *e, hunch_error *err) {
    const int count = a->files.shared_experts;
    if ((double)count * e->width > MOST_WIDTH)
        return hn_fail(err, HUNCH_REFUSED, "%s: %d shared experts of width %d, expected a width of %d at most together",
                       hn_source_path(src), count, e->width, MOST_WIDTH);
    if (count > 0 && e->shared_width == 0) e->shared_width = count * e->width;
    e->shared_gate = e->shared_gate && e->shared_width > 0;
    return HUNCH_OK;
}

/* Groups of neighbouring experts, and the number of groups that are used. */
static hunch_status finish_groups(const hn_source *src, hn_expert_desc *e, hunch_error *err) {
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

/* ---- which layers ---------------------------------------------------------------------------------------------------- */

/* Marks the layers with experts: all but those of a folder's mlp_only_layers and those that decoder_sparse_step skips. */
static hunch_status mark_by_step(hn_arch *a, const hn_source *src, hunch_error *err) {
    bool dense[HN_MOST_LAYERS], found;
    const hunch_status st = hn_family_listed(src, "mlp_only_layers", a->layers - 1, dense, &found, err);
    for (int i = 0; !st && i < a->layers; i++)
        a->layer[i].ffn = (i + 1) % a->files.sparse_step == 0 && !dense[i] ? HN_FFN_EXPERTS : HN_FFN_SWIGLU;
    return st;
}

/* The first layers are dense; in a GGUF also those that have the tensors of a dense one. */
static void mark_after_first(hn_arch *a, const hn_source *src) {
    for (int i = 0; i < a->layers; i++) {
        const bool dense = i < a->files.first_experts || (is_gguf(a) && hn_arch_find_tensor(a, src, HN_ROLE_UP, i));
        if (a->layer[i].ffn != HN_FFN_BESIDE) a->layer[i].ffn = dense ? HN_FFN_SWIGLU : HN_FFN_EXPERTS;
    }
}

static void set_sparse(hn_layer_desc *l, bool sparse) {
    l->ffn = sparse ? HN_FFN_EXPERTS : HN_FFN_SWIGLU;
}

/* By a folder's list, if it is a key of the family. */
static hunch_status mark_listed(hn_arch *a, const hn_source *src, hunch_error *err) {
    static const char *const names[] = {"dense", "sparse"};
    const hn_file_keys s = hn_family_keys(a->family);
    bool found;
    return hn_keys_reads(&s, HN_SOURCE_HF, "mlp_layer_types") ? hn_family_kinds(a, src, "mlp_layer_types", names, set_sparse, &found, err)
                                                              : HUNCH_OK;
}

void hn_moe_find_tensors(hn_arch *a, const hn_source *src) {
    for (int i = 0; i < a->layers; i++) {
        hn_expert_desc *e = &a->layer[i].experts;
        if (!hn_layer_has_experts(&a->layer[i])) continue;
        e->stacked = true; /* tensors have the names of what is set */
        e->single = false;
        e->stacked = hn_arch_find_tensor(a, src, HN_ROLE_EXPERT_GATE_UP, i);
        e->single = is_gguf(a) && !e->stacked;
        e->single = e->single && hn_arch_find_tensor(a, src, HN_ROLE_EXPERT_GATE, i);
    }
}

hunch_status hn_moe_finish(hn_arch *a, hn_source *src, hunch_error *err) {
    hn_expert_desc e = a->layer[0].experts;
    if (e.count == 0) { /* of families whose models may have none */
        for (int i = 0; i < a->layers; i++) a->layer[i].experts = (hn_expert_desc){0};
        return HUNCH_OK;
    }
    for (int i = 1; i < a->layers; i++) e.used = hn_most(e.used, a->layer[i].experts.used);
    hunch_status st = finish_shared(a, src, &e, err);
    if (!st) st = finish_groups(src, &e, err);
    if (st) return st;
    if (a->files.gating != 0) e.sigmoid = a->files.gating == GATING_SIGMOID;
    if (!(e.scale > 0)) e.scale = 1; /* 0: none */
    if (a->files.sparse_step > 0)
        st = mark_by_step(a, src, err);
    else
        mark_after_first(a, src);
    if (!st && !is_gguf(a)) st = mark_listed(a, src, err);
    for (int i = 0; !st && i < a->layers; i++) {
        e.used = a->layer[i].experts.used;
        a->layer[i].experts = hn_layer_has_experts(&a->layer[i]) ? e : (hn_expert_desc){0};
    }
    if (!st) hn_moe_find_tensors(a, src);
    return st;
}
