/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.h - the prefix index: finds the pages with the rows of a text (contract C7).
 *
 * A trie whose nodes are blocks of block_rows tokens; a block represents the whole text from the root to its end.
 *
 *   (root) --[t0 .. t63]-- block --[t64 .. t127]-- block        each block: a slot for each page of all cache
 *                               \--[u64 .. u127]-- block        groups that ends in it, HN_NO_PAGE if there is none
 *
 * It owns the blocks, their tokens and the order of their use. It does not own pages: cache_share.c decides what is
 * entered and evicted, and counts references. In memory only.
 */
#ifndef HN_PREFIX_H
#define HN_PREFIX_H
#include "ops/ops.h"

enum { HN_PREFIX_OWNERS = 16 }; /* of sequences' pages: models, each with a state at most */

typedef struct hn_block hn_block;
struct hn_block {
    hn_block *parent;        /* NULL: the text begins here */
    hn_block *next;          /* in the bucket */
    hn_block *newer, *older; /* in the order of use */
    uint64_t hash;           /* of the whole text */
    uint64_t used;           /* time of the last use: the larger, the newer */
    int depth;               /* blocks before this one */
    int folded[HN_PREFIX_OWNERS]; /* rows folded into each owner's state among its pages, if there is one */
    int children;
    int users;       /* sequences whose text in the index ends here; maintained by the owner of the index */
    int32_t *page;   /* [n_slots] */
    int32_t token[]; /* [block_rows], then the pages */
};

typedef struct hn_prefix {
    int block_rows, n_slots;
    size_t n_buckets;  /* a power of two */
    hn_block **bucket; /* [n_buckets] */
    hn_block *newest, *oldest;
    uint64_t clock; /* counts uses; the owner of the index may use it for its own events too */
    int n_blocks;
} hn_prefix;

/* max_blocks: expected maximum, which only determines the number of buckets. */
hunch_status hn_prefix_init(hn_prefix *x, int block_rows, int n_slots, int max_blocks, hunch_error *err);
void hn_prefix_fini(hn_prefix *x);  /* a zeroed index is fine */
void hn_prefix_clear(hn_prefix *x); /* frees all blocks */

/* The child of parent (NULL: of the root) with these block_rows tokens, or NULL. Tokens are compared, not only hashes. */
hn_block *hn_prefix_child(const hn_prefix *x, const hn_block *parent, const int32_t *token);
/* Adds that child, as the newest, without pages; it must not exist yet. NULL: no memory, nothing changed. */
hn_block *hn_prefix_add(hn_prefix *x, hn_block *parent, const int32_t *token);
/* Frees a block without children and users. */
void hn_prefix_remove(hn_prefix *x, hn_block *b);
/* Makes b and all blocks before it the newest, the first block of the text newest of all. b NULL is fine. */
void hn_prefix_touch(hn_prefix *x, hn_block *b);

/* For tests: true if the hash table, the list and the children agree. */
bool hn_prefix_valid(const hn_prefix *x);
#endif
