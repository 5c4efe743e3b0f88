/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_counts.h - counts of the tokens that followed n-grams of 1 to 4 tokens, in bounded memory.
 *
 *   entry  an n-gram ─ first → pair (token, count) → pair → … in the order in which the tokens were first seen
 *                    ─ best  → the pair of the largest count, the first seen of equals
 *
 * Entries and pairs are in arrays and are found through two hash tables: entries by n-gram, pairs by (entry, token), so
 * that counting takes the same time however many tokens follow an n-gram.
 */
#ifndef HN_NGRAM_COUNTS_H
#define HN_NGRAM_COUNTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_COUNTS_N = 4 };
#define HN_COUNTS_NONE UINT32_MAX /* no pair */

typedef struct hn_counts_entry {
    int32_t gram[HN_COUNTS_N]; /* -1 after its last token */
    uint32_t first, last, best, n_pairs;
    uint32_t stamp; /* the clock when it was counted last */
    uint64_t sum;   /* of its pairs' counts */
} hn_counts_entry;

typedef struct hn_counts_pair {
    int32_t token;
    uint32_t count; /* stays at UINT32_MAX */
    uint32_t next, entry;
} hn_counts_pair;

typedef struct hn_counts {
    size_t limit; /* bytes; 0: none */
    uint32_t clock;
    hn_counts_entry *entry;
    size_t n_entries, cap_entries;
    hn_counts_pair *pair;
    size_t n_pairs, cap_pairs;
    uint32_t *entry_slot, *pair_slot; /* index, HN_COUNTS_NONE: empty; open addressing */
    size_t entry_slots, pair_slots;   /* 0 or a power of two */
} hn_counts;

void hn_counts_init(hn_counts *x, size_t limit); /* allocates nothing */
void hn_counts_fini(hn_counts *x);               /* frees; usable again as after init */

/* When memory would exceed the limit, the half of the n-grams that was counted longest ago is dropped. False: no memory; the
 * token was not counted. count > 0. */
bool hn_counts_add(hn_counts *x, const int32_t gram[HN_COUNTS_N], int32_t token, uint32_t count);
/* Counts the tokens at from..to-1 after the 1 to 4 tokens before each. False: no memory, the rest was left out. */
bool hn_counts_text(hn_counts *x, const int32_t *token, int from, int to);

/* NULL: never seen. Valid until the next add. */
const hn_counts_entry *hn_counts_find(const hn_counts *x, const int32_t gram[HN_COUNTS_N]);
const hn_counts_pair *hn_counts_pair_of(const hn_counts *x, const hn_counts_entry *e, int32_t token);
/* The n tokens as a key. 1 <= n <= HN_COUNTS_N. */
void hn_counts_gram(int32_t gram[HN_COUNTS_N], const int32_t *token, int n);
size_t hn_counts_bytes(const hn_counts *x);
#endif
