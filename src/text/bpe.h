/* SPDX-License-Identifier: Apache-2.0 */
/* bpe.h - byte-pair merging, the part that both tokenizer families share: a table of pairs that may merge, by rank, and
 * the merging of one word. Knows symbols (ids), not text; which ids a text starts from is the tokenizer's matter. */
#ifndef HN_BPE_H
#define HN_BPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hn_merge {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank; /* lower merges first; equal ranks from left to right */
    int32_t id;    /* what the two become */
} hn_merge;

typedef struct hn_bpe {
    hn_merge *slots; /* open addressing, a power of two */
    size_t mask;
    uint64_t seed;
} hn_bpe;

/* Room for `count` pairs. False: no memory. */
bool hn_bpe_init(hn_bpe *b, size_t count);
void hn_bpe_fini(hn_bpe *b);
/* Of two ranks for one pair the lower stays. At most `count` calls. */
void hn_bpe_put(hn_bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t id);
/* The pair that was put at or behind *at, in any order; *at goes on from 0. NULL: no more. */
const hn_merge *hn_bpe_next(const hn_bpe *b, size_t *at);

typedef struct hn_bpe_item { /* a pair that could merge when it was pushed */
    uint64_t key;            /* rank << 32 | position of the left symbol: what merges next is the least */
    int32_t left, right, id;
} hn_bpe_item;

/* Symbols of the word at hand and room to merge them; reused from word to word. */
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
/* Merges the first *n symbols in place and sets *n to what is left. O(n log n). False: no memory. */
bool hn_bpe_merge(const hn_bpe *b, hn_bpe_work *w, size_t *n);
#endif
