/* SPDX-License-Identifier: Apache-2.0 */
/* walk.h - layers with a state that rows advance one after another (recurrent layers): the order in which a pass walks its rows, and where
 * the inputs of rows and the states are in the cache. Who makes it: model/pass_walk.c.
 *
 * The state in the cache is that of committed rows; a tentative row stores its inputs there, from which a later pass absorbs it into the
 * state if it was committed. States of tentative rows exist during a pass alone. */
#ifndef HN_WALK_H
#define HN_WALK_H
#include "ops/ops.h"

enum {
    HN_MOST_TAPS = 8,
    HN_WALK_LEVELS = HN_MAX_ROWS / 2 + 2,     /* states that a walk keeps: all but two are those of rows with unvisited children */
    HN_WALK_STEPS = HN_MAX_ROWS + HN_PASS_ROWS + HN_MOST_TAPS, /* of one sequence: absorbed rows, and rows of the pass */
    HN_WALK_STATE = 0, HN_WALK_NONE = -1      /* levels */
};

/* A step of the walk. */
typedef struct hn_walk_step {
    int32_t row;  /* of the pass; -1: a committed one, whose inputs are in the cache */
    int32_t slot; /* slot of its inputs, read or written */
    int32_t before[HN_MOST_TAPS - 1]; /* the rows before it, the nearest first: rows of the pass, hn_walk_slot(slot), or HN_WALK_NONE */
    int32_t from, to; /* levels of the state: HN_WALK_STATE is the cache's; HN_WALK_NONE: the row's state is not kept */
} hn_walk_step;
static inline int32_t hn_walk_slot(int slot) { return -2 - slot; }

/* All steps of a pass. */
typedef struct hn_row_walk {
    hn_buf step;  /* hn_walk_step [first[n_seqs]] */
    hn_buf first; /* int32 [n_seqs + 1] the first step of each sequence */
    hn_buf fresh; /* int32 [n_seqs] 1: there is no state yet, it is zero */
} hn_row_walk;

/* The place of a layer's inputs of rows: slot s is in page table[s / page_rows] of its sequence, row s % page_rows, at offset `off`. */
typedef struct hn_input_pages {
    hn_buf pool, table; /* int32 [n_seqs][stride] */
    size_t page_bytes, row_bytes, off;
    int page_rows, stride;
} hn_input_pages;

/* The place of a layer's states, and of those that the pass writes, in the same pages or others: head h is unit first +
 * h, unit u is number u % page_units in page table[u / page_units]. */
typedef struct hn_state_pages {
    hn_buf pool, table, next; /* both int32 [n_seqs][stride] */
    size_t page_bytes, unit_bytes;
    int first, page_units, stride;
} hn_state_pages;
#endif
