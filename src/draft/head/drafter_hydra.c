/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_hydra.c - Hydra (2402.05109): Medusa's heads, of which each reads the tokens that were drafted before it.
 *
 *   hydra:PATH[,last=normed|raw], options: head_drafter.h
 *
 * h is the target's last state after its final norm at the last row that it has computed (hidden_state_offset m: the state that enters
 * its m-th layer from the end), x[n] the token after it, E the target's embedding. Head k drafts x[n+1+k] = d[k+1]:
 *
 *   s = h | E[x[n]] | E[d[1]] ... E[d[k]]
 *   y = R s + r + silu(W s + b);  y += silu(W' y + b') for further resblocks
 *   logits = U y + c
 *
 * If it is not grounded, head k reads h alone: biased heads of Medusa, all in one pass. With a prefix layer (Hydra++) h goes through a
 * layer of attention and its norm first, which has rows of its own in the cache; for heads that are not grounded too, as trained (the
 * release's own decoding leaves it out there).
 *
 * Files: hydra_lm_head.pt with hydra_mlp.{k}.{j}.*, hydra_lm_head.{k}.*, prefix_embeding_layer.*; a release with dropout has its modules
 * at every other index.
 */
#include <string.h>

#include "draft/head/head_reading.h"
#include "model/head/head_steps.h"

static hunch_status check_form(const hn_source *src, hunch_error *err) {
    const char *form = "mlp";
    bool found = false;
    hunch_status st = hn_source_str(src, "hydra_head_arch", &form, NULL, &found, err);
    return st || !strcmp(form, "mlp") || !strcmp(form, "prefix-mlp")
               ? st
               : hn_fail(err, HUNCH_REFUSED, "%s: hydra_head_arch is \"%.40s\", expected mlp or prefix-mlp", hn_source_path(src), form);
}

/* Reads which state the head uses. */
static hunch_status read_offset(const hn_source *src, hn_spec *spec, const hn_target_info *target, hn_head_taps *taps, int *offset,
                                hunch_error *err) {
    const char *name;
    uint64_t m = 0;
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_STATE_OFFSET, &m, &name, err);
    if (!st && m > (uint64_t)target->layers)
        st = hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected 0 to the %d layers of the target", hn_source_path(src), name,
                     (unsigned long long)m, target->layers);
    if (!st) st = hn_head_read_last(spec, target, taps, err);
    if (!st && m > 0) *taps = (hn_head_taps){1, {target->layers - (int)m}};
    *offset = (int)m;
    return st;
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                             const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_steps_desc *d = &a->draft_head.rows.steps;
    hunch_status st = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_head_check_kind(src, "hydra", err) : check_form(src, err);
    if (st) return st;
    if (names->form != HN_HEAD_HYDRA && names->form != HN_HEAD_GGUF_STEPS)
        return hn_fail(err, HUNCH_REFUSED, "%s: no tensor hydra_mlp.0.*: not a head of Hydra", hn_source_path(src));
    d->kind = hn_step_find_tensor(src, names, (hn_step_tensor){HN_STEP_RESIDUAL, 0, 0}) ? HN_STEP_GROUNDED : HN_STEP_RESBLOCKS;
    d->n = hn_steps_count(src, names, HN_STEP_RESBLOCK);
    d->resblocks.n = names->steps.resblocks;
    st = hn_steps_check_layers(a, src, 1, err);
    if (!st) st = hn_steps_finish(a, src, names, target->vocab, err);
    return st ? st : read_offset(src, spec, target, taps, &a->draft_head.input.state.offset, err);
}

static const hn_head_facts facts = {
    .describe = describe,
    .only = {"hydra_"},
    .steps_tensor = "hydra_mlp.0.0.linear.weight",
};
const hn_drafter_kind hn_drafter_hydra = {.name = "hydra", .head = &facts, HN_HEAD_KIND};
