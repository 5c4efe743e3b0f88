/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_jetspec.c - JetSpec (2606.18394): DFlash's block, each row of which sees only those before it.
 *
 *   jetspec:PATH[,taps=LAYER:LAYER:...], options: head_drafter.h; depth: at most the block's drafts, all of them by default
 *
 * Text and block are DFlash's (drafter_dflash.c), but a row of the block sees the text and the rows up to its own, in every layer. So the
 * logits of a level are the same however many masks follow: a round of fewer levels runs a shorter block. All rows but the root's are
 * masks, so levels do not depend on drafted tokens, and any tree can be made of one pass.
 *
 * Files: DFlash's with dflash_config.causal_head (hao-ai-lab), dflash_config.causal (NeMo Automodel), or is_causal; our GGUF.
 */
#include "draft/head/kinds/block_head.h"
#include "draft/head/open/head_help.h"
#include "draft/head/open/head_kind.h"

static hunch_status check_causal(const hn_arch *a, const hn_source *src, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    for (int i = 0; i < a->layers; i++)
        if (a->layer[i].ahead)
            return hn_fail(err, HUNCH_REFUSED, "%s: the rows of its blocks see later ones in layer %d: expected a head of JetSpec, with %s",
                           hn_source_path(src), i, gguf ? "hunch.head.causal" : "dflash_config.causal_head");
    return HUNCH_OK;
}

/* The reference puts a product of random weights before fc if the model is of another width: such a head was never trained. */
static hunch_status check_width(const hn_source *src, int hidden, hunch_error *err) {
    uint64_t width = (uint64_t)hidden;
    bool found = false;
    const hunch_status st = hn_source_u64(src, "dflash_config.target_hidden_size", &width, &found, err);
    if (st || width == (uint64_t)hidden) return st;
    return hn_fail(err, HUNCH_REFUSED, "%s: dflash_config.target_hidden_size is %llu, expected the %d of its own hidden_size",
                   hn_source_path(src), (unsigned long long)width, hidden);
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                             hn_head_taps *taps, hunch_error *err) {
    hunch_status st = check_width(src, a->hidden, err);
    if (!st) st = hn_block_describe(a, src, names, spec, target, &(hn_block_form){.name = "jetspec"}, taps, err);
    return st ? st : check_causal(a, src, err);
}

/* DFlash's files with the mark. */
static bool is_jetspec(hn_source *folder) {
    const json_t *causal = hn_source_config(folder, "dflash_config.causal");
    if (!causal) causal = hn_source_config(folder, "dflash_config.causal_head");
    return json_is_true(causal) && hn_drafter_dflash.head->is(folder);
}

static const hn_head_facts facts = {
    .describe = describe,
    .is = is_jetspec,
    .states = hn_block_states,
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of JetSpec: DFlash's, whose block may be shorter",
    {{"taps", "LAYER:LAYER", "layers whose entering states are read, such as 2:16:29; default the head's own"},
     HN_HELP_AT_ONCE}};
const hn_drafter_kind hn_drafter_jetspec = {.name = "jetspec", .help = &help, .head = &facts, HN_HEAD_KIND};
