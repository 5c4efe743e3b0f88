/* SPDX-License-Identifier: Apache-2.0 */
/* suffix_store.h - the texts of earlier sequences, in one suffix tree of bounded size.
 *
 * First in, first out, whole texts. If one text is a prefix of another, like that of a preempted sequence and its final text, or those
 * of a chat's successive turns, it is counted once: the longer one replaces it.
 */
#ifndef HN_SUFFIX_STORE_H
#define HN_SUFFIX_STORE_H
#include "draft/text/suffix_tree.h"

typedef struct hn_suffix_text {
    uint32_t start, n; /* its tokens in the tree's ring */
    bool gone;         /* replaced: not counted, its tokens are stored until it is the oldest */
} hn_suffix_text;

typedef struct hn_suffix_store {
    hn_suffix_tree tree;
    hn_suffix_text *text; /* [max_texts], a ring */
    int max_texts, first, n;
} hn_suffix_store;

/* bytes: limit of the tree's memory. max_texts 0: stores nothing. False: no memory. */
bool hn_suffix_store_init(hn_suffix_store *s, int window, size_t bytes, int max_texts);
void hn_suffix_store_fini(hn_suffix_store *s);
/* Adds the stored tokens of `text`, the newest ones if there are too many. Without memory it is left out. */
void hn_suffix_store_add(hn_suffix_store *s, const hn_suffix_tree *text);
void hn_suffix_store_clear(hn_suffix_store *s);
#endif
