/* SPDX-License-Identifier: Apache-2.0 */
/* pass_walk.c - in which order a pass of a model with gated delta nets walks the rows of a sequence, and which states it keeps
 * on the way (ops/delta.h):
 *
 *   committed rows that are not in the state yet     folded into it
 *   rows that are sure to be committed               the same, but the last of them, or of a block of the prefix index: a text may be
 *                                                    continued from one row before its end, and a state cannot go back
 *   all others                                       depth first from there; a row's state gives way to its last child's */
#include <assert.h>
#include <string.h>

#include "model/pass_private.h"

/* The walk of one sequence while it is made. */
typedef struct route {
    const hn_row *rows;
    int first, last;         /* of the sequence */
    int committed, folded, taps;
    hn_walk_step *step;
    int n;
    bool level[HN_WALK_LEVELS + 1]; /* taken */
} route;

/* A row of the pass, or with row -1 the committed one at a position. */
static int32_t row_before(int row, int position) {
    if (row >= 0) return row;
    return position >= 0 ? hn_walk_slot(position) : HN_WALK_NONE;
}

static void fill_before(const route *w, hn_walk_step *s, int parent, int position) {
    for (int t = 0; t < HN_MOST_TAPS - 1; t++) {
        s->before[t] = t < w->taps - 1 ? row_before(parent, position - 1 - t) : HN_WALK_NONE;
        if (parent >= 0) parent = w->rows[parent].parent;
    }
}

static hn_walk_step *add_step(route *w, int row, int slot, int from, int to) {
    assert(w->n < HN_WALK_STEPS);
    hn_walk_step *s = &w->step[w->n++];
    *s = (hn_walk_step){.row = row, .slot = slot, .from = from, .to = to};
    return s;
}

static void visit_row(route *w, int row, int depth, int from, int to) {
    hn_walk_step *s = add_step(w, row, w->committed + row - w->first, from, to);
    fill_before(w, s, w->rows[row].parent, w->committed + depth);
}

static void fold_committed(route *w) {
    for (int slot = w->folded; slot < w->committed; slot++) {
        hn_walk_step *s = add_step(w, -1, slot, HN_WALK_STATE, HN_WALK_STATE);
        fill_before(w, s, -1, slot);
    }
}

static int take_level(route *w) {
    int level = 1;
    while (w->level[level]) level++;
    assert(level <= HN_WALK_LEVELS);
    w->level[level] = true;
    return level;
}

/* The next row with this parent behind row `after`; -1: none. */
static int next_child(const route *w, int parent, int after) {
    for (int i = after + 1; i < w->last; i++)
        if (w->rows[i].parent == parent) return i;
    return -1;
}

/* All rows behind `parent`, whose state is at `level`: 0 is the sequence's own, which stays. */
static void visit_children(route *w, int parent, int depth, int level) {
    for (int row = next_child(w, parent, w->first - 1), next; row >= 0; row = next) {
        next = next_child(w, parent, row);
        const bool leaf = next_child(w, row, row) < 0, last = next < 0 && level > 0;
        const int to = leaf ? HN_WALK_NONE : last ? level : take_level(w);
        visit_row(w, row, depth, level, to);
        if (!leaf) visit_children(w, row, depth + 1, to);
        if (!leaf && !last) w->level[to] = false;
    }
}

/* How many of the rows that are sure are folded: all but the last one; and where they fill a block of the index, no more than up to its
 * last row, so that it can have a state that goes on from there. */
static int rows_to_fold(const route *w, int sure, int block_rows) {
    const int end = w->committed + sure, full = end - end % block_rows;
    return full > w->committed ? full - 1 - w->committed : sure > 0 ? sure - 1 : 0;
}

/* The first of the sequence's rows are folded; *parent: the last of them, -1: none. Returns how many. */
static int fold_sure(route *w, int most, int *parent) {
    int n = 0;
    *parent = -1;
    for (int i = w->first; n < most; i++, n++) {
        assert(w->rows[i].parent == *parent);
        visit_row(w, i, n, HN_WALK_STATE, HN_WALK_STATE);
        *parent = i;
    }
    return n;
}

void hn_walk_sequence(hn_runner *r, const hn_row *rows, int first, int last, int seq, int cache_seq, int sure) {
    const int folded = hn_cache_folded(r->cache, cache_seq, r->owner), committed = hn_cache_committed(r->cache, cache_seq, r->owner);
    route w = {.rows = rows, .first = first, .last = last, .committed = committed, .folded = folded, .taps = r->taps,
               .step = r->step + r->step_first[seq]};
    int parent;
    assert(folded <= committed && sure <= last - first);
    fold_committed(&w);
    sure = fold_sure(&w, rows_to_fold(&w, sure, hn_cache_block_rows(r->cache)), &parent);
    visit_children(&w, parent, sure, HN_WALK_STATE);
    const int group = r->first_group + r->states_group, stride = r->rows[r->states_group].page_stride;
    memcpy(r->next_table + (size_t)seq * (size_t)stride, hn_cache_next_state(r->cache, cache_seq, group),
           (size_t)stride * sizeof *r->next_table);
    r->step_fresh[seq] = folded == 0;
    r->step_first[seq + 1] = r->step_first[seq] + w.n;
    r->fold_to[seq] = committed + sure;
}

void hn_walk_write(hn_runner *r, int n_seqs) {
    const hn_ops *o = &r->m->ops;
    o->write(o, r->walk.step, r->step, (size_t)r->step_first[n_seqs] * sizeof *r->step);
    o->write(o, r->walk.first, r->step_first, ((size_t)n_seqs + 1) * sizeof *r->step_first);
    o->write(o, r->next_state, r->next_table,
             (size_t)n_seqs * (size_t)r->rows[r->states_group].page_stride * sizeof *r->next_table);
    o->write(o, r->walk.fresh, r->step_fresh, (size_t)n_seqs * sizeof *r->step_fresh);
}

void hn_walk_done(hn_runner *r, const int *cache_seq, int n_seqs) {
    for (int s = 0; s < n_seqs; s++) hn_cache_fold(r->cache, cache_seq[s], r->owner, r->fold_to[s]);
}
