/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_dflash2.c - DFlash 2 (z-lab): DFlash's block, whose layers convolve neighbouring rows, and a choice among the likeliest tokens of
 * a place by the token before it.
 *
 *   dflash2:PATH[,taps=LAYER:LAYER:...], options: head_drafter.h; depth: at most the block's drafts, all of them by default
 *
 * The block is one pass (drafter_dflash.c, layer_conv.c); its places are then drafted left to right from selector_top_k candidates each
 * (pass_selector.c). The logits of a place are multiplied and capped by the head's own numbers, never by the target's.
 * Files: z-lab's and speculators', DFlash's with layers.N.*_conv.* and candidate_selector.*; llama.cpp's GGUF. */
#include "draft/head/kinds/block_head.h"
#include "draft/head/open/head_help.h"

#define SELECTOR(codes)                                                                                                                \
    [HN_HEAD_CONV_BASE] = "layers.%d.attention_conv.base_kernel",                                                                     \
    [HN_HEAD_CONV_PRODUCT] = "layers.%d.attention_conv.kernel_projection.weight",                                                     \
    [HN_HEAD_FFN_CONV_BASE] = "layers.%d.mlp_conv.base_kernel",                                                                       \
    [HN_HEAD_FFN_CONV_PRODUCT] = "layers.%d.mlp_conv.kernel_projection.weight",                                                       \
    [HN_HEAD_SELECTOR] = "candidate_selector.hidden_projection.weight",                                                               \
    [HN_HEAD_CODES_BEFORE] = "candidate_selector.predecessor_codebook" codes,                                                         \
    [HN_HEAD_CODES_AFTER] = "candidate_selector.successor_codebook" codes
static const hn_head_form form = {
    .base = &hn_head_blocks,
    .part = {SELECTOR("")},
    .mark = {{"", "candidate_selector."}, {"model.", "candidate_selector."}},
};
/* Codebooks as embeddings are called. */
static const hn_head_form embedding_form = {
    .base = &hn_head_blocks,
    .part = {SELECTOR(".weight")},
    .mark = {{"", "candidate_selector.predecessor_codebook.weight"}, {"model.", "candidate_selector.predecessor_codebook.weight"}},
};

/* The embedding is the target's as it is stored, times a number of the head's own. */
static hunch_status read_keys(hn_arch *a, const hn_source *src, hunch_error *err) {
    static const hn_head_key keys[] = {HN_HEAD_KEY_CONV_TAPS, HN_HEAD_KEY_CONV_GROUP, HN_HEAD_KEY_SELECTOR_RANK, HN_HEAD_KEY_CANDIDATES,
                                       HN_HEAD_KEY_EMBEDDING_SCALE, HN_HEAD_KEY_LOGIT_SCALE, HN_HEAD_KEY_LOGIT_CAP, HN_HEAD_KEYS};
    const int *group = &a->draft_head.rows.block.conv.group;
    a->draft_head.output.kind = HN_OUTPUT_SELECTOR;
    a->draft_head.input.context.scaled = false;
    a->embed_scale = a->logit_scale = 1;
    a->logit_cap = 0;
    const hunch_status st = hn_head_keys_read(a, src, keys, err);
    if (st) return st;
    if (a->logit_cap < 0) a->logit_cap = 0;
    return a->hidden % *group == 0 ? HUNCH_OK
                                   : hn_fail(err, HUNCH_REFUSED, "%s: %s is %d, expected a divisor of the width %d", hn_source_path(src),
                                             hn_head_key_name(src, HN_HEAD_KEY_CONV_GROUP, 0), *group, a->hidden);
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                             hn_head_taps *taps, hunch_error *err) {
    bool causal = true, found = false;
    hunch_status st = hn_source_bool(src, "dflash.attention.causal", &causal, &found, err); /* of llama.cpp's files */
    const hn_block_form kind = {.name = "dflash2", .windows_ahead = !causal || hn_source_config(src, "speculators_model_type"),
                                .own_cap = true};
    if (!st) st = hn_block_describe(a, src, names, spec, target, &kind, taps, err);
    return st ? st : read_keys(a, src, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&embedding_form, &form},
    .only = {"candidate_selector."},
    .architecture = {"dflash"}, .tensor = "selector_hidden.weight",
    .states = hn_block_states,
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of DFlash 2: DFlash's, where the token before chooses among the likeliest of a position",
    {{"taps", "LAYER:LAYER", "layers whose entering states are read, such as 2:16:29; default the head's own"}, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_dflash2 = {.name = "dflash2", .help = &help, .head = &facts, HN_HEAD_KIND};
