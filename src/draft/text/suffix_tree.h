/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_tree.h - counts of strings in the stored texts, and of the tokens that follow them. A compressed trie of windows.
 *
 * Every position of a text starts a window: the up to D tokens from there on, within the text. The trie holds all
 * windows, so the node that a string of at most D tokens leads to counts its occurrences.
 *
 *     text  1 2 3 1 2          root ─┬─ "1 2" 2 ── "3 1 2" 1          a label refers to the stored text, where the
 *     (D 5)                          ├─ "2" 2 ── "3 1 2" 1            node's string occurred last; a new node stands
 *                                    └─ "3 1 2" 1                     only where the count changes
 *
 *   nodes    at most two for each stored token: memory is limited by tokens, 36 bytes a node and up to 8 for the token itself.
 *   kids     children of one node: a digital search tree over the bits of their first tokens, lowest bit first, so a lookup costs
 *            O(log kids), never more than 32 steps; each has the largest count below it, so the most frequent are found first.
 *   tokens   a ring addressed by a position that only increases. Texts are added at its end. A text is removed when it is the oldest,
 *            or when a later one contains all of it: so the last occurrence of a string that is still counted is always
 *            stored, and labels need no owner.
 *
 * Counts, strings and ties do not depend on the history: after a text was removed, or a tree grew token by token, the tree is
 * the same as if the remaining texts were stored at once.
 */
#ifndef HN_SUFFIX_TREE_H
#define HN_SUFFIX_TREE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_SUFFIX_WINDOW = 64 }; /* largest D */

typedef struct hn_suffix_node {
    uint32_t at;      /* position of the label's first token in the last occurrence of the node's string */
    uint32_t len;     /* tokens of the label */
    int32_t token;    /* the first of them */
    uint32_t count;   /* windows that begin with the node's string */
    uint32_t parent;  /* of a free node: the next free one */
    uint32_t kids;    /* root of the search tree of its children */
    uint32_t side[2]; /* children in its parent's search tree */
    uint32_t most;    /* largest count in that subtree, its own included */
} hn_suffix_node;

typedef struct hn_suffix_tree {
    int window;          /* D */
    uint32_t max_tokens; /* that can be stored */
    int32_t *ring;       /* [ring_size], 0 or a power of two; the token of a position is ring[position % ring_size] */
    uint32_t ring_size;
    uint32_t head, open, end; /* tokens head..end are stored, head..open counted */
    hn_suffix_node *node;     /* [node_size]; 0 is the root and stands for "none" in links */
    uint32_t node_size, n_nodes, n_free, free; /* n_nodes: ever used, including those in the free list */
    uint32_t active[HN_SUFFIX_WINDOW]; /* end of the unfinished window that starts at a position, by position % 64 */
    int n_active;                      /* they start at open - n_active .. open - 1 */
} hn_suffix_tree;

/* A place in the trie: after the first `used` tokens of a node's label (1..len). */
typedef struct hn_suffix_point {
    uint32_t node, used;
} hn_suffix_point;

typedef struct hn_suffix_next {
    int32_t token;
    uint32_t count; /* of the string with this token after it */
    hn_suffix_point point;
} hn_suffix_next;

/* 1 <= window <= HN_SUFFIX_WINDOW, max_tokens <= 2^30. Allocates nothing. */
void hn_suffix_init(hn_suffix_tree *t, int window, uint32_t max_tokens);
void hn_suffix_fini(hn_suffix_tree *t);                  /* frees; usable again as after init. A zeroed tree is fine */
void hn_suffix_clear(hn_suffix_tree *t, uint32_t first); /* empties it, keeps the memory; the next token gets this position */

/* Stores tokens at the end, not counted yet. False: no memory, or more than max_tokens; nothing changed. */
bool hn_suffix_put(hn_suffix_tree *t, const int32_t *token, uint32_t n);
/* Counts the stored tokens: O(D) a token. False: no memory; nothing changed. */
bool hn_suffix_count(hn_suffix_tree *t);
bool hn_suffix_count_some(hn_suffix_tree *t, uint32_t most); /* the next ones, so many at most */
/* Tokens stored after this begin a new text. All stored tokens must be counted. */
void hn_suffix_break(hn_suffix_tree *t);
/* Removes the stored tokens from `end` on, head <= end. Removing counted ones makes all uncounted (for a tree of one text). */
void hn_suffix_cut(hn_suffix_tree *t, uint32_t end);
/* Removes the windows that start in from..to-1 of the text that ends at `text_end` from the counts: finished windows,
 * the oldest ones or ones that a later text repeats. Their tokens stay stored until hn_suffix_release. */
void hn_suffix_remove(hn_suffix_tree *t, uint32_t from, uint32_t to, uint32_t text_end);
void hn_suffix_release(hn_suffix_tree *t, uint32_t head); /* drops the tokens before head */

static inline int32_t hn_suffix_token(const hn_suffix_tree *t, uint32_t position) {
    return t->ring[position & (t->ring_size - 1)];
}
static inline uint32_t hn_suffix_total(const hn_suffix_tree *t, hn_suffix_point p) { /* occurrences of its string */
    return t->node[p.node].count;
}
/* The point of the last m counted tokens of the text that is being stored, 1 <= m <= n_active. */
static inline hn_suffix_point hn_suffix_tail(const hn_suffix_tree *t, uint32_t m) {
    uint32_t v = t->active[(t->open - m) % HN_SUFFIX_WINDOW];
    return (hn_suffix_point){v, t->node[v].len};
}
/* Whether the string token[0..n) occurs; *out: its place. n >= 1 */
bool hn_suffix_find(const hn_suffix_tree *t, const int32_t *token, int n, hn_suffix_point *out);
/* The tokens that follow at least `least` >= 1 times: the up to max (>= 1) most frequent, of equally frequent ones first the one
 * that reached its count first (whose last occurrence is the oldest). Returns how many. */
int hn_suffix_follow(const hn_suffix_tree *t, hn_suffix_point p, uint32_t least, hn_suffix_next *out, int max);

size_t hn_suffix_bytes(const hn_suffix_tree *t);   /* allocated */
uint32_t hn_suffix_capacity(size_t bytes);         /* max_tokens that keep a tree within this many bytes */
bool hn_suffix_valid(const hn_suffix_tree *t);     /* debug walker: counts, labels, links, the unique shape */
#endif
