/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_pool.h - n-grams by their first token, of each the newest few: what lookahead decoding (arXiv 2402.02057) verifies.
 *
 * Bounded: of each token at most `each` n-grams, of at most `keys` tokens. What was added longest ago makes room; adding an n-gram again
 * makes it the newest.
 */
#ifndef HN_NGRAM_POOL_H
#define HN_NGRAM_POOL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_POOL_KEYS = 8192 };

typedef struct hn_pool_key {
    int32_t token;
    int n;          /* n-grams */
    uint64_t added; /* when the newest was, by the clock */
} hn_pool_key;

typedef struct hn_ngram_pool {
    int len;  /* tokens after the first */
    int each, keys, vocab;
    int n_keys;
    uint64_t clock;
    int32_t *key_of;  /* [vocab] its number, -1: none. NULL: the pool is not open */
    hn_pool_key *key; /* [keys] */
    int32_t *tokens;  /* [keys][each][len], the oldest first */
} hn_ngram_pool;

/* Without memory false, and nothing is open. each 0: a pool that has nothing. */
bool hn_ngram_pool_open(hn_ngram_pool *p, int vocab, int len, int each, int keys);
void hn_ngram_pool_close(hn_ngram_pool *p); /* zeroed is fine */
void hn_ngram_pool_clear(hn_ngram_pool *p);
void hn_ngram_pool_add(hn_ngram_pool *p, int32_t first, const int32_t *rest); /* rest [len] */
/* All n-grams that text [n] has from token `from` on, the oldest first. */
void hn_ngram_pool_text(hn_ngram_pool *p, const int32_t *text, int from, int n);
/* The number of n-grams of a token, and the i-th of them after its first token, the newest is the last. */
int hn_ngram_pool_of(const hn_ngram_pool *p, int32_t first);
const int32_t *hn_ngram_pool_at(const hn_ngram_pool *p, int32_t first, int i);
size_t hn_ngram_pool_bytes(const hn_ngram_pool *p);
#endif
