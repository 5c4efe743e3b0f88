/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_mtp.c - a module of multi-token prediction (DeepSeek-V3, 2412.19437), from a folder of its own or from the model's own file.
 *
 *   mtp[:PATH][,last=normed|raw], options: head_drafter.h
 *
 * A row of token x[i+1] reads the target's last state after its final norm at position i, f[i]:
 *
 *   u = fc(norm(E[x[i+1]]) | norm(f[i]))   the embedding first
 *   y = a whole layer of the target's own kind, of u
 *   o = norm(y)                            the next row's feature if x[i+2] is a draft
 *   logits = the target's output matrix o
 *
 * One layer is chained to any depth; if there are several, as in a folder of hunch train, they draft in turn. Files: speculators'
 * (mtp_layers.0.*: input_proj, token_layernorm, hidden_layernorm, final_layernorm, and a layer's); embedding and output are the target's
 * unless the file has them. Without a path, or with the model's own: the block of the model's file (model/head/head_own.c).
 */
#include "draft/head/open/head_help.h"
#include "draft/head/open/head_kind.h"
#include "draft/head/open/head_reading.h"

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    const char *name;
    uint64_t layers = 1;
    const bool own = hn_head_form_own(names->form);
    hunch_status st = own ? HUNCH_OK : hn_head_check_kind(src, "mtp", err);
    if (!st && !own) st = hn_head_u64(src, HN_HEAD_KEY_MTP_LAYERS, &layers, &name, err);
    if (st) return st;
    if (!own && names->form != &hn_head_mtp && names->form != &hn_head_gguf_mtp)
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor %s: not a module of multi-token prediction",
                       hn_source_path(src), names->form == &hn_head_gguf ? "blk.0.nextn.*" : "mtp_layers.0.*");
    const uint64_t modules = !own && names->modules ? (uint64_t)names->modules : 1;
    if (layers != 1 && layers != modules)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected %llu layer%s, which draft%s any depth",
                       hn_source_path(src), name, (unsigned long long)layers, (unsigned long long)modules, modules == 1 ? "" : "s",
                       modules == 1 ? "s" : "");
    hn_head_set_mtp(a, names, target->hidden);
    a->draft_head.input.joint.fc_bias = hn_head_find_tensor(src, names, HN_HEAD_FC_BIAS);
    return hn_head_read_last(spec, target, taps, err);
}

/* Modules that are in the folder of their model do not make it a head. */
static bool is_module(hn_source *folder) {
    return hn_head_has_begin(folder, "mtp_layers.0.") && !(hn_source_find(folder, "model.embed_tokens.weight") &&
                                                           hn_source_find(folder, "model.layers.0.input_layernorm.weight"));
}

static const hn_head_facts facts = {
    .describe = describe,
    .is = is_module,
    .in_model = true,
};
static const hn_drafter_help help = {
    ":HEAD",
    "a module of multi-token prediction: one layer that drafts any depth; without HEAD that of the model's own file",
    {HN_HELP_LAST, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_mtp = {.name = "mtp", .help = &help, .head = &facts, HN_HEAD_KIND};
