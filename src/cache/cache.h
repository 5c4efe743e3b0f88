/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - the K/V rows and states of all sequences, in pages of one pool (contracts C4, C7).
 *
 * A cache group is a set of layers that keep the same rows. Every group has a page table of its own in each sequence;
 * pages of all groups have the same size in bytes, a group's page has a power of two of rows. Slot s of a sequence is in page
 * table[s / page_rows], row s % page_rows.
 *
 *   slots:   0 ............ committed | tentative rows of this round (one slot a row, in row order) | free
 *
 * The layers of a window group see the last `window` rows only, so it keeps no more than these and the rows of a pass: the next
 * reserve releases the pages that are wholly below the window of the row after the committed ones. Their table entries are
 * HN_NO_PAGE then; slots keep their numbers. A drafter's pages stay until they are published, if the plan has room for them.
 *
 *   table of a window group:   - - - - | page | page | page | page      rows below the first page are released
 *
 * Recurrent layers have one state, which replaces all rows that were absorbed into it; for rows that may still be rejected they keep
 * the inputs of the absorb. (A model without a state keeps rows of a window as it keeps keys and values of one.)
 *
 *   state group   | all rows below `absorbed`, together |
 *   rows group    - - - - - - - - | window | committed, not absorbed yet | tentative |
 *
 * Rows are absorbed only when they are committed or certain to be, so a rollback needs no work. A rewind below `absorbed` goes back to
 * a state in the index, or to no rows.
 *
 * Groups belong to models: model 0 is the target, others are drafters with rows of their own. The groups of one model keep the
 * same rows and are reserved, committed and rewound together; models of a sequence are independent of each other.
 *
 * The prefix index (prefix.h) shares full pages of committed rows between sequences, and keeps those of ended ones as long as
 * their room is not needed: they are evicted least recently used first, the end of a text before its beginning. A shared page
 * is never written: after a rewind into one, rows are written to a copy.
 *
 * When a text ends, the rows after its last full page are entered too: a text that continues it, as the next turn of a chat does, begins
 * inside that page and computes new rows only. Models with a state continue at ends of nodes alone.
 *
 * The state of a text is kept in the index when a node becomes full, by giving its pages to the node: the next pass reads them
 * and writes others, so that nothing is copied. Few states of a text are kept, fewer of older ones: those of the last node, of
 * the last whose number is a multiple of 2, of 4, of 8, ... They are evicted like pages of windows; if a group has as many as it
 * may keep, the one that has been idle longest is evicted. A sequence holds the newest of its text: it is not idle, so that a text
 * that is preempted can continue there. If all are held, the one that has been held longest is evicted.
 *
 * Committed rows have slot == position. Only the pass that wrote tentative rows reads them; commit keeps a path of them in
 * order and drops the rest. One thread of control for each engine.
 */
#ifndef HN_CACHE_H
#define HN_CACHE_H
#include "ops/backend.h"

/* The data that a group keeps of a sequence. */
typedef enum hn_cache_kind {
    HN_CACHE_KV,    /* K and V of its layers for each row */
    HN_CACHE_ROWS,  /* rows of units * unit_bytes bytes */
    HN_CACHE_STATE  /* a part of the state of all rows up to `absorbed`, which passes advance: all such groups of a model together */
} hn_cache_kind;

typedef struct hn_cache_group {
    const char *name;
    int layers, kv_heads, head_dim; /* equal over the group */
    hn_dtype type;                  /* HN_BF16, HN_F16, HN_F32 or HN_Q8_0 */
    int page_rows;                  /* given for the first group, set by hn_cache_open for the others */
    int model_id;                   /* 0..HN_MAX_MODELS-1; groups are in order of models, group 0 is the target's */
    int window; /* 0: all rows are kept; else the number of rows that a row of its layers sees, itself included. A full group of
                   the target precedes its window groups */
    int back;   /* of a window group: rows kept beyond the window, so that a rewind by up to as many needs no others */
    int tentative; /* most tentative rows of a sequence; 0: HN_MAX_ROWS, those of one pass. A group without a window may have more
                      (rows of a prompt), if the sequence has room for them as committed rows */
    int recompute;  /* of a drafter that reads the target's features: the number of rows at its end that it computes itself after a
                   restore. Each needs the feature of the row before, so the target is restored to as many rows less and computes
                   these again */
    size_t row_bytes; /* set by hn_cache_open: K and V of one row over all layers; of a state group the whole state */
    hn_cache_kind kind;
    int units;         /* of other kinds than HN_CACHE_KV: parts of a row or state, unit_bytes each; a unit of a state is in one page */
    size_t unit_bytes;
    int kept;          /* of a state: most states in the index, with pages planned for each; 0: as many as free pages allow. One number
                          of all groups of the model's state */
    int like;          /* of K and V of a drafter: 1 + the number of the group before it whose pages its sequences may be lent
                          (hn_cache_lend): it has the same layers, and pages of its own for rows after these alone; 0: none */
    uint32_t told;     /* of a draft model that ranks have too: its number (hn_model.told_id); 0: the target's, or one they lack */
    int v_in_k;        /* of K and V: a key's first v_in_k numbers are its value, stored once; 0: values are stored, */
    int v_dim;         /* so many numbers of a head; 0: as many as of a key; HN_NO_VALUES: there are none, the group has keys alone */
} hn_cache_group;
enum { HN_NO_VALUES = -1 };
/* Numbers of a head's value, stored or in its key. */
static inline int hn_group_v_dim(const hn_cache_group *g) {
    return g->v_in_k ? g->v_in_k : g->v_dim == HN_NO_VALUES ? 0 : g->v_dim ? g->v_dim : g->head_dim;
}

enum { HN_MAX_GROUPS = 16, HN_MAX_MODELS = 16 };

typedef struct hn_cache hn_cache;

/* Plans max_seqs tables with room for `rows` committed rows plus a group's tentative ones, and pages for pool_rows such rows
 * together (0: max_seqs * rows, or, if memory is short, those of all sequences but one; more leaves room for the index), plus
 * each sequence's tentative rows; for a window group no more than a sequence's window and tentative rows need. One sequence
 * alone always fits. Memory is reserved here and touched when rows are written. groups[0].page_rows sets the page size; it is
 * larger only if a page would not have room for 16 rows of another group. */
hunch_status hn_cache_open(hn_cache **out, hn_backend *b, const hn_cache_group *groups, int n_groups, int max_seqs,
                           int rows, int pool_rows, hunch_error *err);
void hn_cache_close(hn_cache **c);
size_t hn_cache_bytes(const hn_cache *c);
size_t hn_cache_touched(const hn_cache *c); /* of these, the ones whose memory is in use, or was and is kept for the next text */
/* So many bytes of pages stay in the index when no sequence has them: more are evicted. Without this call all that have room. */
void hn_cache_keep(hn_cache *c, size_t bytes);
int hn_cache_all_pages(const hn_cache *c);
int hn_cache_idle_pages(const hn_cache *c); /* those that only the prefix index holds */
int hn_cache_free_pages(const hn_cache *c); /* those that only the prefix index holds count as free */
int hn_cache_own_pages(const hn_cache *c, int seq); /* those of its tables that are in no other: free when it ends */
/* The most pages that a sequence of `rows` rows and a pass after them needs, over all groups. */
int hn_cache_pages_for(const hn_cache *c, int rows);

/* Geometry of one layer of a group, for the ops. */
hn_kv hn_cache_kv(const hn_cache *c, int group, int layer);
int hn_cache_model_id(const hn_cache *c, int group);
hn_cache_kind hn_cache_kind_of(const hn_cache *c, int group);
hn_plain_rows hn_cache_rows(const hn_cache *c, int group); /* of HN_CACHE_ROWS */
/* The units of one layer of a group of another kind than HN_CACHE_KV: the first, and of rows its offset in a row. */
typedef struct hn_plain_units {
    size_t unit_bytes, row_bytes, off;
    int first, page_rows;
} hn_plain_units;
hn_plain_units hn_cache_units(const hn_cache *c, int group, int layer);
size_t hn_cache_page_bytes(const hn_cache *c);
hn_buf hn_cache_pool(const hn_cache *c);
int hn_cache_page_units(const hn_cache *c, int group); /* units of a state in a page */

/* Sequences have ids 0..max_seqs-1. begin: empty. end: its pages return to the pool, or stay in the index. */
void hn_cache_seq_begin(hn_cache *c, int seq);
void hn_cache_seq_end(hn_cache *c, int seq);
/* After begin: its text shares rows only with those of the same salt. 0 until then. */
void hn_cache_seq_salt(hn_cache *c, int seq, uint64_t salt);
int hn_cache_committed(const hn_cache *c, int seq, int model_id);
/* Page table of a group (valid until the next reserve, commit, rewind, publish, restore or end). Entries of a window group
 * are HN_NO_PAGE up to its first page. */
const int32_t *hn_cache_pages(const hn_cache *c, int seq, int group, int *n_pages);
int hn_cache_table_stride(const hn_cache *c, int group); /* entries of a table */

/* Makes room for `tentative` rows of a model after its committed ones, including existing tentative ones; outside of a pool
 * run. Pages below the windows are released here, not at the commit, because publish is called between them. HUNCH_NO_MEMORY:
 * no page left (nothing else changed). HUNCH_USAGE: more rows than were planned. */
hunch_status hn_cache_reserve(hn_cache *c, int seq, int model_id, int tentative, hunch_error *err);
bool hn_cache_reserved(const hn_cache *c, int seq, int model_id, int tentative); /* whether there is that room: for assertions */
/* Rows that a commit or a copy of a page moves are collected, of all sequences and groups, and moved by the work of the next pass over
 * this cache, before it: `ready` writes them to the backend's memory, and says whether there are any; then `move` is called by the function
 * that is submitted. flush: a submission of their own. */
bool hn_cache_moves_ready(hn_cache *c); /* NULL: none */
void hn_cache_move(const hn_exec *ex, const hn_cache *c);
void hn_cache_flush(hn_cache *c);
/* Keeps n tentative rows: index[i] is the row's number among this round's tentative rows (slot - committed), ascending,
 * in path order. They become rows committed .. committed + n - 1. index NULL: rows 0..n-1 (a chain or a chunk). */
void hn_cache_commit(hn_cache *c, int seq, int model_id, const int16_t *index, int n);
/* Owners with a state: the number of rows absorbed into it; commits do not advance it. A pass advances it over the committed rows,
 * whose rows of HN_CACHE_ROWS are kept until then, and over further ones that are certain to be committed next, and then calls
 * hn_cache_absorb. */
int hn_cache_absorbed(const hn_cache *c, int seq, int model_id);
/* Pages that the next pass writes a state to, valid after its reserve: those of the table, or, if these are shared, others, which
 * replace them at hn_cache_absorb. */
const int32_t *hn_cache_next_state(const hn_cache *c, int seq, int group);
void hn_cache_absorb(hn_cache *c, int seq, int model_id, int rows);
/* Drops committed rows from `rows` on (rows <= committed); their pages return to the pool. Returns the rows that are left: fewer
 * than requested if a window group released rows that the next one would see, or a state has more rows. Then it is as many as
 * the index can restore, or 0, and the caller computes the rest again. */
int hn_cache_rewind(hn_cache *c, int seq, int model_id, int rows);

/* ---- shared prefixes ---- */

/* For an empty sequence: takes the pages in the index for a prefix of text[0..n), for each model up to the last boundary where
 * all its groups are valid: full groups from the first row on, window groups as far back as the next row sees. A boundary is the end of
 * a page, or any row of the end of a text that hn_cache_publish_end entered. A model other than the target gets at most the
 * target's rows. Returns the target's rows; if a model has `recompute`, that model's rows less its `recompute`. */
int hn_cache_restore(hn_cache *c, int seq, const int32_t *text, int n);
int hn_cache_node_rows(const hn_cache *c); /* rows of a node of the index */
int hn_cache_step(const hn_cache *c); /* the largest page of the target's groups, in rows */
/* Enters the sequence's full pages into the index. text: the tokens of its rows; valid[model_id]: how many committed rows of the
 * model have that text. If the index has the text already, the sequence uses the pages there instead of its own, so it must be
 * called between passes, not between a reserve and its commit; after every commit, so that pages of window groups are entered
 * before they are released, and the state at the last full node. Cheap if nothing is new; without memory a node is omitted. */
void hn_cache_publish(hn_cache *c, int seq, const int32_t *text, const int *valid);
/* The same for a text that ends: its rows after the last full page are entered too. Only after another reserve, which copies a page that
 * is in the index, may rows be written to the sequence. */
void hn_cache_publish_end(hn_cache *c, int seq, const int32_t *text, const int *valid);
/* hn_cache_publish for a model other than the target, all of whose committed rows have the text: called between its passes if many of
 * them follow each other, so that pages of window groups and states at ends of nodes are entered before they are released. The
 * nodes of the text are those that the target has entered. */
void hn_cache_publish_rows(hn_cache *c, int seq, int model_id);
/* The rows that a restore of this text would take count as used now: of a text that waits to continue. */
void hn_cache_touch(hn_cache *c, uint64_t salt, const int32_t *text, int n);
/* The sequence gives up what it holds of the newest states of its text in the index, until the next publish: these pages count as free. */
void hn_cache_release_states(hn_cache *c, int seq);
void hn_cache_index_clear(hn_cache *c); /* clears the index */
int hn_cache_states_kept(const hn_cache *c, int group); /* states in the index */

/* ---- lent pages ---- */

/* A model whose groups are all like others (hn_cache_group.like) gets spans of HN_KEY_SPAN committed rows of the model whose groups those
 * are, ascending, as its committed rows: they are numbered anew from 0 on, all are whole but perhaps the last. Rows that it writes follow
 * them, the first of them in a copy of the last page that is not full. What it had before is dropped; n 0: that alone. False: the next
 * row would see pages of a window that the other model has released, and it has no rows. A page that is lent is not written, so the other
 * model's next pass after the last row writes to a copy: they are lent for a phase of drafting. Its rows are never entered into the
 * index. */
bool hn_cache_lend(hn_cache *c, int seq, int model_id, const int32_t *span, int n);

/* ---- views ---- */

/* A table of a reader that has no rows of its own: pages of some groups of a model, as a sequence has them at a time. The view holds
 * these pages: none of them is free or written before it takes others or releases them, even if the sequence ends. So it is taken for
 * the time of a pass: pages that it holds longer are not there for others, and a sequence whose last page is held writes to a copy. */
typedef struct hn_cache_view hn_cache_view;
/* of: mask of groups (bit g: group g). A view does not outlive the cache. */
hunch_status hn_cache_view_open(hn_cache *c, unsigned of, hn_cache_view **out, hunch_error *err);
void hn_cache_view_close(hn_cache *c, hn_cache_view **v); /* *v NULL is fine */
/* Takes the first rows of a sequence: committed ones of the model whose groups they are, and of the tentative ones that a pass wrote
 * after them as a chain. The pages it held before are released. */
void hn_cache_view_take(hn_cache *c, hn_cache_view *v, int seq, int rows);
void hn_cache_view_release(hn_cache *c, hn_cache_view *v);
int hn_cache_view_rows(const hn_cache_view *v); /* 0: it holds none */
/* As hn_cache_pages; valid until the next take or release. */
const int32_t *hn_cache_view_pages(const hn_cache_view *v, int group, int *n_pages);

/* ---- ranks (docs/machines.md) ---- */

/* A cache whose backend has a link to ranks that it leads has one with the same pages on each of them: of the target's groups alone, whose
 * layers have the heads of that rank. They have no texts and no index: what pages are used for is decided by the leader, which tells them
 * what a pass reads, and what is to be moved. */
uint32_t hn_cache_told_id(const hn_cache *c);
/* From the message HN_TOLD_CACHE. groups: those of the rank's part of the model with this number, as hn_kv_groups lists them; returns how
 * many, 0: there is no such model. */
typedef int hn_told_groups(void *user, uint32_t model, hn_cache_group own[]);
hunch_status hn_cache_open_told(hn_cache **out, hn_backend *b, hn_told_groups *groups, void *user, const void *message, size_t bytes,
                                hunch_error *err);
/* What hn_cache_moves_ready made ready, to a message, at most so many bytes; returns the bytes. And from there: returns the bytes read,
 * 0: it has another form. flush: they are moved at once. */
size_t hn_cache_most_told(const hn_cache *c);
size_t hn_cache_put_moves(const hn_cache *c, void *to);
void hn_cache_tell_moves(hn_cache *c); /* of what is ready, where it is moved here without a pass that ranks run: they move theirs */
size_t hn_cache_take_moves(hn_cache *c, const void *from, size_t bytes);
void hn_cache_flush_taken(hn_cache *c);

/* For tests: true if every page is free, in the index, in tables, or held by a view, and all counts agree. */
bool hn_cache_valid(const hn_cache *c);
#endif
