/* SPDX-License-Identifier: Apache-2.0 */
/* pass_walk.c - the order in which a pass of a model with recurrent layers walks the rows of a sequence, and the states that it keeps
 * (ops/walk.h):
 *
 *   committed rows that are not in the state yet     absorbed into it
 *   rows that are sure to be committed               the same, except the last of them, or of a block of the prefix index: a text may be
 *                                                    continued from one row before its end, and a state cannot go back
 *   all others                                       depth first from there; a row's state is overwritten by its last child's
 *
 * A pass of a round that keeps rows does not change the state: committed rows, and the draft rows that it continues, are computed into a
 * level and not absorbed. */
#include <assert.h>
#include <string.h>

#include "model/pass_private.h"

size_t hn_walk_most_steps(const hn_runner *r) {
    return (size_t)r->rows.max + (size_t)r->rows.max_texts * (2 * HN_MAX_ROWS + HN_MOST_TAPS);
}

/* The walk of one sequence while it is built. Nodes are numbered: the draft rows, then those of the pass. */
typedef struct route {
    const hn_row *rows;
    int first;               /* of the sequence, in the pass */
    const hn_draft_rows *draft_rows;
    int nodes;
    int committed, absorbed, taps;
    hn_walk_step *step;
    int n;
    bool level[HN_WALK_LEVELS + 1]; /* taken */
    bool leads[HN_MAX_ROWS];        /* a draft row that rows of the pass continue */
} route;

/* The parent of a node; -1: the committed text. */
static int parent_of(const route *w, int node) {
    if (node < w->draft_rows->n) return w->draft_rows->parent[node];
    const int parent = w->rows[w->first + node - w->draft_rows->n].parent;
    return parent >= 0 ? parent - w->first + w->draft_rows->n : parent == -1 ? -1 : -2 - parent;
}

/* The place of a node's inputs, in the pass or in the cache; for node -1 those of the committed row at `position`. */
static int32_t inputs_of(const route *w, int node, int position) {
    if (node >= w->draft_rows->n) return w->first + node - w->draft_rows->n;
    if (node >= 0) return hn_walk_slot(w->committed + node);
    return position >= 0 ? hn_walk_slot(position) : HN_WALK_NONE;
}

static void fill_before(const route *w, hn_walk_step *s, int node, int position) {
    for (int t = 0; t < HN_MOST_TAPS - 1; t++) {
        s->before[t] = t < w->taps - 1 ? inputs_of(w, node, position - 1 - t) : HN_WALK_NONE;
        if (node >= 0) node = parent_of(w, node);
    }
}

static hn_walk_step *add_step(route *w, int row, int slot, int from, int to) {
    assert(w->n < HN_WALK_STEPS);
    hn_walk_step *s = &w->step[w->n++];
    *s = (hn_walk_step){.row = row, .slot = slot, .from = from, .to = to};
    return s;
}

static void visit_node(route *w, int node, int depth, int from, int to) {
    const int row = node < w->draft_rows->n ? -1 : w->first + node - w->draft_rows->n;
    fill_before(w, add_step(w, row, w->committed + node, from, to), parent_of(w, node), w->committed + depth);
}

static int take_level(route *w) {
    int level = 1;
    while (w->level[level]) level++;
    assert(level <= HN_WALK_LEVELS);
    w->level[level] = true;
    return level;
}

/* Walks committed rows that are not in the state, into it or into a level; returns which. */
static int walk_committed(route *w, bool absorb) {
    int at = HN_WALK_STATE;
    for (int slot = w->absorbed; slot < w->committed; slot++) {
        const int to = absorb ? HN_WALK_STATE : at == HN_WALK_STATE ? take_level(w) : at;
        fill_before(w, add_step(w, -1, slot, at, to), -1, slot);
        at = to;
    }
    return at;
}

/* The next node with this parent after node `after`; -1: none. */
static int next_child(const route *w, int parent, int after) {
    for (int i = after + 1; i < w->nodes; i++)
        if (parent_of(w, i) == parent && (i >= w->draft_rows->n || w->leads[i])) return i;
    return -1;
}

/* Walks all nodes below `parent`, whose state is in `level`: 0 is the sequence's own, which does not change. */
static void visit_children(route *w, int parent, int depth, int level) {
    for (int node = next_child(w, parent, parent), next; node >= 0; node = next) {
        next = next_child(w, parent, node);
        const bool leaf = next_child(w, node, node) < 0, last = next < 0 && level > 0;
        const int to = leaf ? HN_WALK_NONE : last ? level : take_level(w);
        visit_node(w, node, depth, level, to);
        if (!leaf) visit_children(w, node, depth + 1, to);
        if (!leaf && !last) w->level[to] = false;
    }
}

/* How many of the certain rows are absorbed: all but the last one; if they fill a block of the index, no more than up to its
 * last row, so that a state from which to continue can be saved for it, unless more rows than a pass absorbs would
 * remain. */
int hn_walk_certain(int committed, int n_certain, int node_rows, int room) {
    const int end = committed + n_certain, full = end - end % node_rows;
    if (full > committed && end - full < room) return full - 1 - committed;
    return n_certain > 0 ? n_certain - 1 : 0;
}

/* Absorbs the first of the sequence's rows, nodes 0.. of a pass without draft rows; *parent: the last of them, -1: none. */
static int absorb_certain(route *w, int most, int *parent) {
    int n = 0;
    for (*parent = -1; n < most; *parent = n++) {
        assert(parent_of(w, n) == *parent);
        visit_node(w, n, n, HN_WALK_STATE, HN_WALK_STATE);
    }
    return n;
}

/* Marks the draft rows that the pass's rows continue. */
static void mark_continued(route *w) {
    for (int i = w->nodes - 1, p; i >= 0; i--)
        if ((p = parent_of(w, i)) >= 0 && p < w->draft_rows->n && (i >= w->draft_rows->n || w->leads[i])) w->leads[p] = true;
}

void hn_walk_next_states(hn_runner *r, int seq, int cache_seq) {
    const hn_pass_groups *g = &r->groups;
    for (int s = 0; s < g->n; s++) {
        if (g->kind[s] != HN_CACHE_STATE) continue;
        const int stride = r->rows.group[s].page_stride;
        const size_t at = (size_t)seq * (size_t)stride;
        hn_table_write(r, hn_at(r->walk.next_state[s], sizeof(int32_t) * at), r->walk.next_table[s] + at,
                       hn_cache_next_state(g->cache, cache_seq, g->first + s), stride);
    }
}

void hn_walk_sequence(hn_runner *r, const hn_row *rows, int first, int last, int seq, int cache_seq,
                      const hn_draft_rows *drafts, int n_certain, bool absorb) {
    const hn_pass_groups *g = &r->groups;
    const int absorbed = hn_cache_absorbed(g->cache, cache_seq, g->model_id);
    const int committed = hn_cache_committed(g->cache, cache_seq, g->model_id);
    route w = {.rows = rows, .first = first, .draft_rows = drafts, .nodes = drafts->n + last - first, .committed = committed,
               .absorbed = absorbed, .taps = g->taps, .step = r->walk.step + r->walk.first[seq]};
    int parent;
    assert(absorbed <= committed && n_certain <= last - first && drafts->n <= HN_MAX_ROWS && (absorb ? drafts->n == 0 : n_certain == 0));
    mark_continued(&w);
    const int level = walk_committed(&w, absorb);
    n_certain = absorb_certain(&w, hn_walk_certain(committed, n_certain, hn_cache_node_rows(g->cache), HN_MAX_ROWS), &parent);
    visit_children(&w, parent, n_certain, level);
    hn_walk_next_states(r, seq, cache_seq);
    r->walk.fresh[seq] = absorbed == 0;
    r->walk.first[seq + 1] = r->walk.first[seq] + w.n;
    r->walk.absorb_to[seq] = absorb ? committed + n_certain : absorbed;
}

void hn_walk_write(hn_runner *r, int n_seqs) {
    hn_backend *o = r->m->backend;
    o->write(o, r->walk.at.step, r->walk.step, (size_t)r->walk.first[n_seqs] * sizeof *r->walk.step);
    o->write(o, r->walk.at.first, r->walk.first, ((size_t)n_seqs + 1) * sizeof *r->walk.first);
    o->write(o, r->walk.at.fresh, r->walk.fresh, (size_t)n_seqs * sizeof *r->walk.fresh);
    hn_told_walk(r, n_seqs);
}

void hn_walk_done(hn_runner *r, const int *cache_seq, int n_seqs) {
    for (int s = 0; s < n_seqs; s++) hn_cache_absorb(r->groups.cache, cache_seq[s], r->groups.model_id, r->walk.absorb_to[s]);
}
