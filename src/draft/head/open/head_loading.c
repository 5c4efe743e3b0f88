/* SPDX-License-Identifier: Apache-2.0 */
/* head_loading.c - see head_loading.h. */
#include "draft/head/open/head_loading.h"

#include <string.h>

#include "base/mem.h"
#include "draft/head/open/head_form.h"
#include "draft/head/open/head_reading.h"
#include "model/head/head_steps.h"

hunch_status hn_head_check_taps(const hn_arch *a, const hn_source *src, const hn_head_taps *t, const hn_target_info *target,
                                hunch_error *err) {
    for (int i = 0; i < t->n; i++) {
        if (t->boundary[i] != HN_FEATURE_POST_NORM && (t->boundary[i] < 0 || t->boundary[i] > target->layers))
            return hn_fail(err, HUNCH_REFUSED, "%s: reads the state at layer %d, expected 0 to %d of this target",
                           hn_source_path(src), t->boundary[i], target->layers);
        for (int k = 0; k < i; k++)
            if (t->boundary[k] == t->boundary[i])
                return hn_fail(err, HUNCH_REFUSED, "%s: reads the state at layer %d twice: expected distinct layers",
                               hn_source_path(src), t->boundary[i]);
    }
    return a->draft_head.input.feature_width == target->hidden
               ? HUNCH_OK
               : hn_fail(err, HUNCH_REFUSED, "%s: reads states of %d numbers, the target's have %d", hn_source_path(src),
                         a->draft_head.input.feature_width, target->hidden);
}

hunch_status hn_head_check_form(const hn_source *src, const hn_head_names *names, const char *kind, hunch_error *err) {
    const hn_drafter_kind *of = hn_drafter_named(kind);
    const char *tensor = of && of->head ? of->head->steps_tensor : NULL;
    const bool assistant = of == &hn_drafter_assistant;
    if (of == &hn_drafter_pard && names->form != of->head->form[0] && names->form != of->head->gguf_form[0])
        return hn_fail(err, HUNCH_REFUSED,
                       "%s: no draft model of PARD: expected a whole model with pard_token in config.json, or a GGUF of one",
                       hn_source_path(src));
    if (of && assistant != hn_head_form_assistant(names->form))
        return assistant ? hn_fail(err, HUNCH_REFUSED, "%s: no assistant of Gemma 4: expected a tensor pre_projection.weight",
                                   hn_source_path(src))
                         : hn_fail(err, HUNCH_REFUSED, "%s: no head of kind %s: it is an assistant of Gemma 4", hn_source_path(src), kind);
    const bool has = names->form->steps;
    if (!of || has == (tensor != NULL)) return HUNCH_OK;
    return has ? hn_fail(err, HUNCH_REFUSED, "%s: no head of kind %s: it has weights for each position", hn_source_path(src), kind)
               : hn_fail(err, HUNCH_REFUSED, "%s: no head of kind %s: expected a tensor %s", hn_source_path(src), kind, tensor);
}

/* *ids, *n: the tokens that it drafts, if these are chosen by the spec; else unchanged. */
static hunch_status choose_tokens(const hn_spec *spec, const hn_head_options *o, const hn_arch *a, const hn_target_info *target,
                                  int32_t **ids, int *n, hunch_error *err) {
    if (!o->tokens.n) return HUNCH_OK;
    if (a->draft_head.output.kind == HN_OUTPUT_CLUSTERS)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': vocab=%d: the head has %d clusters of tokens, expected none of them to be left out",
                       spec->text, o->tokens.n, a->draft_head.output.clusters.n);
    if (*ids)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': vocab=%d: the head has a reduced vocabulary already, %d of %d tokens",
                       spec->text, o->tokens.n, a->vocab, target->vocab);
    hunch_status s = hn_tokens_choose(&o->tokens, target->tokenizer, target->vocab, ids, n, err);
    if (s == HUNCH_USAGE) hn_error_prefix(err, "drafter '%s'", spec->text);
    return s;
}

/* A whole model drafts the tokens that it has in common with the target: *ids, *trim as choose_tokens. */
static hunch_status share_tokens(const hn_arch *a, int vocab, int32_t **ids, int *trim, hunch_error *err) {
    const int common = a->vocab < vocab ? a->vocab : vocab;
    if (*ids) { /* those that were chosen */
        int n = 0;
        for (int i = 0; i < *trim; i++)
            if ((*ids)[i] < common) (*ids)[n++] = (*ids)[i];
        *trim = n;
        return HUNCH_OK;
    }
    if (a->vocab == vocab) return HUNCH_OK;
    *ids = hn_alloc((size_t)common * sizeof **ids);
    if (!*ids) return hn_fail_memory(err, "draft tokens", (size_t)common * sizeof **ids);
    for (int i = 0; i < common; i++) (*ids)[i] = i;
    if (common < a->vocab) *trim = common;
    return HUNCH_OK;
}

/* Opens the head; reports the tensors that it used. own: of the model's own file, whose other tensors are the model's; else NULL. */
static hunch_status open_model(hn_model *m, hn_source *src, hn_arch *a, const hn_head_load *load, const int32_t *ids,
                               const hn_head_names *own, struct hn_head_report *report, hunch_error *err) {
    if (report && load->trim) report->drafts = load->trim;
    const hunch_status s = hn_head_open(m, src, a, load, ids, err);
    const hunch_status reported = report ? hn_head_report_tensors(report, src, own, err) : HUNCH_OK;
    return reported ? reported : s;
}

hunch_status hn_head_loading_run(hn_model *m, hn_source *src, hn_spec *spec, const hn_head_options *o, const hn_target_info *target,
                                 hn_head_taps *taps, int32_t **ids, hunch_error *err) {
    const hn_arch *model = &target->model->arch;
    const hn_head_facts *facts = hn_drafter_named(spec->kind)->head;
    hn_head_names names = spec->path ? hn_head_find_names(src) : (hn_head_names){0};
    hn_head_load load = {.target = target->model, .convert = o->convert, .weights = o->weights,
                         .missing = target->report ? &target->report->missing : NULL};
    hn_arch a = {0};
    hunch_status s = spec->path ? hn_head_check_form(src, &names, spec->kind, err) : HUNCH_OK;
    bool side = false;
    if (!s && spec->path && facts->in_model) s = hn_head_find_side(src, model, &names, &side, err);
    if (s) return s;
    if (side)
        s = hn_head_read_own(&a, src, &names, model, err);
    else if (spec->path)
        s = hn_head_read(&a, src, &names, model, err);
    else if (hn_head_find_own(src, model, &names))
        s = hn_head_read_own(&a, src, &names, model, err);
    else
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': %s holds no block of multi-token prediction (expected %s:PATH)", spec->text,
                    hn_source_path(src), spec->kind);
    if (!s) s = facts->describe(&a, src, &names, spec, target, taps, err);
    if (!s && target->report) hn_head_report_arch(target->report, &a, taps);
    if (!s) s = hn_spec_all_used(spec, err); /* before weights are read */
    if (!s) s = hn_head_check_taps(&a, src, taps, target, err);
    const bool whole = hn_head_is_whole(&a.draft_head);
    if (!s && !whole) s = hn_head_read_ids(src, &names, a.vocab, target->vocab, ids, err);
    if (!s) s = choose_tokens(spec, o, &a, target, ids, &load.trim, err);
    if (!s && whole) s = share_tokens(&a, target->vocab, ids, &load.trim, err);
    int32_t *order = NULL;
    if (!s) s = hn_head_read_order(src, &names, &a, &order, err);
    if (!s && order) s = hn_head_order_ids(ids, order, a.vocab, err);
    load.order = order;
    if (s)
        hn_arch_fini(&a);
    else
        s = open_model(m, src, &a, &load, *ids, spec->path ? NULL : &names, target->report, err);
    hn_free(order);
    return s;
}
