/* SPDX-License-Identifier: Apache-2.0 */
/* token_map.h - token ids by their bytes: a hash table over strings that the caller owns. */
#ifndef HN_TOKEN_MAP_H
#define HN_TOKEN_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hn_piece {
    const char *bytes;
    uint32_t len;
} hn_piece;

typedef struct hn_token_map {
    struct hn_token_slot *slots;
    size_t mask;
    uint64_t seed;
} hn_token_map;

/* Room for `count` tokens. False: no memory. */
bool hn_token_map_init(hn_token_map *m, size_t count);
void hn_token_map_fini(hn_token_map *m);
/* Keeps the bytes' address, not a copy. Of equal strings the first stays. At most `count` calls. */
void hn_token_map_put(hn_token_map *m, hn_piece key, int32_t id);
int32_t hn_token_map_get(const hn_token_map *m, const char *bytes, size_t len); /* -1: absent */

/* Prefetches the slot that a get will read: useful for many lookups in a row. */
void hn_token_map_prefetch(const hn_token_map *m, const char *bytes, size_t len);
#endif
