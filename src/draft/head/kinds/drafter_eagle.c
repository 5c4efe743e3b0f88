/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_eagle.c - EAGLE-1 and EAGLE-2 (2401.15077, 2406.16858), and HASS (2408.15766), whose files are the same.
 *
 *   eagle:PATH, hass:PATH[,last=normed|raw], options: head_drafter.h
 *
 *   last   the state that is read: after the final norm, or before it                                normed
 *
 * A row of token x[i+1] reads the target's last state after its final norm at position i, f[i]:
 *
 *   u = fc(E[x[i+1]] | f[i]) (+ bias)      the embedding first
 *   r = u + attention(u)                   layer 0 has no norm before it
 *   f' = r + swiglu(norm(r))               the next row's feature if x[i+2] is a draft
 *   logits = the target's output matrix f' no norm, no matrix of its own
 *
 * The embedding is the target's unless the file has one. Files: fc.weight [H, 2H], fc.bias, layers.0.self_attn.*, layers.0.mlp.*,
 * layers.0.post_attention_layernorm.weight, embed_tokens.weight; safetensors, or PyTorch's .bin; config.json is Llama's.
 */
#include "draft/head/open/head_help.h"
#include "draft/head/open/head_kind.h"
#include "draft/head/open/head_reading.h"

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    const hn_tensor *fc = hn_head_find_tensor(src, names, HN_HEAD_FC);
    hunch_status st = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_head_check_kind(src, "eagle", err) : HUNCH_OK;
    const bool noted = !fc && target->report; /* reported with the other missing tensors */
    if (st) return st;
    if (names->form == &hn_head_mtp || (!noted && (!fc || fc->n_dims != 2 || fc->dims[0] != 2 * (uint64_t)a->hidden)))
        return hn_fail(err, HUNCH_REFUSED, "%s: not a head of EAGLE-1 or -2: expected a tensor fc.weight of %d inputs",
                       hn_source_path(src), 2 * a->hidden);
    if (a->vocab != target->vocab)
        return hn_fail(err, HUNCH_REFUSED, "%s: an output of %d tokens, expected the target's own matrix", hn_source_path(src),
                       a->vocab);
    d->input.stream = HN_STREAM_JOINT;
    d->input.features = 1;
    d->input.feature_width = a->hidden;
    d->output.norm = HN_NORM_NONE;
    d->input.joint.fc_bias = hn_head_find_tensor(src, names, HN_HEAD_FC_BIAS);
    a->layer[0].input = HN_INPUT_PLAIN;
    return hn_head_read_last(spec, target, taps, err);
}

/* What many heads have. */
static bool is_eagle(hn_source *folder) {
    return hn_head_has_begin(folder, "fc.weight") && hn_head_has_layer(folder);
}

static const hn_head_facts facts = {
    .describe = describe,
    .is = is_eagle,
};
static const hn_drafter_help help = {
    ":HEAD", "a draft head of EAGLE-1 or EAGLE-2 for this model: reads the model's last hidden states",
    {HN_HELP_LAST, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_eagle = {.name = "eagle", .help = &help, .head = &facts, HN_HEAD_KIND};

static const hn_head_facts hass_facts = {.describe = describe}; /* the same files */
static const hn_drafter_help hass_help = {
    ":HEAD", "the same for heads trained as HASS", {HN_HELP_LAST, HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_hass = {.name = "hass", .help = &hass_help, .head = &hass_facts, HN_HEAD_KIND};
