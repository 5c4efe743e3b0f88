/* SPDX-License-Identifier: Apache-2.0 */
/* head_alone.c - see head_alone.h. A drafter has its target; here all facts on the target may have to come from the head's file. */
#include "draft/head/open/head_alone.h"

#include <string.h>

#include "draft/head/open/head_form.h"
#include "model/head/head_steps.h"

static hunch_status need_target(const hn_source *src, const char *what, hunch_error *err) {
    return hn_fail(err, HUNCH_USAGE, "%s: it does not say %s: expected --target with the model that it drafts for",
                   hn_source_path(src), what);
}

/* Tokens of the target: each has an entry in t2d; config.json may give the drafted ones instead. 0: not known. */
static hunch_status find_tokens(hn_source *src, const hn_head_names *names, int *tokens, hunch_error *err) {
    const hn_tensor *known = hn_source_find(src, "t2d"), *embedding = hn_head_find_tensor(src, names, HN_HEAD_EMBEDDING),
                    *ids = hn_head_find_tensor(src, names, HN_HEAD_IDS);
    const char *name;
    uint64_t given = 0, n = 0;
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_TOKENS, &given, &name, err);
    if (st) return st;
    if (name && !(ids && ids->dims[0] == given)) n = given;
    else if (known) n = known->dims[0];
    else if (embedding && embedding->n_dims == 2) n = embedding->dims[1];
    *tokens = n >= 1 && n <= 1 << 23 ? (int)n : 0;
    return HUNCH_OK;
}

/* Width of a state that a head reads; states: number of layers, 0: it reads the last state. 0: not known. */
static hunch_status find_width(hn_source *src, const hn_head_names *names, size_t states, int *width, hunch_error *err) {
    const hn_key hidden = {NULL, "hidden_size", 1, 1 << 17, 0};
    const hn_tensor *fc = hn_head_find_tensor(src, names, HN_HEAD_FC);
    const char *name;
    uint64_t given = 0;
    hunch_status st = hn_head_u64(src, HN_HEAD_KEY_TARGET_WIDTH, &given, &name, err);
    if (st) return st;
    if (!states && !name) return hn_key_int(src, &hidden, width, err);
    if (!name && fc) given = fc->dims[0] / states;
    *width = given >= 1 && given <= 1 << 17 ? (int)given : 0;
    return HUNCH_OK;
}

/* For a head with weights for each position, whose tensors show most of it. */
static hunch_status guess_by_steps(hn_arch *a, hn_source *src, const hn_head_names *names, hunch_error *err) {
    hunch_status st = find_tokens(src, names, &a->vocab, err);
    int tokens;
    hn_steps_guess(src, names, &tokens, &a->hidden);
    if (!a->vocab) a->vocab = tokens;
    return st;
}

/* The target as far as a head's own file describes it. */
static hunch_status guess_target(hn_arch *a, hn_source *src, const hn_head_names *names, const hn_head_facts *facts, hunch_error *err) {
    const size_t states = facts->states ? facts->states(src) : 0;
    if (facts->states && !states) return need_target(src, "which layers of its model it reads", err);
    const bool steps = names->form->steps;
    hunch_status st = steps ? guess_by_steps(a, src, names, err) : find_tokens(src, names, &a->vocab, err);
    if (!st && !steps) st = find_width(src, names, states, &a->hidden, err);
    if (!st && !a->vocab) st = need_target(src, "how many tokens its model has", err);
    if (!st && !a->hidden) st = need_target(src, "how wide its model is", err);
    a->layers = HN_ANY_LAYERS;
    return st;
}

static hunch_status read_target(hn_arch *a, const char *path, hunch_error *err) {
    hn_source *src;
    hunch_status st = hn_source_open(&src, path, err);
    if (!st) st = hn_arch_read(a, src, err);
    hn_source_close(&src);
    return st;
}

const hn_head_form *hn_head_form_in_gguf(const char *kind, const hn_arch *a) {
    const hn_head_form *form = a->files.head_form, *of_kind = hn_drafter_named(kind)->head->gguf_form[0];
    return of_kind                            ? of_kind
           : hn_head_steps(&a->draft_head)    ? &hn_head_gguf_steps
           : form == &hn_head_mtp             ? &hn_head_gguf_mtp
           : hn_head_form_folder_blocks(form) ? &hn_head_gguf_blocks
                                              : &hn_head_gguf;
}

hunch_status hn_head_describe_alone(hn_head_alone *h, hn_source *src, const char *kind, const char *target, hunch_error *err) {
    const hn_drafter_kind *of = hn_drafter_named(kind);
    const hn_head_names names = hn_head_find_names(src);
    *h = (hn_head_alone){.names = names};
    if (!of || !of->head)
        return hn_fail(err, HUNCH_REFUSED, "%s: a draft head of kind %.40s, which has no drafter here", hn_source_path(src), kind);
    hunch_status st = target ? read_target(&h->target, target, err) : guess_target(&h->target, src, &names, of->head, err);
    const hn_arch *t = &h->target;
    const hn_target_info info = {.vocab = t->vocab, .hidden = t->hidden, .layers = t->layers, .context = t->context};
    char nothing[] = "";
    hn_spec spec = {.text = nothing, .kind = kind, .path = hn_source_path(src)};
    if (!st) st = hn_head_check_form(src, &names, kind, err);
    if (!st) st = hn_head_read(&h->arch, src, &names, t, err);
    if (!st) st = of->head->describe(&h->arch, src, &names, &spec, &info, &h->taps, err);
    if (!st) st = hn_head_check_taps(&h->arch, src, &h->taps, &info, err);
    h->states = !st && h->taps.n > 0 && (hn_head_is_whole(&h->arch.draft_head) || h->taps.boundary[0] != HN_FEATURE_POST_NORM);
    return st;
}

void hn_head_alone_fini(hn_head_alone *h) {
    hn_arch_fini(&h->arch);
    hn_arch_fini(&h->target);
}
