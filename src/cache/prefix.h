/* SPDX-License-Identifier: Apache-2.0 */
/* prefix.h - the prefix index: finds the pages with the rows of a text (contract C7).
 *
 * A trie whose nodes are nodes of node_rows tokens; a node represents the whole text from the root to its end.
 *
 *   (root) --[t0 .. t63]-- node --[t64 .. t127]-- node        each node: a slot for each page of all cache
 *                               \--[u64 .. u127]-- node        groups that ends in it, HN_NO_PAGE if there is none
 *                                                \--[u128 .. u140]-- leaf
 *
 * The end of a text that fills no node is a leaf, of fewer tokens: its pages are those with the text's last rows, which are not full. A
 * text that begins with some of its tokens may continue inside it.
 *
 * It owns the nodes, their tokens and the order of their use. It does not own pages: cache_share.c decides what is
 * entered and evicted, and counts references. In memory only.
 */
#ifndef HN_PREFIX_H
#define HN_PREFIX_H
#include "ops/ops.h"

enum { HN_PREFIX_MODELS = 16 }; /* of sequences' pages: models, each with a state at most */

typedef struct hn_prefix_node hn_prefix_node;
struct hn_prefix_node {
    hn_prefix_node *parent;        /* NULL: the text begins here */
    hn_prefix_node *next;          /* in the bucket */
    hn_prefix_node *newer, *older; /* in the order of use */
    hn_prefix_node *newer_end, *older_end; /* the same among ends of texts; of others NULL */
    bool is_end;             /* it has neither children nor users */
    uint64_t hash;           /* of the whole text */
    uint64_t salt;           /* of the text: texts of different salts have no node in common */
    uint64_t used;           /* time of the last use: the larger, the newer */
    int depth;               /* nodes before this one */
    int n;                   /* tokens: node_rows; fewer: a leaf */
    union {
        int absorbed[HN_PREFIX_MODELS]; /* rows absorbed into each model's state among its pages, if there is one */
        int rows[HN_PREFIX_MODELS];     /* of a leaf: rows of each model from the beginning of the text */
    };
    int children;
    int users;       /* sequences whose text in the index ends here (hn_prefix_use) */
    int32_t *page;   /* [n_slots] */
    int32_t token[]; /* [node_rows], then the pages */
};

typedef struct hn_prefix {
    int node_rows, n_slots;
    size_t n_buckets;  /* a power of two */
    hn_prefix_node **bucket; /* [n_buckets] */
    uint64_t key[2];   /* of the hash, chosen at random: a user cannot send texts whose nodes meet in one bucket */
    hn_prefix_node *newest, *oldest;
    hn_prefix_node *newest_end, *oldest_end; /* nodes without children and users, in the order of use: what may be evicted first */
    uint64_t clock; /* counts uses; the owner of the index may use it for its own events too */
    int n_blocks;
} hn_prefix;

/* max_nodes: expected maximum, which only determines the number of buckets. */
hunch_status hn_prefix_init(hn_prefix *x, int node_rows, int n_slots, int max_nodes, hunch_error *err);
void hn_prefix_fini(hn_prefix *x);  /* a zeroed index is fine */
void hn_prefix_clear(hn_prefix *x); /* frees all nodes */

/* The child of parent (NULL: of the salt's root) with these node_rows tokens, or NULL. Tokens are compared, not only hashes. */
hn_prefix_node *hn_prefix_child(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent, const int32_t *token);
/* The leaf of parent (NULL: of the salt's root) that shares most of the n first tokens, at least one: *same of them; of equal ones
 * the one that was added last. NULL: none does. */
hn_prefix_node *hn_prefix_leaf(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent, const int32_t *token, int n, int *same);
/* The leaf of parent that was added when there were `most` later ones; NULL: it has no more than that. */
hn_prefix_node *hn_prefix_leaf_beyond(const hn_prefix *x, uint64_t salt, const hn_prefix_node *parent, int most);
/* Adds a child of n tokens, as the newest, without pages; it must not exist yet. n: 1 to node_rows; fewer: a leaf. NULL: no memory,
 * nothing changed. */
hn_prefix_node *hn_prefix_add(hn_prefix *x, uint64_t salt, hn_prefix_node *parent, const int32_t *token, int n);
/* Frees a node without children and users. */
void hn_prefix_remove(hn_prefix *x, hn_prefix_node *b);
/* One sequence more (1) or less (-1) whose text ends in b. */
void hn_prefix_use(hn_prefix *x, hn_prefix_node *b, int more);
/* Makes b and all nodes before it the newest, the first node of the text newest of all. b NULL is fine. */
void hn_prefix_touch(hn_prefix *x, hn_prefix_node *b);

/* For tests: true if the hash table, the list and the children agree. */
bool hn_prefix_valid(const hn_prefix *x);
#endif
