/* SPDX-License-Identifier: Apache-2.0 */
/* head_reading.c - see head_reading.h. */
#include "draft/head/open/head_reading.h"

#include "base/mem.h"

void hn_head_report_fini(struct hn_head_report *r) {
    hn_name_list_fini(&r->unused);
    hn_name_list_fini(&r->missing);
}

void hn_head_report_arch(struct hn_head_report *r, const hn_arch *a, const hn_head_taps *taps) {
    r->described = true;
    r->layers = a->layers;
    r->hidden = a->hidden;
    r->drafts = a->vocab;
    r->embeddings = a->draft_head.input.embeddings;
    r->reads = a->layers > 0 ? a->layer[0].input : HN_INPUT_NORMED;
    r->desc = a->draft_head;
    r->taps = *taps;
}

hunch_status hn_head_report_tensors(struct hn_head_report *r, hn_source *src, const hn_head_names *own, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    r->planned = true;
    r->n_used = 0;
    for (size_t i = 0; !st && i < hn_source_tensor_count(src); i++) {
        const hn_tensor *t = hn_source_tensor(src, i);
        if (t->used)
            r->n_used++;
        else if (!own || hn_head_own_tensor(own, t->name))
            st = hn_name_list_add(&r->unused, t->name, err);
    }
    return st;
}

hunch_status hn_head_read_last(hn_spec *spec, const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    static const char *const states[] = {"normed", "raw", NULL};
    int state = 0;
    const hunch_status st = hn_spec_choice(spec, "last", states, 0, &state, err);
    *taps = (hn_head_taps){1, {state ? target->layers : HN_FEATURE_POST_NORM}};
    return st;
}

hunch_status hn_head_check_fc(const hn_source *src, const hn_head_names *names, const hn_head_taps *taps, const hn_target_info *target,
                              hunch_error *err) {
    const hn_tensor *fc = hn_head_find_tensor(src, names, HN_HEAD_FC);
    if (!fc && target->report) return HUNCH_OK;
    return fc && fc->n_dims == 2 && fc->dims[0] == (uint64_t)taps->n * (uint64_t)target->hidden
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED, "%s: fc.weight %s, expected %d states of the target, of %d numbers each", hn_source_path(src),
                         fc ? "has other inputs" : "is missing", taps->n, target->hidden);
}

/* Each publisher has its own key. */
hunch_status hn_head_read_mask_token(const hn_source *src, int tokens, int *out, hunch_error *err) {
    uint64_t id = 0;
    const char *name;
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_MASK_TOKEN, &id, &name, err);
    if (st) return st;
    const char *key = hn_source_get_kind(src) == HN_SOURCE_HF ? NULL : hn_head_key_name(src, HN_HEAD_KEY_MASK_TOKEN, 0);
    if (!name)
        return hn_fail(err, HUNCH_REFUSED, "%s: the mask token is not specified: expected %s%s", hn_source_path(src),
                       key ? "a key " : "mask_token_id or ptd_token_id in config.json", key ? key : "");
    if (id >= (uint64_t)tokens)
        return hn_fail(err, HUNCH_REFUSED, "%s: %s is %llu, expected a token of 0 to %d", hn_source_path(src), name,
                       (unsigned long long)id, tokens - 1);
    *out = (int)id;
    return HUNCH_OK;
}

hunch_status hn_head_read_norms(hn_spec *spec, hn_arch *a, hunch_error *err) {
    static const char *const streams[] = {"plain", "normed", NULL}, *const switches[] = {"off", "on", NULL};
    hn_head_desc *d = &a->draft_head;
    int stream = a->layer[0].input == HN_INPUT_PAIR_NORMED, output = d->output.norm == HN_NORM_READ, norms = 1;
    hunch_status st = hn_spec_choice(spec, "residual", streams, stream, &stream, err);
    if (!st) st = hn_spec_choice(spec, "output", streams, output, &output, err);
    if (!st) st = hn_spec_choice(spec, "fc_norms", switches, 1, &norms, err);
    a->layer[0].input = stream ? HN_INPUT_PAIR_NORMED : HN_INPUT_PAIR;
    d->output.norm = output ? HN_NORM_READ : HN_NORM_ONCE;
    if (!norms) d->input.feature.norm_all = d->input.feature.norm_each = false;
    return st;
}
