/* SPDX-License-Identifier: Apache-2.0 */
/* head_drafter.c - life of drafters with a head that has rows in the cache, see head_drafter.h. Its trees are made by head_trees.h, its
 * passes by head_passes.h. */
#include "draft/head/head_drafter.h"

#include "base/file.h"
#include "base/mem.h"
#include "draft/head/open/head_loading.h"
#include "draft/head/head_passes.h"
#include "draft/head/open/head_reading.h"
#include "draft/head/trees/head_trees.h"

typedef struct head_state {
    hn_head_passes passes; /* first: tests read it as the state */
    hn_head_trees trees;
    int context;
    hn_propose *level; /* [max_seqs] that have a level, and which proposal each is */
    int *of;
} head_state;

/* ---- open and close ----------------------------------------------------------------------------------------------------- */

static void state_free(head_state *st) {
    if (!st) return;
    hn_head_trees_close(&st->trees);
    hn_head_passes_close(&st->passes);
    hn_free(st->level);
    hn_free(st->of);
    hn_free(st);
}

/* Levels that the root's pass gives. */
static int levels_of_root(const hn_head_desc *d) {
    if (hn_head_in_order(d)) return 1;
    switch (d->rows.kind) {
    case HN_ROWS_MASKS: return d->rows.masks.levels > 0 ? d->rows.masks.levels : HN_MOST_MASKS + 1;
    case HN_ROWS_BLOCK: return d->rows.block.levels;
    case HN_ROWS_STEPS: return hn_steps_at_once(&d->rows.steps) ? d->rows.steps.n : 1;
    case HN_ROWS_CHAIN:
    case HN_ROWS_TURNS:
    case HN_ROWS_SPAN:
    case HN_ROWS_BORROWED: break;
    }
    return 1;
}

/* Levels that it was trained to draft in a pass; 0: not given. */
static int trained_levels(const hn_rows_stage *rows) {
    return rows->kind == HN_ROWS_BLOCK ? rows->block.levels : rows->kind == HN_ROWS_MASKS ? rows->masks.levels : 0;
}

/* The head's model, and what its passes need; reads the options of its trees, which decide how many outputs a level has. */
static hunch_status open_passes(hn_drafter *d, head_state *st, hn_spec *spec, hn_head_options *o, const hn_target_info *target,
                                hn_needs *needs, hn_head_taps *taps, hunch_error *err) {
    const hn_head_desc *desc = &st->passes.model.arch.draft_head;
    hn_source *src = NULL;
    int32_t *ids = NULL;
    hunch_status s = spec->path ? hn_source_open_head(&src, spec->path, err) : hn_source_open(&src, target->path, err);
    if (!s && target->report) target->report->read = true;
    if (!s) s = hn_head_loading_run(&st->passes.model, src, spec, o, target, taps, &ids, err);
    const int levels = s ? 0 : trained_levels(&desc->rows);
    if (levels > 0 && !o->depth_given) o->depth = levels;
    if (!s && !o->min_p_given && o->form == HN_TREE_CHAIN) o->min_p = desc->min_p;
    if (!s) st->trees.one_wait = st->passes.model.backend->one_wait;
    if (!s) s = hn_head_trees_read(&st->trees, spec, o, err);
    st->passes.target = &target->model->arch;
    if (!s)
        s = hn_head_passes_open(&st->passes, taps->boundary, taps->n, ids, target->vocab, d->max_seqs, st->trees.width, o->kv, needs, err);
    hn_free(ids);
    hn_source_close(&src);
    return s;
}

/* The trees that were read, as far as this head can have them. */
static hunch_status open_trees(head_state *st, const hn_spec *spec, const hn_head_options *o, int n_seqs, int vocab, hunch_error *err) {
    const hn_head_desc *desc = &st->passes.model.arch.draft_head;
    const hn_steps_desc *steps = hn_head_steps(desc);
    st->trees.block = st->passes.span;
    st->trees.laid_out = hn_head_in_order(desc);
    if (o->min_confidence > 0 && !hn_head_has_confidence(desc))
        return hn_fail(err, HUNCH_USAGE,
                       "drafter '%s': min_confidence: this head has no confidence_head, expected one that says how sure it is", spec->text);
    hunch_status s = st->trees.laid_out ? hn_head_trees_check(&st->trees, spec, trained_levels(&desc->rows), err) : HUNCH_OK;
    if (!s && steps) hn_head_trees_limit(&st->trees, steps->n);
    return s ? s : hn_head_trees_open(&st->trees, spec, &st->passes, levels_of_root(desc), n_seqs, vocab, err);
}

static hunch_status state_open(hn_drafter *d, head_state *st, hn_spec *spec, hn_head_options *o, const hn_target_info *target,
                               hn_needs *needs, hunch_error *err) {
    hn_head_taps taps = {0};
    hunch_status s = open_passes(d, st, spec, o, target, needs, &taps, err);
    if (!s) s = open_trees(st, spec, o, d->max_seqs, target->vocab, err);
    return s ? s : hn_head_about(&d->about, spec, &st->passes.model, &taps, target, o->convert, err);
}

static hunch_status drafter_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs, hunch_error *err) {
    hn_head_options o = {0};
    const bool in_model = hn_drafter_named(spec->kind)->head->in_model && spec->path && target->path && target->model->has_own_head;
    if (in_model && hn_same_file(spec->path, target->path)) spec->path = NULL;
    hunch_status s = hn_head_options_read(&o, spec, target, err);
    if (s) return s;
    head_state *st = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "a draft head", sizeof *st);
    st->context = target->context;
    st->passes.drafter = d;
    st->level = hn_zalloc((size_t)d->max_seqs, sizeof *st->level);
    st->of = hn_zalloc((size_t)d->max_seqs, sizeof *st->of);
    s = st->level && st->of ? HUNCH_OK : hn_fail_memory(err, "a draft head", (size_t)d->max_seqs * sizeof *st->level);
    if (!s) s = state_open(d, st, spec, &o, target, needs, err);
    if (s) {
        if (s != HUNCH_USAGE) hn_error_prefix(err, "drafter '%s'", spec->text); /* errors of the spec name it already */
        state_free(st);
        return s;
    }
    d->state = st;
    hn_head_trees_needs(&st->trees, needs);
    needs->shorter = hn_head_saves_levels(&st->passes);
    if (st->trees.laid_out) needs->cost = HN_COST_PER_ROUND; /* the block; later levels cost almost nothing */
    return HUNCH_OK;
}

static hunch_status drafter_attach(hn_drafter *d, hn_cache *cache, int first_group, int model_id, hunch_error *err) {
    head_state *st = d->state;
    const int best = hn_head_trees_best(&st->trees, hn_arch_logits(&st->passes.model.arch));
    return hn_head_passes_attach(&st->passes, cache, first_group, model_id, st->context, best, err);
}

static void drafter_close(hn_drafter *d) {
    state_free(d->state);
}

/* ---- life of a sequence --------------------------------------------------------------------------------------------------- */

static hunch_status drafter_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err) {
    head_state *st = d->state;
    hunch_status s = HUNCH_OK;
    for (int i = 0; !s && i < n; i++) {
        s = hn_head_trees_begin(&st->trees, &seqs[i], err);
        if (!s) hn_head_begin(&st->passes, &seqs[i]);
    }
    return s;
}

static void drafter_feed(hn_drafter *d, const hn_feed_row *rows, int n, const hn_features *f) {
    head_state *st = d->state;
    hn_head_feed(&st->passes, rows, n, f);
}

static int drafter_valid_rows(const hn_drafter *d, int seq) {
    const head_state *st = d->state;
    return hn_head_rows(&st->passes, seq);
}

static size_t drafter_text_bytes(const hn_drafter *d, int tokens HN_UNUSED) {
    const head_state *st = d->state;
    return hn_head_text_bytes(&st->passes) + hn_head_tree_bytes(&st->trees) + sizeof *st->level + sizeof *st->of;
}

static double drafter_pass_s(const hn_drafter *d) {
    const head_state *st = d->state;
    return hn_runner_seconds(st->passes.runner);
}

static void drafter_flush_pending(hn_drafter *d, const int *seq, int n) {
    head_state *st = d->state;
    hn_head_flush_pending(&st->passes, seq, n);
}

static void drafter_end(hn_drafter *d, int seq) {
    head_state *st = d->state;
    hn_head_end(&st->passes, seq);
    hn_head_trees_end(&st->trees, seq);
}

/* A level of those sequences whose trees may have it. */
static int propose_level(head_state *st, hn_drafter *d, hn_propose *p, int n, int level) {
    hn_propose *own = st->level;
    int *of = st->of, m = 0;
    for (int i = 0; i < n; i++) {
        if (level >= p[i].depth) continue;
        of[m] = i;
        own[m++] = p[i];
    }
    const int added = m > 0 ? hn_head_trees_propose(&st->trees, d, own, m, level) : 0;
    for (int i = 0; i < m; i++) p[of[i]].budget = own[i].budget;
    return added;
}

/* All levels of as many sequences as a pass has blocks of: later places use the results of that pass. */
static int propose_blocks(head_state *st, hn_drafter *d, hn_propose *p, int n, int level, int at_once) {
    int all = 0;
    for (int first = 0; level == 0 && first < n; first += at_once) {
        const int m = n - first < at_once ? n - first : at_once;
        for (int k = 0, added = 1; added > 0 && k < d->needs.max_depth; k++)
            all += added = propose_level(st, d, p + first, m, k);
    }
    return all;
}

static int drafter_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    head_state *st = d->state;
    const hn_head_desc *desc = &st->passes.model.arch.draft_head;
    return st->trees.laid_out ? propose_blocks(st, d, p, n, level, hn_head_block_seqs(desc))
                        : hn_head_trees_propose(&st->trees, d, p, n, level);
}

const hn_drafter_ops hn_head_drafter_ops = {
    .open = drafter_open,
    .attach = drafter_attach,
    .begin = drafter_begin,
    .feed = drafter_feed,
    .propose = drafter_propose,
    .valid_rows = drafter_valid_rows,
    .flush_pending = drafter_flush_pending,
    .pass_s = drafter_pass_s,
    .text_bytes = drafter_text_bytes,
    .end = drafter_end,
    .close = drafter_close,
};
