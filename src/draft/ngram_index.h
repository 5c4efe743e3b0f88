/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_index.h - where in one growing text an n-gram occurs, first or last, for every n of a range.
 *
 * One hash table a length, filled as the text grows: a lookup costs O(max) however long the text is, and a text of L
 * tokens costs at most 32 * L * (max - min + 1) bytes. The text stays with its owner: entries hold positions.
 */
#ifndef HN_NGRAM_INDEX_H
#define HN_NGRAM_INDEX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_NGRAM_MAX = 32 }; /* longest n-gram */

typedef struct hn_ngram_slot {
    uint32_t hash;
    int32_t position; /* where the n-gram starts, -1: empty */
} hn_ngram_slot;

typedef struct hn_ngram_table {
    hn_ngram_slot *slot; /* [size], open addressing */
    size_t size, used;   /* size: 0 or a power of two */
} hn_ngram_table;

typedef struct hn_ngram_index {
    int min, max;  /* 1 <= min <= max <= HN_NGRAM_MAX */
    bool latest;   /* keeps the last occurrence, else the first */
    int end;       /* n-grams that end at or before this position are in */
    hn_ngram_table table[HN_NGRAM_MAX + 1]; /* by length */
} hn_ngram_index;

void hn_ngram_index_init(hn_ngram_index *x, int min, int max, bool latest); /* allocates nothing */
void hn_ngram_index_fini(hn_ngram_index *x);  /* frees; usable again as after init */

/* Takes in every n-gram of token[0..end) that is not in yet; a smaller end than before forgets and starts over. The
 * tokens before the old end must not have changed. Without memory n-grams are left out: they are not found later. */
void hn_ngram_index_extend(hn_ngram_index *x, const int32_t *token, int end);

/* Looks for the n-gram that ends the text, token[n-len..n), among those in, for rising len from min. position[len] is
 * filled up to the longest length that occurs, which is returned (0: none). */
int hn_ngram_index_find(const hn_ngram_index *x, const int32_t *token, int n, int32_t position[HN_NGRAM_MAX + 1]);
#endif
