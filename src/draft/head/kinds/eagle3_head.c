/* SPDX-License-Identifier: Apache-2.0 */
/* eagle3_head.c - see eagle3_head.h.
 *
 * Files have two numberings of the layers: states entering a layer (speculators, vLLM), and outputs of a layer (SpecForge).
 * As in SGLang: if the first is 1, all are outputs, and 1 is added; but never for speculators, which has one numbering,
 * nor if there is ptd_token_id, a key of vLLM alone, which counts states.
 */
#include "draft/head/kinds/eagle3_head.h"

#include "draft/head/open/head_reading.h"
#include "draft/head/open/head_taps.h"

static hunch_status read_list(const json_t *list, const hn_source *src, hn_head_taps *taps, hunch_error *err) {
    hunch_status st = hn_taps_of_list(list, src, hn_head_key_name(src, HN_HEAD_KEY_STATES, 0), false, taps, err);
    if (st) return st;
    const bool states = hn_source_config(src, hn_head_key_name(src, HN_HEAD_KEY_KIND, 0)) || hn_source_config(src, "ptd_token_id");
    const bool outputs = taps->boundary[0] == 1 && !states;
    for (int i = 0; outputs && i < taps->n; i++) taps->boundary[i]++;
    return HUNCH_OK;
}

static const json_t *find_list(const hn_source *src) {
    const json_t *list = NULL;
    const char *name;
    for (int i = 0; !list && (name = hn_head_key_name(src, HN_HEAD_KEY_STATES, i)); i++) list = hn_source_config(src, name);
    return list;
}

size_t hn_eagle3_states(const hn_source *src) {
    return json_array_size(find_list(src));
}

static hunch_status read_taps(hn_source *src, hn_spec *spec, int layers, hn_head_taps *taps, hunch_error *err) {
    bool given = false;
    hunch_status st = hn_taps_of_spec(spec, taps, &given, err);
    if (st || given) return st;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF) return hn_taps_of_gguf(src, taps, err);
    const json_t *list = find_list(src);
    if (list) return read_list(list, src, taps, err);
    if (layers < 7)
        return hn_fail(err, HUNCH_REFUSED, "%s: the layers that it reads are not specified, and the usual ones collide in %d layers: "
                       "expected taps=LOW:MID:HIGH", hn_source_path(src), layers);
    *taps = (hn_head_taps){3, {2, layers / 2, layers - 3}};
    return HUNCH_OK;
}

/* Norms before fc exist if the file specifies them or has a tensor of one; a missing tensor is an error, not another kind of head. */
static hunch_status read_norms(hn_arch *a, const hn_source *src, const hn_head_names *names, hunch_error *err) {
    static const hn_head_key keys[] = {HN_HEAD_KEY_NORM_BEFORE_FC, HN_HEAD_KEY_FC_NORM, HN_HEAD_KEYS};
    hn_head_desc *d = &a->draft_head;
    bool normed = false, read = false;
    hunch_status st = hn_head_bool(src, HN_HEAD_KEY_NORM_BEFORE_RESIDUAL, &normed, err);
    if (!st) st = hn_head_bool(src, HN_HEAD_KEY_NORM_OUTPUT, &read, err);
    if (!st) st = hn_head_keys_read(a, src, keys, err);
    d->input.feature.norm_all |= hn_head_find_tensor(src, names, HN_HEAD_FEATURE_NORM) != NULL;
    d->input.feature.norm_each |= hn_head_find_tensor(src, names, HN_HEAD_STATE_NORM) != NULL;
    d->output.norm = read ? HN_NORM_READ : HN_NORM_ONCE;
    a->layer[0].input = normed ? HN_INPUT_PAIR_NORMED : HN_INPUT_PAIR;
    return st;
}

hunch_status hn_eagle3_describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec,
                                const hn_target_info *target, hn_head_taps *taps, hunch_error *err) {
    hn_head_desc *d = &a->draft_head;
    hunch_status st = read_taps(src, spec, target->layers, taps, err);
    if (!st) st = hn_head_check_fc(src, names, taps, target, err);
    if (st) return st;
    d->input.stream = HN_STREAM_FEATURE;
    d->input.features = taps->n;
    d->input.feature_width = target->hidden;
    d->input.feature.fc_bias = hn_head_find_tensor(src, names, HN_HEAD_FC_BIAS);
    st = read_norms(a, src, names, err);
    return st ? st : hn_head_read_norms(spec, a, err);
}
