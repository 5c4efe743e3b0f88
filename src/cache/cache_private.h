/* SPDX-License-Identifier: Apache-2.0 */
/* cache_private.h - shared by the cache's files. Each calls only those below it:
 *
 *   cache_told.c     what a leader tells the ranks that have the same pages (docs/machines.md)
 *   cache_share.c    texts: entered into the index, restored from it
 *   cache_view.c     tables of readers that have no rows of their own
 *   cache.c          open and close, the tables of sequences: reserve, commit, rewind
 *   cache_index.c    the index: which rows of a text it has, eviction
 *   cache_states.c   states of recurrent layers in it
 *   cache_pages.c    pages, who uses them, the nodes they are in
 *
 * A page is in one of these states:
 *
 *   free              tables 0, nodes 0      on the heap of free pages, the lowest first
 *   of a sequence     tables 1, nodes 0      the only state in which rows are written
 *   shared            otherwise               read only
 *   idle              tables 0, nodes > 0    counts as free: eviction makes it free
 *
 * In every table the indexed pages come first. Those of group 0 are the pages of the nodes on the path to seq->node; for a
 * window group without those that the table has released.
 */
#ifndef HN_CACHE_PRIVATE_H
#define HN_CACHE_PRIVATE_H
#include "base/least.h"
#include "cache/cache.h"
#include "cache/prefix.h"

_Static_assert((int)HN_PREFIX_MODELS == (int)HN_MAX_MODELS, "states of a node");

typedef struct hn_page_use {
    int32_t tables; /* number of page table entries with this page, and of sequences and views that hold it */
    int32_t nodes; /* number of index nodes with it: several if their texts differ after a page shorter than a node */
    uint64_t idle_since; /* of idle pages: by the clock of the index */
    hn_prefix_node *node;     /* one of its nodes, and its slot there; NULL: in none */
    int slot;
    uint32_t moves; /* hn_cache.moves_batch of the last move that reads or writes it */
    int32_t newer, older; /* of idle pages: neighbours in the list of their group */
} hn_page_use;

/* The idle pages of a group, by the time since when they are. */
typedef struct hn_idle_pages {
    int32_t newest, oldest; /* HN_NO_PAGE: there are none */
} hn_idle_pages;

/* A huge page of the pool's memory, which pages share that are no multiple of it. The system has and gives it as a whole: what is left of
 * one when a part was given back it makes whole again, uncounted (khugepaged). */
typedef struct hn_pool_unit {
    int32_t in_use; /* pages with bytes in it that are not free */
    bool warm;      /* it was touched, and not given back since */
} hn_pool_unit;

typedef struct hn_seq {
    bool live;
    uint64_t salt; /* of its text in the index */
    int committed[HN_MAX_MODELS];
    int absorbed[HN_MAX_MODELS]; /* of models with a state: may exceed committed until the commit of a pass */
    int n_pages[HN_MAX_GROUPS];
    int first[HN_MAX_GROUPS];      /* entries before it are HN_NO_PAGE; 0 in full groups */
    int32_t *pages[HN_MAX_GROUPS]; /* [stride of the group] */
    int32_t *next[HN_MAX_GROUPS];  /* of state groups: pages that the next pass writes; [0] HN_NO_PAGE: those of the table */
    int published[HN_MAX_GROUPS];  /* number of leading pages that are in the index, or have an equal there, or were released */
    hn_prefix_node *saved_node[HN_MAX_MODELS]; /* models with a state: the node with the newest state of the text that it holds */
    uint64_t saved_since[HN_MAX_MODELS];   /* when it was the newest */
    int32_t *saved[HN_MAX_GROUPS];         /* their groups' pages that a text continues from there, [hn_saved_pages] */
    int n_saved[HN_MAX_GROUPS];
    hn_prefix_node *node;               /* the last of the published[0] nodes of the text; NULL: none */
} hn_seq;

struct hn_cache_view {
    hn_cache_view *next; /* of the cache's views */
    int rows;
    int n_pages[HN_MAX_GROUPS];    /* 0: it holds none of the group */
    int32_t *pages[HN_MAX_GROUPS]; /* owned: [stride of the group]; NULL: not of this view */
};

enum { HN_CACHE_MOVES = 2048 }; /* of a group, before they are flushed */

struct hn_cache {
    hn_backend *backend;
    hn_cache_group group[HN_MAX_GROUPS];
    int stride[HN_MAX_GROUPS];         /* entries of a table of the group */
    int first_slot[HN_MAX_GROUPS + 1]; /* first slot of the group in a node of the index */
    int n_groups, max_seqs, rows;
    bool windows; /* some group has one */
    bool states[HN_MAX_MODELS]; /* models with a state */
    int n_pages, n_free, n_idle;
    int keep_idle;      /* more idle pages are evicted */
    hn_pool_unit *unit; /* [n_units] of unit_bytes, the last one perhaps of fewer */
    size_t unit_bytes;
    int n_units, n_warm;
    int n_spare;        /* warm ones without a page in use */
    int margin;         /* more of these are given back */
    int state_pages[HN_MAX_GROUPS]; /* of state groups: pages in the index */
    size_t page_bytes;
    hn_mem *pool;
    hn_row_move *move;            /* [n_groups][HN_CACHE_MOVES] rows that are still to be moved, in order */
    int32_t n_moves[HN_MAX_GROUPS];
    hn_mem *moves;                /* of the backend: n_moves, then move, as they were written for the work that moves them */
    int32_t ready[HN_MAX_GROUPS]; /* numbers of these */
    uint32_t told_id; /* where ranks have such a cache too: its number */
    void *told;       /* owned: room for a message to them; NULL: none has */
    uint32_t moves_batch;         /* number of the moves that are collected now, from 1 on */
    int32_t *free;    /* [n_free] heap of page numbers: none is below the two behind it, the lowest is the first */
    hn_page_use *use; /* [n_pages] */
    hn_idle_pages idle[HN_MAX_GROUPS];
    hn_seq *seq;      /* [max_seqs] */
    hn_cache_view *views; /* the newest */
    hn_prefix prefix;
    hn_prefix_node **path; /* [stride of group 0] work memory: the nodes of a text, and its leaf after them */
    hn_prefix_node *leaf;  /* the same: NULL: none */
};

/* The first page that a group needs after `rows` rows: that of the first row which the next one sees. */
static inline int hn_first_page(const hn_cache *c, int group, int rows) {
    const int first_row = rows - c->group[group].window + 1;
    return c->group[group].window && first_row > 0 ? first_row / c->group[group].page_rows : 0;
}

/* Pages of a table with `rows` rows. */
static inline int hn_pages_of(const hn_cache *c, int group, int rows) {
    const hn_cache_group *d = &c->group[group];
    if (d->kind != HN_CACHE_STATE) return (rows + d->page_rows - 1) / d->page_rows;
    const int units = hn_cache_page_units(c, group);
    return rows > 0 ? (d->units + units - 1) / units : 0;
}

/* The row from which on a model's rows must be kept: `back` before its end; of HN_CACHE_ROWS beside a state the first that is not
 * absorbed. */
static inline int hn_first_row_needed(const hn_cache *c, const hn_seq *s, int group) {
    const int model_id = c->group[group].model_id, committed = s->committed[model_id] - c->group[group].back;
    if (c->group[group].kind != HN_CACHE_ROWS || !c->states[model_id]) return committed;
    return s->absorbed[model_id] < s->committed[model_id] ? s->absorbed[model_id] : s->committed[model_id];
}

/* True if the state of a sequence is shared, that is read only. */
static inline bool hn_state_shared(const hn_cache *c, const hn_seq *s, int group) {
    const hn_page_use *u = s->n_pages[group] > 0 ? &c->use[s->pages[group][0]] : NULL;
    return u && (u->tables > 1 || u->nodes > 0);
}

/* The rows that the target computes again after a restore. */
static inline int hn_cache_recompute(const hn_cache *c) {
    int less = 0;
    for (int g = 0; g < c->n_groups; g++)
        if (c->group[g].recompute > less) less = c->group[g].recompute;
    return less;
}

/* Depth of the node in which page i of a group ends, and the page's slot there. */
static inline int hn_node_of_page(const hn_cache *c, int group, int i) {
    return ((i + 1) * c->group[group].page_rows - 1) / c->prefix.node_rows;
}

static inline int hn_slot_of_page(const hn_cache *c, int group, int i) {
    const int in_block = c->prefix.node_rows / c->group[group].page_rows;
    return c->first_slot[group] + (in_block > 1 ? i % in_block : 0);
}

/* ---- cache_told.c ---- */

/* Of a leader whose cache has just been opened: the others open theirs; and at the end. */
hunch_status hn_cache_tell_open(hn_cache *c, hunch_error *err);
void hn_cache_tell_end(hn_cache *c);
/* The parts of hn_cache_open, beside its plan. */
hunch_status hn_cache_plan_row(hn_cache_group *d, hunch_error *err);
hunch_status hn_cache_open_moves(hn_cache *c, hunch_error *err);

/* ---- cache_pages.c ---- */

/* The most pages of a group that a sequence of `rows` rows and a pass after them needs. */
int64_t hn_cache_pages_at_most(const hn_cache *c, int group, int64_t rows);
/* A page of a table is entered into an empty slot of a node. */
void hn_page_enter(hn_cache *c, int32_t page, hn_prefix_node *b, int slot);
/* A page counts as idle since another time. */
void hn_page_idle_since(hn_cache *c, int32_t page, uint64_t since);
/* A table takes a page that is in use elsewhere already; a table releases a page. */
void hn_page_take(hn_cache *c, int32_t page);
void hn_page_release(hn_cache *c, int32_t page);
void hn_page_free(hn_cache *c, int32_t page); /* no table and no node has it */
/* The lowest free page, of which there is one: what is in use stays together at the beginning of the pool, so that the rest of its memory
 * is free in whole units. */
int32_t hn_page_pop(hn_cache *c);
bool hn_next_page_warm(const hn_cache *c); /* whether that page's memory is touched already; of none it is not */
/* Units beyond the margin go back to the system, the last ones first. False: they cannot now, or not at all. */
bool hn_pages_cool(hn_cache *c);
size_t hn_units_bytes(const hn_cache *c, int units); /* of so many units, at most the pool's */
/* Removes a page from its slot of a node; removes a node without pages, children and users, and then such nodes before it. */
void hn_node_drop_page(hn_cache *c, hn_prefix_node *b, int slot);
void hn_node_prune(hn_cache *c, hn_prefix_node *b);
/* Sets the last node of the sequence's text in the index to b (NULL: none). */
void hn_cache_set_last_node(hn_cache *c, hn_seq *s, hn_prefix_node *b);

/* ---- cache_states.c ---- */

/* A model's state is in one group or in several: a node has all of it, or none that a text could continue from. */
bool hn_node_has_state(const hn_cache *c, const hn_prefix_node *b, int model_id);
void hn_state_drop(hn_cache *c, hn_prefix_node *b, int model_id);
/* Gives the state's pages to the last node that the model's rows fill, if 1 to HN_MAX_ROWS rows before the node's end are not
 * absorbed yet and enough pages are left for another state. */
void hn_state_publish(hn_cache *c, hn_seq *s, int model_id);
/* The most pages of a group that a sequence holds for its newest state in the index. */
int hn_saved_pages(const hn_cache *c, int group);
/* The sequence holds the pages of the newest state that the index has of its text, and no longer those of an older one. */
void hn_saved_update(hn_cache *c, hn_seq *s, int model_id);
/* It holds none; the pages count as idle since then. */
void hn_saved_release(hn_cache *c, hn_seq *s, int model_id, uint64_t since);

/* ---- cache_index.c ---- */

/* The nodes from the first one to b, into c->path, where the next calls read them. */
void hn_path_fill(hn_cache *c, hn_prefix_node *b);
/* Page i of a group in these nodes, HN_NO_PAGE: it is not there. */
int32_t hn_path_page(const hn_cache *c, int group, int i);
/* The last of these nodes with rows before the end of `rows` rows, the leaf if they end there; NULL: none. */
hn_prefix_node *hn_path_last(const hn_cache *c, int rows);
/* The row whose window a group needs at the end of `rows` rows: `less` before the next one; for rows that are absorbed into a state the
 * one after that state, if it is earlier. */
int hn_needed_from(const hn_cache *c, int group, int rows, int less);
/* The last end of a page, or row of the leaf, at `rows` at most, for which the index has all pages that a model needs to continue there,
 * and those that the row `less` before it sees; the same for the target and all models with `recompute`. */
int hn_model_rows_present(const hn_cache *c, int model_id, int rows, int less);
int hn_target_rows_present(const hn_cache *c, int rows, int less);
/* The sequence, which has none, takes these rows of a model. */
void hn_take_rows(hn_cache *c, hn_seq *s, int model_id, int rows, int less);
/* The number of published rows of the model, `rows` at most, after which the index has all pages that its window groups need.
 * The table takes these pages back; the caller releases those after them. */
int hn_cache_reclaim(hn_cache *c, hn_seq *s, int model_id, int rows);
/* The model dropped its rows from `rows` on; if it is the target, no later page counts as published, of any model. */
void hn_cache_unpublish(hn_cache *c, hn_seq *s, int model_id, int rows);
/* Takes idle pages out of the index; there must be one. If none is free afterwards, a second call frees one. */
void hn_cache_evict(hn_cache *c);
#endif
