/* SPDX-License-Identifier: Apache-2.0 */
/* head_drafter.c - life and trees of drafters with a head, see head_drafter.h.
 *
 * A chain is a tree of fixed shape like any other. Of a fixed shape level k is computed when level k is asked for; a dynamic
 * tree is computed whole with level 0, since which of its nodes stay is known at the end, and so is every tree of a head whose
 * root's pass gives all levels at once (its masks): there all nodes of a level have the same logits. */
#include "draft/head_drafter.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "draft/draft_law.h"
#include "draft/head_force.h"
#include "draft/head_loading.h"
#include "draft/head_passes.h"
#include "draft/head_reading.h"
#include "draft/head_tree.h"

enum { ROOT = -1, NONE = -1 };

/* A node of a fixed shape in this round. */
typedef struct drafted {
    int32_t token;
    int16_t row;      /* of the tree; NONE: it is not there */
    bool spine;       /* force: all tokens up to here were replaced on purpose */
    float path;       /* probability of the tokens up to here by the head's softmax */
    int kept, output; /* of its pass */
} drafted;

typedef struct head_seq {
    drafted root, node[HN_TREE_ROWS - 1];
    const hn_shape *shape; /* of this round */
    hn_beam beam;
    int spine;             /* force: beam node, ROOT, or NONE - 1 */
    hn_head_oracle oracle; /* force */
} head_seq;

typedef struct head_state {
    hn_head_passes passes;
    hn_draft_laws laws;
    int context, depth, topk, total, width;
    bool dynamic, forced, law;
    bool at_once;          /* the root's pass gives all levels */
    double accept, min_p;
    hn_shape chain, shape;
    int n_seqs, vocab;
    head_seq *seq;         /* [n_seqs] */
    hn_head_node *node;    /* [n_seqs * width] of a level */
    int *of;               /* [n_seqs * width] which proposal each is of */
    int *place;            /* the same: node of the shape or of the beam */
    float *drawn;          /* [vocab] logits without the tokens drawn so far */
    int16_t *row;          /* of a dynamic tree: where each node of a beam stands */
} head_state;

/* ---- open and close ----------------------------------------------------------------------------------------------------- */

static void make_chain(hn_shape *s, int depth) {
    *s = (hn_shape){.n = depth, .depth = depth, .widest = 1, .most_expanded = 1};
    for (int i = 0; i < depth; i++) s->node[i] = (hn_shape_node){(int16_t)(i - 1), 0, (int16_t)(i + 1)};
}

static void state_free(head_state *st) {
    if (!st) return;
    hn_head_passes_close(&st->passes);
    hn_draft_laws_close(&st->laws);
    for (int i = 0; st->seq && i < st->n_seqs; i++) {
        hn_beam_close(&st->seq[i].beam);
        hn_head_oracle_end(&st->seq[i].oracle);
    }
    hn_free(st->seq);
    hn_free(st->node);
    hn_free(st->of);
    hn_free(st->place);
    hn_free(st->drawn);
    hn_free(st->row);
    hn_free(st);
}

static hunch_status read_trees(head_state *st, const hn_spec *spec, const hn_head_options *o, hunch_error *err) {
    make_chain(&st->chain, (int)o->depth);
    st->shape = st->chain;
    st->dynamic = o->tree && !strcmp(o->tree, "dynamic");
    const bool fixed = o->tree && !st->dynamic && strcmp(o->tree, "chain") != 0;
    hunch_status s = fixed ? hn_shape_read(&st->shape, o->tree, err) : HUNCH_OK;
    if (s == HUNCH_USAGE) hn_error_prefix(err, "drafter '%s'", spec->text);
    if (s) return s;
    st->depth = fixed ? st->shape.depth : (int)o->depth;
    st->topk = st->dynamic ? (int)o->topk : st->shape.widest;
    st->total = (int)o->total;
    st->width = st->dynamic ? st->topk : st->shape.most_expanded > 0 ? st->shape.most_expanded : 1;
    return HUNCH_OK;
}

static hunch_status tables_create(head_state *st, hunch_error *err) {
    const size_t n = (size_t)st->n_seqs * (size_t)st->width;
    st->seq = hn_zalloc((size_t)st->n_seqs, sizeof *st->seq);
    st->node = hn_zalloc(n, sizeof *st->node);
    st->of = hn_zalloc(n, sizeof *st->of);
    st->place = hn_zalloc(n, sizeof *st->place);
    st->drawn = hn_zalloc((size_t)st->vocab, sizeof *st->drawn);
    if (!st->seq || !st->node || !st->of || !st->place || !st->drawn)
        return hn_fail_memory(err, "the tables of a draft head", n * sizeof *st->node + (size_t)st->vocab * sizeof *st->drawn);
    hunch_status s = hn_draft_laws_open(&st->laws, st->vocab, st->n_seqs, HN_TREE_ROWS, err);
    for (int i = 0; !s && st->dynamic && i < st->n_seqs; i++) s = hn_beam_open(&st->seq[i].beam, st->topk, st->depth, err);
    if (s || !st->dynamic) return s;
    const size_t nodes = (size_t)st->seq[0].beam.cap;
    st->row = hn_zalloc(nodes, sizeof *st->row);
    return st->row ? HUNCH_OK : hn_fail_memory(err, "the tables of a draft head", nodes * sizeof *st->row);
}

static hunch_status state_open(hn_drafter *d, head_state *st, hn_spec *spec, const hn_head_options *o, const hn_target_info *target,
                               hn_needs *needs, hn_head_describe describe, hunch_error *err) {
    hn_source *src = NULL;
    hn_head_taps taps = {0};
    int32_t *ids = NULL;
    hunch_status s = read_trees(st, spec, o, err);
    if (!s) s = hn_source_open_head(&src, spec->path, err);
    if (!s && target->report) target->report->read = true;
    if (!s) s = hn_head_loading_run(&st->passes.model, src, spec, o, target, describe, &taps, &ids, err);
    if (!s)
        s = hn_head_passes_open(&st->passes, taps.boundary, taps.n, ids, target->vocab, st->n_seqs, st->width, o->kv, needs, err);
    hn_free(ids);
    hn_source_close(&src);
    st->at_once = st->passes.model.arch.draft_head.mask;
    if (!s && st->at_once && st->depth > HN_MOST_MASKS + 1)
        s = hn_fail(err, HUNCH_USAGE, "drafter '%s': a tree of %d levels, expected at most %d", spec->text, st->depth, HN_MOST_MASKS + 1);
    if (!s) s = hn_head_about(&d->about, spec, &st->passes.model, &taps, target, o->convert, err);
    return s ? s : tables_create(st, err);
}

hunch_status hn_head_drafter_open(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs,
                                  hn_head_describe describe, hunch_error *err) {
    hn_head_options o = {0};
    hunch_status s = hn_head_options_read(&o, spec, target, err);
    if (s) return s;
    head_state *st = hn_zalloc(1, sizeof *st);
    if (!st) return hn_fail_memory(err, "a draft head", sizeof *st);
    st->n_seqs = d->max_seqs;
    st->vocab = target->vocab;
    st->context = target->context;
    st->forced = !isnan(o.force);
    st->accept = o.force;
    st->min_p = o.min_p;
    s = state_open(d, st, spec, &o, target, needs, describe, err);
    if (s) {
        if (s != HUNCH_USAGE) hn_error_prefix(err, "drafter '%s'", spec->text); /* what is wrong in the spec names it */
        state_free(st);
        return s;
    }
    d->state = st;
    needs->oracle = st->forced;
    needs->max_depth = st->depth;
    needs->has_logits = true;
    needs->has_law = st->law = !st->dynamic && !st->forced;
    needs->branches = st->dynamic || st->shape.n > st->shape.depth || st->shape.widest > 1; /* best and second best, drawn */
    needs->is_tree = o.tree && strcmp(o.tree, "chain") != 0;
    needs->cost = needs->branches || st->at_once ? HN_COST_PER_ROUND : HN_COST_PER_LEVEL;
    return HUNCH_OK;
}

hunch_status hn_head_drafter_attach(hn_drafter *d, hn_cache *cache, int first_group, int owner, hunch_error *err) {
    head_state *st = d->state;
    const int best = st->topk < st->passes.model.arch.vocab ? st->topk : st->passes.model.arch.vocab;
    st->topk = best;
    return hn_head_passes_attach(&st->passes, cache, first_group, owner, st->context, best, err);
}

void hn_head_drafter_close(hn_drafter *d) {
    state_free(d->state);
}

/* ---- life of a sequence --------------------------------------------------------------------------------------------------- */

hunch_status hn_head_drafter_begin(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err) {
    head_state *st = d->state;
    hunch_status s = HUNCH_OK;
    for (int i = 0; !s && i < n; i++) {
        if (st->forced) s = hn_head_oracle_begin(&st->seq[seqs[i].seq].oracle, &seqs[i], err);
        if (!s) hn_head_begin(&st->passes, &seqs[i]);
    }
    return s;
}

hunch_status hn_head_drafter_feed(hn_drafter *d, const hn_feed_row *rows, int n, const hn_features *f, hunch_error *err) {
    head_state *st = d->state;
    return hn_head_feed(&st->passes, rows, n, f, err);
}

int hn_head_drafter_valid_rows(const hn_drafter *d, int seq) {
    const head_state *st = d->state;
    return hn_head_rows(&st->passes, seq);
}

double hn_head_drafter_pass_s(const hn_drafter *d) {
    const head_state *st = d->state;
    return hn_runner_seconds(st->passes.runner);
}

void hn_head_drafter_catch_up(hn_drafter *d, int seq) {
    head_state *st = d->state;
    hn_head_catch_up(&st->passes, seq);
}

void hn_head_drafter_end(hn_drafter *d, int seq) {
    head_state *st = d->state;
    hn_head_end(&st->passes, seq);
    hn_head_oracle_end(&st->seq[seq].oracle);
}

/* ---- choosing tokens --------------------------------------------------------------------------------------------------- */

typedef struct round_ctx {
    hn_drafter *d;
    head_state *st;
    hn_propose *p;
    int level, added;
} round_ctx;

static bool force_tokens(const round_ctx *c, const hn_propose *p, head_seq *s, int32_t *token, int n) {
    return hn_head_oracle_force(&s->oracle, p, c->st->accept, c->d->index, c->st->vocab, c->level, token, n);
}

/* The tokens of a row of the last pass that follow the request's own noise, or the best ones; p: softmax at temperature 1. */
static int choose_tokens(round_ctx *c, const hn_propose *p, int pass_row, const hn_history *h, int n, int32_t *token, float *prob) {
    head_state *st = c->st;
    const float *value;
    const int32_t *best = hn_pass_best(st->passes.runner, pass_row, &value);
    if (best[0] < 0 || !(value[0] > -INFINITY)) return 0;
    const double sum = hn_pass_sum(st->passes.runner, pass_row);
    int m = 0;
    if (st->dynamic || hn_sampler_takes_best(p->sampler)) {
        for (; m < n && m < st->topk && best[m] >= 0 && value[m] > -INFINITY; m++) {
            token[m] = best[m];
            prob[m] = (float)(exp((double)value[m] - (double)value[0]) / sum);
        }
        return m;
    }
    const float *logits = hn_head_logits(&st->passes, pass_row);
    if (n > 1) logits = memcpy(st->drawn, logits, (size_t)st->vocab * sizeof *logits);
    for (; m < n; m++) {
        token[m] = hn_sampler_draw(p->sampler, logits, h, m ? NONE : best[0]);
        if (token[m] < 0) break;
        prob[m] = (float)(exp((double)logits[token[m]] - (double)value[0]) / sum);
        if (n > 1) st->drawn[token[m]] = -INFINITY;
    }
    return m;
}

/* ---- trees of fixed shape ---------------------------------------------------------------------------------------------- */

static drafted *drafted_at(head_seq *s, int i) {
    return i == ROOT ? &s->root : &s->node[i];
}

/* How many candidates of node i the shape asks for. */
static int children_of(const hn_shape *shape, int i) {
    int n = 0;
    for (int k = 0; k < shape->n; k++)
        if (shape->node[k].parent == i && shape->node[k].rank >= n) n = shape->node[k].rank + 1;
    return n;
}

/* The tokens from the root to node i, in order; returns how many. */
static int path_of(const head_seq *s, int i, int32_t token[HN_TREE_ROWS]) {
    const int n = i == ROOT ? 0 : s->shape->node[i].depth;
    for (int k = n - 1; k >= 0; k--, i = s->shape->node[i].parent) token[k] = s->node[i].token;
    return n;
}

/* Puts the tokens of ranks 0..n-1 in their places of the shape; row[rank]: where they stand in the tree, NULL: to be added. */
static void place_children(round_ctx *c, hn_propose *p, head_seq *s, int at, const int32_t *token, const float *prob,
                           const int16_t *rows, int n, bool spine) {
    const int parent_row = drafted_at(s, at)->row;
    for (int k = 0; k < s->shape->n; k++) {
        const int rank = s->shape->node[k].rank;
        if (s->shape->node[k].parent != at || rank >= n) continue;
        int row = rows ? rows[rank] : NONE;
        if (!rows && (p->budget > 0 || hn_tree_child(p->tree, parent_row, token[rank]) >= 0)) {
            const int before = p->tree->n_rows;
            row = hn_tree_add(p->tree, parent_row, token[rank], c->d->index, prob[rank]);
            p->budget -= p->tree->n_rows - before;
        }
        if (row < 0) continue;
        s->node[k] = (drafted){.token = token[rank],
                               .row = (int16_t)row,
                               .spine = spine && rank == 0,
                               .path = drafted_at(s, at)->path * prob[rank]};
        c->added++;
    }
}

static void draw_children(round_ctx *c, hn_propose *p, head_seq *s, int at, int pass_row, const hn_history *h, int n) {
    head_state *st = c->st;
    int32_t token[HN_TREE_ROWS];
    int16_t row[HN_TREE_ROWS];
    float prob[HN_TREE_ROWS];
    const float *logits = hn_head_logits(&st->passes, pass_row), *value;
    const double sum = hn_pass_sum(st->passes.runner, pass_row);
    (void)hn_pass_best(st->passes.runner, pass_row, &value);
    if ((double)drafted_at(s, at)->path / sum < st->min_p) return; /* known before a draw: q stays what it is drawn from */
    const hn_draft_law *law = hn_draft_law_make(&st->laws, p->seq, at + 1, p->sampler, logits, h);
    if (!law) return;
    const int before = p->tree->n_rows, m = hn_draft_law_draw(&st->laws, law, p, c->d->index, drafted_at(s, at)->row, n, row);
    p->budget -= p->tree->n_rows - before;
    for (int i = 0; i < m; i++) {
        token[i] = p->tree->token[row[i]];
        prob[i] = (float)(exp((double)logits[token[i]] - (double)value[0]) / sum);
    }
    place_children(c, p, s, at, token, prob, row, m, false);
}

/* The children of node `at` of the shape, from the logits of a row. */
static void take_children(round_ctx *c, hn_propose *p, head_seq *s, int at, int pass_row) {
    head_state *st = c->st;
    const int n = children_of(s->shape, at);
    int32_t token[HN_TREE_ROWS], path[HN_TREE_ROWS];
    float prob[HN_TREE_ROWS];
    const hn_history h = {p->text.token, p->text.n, p->text.n_prompt, path, path_of(s, at, path)};
    if (p->drawn && st->law) {
        draw_children(c, p, s, at, pass_row, &h, n);
        return;
    }
    int m = choose_tokens(c, p, pass_row, &h, n, token, prob);
    while (m > 0 && (double)(drafted_at(s, at)->path * prob[m - 1]) < st->min_p) m--;
    const bool spine =
        st->forced && drafted_at(s, at)->spine && m > 0 && force_tokens(c, p, s, token, m);
    place_children(c, p, s, at, token, prob, NULL, m, spine);
}

/* Has node `at` a row of the tree at this level, and does the shape go on behind it? */
static bool wants_children(const hn_propose *p, head_seq *s, int at, int level) {
    const int depth = at == ROOT ? 0 : s->shape->node[at].depth;
    return depth == level && drafted_at(s, at)->row >= 0 && children_of(s->shape, at) > 0 &&
           hn_propose_has_room(p, drafted_at(s, at)->row);
}

/* The row of a node was computed, or a mask: its children, or those of all nodes of the mask's level. */
static void take_node(void *ctx, int i, int mask, int pass_row) {
    round_ctx *c = ctx;
    head_state *st = c->st;
    hn_propose *p = &c->p[st->of[i]];
    head_seq *s = &st->seq[p->seq];
    if (st->at_once) c->level = mask;
    if (p->on_logits && s->shape->widest == 1) p->on_logits(p->on_logits_ctx, c->level, hn_head_logits(&st->passes, pass_row));
    if (mask == 0) {
        drafted *node = drafted_at(s, st->place[i]);
        node->kept = st->node[i].kept;
        node->output = st->node[i].output;
        take_children(c, p, s, st->place[i], pass_row);
        return;
    }
    for (int at = 0; at < s->shape->n; at++)
        if (wants_children(p, s, at, mask)) take_children(c, p, s, at, pass_row);
}

static void round_start(head_state *st, const hn_propose *p) {
    head_seq *s = &st->seq[p->seq];
    s->shape = p->chain ? &st->chain : &st->shape;
    s->root = (drafted){.token = p->text.token[p->text.n - 1], .row = 0, .spine = true, .path = 1};
    for (int k = 0; k < s->shape->n; k++) s->node[k].row = NONE;
}

/* The masks behind a root for a tree of so many levels. */
static int masks_behind(const head_state *st, const hn_propose *p, int levels) {
    const int n = p->depth < levels ? p->depth : levels;
    return st->at_once && n > 1 ? n - 1 : 0;
}

/* A level of trees of fixed shape: the nodes whose children are wanted. */
static int propose_shape(round_ctx *c, int n) {
    head_state *st = c->st;
    int text_n[HN_MAX_ROWS], m = 0;
    if (st->at_once && c->level > 0) return 0;
    for (int i = 0; i < n; i++) {
        hn_propose *p = &c->p[i];
        head_seq *s = &st->seq[p->seq];
        if (c->level == 0) round_start(st, p);
        for (int at = c->level ? 0 : ROOT; at < s->shape->n; at++) {
            if (!wants_children(p, s, at, c->level)) continue;
            const drafted *node = drafted_at(s, at), *parent = at == ROOT ? NULL : drafted_at(s, s->shape->node[at].parent);
            st->of[m] = i;
            st->place[m] = at;
            if (at == ROOT) text_n[m] = p->text.n;
            st->node[m++] = (hn_head_node){p->seq, node->token, parent ? 0 : masks_behind(st, p, s->shape->depth),
                                           parent ? parent->kept : -1, parent ? parent->output : -1};
        }
    }
    if (m == 0) return 0;
    if (c->level == 0)
        hn_head_roots(&st->passes, st->node, text_n, m, take_node, c);
    else
        hn_head_level(&st->passes, st->node, m, take_node, c);
    return c->added;
}

/* ---- the tree of the likeliest paths --------------------------------------------------------------------------------------- */

/* Children of a frontier node. */
static void beam_children(round_ctx *c, const hn_propose *p, int at, int pass_row) {
    head_state *st = c->st;
    head_seq *s = &st->seq[p->seq];
    int32_t token[HN_MOST_TOPK];
    float prob[HN_MOST_TOPK];
    const int m = choose_tokens(c, p, pass_row, NULL, st->topk, token, prob);
    if (st->forced && at == s->spine && m > 0)
        s->spine = force_tokens(c, p, s, token, m) ? s->beam.n : NONE - 1;
    hn_beam_add(&s->beam, at, token, prob, m);
}

/* A node's row, or a mask: the level of the whole frontier. A beam node's place among kept rows and outputs is that of its pass. */
static void take_beam(void *ctx, int i, int mask, int pass_row) {
    round_ctx *c = ctx;
    head_state *st = c->st;
    const hn_propose *p = &c->p[st->of[i]];
    head_seq *s = &st->seq[p->seq];
    const int at = st->place[i];
    if (mask > 0) {
        c->level = mask;
        hn_beam_advance(&s->beam);
        for (int k = 0; k < s->beam.n_frontier; k++) beam_children(c, p, s->beam.frontier[k], pass_row);
        return;
    }
    if (st->at_once) c->level = 0;
    if (at == ROOT) {
        s->root.kept = st->node[i].kept;
        s->root.output = st->node[i].output;
    } else {
        s->beam.node[at].kept = st->node[i].kept;
        s->beam.node[at].output = st->node[i].output;
    }
    beam_children(c, p, at, pass_row);
}

static int row_of(const hn_beam *b, const int16_t *row, int i) {
    return b->node[i].parent < 0 ? 0 : row[b->node[i].parent];
}

/* The best nodes, in the order of being made. */
static void add_best(round_ctx *c, hn_propose *p, hn_beam *b) {
    const int total = c->st->total < p->budget ? c->st->total : p->budget;
    int list[HN_TREE_ROWS];
    int16_t *row = c->st->row;
    const int n = hn_beam_best(b, total, list);
    for (int i = 0; i < n; i++) {
        const hn_beam_node *k = &b->node[list[i]];
        if (exp((double)k->score) < c->st->min_p) continue; /* nor are its children probable enough */
        const int at = hn_tree_add(p->tree, row_of(b, row, list[i]), k->token, c->d->index, k->p);
        if (at < 0) break;
        row[list[i]] = (int16_t)at;
        c->added++;
    }
}

/* The frontier nodes of all sequences whose trees may have one more level. */
static int list_frontier(round_ctx *c, int n) {
    head_state *st = c->st;
    int m = 0;
    for (int i = 0; i < n; i++) {
        const head_seq *s = &st->seq[c->p[i].seq];
        if (c->level >= c->p[i].depth || s->beam.n == 0) continue;
        for (int k = 0; k < s->beam.n_frontier; k++) {
            const hn_beam_node *b = &s->beam.node[s->beam.frontier[k]], *parent = &s->beam.node[b->parent < 0 ? 0 : b->parent];
            if (exp((double)b->score) < st->min_p) continue;
            st->of[m] = i;
            st->place[m] = s->beam.frontier[k];
            st->node[m++] = (hn_head_node){c->p[i].seq, b->token, 0, b->parent < 0 ? s->root.kept : parent->kept,
                                         b->parent < 0 ? s->root.output : parent->output};
        }
    }
    return m;
}

static int propose_dynamic(round_ctx *c, int n) {
    head_state *st = c->st;
    int text_n[HN_MAX_ROWS], m = 0;
    for (int i = 0; i < n; i++) {
        head_seq *s = &st->seq[c->p[i].seq];
        hn_beam_start(&s->beam);
        s->spine = ROOT;
        if (!hn_propose_has_room(&c->p[i], 0)) continue;
        st->of[m] = i;
        st->place[m] = ROOT;
        text_n[m] = c->p[i].text.n;
        st->node[m++] = (hn_head_node){c->p[i].seq, c->p[i].text.token[c->p[i].text.n - 1],
                                       masks_behind(st, &c->p[i], st->depth), -1, -1};
    }
    if (m > 0) hn_head_roots(&st->passes, st->node, text_n, m, take_beam, c);
    for (c->level = 1; !st->at_once && c->level < st->depth; c->level++) {
        for (int i = 0; i < n; i++) hn_beam_advance(&st->seq[c->p[i].seq].beam);
        m = list_frontier(c, n);
        if (m == 0) break;
        hn_head_level(&st->passes, st->node, m, take_beam, c);
    }
    for (int i = 0; i < n; i++) add_best(c, &c->p[i], &st->seq[c->p[i].seq].beam);
    return c->added;
}

int hn_head_drafter_propose(hn_drafter *d, hn_propose *p, int n, int level) {
    head_state *st = d->state;
    round_ctx c = {d, st, p, level, 0};
    if (!st->dynamic || (n > 0 && p[0].chain)) return propose_shape(&c, n);
    return level == 0 ? propose_dynamic(&c, n) : 0;
}
