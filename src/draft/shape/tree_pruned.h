/* SPDX-License-Identifier: Apache-2.0 */
/* tree_pruned.h - DART's tree (2601.19278, 3.3): for a head whose levels do not depend on each other, paths that are likely by n-grams
 * of a corpus. Only bookkeeping: no passes, no logits.
 *
 * At level l = 0, 1, ... the likeliest tokens of the head are added after each of the best paths so far. With p the softmax over these
 * tokens alone, and g the n-grams' probability after the last two tokens of text and path:
 *
 *   score(path y) = score(path) + (l + 1)^-0.7 · (0.9^l · log(p(y) + 1e-10) + 0.5 · log(g(y) + 1e-10))
 *
 * The best paths that do not end the text are continued (then those that do), and of all nodes the best are verified. Without n-grams the
 * second term is left out. */
#ifndef HN_TREE_PRUNED_H
#define HN_TREE_PRUNED_H
#include "draft/shape/ngram_trie.h"

enum { HN_PRUNED_TOKENS = 25, HN_PRUNED_PATHS = 20 };

typedef struct hn_pruned_node {
    int32_t token;
    int parent;  /* an earlier one, -1: the root */
    float p;     /* its probability by the head, after its path */
    float score;
} hn_pruned_node;

typedef struct hn_pruned {
    int n, cap;
    hn_pruned_node *node; /* [cap] in the order of creation */
    int n_levels, first;  /* levels so far; the first node of the newest */
    int path[HN_PRUNED_PATHS], n_paths; /* that are continued, best first; before the first level none: the root is */
    int32_t context[HN_TRIE_CONTEXT]; /* the text's end */
    int n_context;
} hn_pruned;

hunch_status hn_pruned_open(hn_pruned *t, int levels, hunch_error *err);
void hn_pruned_close(hn_pruned *t); /* zeroed is fine */
/* text: its last tokens, the newest last. */
void hn_pruned_start(hn_pruned *t, const int32_t *text, int n);
/* One more level: the head's n <= HN_PRUNED_TOKENS likeliest tokens with their probabilities, best first. trie: NULL: none.
 * ends: the token that ends a text, -1: none. At most as many levels as it was opened for. */
void hn_pruned_level(hn_pruned *t, const int32_t *token, const float *p, int n, const hn_trie *trie, int32_t ends);
/* The `total` nodes of best score, of equal ones the earlier, so that none comes without its parent: list[i], ascending. Returns
 * how many. */
int hn_pruned_best(const hn_pruned *t, int total, int *list);
#endif
