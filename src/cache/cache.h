/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - all state of all sequences, in pages of one pool (contracts C4, C7).
 *
 * A cache group is a set of layers that keep the same rows. Every group has a page table of its own in each sequence;
 * pages have equal bytes for all groups, a group's page holds a power of two of rows. Slot s of a sequence lies in page
 * table[s / page_rows], row s % page_rows.
 *
 *   slots:   0 ............ committed | tentative rows of this round (one slot a row, in row order) | free
 *
 * A window group is read by layers that see the last `window` rows only, and keeps no more than these and the rows of a
 * pass: the next reserve lets the pages go that lie wholly below the window of the row behind the committed ones. Their
 * table entries are HN_NO_PAGE then; slots keep their numbers.
 *
 *   table of a window group:   - - - - | page | page | page | page      rows below the first page are gone
 *
 * Not all that a sequence keeps is rows. A recurrent layer has one state, which takes the place of all rows that were folded
 * into it, and of rows that may still be rejected what they are to be folded from:
 *
 *   state group   | all rows below `folded`, together |
 *   rows group    - - - - - - - - | window | committed, not folded yet | tentative |
 *
 * Nothing is folded before it is committed, or sure to be, so a rollback is no work. A rewind below `folded` goes back to a state
 * that the index has, or to nothing.
 *
 * Groups belong to owners: owner 0 is the target, others are drafters with rows of their own. The groups of one owner
 * keep the same rows and are reserved, committed and rewound together; owners of a sequence know nothing of each other.
 *
 * The prefix index (prefix.h) shares full pages of committed rows between sequences, and keeps those of ended ones
 * while nobody needs the room: they are evicted least recently used first, the end of a text before its beginning. A
 * shared page is never written: rows behind a rewind into one are written to a copy.
 *
 * A state of a text is kept as a block of the index becomes full, by giving its pages to the block: the next pass reads them and
 * writes others, so that nothing is copied. Of one text few are kept, the older the fewer: those of the last block, of the last
 * whose number is a multiple of 2, of 4, of 8, ... They are evicted as pages of windows are, and where there are as many as the group
 * may keep, the one that has been idle longest.
 *
 * Committed rows have slot == position. Tentative rows are read by the pass that wrote them alone; commit keeps a path
 * of them in order and forgets the rest. One thread of control an engine.
 */
#ifndef HN_CACHE_H
#define HN_CACHE_H
#include "ops/ops.h"

/* What a group keeps of a sequence. */
typedef enum hn_cache_kind {
    HN_CACHE_KV,    /* K and V of its layers, a row */
    HN_CACHE_ROWS,  /* rows of so many bytes */
    HN_CACHE_STATE  /* one state for all rows up to some row, which passes carry on; of an owner at most one group */
} hn_cache_kind;

typedef struct hn_cache_group {
    const char *name;
    int layers, kv_heads, head_dim; /* equal over the group */
    hn_dtype type;                  /* HN_BF16, HN_F16, HN_F32 or HN_Q8_0 */
    int page_rows;                  /* set by hn_cache_open for every group but the first, which names it */
    int owner;                      /* 0..HN_MAX_OWNERS-1; groups stand in order of owners, group 0 is the target's */
    int window; /* 0: all rows are kept, else those that a row of its layers sees, itself included. A full group of the
                   target stands before its window groups */
    int back;   /* of a window group: rows behind the window, so that a rewind by as many loses nothing */
    int tentative; /* most tentative rows of a sequence; 0: HN_MAX_ROWS, those of one pass. Of a group without a window more may be, where
                      the sequence has room for them as committed ones: rows of a prompt */
    int binds;  /* of a drafter that reads the target's features: so many rows of its end, each of which needs that of the row before, it
                   wants to compute itself, so the target is restored to so many rows less than it, and computes those features again */
    size_t row_bytes; /* set by hn_cache_open: K and V of one row over all layers; of a state group the whole */
    hn_cache_kind kind;
    int units;         /* of other kinds than K and V: parts of a row or state, unit_bytes each; none of a state lies in two pages */
    size_t unit_bytes;
    int kept;          /* of a state group: most states in the index, each with pages planned for it; 0: as many as there are pages for */
} hn_cache_group;

enum { HN_MAX_GROUPS = 16, HN_MAX_OWNERS = 16 };

typedef struct hn_cache hn_cache;

/* Plans max_seqs tables that can hold `rows` committed rows plus a group's tentative ones, and pages for pool_rows
 * such rows together (0: max_seqs * rows, or where memory is short those of all sequences but one; more leaves room for the
 * index), each sequence's tentative rows beside them; of a window group no more than a sequence's window and tentative rows take.
 * One sequence alone always fits. Memory is reserved here and touched as rows come. groups[0].page_rows fixes the page
 * size; it is larger only where another group's row would not fit 16 times. */
hunch_status hn_cache_open(hn_cache **out, const hn_ops *ops, const hn_cache_group *groups, int n_groups, int max_seqs,
                           int rows, int pool_rows, hunch_error *err);
void hn_cache_close(hn_cache **c);
size_t hn_cache_bytes(const hn_cache *c);
int hn_cache_free_pages(const hn_cache *c); /* those that only the prefix index holds count as free */
/* Pages that a sequence of `rows` rows and a pass behind them takes at most, over all groups. */
int hn_cache_pages_for(const hn_cache *c, int rows);

/* Geometry of one layer of a group, for the ops. */
hn_kv hn_cache_kv(const hn_cache *c, int group, int layer);
int hn_cache_owner(const hn_cache *c, int group);
hn_plain_rows hn_cache_rows(const hn_cache *c, int group); /* of HN_CACHE_ROWS */
size_t hn_cache_page_bytes(const hn_cache *c);
hn_buf hn_cache_pool(const hn_cache *c);
int hn_cache_page_units(const hn_cache *c, int group); /* units of a state that a page holds */

/* Sequences are ids 0..max_seqs-1. begin: empty. end: its pages return to the pool, or stay with the index. */
void hn_cache_seq_begin(hn_cache *c, int seq);
void hn_cache_seq_end(hn_cache *c, int seq);
int hn_cache_committed(const hn_cache *c, int seq, int owner);
/* Page table of a group (valid until the next reserve, commit, rewind, publish, restore or end). Entries of a window group
 * are HN_NO_PAGE up to its first page. */
const int32_t *hn_cache_pages(const hn_cache *c, int seq, int group, int *n_pages);
int hn_cache_table_stride(const hn_cache *c, int group); /* pages a table can hold */

/* Makes room for `tentative` rows of an owner behind its committed ones, those that are there included; outside of a pool run. Pages below the windows
 * are let go here, not at the commit: publish comes between them. HUNCH_NO_MEMORY: no page left (nothing else changed). */
hunch_status hn_cache_reserve(hn_cache *c, int seq, int owner, int tentative, hunch_error *err);
/* Keeps n tentative rows: index[i] is the row's number among this round's tentative rows (slot - committed), ascending,
 * in path order. They become rows committed .. committed + n - 1. index NULL: rows 0..n-1 (a chain or a chunk). */
void hn_cache_commit(hn_cache *c, int seq, int owner, const int16_t *index, int n);
/* Owners with a state: how many rows it is the state of; commits leave it behind. A pass carries it on over the committed rows,
 * whose rows of HN_CACHE_ROWS are kept until then, and over more that it knows to be committed next, and says so. */
int hn_cache_folded(const hn_cache *c, int seq, int owner);
/* Pages that the next pass writes a state to, behind its reserve: those of the table, or where these are shared, others, which take
 * their place when it is folded. */
const int32_t *hn_cache_next_state(const hn_cache *c, int seq, int group);
void hn_cache_fold(hn_cache *c, int seq, int owner, int rows);
/* Forgets committed rows from `rows` on (rows <= committed); pages behind return to the pool. Returns the rows that are
 * left: fewer than asked for where a window group has lost rows that the next one would see, or a state is of more. Then it is as many as the
 * index can bring back, or 0, and the caller computes the rest again. */
int hn_cache_rewind(hn_cache *c, int seq, int owner, int rows);

/* ---- shared prefixes ---- */

/* For an empty sequence: takes the pages that the index has for a prefix of text[0..n), each owner to the last boundary
 * where all its groups are valid: full groups from the first row on, window groups as far back as the next row sees. An
 * owner other than the target gets at most the target's rows. Returns the target's rows, a multiple of hn_cache_step; where
 * an owner binds, its rows less as many as it says. */
int hn_cache_restore(hn_cache *c, int seq, const int32_t *text, int n);
int hn_cache_block_rows(const hn_cache *c); /* of a block of the index */
int hn_cache_step(const hn_cache *c); /* the largest page of the target's groups, in rows */
/* Enters the sequence's full pages into the index. text: the tokens of its rows; valid[owner]: how many committed rows
 * of the owner hold that text. Where the index has the text already the sequence takes the pages there for its own, so
 * call it between passes, not between a reserve and its commit; behind every commit, so that pages of window groups are
 * entered while they are there, and the state at the last full block. Cheap where nothing is new; without memory a block is left out. */
void hn_cache_publish(hn_cache *c, int seq, const int32_t *text, const int *valid);
void hn_cache_forget(hn_cache *c); /* empties the index */
int hn_cache_states_kept(const hn_cache *c, int group); /* states in the index */

/* Debug walker: every page is free, in the index, or in tables; counts agree. */
bool hn_cache_valid(const hn_cache *c);
#endif
