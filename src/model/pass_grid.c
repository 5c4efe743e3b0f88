/* SPDX-License-Identifier: Apache-2.0 */
/* pass_grid.c - the states that the rows of a pass read in layers with states on a grid of positions (ops/ssm.h), and the order in which
 * they are made. A state is known by the last row that is in it: rows of a pass that continue different rows there read different states.
 *
 *   cache's state -> states of committed rows and of rows that are sure to be committed -> states of other rows, depth first
 *
 * Rows read each state before it moves on. The cache's moves to that which the next rows can read, whatever was accepted; the others are
 * in levels, and a state's last successor takes its level. */
#include <assert.h>

#include "model/pass_private.h"
#include "ops/ssm.h"

/* Each cell but a sequence's first one adds HN_GRID rows, all committed before or in the pass, or draft rows of earlier passes. */
int hn_grid_most_cells(const hn_runner *r) {
    const int before = 2 * (HN_MAX_ROWS + HN_GRID) / HN_GRID, drafts = 2 * HN_MAX_ROWS / HN_GRID;
    return 2 * r->rows.max / HN_GRID + r->rows.max_texts * (before + drafts + 2);
}

/* One sequence. */
typedef struct route {
    hn_runner *r;
    int first, last;   /* its rows in the pass */
    int committed, to; /* rows in the cache's state afterwards */
    bool level[HN_GRID_LEVELS + 1];
} route;

static int position_of(const route *w, int i) { return w->r->rows.image->position[i]; }

/* The slot of the row at a position of row i's path; -1: before the text. */
static int slot_of(const route *w, int i, int position) {
    const hn_row_image *im = w->r->rows.image;
    if (position < w->committed || im->direct[im->seq[i]]) return position;
    return im->path_slots[im->path_start[i] + position - w->committed];
}

/* The next row from i on that reads a state of `rows` rows or a later one of which the last is `key`; its path goes through the row `below`
 * at `at`. */
static int next_row(const route *w, int i, int rows, int at, int below) {
    for (; i < w->last; i++)
        if (hn_grid_of(position_of(w, i)) >= rows && slot_of(w, i, at) == below) return i;
    return w->last;
}

static int take_level(route *w) {
    int level = 1;
    while (w->level[level]) level++;
    assert(level <= HN_GRID_LEVELS);
    w->level[level] = true;
    return level;
}

/* Lists the rows that read this state, of `rows` rows, the last of which is `key`. */
static void add_readers(route *w, hn_grid_cell *c, int rows, int key) {
    hn_pass_grid *g = &w->r->grid;
    c->row = g->n_rows;
    for (int i = w->first; i < w->last; i++)
        if (hn_grid_of(position_of(w, i)) == rows && slot_of(w, i, rows - 1) == key) g->row[g->n_rows++] = i;
    c->rows = g->n_rows - c->row;
}

static hn_grid_cell *add_cell(route *w, int from, int to) {
    hn_pass_grid *g = &w->r->grid;
    assert(g->n_cells < hn_grid_most_cells(w->r));
    hn_grid_cell *c = &g->cell[g->n_cells++];
    *c = (hn_grid_cell){.from = from, .to = to, .slot = g->n_slots};
    return c;
}

/* Visits the states after that of `rows` rows which ends with `key` and is in level `from`: those that the cache's moves to last, since
 * it takes the place of the one before. */
static void visit(route *w, int rows, int key, int from) {
    hn_pass_grid *g = &w->r->grid;
    const int next = rows + HN_GRID;
    for (int moves = 0; moves < 2; moves++)
        for (int i = next_row(w, w->first, next, rows - 1, key); i < w->last; i = next_row(w, i + 1, next, rows - 1, key)) {
            const int own = slot_of(w, i, next - 1);
            const bool stays = next <= w->to && own == next - 1;
            int same = next_row(w, w->first, next, rows - 1, key), other = i + 1;
            while (slot_of(w, same, next - 1) != own) same = next_row(w, same + 1, next, rows - 1, key);
            if (same < i || stays != (moves > 0)) continue; /* visited, or in its turn */
            do other = next_row(w, other, next, rows - 1, key);
            while (other < w->last && slot_of(w, other++, next - 1) == own);
            const bool takes = from > HN_WALK_STATE && other == w->last;
            const int to = stays ? HN_WALK_STATE : takes ? from : take_level(w);
            hn_grid_cell *c = add_cell(w, from, to);
            for (int at = rows; at < next; at++) g->slot[g->n_slots++] = slot_of(w, i, at);
            c->slots = HN_GRID;
            add_readers(w, c, next, own);
            visit(w, next, own, to);
            if (!stays && !takes) w->level[to] = false;
        }
}

void hn_grid_sequence(hn_runner *r, int first, int last, int seq, int cache_seq, const hn_draft_rows *drafts, int n_certain, bool absorb) {
    hn_pass_grid *g = &r->grid;
    const int absorbed = hn_cache_absorbed(r->groups.cache, cache_seq, r->groups.model_id);
    const int committed = hn_cache_committed(r->groups.cache, cache_seq, r->groups.model_id);
    const int certain = committed + hn_walk_certain(committed, n_certain, hn_cache_node_rows(r->groups.cache), HN_MAX_ROWS - HN_GRID);
    const int to = absorb ? hn_grid_floor(certain) : absorbed, held = hn_grid_of(absorbed);
    route w = {.r = r, .first = first, .last = last, .committed = committed, .to = hn_grid_of(to)};
    assert(absorbed % HN_GRID == 0 && absorbed <= committed && (absorb ? drafts->n == 0 : n_certain == 0));
    hn_grid_cell *c = add_cell(&w, held > 0 ? HN_WALK_STATE : HN_WALK_NONE, HN_WALK_NONE);
    add_readers(&w, c, held, held - 1);
    visit(&w, held, held - 1, held > 0 ? HN_WALK_STATE : HN_WALK_NONE);
    hn_walk_next_states(r, seq, cache_seq);
    g->first[seq + 1] = g->n_cells;
    r->walk.absorb_to[seq] = to > absorbed ? to : absorbed;
}

void hn_grid_begin(hn_runner *r) { r->grid.n_cells = r->grid.n_slots = r->grid.n_rows = 0; }

void hn_grid_write(hn_runner *r, int n_seqs) {
    hn_backend *b = r->m->backend;
    hn_pass_grid *g = &r->grid;
    assert(g->n_rows == r->rows.n);
    b->write(b, g->at.cell, g->cell, (size_t)g->n_cells * sizeof *g->cell);
    b->write(b, g->at.first, g->first, ((size_t)n_seqs + 1) * sizeof *g->first);
    if (g->n_slots > 0) b->write(b, g->at.slot, g->slot, (size_t)g->n_slots * sizeof *g->slot);
    b->write(b, g->at.row, g->row, (size_t)g->n_rows * sizeof *g->row);
}
