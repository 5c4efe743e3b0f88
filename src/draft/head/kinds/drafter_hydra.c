/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_hydra.c - Hydra (2402.05109): Medusa's heads, of which each reads the tokens that were drafted before it.
 *
 *   hydra:PATH[,last=normed|raw], options: head_drafter.h
 *
 * h is the target's last state after its final norm at the last row that it has computed (hidden_state_offset m: the state that enters
 * its m-th layer from the end), x[n] the token after it, E the target's embedding. Head k drafts x[n+1+k] = d[k+1]:
 *
 *   s = h | E[x[n]] | E[d[1]] ... E[d[k]]
 *   y = R s + r + silu(W s + b);  y += silu(W' y + b') for further resblocks
 *   logits = U y + c
 *
 * If it is not grounded, head k reads h alone: biased heads of Medusa, all in one pass. With a prefix layer (Hydra++) h goes through a
 * layer of attention and its norm first, which has rows of its own in the cache; for heads that are not grounded too, as trained (the
 * release's own decoding leaves it out there).
 *
 * Files: hydra_lm_head.pt with hydra_mlp.{k}.{j}.*, hydra_lm_head.{k}.*, prefix_embeding_layer.*; a release with dropout has its modules
 * at every other index.
 */
#include <math.h>
#include <string.h>

#include "draft/head/open/head_help.h"
#include "draft/head/open/head_reading.h"
#include "model/head/head_steps.h"

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

/* A dropout may be before each module of a list: then it has every other number, and outputs are inside the list. */
static void number(hn_step_layout *layout, const hn_source *src, const hn_head_names *names) {
    layout->inside = !hn_tensor_find(src, names, (hn_tensor_id){HN_STEP_OUTPUT, 0, 0});
    if (hn_tensor_find(src, names, (hn_tensor_id){HN_STEP_RESBLOCK, 0, 0})) return;
    layout->first_resblock = 1;
    layout->resblock_stride = 2;
}

#define PREFIX "prefix_embeding_layer.layers.%d."
static const char *const prefix_names[HN_ROLES] = {
    [HN_ROLE_ATTN_NORM] = PREFIX "input_layernorm.weight",
    [HN_ROLE_Q] = PREFIX "self_attn.q_proj.weight",
    [HN_ROLE_K] = PREFIX "self_attn.k_proj.weight",
    [HN_ROLE_V] = PREFIX "self_attn.v_proj.weight",
    [HN_ROLE_O] = PREFIX "self_attn.o_proj.weight",
    [HN_ROLE_FFN_NORM] = PREFIX "post_attention_layernorm.weight",
    [HN_ROLE_GATE] = PREFIX "mlp.gate_proj.weight",
    [HN_ROLE_UP] = PREFIX "mlp.up_proj.weight",
    [HN_ROLE_DOWN] = PREFIX "mlp.down_proj.weight",
};

/* One layer like the target's first, which is its only description. */
static hunch_status read_prefix(hn_arch *a, hn_source *src, const hn_arch *target, hunch_error *err) {
    const hn_layer_desc *of = target->layer;
    if (!hn_source_find(src, "prefix_embeding_layer.layers.0.self_attn.q_proj.weight")) return HUNCH_OK;
    if (!of)
        return hn_fail(
            err, HUNCH_USAGE,
            "%s: its prefix layer is like the model's layers: expected --target with the model that it drafts for",
            hn_source_path(src));
    if (!hn_layer_is(of, &hn_mixer_attention))
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: a prefix layer, expected a model whose first layer has attention",
                       hn_source_path(src));
    const hn_layer_desc like = {.mixer = {{.kind = &hn_mixer_attention}},
                                .heads = of->heads,
                                .kv_heads = of->kv_heads,
                                .head_dim = of->head_dim,
                                .attention_scale = 1.0f / sqrtf((float)of->head_dim),
                                .ffn = HN_FFN_SWIGLU,
                                .ffn_width = of->ffn_width};
    hn_rotation rotation = target->rotation[0];
    rotation.freq_long = NULL; /* also in long texts it rotates as in short ones */
    hunch_status st = hn_rope_add_copy(a, &rotation, err);
    if (st) return st;
    a->norm_eps = target->norm_eps;
    a->files.layer_names = prefix_names;
    return hn_steps_create_layers(a, 1, &like, err);
}

static const hn_step_form release_steps = {
    .key = {{"hydra_num_heads", HN_FACT_POSITIONS}, {"hydra_num_layers", HN_FACT_RESBLOCKS}},
    .number = number,
    .read_layers = read_prefix,
};
static const hn_head_form release_form = {
    .part = {[HN_HEAD_OUTPUT_NORM] = "prefix_embeding_layer.norm.weight", [HN_HEAD_IDS] = "!d2t",
             [HN_STEP_RESBLOCK] = "hydra_mlp.#.@.linear.weight", [HN_STEP_RESBLOCK_BIAS] = "hydra_mlp.#.@.linear.bias",
             [HN_STEP_RESIDUAL] = "hydra_mlp.#.@.res_connection.weight", [HN_STEP_RESIDUAL_BIAS] = "hydra_mlp.#.@.res_connection.bias",
             [HN_STEP_OUTPUT] = "hydra_lm_head.#~1.weight", [HN_STEP_OUTPUT_BIAS] = "hydra_lm_head.#~1.bias"},
    .steps = &release_steps,
    .mark = {{"", "hydra_mlp.0."}, {"hydra_head.", "hydra_mlp.0."}},
};

/* Keys that say whether its heads read tokens, and whether a layer precedes them. */
static hunch_status check_keys(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const bool reads = a->draft_head.rows.steps.kind == HN_STEP_GROUNDED;
    const char *form = a->layers ? "prefix-mlp" : "mlp";
    bool grounded = reads, found = false;
    hunch_status st = hn_source_bool(src, "grounded_heads", &grounded, &found, err);
    if (!st && grounded != reads)
        st = hn_fail(err, HUNCH_REFUSED,
                     "%s: grounded_heads is %s, and there is %s tensor hydra_mlp.0.*.res_connection.weight",
                     hn_source_path(src), grounded ? "true" : "false", reads ? "a" : "no");
    if (!st) st = hn_source_str(src, "hydra_head_arch", &form, NULL, &found, err);
    if (!st && !strcmp(form, "prefix-mlp") != (a->layers > 0))
        st = hn_fail(err, HUNCH_REFUSED,
                     "%s: hydra_head_arch is \"%.40s\", and there is %s layer prefix_embeding_layer.*",
                     hn_source_path(src), form, a->layers ? "a" : "no");
    return st;
}

/* ---- the description -------------------------------------------------------------------------------------------------------- */

static hunch_status check_form(const hn_source *src, hunch_error *err) {
    const char *form = "mlp";
    bool found = false;
    hunch_status st = hn_source_str(src, "hydra_head_arch", &form, NULL, &found, err);
    return st || !strcmp(form, "mlp") || !strcmp(form, "prefix-mlp")
               ? st
               : hn_fail(err, HUNCH_REFUSED, "%s: hydra_head_arch is \"%.40s\", expected mlp or prefix-mlp", hn_source_path(src), form);
}

/* Reads which state the head uses. */
static hunch_status read_offset(const hn_source *src, hn_spec *spec, const hn_target_info *target, hn_head_taps *taps, int *offset,
                                hunch_error *err) {
    const char *name;
    uint64_t m = 0;
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_STATE_OFFSET, &m, &name, err);
    if (!st && m > (uint64_t)target->layers)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected 0 to the %d layers of the target", hn_source_path(src), name,
                     (unsigned long long)m, target->layers);
    if (!st) st = hn_head_read_last(spec, target, taps, err);
    if (!st && m > 0) *taps = (hn_head_taps){1, {target->layers - (int)m}};
    *offset = (int)m;
    return st;
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_steps_desc *d = &a->draft_head.rows.steps;
    hunch_status st = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_head_check_kind(src, "hydra", err) : check_form(src, err);
    if (st) return st;
    if (names->form != &release_form && names->form != &hn_head_gguf_steps)
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor hydra_mlp.0.*: not a head of Hydra", hn_source_path(src));
    d->kind = hn_tensor_find(src, names, (hn_tensor_id){HN_STEP_RESIDUAL, 0, 0}) ? HN_STEP_GROUNDED : HN_STEP_RESBLOCKS;
    d->n = hn_steps_count(src, names, HN_STEP_RESBLOCK);
    d->resblocks.n = names->steps.resblocks;
    st = hn_steps_check_layers(a, src, 1, err);
    if (!st) st = hn_steps_finish(a, src, names, target->vocab, err);
    if (!st && names->form == &release_form) st = check_keys(a, src, err);
    return st ? st : read_offset(src, spec, target, taps, &a->draft_head.input.state.offset, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&release_form},
    .only = {"hydra_"},
    .steps_tensor = "hydra_mlp.0.0.linear.weight",
};
static const hn_drafter_help help = {
    ":HEAD", "Hydra's: the same, but each reads the tokens drafted before it", {HN_HELP_LAST, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_hydra = {.name = "hydra", .help = &help, .head = &facts, HN_HEAD_KIND};
