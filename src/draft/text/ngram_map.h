/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_map.h - n-grams of one growing text, what followed them, and how far a draft from them was right last time:
 * llama.cpp's ngram-map-k (one continuation: that of the first occurrence) and ngram-map-k4v (up to four different ones
 * of m tokens, counted).
 *
 * The text belongs to the caller: the map holds positions. A text of L tokens takes at most 64 * L bytes.
 */
#ifndef HN_NGRAM_MAP_H
#define HN_NGRAM_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_MAP_VALUES = 4, HN_MAP_MOST = 16380 }; /* counts saturate at HN_MAP_MOST */

typedef struct hn_map_value {
    int32_t at;     /* where the continuation starts */
    uint16_t count; /* times seen, 0: an unused place */
    uint16_t cap;   /* tokens that a draft of it may have */
} hn_map_value;

typedef struct hn_map_key {
    int32_t first; /* start of its first occurrence */
    uint32_t hash;
    hn_map_value value[HN_MAP_VALUES];
} hn_map_key;

typedef struct hn_ngram_map {
    int n, m;     /* tokens of a key and of a continuation */
    bool counted; /* k4v: up to four continuations, only complete ones */
    int end;      /* keys that end before this position have been added, with the continuation after them */
    hn_map_key *key;
    size_t n_keys, cap_keys;
    int32_t *slot; /* [size] index of a key, -1: empty; open addressing */
    size_t size;   /* 0 or a power of two */
} hn_ngram_map;

void hn_ngram_map_init(hn_ngram_map *x, int n, int m, bool counted); /* allocates nothing */
void hn_ngram_map_fini(hn_ngram_map *x);                             /* frees; usable again as after init */

/* Adds the part of token[0..end) that was not added yet: each place once, even if called again. A smaller end than
 * before empties the map and starts over. The tokens before the old end must not have changed. Without memory keys are left
 * out. */
void hn_ngram_map_extend(hn_ngram_map *x, const int32_t *token, int end);

/* The continuation to draft after the text's last n tokens, or NULL: the n-gram is new, or (counted) none of its
 * continuations was seen at least twice as often as the others together. Valid until the next extend; *key, *value:
 * its indices, for hn_ngram_map_cap. */
const hn_map_value *hn_ngram_map_find(const hn_ngram_map *x, const int32_t *token, int end, int *key, int *value);
/* Limits the next draft of this continuation to `cap` tokens. Idempotent. */
void hn_ngram_map_cap(hn_ngram_map *x, int key, int value, int cap);
#endif
