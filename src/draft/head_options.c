/* SPDX-License-Identifier: Apache-2.0 */
/* head_options.c - see head_options.h. */
#include "draft/head_options.h"

#include <math.h>
#include <string.h>

#include "draft/head_drafter.h"
#include "draft/head_passes.h"
#include "draft/head_tree.h"
#include "draft/tree_pruned.h"

enum { DEFAULT_DEPTH = 5, DEFAULT_TOPK = 10, DEFAULT_TOTAL = 59, PRUNED_TOTAL = 60 };

bool hn_head_reads_word(const char *key, const char *value) {
    return !strcmp(key, "tree") && (!strcmp(value, "chain") || !strcmp(value, "dynamic") || !strcmp(value, "pruned") || hn_shape_is_published(value));
}

static hunch_status read_tree(hn_head_options *o, hn_spec *spec, const hn_target_info *target, hunch_error *err) {
    o->tree = hn_spec_string(spec, "tree");
    o->trie = hn_spec_string(spec, "trie");
    o->tokenizer = target->tokenizer;
    if (o->trie && !o->tree) o->tree = "pruned";
    const bool dynamic = o->tree && !strcmp(o->tree, "dynamic"), pruned = o->tree && !strcmp(o->tree, "pruned");
    hunch_status s = hn_spec_int(spec, "topk", 1, HN_MOST_TOPK, dynamic ? DEFAULT_TOPK : 0, &o->topk, err);
    if (!s) s = hn_spec_int(spec, "total", 1, HN_TREE_ROWS - 1, dynamic ? DEFAULT_TOTAL : pruned ? PRUNED_TOTAL : 0, &o->total, err);
    if (!s && !dynamic && (o->topk || (o->total && !pruned)))
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': %s is of tree=dynamic alone", spec->text, o->topk ? "topk" : "total");
    if (!s && o->trie && !pruned)
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': trie is of tree=pruned alone", spec->text);
    if (!s && dynamic && (o->depth - 1) * o->topk > HN_MOST_KEPT)
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': depth %ld of %ld nodes a level: expected at most %d in all", spec->text,
                    o->depth, o->topk, HN_MOST_KEPT);
    return s;
}

static hunch_status read_tokens(hn_token_wish *w, hn_spec *spec, hunch_error *err) {
    long n = 0;
    hunch_status s = hn_spec_int(spec, "vocab", 1, INT32_MAX, 0, &n, err);
    *w = (hn_token_wish){(int)n, hn_spec_string(spec, "ids"), hn_spec_string(spec, "texts")};
    if (!s && w->ids && w->texts)
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': ids and texts: expected one of them", spec->text);
    if (!s && !n && (w->ids || w->texts))
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': %s says which tokens are likely, expected vocab=N as well", spec->text,
                    w->ids ? "ids" : "texts");
    return s;
}

hunch_status hn_head_options_read(hn_head_options *o, hn_spec *spec, const hn_target_info *target, hunch_error *err) {
    static const char *const forms[] = {"q8_0", "q4_0", "bf16", "f32", NULL};
    static const hn_dtype of_form[] = {HN_Q8_0, HN_Q4_0, HN_BF16, HN_F32};
    int form = target->f32 ? 3 : 0;
    if (!spec->path && (strcmp(spec->kind, "mtp") != 0 || !target->path))
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': which head? (expected %s:PATH)", spec->text, spec->kind);
    hunch_status s = hn_spec_int(spec, "depth", 1, HN_TREE_ROWS - 1, target->depth ? target->depth : DEFAULT_DEPTH, &o->depth, err);
    o->depth_said = target->depth || hn_spec_string(spec, "depth");
    if (!s) s = hn_spec_choice(spec, "weights", forms, form, &form, err);
    if (!s) s = hn_spec_kv(spec, target->kv, &o->kv, err);
    if (!s) s = hn_spec_double(spec, "min_p", 0, 1, 0, &o->min_p, err);
    if (!s) s = hn_spec_double(spec, "force", 0, 1, NAN, &o->force, err);
    if (!s) s = read_tree(o, spec, target, err);
    if (!s) s = read_tokens(&o->tokens, spec, err);
    o->convert = form != 3 || !target->f32;
    o->weights = of_form[form];
    return s;
}
