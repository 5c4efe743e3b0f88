/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_index.h - positions of n-grams in one growing text, the first or the last, for every n of a range.
 *
 * One hash table for each length, filled as the text grows: a lookup costs O(max) for any length of text, and a text of L
 * tokens takes at most 32 * L * (max - min + 1) bytes. The text belongs to the caller: entries hold positions.
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
    int end;       /* n-grams that end at or before this position have been added */
    hn_ngram_table table[HN_NGRAM_MAX + 1]; /* by length */
} hn_ngram_index;

void hn_ngram_index_init(hn_ngram_index *x, int min, int max, bool latest); /* allocates nothing */
/* Of an index whose tables have this many n-grams each. */
size_t hn_ngram_index_bytes(const hn_ngram_index *x, size_t grams);
void hn_ngram_index_fini(hn_ngram_index *x);  /* frees; usable again as after init */

/* Adds every n-gram of token[0..end) that was not added yet; a smaller end than before empties the index and starts over. The
 * tokens before the old end must not have changed. Without memory n-grams are left out: they are not found later. */
void hn_ngram_index_extend(hn_ngram_index *x, const int32_t *token, int end);

/* Searches for the n-gram that ends the text, token[n-len..n), among those added, for ascending len from min. position[len] is
 * filled up to the longest length that occurs, which is returned (0: none). */
int hn_ngram_index_find(const hn_ngram_index *x, const int32_t *token, int n, int32_t position[HN_NGRAM_MAX + 1]);
#endif
