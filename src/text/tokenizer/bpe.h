/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.h - byte-pair merging, shared by both tokenizer families: a table of pairs that may merge, by rank, and the merging
 * of one word. Works on symbols (ids), not text; the tokenizer chooses the ids that a word starts from. */
#ifndef HN_BPE_H
#define HN_BPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hn_merge {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank; /* lower merges first; equal ranks from left to right */
    int32_t id;    /* of the merged symbol */
} hn_merge;

typedef struct hn_bpe {
    hn_merge *slots; /* open addressing, a power of two */
    size_t mask;
    uint64_t seed;
} hn_bpe;

/* Room for `count` pairs. False: no memory. */
bool hn_bpe_init(hn_bpe *b, size_t count);
void hn_bpe_fini(hn_bpe *b);
/* Adds a pair; if it was added before, the lower rank stays. At most `count` calls. */
void hn_bpe_put(hn_bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t id);
/* Iterates over the pairs in any order: starts with *at = 0, which each call advances. NULL: no more. */
const hn_merge *hn_bpe_next(const hn_bpe *b, size_t *at);

typedef struct hn_bpe_item { /* a pair that could merge when it was pushed */
    uint64_t key;            /* rank << 32 | position of the left symbol: the least merges next */
    int32_t left, right, id;
} hn_bpe_item;

/* Symbols of the current word and work memory for merging; reused from word to word. */
typedef struct hn_bpe_work {
    int32_t *ids;     /* negative: a symbol that merges with nothing */
    uint32_t *starts; /* where in the word each symbol begins */
    int32_t *before, *after;
    size_t cap_ids, cap_starts, cap_before, cap_after;
    hn_bpe_item *heap;
    size_t n_heap, cap_heap;
} hn_bpe_work;

void hn_bpe_work_fini(hn_bpe_work *w);
/* Room for n symbols in ids and starts. */
bool hn_bpe_work_reserve(hn_bpe_work *w, size_t n);
/* Merges the first *n symbols in place and sets *n to the number that remains. O(n log n). False: no memory. */
bool hn_bpe_merge(const hn_bpe *b, hn_bpe_work *w, size_t *n);
#endif
