/* SPDX-License-Identifier: Apache-2.0 */
/* head_mtp_modules.c - the passes of a head with several modules of multi-token prediction (DeepSeek-V3, 2412.19437), which draft in turn:
 * level j is drafted by module j % modules.
 *
 *   module 0       row of slot p: token p, the target's feature of p - 1
 *   module k > 0   row of slot p: token p, the output of module k - 1 at slot p - 1
 *
 * Each module is a layer of the head's one group, so a committed row has keys and values of all of them: rows of the text are evaluated by
 * one module after another. Drafts are evaluated only by the module whose turn it is: at its first turn, level k of module k, all k
 * drafts so far, later the newest one, which then attends to the text and to the module's earlier rows. In a text whose first rows were
 * restored, module k continues k rows later, because the outputs of the module before for the restored rows do not exist: the restored
 * rows have these keys and values (hn_cache_group.recompute: they are computed again). */
#include <assert.h>
#include <limits.h>

#include "base/mem.h"
#include "draft/head/head_passes_private.h"

enum { PLACES = 4 }; /* of a module's outputs in a sequence: the newest row's, that of the row before, and two for their successors */

/* ---- places of outputs ---------------------------------------------------------------------------------------------- */

static int first_place(const hn_head_passes *h) {
    return 2 * h->n_seqs * h->width * h->modules;
}

static int zero_place(const hn_head_passes *h) {
    return first_place(h) + HN_MAX_ROWS + h->n_seqs * h->modules * PLACES;
}

int hn_mtp_outputs(const hn_head_passes *h) {
    return h->modules > 1 ? zero_place(h) + 1 : first_place(h);
}

/* Number `which` (0, 1) of the places with neither the newest row's output nor that of the row before. */
static int fresh_place(const hn_head_passes *h, int seq, int module, int which) {
    const hn_head_in_turn *t = &h->in_turn[seq];
    const int begin = first_place(h) + HN_MAX_ROWS + (seq * h->modules + module) * PLACES;
    for (int place = begin; place < begin + PLACES; place++)
        if (place != t->newest[module] && place != t->before[module] && which-- == 0) return place;
    assert(false && "four places, two are taken");
    return begin;
}

static int rows_late(const hn_head_in_turn *t, int module) {
    return module > t->since ? module - t->since : 0;
}

/* Place of row i of the n rows that a sequence has in the pass; the first is row `first` of the pass. */
static int place_of(const hn_head_passes *h, int seq, int module, int i, int n, int first) {
    return i >= n - 2 ? fresh_place(h, seq, module, i - (n - 2)) : first_place(h) + first + i;
}

/* ---- life ------------------------------------------------------------------------------------------------------------- */

hunch_status hn_mtp_open(hn_head_passes *h, hunch_error *err) {
    if (h->modules < 2) return HUNCH_OK;
    h->in_turn = hn_zalloc((size_t)h->n_seqs, sizeof *h->in_turn);
    return h->in_turn ? HUNCH_OK : hn_fail_memory(err, "modules that draft in turn", (size_t)h->n_seqs * sizeof *h->in_turn);
}

void hn_mtp_begin(hn_head_passes *h, int seq, bool restored) {
    hn_head_in_turn *t = &h->in_turn[seq];
    t->since = restored ? 0 : INT_MAX / 2;
    for (int k = 0; k < h->modules; k++) t->newest[k] = t->before[k] = zero_place(h); /* there is no row before slot 0 */
}

void hn_mtp_again(hn_head_passes *h, int seq) {
    hn_head_in_turn *t = &h->in_turn[seq];
    t->since--;
    for (int k = 0; k < h->modules; k++) t->newest[k] = t->before[k];
}

void hn_mtp_round(hn_head_passes *h, int seq) {
    for (int k = 0; k < h->modules; k++) h->in_turn[seq].n_draft_rows[k] = 0;
}

/* ---- rows of the text ------------------------------------------------------------------------------------------------- */

void hn_mtp_slots(const hn_head_passes *h, const hn_head_rows_of *of, int n_seqs, int32_t *output) {
    for (int s = 0, first = 0; s < n_seqs; first += of[s++].n)
        for (int i = 0; i < of[s].n; i++) output[first + i] = place_of(h, of[s].seq, 0, i, of[s].n, first);
}

/* Adds a sequence's rows, of->n of the pass from row `first` on, as a module reads them. */
static void add_text(const hn_head_passes *h, hn_head_pass *p, int module, const hn_head_rows_of *of, const hn_row *row, int first) {
    static const int16_t chain[HN_MOST_HEAD_MODULES] = {-1, 0, 1, 2, 3, 4, 5, 6};
    const hn_head_in_turn *t = &h->in_turn[of->seq];
    const int late = rows_late(t, module), last = module == h->modules - 1;
    for (int i = late; i < of->n; i++) {
        const int at = p->n_rows++;
        int parent = at - 1;
        if (i == late) parent = late ? hn_draft_parent(late - 1) : -1;
        p->row[at] = (hn_row){.token = row[first + i].token, .seq = (int16_t)p->n_seqs, .logits = HN_LOGITS_NONE,
                              .parent = (int16_t)parent};
        p->feature[at] = i ? place_of(h, of->seq, module - 1, i - 1, of->n, first) : t->newest[module - 1];
        p->output[at] = last ? -1 : place_of(h, of->seq, module, i, of->n, first);
    }
    if (late >= of->n) return;
    p->drafts[p->n_seqs] = (hn_draft_rows){late, chain};
    p->cache_seq[p->n_seqs++] = of->seq;
}

static void advance(hn_head_passes *h, const hn_head_rows_of *of) {
    hn_head_in_turn *t = &h->in_turn[of->seq];
    for (int k = 0; k < h->modules; k++) {
        const int n = of->n - rows_late(t, k), before = fresh_place(h, of->seq, k, 0), newest = fresh_place(h, of->seq, k, 1);
        if (n < 1) continue;
        t->before[k] = n > 1 ? before : t->newest[k];
        t->newest[k] = newest;
    }
    t->since += of->n;
}

bool hn_mtp_follow(hn_head_passes *h, const hn_head_rows_of *of, int n_seqs, const hn_row *row) {
    for (int module = 1; module < h->modules; module++) {
        hn_head_pass p;
        hn_head_pass_start(&p);
        for (int s = 0, first = 0; s < n_seqs; first += of[s++].n) add_text(h, &p, module, &of[s], row, first);
        const hn_pass_options more = {.draft_rows = p.drafts, .feature = p.feature, .output = p.output, .drafts = true, .module = module};
        if (p.n_rows > 0 && !hn_head_run_drafts(h, &p, &more)) return false;
    }
    for (int s = 0; s < n_seqs; s++) advance(h, &of[s]);
    return true;
}

/* ---- rows of drafts --------------------------------------------------------------------------------------------------- */

/* The state of one level's passes. */
typedef struct level {
    hn_head_passes *h;
    hn_head_node *node;
    int module, number; /* the module whose turn it is; of the level */
    hn_head_take take;
    void *ctx;
    hn_head_pass pass;
    int row_of[HN_MAX_ROWS], node_of[HN_MAX_ROWS], n_nodes; /* the row of each node */
    int before; /* rows of the module that the last sequence had before the pass */
} level;

/* The ancestor of a draft row, `steps` up; -1: the text. */
static int ancestor(const hn_head_seq *s, int row, int steps) {
    for (; steps > 0 && row >= 0; steps--) row = s->draft_parent[row];
    return row;
}

/* Adds a row of the module after row `parent` of its own (-1: the text), and returns its number among them. */
static int add_row(level *l, int seq, int32_t token, const hn_token_source *source, int parent, int32_t feature, int rope_offset,
                   bool logits) {
    hn_head_in_turn *t = &l->h->in_turn[seq];
    hn_head_pass *p = &l->pass;
    const int at = p->n_rows++, base = at - (t->n_draft_rows[l->module] - l->before);
    int in_pass = -1; /* the same row, as the pass names it */
    if (parent >= 0) in_pass = parent < l->before ? hn_draft_parent(parent) : base + parent - l->before;
    p->feature[at] = feature;
    if (source) p->source[at] = *source;
    p->output[at] = hn_head_next_output(l->h);
    p->row[at] = (hn_row){.token = token, .seq = (int16_t)(p->n_seqs - 1), .rope_offset = rope_offset,
                          .logits = logits ? HN_LOGITS_ALL : HN_LOGITS_NONE,
                          .parent = (int16_t)in_pass};
    t->parent[l->module][t->n_draft_rows[l->module]] = (int16_t)parent;
    return t->n_draft_rows[l->module]++;
}

/* For a module at its first turn: adds rows of the drafts before a node that it has not computed yet. Returns the last one's number. */
static int add_path(level *l, const hn_head_node *node) {
    const hn_head_seq *s = &l->h->seq[node->seq];
    const hn_token_source *kept = l->h->kept_source ? l->h->kept_source[node->seq] : NULL;
    hn_head_in_turn *t = &l->h->in_turn[node->seq];
    int own = -1;
    for (int up = l->number - 2; up >= 0; up--) {
        const int row = ancestor(s, node->kept, up), parent = s->draft_parent[row];
        if (t->made[row] < 0) {
            const int32_t feature = parent < 0 ? t->newest[l->module - 1] : t->output[~l->number & 1][parent];
            t->made[row] = (int16_t)add_row(l, node->seq, t->token[row], kept ? &kept[row] : NULL, own, feature, 0, false);
            t->output[l->number & 1][row] = l->pass.output[l->pass.n_rows - 1];
        }
        own = t->made[row];
    }
    return own;
}

/* Adds a node's own row. After its first turn a module skips the drafts since its last turn: other modules evaluated them. */
static void add_node(level *l, int i) {
    hn_head_node *node = &l->node[i];
    hn_head_seq *s = &l->h->seq[node->seq];
    hn_head_in_turn *t = &l->h->in_turn[node->seq];
    const int modules = l->h->modules, turn = l->number / modules;
    int parent, before = l->number - 1;
    if (turn == 0) {
        parent = add_path(l, node);
    } else {
        const int up = ancestor(s, node->kept, modules - 1);
        parent = up < 0 ? -1 : t->own[up];
        before = l->module + turn - 1;
    }
    const int own = add_row(l, node->seq, node->token, hn_head_source_of(l->h, i), parent, node->output, l->number - 1 - before, true);
    l->row_of[l->n_nodes] = l->pass.n_rows - 1;
    l->node_of[l->n_nodes++] = i;
    t->own[s->n_draft_rows] = t->made[s->n_draft_rows] = (int16_t)own;
    t->token[s->n_draft_rows] = node->token;
    if (l->h->source) l->h->kept_source[node->seq][s->n_draft_rows] = l->h->source[i];
    t->output[l->number & 1][s->n_draft_rows] = node->output = l->pass.output[l->pass.n_rows - 1];
    s->draft_parent[s->n_draft_rows] = (int16_t)node->kept;
    node->kept = s->n_draft_rows++;
}

/* False: the pass failed, so there are no more levels. */
static bool run_level(level *l) {
    hn_head_pass *p = &l->pass;
    const hn_pass_options more = {.draft_rows = p->drafts, .feature = p->feature, .output = p->output, .drafts = true, .module = l->module};
    if (p->n_rows > 0 && !hn_head_run_drafts(l->h, p, &more)) return false;
    hn_head_row_list list = {.take = l->take, .ctx = l->ctx};
    for (int i = 0; i < l->n_nodes; i++) hn_head_row_list_add(&list, l->node_of[i], 0, l->row_of[i]);
    hn_head_row_list_end(&list);
    hn_head_pass_start(p);
    l->n_nodes = 0;
    return true;
}

/* The rows that follow are of this sequence. */
static void turn_to(level *l, int seq) {
    hn_head_in_turn *t = &l->h->in_turn[seq];
    l->before = t->n_draft_rows[l->module];
    l->pass.drafts[l->pass.n_seqs] = (hn_draft_rows){l->before, t->parent[l->module]};
    l->pass.cache_seq[l->pass.n_seqs++] = seq;
}

void hn_mtp_level(hn_head_passes *h, hn_head_node *node, int n, hn_head_take take, void *ctx) {
    level l = {.h = h, .node = node, .module = h->level % h->modules, .number = h->level, .take = take, .ctx = ctx};
    for (int i = 0; i < n; i++) {
        const int seq = node[i].seq, rows = h->level < h->modules ? h->level : 1;
        const bool other = i == 0 || seq != node[i - 1].seq;
        if (h->seq[seq].lost) return;
        for (int g = 0; other && g < h->seq[seq].n_draft_rows; g++) h->in_turn[seq].made[g] = -1;
        const bool full = l.pass.n_rows + rows > HN_MAX_ROWS;
        if (full && !run_level(&l)) return;
        if (full || other) turn_to(&l, seq);
        add_node(&l, i);
    }
    run_level(&l);
}
