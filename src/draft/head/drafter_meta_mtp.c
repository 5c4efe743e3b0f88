/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_meta_mtp.c - Meta's models that predict several tokens (2404.19737): the further heads of the model itself.
 *
 *   meta-mtp:PATH, options: head_drafter.h
 *
 * z[i] is the output of the model's trunk for the text up to i, the state that enters its last layer. That layer is the model's first head,
 * and together with the trunk an ordinary model: the target. Head j > 1 is a layer of its own:
 *
 *   logits[j] = the model's output matrix norm(block_j(z)[i])      predicts x[i+j]
 *
 * All heads read z alone, so all drafts come from one pass; each has keys and values of its own for every token of the text. The final
 * norm is the file's, the output matrix the target's. Files: Meta's own, consolidated.pth with extra_heads.{j}.*, norm.weight, and
 * params.json.
 */
#include "draft/head/head_reading.h"
#include "model/head/head_steps.h"

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec HN_UNUSED,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_steps_desc *d = &a->draft_head.rows.steps;
    hunch_status st = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_head_check_kind(src, "meta-mtp", err) : HUNCH_OK;
    if (st) return st;
    if ((names->form != HN_HEAD_META && names->form != HN_HEAD_GGUF_STEPS) || a->layers == 0)
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor extra_heads.0.*: not heads of Meta's", hn_source_path(src));
    d->kind = HN_STEP_LAYERS;
    d->n = a->layers;
    *taps = (hn_head_taps){1, {target->layers - 1}};
    return hn_steps_finish(a, src, names, target->vocab, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .only = {"extra_heads."},
    .steps_tensor = "extra_heads.0.attention_norm.weight",
};
const hn_drafter_kind hn_drafter_meta_mtp = {.name = "meta-mtp", .head = &facts, HN_HEAD_KIND};
