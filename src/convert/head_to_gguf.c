/* SPDX-License-Identifier: Apache-2.0 */
/* head_to_gguf.c - see head_to_gguf.h. A head is described by its drafter's describe (head_drafter.h) and written from that
 * description (convert/convert_head.c). A drafter has its target; here all facts on the target may have to come from the file. */
#include "convert/head_to_gguf.h"

#include <string.h>

#include "base/mem.h"
#include "convert/convert.h"
#include "draft/head/head_drafter.h"
#include "draft/head/head_form.h"
#include "model/head/head_steps.h"

bool hn_head_is(const char *kind) {
    return kind && strcmp(kind, "model") != 0;
}

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

static hunch_status write_head(hn_source *src, const char *kind, const hn_arch *target, hn_dtype type, const char *out_path,
                               hunch_progress progress, void *user, hunch_error *err) {
    const hn_head_names names = hn_head_find_names(src);
    const hn_target_info info = {
        .vocab = target->vocab, .hidden = target->hidden, .layers = target->layers, .context = target->context};
    char nothing[] = "";
    hn_spec spec = {.text = nothing, .kind = kind, .path = hn_source_path(src)};
    hn_arch a = {0};
    hn_head_taps taps = {0};
    int32_t *ids = NULL, *order = NULL;
    hunch_status st = hn_head_check_form(src, &names, kind, err);
    if (!st) st = hn_head_read(&a, src, &names, target, err);
    if (!st) st = hn_drafter_named(kind)->head->describe(&a, src, &names, &spec, &info, &taps, err);
    if (!st) st = hn_head_check_taps(&a, src, &taps, &info, err);
    const bool whole = hn_head_is_whole(&a.draft_head);
    if (!st && !whole) st = hn_head_read_ids(src, &names, a.vocab, target->vocab, &ids, err);
    if (!st) st = hn_head_read_order(src, &names, &a, &order, err);
    const bool states = taps.n > 0 && (whole || taps.boundary[0] != HN_FEATURE_POST_NORM);
    const int tokens = whole ? a.vocab : target->vocab;
    const hn_head_written h = {kind, &a, states ? taps.boundary : NULL, ids, order, tokens, type};
    if (!st) st = hn_convert_head(src, &h, out_path, progress, user, err);
    hn_free(ids);
    hn_free(order);
    hn_arch_fini(&a);
    return st;
}

hunch_status hn_head_to_gguf(hn_source *src, const char *kind, const char *target, hn_dtype type, const char *out_path,
                             hunch_progress progress, void *user, hunch_error *err) {
    const hn_drafter_kind *of = hn_drafter_named(kind);
    const hn_head_names names = hn_head_find_names(src);
    hn_arch a = {0};
    hunch_status st;
    if (hn_source_get_kind(src) == HN_SOURCE_GGUF)
        return hn_fail(err, HUNCH_USAGE, "%s: is a GGUF file, expected a folder or file of a draft head to convert", hn_source_path(src));
    if (!of || !of->head)
        return hn_fail(err, HUNCH_REFUSED, "%s: a draft head of kind %.40s, which has no drafter here", hn_source_path(src), kind);
    st = target ? read_target(&a, target, err) : guess_target(&a, src, &names, of->head, err);
    if (!st) st = write_head(src, kind, &a, type, out_path, progress, user, err);
    hn_arch_fini(&a);
    return st;
}
