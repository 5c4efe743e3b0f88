/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - all state of all sequences, in pages of one pool (contracts C4, C7).
 *
 * A cache group is a set of layers that keep the same rows. Every group has a page table of its own in each sequence;
 * pages have equal bytes for all groups, a group's page holds a power of two of rows. Slot s of a sequence lies in page
 * table[s / page_rows], row s % page_rows.
 *
 *   slots:   0 ............ committed | tentative rows of this round (one slot a row, in row order) | free
 *
 * Committed rows have slot == position. Tentative rows are read by the pass that wrote them alone; commit keeps a path of
 * them in order and forgets the rest. One thread of control an engine.
 */
#ifndef HN_CACHE_H
#define HN_CACHE_H
#include "ops/ops.h"

typedef struct hn_cache_group {
    const char *name;
    int layers, kv_heads, head_dim; /* equal over the group */
    hn_dtype type;                  /* HN_BF16, HN_F16 or HN_F32 */
    int page_rows;                  /* set by hn_cache_open for every group but the first, which names it */
    size_t row_bytes;               /* set by hn_cache_open: K and V of one row over all layers */
} hn_cache_group;

enum { HN_MAX_GROUPS = 8 };

typedef struct hn_cache hn_cache;

/* Plans max_seqs sequences of `rows` committed rows plus one pass of tentative ones. Memory is reserved here and touched
 * as rows come. groups[0].page_rows fixes the page size. */
hunch_status hn_cache_open(hn_cache **out, const hn_ops *ops, const hn_cache_group *groups, int n_groups, int max_seqs,
                           int rows, hunch_error *err);
void hn_cache_close(hn_cache **c);
size_t hn_cache_bytes(const hn_cache *c);
int hn_cache_free_pages(const hn_cache *c);

/* Geometry of one layer of a group, for the ops. */
hn_kv hn_cache_kv(const hn_cache *c, int group, int layer);

/* Sequences are ids 0..max_seqs-1. begin: empty. end: its pages return to the pool. */
void hn_cache_seq_begin(hn_cache *c, int seq);
void hn_cache_seq_end(hn_cache *c, int seq);
int hn_cache_committed(const hn_cache *c, int seq);
/* Page table of a group (valid until the next reserve, commit or end). */
const int32_t *hn_cache_pages(const hn_cache *c, int seq, int group, int *n_pages);
int hn_cache_table_stride(const hn_cache *c, int group); /* pages a table can hold */

/* Makes room for `tentative` rows behind the committed ones. HUNCH_NO_MEMORY: no page left (nothing changed). */
hunch_status hn_cache_reserve(hn_cache *c, int seq, int tentative, hunch_error *err);
/* Keeps n tentative rows: index[i] is the row's number among this round's tentative rows (slot - committed), ascending,
 * in path order. They become rows committed .. committed + n - 1. index NULL: rows 0..n-1 (a chain or a chunk). */
void hn_cache_commit(hn_cache *c, int seq, const int16_t *index, int n);
/* Forgets committed rows from `rows` on (rows <= committed); pages behind return to the pool. */
void hn_cache_rewind(hn_cache *c, int seq, int rows);
/* Debug walker: every page is free or in exactly one table. */
bool hn_cache_valid(const hn_cache *c);
#endif
