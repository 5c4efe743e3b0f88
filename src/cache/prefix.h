/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.h - the prefix index: which texts have their rows in pages (contract C7).
 *
 * A trie whose nodes are blocks of block_rows tokens; a block stands for the whole text from the root to its end.
 *
 *   (root) --[t0 .. t63]-- block --[t64 .. t127]-- block        each block: the pages of all cache groups
 *                               \--[u64 .. u127]-- block        that end in it a slot, HN_NO_PAGE where there is none
 *
 * It owns the blocks, their names and the order of their use. It does not own pages: cache_share.c decides what is
 * entered and evicted, and counts references. In memory only; what the tokens mean is nothing to it.
 */
#ifndef HN_PREFIX_H
#define HN_PREFIX_H
#include "ops/ops.h"

typedef struct hn_block hn_block;
struct hn_block {
    hn_block *parent;        /* NULL: the text begins here */
    hn_block *next;          /* in the bucket */
    hn_block *newer, *older; /* in the order of use */
    uint64_t hash;           /* of the whole text */
    uint64_t used;           /* when: the larger, the newer */
    int depth;               /* blocks before this one */
    int folded;              /* rows of the state among its pages, if there is one */
    int children;
    int users;       /* sequences whose text in the index ends here; the owner of the index counts */
    int32_t *page;   /* [n_slots] */
    int32_t token[]; /* [block_rows], then the pages */
};

typedef struct hn_prefix {
    int block_rows, n_slots;
    size_t n_buckets;  /* a power of two */
    hn_block **bucket; /* [n_buckets] */
    hn_block *newest, *oldest;
    uint64_t clock; /* counts uses; the owner of the index may count its own with it */
    int n_blocks;
} hn_prefix;

/* max_blocks: how many there will be at most; decides the number of buckets only. */
hunch_status hn_prefix_init(hn_prefix *x, int block_rows, int n_slots, int max_blocks, hunch_error *err);
void hn_prefix_fini(hn_prefix *x);  /* a zeroed index is fine */
void hn_prefix_clear(hn_prefix *x); /* frees all blocks */

/* The block behind parent (NULL: the first) with these block_rows tokens, or NULL. Equal means equal tokens. */
hn_block *hn_prefix_child(const hn_prefix *x, const hn_block *parent, const int32_t *token);
/* Adds it, as the newest, without pages; child() of the same must be NULL. NULL: no memory, nothing changed. */
hn_block *hn_prefix_add(hn_prefix *x, hn_block *parent, const int32_t *token);
/* Frees a block without children and users. */
void hn_prefix_remove(hn_prefix *x, hn_block *b);
/* b and all before it become the newest, the first block of the text newest of all. b NULL is fine. */
void hn_prefix_touch(hn_prefix *x, hn_block *b);

/* Debug walker: the names, the order and the children agree. */
bool hn_prefix_valid(const hn_prefix *x);
#endif
