/* SPDX-License-Identifier: Apache-2.0 */
/* head_kind.c - see head_kind.h. A folder's own statement counts first (speculators), then tensors that no other kind has, then those that
 * kinds share: each kind's hn_head_facts say which. Model types are of no use: most heads have llama. */
#include "draft/head/open/head_kind.h"

#include <string.h>

#include "draft/drafter.h"

/* Kinds that have no drafter here, by what only their tensors are called. */
static const struct {
    const char *kind, *begin;
} others[] = {{"xpress", "refiner_head."}};

bool hn_head_has_begin(hn_source *src, const char *begin) {
    for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
        const char *name = hn_source_tensor(src, i)->name;
        if (!strncmp(name, "model.", 6)) name += 6;
        if (!strncmp(name, begin, strlen(begin))) return true;
    }
    return false;
}

bool hn_head_has_layer(hn_source *src) {
    return hn_head_has_begin(src, "layers.0.self_attn.") || hn_head_has_begin(src, "midlayer.self_attn.");
}

/* Models of several parts have such tensors under other prefixes. */
static bool has_part(hn_source *src, const char *part) {
    for (size_t i = 0; i < hn_source_tensor_count(src); i++)
        if (strstr(hn_source_tensor(src, i)->name, part)) return true;
    return false;
}

static const char *text_of(const hn_source *src, const char *key) {
    const char *text = NULL;
    bool found = false;
    return !hn_source_str(src, key, &text, NULL, &found, NULL) && found ? text : NULL;
}

typedef bool (*fact_check)(const hn_head_facts *f, hn_source *src);

/* The last kind of head in the list whose facts pass, as later kinds extend earlier ones; NULL: none. */
static const char *last_kind(hn_source *src, fact_check passes) {
    const char *name = NULL;
    const hn_drafter_kind *k;
    for (int i = 0; (k = hn_drafter_kind_at(i)); i++)
        if (k->head && passes(k->head, src)) name = k->name;
    return name;
}

static bool has_any(hn_source *src, const char *const *begin) {
    while (*begin && !hn_head_has_begin(src, *begin)) begin++;
    return *begin;
}

static bool has_own(const hn_head_facts *f, hn_source *src) {
    return has_any(src, f->only);
}

static bool has_shared(const hn_head_facts *f, hn_source *src) {
    return has_any(src, f->shared);
}

static bool is_it(const hn_head_facts *f, hn_source *src) {
    return f->is && f->is(src);
}

/* Two heads in one folder, or the wrong file of one: no guess. */
static hunch_status refuse_two(hn_source *src, hunch_error *err) {
    const char *first = NULL;
    const hn_drafter_kind *k;
    for (int i = 0; (k = hn_drafter_kind_at(i)); i++) {
        if (!k->head || !has_own(k->head, src)) continue;
        if (first)
            return hn_fail(err, HUNCH_REFUSED, "%s: tensors of two kinds of draft heads, %s and %s: expected those of one",
                           hn_source_path(src), first, k->name);
        first = k->name;
    }
    return HUNCH_OK;
}

static const char *by_tensors(hn_source *src) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (hn_head_has_begin(src, others[i].begin)) return others[i].kind;
    const char *kind = last_kind(src, has_own);
    if (!kind) kind = last_kind(src, has_shared);
    return kind ? kind : last_kind(src, is_it);
}

static bool has_architecture(const hn_head_facts *f, hn_source *src) {
    const char *said = text_of(src, "general.architecture");
    for (int i = 0; i < 2 && f->architecture[i]; i++)
        if (!strcmp(said, f->architecture[i])) return true;
    return false;
}

static bool has_tensor(const hn_head_facts *f, hn_source *src) {
    return has_architecture(f, src) && f->tensor && hn_source_find(src, f->tensor);
}

static bool is_plain(const hn_head_facts *f, hn_source *src) {
    return has_architecture(f, src) && !f->tensor;
}

static const char *of_gguf(hn_source *src) {
    const char *named = text_of(src, "hunch.head.kind"), *architecture = text_of(src, "general.architecture");
    if (named) return named;
    if (!architecture) return NULL;
    const char *kind = last_kind(src, has_tensor);
    if (!kind) kind = last_kind(src, is_plain);
    if (kind) return kind;
    if (hn_source_find(src, "blk.0.attn_norm.weight") || hn_source_find(src, "blk.0.attn_q.weight")) return "model";
    return has_part(src, ".nextn.eh_proj.weight") ? hn_drafter_mtp.name : NULL; /* only a model's module of multi-token prediction */
}

static const char *of_folder(hn_source *src) {
    const char *kind = by_tensors(src);
    if (kind) return kind;
    const bool whole = has_part(src, "embed_tokens.weight") && has_part(src, "layers.0.input_layernorm.weight");
    return whole && text_of(src, "model_type") ? "model" : NULL;
}

hunch_status hn_head_kind(hn_source *src, const char **kind, hunch_error *err) {
    const bool gguf = hn_source_get_kind(src) == HN_SOURCE_GGUF;
    const char *named = gguf ? NULL : text_of(src, "speculators_model_type");
    const hunch_status st = gguf || named ? HUNCH_OK : refuse_two(src, err);
    *kind = st ? NULL : gguf ? of_gguf(src) : named ? named : of_folder(src);
    return st;
}
