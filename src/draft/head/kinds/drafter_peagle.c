/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_peagle.c - P-EAGLE (2602.01469): EAGLE-3 that drafts all its tokens in one pass.
 *
 *   peagle:PATH[,taps=LOW:MID:HIGH][,residual=normed|plain][,output=normed|plain][,fc_norms=on|off], options: head_drafter.h
 *
 * Rows of the text are EAGLE-3's (drafter_eagle3.c), in several layers; all but the first are Llama's. After the root come
 * rows of a mask token, one after another, whose feature is not the target's but a vector of the head's own, mask_hidden, which goes
 * through the same norms and fc:
 *
 *   root        token x[n],   feature a[n-1]         its logits draft x[n+1]
 *   mask d      mask token,   feature mask_hidden    its logits draft x[n+1+d], whatever the drafts before it are
 *
 * A mask attends to the text, the root and the masks before it, and is dropped after the round. Files: EAGLE-3's with tensor
 * mask_hidden and the token's id, of speculators, SpecForge, or as vLLM serves them (parallel_drafting).
 */
#include "draft/head/kinds/eagle3_head.h"
#include "draft/head/open/head_help.h"
#include "draft/head/open/head_reading.h"

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hunch_status st = hn_head_check_kind(src, "peagle", err);
    if (st) return st;
    if (!hn_head_find_tensor(src, names, HN_HEAD_MASK))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor mask_hidden is missing: not a head of P-EAGLE",
                       hn_source_path(src));
    st = hn_eagle3_describe(a, src, names, spec, target, taps, err);
    if (!st) st = hn_head_read_mask_token(src, a->draft_head.input.embeddings, &a->draft_head.rows.masks.token, err);
    a->draft_head.rows.kind = HN_ROWS_MASKS;
    return st;
}

static const hn_head_facts facts = {
    .describe = describe,
    .only = {"mask_hidden"},
    .architecture = {"eagle3"}, .tensor = "mask_hidden",
    .states = hn_eagle3_states,
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of P-EAGLE: as EAGLE-3's, but drafts all its tokens in one pass",
    {HN_HELP_TAPS, HN_HELP_AT_ONCE}};
const hn_drafter_kind hn_drafter_peagle = {.name = "peagle", .help = &help, .head = &facts, HN_HEAD_KIND};
