/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - the one walk through a draft tree that decides what is emitted. What a row's token is stands in sampler.c.
 *
 * The token after a row is drawn from that row's logits with the noise of its position alone, so it is the token that
 * plain decoding emits there; the tree only says whether the row behind it was evaluated in the same pass.
 */
#include "verify/verify.h"

#include <assert.h>

hunch_status hn_rule_choose(hunch_verify option, const hunch_sampling *p, hn_rule *out, hunch_error *err) {
    if (option == HUNCH_VERIFY_GREEDY && p->temperature != 0)
        return hn_fail(err, HUNCH_USAGE, "verification 'greedy' at temperature %g, expected temperature 0 or 'match'", p->temperature);
    bool greedy = option == HUNCH_VERIFY_GREEDY || (option == HUNCH_VERIFY_DEFAULT && p->temperature == 0);
    *out = greedy ? HN_RULE_GREEDY : HN_RULE_MATCH;
    return HUNCH_OK;
}

bool hn_rule_fits(hn_rule rule HN_UNUSED, const hn_tree *t) {
    for (int c = 0; c < t->n_candidates; c++)
        if (t->candidate[c].q) return false;
    return true;
}

/* The drafter that a row of the path counts for. */
static int16_t provenance_of(const hn_tree *t, int parent, int child) {
    const hn_candidate *best = NULL;
    for (int c = t->first[parent]; c >= 0; c = t->candidate[c].next) {
        const hn_candidate *k = &t->candidate[c];
        if (k->child != child) continue;
        if (!best || k->estimate > best->estimate || (k->estimate == best->estimate && k->drafter < best->drafter)) best = k;
    }
    assert(best);
    return best->drafter;
}

hunch_status hn_verify_tree(const hn_tree *t, hn_rule rule, hn_sampler *s, const hn_logits_source *src,
                            uint64_t root_position, hn_verdict *out, hunch_error *err) {
    assert(hn_rule_fits(rule, t));
    assert(rule == HN_RULE_MATCH || s->params.temperature == 0);
    out->n_accepted = 0;
    for (int row = 0;;) {
        const float *logits = src->logits(src->ctx, row);
        int32_t hint = src->greedy ? src->greedy(src->ctx, row) : -1;
        uint64_t position = root_position + 1 + (uint64_t)t->depth[row];
        int32_t token = hn_sampler_draw(s, logits, position, hint);
        if (token < 0)
            return hn_fail(err, HUNCH_FAILED, "no token can be drawn at position %llu: every logit is NaN or -inf",
                           (unsigned long long)position);
        int child = hn_tree_child(t, row, token);
        if (child < 0) {
            out->next = token;
            out->next_row = (int16_t)row;
            return HUNCH_OK;
        }
        out->provenance[out->n_accepted] = provenance_of(t, row, child);
        out->path[out->n_accepted++] = (int16_t)child;
        row = child;
    }
}
