/* SPDX-License-Identifier: Apache-2.0 */
/* ngram_map.h - n-grams of one growing text, what followed them, and how far a draft from them was right last time:
 * llama.cpp's ngram-map-k (one continuation: behind the place first seen) and ngram-map-k4v (up to four different ones
 * of m tokens, counted).
 *
 * The text stays with its owner: the map holds positions. A text of L tokens costs at most 64 * L bytes.
 */
#ifndef HN_NGRAM_MAP_H
#define HN_NGRAM_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_MAP_VALUES = 4, HN_MAP_MOST = 16380 }; /* counts stay at the most */

typedef struct hn_map_value {
    int32_t at;     /* where the continuation starts */
    uint16_t count; /* times seen, 0: an unused place */
    uint16_t cap;   /* tokens that a draft of it may have */
} hn_map_value;

typedef struct hn_map_key {
    int32_t first; /* where the n-gram starts that was seen first */
    uint32_t hash;
    hn_map_value value[HN_MAP_VALUES];
} hn_map_key;

typedef struct hn_ngram_map {
    int n, m;     /* tokens of a key and of a continuation */
    bool counted; /* k4v: up to four continuations, whole ones alone */
    int end;      /* keys that end before this position are in, with the continuation behind them */
    hn_map_key *key;
    size_t n_keys, cap_keys;
    int32_t *slot; /* [size] index of a key, -1: empty; open addressing */
    size_t size;   /* 0 or a power of two */
} hn_ngram_map;

void hn_ngram_map_init(hn_ngram_map *x, int n, int m, bool counted); /* allocates nothing */
void hn_ngram_map_fini(hn_ngram_map *x);                             /* frees; usable again as after init */

/* Takes in what token[0..end) holds beyond what is in: each place once, however often it is asked. A smaller end than
 * before forgets and starts over. The tokens before the old end must not have changed. Without memory keys are left
 * out. */
void hn_ngram_map_extend(hn_ngram_map *x, const int32_t *token, int end);

/* The continuation to draft behind the text's last n tokens, or NULL: the n-gram is new, or (counted) none of its
 * continuations was seen at least twice as often as the others together. Holds until the next extend; *key, *value:
 * where it stands, for hn_ngram_map_cap. */
const hn_map_value *hn_ngram_map_find(const hn_ngram_map *x, const int32_t *token, int end, int *key, int *value);
/* The next draft of this continuation has at most `cap` tokens. Twice is once. */
void hn_ngram_map_cap(hn_ngram_map *x, int key, int value, int cap);
#endif
