/* SPDX-License-Identifier: Apache-2.0 */
/* cache_private.h - what cache.c (pool and tables) and cache_share.c (pages in more than one place) share.
 *
 * A page is in one of these states:
 *
 *   free              tables 0, blocks 0      on the stack of free pages
 *   of a sequence     tables 1, blocks 0      the only state in which rows are written
 *   shared            otherwise               read only
 *   idle              tables 0, blocks > 0    counts as free: eviction makes it free
 *
 * In every table the indexed pages come first. Those of group 0 are the pages of the blocks on the path to seq->block; of
 * a window group without those that the table has let go.
 */
#ifndef HN_CACHE_PRIVATE_H
#define HN_CACHE_PRIVATE_H
#include "cache/cache.h"
#include "cache/prefix.h"

typedef struct hn_page_use {
    int32_t tables; /* entries of page tables that name the page */
    int32_t blocks; /* of the index that name it: several where their texts part after a page shorter than a block */
    uint64_t idle_since; /* on the clock of the index; of idle pages */
} hn_page_use;

typedef struct hn_seq {
    bool live;
    int committed[HN_MAX_OWNERS];
    int folded[HN_MAX_OWNERS]; /* of owners with a state: may be ahead of committed until the commit of a pass */
    int n_pages[HN_MAX_GROUPS];
    int first[HN_MAX_GROUPS];      /* entries before it are HN_NO_PAGE; 0 in full groups */
    int32_t *pages[HN_MAX_GROUPS]; /* [stride of the group] */
    int32_t *next[HN_MAX_GROUPS];  /* of state groups: the pages that the next pass writes; [0] HN_NO_PAGE: those of the table */
    int published[HN_MAX_GROUPS];  /* leading pages that the index has, or has an equal of, or that were let go */
    hn_block *block;               /* the last of the published[0] blocks of the text; NULL: none */
} hn_seq;

struct hn_cache {
    const hn_ops *ops;
    hn_cache_group group[HN_MAX_GROUPS];
    int stride[HN_MAX_GROUPS];         /* pages a table of the group can name */
    int first_slot[HN_MAX_GROUPS + 1]; /* of the group in a block of the index */
    int n_groups, max_seqs, rows;
    bool windows; /* some group has one */
    bool states[HN_MAX_OWNERS]; /* owners with a state */
    int n_pages, n_free, n_idle;
    int state_pages[HN_MAX_GROUPS]; /* of state groups: pages that the index has */
    size_t page_bytes;
    hn_mem *pool;
    hn_mem *moves;    /* device copy of one move: from and to [HN_KEY_BLOCK], page table [largest stride] */
    int32_t *free;    /* stack of page numbers */
    hn_page_use *use; /* [n_pages] */
    hn_seq *seq;      /* [max_seqs] */
    hn_prefix prefix;
    hn_block **path; /* [stride of group 0] scratch: the blocks of a text */
};

/* The first page that a group needs behind `rows` rows: that of the first row which the next one sees. */
static inline int hn_first_page(const hn_cache *c, int group, int rows) {
    const int first_row = rows - c->group[group].window + 1;
    return c->group[group].window && first_row > 0 ? first_row / c->group[group].page_rows : 0;
}

/* Pages of a table that holds `rows` rows. */
static inline int hn_pages_of(const hn_cache *c, int group, int rows) {
    const hn_cache_group *d = &c->group[group];
    if (d->kind != HN_CACHE_STATE) return (rows + d->page_rows - 1) / d->page_rows;
    const int units = hn_cache_page_units(c, group);
    return rows > 0 ? (d->units + units - 1) / units : 0;
}

/* The rows of an owner that must be there behind a rewind to none: those that are in no state yet. */
static inline int hn_rows_needed(const hn_cache *c, const hn_seq *s, int group) {
    const int owner = c->group[group].owner, committed = s->committed[owner] - c->group[group].back;
    if (c->group[group].kind != HN_CACHE_ROWS) return committed;
    return s->folded[owner] < s->committed[owner] ? s->folded[owner] : s->committed[owner];
}

/* Is the state of a sequence read only? */
static inline bool hn_state_shared(const hn_cache *c, const hn_seq *s, int group) {
    const hn_page_use *u = s->n_pages[group] > 0 ? &c->use[s->pages[group][0]] : NULL;
    return u && (u->tables > 1 || u->blocks > 0);
}

/* cache.c. Pages that a sequence of `rows` rows and a pass behind them takes at most. */
int64_t hn_cache_pages_at_most(const hn_cache *c, int group, int64_t rows);
/* A table takes a page that is in another place already; a table lets go of a page. */
void hn_page_take(hn_cache *c, int32_t page);
void hn_page_release(hn_cache *c, int32_t page);
void hn_page_free(hn_cache *c, int32_t page); /* back to the stack: no table and no block names it */

/* cache_share.c. Takes idle pages out of the index; there must be one. Where none is free then, once more will do. */
void hn_cache_evict(hn_cache *c);
/* The owner has no rows from `rows` on any more; where it is the target nothing behind counts as published, of any owner. */
void hn_cache_unpublish(hn_cache *c, hn_seq *s, int owner, int rows);
/* The text of the sequence that is in the index ends with block b now (NULL: nothing is). */
void hn_cache_end_path(hn_cache *c, hn_seq *s, hn_block *b);
/* Published rows of the owner, `rows` at most, behind which its window groups can have all that they need. The table takes
 * these pages back; the caller lets go of those behind. */
int hn_cache_take_back(hn_cache *c, hn_seq *s, int owner, int rows);
#endif
