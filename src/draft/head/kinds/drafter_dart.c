/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_dart.c - DART (2601.19278): EAGLE-3's rows in one layer, and all drafts in one pass.
 *
 *   dart:PATH[,taps=LOW:MID:HIGH][,norm=twice|once], options: head_drafter.h
 *
 *   depth  levels a round, at most one more than the masks that the head was trained with           all of them
 *   norm   how often the norm before its output matrix is applied                                    twice
 *
 * Rows of the text are EAGLE-3's (drafter_eagle3.c). After the root come masks, one after another, which have neither token nor
 * feature: a vector of the head's own, mask_rep [2H], replaces both after their norms:
 *
 *   root      r = g + attention(norm(E[x[n]]) | norm(g))           its logits draft x[n+1]
 *   mask d    r = mask_rep[0..H) + attention(mask_rep)             its logits draft x[n+1+d], whatever the drafts before it are
 *   out = r + swiglu(norm(r))
 *   logits = its own output matrix norm(norm(out)), over a vocabulary of its own
 *
 * The released code applies the last norm twice, and so, as far as can be seen, did the released heads; norm=once is for others.
 * A mask attends to the text, the root and the masks before it, and is dropped after the round: fewer masks draft the same tokens.
 * Files: midlayer.* with midlayer.mask_rep, fc, norm, lm_head, d2t; config.json has draft_length.
 */
#include "draft/head/kinds/eagle3_head.h"
#include "draft/head/open/head_help.h"
#include "draft/head/head_passes.h"

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    static const char *const times[] = {"twice", "once", NULL};
    int norm = 0, masks = 0;
    hunch_status st = hn_head_check_kind(src, "dart", err);
    if (st) return st;
    if (!hn_head_find_tensor(src, names, HN_HEAD_MASK_PAIR))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor mask_rep is missing: not a head of DART", hn_source_path(src));
    st = hn_eagle3_describe(a, src, names, spec, target, taps, err);
    if (!st) st = hn_spec_choice(spec, "norm", times, 0, &norm, err);
    if (!st) st = hn_head_need(src, HN_HEAD_KEY_MASKS, 1, HN_MOST_MASKS, "the number of masks", " masks", &masks, err);
    a->draft_head.rows.masks.levels = masks + 1;
    a->draft_head.rows.kind = HN_ROWS_MASKS;
    a->draft_head.rows.masks.input = HN_MASK_PAIR;
    if (norm == 0) a->draft_head.output.norm = HN_NORM_TWICE;
    return st;
}

static const hn_head_facts facts = {
    .describe = describe,
    .only = {"midlayer.mask_rep"},
    .architecture = {"eagle3"}, .tensor = "blk.0.mask_rep",
    .states = hn_eagle3_states,
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of DART: rows as EAGLE-3's, all its tokens in one pass",
    {{"norm", "twice|once", "the norm before its output matrix; default twice, as released"}, HN_HELP_TAPS,
     HN_HELP_AT_ONCE}};
const hn_drafter_kind hn_drafter_dart = {.name = "dart", .help = &help, .head = &facts, HN_HEAD_KIND};
