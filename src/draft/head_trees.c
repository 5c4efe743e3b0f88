/* SPDX-License-Identifier: Apache-2.0 */
/* head_trees.c - see head_trees.h: options, tables, the choice of tokens from a row. */
#include "draft/head_trees.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "draft/head_trees_private.h"
#include "draft/tree_pruned.h"

/* ---- open and close ----------------------------------------------------------------------------------------------------- */

static void make_chain(hn_shape *s, int depth) {
    *s = (hn_shape){.n = depth, .depth = depth, .widest = 1, .most_expanded = 1};
    for (int i = 0; i < depth; i++) s->node[i] = (hn_shape_node){(int16_t)(i - 1), 0, (int16_t)(i + 1)};
}

hunch_status hn_head_trees_read(hn_head_trees *t, const hn_spec *spec, const hn_head_options *o, hunch_error *err) {
    make_chain(&t->chain, (int)o->depth);
    t->shape = t->chain;
    t->forced = !isnan(o->force);
    t->accept = o->force;
    t->min_p = o->min_p;
    t->is_tree = o->tree && strcmp(o->tree, "chain") != 0;
    t->dynamic = o->tree && !strcmp(o->tree, "dynamic");
    t->pruned = o->tree && !strcmp(o->tree, "pruned");
    const bool fixed = t->is_tree && !t->dynamic && !t->pruned;
    hunch_status s = fixed ? hn_shape_read(&t->shape, o->tree, err) : HUNCH_OK;
    if (s == HUNCH_USAGE) hn_error_prefix(err, "drafter '%s'", spec->text);
    if (s) return s;
    t->depth = fixed ? t->shape.depth : (int)o->depth;
    t->topk = t->dynamic ? (int)o->topk : t->pruned ? HN_PRUNED_TOKENS : t->shape.widest;
    t->total = (int)o->total;
    t->width = t->dynamic ? t->topk : t->shape.most_expanded > 0 ? t->shape.most_expanded : 1;
    return t->pruned ? hn_head_pruned_read(t, spec, o, err) : HUNCH_OK;
}

void hn_head_trees_limit(hn_head_trees *t, int levels) {
    if (t->depth > levels) t->depth = levels;
}

static hunch_status tables_create(hn_head_trees *t, hunch_error *err) {
    const size_t n = (size_t)t->n_seqs * (size_t)t->width;
    t->seq = hn_zalloc((size_t)t->n_seqs, sizeof *t->seq);
    t->node = hn_zalloc(n, sizeof *t->node);
    t->of = hn_zalloc(n, sizeof *t->of);
    t->place = hn_zalloc(n, sizeof *t->place);
    t->drawn = hn_zalloc((size_t)t->vocab, sizeof *t->drawn);
    if (!t->seq || !t->node || !t->of || !t->place || !t->drawn)
        return hn_fail_memory(err, "the tables of a draft head", n * sizeof *t->node + (size_t)t->vocab * sizeof *t->drawn);
    hunch_status s = hn_draft_laws_open(&t->laws, t->vocab, t->n_seqs, HN_TREE_ROWS, err);
    for (int i = 0; !s && t->dynamic && i < t->n_seqs; i++) s = hn_beam_open(&t->seq[i].beam, t->topk, t->depth, err);
    if (s || !t->dynamic) return s;
    const size_t nodes = (size_t)t->seq[0].beam.cap;
    t->row = hn_zalloc(nodes, sizeof *t->row);
    return t->row ? HUNCH_OK : hn_fail_memory(err, "the tables of a draft head", nodes * sizeof *t->row);
}

hunch_status hn_head_trees_open(hn_head_trees *t, const hn_spec *spec, void *head, const hn_head_row_ops *rows, int levels_at_once,
                                int n_seqs, int vocab, hunch_error *err) {
    t->head = head;
    t->rows = rows;
    t->n_seqs = n_seqs;
    t->vocab = vocab;
    t->law = !t->dynamic && !t->pruned && !t->forced;
    t->at_once = levels_at_once > 1;
    if (t->at_once && t->depth > levels_at_once)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': a tree of %d levels, expected at most %d", spec->text, t->depth, levels_at_once);
    if (t->pruned && !t->at_once)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': tree=pruned is of heads that draft all levels in one pass", spec->text);
    const hunch_status s = tables_create(t, err);
    return s || !t->pruned ? s : hn_head_pruned_open(t, err);
}

void hn_head_trees_close(hn_head_trees *t) {
    hn_draft_laws_close(&t->laws);
    hn_head_pruned_close(t);
    for (int i = 0; t->seq && i < t->n_seqs; i++) {
        hn_beam_close(&t->seq[i].beam);
        hn_head_oracle_end(&t->seq[i].oracle);
    }
    hn_free(t->seq);
    hn_free(t->node);
    hn_free(t->of);
    hn_free(t->place);
    hn_free(t->drawn);
    hn_free(t->row);
    memset(t, 0, sizeof *t);
}

void hn_head_trees_needs(const hn_head_trees *t, hn_needs *needs) {
    needs->oracle = t->forced;
    needs->max_depth = t->depth;
    needs->has_logits = true;
    needs->has_law = t->law;
    needs->branches = t->dynamic || t->pruned || t->shape.n > t->shape.depth || t->shape.widest > 1; /* best and second best, drawn */
    needs->is_tree = t->is_tree;
    needs->cost = needs->branches || t->at_once ? HN_COST_PER_ROUND : HN_COST_PER_LEVEL;
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

/* ---- choosing tokens --------------------------------------------------------------------------------------------------- */

bool hn_head_force(const hn_head_round *c, const hn_propose *p, hn_head_seq_tree *s, int32_t *token, int n) {
    return hn_head_oracle_force(&s->oracle, p, c->t->accept, c->d->index, c->t->vocab, c->level, token, n);
}

int hn_head_choose(hn_head_round *c, const hn_propose *p, int row, const hn_history *h, int n, int32_t *token, float *prob) {
    hn_head_trees *t = c->t;
    const float *value;
    const int32_t *best = t->rows->best(t->head, row, &value);
    if (best[0] < 0 || !(value[0] > -INFINITY)) return 0;
    const double sum = t->rows->sum(t->head, row);
    int m = 0;
    if (t->dynamic || (t->pruned && !p->chain) || hn_sampler_takes_best(p->sampler)) {
        for (; m < n && m < t->topk && best[m] >= 0 && value[m] > -INFINITY; m++) {
            token[m] = best[m];
            prob[m] = (float)(exp((double)value[m] - (double)value[0]) / sum);
        }
        return m;
    }
    const float *logits = t->rows->logits(t->head, row);
    if (n > 1) logits = memcpy(t->drawn, logits, (size_t)t->vocab * sizeof *logits);
    for (; m < n; m++) {
        token[m] = hn_sampler_draw(p->sampler, logits, h, m ? HN_NONE : best[0]);
        if (token[m] < 0) break;
        prob[m] = (float)(exp((double)logits[token[m]] - (double)value[0]) / sum);
        if (n > 1) t->drawn[token[m]] = -INFINITY;
    }
    return m;
}

int hn_head_masks(const hn_head_trees *t, const hn_propose *p, int levels) {
    int n = p->depth < levels ? p->depth : levels;
    if (n > t->depth) n = t->depth;
    return t->at_once && n > 1 ? n - 1 : 0;
}

int hn_head_trees_propose(hn_head_trees *t, hn_drafter *d, hn_propose *p, int n, int level) {
    hn_head_round c = {d, t, p, level, 0};
    if ((!t->dynamic && !t->pruned) || (n > 0 && p[0].chain)) return hn_head_propose_fixed(&c, n);
    if (level > 0) return 0;
    return t->pruned ? hn_head_propose_pruned(&c, n) : hn_head_propose_likely(&c, n);
}
