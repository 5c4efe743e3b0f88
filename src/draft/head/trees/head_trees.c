/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees.c - see head_trees.h: options, tables, and which kind of tree a round makes. */
#include "draft/head/trees/head_trees.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "draft/head/trees/head_trees_private.h"
#include "draft/shape/tree_pruned.h"

/* ---- open and close ----------------------------------------------------------------------------------------------------- */

static void make_chain(hn_shape *s, int depth) {
    *s = (hn_shape){.n = depth, .depth = depth, .widest = 1, .most_expanded = 1};
    for (int i = 0; i < depth; i++) s->node[i] = (hn_shape_node){(int16_t)(i - 1), 0, (int16_t)(i + 1)};
}

/* Reads a fixed shape, which replaces the chain. */
static hunch_status read_shape(hn_shape *shape, const hn_head_options *o, hunch_error *err) {
    const bool sequoia = o->form == HN_TREE_SEQUOIA;
    if (o->form == HN_TREE_FIXED) return hn_shape_read(shape, o->tree, err);
    hn_rank_rates *rates = hn_alloc(sizeof *rates);
    if (!rates) return hn_fail_memory(err, "the ranks of a tree", sizeof *rates);
    hunch_status s = hn_rank_rates_read(rates, o->ranks, sequoia, err);
    if (!s && sequoia) s = hn_shape_sequoia(shape, rates, (int)o->depth, (int)o->total, NULL, err);
    if (!s && !sequoia) s = hn_shape_fitted(shape, rates, (int)o->depth, (int)o->total, err);
    hn_free(rates);
    return s;
}

/* Of trees whose tokens decide how they go on: the shape that they have where tokens are known later. The rates of ranks are about those
 * of heads that fit their target. */
static hunch_status make_later(hn_head_trees *t, hunch_error *err) {
    hn_rank_rates *rates = hn_zalloc(1, sizeof *rates);
    if (!rates) return hn_fail_memory(err, "the ranks of a tree", sizeof *rates);
    rates->depths = t->depth;
    rates->ranks = t->topk < HN_TREE_ROWS ? t->topk : HN_TREE_ROWS;
    for (int d = 0; d < rates->depths; d++)
        for (int k = 0; k < rates->ranks; k++) rates->rate[d][k] = (double)hn_head_later_estimate(k);
    const int most = t->total > 0 && t->total < HN_TREE_ROWS - 1 ? t->total : HN_TREE_ROWS - 1;
    const hunch_status st = hn_shape_fitted(&t->later, rates, t->depth, most, err);
    if (!st && t->later.most_expanded > t->width) t->width = t->later.most_expanded;
    hn_free(rates);
    return st;
}

hunch_status hn_head_trees_read(hn_head_trees *t, const hn_spec *spec, const hn_head_options *o, hunch_error *err) {
    make_chain(&t->chain, (int)o->depth);
    t->shape = t->chain;
    t->form = o->form;
    t->forced = o->force.n > 0;
    t->force = o->force;
    t->min_p = o->min_p;
    t->min_confidence = o->min_confidence;
    t->picks_best = o->picks_best;
    t->gain = o->gain;
    t->is_tree = t->form != HN_TREE_CHAIN;
    t->likely = t->form >= HN_TREE_DYNAMIC && t->form <= HN_TREE_PRUNED;
    const bool fixed = t->is_tree && !t->likely, grown = t->form == HN_TREE_DYNAMIC || t->form == HN_TREE_OPT;
    hunch_status s = fixed ? read_shape(&t->shape, o, err) : HUNCH_OK;
    if (s == HUNCH_USAGE) hn_error_prefix(err, "drafter '%s'", spec->text);
    if (s) return s;
    t->depth = fixed ? t->shape.depth : (int)o->depth;
    t->topk = t->likely ? (int)o->topk : t->shape.widest;
    if (t->form == HN_TREE_PRUNED) t->topk = HN_PRUNED_TOKENS;
    t->total = (int)o->total;
    t->width = 1;
    if (grown) t->width = t->topk;
    if (!t->likely && t->shape.most_expanded > 0) t->width = t->shape.most_expanded;
    t->later = t->shape;
    if (t->one_wait && t->likely) s = make_later(t, err);
    return !s && t->form == HN_TREE_PRUNED ? hn_head_pruned_read(t, spec, o, err) : s;
}

hunch_status hn_head_trees_check(const hn_head_trees *t, const hn_spec *spec, int levels, hunch_error *err) {
    const int deepest = t->depth > t->chain.depth ? t->depth : t->chain.depth;
    return deepest <= levels
               ? HUNCH_OK
               : hn_fail(err, HUNCH_USAGE, "drafter '%s': a tree of %d levels, expected at most %d", spec->text, deepest, levels);
}

void hn_head_trees_limit(hn_head_trees *t, int levels) {
    if (t->depth > levels) t->depth = levels;
    if (t->chain.depth > levels) make_chain(&t->chain, levels);
}

/* Made of the levels' tokens after all of these are known. */
static bool by_levels(const hn_head_trees *t) {
    return t->form == HN_TREE_BEST || t->form == HN_TREE_EXPANDED;
}

/* Tables of the likeliest paths, one for each sequence. */
static hunch_status likely_create(hn_head_trees *t, hunch_error *err) {
    hunch_status s = HUNCH_OK;
    if (t->form == HN_TREE_PRUNED) return s; /* it has its own */
    size_t bytes = (size_t)t->depth * sizeof(hn_level_tokens);
    for (int i = 0; !s && i < t->n_seqs; i++) {
        if (!by_levels(t))
            s = hn_beam_open(&t->seq[i].beam, t->topk, t->depth, err);
        else if (!(t->seq[i].level = hn_zalloc((size_t)t->depth, sizeof(hn_level_tokens))))
            s = hn_fail_memory(err, "the tables of a draft head", bytes);
    }
    if (s || by_levels(t)) return s;
    bytes = (size_t)t->seq[0].beam.cap * sizeof *t->row;
    t->row = hn_zalloc((size_t)t->seq[0].beam.cap, sizeof *t->row);
    return t->row ? HUNCH_OK : hn_fail_memory(err, "the tables of a draft head", bytes);
}

static hunch_status tables_create(hn_head_trees *t, hunch_error *err) {
    const size_t n = (size_t)t->n_seqs * (size_t)t->width;
    const size_t drawn = (size_t)t->head->workers * (size_t)t->vocab * sizeof *t->drawn; /* touched when it is written */
    t->seq = hn_zalloc((size_t)t->n_seqs, sizeof *t->seq);
    t->node = hn_zalloc(n, sizeof *t->node);
    t->of = hn_zalloc(n, sizeof *t->of);
    t->place = hn_zalloc(n, sizeof *t->place);
    t->text_n = hn_zalloc((size_t)t->n_seqs, sizeof *t->text_n);
    t->added = hn_zalloc((size_t)t->n_seqs, sizeof *t->added);
    t->ready = hn_zalloc((size_t)t->n_seqs, sizeof *t->ready);
    t->drawn = hn_alloc(drawn);
    t->path = hn_zalloc(n * (size_t)(t->block > 1 ? t->block : 1), sizeof *t->path);
    if (!t->path || !t->seq || !t->node || !t->of || !t->place || !t->text_n || !t->added || !t->ready || !t->drawn)
        return hn_fail_memory(err, "the tables of a draft head", n * sizeof *t->node + drawn);
    hunch_status s = hn_draft_dists_open(&t->dists, t->vocab, t->n_seqs, HN_TREE_ROWS, t->head->workers, err);
    return s || !t->likely ? s : likely_create(t, err);
}

/* HUNCH_USAGE for a tree that only heads of the other sort have. */
static hunch_status check_form(const hn_head_trees *t, const hn_spec *spec, hunch_error *err) {
    if (t->form == HN_TREE_PRUNED && !t->at_once)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': tree=pruned is of heads that draft all levels in one pass", spec->text);
    if (by_levels(t) && !t->at_once)
        return hn_fail(err, HUNCH_USAGE,
                       "drafter '%s': tree=%s is of heads that draft all levels at once; this one goes on from each token: "
                       "expected dynamic or opt", spec->text, t->form == HN_TREE_BEST ? "best" : "expanded");
    if (t->form == HN_TREE_OPT && t->at_once)
        return hn_fail(err, HUNCH_USAGE,
                       "drafter '%s': tree=opt is of heads that draft a level at a time; this one drafts all at once: "
                       "expected best or dynamic", spec->text);
    return HUNCH_OK;
}

/* Checks that there is room for the rows of all blocks of a round. */
static hunch_status check_blocks(const hn_head_trees *t, const hn_spec *spec, hunch_error *err) {
    const int most = HN_MAX_ROWS - 2 * t->block, blocks = 1 + (t->depth - 1) / t->block * t->width;
    if (t->likely)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': such a tree is of heads that draft one level a pass, or all: this one drafts %d, "
                       "expected a chain or a fixed shape", spec->text, t->block);
    if (t->depth > most || blocks * t->block > HN_MOST_DRAFT_ROWS)
        return hn_fail(err, HUNCH_USAGE,
                       "drafter '%s': a tree of %d levels, in blocks of %d: expected at most %d levels, and %d rows in all",
                       spec->text, t->depth, t->block, most, HN_MOST_DRAFT_ROWS);
    return HUNCH_OK;
}

hunch_status hn_head_trees_open(hn_head_trees *t, const hn_spec *spec, hn_head_passes *head, int levels_at_once, int n_seqs,
                                int vocab, hunch_error *err) {
    t->head = head;
    t->n_seqs = n_seqs;
    t->vocab = vocab;
    t->dist = !t->likely && !t->forced;
    t->at_once = levels_at_once > 1;
    hunch_status s = t->at_once ? hn_head_trees_check(t, spec, levels_at_once, err) : HUNCH_OK;
    if (!s) s = check_form(t, spec, err);
    if (!s && t->block > 1) s = check_blocks(t, spec, err);
    if (!s) s = tables_create(t, err);
    return s || t->form != HN_TREE_PRUNED ? s : hn_head_pruned_open(t, err);
}

size_t hn_head_tree_bytes(const hn_head_trees *t) {
    const size_t block = (size_t)(t->block > 1 ? t->block : 1), beam = (size_t)t->seq[0].beam.cap * sizeof *t->seq[0].beam.node;
    const size_t levels = t->seq[0].level ? (size_t)t->depth * sizeof *t->seq[0].level : 0;
    return sizeof *t->seq + beam + levels + HN_TREE_ROWS * sizeof *t->dists.dist + sizeof *t->text_n + sizeof *t->added +
           (size_t)t->width * (sizeof *t->node + sizeof *t->of + sizeof *t->place + block * sizeof *t->path);
}

void hn_head_trees_close(hn_head_trees *t) {
    hn_draft_dists_close(&t->dists);
    hn_head_pruned_close(t);
    for (int i = 0; t->seq && i < t->n_seqs; i++) {
        hn_beam_close(&t->seq[i].beam);
        hn_free(t->seq[i].level);
        hn_head_oracle_end(&t->seq[i].oracle);
    }
    hn_free(t->seq);
    hn_free(t->path);
    hn_free(t->node);
    hn_free(t->of);
    hn_free(t->place);
    hn_free(t->text_n);
    hn_free(t->added);
    hn_free(t->ready);
    hn_free(t->drawn);
    hn_free(t->row);
    memset(t, 0, sizeof *t);
}

void hn_head_trees_needs(const hn_head_trees *t, hn_needs *needs) {
    needs->oracle = t->forced;
    needs->max_depth = t->depth;
    needs->has_logits = true;
    needs->has_dist = t->dist;
    needs->branches = t->likely || t->shape.n > t->shape.depth || t->shape.widest > 1; /* best and second best, drawn */
    needs->is_tree = t->is_tree;
    needs->cost = t->at_once || t->block > 1 ? HN_COST_PER_ROUND : HN_COST_PER_LEVEL;
}

int hn_head_trees_best(hn_head_trees *t, int outputs) {
    if (t->topk > outputs) t->topk = outputs;
    return t->topk;
}

hunch_status hn_head_trees_begin(hn_head_trees *t, const hn_begin *b, hunch_error *err) {
    return t->forced ? hn_head_oracle_begin(&t->seq[b->seq].oracle, b, err) : HUNCH_OK;
}

void hn_head_trees_end(hn_head_trees *t, int seq) {
    hn_head_oracle_end(&t->seq[seq].oracle);
}

/* ---- a level ----------------------------------------------------------------------------------------------------------- */

int hn_head_trees_propose(hn_head_trees *t, hn_drafter *d, hn_propose *p, int n, int level) {
    hn_head_round c = {.d = d, .t = t, .p = p, .level = level, .confidence = NAN, .base = level};
    if (level == 0) t->ahead = n > 0 && p[0].ahead && !t->forced && hn_head_can_go_ahead(t->head, n, t->depth);
    if (t->ahead) {
        hn_head_want_certainty(t->head, false);
        t->head->ahead = true;
        const int added = hn_head_propose_fixed(&c, n);
        t->head->ahead = false;
        return added;
    }
    bool certainty = false;
    for (int i = 0; i < n; i++) certainty |= p[i].certainty;
    hn_head_want_certainty(t->head, certainty);
    if (!t->likely || (n > 0 && p[0].chain)) return hn_head_propose_fixed(&c, n);
    if (level > 0 && (t->at_once || n == 0 || !p[0].by_levels)) return 0;
    if (t->form == HN_TREE_PRUNED) return hn_head_propose_pruned(&c, n);
    return by_levels(t) ? hn_head_propose_best(&c, n) : hn_head_propose_likely(&c, n);
}
