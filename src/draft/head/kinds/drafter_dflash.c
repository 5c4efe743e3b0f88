/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_dflash.c - DFlash (2602.06036): a block of tokens from one pass, by masks that all attend to each other.
 *
 *   dflash:PATH[,taps=LAYER:LAYER:...], options: head_drafter.h; depth: at most the block's drafts, all of them by default
 *
 * Each row i of the text is computed from its states a[i], the same for every layer:
 *
 *   c[i] = norm(fc(a[i]))                      K and V of a layer: of c[i], at position i
 *
 * A block is the root and masks, at the positions that follow, through Qwen3's layers:
 *
 *   z = E[x[n], mask, mask, ...]
 *   z = z + attention(norm(z))                 over the text's rows and all rows of the block
 *   z = z + swiglu(norm(z))
 *   logits = output matrix norm(z)             of row j: the token at its own place, x[n+j]; if the root drafts: x[n+1+j]
 *
 * Files: z-lab's and SpecForge's, speculators', llama.cpp's GGUF. The embedding is the target's, and so is the output, except for one over
 * a reduced vocabulary.
 */
#include "draft/head/kinds/block_head.h"
#include "draft/head/open/head_help.h"
#include "draft/head/open/head_kind.h"

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                             hn_head_taps *taps, hunch_error *err) {
    return hn_block_describe(a, src, names, spec, target, &(hn_block_form){.name = "dflash"}, taps, err);
}

/* A layer, and a norm after fc, or the keys of one. */
static bool is_dflash(hn_source *folder) {
    if (!hn_head_has_layer(folder)) return false;
    if (hn_head_has_begin(folder, "encoder.output_norm_enc.weight")) return true;
    const bool normed = hn_source_config(folder, "dflash_config") || hn_head_has_begin(folder, "hidden_norm.weight");
    return normed && hn_head_has_begin(folder, "fc.weight");
}

static const hn_head_facts facts = {
    .describe = describe,
    .is = is_dflash,
    .architecture = {"dflash"},
    .states = hn_block_states,
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of DFlash: drafts a block of tokens in one pass",
    {{"taps", "LAYER:LAYER", "layers whose entering states are read, such as 2:16:29; default the head's own"},
     HN_HELP_AT_ONCE}};
const hn_drafter_kind hn_drafter_dflash = {.name = "dflash", .help = &help, .head = &facts, HN_HEAD_KIND};
