/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_medusa.c - Medusa (2401.10774): heads that each draft one of the tokens after the newest one, all from the same state.
 *
 *   medusa:PATH[,last=normed|raw], options: head_drafter.h
 *
 * h is the target's last state after its final norm at the last row that it has computed, x[n] the token after it, not computed yet.
 * Head k, of its own weights, drafts x[n+1+k]:
 *
 *   y = h;  y += silu(W y + b) for each of its resblocks
 *   logits = U y                           U of its own, one of all heads, or the target's
 *
 * No cache, no token is read: all positions come from one pass, and are independent of each other. Blockwise parallel decoding (Stern
 * 2018, 1811.03115) is the same with one output matrix for all, the model's own.
 *
 * Files: the release's medusa_lm_head.pt or .safetensors ({k}.{j}.linear.*, {k}.{blocks}.weight), alone or below medusa_head. in a model's;
 * vLLM's (blocks.{k}.layers.{j}.*, lm_heads.{k}.weight, token_map of a reduced vocabulary). Heads and resblocks are counted by tensors:
 * config.json of the first releases has 2 where there are 5.
 */
#include "draft/head/open/head_help.h"
#include "draft/head/open/head_reading.h"
#include "model/head/head_steps.h"

static const hn_step_form release_steps = {
    .in_model = true,
};
static const hn_head_form release_form = {
    .part = {[HN_HEAD_IDS] = "!d2t",
             [HN_STEP_RESBLOCK] = "#.@.linear.weight", [HN_STEP_RESBLOCK_BIAS] = "#.@.linear.bias", [HN_STEP_OUTPUT] = "#.^.weight"},
    .steps = &release_steps,
    .mark = {{"", "0.0.linear.weight"}, {"medusa_head.", "0.0.linear.weight"}, {"model.medusa_head.", "0.0.linear.weight"}},
};

static const hn_step_form vllm_steps = {
    .key = {{"num_heads", HN_FACT_POSITIONS},
            {"num_hidden_layers", HN_FACT_RESBLOCKS},
            {"truncated_vocab_size", HN_FACT_OUTPUTS},
            {"vocab_size", HN_FACT_TOKENS}},
    .in_model = true,
};
static const hn_head_form vllm_form = {
    .part = {[HN_HEAD_IDS] = "token_map",
             [HN_STEP_RESBLOCK] = "blocks.#.layers.@.weight",
             [HN_STEP_RESBLOCK_BIAS] = "blocks.#.layers.@.bias",
             [HN_STEP_OUTPUT] = "lm_heads.#.weight"},
    .lists_tokens = true,
    .steps = &vllm_steps,
    .mark = {{"", "blocks.0.layers.0."}, {"medusa_heads.", "blocks.0.layers.0."}, {"", "lm_heads.0."}, {"medusa_heads.", "lm_heads.0."}},
};

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_steps_desc *d = &a->draft_head.rows.steps;
    const hn_key scale = {hn_head_key_name(src, HN_HEAD_KEY_LOGIT_SCALE, 0), "logit_scale", 1e-6, 1e6, 1};
    double logit_scale = 1;
    hunch_status st = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_head_check_kind(src, "medusa", err) : HUNCH_OK;
    if (st) return st;
    if (names->form != &release_form && names->form != &vllm_form && names->form != &hn_head_gguf_steps)
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor 0.0.linear.weight nor blocks.0.layers.0.weight: not a head of Medusa",
                       hn_source_path(src));
    d->kind = HN_STEP_RESBLOCKS;
    d->resblocks.n = names->steps.resblocks;
    d->n = hn_steps_count(src, names, d->resblocks.n ? HN_STEP_RESBLOCK : HN_STEP_OUTPUT);
    const int outputs = hn_steps_count(src, names, HN_STEP_OUTPUT);
    d->one_output = d->n > 1 && outputs == 1;
    st = hn_steps_check_layers(a, src, 0, err);
    if (!st) st = hn_steps_finish(a, src, names, target->vocab, err);
    if (!st) st = hn_key_real(src, &scale, &logit_scale, err);
    a->logit_scale = (float)logit_scale;
    return st ? st : hn_head_read_last(spec, target, taps, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&release_form, &vllm_form},
    .only = {"medusa_head.", "medusa_heads.", "blocks.0.layers.0.", "0.0.linear.weight", "lm_heads.0.weight"},
    .steps_tensor = "0.0.linear.weight or blocks.0.layers.0.weight",
};
static const hn_drafter_help help = {
    ":HEAD", "Medusa's heads: each drafts one of the next tokens, all in one pass",
    {HN_HELP_LAST, HN_HELP_AT_ONCE}};
const hn_drafter_kind hn_drafter_medusa = {.name = "medusa", .help = &help, .head = &facts, HN_HEAD_KIND};
