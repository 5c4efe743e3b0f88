/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_dspark.c - DSpark: DFlash's block, and after it a bias on each place's logits from the token drafted before it.
 *
 *   dspark:PATH[,taps=LAYER:LAYER:...][,min_confidence=C], options: head_drafter.h
 *
 *   depth            at most the block's drafts                                                          all of them
 *   min_confidence   a path ends before the first place whose confidence, by the head itself, is less   0
 *
 * The block is one pass (drafter_dflash.c); its places are then drafted left to right, a small product each (pass_markov.c). The root's
 * row drafts too unless sample_from_anchor is false. Some heads compute the probability that the draft of a place is accepted, from the
 * place's state and the token before it; it is known before that draft is chosen, so a path may end by it in every distribution. It is
 * also the estimate of a place's likeliest token, if tokens are not drawn.
 * Files: speculators' and SpecForge's, DFlash's with markov_head.* and confidence_head.*; llama.cpp's GGUF.
 */
#include <string.h>

#include "draft/head/kinds/block_head.h"
#include "draft/head/open/head_help.h"

static hunch_status read_markov(hn_arch *a, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    hn_output_stage *d = &a->draft_head.output;
    const hn_tensor *in = hn_head_find_tensor(src, names, HN_HEAD_MARKOV_IN),
                    *confidence = hn_head_find_tensor(src, names, HN_HEAD_CONFIDENCE);
    if (!in || in->n_dims != 2 || in->dims[0] < 1 || in->dims[0] > 1 << 16)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor markov_w1.weight %s, expected [tokens, rank] of a head of DSpark",
                       hn_source_path(src), in ? "has another shape" : "is missing");
    d->kind = HN_OUTPUT_MARKOV;
    d->markov.rank = (int)in->dims[0];
    d->markov.kind = hn_head_find_tensor(src, names, HN_HEAD_MARKOV_STEP)   ? HN_MARKOV_RNN
                     : hn_head_find_tensor(src, names, HN_HEAD_MARKOV_GATE) ? HN_MARKOV_GATED
                                                                            : HN_MARKOV_VANILLA;
    static const char *const names_of[] = {"vanilla", "gated", "rnn"};
    const char *named = json_string_value(hn_source_config(src, "markov_head_type"));
    if (named && strcmp(named, names_of[d->markov.kind]) != 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: markov_head_type is \"%.40s\", expected %s by its tensors", hn_source_path(src), named,
                       names_of[d->markov.kind]);
    if (confidence)
        d->markov.confidence =
            confidence->dims[0] == (uint64_t)a->hidden + in->dims[0] ? HN_CONFIDENCE_OF_TOKEN : HN_CONFIDENCE_OF_STATE;
    return HUNCH_OK;
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                             hn_head_taps *taps, hunch_error *err) {
    const hn_block_form kind = {.name = "dspark", .root_drafts = true};
    const hunch_status st = hn_block_describe(a, src, names, spec, target, &kind, taps, err);
    return st ? st : read_markov(a, src, names, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .only = {"markov_head."},
    .architecture = {"dflash"}, .tensor = "markov_w1.weight",
    .states = hn_block_states,
    .has_confidence = true,
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of DSpark: DFlash's, where each token also depends on the one drafted before it",
    {{"taps", "LAYER:LAYER", "layers whose entering states are read, such as 2:16:29; default the head's own"},
     {"min_confidence", "0..1",
      "drafting stops at the first position with less confidence, default 0"}, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_dspark = {.name = "dspark", .help = &help, .head = &facts, HN_HEAD_KIND};
