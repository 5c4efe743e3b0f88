/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_eagle3.c - EAGLE-3 (2503.01840) and 3.1 (2605.09992).
 *
 *   eagle3:PATH[,taps=LOW:MID:HIGH][,residual=normed|plain][,output=normed|plain][,fc_norms=on|off], options: head_drafter.h
 *
 *   taps   layers whose entering states are read, low to high; default: the file's, else 2, half, all but 3
 *
 * A row of token x[i+1] reads the target's residual stream at several layers, before any norm, side by side, a[i]:
 *
 *   g = fc(a[i])                            norm_before_fc: of norm(a[i]); fc_norm: of each state's norm; if x[i+1] is a draft, g is
 *                                           the previous row's `out` instead
 *   z = attention(norm(E[x[i+1]]) | norm(g))
 *   r = g + z                               norm_before_residual: norm(g) + z
 *   out = r + swiglu(norm(r))               norm_output: its norm is passed on
 *   logits = its own output matrix norm(out), over a vocabulary of its own: draft token d is the target's d + d2t[d]
 *
 * Files: SafeAILab's and SpecForge's (midlayer.*), speculators' and vLLM's (layers.0.*), llama.cpp's GGUF.
 */
#include "draft/head/kinds/eagle3_head.h"
#include "draft/head/open/head_help.h"

/* Heads of other kinds have nearly the same tensors. */
static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target,
                             hn_head_taps *taps, hunch_error *err) {
    hunch_status st = hn_head_check_kind(src, "eagle3", err);
    if (st) return st;
    if (hn_head_find_tensor(src, names, HN_HEAD_MASK))
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor mask_hidden: a head of P-EAGLE, expected peagle:PATH", hn_source_path(src));
    const hn_tensor *pair = hn_head_find_tensor(src, names, HN_HEAD_MASK_PAIR);
    if (pair)
        return hn_fail(err, HUNCH_REFUSED, "%s: tensor %s: a head of DART, expected dart:PATH", hn_source_path(src), pair->name);
    return hn_eagle3_describe(a, src, names, spec, target, taps, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .shared = {"midlayer.hidden_norm.", "layers.0.hidden_norm.weight"},
    .architecture = {"eagle3"},
    .states = hn_eagle3_states,
};
static const hn_drafter_help help = {
    ":HEAD",
    "a draft head of EAGLE-3: reads several layers of the model, may draft a part of the vocabulary",
    {HN_HELP_TAPS, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_eagle3 = {.name = "eagle3", .help = &help, .head = &facts, HN_HEAD_KIND};
