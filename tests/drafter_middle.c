/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_middle.c - an example of a custom head: it reads one layer of the target, and its layer reads the norm of its input.
 *
 *   middle:PATH, options: head_drafter.h
 *
 * A row of token x[i+1] reads the state that enters layer "reads_layer" of the target at position i, a[i]:
 *
 *   u = fc(E[x[i+1]] | a[i])
 *   r = u + attention(norm(u))
 *   out = r + swiglu(norm(r))              the next row's a if x[i+2] is a draft
 *   logits = the target's output matrix norm(out)
 *
 * Files: fc.weight [H, 2H], layers.0.* as Llama's, norm.weight; config.json is Llama's with "reads_layer".
 */
#include "draft/head/head_drafter.h"
#include "draft/head/open/head_help.h"

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names HN_UNUSED, hn_spec *spec HN_UNUSED,
                             const hn_target_info *target HN_UNUSED, hn_head_taps *taps, hunch_error *err) {
    uint64_t layer = 0;
    bool found = false;
    hunch_status st = hn_source_u64(src, "reads_layer", &layer, &found, err);
    if (st) return st;
    if (!found || layer > 256)
        return hn_fail(err, HUNCH_REFUSED, "%s: reads_layer: expected a layer of 0 to 256", hn_source_path(src));
    *taps = (hn_head_taps){1, {(int)layer}};
    a->draft_head.input.stream = HN_STREAM_JOINT; /* embedding and feature together go through fc */
    a->draft_head.input.features = 1;
    a->draft_head.input.feature_width = a->hidden;
    a->layer[0].input = HN_INPUT_NORMED;
    return HUNCH_OK;
}

static const hn_head_facts facts = {.describe = describe};
static const hn_drafter_help help = {":HEAD", "a head that reads one layer of the model", {HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_middle = {.name = "middle", .help = &help, .head = &facts, HN_HEAD_KIND};
