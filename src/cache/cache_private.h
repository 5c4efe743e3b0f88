/* SPDX-License-Identifier: Apache-2.0 */
/* cache_private.h - shared by cache.c (pool and tables) and cache_share.c (pages in more than one place).
 *
 * A page is in one of these states:
 *
 *   free              tables 0, blocks 0      on the stack of free pages
 *   of a sequence     tables 1, blocks 0      the only state in which rows are written
 *   shared            otherwise               read only
 *   idle              tables 0, blocks > 0    counts as free: eviction makes it free
 *
 * In every table the indexed pages come first. Those of group 0 are the pages of the blocks on the path to seq->block; for a
 * window group without those that the table has released.
 */
#ifndef HN_CACHE_PRIVATE_H
#define HN_CACHE_PRIVATE_H
#include "cache/cache.h"
#include "cache/prefix.h"

_Static_assert((int)HN_PREFIX_OWNERS == (int)HN_MAX_OWNERS, "states of a block");

typedef struct hn_page_use {
    int32_t tables; /* number of page table entries with this page */
    int32_t blocks; /* number of index blocks with it: several if their texts differ after a page shorter than a block */
    uint64_t idle_since; /* of idle pages: by the clock of the index */
} hn_page_use;

typedef struct hn_seq {
    bool live;
    int committed[HN_MAX_OWNERS];
    int folded[HN_MAX_OWNERS]; /* of owners with a state: may exceed committed until the commit of a pass */
    int n_pages[HN_MAX_GROUPS];
    int first[HN_MAX_GROUPS];      /* entries before it are HN_NO_PAGE; 0 in full groups */
    int32_t *pages[HN_MAX_GROUPS]; /* [stride of the group] */
    int32_t *next[HN_MAX_GROUPS];  /* of state groups: pages that the next pass writes; [0] HN_NO_PAGE: those of the table */
    int published[HN_MAX_GROUPS];  /* number of leading pages that are in the index, or have an equal there, or were released */
    hn_block *block;               /* the last of the published[0] blocks of the text; NULL: none */
} hn_seq;

struct hn_cache {
    const hn_ops *ops;
    hn_cache_group group[HN_MAX_GROUPS];
    int stride[HN_MAX_GROUPS];         /* entries of a table of the group */
    int first_slot[HN_MAX_GROUPS + 1]; /* first slot of the group in a block of the index */
    int n_groups, max_seqs, rows;
    bool windows; /* some group has one */
    bool states[HN_MAX_OWNERS]; /* owners with a state */
    int n_pages, n_free, n_idle;
    int state_pages[HN_MAX_GROUPS]; /* of state groups: pages in the index */
    size_t page_bytes;
    hn_mem *pool;
    hn_mem *moves;    /* device copy of one move: from and to [HN_KEY_BLOCK], page table [largest stride] */
    int32_t *free;    /* stack of page numbers */
    hn_page_use *use; /* [n_pages] */
    hn_seq *seq;      /* [max_seqs] */
    hn_prefix prefix;
    hn_block **path; /* [stride of group 0] work memory: the blocks of a text */
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

/* The row from which on an owner's rows must be kept: `back` before its end; for HN_CACHE_ROWS the first that is not folded. */
static inline int hn_first_row_needed(const hn_cache *c, const hn_seq *s, int group) {
    const int owner = c->group[group].owner, committed = s->committed[owner] - c->group[group].back;
    if (c->group[group].kind != HN_CACHE_ROWS) return committed;
    return s->folded[owner] < s->committed[owner] ? s->folded[owner] : s->committed[owner];
}

/* True if the state of a sequence is shared, that is read only. */
static inline bool hn_state_shared(const hn_cache *c, const hn_seq *s, int group) {
    const hn_page_use *u = s->n_pages[group] > 0 ? &c->use[s->pages[group][0]] : NULL;
    return u && (u->tables > 1 || u->blocks > 0);
}

/* cache.c. The most pages that a sequence of `rows` rows and a pass after them needs. */
int64_t hn_cache_pages_at_most(const hn_cache *c, int group, int64_t rows);
/* A table takes a page that is in use elsewhere already; a table releases a page. */
void hn_page_take(hn_cache *c, int32_t page);
void hn_page_release(hn_cache *c, int32_t page);
void hn_page_free(hn_cache *c, int32_t page); /* returns it to the stack: no table and no block has it */

/* cache_share.c. Takes idle pages out of the index; there must be one. If none is free afterwards, a second call frees one. */
void hn_cache_evict(hn_cache *c);
/* The owner dropped its rows from `rows` on; if it is the target, no later page counts as published, of any owner. */
void hn_cache_unpublish(hn_cache *c, hn_seq *s, int owner, int rows);
/* Sets the last block of the sequence's text in the index to b (NULL: none). */
void hn_cache_set_last_block(hn_cache *c, hn_seq *s, hn_block *b);
/* The number of published rows of the owner, `rows` at most, after which the index has all pages that its window groups need.
 * The table takes these pages back; the caller releases those after them. */
int hn_cache_reclaim(hn_cache *c, hn_seq *s, int owner, int rows);
#endif
