/* SPDX-License-Identifier: Apache-2.0 */
/* head_options.c - see head_options.h. */
#include "draft/head/open/head_options.h"

#include <math.h>
#include <string.h>

#include "draft/head/head_drafter.h"
#include "draft/head/head_passes.h"
#include "draft/shape/head_tree.h"
#include "draft/shape/tree_pruned.h"

enum { DEFAULT_DEPTH = 5, DEFAULT_TOPK = 10, EXPANDED_TOPK = 7, DEFAULT_TOTAL = 59, PRUNED_TOTAL = 60 };
static const double DEFAULT_GAIN = 0.2; /* tokens that a level adds; between its cost, in passes of the target, and 1 */

/* In the order of hn_tree_form. */
static const char *const forms[] = {"chain", "dynamic", "opt", "best", "expanded", "pruned", "fitted", "sequoia"};

static hn_tree_form form_of(const char *tree) {
    for (int i = 0; tree && i < HN_TREE_FIXED; i++)
        if (!strcmp(tree, forms[i])) return (hn_tree_form)i;
    return tree ? HN_TREE_FIXED : HN_TREE_CHAIN;
}

bool hn_head_reads_word(const char *key, const char *value) {
    return !strcmp(key, "tree") && (form_of(value) != HN_TREE_FIXED || hn_shape_is_published(value));
}

/* HUNCH_USAGE for a key that the tree does not have. */
static hunch_status check_keys(const hn_head_options *o, const hn_spec *spec, hunch_error *err) {
    const hn_tree_form f = o->form;
    const bool pruned = f == HN_TREE_PRUNED,
               likely = f == HN_TREE_DYNAMIC || f == HN_TREE_OPT || f == HN_TREE_BEST || f == HN_TREE_EXPANDED,
               fits = f == HN_TREE_FITTED || f == HN_TREE_SEQUOIA;
    if (o->topk && !likely)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': topk is of tree=dynamic, opt, best and expanded alone", spec->text);
    if (o->total && !likely && !fits && !pruned)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': total is of tree=dynamic, opt, best, expanded, pruned, fitted and sequoia alone",
                       spec->text);
    if (o->trie && !pruned) return hn_fail(err, HUNCH_USAGE, "drafter '%s': trie is of tree=pruned alone", spec->text);
    if (o->ranks && !fits) return hn_fail(err, HUNCH_USAGE, "drafter '%s': ranks is of tree=fitted and sequoia alone", spec->text);
    if (!o->ranks && fits)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': tree=%s: fitted to which ranks? expected ranks=FILE, from hunch compare --json",
                       spec->text, o->tree);
    if (!isnan(o->gain) && f != HN_TREE_OPT) return hn_fail(err, HUNCH_USAGE, "drafter '%s': gain is of tree=opt alone", spec->text);
    return HUNCH_OK;
}

static hunch_status read_tree(hn_head_options *o, hn_spec *spec, const hn_target_info *target, hunch_error *err) {
    o->tree = hn_spec_string(spec, "tree");
    o->trie = hn_spec_string(spec, "trie");
    o->tokenizer = target->tokenizer;
    if (o->trie && !o->tree) o->tree = "pruned";
    o->form = form_of(o->tree);
    o->ranks = hn_spec_string(spec, "ranks");
    const bool steps = o->form == HN_TREE_DYNAMIC || o->form == HN_TREE_OPT;
    hunch_status s = hn_spec_int(spec, "topk", 1, HN_MOST_TOPK, 0, &o->topk, err);
    if (!s) s = hn_spec_int(spec, "total", 1, HN_TREE_ROWS - 1, 0, &o->total, err);
    if (!s) s = hn_spec_double(spec, "gain", 0, HN_TREE_ROWS, NAN, &o->gain, err);
    if (!s) s = check_keys(o, spec, err);
    if (o->topk == 0 && (steps || o->form == HN_TREE_BEST)) o->topk = DEFAULT_TOPK;
    if (o->topk == 0 && o->form == HN_TREE_EXPANDED) o->topk = EXPANDED_TOPK;
    if (o->total == 0) o->total = o->form == HN_TREE_PRUNED ? PRUNED_TOTAL : DEFAULT_TOTAL;
    if (isnan(o->gain)) o->gain = DEFAULT_GAIN;
    if (!s && steps && (o->depth - 1) * o->topk > HN_MOST_DRAFT_ROWS)
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': depth %ld of %ld nodes a level: expected at most %d in all", spec->text,
                    o->depth, o->topk, HN_MOST_DRAFT_ROWS);
    return s;
}

static hunch_status read_tokens(hn_token_selection *w, hn_spec *spec, hunch_error *err) {
    long n = 0;
    hunch_status s = hn_spec_int(spec, "vocab", 1, INT32_MAX, 0, &n, err);
    *w = (hn_token_selection){(int)n, hn_spec_string(spec, "ids"), hn_spec_string(spec, "texts")};
    if (!s && w->ids && w->texts)
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': ids and texts: expected one of them", spec->text);
    if (!s && !n && (w->ids || w->texts))
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': %s is used only with vocab=N", spec->text,
                    w->ids ? "ids" : "texts");
    return s;
}

hunch_status hn_head_options_read(hn_head_options *o, hn_spec *spec, const hn_target_info *target, hunch_error *err) {
    static const char *const types[] = {"q8_0", "q4_0", "bf16", "f32", NULL}, *const picks[] = {"drawn", "best", NULL};
    static const hn_dtype of_type[] = {HN_Q8_0, HN_Q4_0, HN_BF16, HN_F32};
    int type = target->f32 ? 3 : 0, pick = 0;
    const hn_head_facts *facts = hn_drafter_named(spec->kind)->head;
    if (!spec->path && (!facts->in_model || !target->path))
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': which head? (expected %s:PATH)", spec->text, spec->kind);
    hunch_status s = hn_spec_int(spec, "depth", 1, HN_TREE_ROWS - 1, target->depth ? target->depth : DEFAULT_DEPTH, &o->depth, err);
    o->depth_given = target->depth || hn_spec_string(spec, "depth");
    if (!s) s = hn_spec_choice(spec, "weights", types, type, &type, err);
    if (!s) s = hn_spec_kv(spec, target->kv, &o->kv, err);
    o->min_p_given = target->controlled || hn_spec_string(spec, "min_p");
    if (!s) s = hn_spec_double(spec, "min_p", 0, 1, 0, &o->min_p, err);
    if (!s && facts->has_confidence) s = hn_spec_double(spec, "min_confidence", 0, 1, 0, &o->min_confidence, err);
    if (!s) s = hn_spec_choice(spec, "pick", picks, 0, &pick, err);
    o->picks_best = pick;
    if (!s) s = hn_forced_rates_read(&o->force, spec, err);
    if (!s) s = read_tree(o, spec, target, err);
    if (!s) s = read_tokens(&o->tokens, spec, err);
    o->convert = type != 3 || !target->f32;
    o->weights = of_type[type];
    return s;
}
